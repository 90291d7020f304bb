// The row pass with what the library fuses with it
// (src/backends/cuda/poly/kernels/key_switch_rows.cuh, row_divide.cuh), and base conversion, on
// m16n8k16 products. The element-wise parts are the library's: Montgomery products and sums of
// canonical words.
#pragma once

#include "transform.cuh"

namespace crenel::fhecore::sim {

__device__ __forceinline__ u32 add_mod(u32 a, u32 b, u32 q) { return reduce_once(a + b, q); }
__device__ __forceinline__ uint2 load2(const u32* p) {
  return __ldg(reinterpret_cast<const uint2*>(p));
}

struct KeyArgs {
  TransformArgs rows;  ///< in: [digit][limb][N]; polys: digits
  const u32* key;      ///< [digit][2][limb][N]
  const u32* addend;   ///< [2][limb][N] or null
  const u32* own;      ///< [limb][N]: the digit that a limb belongs to, in evaluation form
  u32 own_limbs_each;  ///< limb l of the chain belongs to digit l / own_limbs_each
  u32 chain_limbs;     ///< limbs from here on are special ones: no digit has them
};

inline constexpr u32 kNoDigit = ~0u;
/// The digit that has this limb already; kNoDigit for a special limb, also where the last digit is
/// short.
__host__ __device__ constexpr u32 own_digit_of(u32 limb, u32 limbs_each, u32 chain_limbs) {
  return limb < chain_limbs ? limb / limbs_each : kNoDigit;
}
static_assert(own_digit_of(46, 12, 47) == 3 && own_digit_of(47, 12, 47) == kNoDigit);
static_assert(own_digit_of(22, 12, 23) == 1 && own_digit_of(23, 12, 23) == kNoDigit);

/// out[2][limb][N] = sum over digits of row pass(digit) * key. Grid: x tiles of rows, y 1, z limbs.
template <class Unit>
__global__ void __launch_bounds__(kThreads, 2) key_rows(const __grid_constant__ KeyArgs args) {
  const Lane lane;
  const TransformArgs& r = args.rows;
  const u32 limb = blockIdx.z, row = blockIdx.x * kTileSide + threadIdx.x / 32 * 2;
  const RowTables<Unit> tables(r, limb, lane);
  const Prime p = tables.p;
  const u64 limb_words = u64(1) << kLogN, poly_words = r.limbs * limb_words;
  const u32 own_digit = own_digit_of(limb, args.own_limbs_each, args.chain_limbs);
  const u64 start = limb * limb_words + row * kSide;
#pragma unroll 1
  for (int s = 0; s < 2; ++s) {
    const u64 in_place = start + s * kSide + lane_in(lane),
              out_place = start + s * kSide + lane_out(lane);
    u32 w[2][4], sum[2][2][4] = {};
    load_row(w, r.outer + in_place);
    const u32* from = r.in + in_place;
    const u32* key0 = args.key + out_place;
    for (u32 d = 0; d < r.polys; ++d, from += poly_words, key0 += 2 * poly_words) {
      const u32* key1 = key0 + poly_words;
      uint2 k[2][2][2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          k[0][half][h] = load2(key0 + pair_at(half, h));
          k[1][half][h] = load2(key1 + pair_at(half, h));
        }
      u32 v[2][4];
      if (d == own_digit) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const uint2 x = load2(args.own + out_place + pair_at(half, h));
            v[half][2 * h] = x.x, v[half][2 * h + 1] = x.y;
          }
      } else {
        u32 x[2][4];
        load_row(x, from);
        scale_row(x, w, p);
        tables.transform(v, x);
      }
#pragma unroll
      for (int c = 0; c < 2; ++c)
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            u32(&to)[4] = sum[c][half];
            to[2 * h] = add_mod(to[2 * h], times(v[half][2 * h], k[c][half][h].x, p), p.q);
            to[2 * h + 1] =
                add_mod(to[2 * h + 1], times(v[half][2 * h + 1], k[c][half][h].y, p), p.q);
          }
    }
#pragma unroll
    for (int c = 0; c < 2; ++c)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          store2(r.out + c * poly_words + out_place + pair_at(half, h),
                 times(sum[c][half][2 * h], p.r2, p), times(sum[c][half][2 * h + 1], p.r2, p));
  }
}

struct DivideArgs {
  TransformArgs rows;
  const u32* x;       ///< [poly][limb][N]
  const u32* scales;  ///< [limb]
  const u32* addend;  ///< [poly][limb][N] or null
};

/// out = row pass + x * scale + addend. Grid: x tiles of rows, y polynomials, z limbs.
template <class Unit, bool Addend>
__global__ void __launch_bounds__(kThreads, Unit::kBlocks)
    divide_rows(const __grid_constant__ DivideArgs args) {
  const Lane lane;
  const TransformArgs& r = args.rows;
  const u32 limb = blockIdx.z, row = blockIdx.x * kTileSide + threadIdx.x / 32 * 2;
  const RowTables<Unit> tables(r, limb, lane);
  const Prime p = tables.p;
  const u32 scale = __ldg(args.scales + limb);
  const u64 start = ((u64(blockIdx.y) * r.limbs + limb) << kLogN) + row * kSide;
  const u32* from = r.in + start + lane_in(lane);
  const u32* outer = r.outer + (u64(limb) << kLogN) + row * kSide + lane_in(lane);
  u64 at = start + lane_out(lane);
#pragma unroll 1
  for (int s = 0; s < 2; ++s, from += kSide, outer += kSide, at += kSide) {
    u32 v[2][4], w[2][4], d[2][4];
    uint2 x[2][2], y[2][2];
    load_row(v, from);
    load_row(w, outer);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        x[half][h] = load2(args.x + at + pair_at(half, h));
        if constexpr (Addend) y[half][h] = load2(args.addend + at + pair_at(half, h));
      }
    scale_row(v, w, p);
    tables.transform(d, v);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        u32 a = add_mod(d[half][2 * h], times(x[half][h].x, scale, p), p.q);
        u32 b = add_mod(d[half][2 * h + 1], times(x[half][h].y, scale, p), p.q);
        if constexpr (Addend) a = add_mod(a, y[half][h].x, p.q), b = add_mod(b, y[half][h].y, p.q);
        store2(r.out + at + pair_at(half, h), a, b);
      }
  }
}

struct ConvertArgs {
  const u32* in;         ///< [poly][source][N], scaled
  u32* out;              ///< [poly][destination][N]
  const u32* matrices;   ///< [group of 8 destinations][depth chunk][32 lanes][4]: right operands
  const u32* constants;  ///< [group][32]
  u32 sources, destinations, log_n;
};

// Predicated, never a branch: only the last group of destinations can be partial.
__device__ __forceinline__ void store_if(u32 condition, u32* to, u32 value) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.u32 [%0], %1;}"
               :
               : "l"(to), "r"(value), "r"(condition)
               : "memory");
}

inline constexpr int kConvertTiles = 4;    ///< of 16 coefficients a warp
inline constexpr u32 kConvertGroups = 12;  ///< of 8 destinations, at most

/// Base conversion: coefficients x sources times sources x destinations. Depth = ceil(sources / 16)
/// chunks. Grid: x tiles of 8 * 64 coefficients, y polynomials.
template <class Unit, u32 Depth>
__global__ void __launch_bounds__(kThreads, Depth == 1 ? 3 : 2)
    convert(const __grid_constant__ ConvertArgs args) {
  __shared__ __align__(16) u32 matrices[kConvertGroups * Depth * 32 * 4];
  __shared__ u32 constants[kConvertGroups * 32];
  const Lane lane;
  const u32 groups = (args.destinations + 7) / 8, id = threadIdx.x % 32;
#pragma unroll 1
  for (u32 k = threadIdx.x; k < groups * Depth * 32; k += kThreads)
    reinterpret_cast<uint4*>(matrices)[k] =
        __ldg(reinterpret_cast<const uint4*>(args.matrices) + k);
#pragma unroll 1
  for (u32 k = threadIdx.x; k < groups * 32; k += kThreads)
    constants[k] = __ldg(args.constants + k);
  const u32 first = (blockIdx.x * 8 + threadIdx.x / 32) * 16 * kConvertTiles + lane.g;
  const u64 limb_words = u64(1) << args.log_n;
  const u32* from = args.in + u64(blockIdx.y) * args.sources * limb_words + first;
  u32 a[kConvertTiles][Depth][8];
#pragma unroll
  for (int chunk = 0; chunk < static_cast<int>(Depth); ++chunk)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const u32 source = 16 * chunk + 2 * lane.t + k_step(j);
      const u32* limb = from + source * limb_words;
#pragma unroll
      for (int m = 0; m < kConvertTiles; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          a[m][chunk][(j & 1) + 2 * h + 4 * (j >> 1)] =
              source < args.sources ? limb[16 * m + 8 * h] : 0;
    }
  __syncthreads();
  u32* even = args.out + (u64(blockIdx.y) * args.destinations + 2 * lane.t) * limb_words + first;
#pragma unroll 1
  for (u32 group = 0; group < groups; ++group, even += 8 * limb_words) {
    Unit::set_constants(constants[group * 32 + id]);
    u32 b[Depth][4];
#pragma unroll
    for (u32 chunk = 0; chunk < Depth; ++chunk) {
      const uint4 v = reinterpret_cast<const uint4*>(matrices)[(group * Depth + chunk) * 32 + id];
      b[chunk][0] = v.x, b[chunk][1] = v.y, b[chunk][2] = v.z, b[chunk][3] = v.w;
    }
    u32* odd = even + limb_words;
    const u32 destination = 8 * group + 2 * lane.t;
    u32 d[kConvertTiles][4] = {};
#pragma unroll
    for (u32 m = 0; m < kConvertTiles; ++m)
#pragma unroll
      for (u32 chunk = 0; chunk < Depth; ++chunk)
        Unit::multiply(d[m], a[m][chunk], b[chunk], Prime{});
    const u32 has_even = destination < args.destinations,
              has_odd = destination + 1 < args.destinations;
#pragma unroll
    for (int m = 0; m < kConvertTiles; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        store_if(has_even, even + 16 * m + 8 * h, d[m][2 * h]);
        store_if(has_odd, odd + 16 * m + 8 * h, d[m][2 * h + 1]);
      }
  }
}

}  // namespace crenel::fhecore::sim
