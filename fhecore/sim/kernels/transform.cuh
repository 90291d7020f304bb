// The 2^16-point transform as 16 x 16 matrix products: 2^16 = 16^4, two products a column pass, two
// a row pass, element-wise factors in between. A limb takes 4 * 256 products m16n16k16, that is
// 2,048 of m16n8k16.
//
// Value (row, column) of a limb lies at 256 row + column. Column pass: columns are transformed
// along rows, row = 16 k + j in, 16 k2 + k1 out. Row pass: rows along columns, column = 16 k + j
// in, 16 k1 + k2 out. Which roots the matrices and factors hold (forward, inverse, negacyclic) is
// the caller's business: the same kernels serve both directions.
#pragma once

#include "fragments.cuh"

namespace crenel::fhecore::sim {

inline constexpr u32 kLogN = 16, kThreads = 256, kTileSide = 16;
inline constexpr int kSide = 256;
inline constexpr u32 kFragmentWords = 32;  ///< lanes

struct TransformArgs {
  const u32* in;               ///< [poly][limb][N]
  u32* out;                    ///< the same
  const Prime* primes;         ///< [limb]
  const u32* constants;        ///< [limb][32]: constants fragments
  const u32* first_matrices;   ///< [limb][32][8]: left operand
  const u32* second_matrices;  ///< [limb][32][8]: left operand (columns), two right operands (rows)
  const u32* inner;            ///< [limb][16 k1][16 j] factors times 2^32, between the two products
  const u32* outer;            ///< [limb][N] factors times 2^32 on the row pass's input, or null
  u32 limbs, polys, polys_per_block;
};

__device__ __forceinline__ void load8(u32 (&m)[8], const u32* from) {
  const uint4 a = __ldg(reinterpret_cast<const uint4*>(from));
  const uint4 b = __ldg(reinterpret_cast<const uint4*>(from) + 1);
  m[0] = a.x, m[1] = a.y, m[2] = a.z, m[3] = a.w, m[4] = b.x, m[5] = b.y, m[6] = b.z, m[7] = b.w;
}
__device__ __forceinline__ void store2(u32* to, u32 a, u32 b) {
  *reinterpret_cast<uint2*>(to) = make_uint2(a, b);
}

// Shared tile of the column pass: value (j, k1, c) at j * kPlane + k1 * kRow + c. Rows of 24 words
// put four rows on different banks when they are written, planes 4 words (mod 16) apart four planes
// when read.
inline constexpr int kRow = 24, kPlane = 16 * kRow + 4;

/// Grid: x 16 tiles of 16 columns, y groups of polynomials, z limbs.
template <class Unit>
__global__ void __launch_bounds__(kThreads, Unit::kBlocks)
    columns(const __grid_constant__ TransformArgs args) {
  __shared__ __align__(16) u32 tile[kTileSide * kPlane];
  const Lane lane;
  const u32 warp = threadIdx.x / 32, limb = blockIdx.z, column = blockIdx.x * kTileSide;
  const Prime p = args.primes[limb];
  Unit::set_constants(__ldg(args.constants + limb * kFragmentWords + threadIdx.x % 32));
  const u32 place = (limb * kFragmentWords + threadIdx.x % 32) * 8;
  u32 first_matrix[8], second_matrix[8], factor[2][2];
  load8(first_matrix, args.first_matrices + place);
  load8(second_matrix, args.second_matrices + place);
#pragma unroll
  for (int s = 0; s < 2; ++s)
#pragma unroll
    for (u32 h = 0; h < 2; ++h)
      factor[s][h] = __ldg(args.inner + limb * 256 + (lane.g + 8 * h) * 16 + 2 * warp + s);
  u32* written = tile + 2 * warp * kPlane + lane.g * kRow + 2 * lane.t;
  const u32* read = tile + 2 * lane.t * kPlane + 2 * warp * kRow + lane.g;
  const u32 begin = blockIdx.y * args.polys_per_block;
  const u32 end = min(begin + args.polys_per_block, args.polys);
  for (u32 poly = begin; poly < end; ++poly) {
    const u64 offset = (u64(poly) * args.limbs + limb) << kLogN;
    const u32* from = args.in + offset + column + lane.g + (32 * lane.t + 2 * warp) * kSide;
    u32* to = args.out + offset + column + 2 * lane.t + (16 * lane.g + 2 * warp) * kSide;
    u32 x[2][2][4];
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int i = 0; i < 4; ++i) x[s][half][i] = from[(16 * k_step(i) + s) * kSide + 8 * half];
    __syncthreads();  // of the polynomial before: its tile has been read
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        u32 d[4];
        Unit::left(d, first_matrix, x[s][half], p);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) d[i] = times(d[i], factor[s][i >> 1], p);
        store2(written + s * kPlane + 8 * half, d[0], d[1]);
        store2(written + s * kPlane + 8 * half + 8 * kRow, d[2], d[3]);
      }
    __syncthreads();
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        u32 y[4], d[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) y[i] = read[k_step(i) * kPlane + s * kRow + 8 * half];
        Unit::left(d, second_matrix, y, p);
        store2(to + s * kSide + 8 * half, d[0], d[1]);
        store2(to + (128 + s) * kSide + 8 * half, d[2], d[3]);
      }
  }
}

/// What the row pass needs once a warp.
template <class Unit>
struct RowTables {
  Prime p;
  u32 first[8], second[2][4], factor[2][4];

  __device__ __forceinline__ RowTables(const TransformArgs& args, u32 limb, const Lane& lane)
      : p(args.primes[limb]) {
    Unit::set_constants(__ldg(args.constants + limb * kFragmentWords + threadIdx.x % 32));
    const u32 place = (limb * kFragmentWords + threadIdx.x % 32) * 8;
    u32 both[8];
    load8(first, args.first_matrices + place);
    load8(both, args.second_matrices + place);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        second[half][i] = both[4 * half + i];
        factor[half][i] = __ldg(args.inner + limb * 256 + (lane.g + 8 * (i >> 1)) * 16 + 8 * half +
                                2 * lane.t + (i & 1));
      }
  }

  // One row: x as right operands in, d: k1 = g + 8 (i >> 1), k2 = 8 half + 2 t + (i & 1).
  __device__ __forceinline__ void transform(u32 (&d)[2][4], const u32 (&x)[2][4]) const {
    u32 a[8];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      u32 v[4];
      Unit::left(v, first, x[half], p);
#pragma unroll
      for (u32 i = 0; i < 4; ++i) a[4 * half + i] = times(v[i], factor[half][i], p);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) Unit::right(d[half], a, second[half], p);
  }
};

// A row as right operands: value (k, j) at 16 k + j. `row` begins at the lane's first value.
__device__ __forceinline__ u32 lane_in(const Lane& lane) { return 32 * lane.t + lane.g; }
__device__ __forceinline__ void load_row(u32 (&x)[2][4], const u32* row) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int i = 0; i < 4; ++i) x[half][i] = row[16 * k_step(i) + 8 * half];
}
__device__ __forceinline__ void scale_row(u32 (&x)[2][4], const u32 (&w)[2][4], Prime p) {
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (u32 i = 0; i < 4; ++i) x[half][i] = times(x[half][i], w[half][i], p);
}
// A row of results: the lane's first pair, and pair (half, h) from there.
__device__ __forceinline__ u32 lane_out(const Lane& lane) { return 16 * lane.g + 2 * lane.t; }
__device__ constexpr int pair_at(int half, int h) { return 128 * h + 8 * half; }

/// Grid: x 16 tiles of 16 rows, y groups of polynomials, z limbs. A warp has two rows.
template <class Unit>
__global__ void __launch_bounds__(kThreads, Unit::kBlocks)
    rows(const __grid_constant__ TransformArgs args) {
  const Lane lane;
  const u32 limb = blockIdx.z, row = blockIdx.x * kTileSide + threadIdx.x / 32 * 2;
  const RowTables<Unit> tables(args, limb, lane);
  const u32 begin = blockIdx.y * args.polys_per_block;
  const u32 end = min(begin + args.polys_per_block, args.polys);
  for (u32 poly = begin; poly < end; ++poly) {
    const u64 start = ((u64(poly) * args.limbs + limb) << kLogN) + row * kSide;
    const u32* from = args.in + start + lane_in(lane);
    const u32* outer = args.outer + (u64(limb) << kLogN) + row * kSide + lane_in(lane);
    u32* to = args.out + start + lane_out(lane);
#pragma unroll 1
    for (int s = 0; s < 2; ++s, from += kSide, outer += kSide, to += kSide) {
      u32 x[2][4], w[2][4], d[2][4];
      load_row(x, from);
      load_row(w, outer);
      scale_row(x, w, tables.p);
      tables.transform(d, x);
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int h = 0; h < 2; ++h)
          store2(to + pair_at(half, h), d[half][2 * h], d[half][2 * h + 1]);
    }
  }
}

}  // namespace crenel::fhecore::sim
