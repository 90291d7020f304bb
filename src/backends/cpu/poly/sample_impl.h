// ChaCha20, one block a lane. Included by sample_<isa>.cpp after a vec_*.h.
#pragma once

#include "backends/cpu/poly/modular_impl.h"

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

inline void quarter_round(V& a, V& b, V& c, V& d) {
  a = Vec::add(a, b), d = Vec::rotate_left<16>(Vec::bit_xor(d, a));
  c = Vec::add(c, d), b = Vec::rotate_left<12>(Vec::bit_xor(b, c));
  a = Vec::add(a, b), d = Vec::rotate_left<8>(Vec::bit_xor(d, a));
  c = Vec::add(c, d), b = Vec::rotate_left<7>(Vec::bit_xor(b, c));
}

// Word i of block `first` + lane in w[i].
inline void chacha_blocks(V w[16], const u32* state, u32 first) {
  const V counter = Vec::add(Vec::set1(first), Vec::lane_numbers());
  for (int i = 0; i < 16; ++i) w[i] = i == 12 ? counter : Vec::set1(state[i]);
  for (int round = 0; round < 10; ++round) {
    quarter_round(w[0], w[4], w[8], w[12]);
    quarter_round(w[1], w[5], w[9], w[13]);
    quarter_round(w[2], w[6], w[10], w[14]);
    quarter_round(w[3], w[7], w[11], w[15]);
    quarter_round(w[0], w[5], w[10], w[15]);
    quarter_round(w[1], w[6], w[11], w[12]);
    quarter_round(w[2], w[7], w[8], w[13]);
    quarter_round(w[3], w[4], w[9], w[14]);
  }
  for (int i = 0; i < 16; ++i) w[i] = Vec::add(w[i], i == 12 ? counter : Vec::set1(state[i]));
}

// Lane-major copy of `rows` vectors: out[lane * rows + row]; only the lanes below `lanes`.
template <int rows>
inline void store_lane_major(u32* out, const V* w, u64 lanes) {
  u32 buffer[rows][Vec::kLanes];
  for (int i = 0; i < rows; ++i) Vec::store(buffer[i], w[i]);
  for (u64 lane = 0; lane < lanes; ++lane)
    for (int i = 0; i < rows; ++i) out[lane * rows + i] = buffer[i][lane];
  // the keystream may drive secrets: leave none of it on the stack
  for (int i = 0; i < rows; ++i) Vec::store(buffer[i], Vec::zero());
  asm volatile("" : : "r"(buffer) : "memory");
}

inline void keystream_row(u32* out, const u32* state, u32 first, u64 blocks) {
  for (u64 b = 0; b < blocks; b += Vec::kLanes) {
    V w[16];
    chacha_blocks(w, state, first + static_cast<u32>(b));
    store_lane_major<16>(out + 16 * b, w, blocks - b < Vec::kLanes ? blocks - b : Vec::kLanes);
  }
}

inline void uniform_row(u32* out, const u32* state, u32 first, u64 blocks, const Prime& p) {
  const V q = Vec::set1(p.q);
  const VShoup r3 = broadcast(p.r3), r2 = broadcast(p.r2), r = broadcast(p.r),
               one = broadcast(p.one);
  for (u64 b = 0; b < blocks; b += Vec::kLanes) {
    V w[16], residue[4];
    chacha_blocks(w, state, first + static_cast<u32>(b));
    for (int k = 0; k < 4; ++k) {
      const V high = add_mod(mul_shoup(w[4 * k + 3], r3, q), mul_shoup(w[4 * k + 2], r2, q), q);
      const V low = add_mod(mul_shoup(w[4 * k + 1], r, q), mul_shoup(w[4 * k], one, q), q);
      residue[k] = add_mod(high, low, q);
    }
    store_lane_major<4>(out + 4 * b, residue, blocks - b < Vec::kLanes ? blocks - b : Vec::kLanes);
  }
}

inline constexpr SampleTable kSample = {uniform_row, keystream_row};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
