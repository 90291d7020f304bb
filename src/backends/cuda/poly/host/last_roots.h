// The table of the last four stages of a transform, as rows read it (LastTwiddles). No CUDA but
// its vectors.
#pragma once

#include <vector>

#include "backends/cuda/modular.cuh"
#include "math/modulus.h"

namespace crenel::backend::cuda {

/// x R mod q
inline u32 times_r(u32 x, const math::Modulus<u32>& m) { return math::mul_mod<u32>(x, m.r, m); }

/// Appends what a prime's `roots` (of one direction) have for each node n in [N / 16, N / 8): the
/// first twiddles below it of these stages, roots[n], [2n], [4n] and [8n], times R. All others are
/// one of them times one of the first eight roots.
template <class Twiddles>
void append_last_roots(const Twiddles& roots, const math::Modulus<u32>& m, std::vector<uint4>& to) {
  const auto of = [&](std::size_t i) { return times_r(roots[i].value, m); };
  for (std::size_t n = roots.size() / 16; n < roots.size() / 8; ++n)
    to.push_back(uint4{of(n), of(2 * n), of(4 * n), of(8 * n)});
}

}  // namespace crenel::backend::cuda
