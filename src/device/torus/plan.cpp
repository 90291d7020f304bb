#include "device/torus/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "crenel/core/error.h"
#include "math/primes.h"

namespace crenel::device {
namespace {

void range(const char* field, u64 value, u64 low, u64 high) {
  if (value >= low && value <= high) return;
  throw ParameterError(cat(field, " = ", value, ", expected ", low, "..", high),
                       {{field, value}, {"low", low}, {"high", high}});
}

[[noreturn]] void refuse(const char* field, u64 value, const std::string& expected) {
  throw ParameterError(cat(field, " = ", value, ", expected ", expected),
                       {{field, value}, {"expected", expected}});
}

constexpr u64 kModulusBound = u64(1) << 56;
constexpr u64 kPrimeBound = u64(1) << 28;
/// The double-precision path rounds by adding 1.5 * 2^52, which holds integers below this.
constexpr double kRoundable = 0x1p51;
/// Values are taken to stay within this many standard deviations (2^-145 to leave them).
constexpr double kDeviations = 14.0;

void check_primes(const TorusPlan& plan) {
  range("primes", plan.primes.size(), 1, 2);
  for (const u64 p : plan.primes) {
    if (p >= kPrimeBound) refuse("prime", p, "a prime below 2^28");
    if (!math::is_prime(p)) refuse("prime", p, "a prime");
    if ((p - 1) % (u64(2) << plan.log_n) != 0)
      refuse("prime", p, cat("1 modulo ", u64(2) << plan.log_n));
  }
  if (plan.primes.size() == 2 && plan.primes[0] == plan.primes[1])
    refuse("prime", plan.primes[1], "two different primes");
}

// Whether base^digits < Q without forming the power.
bool digits_fit(const TorusPlan& plan) {
  const u64 bits = u64(plan.base_log) * plan.digits;
  return bits < 56 && (u64(1) << bits) < plan.modulus;
}

void check_path(const TorusPlan& plan) {
  const u64 product = plan.key_modulus();
  if (product >= kModulusBound) refuse("key_modulus", product, "below 2^56");
  if (plan.path == NoisePath::gadget) {
    if (plan.modulus != product)
      refuse("modulus", plan.modulus, cat("the primes' product ", product));
    range("base_log", plan.base_log, 1, 55);
    range("digits", plan.digits, 1, 55);
    if (!digits_fit(plan))
      refuse("digits", plan.digits, cat("base_log * digits below log2 of ", plan.modulus));
    return;
  }
  if (plan.modulus < 2 || (plan.modulus & (plan.modulus - 1)) != 0)
    refuse("modulus", plan.modulus, "a power of two");
  if (plan.modulus >= product) refuse("modulus", plan.modulus, cat("below T = ", product));
  range("digits", plan.digits, 1, 1);
}

double digit_power(double range) { return range * range / 12; }

// What the last digit ranges over: all that the others left.
double last_range(const TorusPlan& plan) {
  return std::ldexp(static_cast<double>(plan.modulus),
                    -static_cast<int>(plan.base_log * plan.digits));
}

// Mean square of a digit, or sum of those of its pieces.
double digit_power(const TorusPlan& plan, double range) {
  if (plan.arithmetic != Arithmetic::split) return digit_power(range);
  const double piece = std::ldexp(1.0, static_cast<int>(piece_log(plan)));
  return range <= piece ? digit_power(range) : digit_power(piece) + digit_power(range / piece);
}

// Mean square of the operands, summed over the digits: each is uniform.
double operand_power(const TorusPlan& plan) {
  if (plan.path == NoisePath::raising) return digit_power(static_cast<double>(plan.modulus));
  const double base = std::ldexp(1.0, static_cast<int>(plan.base_log));
  return (plan.digits - 1) * digit_power(plan, base) + digit_power(plan, last_range(plan));
}

// Standard deviation of a coefficient of the sum before scaling and reduction, for uniform keys and
// operands: a monomial minus one doubles the mean square of the key it multiplies, the monomials of
// a bundle leave it.
double sum_std(const TorusPlan& plan) {
  const double key = static_cast<double>(plan.key_modulus());
  const double monomials = (plan.accumulates() ? 2 : 1) * plan.keys_per_step();
  return std::sqrt(operand_power(plan) * monomials * digit_power(key) * plan.ring_dim() *
                   plan.polys());
}

double scale_of(const TorusPlan& plan) {
  return plan.path == NoisePath::raising
             ? static_cast<double>(plan.modulus) / static_cast<double>(plan.key_modulus())
             : 1.0;
}

void check_split(const TorusPlan& plan) {
  if (plan.arithmetic != Arithmetic::split) return;
  if (plan.path != NoisePath::gadget)
    throw ParameterError("arithmetic = split, expected gadget decomposition with it",
                         {{"arithmetic", "split"}, {"path", "raising"}});
  TorusPlan whole = plan;
  whole.arithmetic = Arithmetic::exact;
  if (transform_is_exact(whole))
    throw ParameterError(
        cat("arithmetic = split, expected exact: the double-precision transform gives the integers "
            "modulo ",
            plan.modulus),
        {{"arithmetic", "split"}, {"modulus", plan.modulus}});
}

void check_group(const TorusPlan& plan) {
  range("group", plan.group, 1, kMaxGroup);
  if (plan.lwe_dim % plan.group != 0)
    refuse("group", plan.group, cat("a divisor of lwe_dim = ", plan.lwe_dim));
  if (plan.key_group != 0) {
    range("key_group", plan.key_group, 1, kMaxGroup);
    if (plan.key_group % plan.group != 0 || plan.lwe_dim % plan.key_group != 0)
      refuse("key_group", plan.key_group,
             cat("a multiple of group = ", plan.group, " and a divisor of ", plan.lwe_dim));
  }
  if (plan.secret != LweSecret::binary)
    throw ParameterError("secret = ternary, expected binary with groups of its elements",
                         {{"secret", "ternary"}, {"group", plan.group}});
  if (plan.path != NoisePath::raising)
    throw ParameterError("path = gadget, expected modulus raising with groups of elements",
                         {{"path", "gadget"}, {"group", plan.group}});
  if (plan.arithmetic != Arithmetic::approx)
    throw ParameterError("arithmetic = exact, expected approx: bundles of keys are made in doubles",
                         {{"arithmetic", "exact"}, {"group", plan.group}});
  // The fractions of exponents, and 4^g times their squares, stay within words of 64 bits.
  range("log_switch_modulus", plan.log_switch_modulus, plan.log_n + 1, plan.log_n + 25);
  range("log_switch_modulus", plan.log_switch_modulus, 1, plan.log_lwe_modulus);
  if (u64(1) << plan.log_lwe_modulus > plan.modulus)
    refuse("log_lwe_modulus", plan.log_lwe_modulus, cat("at most log2 of Q = ", plan.modulus));
  range("switch_base_log", plan.switch_base_log, 1, 16);
  range("switch_digits", plan.switch_digits, 1, 40);
  if (plan.switch_base_log * plan.switch_digits > plan.log_switch_modulus)
    refuse("switch_digits", plan.switch_digits,
           cat("switch_base_log * switch_digits of at most log_switch_modulus = ",
               plan.log_switch_modulus));
}

void check_doubles(const TorusPlan& plan) {
  if (plan.arithmetic == Arithmetic::exact) return;
  // what the rounding trick is applied to: the result, or its quotient by Q
  const double rounded = sum_std(plan) * scale_of(plan) /
                         (reduces_product(plan) ? static_cast<double>(plan.modulus) : 1.0);
  if (kDeviations * rounded < kRoundable) return;
  throw ParameterError(
      cat("modulus = ", plan.modulus, ": sums of standard deviation 2^", std::log2(rounded),
          " before rounding, expected below 2^51 with ", kDeviations, " standard deviations"),
      {{"modulus", plan.modulus}, {"log2_std", std::log2(rounded)}});
}

}  // namespace

u32 piece_log(const TorusPlan& plan) {
  const u32 last =
      static_cast<u32>(std::bit_width((plan.modulus - 1) >> (plan.base_log * plan.digits)));
  return (std::max(plan.digits > 1 ? plan.base_log : 0, last) + 1) / 2;
}

bool reduces_product(const TorusPlan& plan) {
  return plan.path == NoisePath::gadget ||
         kDeviations * sum_std(plan) * scale_of(plan) >= kRoundable;
}

bool transform_is_exact(const TorusPlan& plan) {
  return plan.path == NoisePath::gadget && plan.primes.size() == 1 &&
         12 * transform_error_std(plan) < 0.5;
}

// Rounding errors of relative size 2^-53 enter at every level of the three transforms that a term
// passes (operand, key, inverse) and in the sum, independently and spread evenly over the
// coefficients: their mean square is that of the sum times 2^-106, times kLevel a level and kSum.
// Both were fitted to the measured difference between approx and exact, and hold to 20 % for N
// = 32..1024 (tests/conformance/torus_schoolbook_test.cpp).
double transform_error_std(const TorusPlan& plan) {
  constexpr double kLevel = 0.7, kSum = 1.0;
  const double levels = 3.0 * (plan.log_n - 1);
  return 0x1p-53 * std::sqrt(kLevel * levels + kSum) * sum_std(plan) * scale_of(plan);
}

void check(const TorusPlan& plan) {
  range("lwe_dim", plan.lwe_dim, 1, u32(1) << 16);
  range("glwe_dim", plan.glwe_dim, 1, 16);
  range("slots", plan.slots, 1, 64);
  range("log_n", plan.log_n, 3, 12);
  range("log_lwe_modulus", plan.log_lwe_modulus, 1, 32);
  check_primes(plan);
  check_path(plan);
  check_split(plan);
  check_doubles(plan);
  if (plan.group != 0) return check_group(plan);
  if (plan.differences)
    throw ParameterError("differences = true, expected false without groups of elements",
                         {{"differences", "true"}, {"group", 0}});
  range("log_switch_modulus", plan.log_switch_modulus, 1, 40);
  if (plan.log_switch_modulus < plan.log_lwe_modulus)
    refuse("log_switch_modulus", plan.log_switch_modulus,
           cat("at least log_lwe_modulus = ", plan.log_lwe_modulus));
  range("switch_base_log", plan.switch_base_log, 1, 16);
  range("switch_digits", plan.switch_digits, 1, 40);
  if (plan.switch_base_log * plan.switch_digits < plan.log_switch_modulus ||
      plan.switch_base_log * (plan.switch_digits - 1) > 63)
    refuse("switch_digits", plan.switch_digits,
           cat("switch_base_log * switch_digits of at least log_switch_modulus = ",
               plan.log_switch_modulus, ", digits within 64 bits"));
}

}  // namespace crenel::device
