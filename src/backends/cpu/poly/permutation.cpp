#include "backends/cpu/poly/permutation.h"

namespace crenel::backend::cpu {
namespace {

// Reversal of the low `bits` bits, 0 <= bits <= 31, without a loop over bits.
u32 reverse(u32 x, u32 bits) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
  x = x >> 16 | x << 16;
  return bits == 0 ? 0 : x >> (32 - bits);
}

}  // namespace

CpuPolyKernels::Permutation::Permutation(Stream& stream, u64 element, u32 log_n, u32 lanes,
                                         bool inverse) {
  u32 log_lanes = 0;
  while (1u << log_lanes < lanes) ++log_lanes;
  const u32 bits = log_n - log_lanes, blocks = 1u << bits;
  storage = stream.allocate(u64(blocks) * (sizeof(u32) + sizeof(u8)));
  source = storage.as<u32>();
  shift = reinterpret_cast<u8*>(source + blocks);
  const u32 e = static_cast<u32>(element), n_mask = (1u << log_n) - 1;
  for (u32 block = 0; block < blocks; ++block) {
    const u32 k = (e * reverse(block, bits) + (e - 1) / 2) & n_mask;
    const u32 from = reverse(k & (blocks - 1), bits);
    source[inverse ? from : block] = inverse ? block : from;
    shift[inverse ? from : block] = static_cast<u8>(k >> bits);
  }
  for (u32 top = 0; top < lanes; ++top)
    for (u32 lane = 0; lane < lanes; ++lane)
      pattern[top][lane] = reverse((top + e * reverse(lane, log_lanes)) & (lanes - 1), log_lanes);
}

}  // namespace crenel::backend::cpu
