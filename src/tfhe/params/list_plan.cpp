#include "tfhe/params/list_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "math/primes.h"
#include "tfhe/params/noise.h"

namespace crenel::tfhe {
namespace {

constexpr u32 kPrimes = 3;
/// Bits of a stored word beyond those of the steps of a rotation: rounding adds 2^-8 of what it
/// would on the steps themselves.
constexpr u32 kMoreBits = 4;

}  // namespace

// The largest primes below the cube root, so that digits are small and the product is near T.
ListPlan list_plan(const device::TorusPlan& plan) {
  if (!plan.rests_extracted() || plan.glwe_dim != 1 || plan.slots != 1) return {};
  const u64 two_n = 2 * u64(plan.ring_dim());
  const u64 most = plan.path == device::NoisePath::raising ? plan.key_modulus() : plan.modulus;
  ListPlan lists;
  const auto root = static_cast<u64>(std::cbrt(static_cast<double>(most)));
  for (u64 p = (root - 1) / two_n * two_n + 1; p > two_n && lists.primes.size() < kPrimes;
       p -= two_n)
    if (math::is_prime(p)) lists.primes.push_back(p);
  if (lists.primes.size() < kPrimes) return {};
  std::reverse(lists.primes.begin(), lists.primes.end());
  lists.modulus = 1;
  for (const u64 p : lists.primes) lists.modulus *= p;
  lists.log_stored = std::min(plan.log_n + 1 + kMoreBits, plan.log_lwe_modulus);
  lists.stored_modulus = (u32(1) << lists.log_stored) - 1;
  return lists;
}

u64 list_key_words(const device::TorusPlan& plan) {
  const u64 digits = list_plan(plan).digits();
  return (plan.log_n * digits * digits) << plan.log_n;
}

u64 list_width(u64 count) { return std::bit_ceil(count); }

ListNoise list_noise(const device::TorusPlan& plan, const ListPlan& lists, u64 count) {
  const double q = std::exp2(plan.log_lwe_modulus), width = static_cast<double>(list_width(count));
  const double product = static_cast<double>(lists.modulus);
  const double ring = 1 + plan.ring_dim() * kTernarySquare;  // the body's share and the masks'
  // Digits centred modulo p_d, each times a key's error; every doubling doubles what came before.
  double step = 0;
  for (const u64 p : lists.primes)
    step += plan.ring_dim() * squared(static_cast<double>(p)) / 12 * kErrorVariance;
  const double doublings = step * (width * width - 1) / 3 * squared(q / product);
  // Rows are multiplied by the integer nearest to Q' / q, which is off by this many of q's units.
  const double off = std::remainder(product, q) / product * q;
  return {doublings + squared(off) / 12 * ring,
          squared(q / lists.stored_modulus) / 12 * ring + ring / 12};
}

}  // namespace crenel::tfhe
