// Bundles made ahead: the blocks of a launch after those that rotate make them for the next launch.
#pragma once

#include "backends/cuda/torus/device/bundle.cuh"

namespace crenel::backend::cuda::torus {

/// Outputs and ciphertexts whose bundles a thread makes together, 16 of them; tiles of a step.
template <u32 LP, u32 Polys, u32 Threads>
struct MadeAhead {
  static constexpr u32 kMadeOuts = Polys == 2 ? 2 : 1, kMadeRows = 16 / Polys / kMadeOuts;
  static constexpr u32 kMadeTiles = (Polys / kMadeOuts << LP) / Threads;
};

template <class Shape, u32 Rows, class Field>
__device__ __forceinline__ void make_rows_ahead(const Field& field, const BundleArgs& args) {
  constexpr u32 Polys = Shape::Polys, Outs = Shape::kMadeOuts, LP = Shape::LP;
  constexpr u32 kTiles = Shape::kMadeTiles;
  constexpr u32 kPoints = 1u << LP;
  const RotateArgs& r = args.rotate;
  const u32 keys = 1u << args.log_keys, groups = (r.batch + Rows - 1) / Rows;
  // Rows lie innermost: neighbouring blocks read the same words of the key.
  for (u32 item = blockIdx.x - args.rotators; item < args.next * kTiles * groups;
       item += gridDim.x - args.rotators) {
    const u32 row = item % groups * Rows, step = item / groups / kTiles;
    const u32 at = item / groups % kTiles * Shape::Threads + threadIdx.x;
    const u32 f = at % kPoints, out = at / kPoints * Outs;
    const u32 taken = args.first + args.count + step;
    const auto row_of = [&](u32 member) { return min(row + member, r.batch - 1); };
    double2 bundle[Rows][Polys][Outs];
    make_bundles<Polys, Outs, Rows>(
        field, keys, LP,
        static_cast<const double2*>(r.key) + taken * args.step_points() + (out << LP) + f,
        field.exponent_of(f),
        [&](u32 member, u32 set) {
          return args.exponents[row_of(member) * u64(args.row_exponents()) +
                                (taken << args.log_keys) + set];
        },
        bundle);
#pragma unroll
    for (u32 member = 0; member < Rows; ++member) {
      if (row + member >= r.batch) break;
      double2* const to = args.coming +
                          (((row + member) * u64(args.next) + step) * Polys * Polys << LP) +
                          Shape::bundle_place(f);
#pragma unroll
      for (u32 i = 0; i < Polys; ++i)
#pragma unroll
        for (u32 o = 0; o < Outs; ++o) to[((out + o) * Polys + i) << LP] = bundle[member][i][o];
    }
  }
}

/// Bundles of args.next steps from first + count on.
template <class Shape, class Field>
__device__ __forceinline__ void make_ahead(const Field& field, const BundleArgs& args) {
  if (args.rotate.batch == 1)
    make_rows_ahead<Shape, 1>(field, args);
  else
    make_rows_ahead<Shape, Shape::kMadeRows>(field, args);
}

}  // namespace crenel::backend::cuda::torus
