// Base conversion with exact signed accumulation.
//
// With centred sources |y_j| < d_j / 2 and centred Montgomery constants |M_ij| < p_i / 2, twelve
// products of 30- and 31-bit primes stay below 2^63: no reduction in between. The host checks the
// bound of every table; where it fails FoldOften reduces before every four sources. A rounded
// quotient is one more sum of the sources, and starts the sum of every destination.
#pragma once

#include "backends/cuda/poly/device/conversion.cuh"
#include "backends/cuda/poly/tuning/base_convert.h"

namespace crenel::backend::cuda {

struct ConvertArgs {
  const PrimeConstants* primes;
  const ConversionTable* tables;  ///< one a digit
  const i32* matrices;
  const u32* source_scales;
  Poly<const i32> in;
  Poly<u32> out;
  u32 log_n;
  u32 digits;      ///< tables; output component d belongs to table d when there are several
  u32 outputs;     ///< destinations of a block
  u32 first_limb;  ///< only output limbs [first_limb, last_limb), written from position 0 on
  u32 last_limb;
  u32 components;  ///< of the input (1 when there are several digits)
};

/// What the inner loop needs of a destination limb.
struct __align__(16) Destination {
  u32 q, q_inv;
  i32 r_centred;
  u32 position;
};

// The values of one source limb: centred already, or (Scaled) canonical and still to be multiplied
// by the source constant.
template <bool Scaled>
__device__ __forceinline__ void load_source(i32 (&y)[kConvertValues], const ConvertArgs& args,
                                            const ConversionTable& table, const i32* limb, u32 j) {
  const int2 v = *reinterpret_cast<const int2*>(limb);
  y[0] = v.x, y[1] = v.y;
  if constexpr (Scaled) {
    const PrimeConstants& m = args.primes[table.source_prime.at[j]];
    const u32 s = args.source_scales[table.scale + j];
#pragma unroll
    for (i32& value : y) value = centre(mont_mul(static_cast<u32>(value), s, m.q, m.q_inv), m.q);
  }
}

/// Grid: x tiles of kConvertValues * kConvertThreads coefficients, y (batch * components +
/// component) * digits + digit, z groups of args.outputs destinations. Sources = 0: any number,
/// read again for every group of kConvertTogether destinations.
/// Without Rounded every table keeps its quotient.
template <u32 Sources, bool Scaled, bool FoldOften, bool Rounded>
__global__ void __launch_bounds__(kConvertThreads, kConvertBlocksPerSm<Sources>)
    base_convert(const __grid_constant__ ConvertArgs args) {
  begin_kernel();
  const u32 digit = blockIdx.y % args.digits, poly = blockIdx.y / args.digits;
  const u32 b = poly / args.components, c = poly % args.components;
  const ConversionTable& table = args.tables[digit];
  const u32 begin = table.destinations_below(args.first_limb) + blockIdx.z * args.outputs;
  const u32 end = min(begin + args.outputs, table.destinations_below(args.last_limb));
  if (begin >= end) return;
  const u32 padded = table.padded, sources = table.sources;
  const i32* matrices = args.matrices + table.matrix;
  constexpr u32 kHeld = Sources == 0 ? 1 : Sources;
  // [group][source][kConvertTogether], zero beyond the sources and destinations.
  __shared__ __align__(16) i32 matrix[kConvertMaxOutputs * kHeld];
  __shared__ Destination destination[kConvertMaxOutputs];
  // Of a rounded quotient, 0 where it is kept.
  __shared__ i32 reciprocal[kHeld];
  __shared__ __align__(16) i32 multiple[kConvertMaxOutputs];
  const u32 shift = Rounded ? table.shift : 0;
  const i32* quotients = args.matrices + table.quotient;
  if constexpr (Sources != 0) {
    for (u32 k = threadIdx.x; k < args.outputs * Sources; k += kConvertThreads) {
      const u32 j = k / kConvertTogether % Sources;
      const u32 i = k / (kConvertTogether * Sources) * kConvertTogether + k % kConvertTogether;
      matrix[k] = j < padded && begin + i < end ? matrices[(begin + i) * padded + j] : 0;
    }
    if (shift != 0 && threadIdx.x < Sources)
      reciprocal[threadIdx.x] = threadIdx.x < padded ? quotients[threadIdx.x] : 0;
  }
  if (threadIdx.x < args.outputs) {
    const u32 i = min(begin + threadIdx.x, end - 1);
    const PrimeConstants& m = args.primes[table.prime.at[i]];
    destination[threadIdx.x] = {m.q, m.q_inv, m.r_centred, table.position.at[i] - args.first_limb};
    multiple[threadIdx.x] = shift != 0 ? quotients[padded + i] : 0;
  }
  __syncthreads();
  const u32 at = kConvertValues * (blockIdx.x * kConvertThreads + threadIdx.x);
  if (at >= (1u << args.log_n)) return;
  const i32* from = args.in.limb(b, c, table.first, args.log_n) + at;
  i32 y[kHeld][kConvertValues];
  if constexpr (Sources != 0) {
#pragma unroll
    for (u32 j = 0; j < Sources; ++j) {
      if (j < sources)
        load_source<Scaled>(y[j], args, table, from + (u64(j) << args.log_n), j);
      else
        y[j][0] = y[j][1] = 0;
    }
  }
  i32 quotient[kConvertValues] = {};
  if (shift != 0) {
    const i64 half = i64(1) << (shift - 1);
    i64 sum[kConvertValues] = {half, half};
    if constexpr (Sources != 0) {
#pragma unroll
      for (u32 j = 0; j < Sources; ++j) {
        const i32 k = reciprocal[j];
        sum[0] = mad_wide(y[j][0], k, sum[0]);
        sum[1] = mad_wide(y[j][1], k, sum[1]);
      }
    } else {
      for (u32 j = 0; j < sources; ++j) {
        load_source<Scaled>(y[0], args, table, from + (u64(j) << args.log_n), j);
        sum[0] = mad_wide(y[0][0], quotients[j], sum[0]);
        sum[1] = mad_wide(y[0][1], quotients[j], sum[1]);
      }
    }
    quotient[0] = static_cast<i32>(sum[0] >> shift);
    quotient[1] = static_cast<i32>(sum[1] >> shift);
  }
  u32* to = args.out.limb(b, args.digits > 1 ? digit : c, 0, args.log_n) + at;
  for (u32 group = 0; begin + group < end; group += kConvertTogether) {
    i64 acc[kConvertTogether][kConvertValues] = {};
    if (shift != 0) {
      const int4 k = *reinterpret_cast<const int4*>(multiple + group);
#pragma unroll
      for (u32 u = 0; u < kConvertValues; ++u) {
        acc[0][u] = mad_wide(quotient[u], k.x, acc[0][u]);
        acc[1][u] = mad_wide(quotient[u], k.y, acc[1][u]);
        acc[2][u] = mad_wide(quotient[u], k.z, acc[2][u]);
        acc[3][u] = mad_wide(quotient[u], k.w, acc[3][u]);
      }
    }
    if constexpr (Sources != 0) {
      const i32* row = matrix + group * Sources;
#pragma unroll
      for (u32 j = 0; j < Sources; ++j) {
        if (FoldOften && j % 4 == 0 && j != 0) {
#pragma unroll
          for (u32 t = 0; t < kConvertTogether; ++t)
#pragma unroll
            for (i64& sum : acc[t]) sum = fold_signed(sum, destination[group + t].r_centred);
        }
        const int4 k = *reinterpret_cast<const int4*>(row + j * kConvertTogether);
#pragma unroll
        for (u32 u = 0; u < kConvertValues; ++u) {
          acc[0][u] = mad_wide(y[j][u], k.x, acc[0][u]);
          acc[1][u] = mad_wide(y[j][u], k.y, acc[1][u]);
          acc[2][u] = mad_wide(y[j][u], k.z, acc[2][u]);
          acc[3][u] = mad_wide(y[j][u], k.w, acc[3][u]);
        }
      }
    } else {
      for (u32 j = 0; j < sources; ++j) {
        load_source<Scaled>(y[0], args, table, from + (u64(j) << args.log_n), j);
#pragma unroll
        for (u32 t = 0; t < kConvertTogether; ++t) {
          const i32 k = matrices[min(begin + group + t, end - 1) * padded + j];
#pragma unroll
          for (u32 u = 0; u < kConvertValues; ++u) {
            if (j % 4 == 0) acc[t][u] = fold_signed(acc[t][u], destination[group + t].r_centred);
            acc[t][u] = mad_wide(y[0][u], k, acc[t][u]);
          }
        }
      }
    }
#pragma unroll
    for (u32 t = 0; t < kConvertTogether; ++t) {
      if (begin + group + t >= end) break;
      const Destination m = destination[group + t];
      uint2 v;
      v.x = mont_reduce_signed(acc[t][0], m.r_centred, m.q, m.q_inv);
      v.y = mont_reduce_signed(acc[t][1], m.r_centred, m.q, m.q_inv);
      *reinterpret_cast<uint2*>(to + (u64(m.position) << args.log_n)) = v;
    }
  }
}

}  // namespace crenel::backend::cuda
