// Floor, sign and digits of messages that may be larger than one bootstrap reads: OpenFHE's
// EvalFloor, EvalSign and EvalDecomp (docs/theory/tfhe.md "Functions of messages"). A message m
// modulo p stands at m 2 beta modulo M = 2 beta p; a bootstrap reads the phase modulo q, hence at
// most q / 2 beta messages of it.
#include <bit>
#include <cmath>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "tfhe/encoding.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/params/noise.h"

namespace crenel::tfhe {
namespace {

/// beta must hold this many standard deviations of two bootstraps.
constexpr double kDeviations = 6.0;

// log2 of M, p and 2 beta; rows modulo M.
struct Operand {
  device::Buffer owned;
  const u32* rows = nullptr;
  u32 log_modulus = 0;
  u32 log_step = 0;  ///< 2 beta
  Noise noise;       ///< modulo M

  double beta() const { return std::exp2(log_step) / 2.0; }
  u32 log_plain() const { return log_modulus - log_step; }
};

class Functional {
 public:
  Functional(const Evaluator::State& s, const Ciphertext& a, const char* operation)
      : s_(s), count_(a.data().rows()), size_(a.size()), operation_(operation) {
    s.check(a);
    const u32 p = a.plain_modulus();
    if (!std::has_single_bit(p) || p < 2)
      throw ParameterError(cat(operation, " of messages modulo ", p, ", expected a power of two"),
                           {{"plain_modulus", p}});
    s.bootstrap_keys();
    value_.rows = a.data().payload.as<const u32>();
    value_.log_modulus = a.data().log_modulus;
    value_.log_step = value_.log_modulus - floor_log2(p);
    value_.noise = a.data().noise;
  }

  Operand& value() { return value_; }
  /// Bits of a message that one bootstrap reads.
  u32 readable_bits() const {
    return s_.log_q() > value_.log_step ? s_.log_q() - value_.log_step : 0;
  }

  void check_readable(u32 bits) const {
    if (bits <= readable_bits()) return;
    throw UnsupportedError(
        cat(operation_, ": ", bits, " bits at once, expected at most ", readable_bits(),
            " (q / 2 beta = 2^", s_.log_q(), " / 2^", value_.log_step, ")"),
        {{"bits", bits}, {"readable", readable_bits()}});
  }

  /// Whether results modulo M have their place and little noise.
  void check_modulus() const {
    const u32 log_m = value_.log_modulus, log_switch = s_.plan().log_switch_modulus;
    if (log_m > max_log_modulus(s_.params()))
      throw UnsupportedError(
          cat(operation_, " modulo 2^", log_m, ", expected at most Q_KS = 2^", log_switch),
          {{"log_modulus", log_m}, {"log_switch_modulus", log_switch}});
    const double std = std::sqrt(2.0 * bootstrap_variance(s_.plan(), s_.budget, log_m));
    const double beta = value_.beta();
    if (kDeviations * std > beta)
      throw UnsupportedError(
          cat(operation_, " modulo 2^", log_m,
              ": the noise of two bootstraps has a standard deviation of ", std,
              ", expected at most beta / ", kDeviations, " = ", beta / kDeviations),
          {{"log_modulus", log_m}, {"std", std}, {"beta", beta}});
  }

  /// Clears the low `bits` of the messages: with x the phase plus beta and l = x modulo 2^bits 2
  /// beta, takes l off in two steps, first -+ a quarter of the range, so that what is left lies in
  /// its middle half, then that by the ramp, whose value includes the phase's error.
  void floor(u32 bits) {
    const u32 log_range = value_.log_step + bits, log_m = value_.log_modulus;
    Noise noise = floored_noise(log_range);
    const auto& plan = s_.plan();
    const auto half = s_.function(ContentKey("floor").add(log_range).add(log_m), [&] {
      const u64 quarter = scaled_to_modulus(1, u64(1) << (log_m - log_range + 2), plan.modulus);
      return window_polynomial(plan, 0, quarter, 0);
    });
    const auto ramp = s_.function(ContentKey("ramp").add(log_range).add(log_m),
                                  [&] { return ramp_polynomial(plan, log_range, log_m); });
    const device::LweTerm term{value_.rows, 1};
    device::Buffer x = s_.combined({&term, 1}, u64(1) << (value_.log_step - 1), count_, log_m);
    for (const device::LutView& table : {half, ramp}) {
      const device::Buffer low = stretched(x.as<const u32>(), log_range);
      device::Buffer y = s_.allocate_rows(count_);
      s_.bootstrap(y.as<u32>(), log_m, low.as<const u32>(), s_.log_q(), count_, table);
      const device::LweTerm difference[] = {{x.as<const u32>(), 1}, {y.as<const u32>(), -1}};
      s_.combine(x.as<u32>(), difference, 0, count_, log_m);
    }
    replace(std::move(x));
    value_.noise = std::move(noise);
  }

  /// Judges the reading of phases modulo 2^log_range, whose messages may be off by beta, stretched
  /// to q.
  void judge(const Noise& noise, u32 log_range) const {
    const double stretch = std::exp2(double(s_.log_q()) - log_range);
    s_.judge(noise.scaled(stretch), s_.log_q(), value_.beta() * stretch, operation_);
  }
  /// Noise of value() modulo q, where phases modulo 2^log_range are stretched to it.
  Noise stretched_noise(u32 log_range) const {
    return value_.noise.scaled(std::exp2(double(s_.log_q()) - log_range));
  }

  /// Divides messages whose low `bits` are zero by 2^bits.
  void drop(u32 bits) {
    device::Buffer out = s_.allocate_rows(count_);
    const auto& plan = s_.plan();
    device::LweShape shape{count_, plan.rest_dim(), plan.slots, value_.log_modulus};
    const device::ConstLweView from(value_.rows, shape);
    shape.log_modulus = value_.log_modulus -= bits;
    s_.home().torus->mod_switch(s_.stream(), {out.as<u32>(), shape}, from);
    replace(std::move(out));
    value_.noise = value_.noise.scaled(std::exp2(-double(bits)));
    value_.noise.add(
        Noise(size_, switching_variance(plan, from.shape.log_modulus, value_.log_modulus)), 1);
  }

  /// Phases modulo 2^log_range <= q, times q / 2^log_range.
  device::Buffer stretched(const u32* rows, u32 log_range) const {
    const device::LweTerm term{rows, i64(1) << (s_.log_q() - log_range)};
    return s_.combined({&term, 1}, 0, count_, s_.log_q());
  }

 private:
  /// Judges both bootstraps of a floor. The first one's noise is in what the second reads; what the
  /// second takes off includes all noise so far, but for its own and the error of its reading.
  Noise floored_noise(u32 log_range) const {
    Noise x = value_.noise;
    judge(x, log_range);
    x.add(s_.bootstrap_noise(size_, value_.log_modulus), -1);
    judge(x, log_range);
    const double stretch = std::exp2(double(s_.log_q()) - log_range);
    Noise out = s_.bootstrap_noise(size_, value_.log_modulus);
    out.add(Noise(size_, s_.reading(s_.log_q()) / (stretch * stretch)), 1);
    return out;
  }

  void replace(device::Buffer rows) {
    value_.owned = std::move(rows);
    value_.rows = value_.owned.as<const u32>();
  }

  const Evaluator::State& s_;
  u64 count_, size_;
  const char* operation_;
  Operand value_;
};

}  // namespace

Ciphertext Evaluator::floor(const Ciphertext& a, u32 bits) const {
  const State& s = *state_;
  Functional f(s, a, "floor");
  if (bits == 0 || bits >= f.value().log_plain())
    throw ParameterError(cat("floor of ", bits, " bits, expected 1..", f.value().log_plain() - 1,
                             " for messages modulo ", a.plain_modulus()),
                         {{"bits", bits}, {"plain_modulus", a.plain_modulus()}});
  f.check_readable(bits);
  f.check_modulus();
  const watch::Task task(s.units(2 * a.data().rows()), "bootstraps");
  f.floor(bits);
  return s.wrap(std::move(f.value().owned), a.size(), a.plain_modulus(), f.value().log_modulus,
                std::move(f.value().noise));
}

Ciphertext Evaluator::sign(const Ciphertext& a) const {
  const State& s = *state_;
  Functional f(s, a, "sign");
  Operand& x = f.value();
  if (x.log_modulus > s.log_q()) {
    f.check_readable(1);
    f.check_modulus();
  }
  const u32 excess = x.log_modulus > s.log_q() ? x.log_modulus - s.log_q() : 0;
  const u32 floors = excess == 0 ? 0 : (excess + f.readable_bits() - 1) / f.readable_bits();
  const watch::Task task(s.units((2 * floors + 1) * a.data().rows()), "bootstraps");
  while (x.log_modulus > s.log_q()) {
    const u32 bits = f.readable_bits();
    f.floor(bits);
    f.drop(bits);
  }
  // [-beta, M/2 - beta) is the lower half; E(beta) of 2N steps, rounded.
  const u32 steps = 2 * s.plan().ring_dim(), messages = u32(1) << x.log_plain();
  const u32 beta = (steps + messages) / (2 * messages);
  const auto table = s.function(ContentKey("sign").add(beta), [&] {
    const u64 value = s.plan().modulus / 8 + 1;
    return window_polynomial(s.plan(), (steps - beta) % steps, value, value);
  });
  f.judge(x.noise, x.log_modulus);
  const device::Buffer in = f.stretched(x.rows, x.log_modulus);
  Ciphertext result = s.wrap(s.bootstrapped(in.as<const u32>(), a.data().rows(), table), a.size(),
                             4, s.log_q(), s.bootstrap_noise(a.size(), s.log_q()));
  result.data().bound = 2;
  return result;
}

std::vector<Ciphertext> Evaluator::decompose(const Ciphertext& a, u32 base_bits) const {
  const State& s = *state_;
  Functional f(s, a, "decompose");
  Operand& x = f.value();
  if (base_bits == 0)
    throw ParameterError("digits of 0 bits, expected at least 1", {{"base_bits", 0}});
  if (x.log_plain() > base_bits) {
    f.check_readable(base_bits);
    f.check_modulus();
  } else {
    f.check_readable(x.log_plain());
  }
  const u32 floors = (x.log_plain() + base_bits - 1) / base_bits - 1;
  const watch::Task task(s.units(2 * floors * a.data().rows()), "bootstraps");
  std::vector<Ciphertext> digits;
  while (x.log_plain() > base_bits) {
    digits.push_back(s.wrap(f.stretched(x.rows, x.log_step + base_bits), a.size(),
                            u32(1) << base_bits, s.log_q(),
                            f.stretched_noise(x.log_step + base_bits)));
    f.floor(base_bits);
    f.drop(base_bits);
  }
  digits.push_back(s.wrap(f.stretched(x.rows, x.log_modulus), a.size(), u32(1) << x.log_plain(),
                          s.log_q(), f.stretched_noise(x.log_modulus)));
  return digits;
}

}  // namespace crenel::tfhe
