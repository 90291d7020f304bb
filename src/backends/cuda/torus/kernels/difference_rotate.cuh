// Blind rotation by differences, one secret bit a step, for several messages a mask: start, all
// steps and extraction of some rows in one block, accumulators on chip from first to last. A thread
// sums the products of one frequency for OG outputs of BT rows, and turns the sums when they are
// complete: nothing is made of the key for each row.
#pragma once

#include "backends/cuda/cluster.cuh"
#include "backends/cuda/ptx.cuh"
#include "backends/cuda/torus/device/bundle.cuh"
#include "backends/cuda/torus/device/multiply_rows.cuh"
#include "backends/cuda/torus/device/passes.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kMostDifferencePolys = 7;  ///< of shapes for any number

/// Polys: of the accumulator; 0: of run time, with an output a thread.
template <u32 LP, u32 RMax, u32 Polys_, u32 OG, u32 BT, u32 Threads>
struct DifferenceShape : RotateShape<LP, RMax, OG, BT, Threads, false> {
  static constexpr u32 Polys = Polys_;
  static constexpr u32 Rows = BT;
  /// Points that the block multiplies at a time.
  static constexpr u32 Tile =
      Polys != 0 ? Threads / (Polys / OG) : Threads / (kMostDifferencePolys + 1);
  static_assert(Polys % OG == 0 && (Polys != 0 || OG == 1) && Tile % 32 == 0);
  static_assert((1u << LP) % Tile == 0);
  /// From one polynomial of the accumulator to the next, in words.
  static constexpr u32 kStride = (2u << LP) + DifferenceShape::Pad;
  static constexpr u32 kExponentBytes = (Rows + 3) / 4 * 16;
};

template <class Shape, class Field>
__device__ __forceinline__ void multiply_differences(const Field& field, u32 polys,
                                                     const u32* exponents, const double2* key,
                                                     double2* work) {
  constexpr u32 LP = Shape::LP, OG = Shape::OG, Rows = Shape::Rows;
  constexpr Swizzle swizzle = PassPlan(LP, Shape::RMax).swizzle();
  const u32 out = threadIdx.x / Shape::Tile * OG;
  const bool active = out < polys;
  key += out << LP;
#pragma unroll 1
  for (u32 f = threadIdx.x % Shape::Tile; f < 1u << LP; f += Shape::Tile) {
    typename Field::Sum sum[OG][Rows];
    double2* const at = work + place<double2>(f, swizzle);
#pragma unroll
    for (u32 o = 0; o < OG; ++o)
#pragma unroll
      for (u32 r = 0; r < Rows; ++r) sum[o][r] = Field::zero();
    if (active)
      multiply_rows<Field, Shape, false, Shape::Polys>(field, polys, polys, LP, sum, at, key + f);
    __syncthreads();  // all outputs of these points have read them
    if (!active) continue;
    const u32 point = field.exponent_of(f);
#pragma unroll
    for (u32 r = 0; r < Rows; ++r) {
      const double2 w = field.root(exponents[r], point),
                    u = make_double2(__dadd_rn(w.x, -1.0), w.y);
#pragma unroll
      for (u32 o = 0; o < OG; ++o) at[(r * polys + out + o) << LP] = difference(u, sum[o][r].a);
    }
  }
  __syncthreads();
}

template <class Shape>
__global__ void __launch_bounds__(Shape::Threads)
    difference_rotate(const __grid_constant__ BundleArgs args) {
  begin_kernel();
  constexpr u32 LP = Shape::LP, RMax = Shape::RMax, Rows = Shape::Rows, n = 2u << LP;
  using Rules = Accumulator<true, i32>;
  using Field = FftField<Rules, LP>;
  const RotateArgs& r = args.rotate;
  const u32 polys = Shape::Polys != 0 ? Shape::Polys : r.polys, all = polys * Rows;
  double2* const work = reinterpret_cast<double2*>(block_memory());
  i32* const acc = reinterpret_cast<i32*>(work + (all << LP));
  u32* const exponents = reinterpret_cast<u32*>(acc + all * Shape::kStride);
  const Field field(r, reinterpret_cast<u8*>(exponents) + Shape::kExponentBytes);
  const Rules rules{r};
  // rows past the end repeat the last one
  const auto row_of = [&](u32 member) { return min(blockIdx.x * Rows + member, r.batch - 1); };

  for (u32 t = threadIdx.x; t < all * n; t += Shape::Threads) {
    const u32 poly = t / n, m = t & (n - 1);
    acc[poly * Shape::kStride + m] = first_word(args, rules, row_of(poly / polys), poly % polys, m);
  }
  __syncthreads();

  const double2* key = static_cast<const double2*>(r.key);
  for (u32 i = 0; i < args.count; ++i, key += polys * polys << LP) {
    if (threadIdx.x < Rows)  // c_1, behind c_0 = 0
      exponents[threadIdx.x] =
          args.exponents[row_of(threadIdx.x) * u64(args.row_exponents()) + 2 * i + 1];
    forward<Field, LP, RMax>(field, work, all, LP, [&](u32 poly) {
      return field.points_of(acc + poly * Shape::kStride, 0);
    });
    multiply_differences<Shape>(field, polys, exponents, key, work);
    inverse<Field, LP, RMax>(field, work, all, LP,
                             [&](u32 poly, u32 base, u32 stride, const auto& v) {
                               field.store(acc + poly * Shape::kStride, base, stride, v);
                             });
  }
  __syncthreads();
  write_rows(args, rules, blockIdx.x * Rows, Rows,
             [&](u32 member, u32 poly) { return acc + (member * polys + poly) * Shape::kStride; });
}

}  // namespace crenel::backend::cuda::torus
