// Base conversion with exact signed accumulation.
//
// With centred sources |y_j| < d_j / 2 and centred Montgomery constants |M_ij| < p_i / 2, twelve
// products of 30- and 31-bit primes stay below 2^63: no reduction in between. The host checks the
// bound of every table; where it fails FoldOften reduces before every four products.
#pragma once

#include "backends/cuda/device/views.cuh"
#include "backends/cuda/tuning/base_convert.h"

namespace crenel::backend::cuda {

/// One conversion: a run of source limbs to a list of destination limbs.
struct ConversionTable {
  u32 matrix;  ///< offset of [destination][padded sources], centred, times R
  u32 scale;   ///< offset of the source constants, times R; read only when the kernel scales
  u32 first;   ///< position of the first source limb in the input
  u32 sources;
  u32 padded;  ///< row length of the matrix
  u32 destinations;
  u32 output_limbs;
  LimbBytes source_prime;
  LimbBytes prime;     ///< of each destination
  LimbBytes position;  ///< of each destination in the output component, ascending
  LimbBytes before;    ///< destinations at positions below each output limb
};

struct ConvertArgs {
  const PrimeConstants* primes;
  const ConversionTable* tables;  ///< one a digit
  const i32* matrices;
  const u32* source_scales;
  Poly<const i32> in;
  Poly<u32> out;
  u32 log_n;
  u32 digits;      ///< tables; output component d belongs to table d when there are several
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

// The four values of one source limb: centred already, or (Scaled) canonical and still to be
// multiplied by the source constant.
template <bool Scaled>
__device__ __forceinline__ void load_source(i32 (&y)[4], const ConvertArgs& args,
                                            const ConversionTable& table, const i32* limb, u32 j) {
  const int4 v = *reinterpret_cast<const int4*>(limb);
  y[0] = v.x, y[1] = v.y, y[2] = v.z, y[3] = v.w;
  if constexpr (Scaled) {
    const PrimeConstants& m = args.primes[table.source_prime.at[j]];
    const u32 s = args.source_scales[table.scale + j];
#pragma unroll
    for (u32 u = 0; u < 4; ++u)
      y[u] = centre(mont_mul(static_cast<u32>(y[u]), s, m.q, m.q_inv), m.q);
  }
}

// Destinations at positions below `limb` of the output.
__device__ __forceinline__ u32 first_destination(const ConversionTable& table, u32 limb) {
  return limb >= table.output_limbs ? table.destinations : table.before.at[limb];
}

/// Grid: x tiles of 4 * kConvertThreads coefficients, y groups of kConvertOutputs destinations,
/// z (batch * components + component) * digits + digit. Sources = 0: any number, read again for
/// every destination.
template <u32 Sources, bool Scaled, bool FoldOften>
__global__ void __launch_bounds__(kConvertThreads)
    base_convert(const __grid_constant__ ConvertArgs args) {
  const u32 digit = blockIdx.z % args.digits, poly = blockIdx.z / args.digits;
  const u32 b = poly / args.components, c = poly % args.components;
  const ConversionTable& table = args.tables[digit];
  const u32 begin = first_destination(table, args.first_limb) + blockIdx.y * kConvertOutputs;
  const u32 end = min(begin + kConvertOutputs, first_destination(table, args.last_limb));
  const u32 padded = table.padded, sources = table.sources;
  const i32* matrices = args.matrices + table.matrix;
  constexpr u32 kHeld = Sources == 0 ? 1 : Sources;
  __shared__ __align__(16) i32 matrix[kConvertOutputs * kHeld];
  __shared__ Destination destination[kConvertOutputs];
  if constexpr (Sources != 0) {
    for (u32 k = threadIdx.x; begin < end && k < (end - begin) * Sources; k += kConvertThreads) {
      const u32 j = k % Sources;
      matrix[k] = j < padded ? matrices[(begin + k / Sources) * padded + j] : 0;
    }
  }
  if (begin + threadIdx.x < end) {
    const PrimeConstants& m = args.primes[table.prime.at[begin + threadIdx.x]];
    destination[threadIdx.x] = {m.q, m.q_inv, m.r_centred,
                                table.position.at[begin + threadIdx.x] - args.first_limb};
  }
  __syncthreads();
  const u32 at = 4 * (blockIdx.x * kConvertThreads + threadIdx.x);
  if (at >= (1u << args.log_n)) return;
  const i32* from = args.in.limb(b, c, table.first, args.log_n) + at;
  i32 y[kHeld][4];
  if constexpr (Sources != 0) {
#pragma unroll
    for (u32 j = 0; j < Sources; ++j) {
      if (j < sources)
        load_source<Scaled>(y[j], args, table, from + (u64(j) << args.log_n), j);
      else
        y[j][0] = y[j][1] = y[j][2] = y[j][3] = 0;
    }
  }
  const u32 out_component = args.digits > 1 ? digit : c;
  u32* to = args.out.limb(b, out_component, 0, args.log_n) + at;
  for (u32 i = begin; i < end; ++i) {
    const Destination m = destination[i - begin];
    const u32 q = m.q, q_inv = m.q_inv;
    const i32 r = m.r_centred;
    i64 acc[4] = {0, 0, 0, 0};
    if constexpr (Sources != 0) {
      const i32* row = matrix + (i - begin) * Sources;
#pragma unroll
      for (u32 j = 0; j < Sources; j += 4) {
        const int4 k = *reinterpret_cast<const int4*>(row + j);
        if constexpr (FoldOften) {
#pragma unroll
          for (u32 u = 0; u < 4; ++u) acc[u] = fold_signed(acc[u], r);
        }
#pragma unroll
        for (u32 u = 0; u < 4; ++u) {
          acc[u] = mad_wide(y[j][u], k.x, acc[u]);
          acc[u] = mad_wide(y[j + 1][u], k.y, acc[u]);
          acc[u] = mad_wide(y[j + 2][u], k.z, acc[u]);
          acc[u] = mad_wide(y[j + 3][u], k.w, acc[u]);
        }
      }
    } else {
      for (u32 j = 0; j < sources; ++j) {
        load_source<Scaled>(y[0], args, table, from + (u64(j) << args.log_n), j);
        const i32 k = matrices[i * padded + j];
#pragma unroll
        for (u32 u = 0; u < 4; ++u) {
          if (j % 4 == 0) acc[u] = fold_signed(acc[u], r);
          acc[u] = mad_wide(y[0][u], k, acc[u]);
        }
      }
    }
    uint4 v;
    v.x = mont_reduce_signed(acc[0], r, q, q_inv);
    v.y = mont_reduce_signed(acc[1], r, q, q_inv);
    v.z = mont_reduce_signed(acc[2], r, q, q_inv);
    v.w = mont_reduce_signed(acc[3], r, q, q_inv);
    store4(to + (u64(m.position) << args.log_n), v);
  }
}

}  // namespace crenel::backend::cuda
