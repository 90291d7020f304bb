#include "ring/ring.h"

#include <algorithm>

#include "core/team.h"
#include "crenel/core/error.h"

namespace crenel::ring {
namespace {

using math::make_shoup;
using math::Modulus;
using math::mul_mod;
using math::pow_mod;

// x^((q-1)/2N) is a 2N-th root of unity, primitive iff its N-th power is -1; half of all x serve.
u32 some_primitive_root(const Modulus<u32>& m, u32 log_n) {
  const u64 exponent = (static_cast<u64>(m.q) - 1) >> (log_n + 1);
  for (u32 x = 2;; ++x) {
    const u32 candidate = pow_mod<u32>(x, exponent, m);
    if (pow_mod<u32>(candidate, u64(1) << log_n, m) == m.q - 1) return candidate;
  }
}

// The primitive 2N-th roots are the odd powers of any one of them.
u32 smallest_primitive_root(const Modulus<u32>& m, u32 log_n) {
  u32 power = some_primitive_root(m, log_n);
  const u32 square = mul_mod<u32>(power, power, m);
  u32 smallest = power;
  for (u64 i = 1; i < (u64(1) << log_n); ++i) {
    power = mul_mod<u32>(power, square, m);
    smallest = std::min(smallest, power);
  }
  return smallest;
}

void fill_powers(std::vector<math::ShoupConstant<u32>>& table, u32 base, const Modulus<u32>& m,
                 u32 log_n) {
  table.resize(u64(1) << log_n);
  const auto step = make_shoup<u32>(base, m.q);
  u32 power = 1;
  for (u32 i = 0; i < table.size(); ++i) {
    table[bit_reverse(i, log_n)] = make_shoup<u32>(power, m.q);
    power = math::mul_shoup<u32>(power, step, m.q);
  }
}

}  // namespace

Ring::Ring(u32 log_n, const std::vector<u64>& primes) : log_n_(log_n) {
  if (log_n < 1 || log_n > 17)
    throw ParameterError(cat("log_n = ", log_n, ", expected 1..17"), {{"log_n", log_n}});
  if (primes.empty() || primes.size() > kMaxLimbs)
    throw ParameterError(cat(primes.size(), " primes, expected 1..", kMaxLimbs));
  constexpr u64 bound = u64(1) << 31;
  for (u64 q : primes)
    if (q >= bound || (q - 1) % (u64(2) << log_n) != 0)
      throw ParameterError(
          cat("prime ", q, " does not serve N = 2^", log_n, ": expected 1 mod 2N, below ", bound),
          {{"prime", q}});
  tables_.resize(primes.size());
  // Independent per prime: context creation of a 60-prime chain is something a user waits for.
  core::loop_that_stops(true, primes.size(), [&](u64 i) {
    auto& t = tables_[i];
    t.modulus = Modulus<u32>(static_cast<u32>(primes[i]));
    t.psi = smallest_primitive_root(t.modulus, log_n);
    t.psi_inv = math::inverse_mod<u32>(t.psi, t.modulus);
    t.n_inv = make_shoup<u32>(
        math::inverse_mod<u32>(static_cast<u32>((u64(1) << log_n) % t.modulus.q), t.modulus),
        t.modulus.q);
    fill_powers(t.roots, t.psi, t.modulus, log_n);
    fill_powers(t.inverse_roots, t.psi_inv, t.modulus, log_n);
  });
}

u64 galois_element_for_rotation(i64 steps, u32 log_n) {
  const u64 mask = (u64(2) << log_n) - 1;
  const i64 order = i64(1) << (log_n - 1);  // of 5 modulo 2N
  u64 e = static_cast<u64>(((steps % order) + order) % order);
  u64 result = 1, base = 5;
  for (; e != 0; e >>= 1) {
    if (e & 1) result = (result * base) & mask;
    base = (base * base) & mask;
  }
  return result;
}

u64 galois_inverse(u64 element, u32 log_n) {
  const u64 mask = (u64(2) << log_n) - 1;
  return math::inverse_mod_word<u64>(element) & mask;
}

}  // namespace crenel::ring
