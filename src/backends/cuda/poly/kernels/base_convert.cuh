// Base conversion on the matrix units.
//
// out_i = sum_j z_j m_ij + offset_i mod p_i, where z_j, a word, is the centred source plus half.
// The bytes of z_j are exact small integers: with m_ijb = m_ij 2^8b mod p_i,
//   sum_j z_j m_ij = sum_(j,b) byte_b(z_j) m_ijb
//                  = sum_c 2^8c sum_(j,b) byte_b(z_j) byte_c(m_ijb),
// and the inner sums, of products of bytes, are what mma.sync computes in 32 bits. So a
// destination costs four sums of a matrix unit in place of a wide product a source, and a word of a
// source is an operand as it lies in memory. Four sums make a number below 2^49, which one
// reduction brings to [0, p_i): the same bits as any other way, since all of it is exact. A rounded
// quotient, a small integer, is one more source.
#pragma once

#include "backends/cuda/poly/device/folded.cuh"
#include "backends/cuda/poly/tuning/base_convert.h"

namespace crenel::backend::cuda {

struct ConvertArgs {
  const PrimeConstants* primes;
  const ConversionTable* tables;  ///< one a digit
  const uint4* matrices;
  const ConversionTarget* targets;
  const u32* source_scales;
  const u32* reciprocals;
  Poly<const u32> in;
  Poly<u32> out;
  u32 log_n;
  u32 digits;      ///< tables; output component d belongs to table d when there are several
  u32 outputs;     ///< destinations of a block
  u32 first_limb;  ///< only output limbs [first_limb, last_limb), written from position 0 on
  u32 last_limb;
  u32 components;  ///< of the input (1 when there are several digits)
};

/// Four sums of eight destinations for eight coefficients, as a warp holds them: this thread's are
/// those of destination lane / 4 and coefficients 2 (lane % 4) and one more.
struct ByteSums {
  u32 low[4];        ///< c = 0: coefficient 0, 1; c = 1: likewise
  u32 high[4] = {};  ///< c = 2, 3

  /// What the sums begin with: 0, or a residue below 2^31 when they have 20 sources at most.
  __device__ __forceinline__ explicit ByteSums(u32 start = 0) : low{start, start, 0, 0} {}

  /// Likewise, as four words in shared memory.
  __device__ __forceinline__ explicit ByteSums(uint4 v) : low{v.x, v.y, v.z, v.w} {}

  /// Adds eight sources: words z0 of source lane % 4 and z1 of the fourth one after it, both of
  /// coefficient lane / 4; of their entries for destination lane / 4 low has bytes 0, 1, high 2, 3.
  __device__ __forceinline__ void add(u32 z0, u32 z1, uint4 l, uint4 h) {
    multiply_bytes(low, low, l.x, l.y, l.z, l.w, z0, z1);
    multiply_bytes(high, high, h.x, h.y, h.z, h.w, z0, z1);
  }
  /// The same for four.
  __device__ __forceinline__ void add(u32 z, uint2 l, uint2 h) {
    multiply_bytes(low, low, l.x, l.y, z);
    multiply_bytes(high, high, h.x, h.y, z);
  }
  /// Of 64 sources at most, or of 20 and a residue: below 2^48 + 2^32.
  __device__ __forceinline__ u64 sum(u32 coefficient) const {
    const u32 l = low[coefficient] + (low[2 + coefficient] << 8);
    const u32 h = high[coefficient] + (high[2 + coefficient] << 8);
    return mad_wide(h, 1u << 16, u64(l));
  }
  /// The same, reduced to [0, 2q).
  __device__ __forceinline__ u32 reduce(u32 coefficient, u32 q, u32 q_inv) const {
    const u32 l = low[coefficient] + (low[2 + coefficient] << 8);
    const u32 h = high[coefficient] + (high[2 + coefficient] << 8);
    u32 lo, hi;
    add_halves(l, h, q, lo, hi);
    return hi - mul_hi_wide(lo * q_inv, q);
  }
  /// Of a folded conversion (device/folded.cuh), reduced to [0, 2q).
  __device__ __forceinline__ u32 reduce(u32 coefficient, float scale, float shift, u32 q,
                                        u32 exponent) const {
    return reduce_estimated(low[coefficient] + (low[2 + coefficient] << 8),
                            high[coefficient] + (high[2 + coefficient] << 8), scale, shift, q,
                            exponent);
  }
};

__device__ __forceinline__ void load_entry(uint2& low, uint2& high, const uint4* entry) {
  const uint2* halves = reinterpret_cast<const uint2*>(entry);
  low = __ldg(halves), high = __ldg(halves + 1);
}

__device__ __forceinline__ uint4 pair_of(uint2 a, uint2 b) {
  return make_uint4(a.x, a.y, b.x, b.y);
}

/// First of the four coefficients that column n, 0 to 7, has in a strip of 32: those of
/// even columns lie before those of odd ones, so that what four threads store is one run.
__device__ __forceinline__ u32 first_of_column(u32 n) { return 16 * (n % 2) + 4 * (n / 2); }

/// A column's words of source `j`, zero where there are none.
template <bool Scaled>
__device__ __forceinline__ void load_source(u32 (&z)[kConvertRun], const ConvertArgs& args,
                                            const ConversionTable& table, const u32* from, u32 j,
                                            u32 there) {
#pragma unroll
  for (u32 k = 0; k < kConvertRun; k += 4) {
    uint4 v = {};
    if (8 * k < there && j < table.sources) v = load4(from + (u64(j) << args.log_n) + 8 * k);
    z[k] = v.x, z[k + 1] = v.y, z[k + 2] = v.z, z[k + 3] = v.w;
  }
  if constexpr (Scaled) {
    if (j >= table.sources) return;
    const PrimeConstants& m = args.primes[table.source_prime.at[j]];
    const u32 s = args.source_scales[table.scale + j];
#pragma unroll
    for (u32& value : z) value = centre_up(mont_mul(value, s, m.q, m.q_inv), m.q);
  }
}

/// Adds what a thread's source, or its sources, say of the rounded quotient of a column.
template <u32 Run>
__device__ __forceinline__ void add_quotient(i64 (&sum)[Run], const u32 (&z)[Run], u32 reciprocal) {
#pragma unroll
  for (u32 k = 0; k < Run; ++k)
    sum[k] = static_cast<i64>(mad_wide(z[k], reciprocal, static_cast<u64>(sum[k])));
}
/// The biased quotients of a column, from what its four threads have summed.
template <u32 Run, class Table>
__device__ __forceinline__ void quotients(u32 (&u)[Run], const i64 (&sum)[Run],
                                          const Table& table) {
#pragma unroll
  for (u32 k = 0; k < Run; ++k) {
    i64 whole = sum[k] + __shfl_xor_sync(~0u, sum[k], 1);
    whole += __shfl_xor_sync(~0u, whole, 2);
    u[k] = static_cast<u32>((whole + table.rounding) >> table.shift) + kQuotientBias;
  }
}

/// A warp converts strips of 32 coefficients, four a column of a product of matrices: the k-th
/// product has the k-th one of every column. Grid: x tiles of kConvertWarps * kConvertWarpValues
/// coefficients, y (batch * components + component) * digits + digit, z groups of args.outputs
/// destinations. Sources, a multiple of four: held in registers; 0: any number, read again for
/// every eight destinations.
template <u32 Sources, bool Scaled>
__global__ void __launch_bounds__(32 * kConvertWarps, kConvertBlocksPerSm<Sources>)
    base_convert(const __grid_constant__ ConvertArgs args) {
  begin_kernel();
  const u32 digit = blockIdx.y % args.digits, poly = blockIdx.y / args.digits;
  const u32 b = poly / args.components, c = poly % args.components;
  const ConversionTable& table = args.tables[digit];
  const u32 begin = table.destinations_below(args.first_limb) + blockIdx.z * args.outputs;
  const u32 end = min(begin + args.outputs, table.destinations_below(args.last_limb));
  const u32 n = 1u << args.log_n;
  const u32 lane = threadIdx.x % 32, row = lane / 4, quad = lane % 4;
  const u32 at = (blockIdx.x * kConvertWarps + threadIdx.x / 32) * kConvertWarpValues;
  if (begin >= end || at >= n) return;
  // Coefficients from this thread's first one on; of a small ring not all columns have any.
  const u32 first = at + first_of_column(row), there = n > first ? n - first : 0;
  const u32* from = args.in.limb(b, c, table.first, args.log_n) + first;
  constexpr u32 kSteps = Sources / 4, kHeld = Sources == 0 ? 1 : kSteps;
  u32 z[kHeld][kConvertRun];
  if constexpr (Sources != 0) {
#pragma unroll
    for (u32 s = 0; s < kSteps; ++s)
      load_source<Scaled>(z[s], args, table, from, 4 * s + quad, there);
  }
  const u32* reciprocals = args.reciprocals + table.reciprocal + quad;
  u32 rounded[kConvertRun] = {};
  if (table.shift != 0) {
    i64 sum[kConvertRun] = {};
    if constexpr (Sources != 0) {
#pragma unroll
      for (u32 s = 0; s < kSteps; ++s) add_quotient(sum, z[s], reciprocals[4 * s]);
    } else {
      for (u32 j = 0; j < table.padded; j += 4) {
        load_source<Scaled>(z[0], args, table, from, j + quad, there);
        add_quotient(sum, z[0], reciprocals[j]);
      }
    }
    quotients(rounded, sum, table);
    if constexpr (Sources != 0) {
#pragma unroll
      for (u32 s = 0; s < kSteps; ++s)
#pragma unroll
        for (u32 k = 0; k < kConvertRun; ++k)
          if (4 * s + quad == table.sources) z[s][k] = rounded[k];
    }
  }
  u32* const out = args.out.limb(b, args.digits > 1 ? digit : c, 0, args.log_n) + at;
  for (u32 group = begin; group < end; group += 8) {
    const u32 i = min(group + row, end - 1);
    const ConversionTarget target = args.targets[table.target + i];
    const uint4* entries = args.matrices + table.matrix + u64(i) * table.padded + quad;
    // A thread's results are those of columns 2 quad and 2 quad + 1.
    u32* to = out + (u64(target.position - args.first_limb) << args.log_n);
    const auto reduce = [&](u64 sum) { return mont_reduce(sum, target.q, target.q_inv); };
    const auto store = [&](u32 column, u32 k, const u32(&v)[4]) {
      const u32 place = 8 * k + first_of_column(2 * quad + column);
      if (group + row < end && at + place < n)
        store4(to + place, make_uint4(v[0], v[1], v[2], v[3]));
    };
    if constexpr (Sources != 0) {
      uint2 low[kHeld], high[kHeld];  // apart, as the products take them
#pragma unroll
      for (u32 s = 0; s < kSteps; ++s) load_entry(low[s], high[s], entries + 4 * s);
#pragma unroll
      for (u32 k = 0; k < kConvertRun; k += 4) {
        u32 v[2][4];
#pragma unroll
        for (u32 u = 0; u < 4; ++u) {
          ByteSums sums(target.offset);
#pragma unroll
          for (u32 s = 0; s + 1 < kSteps; s += 2)
            sums.add(z[s][k + u], z[s + 1][k + u], pair_of(low[s], low[s + 1]),
                     pair_of(high[s], high[s + 1]));
          if constexpr (kSteps % 2 == 1)
            sums.add(z[kSteps - 1][k + u], low[kSteps - 1], high[kSteps - 1]);
          v[0][u] = reduce(sums.sum(0));
          v[1][u] = reduce(sums.sum(1));
        }
        store(0, k, v[0]);
        store(1, k, v[1]);
      }
    } else {
      u64 total[2][kConvertRun] = {};
      for (u32 begun = 0; begun < table.padded; begun += kConvertExact) {
        ByteSums sums[kConvertRun];
        const u32 last = min(begun + kConvertExact, table.padded);
        for (u32 j = begun; j < last; j += 4) {
          load_source<Scaled>(z[0], args, table, from, j + quad, there);
          if (table.shift != 0 && j + quad == table.sources) {
#pragma unroll
            for (u32 k = 0; k < kConvertRun; ++k) z[0][k] = rounded[k];
          }
          uint2 low, high;
          load_entry(low, high, entries + j);
#pragma unroll
          for (u32 u = 0; u < kConvertRun; ++u) sums[u].add(z[0][u], low, high);
        }
#pragma unroll
        for (u32 u = 0; u < kConvertRun; ++u)
          total[0][u] += sums[u].sum(0), total[1][u] += sums[u].sum(1);
      }
#pragma unroll
      for (u32 k = 0; k < kConvertRun; k += 4)
#pragma unroll
        for (u32 column = 0; column < 2; ++column) {
          u32 v[4];
#pragma unroll
          for (u32 u = 0; u < 4; ++u) v[u] = reduce(total[column][k + u] + target.offset);
          store(column, k, v);
        }
    }
  }
}

}  // namespace crenel::backend::cuda
