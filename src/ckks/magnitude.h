// How large messages may become: one rule for each operation, which ciphertexts (Metadata::bound)
// and error bounds (ErrorBound::message) share, and the refusal of what may leave the modulus
// (docs/theory/precision.md, "How large values may be").
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <span>

#include "ckks/paterson_stockmeyer.h"

namespace crenel::ckks {

namespace magnitude {

/// A finite number that fits no modulus (Params::max_value is at most 2^1023).
inline constexpr double kTooLarge = std::numeric_limits<double>::max();

inline bool known(double bound) { return bound < kUnknownBound; }
/// `bound` of something known: infinite only where it left the doubles, and that is too large.
inline double finite(double bound) { return bound <= kTooLarge ? bound : kTooLarge; }

// What is unknown stays unknown, also times 0.
inline double sum(double a, double b) {
  return known(a) && known(b) ? finite(a + b) : kUnknownBound;
}
inline double product(double a, double b) {
  return known(a) && known(b) ? finite(a * b) : kUnknownBound;
}
/// By a number of this absolute value; one that is not finite is for others to refuse.
inline double scaled(double a, double factor) { return product(a, factor); }
/// T_i of slots of at most r. On [-1, 1] T_i is at most 1, beyond it grows as cosh(i acosh |x|),
/// and in the disc |z| <= r it is largest at z = i r.
inline double chebyshev(double r, bool real, u32 i) {
  if (!known(r)) return r;
  return finite(real ? std::cosh(i * std::acosh(std::max(1.0, r))) : std::cosh(i * std::asinh(r)));
}

/// StateError where the bound of `meta`, a result's, is known and does not fit its level and scale;
/// `operation` is named.
void expect_fits(const Params& params, const Metadata& meta, const char* operation);

/// `meta` with this bound, which must fit.
inline Metadata bounded(const Params& params, Metadata meta, double bound, const char* operation) {
  meta.bound = bound;
  if (known(bound)) expect_fits(params, meta, operation);
  return meta;
}

}  // namespace magnitude

/// What the operations of a composed circuit make of metadata: for a refusal before its first step.
struct Magnitude {
  Metadata meta;
  u32 components = 2;
  u32 level() const { return meta.level; }
  double scale() const { return meta.scale; }
};

/// The operations that ckks/paterson_stockmeyer.h and ckks/levels.h use, on metadata alone; they
/// refuse in the name of the circuit.
class MagnitudeModel {
 public:
  MagnitudeModel(const Params& params, const char* circuit) : params_(params), circuit_(circuit) {}
  const Params& params() const { return params_; }
  const char* circuit() const { return circuit_; }

  Magnitude add(const Magnitude& a, const Magnitude& b) const;
  Magnitude sub(const Magnitude& a, const Magnitude& b) const { return add(a, b); }
  Magnitude add(const Magnitude& a, std::complex<double> b) const;
  Magnitude multiply(const Magnitude& a, std::complex<double> b, double scale = 0.0) const;
  Magnitude multiply_lazy(const Magnitude& a, const Magnitude& b) const;
  Magnitude square_lazy(const Magnitude& a) const { return multiply_lazy(a, a); }
  Magnitude relinearise(Magnitude a) const;
  Magnitude rescale(const Magnitude& a) const;
  Magnitude relinearise_rescale(const Magnitude& a) const { return relinearise(rescale(a)); }
  Magnitude adjust_level(const Magnitude& a, u32 level, double scale = 0.0) const;
  /// `meta` with this bound, which must fit.
  Magnitude result(Magnitude a, double bound) const;

 private:
  const Params& params_;
  const char* circuit_;
};

struct MagnitudeOps {
  using Value = Magnitude;
  using Operations = MagnitudeModel;
  const MagnitudeModel& ev;

  const Params& params() const { return ev.params(); }
  const Metadata& metadata(const Magnitude& a) const { return a.meta; }
  u32 components(const Magnitude& a) const { return a.components; }
  Magnitude copy(const Magnitude& a) const { return a; }
  Magnitude drop(Magnitude a, u32 level) const {
    a.meta.level = level;
    return ev.result(a, a.meta.bound);
  }
  Magnitude double_square(const Magnitude& a, double constant) const {
    const Magnitude square = ev.square_lazy(a);
    return ev.add(ev.add(square, square), std::complex<double>(constant));
  }
  Magnitude linear_combination(std::span<const Magnitude* const> x, std::span<const double> c,
                               double constant, double scale) const;
  void set_scale(Magnitude& a, double scale) const { a.meta.scale = scale; }
  void limit_chebyshev(Magnitude& a, const Magnitude& x, u32 i) const {
    a.meta.bound = std::min(a.meta.bound, magnitude::chebyshev(x.meta.bound, x.meta.real, i));
  }
};

}  // namespace crenel::ckks
