// Ternary secrets, sampled on the host.
#pragma once

#include "random/seed.h"

namespace crenel::random {

/// `n` coefficients (a power of two), exactly `weight` of them +1 or -1 with fair signs, at uniform
/// positions; the others 0. Takes one nonce of Purpose::secret_key. Memory accesses and branches
/// depend on n and weight only. Throws ParameterError for other n
/// or weight > n.
core::SecretVector<i8> sample_sparse_ternary(SecretSource& source, u32 n, u32 weight);

/// `n` coefficients with P(+-1) = 1/4, as PolyKernels::sample_ternary draws them. Takes one nonce
/// of Purpose::secret_key.
core::SecretVector<i8> sample_dense_ternary(SecretSource& source, u32 n);

}  // namespace crenel::random
