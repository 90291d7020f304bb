// The table of the last four stages of a transform, as rows read it (LastTwiddles). No CUDA but
// its vectors.
#pragma once

#include <vector>

#include "backends/cuda/modular.cuh"
#include "math/modulus.h"

namespace crenel::backend::cuda {

/// Appends what a prime's `roots` (of one direction) have for each node n in [N / 16, N / 8): the
/// first twiddles below it of these stages, roots[n], [2n], [4n] and [8n], times R. All others are
/// one of them times one of the first eight roots.
template <class Roots>
void append_last_roots(const Roots& roots, const math::Modulus<u32>& m, std::vector<uint4>& to) {
  const auto times_r = [&](std::size_t i) { return math::mul_mod<u32>(roots[i].value, m.r, m); };
  for (std::size_t n = roots.size() / 16; n < roots.size() / 8; ++n)
    to.push_back(uint4{times_r(n), times_r(2 * n), times_r(4 * n), times_r(8 * n)});
}

}  // namespace crenel::backend::cuda
