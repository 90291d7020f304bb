#include "backends/ref/poly/kernels.h"
#include "crenel/core/watch.h"
#include "random/chacha20.h"

namespace crenel::backend::ref {
namespace {

using random::chacha20_block;
using random::chacha20_state;
using random::ChaChaBlock;
using random::ChaChaState;

// The keystream of one (batch entry, component).
ChaChaState state_of(const PolyView<u32>& out, u32 b, u32 c, const random::Seed& seed,
                     random::Nonce nonce) {
  nonce.serial += u64(b) * out.shape.components + c;
  return chacha20_state(seed, nonce);
}

// Bit number k of the 512 bits of a block, little-endian.
u32 bit(const ChaChaBlock& block, u32 k) { return block.word[k / 32] >> (k % 32) & 1; }

i32 ternary_coefficient(const ChaChaState& state, u32 i) {
  const ChaChaBlock block = chacha20_block(state, i / 256);
  const u32 k = 2 * (i % 256);
  return static_cast<i32>(bit(block, k)) - static_cast<i32>(bit(block, k + 1));
}

i32 error_coefficient(const ChaChaState& state, u32 i) {
  const ChaChaBlock block = chacha20_block(state, i / 8);
  i32 sum = 0;
  for (u32 pair = 0; pair < 21; ++pair) {
    sum += static_cast<i32>(bit(block, 64 * (i % 8) + pair));
    sum -= static_cast<i32>(bit(block, 64 * (i % 8) + 21 + pair));
  }
  return sum;
}

// One small integer polynomial, the same modulo every limb.
template <class F>
void fill_small(const ring::Ring& ring, const PolyView<u32>& out, const random::Seed& seed,
                random::Nonce nonce, F coefficient) {
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c) {
      const ChaChaState state = state_of(out, b, c, seed, nonce);
      for (u32 i = 0; i < out.ring_dim(); ++i) {
        watch::point();
        const i32 value = coefficient(state, i);
        for (u32 l = 0; l < out.limbs.size(); ++l)
          out.limb(b, c, l)[i] = residue(value, ring.modulus(out.limbs[l]).q);
      }
    }
}

}  // namespace

void RefPolyKernels::do_sample_uniform(Stream&, View out, const random::Seed& seed,
                                       random::Nonce nonce) {
  const u32 n = static_cast<u32>(out.ring_dim());
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c) {
      const ChaChaState state = state_of(out, b, c, seed, nonce);
      for (u32 l = 0; l < out.limbs.size(); ++l)
        for (u32 i = 0; i < n; ++i) {
          watch::point();
          const ChaChaBlock block = chacha20_block(state, out.limbs[l] * (n / 4) + i / 4);
          u128 x = 0;
          for (u32 word = 0; word < 4; ++word)
            x |= static_cast<u128>(block.word[4 * (i % 4) + word]) << (32 * word);
          out.limb(b, c, l)[i] = static_cast<u32>(x % prime(out.limbs, l));
        }
    }
}

void RefPolyKernels::do_sample_ternary(Stream&, View out, const random::Seed& seed,
                                       random::Nonce nonce) {
  fill_small(ring(), out, seed, nonce, ternary_coefficient);
}

void RefPolyKernels::do_sample_error(Stream&, View out, const random::Seed& seed,
                                     random::Nonce nonce) {
  fill_small(ring(), out, seed, nonce, error_coefficient);
}

}  // namespace crenel::backend::ref
