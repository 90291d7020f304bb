// How the roundings inside EvalMod reach its output: first-order propagation through its evaluation
// on the values that occur (docs/theory/precision.md, "Roundings inside EvalMod").
#include <bit>
#include <cmath>
#include <map>

#include "circuits/bootstrapping/precision.h"

namespace crenel::circuits {
namespace {

/// A value and its derivatives by the roundings so far.
struct Tracked {
  double value = 0.0;
  std::vector<double> by_rounding;
};

Tracked combine(const Tracked& a, double da, const Tracked& b, double db, double value) {
  Tracked out{value, std::vector<double>(std::max(a.by_rounding.size(), b.by_rounding.size()))};
  for (u64 i = 0; i < a.by_rounding.size(); ++i) out.by_rounding[i] += da * a.by_rounding[i];
  for (u64 i = 0; i < b.by_rounding.size(); ++i) out.by_rounding[i] += db * b.by_rounding[i];
  return out;
}
Tracked product(const Tracked& a, const Tracked& b) {
  return combine(a, b.value, b, a.value, a.value * b.value);
}
Tracked sum(const Tracked& a, double fa, const Tracked& b, double fb) {
  return combine(a, fa, b, fb, fa * a.value + fb * b.value);
}

/// Paterson-Stockmeyer in the Chebyshev basis for one value y. Factors of 2 come before a rescale,
/// sums of products are rescaled once.
class Evaluation {
 public:
  Evaluation(double y, u32 degree) : y_(y) {
    const u32 bits = static_cast<u32>(std::bit_width(degree));
    leaf_ = 1u << ((bits + 1) / 2);
  }

  Tracked rescaled(Tracked a) {
    a.by_rounding.resize(roundings_ + 1);
    a.by_rounding[roundings_++] += 1.0;
    return a;
  }

  /// Not rescaled.
  Tracked polynomial(std::vector<double> c) {
    const u32 degree = static_cast<u32>(c.size()) - 1;
    if (degree < leaf_) {
      Tracked out{c[0], {}};
      for (u32 k = 2; k <= degree; k += 2) out = sum(out, 1.0, chebyshev(k), c[k]);
      return out;
    }
    // p = high T_m + low, by T_(m + i) = 2 T_m T_i - T_(m - i).
    const u32 m = std::bit_floor(degree);
    std::vector<double> high(c.begin() + m, c.end()), low(c.begin(), c.begin() + m);
    for (u32 i = 1; i < high.size(); ++i) {
      low[m - i] -= high[i];
      high[i] *= 2.0;
    }
    const bool number = high.size() == 1;
    const Tracked lows = polynomial(std::move(low));
    if (number) return sum(lows, 1.0, chebyshev(m), high[0]);
    return sum(lows, 1.0, product(rescaled(polynomial(std::move(high))), chebyshev(m)), 1.0);
  }

 private:
  Tracked chebyshev(u32 k) {
    if (k == 0) return {1.0, {}};
    if (k == 1) return {y_, {}};  // the errors of y are those of CtS
    const auto it = known_.find(k);
    if (it != known_.end()) return it->second;
    const u32 a = std::has_single_bit(k) ? k / 2 : std::bit_floor(k), b = k - a;
    const Tracked ab = product(chebyshev(a), chebyshev(b));
    return known_[k] = rescaled(sum(ab, 2.0, chebyshev(a - b), -1.0));
  }

  double y_;
  u32 leaf_, roundings_ = 0;
  std::map<u32, Tracked> known_;
};

double gain_at(const Mod1Params& params, const std::vector<double>& coefficients, i64 integer) {
  Evaluation evaluation((static_cast<double>(integer) - 0.25) / params.width, params.degree);
  Tracked v = evaluation.rescaled(evaluation.polynomial(coefficients));
  double power = mod1_amplitude(params.double_angles);
  for (u32 r = 0; r < params.double_angles; ++r) {
    power *= power;
    v = evaluation.rescaled(sum(product(v, v), 2.0, {power, {}}, -1.0));
  }
  double square = 0.0;
  for (const double s : v.by_rounding) square += s * s;
  return square;
}

}  // namespace

std::vector<double> mod1_noise_gains(const Mod1Params& params) {
  const auto coefficients = fit_mod1(params);
  std::vector<double> gains;
  for (i64 i = -i64{params.range}; i <= i64{params.range}; ++i)
    gains.push_back(gain_at(params, coefficients, i));
  return gains;
}

double mod1_noise_gain(const Mod1Params& params) {
  const auto gains = mod1_noise_gains(params);
  const auto probability = integer_distribution(params.secret_weight, params.range);
  double gain = 0.0;  // |I| = K is not evaluated: a bootstrap with it has failed
  for (u64 k = 1; k + 1 < gains.size(); ++k) gain += probability[k] * gains[k];
  return gain;
}

}  // namespace crenel::circuits
