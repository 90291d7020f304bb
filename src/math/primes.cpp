#include "math/primes.h"

#include <array>
#include <bit>
#include <cassert>

namespace crenel::math {
namespace {

u64 mul(u64 a, u64 b, u64 n) { return static_cast<u64>(static_cast<u128>(a) * b % n); }

u64 power(u64 base, u64 exponent, u64 n) {
  u64 result = 1;
  for (base %= n; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = mul(result, base, n);
    base = mul(base, base, n);
  }
  return result;
}

// One Miller-Rabin round: n - 1 = odd * 2^twos.
bool passes_round(u64 n, u64 base, u64 odd, int twos) {
  u64 x = power(base, odd, n);
  if (x == 1 || x == n - 1) return true;
  for (int i = 1; i < twos; ++i) {
    x = mul(x, x, n);
    if (x == n - 1) return true;
  }
  return false;
}

}  // namespace

bool is_prime(u64 n) {
  // The first twelve primes as bases decide every n < 3.3 * 10^24 (Sorenson and Webster 2015); the
  // first four are enough below 3215031751 (Jaeschke 1993), which covers all primes of the library.
  static constexpr std::array<u64, 12> kBases{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  if (n < 2) return false;
  for (const u64 p : kBases)
    if (n % p == 0) return n == p;
  const int twos = std::countr_zero(n - 1);
  const u64 odd = (n - 1) >> twos;
  const std::size_t rounds = n < 3215031751u ? 4 : kBases.size();
  for (std::size_t i = 0; i < rounds; ++i)
    if (!passes_round(n, kBases[i], odd, twos)) return false;
  return true;
}

std::vector<u64> ntt_primes(u64 low, u64 high, u64 two_n) {
  assert(std::has_single_bit(two_n));
  std::vector<u64> found;
  if (high <= 1) return found;
  // k two_n + 1 >= low  <=>  k >= ceil((low - 1) / two_n).
  const u64 first = low <= 1 ? 0 : (low - 2) / two_n + (low >= 2 ? 1 : 0);
  const u64 last = (high - 2) / two_n;
  for (u64 k = first; k <= last; ++k)
    if (is_prime(k * two_n + 1)) found.push_back(k * two_n + 1);
  return found;
}

std::vector<u64> nearest_ntt_primes(u64 center, std::size_t count, u64 low, u64 high, u64 two_n) {
  assert(std::has_single_bit(two_n));
  std::vector<u64> found;
  if (high < 2 || low >= high) return found;
  const i128 step = two_n;
  i128 below = static_cast<i128>(center - center % two_n) + 1;
  if (below > static_cast<i128>(center)) below -= step;
  i128 above = below + step;
  const auto inside = [&](i128 p) {
    return p >= static_cast<i128>(low) && p < static_cast<i128>(high) && p > 1;
  };
  while (found.size() < count) {
    const bool more_below = below > 1 && below >= static_cast<i128>(low);
    const bool more_above = above < static_cast<i128>(high);
    if (!more_below && !more_above) break;
    const bool take_below = more_below && (!more_above || static_cast<i128>(center) - below <=
                                                              above - static_cast<i128>(center));
    const i128 p = take_below ? below : above;
    (take_below ? below : above) += take_below ? -step : step;
    if (inside(p) && is_prime(static_cast<u64>(p))) found.push_back(static_cast<u64>(p));
  }
  return found;
}

}  // namespace crenel::math
