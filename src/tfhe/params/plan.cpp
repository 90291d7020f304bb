#include "tfhe/params/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "math/primes.h"

namespace crenel::tfhe {
namespace {

constexpr u64 kPrimeBound = u64(1) << 28;
/// Primes looked at around the square root: enough for a product within 2 % of any power of two
/// when such primes are dense, and for some product when they are rare (2^14.5, 1 mod 4096).
constexpr std::size_t kCandidates = 64;

std::vector<u64> prime_pair(u64 target, u32 log_modulus, u64 two_n, bool above) {
  const auto centre = static_cast<u64>(std::exp2(log_modulus / 2.0));
  std::vector<u64> near = math::nearest_ntt_primes(centre, kCandidates, 3, kPrimeBound, two_n);
  std::sort(near.begin(), near.end());
  std::vector<u64> best;
  u64 best_product = 0;
  for (std::size_t i = 0; i < near.size(); ++i) {
    for (std::size_t j = i + 1; j < near.size(); ++j) {
      const u64 product = near[i] * near[j];
      if (above ? product < target : product >= target) continue;
      const bool better = above ? product < best_product : product > best_product;
      if (!best.empty() && !better) continue;
      best = {near[i], near[j]};
      best_product = product;
    }
  }
  return best;
}

}  // namespace

std::vector<u64> accumulator_primes(NoisePath path, u32 log_modulus, u32 ring_dim) {
  if (log_modulus == 0 || log_modulus > 55) return {};
  const u64 target = u64(1) << log_modulus;
  const u64 two_n = 2 * u64(ring_dim);
  if (path == NoisePath::raising) return prime_pair(target, log_modulus, two_n, true);
  if (log_modulus > 28) return prime_pair(target, log_modulus, two_n, false);
  for (u64 p = (target - 1) / two_n * two_n + 1; p > two_n; p -= two_n)
    if (p < target && math::is_prime(p)) return {p};
  return {};
}

namespace {

// The same names in the same order, so that a value says the same on either side.
static_assert(u8(Arithmetic::exact) == u8(device::Arithmetic::exact) &&
              u8(Arithmetic::approx) == u8(device::Arithmetic::approx) &&
              u8(Arithmetic::split) == u8(device::Arithmetic::split));

device::Arithmetic device_arithmetic(Arithmetic arithmetic) {
  return static_cast<device::Arithmetic>(arithmetic);
}

device::TorusPlan assemble(const Spec& spec, SlotCount slots, std::vector<u64> primes) {
  const bool gadget = spec.path == NoisePath::gadget;
  device::TorusPlan plan;
  plan.lwe_dim = spec.lwe_dim.value;
  plan.glwe_dim = spec.glwe_dim.value;
  plan.slots = slots.value;
  plan.log_n = static_cast<u32>(std::countr_zero(spec.poly_size.value));
  plan.log_lwe_modulus = spec.log_lwe_modulus;
  plan.path = gadget ? device::NoisePath::gadget : device::NoisePath::raising;
  plan.arithmetic = device_arithmetic(spec.arithmetic);
  plan.secret =
      spec.secret == LweSecret::ternary ? device::LweSecret::ternary : device::LweSecret::binary;
  plan.primes = std::move(primes);
  if (!plan.primes.empty()) plan.modulus = gadget ? plan.key_modulus() : u64(1) << spec.log_modulus;
  plan.base_log = spec.base_log.value;
  plan.digits = gadget ? ceil_div(spec.log_modulus, spec.base_log.value) - 1 : 1;
  plan.log_switch_modulus = spec.log_switch_modulus;
  plan.switch_base_log = spec.switch_base_log.value;
  plan.switch_digits = spec.group != 0
                           ? spec.switch_digits
                           : ceil_div(spec.log_switch_modulus, spec.switch_base_log.value);
  plan.group = spec.step;
  plan.key_group = spec.made_group();
  plan.differences = spec.differences;
  return plan;
}

}  // namespace

device::TorusPlan made_plan(const device::TorusPlan& plan) {
  device::TorusPlan made = plan;
  made.group = plan.made_group();
  return made;
}

device::TorusPlan plan_of(const Spec& spec, SlotCount slots) {
  const u32 log_key = spec.path == NoisePath::gadget ? spec.log_modulus : spec.log_raised_modulus;
  return assemble(spec, slots, accumulator_primes(spec.path, log_key, spec.poly_size.value));
}

device::TorusPlan plan_of(const Params& params) {
  return assemble(params.spec(), params.slots(), params.primes());
}

Arithmetic arithmetic_of(const device::TorusPlan& plan) {
  return static_cast<Arithmetic>(plan.arithmetic);
}

}  // namespace crenel::tfhe
