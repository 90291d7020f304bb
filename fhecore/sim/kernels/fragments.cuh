// Fragments of m16n16k16 on 32-bit words and two ways to multiply them:
//
//  * StubUnit: a place holder with the registers of the proposed instruction. Two chained
//    IMMA.16832 stand for one FHEC.16816 (8 registers of A, 4 of B, 4 of C and D), NANOSLEEP for
//    FHEC.SETC. The values are meaningless; control flow, addresses and register allocation are
//    those of the real thing. fhecore/sim/rewrite.py makes the proposed instructions of the marks.
//  * TensorUnit: the exact product modulo q on the int8 tensor cores of today, by byte planes.
//
// Register r of a fragment holds, lane = 4 g + t:
//   A        row g + 8 ((r >> 1) & 1), k = 2 t + (r & 1) + 8 (r >> 2)
//   B        k = 2 t + (r & 1) + 8 (r >> 1), column g
//   C and D  row g + 8 (r >> 1), column 2 t + (r & 1)
#pragma once

#include <cstdint>

namespace crenel::fhecore::sim {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct Lane {
  u32 g = (threadIdx.x % 32) >> 2, t = threadIdx.x & 3;
};
/// The part of k that the register decides: k = 2 t + k_step(i). Kept apart, so that addresses are
/// one base a thread and constants.
__device__ constexpr int k_step(int i) { return (i & 1) + 8 * (i >> 1); }

/// What a kernel needs of a prime. -q^-1 mod 2^32 as q_neg_inv; r2 = 2^64 mod q.
struct Prime {
  u32 q, q_neg_inv, r2, pad;
};

__device__ __forceinline__ u32 reduce_once(u32 x, u32 q) { return min(x, x - q); }
// x 2^-32 mod q for x < 2^32 q, q < 2^31.
__device__ __forceinline__ u32 montgomery(u64 x, Prime p) {
  const u32 m = static_cast<u32>(x) * p.q_neg_inv;
  const u32 high = static_cast<u32>((x + u64(m) * p.q) >> 32);
  return reduce_once(high, p.q);
}
__device__ __forceinline__ u32 times(u32 x, u32 factor, Prime p) {
  return montgomery(u64(x) * factor, p);
}

// mma m16n8k32, bytes: 4 registers of A, 2 of B.
__device__ __forceinline__ void mma_k32(u32 (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                                        u32 b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

struct StubUnit {
  static constexpr int kBlocks = 4;  ///< a multiprocessor

  __device__ static void set_constants(u32 fragment) {
    asm volatile("nanosleep.u32 %0;" : : "r"(fragment));
  }
  /// d = a b + d, m16n8k16
  __device__ static void multiply(u32 (&d)[4], const u32 (&a)[8], const u32 (&b)[4], Prime) {
    mma_k32(d, a[0], a[1], a[2], a[3], b[0], b[1]);
    mma_k32(d, a[4], a[5], a[6], a[7], b[2], b[3]);
  }
  /// d = matrix x, matrix prepared: left operand
  __device__ static void left(u32 (&d)[4], const u32* matrix, const u32 (&x)[4], Prime p) {
    d[0] = d[1] = d[2] = d[3] = 0;
    u32 a[8];
#pragma unroll
    for (u32 i = 0; i < 8; ++i) a[i] = matrix[i];
    multiply(d, a, x, p);
  }
  /// d = x matrix, matrix prepared: right operand
  __device__ static void right(u32 (&d)[4], const u32 (&x)[8], const u32* matrix, Prime p) {
    d[0] = d[1] = d[2] = d[3] = 0;
    u32 b[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) b[i] = matrix[i];
    multiply(d, x, b, p);
  }
};

struct TensorUnit {
  // Four byte planes of 16 rows, two registers each; byte b of a register has k = 2 t + k_step(b).
  static constexpr int kBlocks = 2;

  __device__ static void set_constants(u32) {}
  __device__ static void mma_k16(u32 (&d)[4], u32 a0, u32 a1, u32 b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, "
        "%1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a0), "r"(a1), "r"(b));
  }
  // Plane p: byte p of each of four words.
  __device__ static void split(u32 (&planes)[4], const u32 (&x)[4]) {
    const u32 low = __byte_perm(x[0], x[1], 0x5140), low2 = __byte_perm(x[2], x[3], 0x5140);
    const u32 high = __byte_perm(x[0], x[1], 0x7362), high2 = __byte_perm(x[2], x[3], 0x7362);
    planes[0] = __byte_perm(low, low2, 0x5410);
    planes[1] = __byte_perm(low, low2, 0x7632);
    planes[2] = __byte_perm(high, high2, 0x5410);
    planes[3] = __byte_perm(high, high2, 0x7632);
  }
  // sum[s]: products of planes p + p' = s. Below 4 * 16 * 255^2 < 2^22. Two reductions, so matrices
  // carry 2^64.
  __device__ static void merge(u32 (&d)[4], const u32 (&sum)[7][4], Prime p) {
#pragma unroll
    for (u32 e = 0; e < 4; ++e) {
      const u64 low =
          sum[0][e] + (u64(sum[1][e]) << 8) + (u64(sum[2][e]) << 16) + (u64(sum[3][e]) << 24);
      const u64 high = sum[4][e] + (u64(sum[5][e]) << 8) + (u64(sum[6][e]) << 16);
      d[e] = montgomery(montgomery(low, p) + high, p);
    }
  }
  __device__ static void left(u32 (&d)[4], const u32* matrix, const u32 (&x)[4], Prime p) {
    u32 planes[4], sum[7][4] = {};
    split(planes, x);
#pragma unroll
    for (u32 a = 0; a < 4; ++a)
#pragma unroll
      for (u32 b = 0; b < 4; ++b) mma_k16(sum[a + b], matrix[2 * a], matrix[2 * a + 1], planes[b]);
    merge(d, sum, p);
  }
  __device__ static void right(u32 (&d)[4], const u32 (&x)[8], const u32* matrix, Prime p) {
    u32 upper[4], lower[4], sum[7][4] = {};
    split(upper, {x[0], x[1], x[4], x[5]});
    split(lower, {x[2], x[3], x[6], x[7]});
#pragma unroll
    for (u32 a = 0; a < 4; ++a)
#pragma unroll
      for (u32 b = 0; b < 4; ++b) mma_k16(sum[a + b], upper[a], lower[a], matrix[b]);
    merge(d, sum, p);
  }
};

}  // namespace crenel::fhecore::sim
