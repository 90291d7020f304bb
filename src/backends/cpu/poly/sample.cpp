// Samplers. The keystream is vectorised over blocks; small coefficients are made once and expanded
// to all limbs.
#include <algorithm>

#include "backends/cpu/keystream.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/poly/kernels.h"
#include "random/samplers.h"

namespace crenel::backend::cpu {

namespace {

// The keystream of one (batch entry, component) of `out`.
KeystreamState state_of(const ring::PolyView<u32>& out, u32 b, u32 c, const random::Seed& seed,
                        random::Nonce nonce) {
  nonce.serial += u64(b) * out.shape.components + c;
  return {seed, nonce};
}

constexpr u64 kBlocksPerTask = 256;

// Small integers in `values`, per_block a block, value(block, position) each.
template <class Value>
void fill_values(const SampleTable& sample, i32* values, u64 n, u32 per_block,
                 const KeystreamState& state, const Value& value) {
  const u64 blocks = (n + per_block - 1) / per_block;
  parallel_for((blocks + kBlocksPerTask - 1) / kBlocksPerTask, blocks * 256, [&](u64 task) {
    constexpr u64 kAtOnce = 16;
    random::ChaChaBlock stream[kAtOnce];
    const u64 end = std::min(blocks, (task + 1) * kBlocksPerTask);
    for (u64 first = task * kBlocksPerTask; first < end; first += kAtOnce) {
      const u64 count = std::min(kAtOnce, end - first);
      sample.keystream(stream[0].word, state.word, static_cast<u32>(first), count);
      for (u64 k = 0; k < count; ++k) {
        const u64 at = (first + k) * per_block;
        const u32 valid = static_cast<u32>(std::min<u64>(per_block, n - at));
        for (u32 i = 0; i < valid; ++i) values[at + i] = value(stream[k], i);
      }
    }
    random::secure_zero(stream, sizeof(stream));
  });
}

// The same small polynomial modulo every limb of one (batch entry, component) after the other.
template <class Value>
void sample_small(Stream& stream, const ring::PolyView<u32>& out, const IsaTable& isa,
                  const std::vector<u32>& q, const random::Seed& seed, random::Nonce nonce,
                  u32 per_block, const Value& value) {
  const u64 n = out.ring_dim();
  const auto buffer = stream.allocate(n * sizeof(i32), true);
  i32* const values = buffer.as<i32>();
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c) {
      const KeystreamState state = state_of(out, b, c, seed, nonce);
      fill_values(*isa.sample, values, n, per_block, state, value);
      parallel_for(out.limbs.size(), out.limbs.size() * n, [&](u64 l) {
        isa.arithmetic->expand_small(out.limb(b, c, static_cast<u32>(l)), values, n, q[l]);
      });
    }
}

std::vector<u32> moduli(const ring::Ring& ring, const LimbSet& limbs) {
  std::vector<u32> q;
  for (u32 l = 0; l < limbs.size(); ++l) q.push_back(ring.modulus(limbs[l]).q);
  return q;
}

}  // namespace

void CpuPolyKernels::do_sample_uniform(Stream&, View out, const random::Seed& seed,
                                       random::Nonce nonce) {
  const u64 n = out.ring_dim(), limbs = out.limbs.size();
  const u64 blocks = std::max<u64>(n / random::kUniformPerBlock, 1);
  const u64 piece = std::min<u64>(blocks, 1024), pieces = blocks / piece;
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c) {
      const KeystreamState state = state_of(out, b, c, seed, nonce);
      parallel_for(limbs * pieces, 64 * limbs * n, [&](u64 i) {
        const u32 l = static_cast<u32>(i / pieces), id = out.limbs[l];
        const u64 first = i % pieces * piece;
        const u32 block = static_cast<u32>(id * (n / random::kUniformPerBlock) + first);
        u32* const to = out.limb(b, c, l) + first * random::kUniformPerBlock;
        if (n >= random::kUniformPerBlock) {
          isa_.sample->uniform(to, state.word, block, piece, prime(id));
        } else {  // a limb shorter than a block
          u32 whole[random::kUniformPerBlock];
          isa_.sample->uniform(whole, state.word, block, 1, prime(id));
          std::copy_n(whole, n, to);
        }
      });
    }
}

void CpuPolyKernels::do_sample_ternary(Stream& stream, View out, const random::Seed& seed,
                                       random::Nonce nonce) {
  sample_small(
      stream, out, isa_, moduli(ring(), out.limbs), seed, nonce, random::kTernaryPerBlock,
      [](const random::ChaChaBlock& block, u32 i) { return random::ternary_value(block, i); });
}

void CpuPolyKernels::do_sample_error(Stream& stream, View out, const random::Seed& seed,
                                     random::Nonce nonce) {
  sample_small(
      stream, out, isa_, moduli(ring(), out.limbs), seed, nonce, random::kErrorPerBlock,
      [](const random::ChaChaBlock& block, u32 i) { return random::error_value(block, i); });
}

}  // namespace crenel::backend::cpu
