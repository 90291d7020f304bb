// Ring: the host-side tables of Z_Q[X]/(X^N + 1) for every prime of a chain.
#pragma once

#include <vector>

#include "math/modulus.h"
#include "rns/limb_set.h"

namespace crenel::ring {

using rns::kMaxLimbs;
using rns::LimbSet;

/// Reversal of the low `bits` bits of i.
constexpr u32 bit_reverse(u32 i, u32 bits) {
  u32 r = 0;
  for (u32 b = 0; b < bits; ++b) r |= ((i >> b) & 1u) << (bits - 1 - b);
  return r;
}

/// Tables of one prime. psi is the smallest primitive 2N-th root of unity modulo q, a canonical
/// choice that makes evaluation forms comparable across machines and versions.
struct PrimeTables {
  math::Modulus<u32> modulus;
  u32 psi = 0;
  u32 psi_inv = 0;
  math::ShoupConstant<u32> n_inv;  ///< N^-1 mod q
  /// roots[i] = psi^brev(i), i in [0, N), brev on log_n bits: butterfly stage m (m = 1, 2, 4, ...,
  /// N/2 blocks) uses roots[m + block].
  std::vector<math::ShoupConstant<u32>> roots;
  /// inverse_roots[i] = psi^-brev(i), same indexing.
  std::vector<math::ShoupConstant<u32>> inverse_roots;
};

/// Immutable after construction; shared by every backend of a context.
class Ring {
 public:
  /// primes in position order (ckks::Params::primes()), each = 1 mod 2^(log_n + 1) and
  /// < 2^31; throws ParameterError naming the prime otherwise. log_n in 1..17.
  Ring(u32 log_n, const std::vector<u64>& primes);

  u32 log_n() const { return log_n_; }
  u64 ring_dim() const { return u64(1) << log_n_; }
  u32 prime_count() const { return static_cast<u32>(tables_.size()); }
  const PrimeTables& prime(u32 id) const { return tables_[id]; }
  const math::Modulus<u32>& modulus(u32 id) const { return tables_[id].modulus; }

 private:
  u32 log_n_;
  std::vector<PrimeTables> tables_;
};

/// Galois element of a rotation by `steps` slots to the left: 5^steps mod 2N, steps any integer.
u64 galois_element_for_rotation(i64 steps, u32 log_n);
/// Galois element of complex conjugation: 2N - 1.
inline u64 galois_element_for_conjugation(u32 log_n) { return (u64(2) << log_n) - 1; }
/// e^-1 mod 2N for odd e.
u64 galois_inverse(u64 element, u32 log_n);

/// Index permutation of the automorphism X -> X^e in evaluation form: out[i] = in[source(i)].
CRENEL_HD u32 galois_eval_source(u32 i, u64 element, u32 log_n) {
#if defined(__CUDA_ARCH__)
  const u32 reversed = __brev(i) >> (32 - log_n);
#else
  u32 reversed = 0;
  for (u32 b = 0; b < log_n; ++b) reversed |= ((i >> b) & 1u) << (log_n - 1 - b);
#endif
  const u32 mask = (2u << log_n) - 1;
  const u32 exponent = (static_cast<u32>(element) * (2 * reversed + 1)) & mask;
  const u32 target = exponent >> 1;
#if defined(__CUDA_ARCH__)
  return __brev(target) >> (32 - log_n);
#else
  u32 source = 0;
  for (u32 b = 0; b < log_n; ++b) source |= ((target >> b) & 1u) << (log_n - 1 - b);
  return source;
#endif
}

}  // namespace crenel::ring
