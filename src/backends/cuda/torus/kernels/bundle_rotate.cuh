// Blind rotation by groups of secret bits, for throughput: start, all steps and extraction of some
// rows in one block. Bundles of keys are made in registers where they are used and never stored; a
// thread makes those of one frequency for all rows of its block, so that a word of the key is read
// once for them.
#pragma once

#include "backends/cuda/cluster.cuh"
#include "backends/cuda/ptx.cuh"
#include "backends/cuda/torus/device/bundle.cuh"
#include "backends/cuda/torus/device/make_ahead.cuh"
#include "backends/cuda/torus/device/passes.cuh"

namespace crenel::backend::cuda::torus {

/// LP: log2 of the points (0: of run time); Polys: of the accumulator (0: of run time); Outs
/// outputs of Rows ciphertexts a thread.
template <u32 LP_, u32 RMax_, u32 Polys_, u32 Outs_, u32 Rows_, u32 Threads_, u32 Blocks_ = 1>
struct BundleShape {
  static constexpr u32 LP = LP_, RMax = RMax_, Polys = Polys_, Outs = Outs_, Rows = Rows_;
  static constexpr u32 Threads = Threads_, Blocks = Blocks_;
  static constexpr bool Ahead = false;
};
/// A row a block, whose bundles other blocks make ahead.
template <u32 LP, u32 RMax, u32 Polys, u32 Threads>
struct AheadShape : BundleShape<LP, RMax, Polys, Polys, 1, Threads, 2>,
                    MadeAhead<LP, Polys, Threads> {
  static constexpr bool Ahead = true;
  static __device__ __forceinline__ u32 bundle_place(u32 f) { return f; }
};
using AnyBundle = BundleShape<0, 1, 0, 1, 1, 256>;

/// Products of all points, in place; ends with all of them there. `exponents`: [Rows][kMaxBundle].
template <class Shape, class Field>
__device__ __forceinline__ void multiply_bundles(const Field& field, const BundleArgs& args,
                                                 const u32* exponents, const double2* key,
                                                 double2* work) {
  constexpr u32 Polys = Shape::Polys, Outs = Shape::Outs, Rows = Shape::Rows, LP = Shape::LP;
  constexpr u32 kParts = Polys / Outs, kTile = Shape::Threads / kParts;
  constexpr Swizzle swizzle = PassPlan(LP, Shape::RMax).swizzle();
  const u32 first = threadIdx.x / kTile * Outs;
  for (u32 f = threadIdx.x % kTile; f < 1u << LP; f += kTile) {
    double2 bundle[Rows][Polys][Outs], sum[Rows][Outs];
    make_bundles<Polys, Outs, Rows>(
        field, 1u << args.log_keys, LP, key + (first << LP) + f, field.exponent_of(f),
        [&](u32 r, u32 set) { return exponents[r * kMaxBundle + set]; }, bundle);
    double2* const at = work + place<double2>(f, swizzle);
#pragma unroll
    for (u32 r = 0; r < Rows; ++r) {
#pragma unroll
      for (u32 out = 0; out < Outs; ++out) sum[r][out] = make_double2(0.0, 0.0);
#pragma unroll
      for (u32 row = 0; row < Polys; ++row) {
        const double2 in = at[(r * Polys + row) << LP];
#pragma unroll
        for (u32 out = 0; out < Outs; ++out) add_product(sum[r][out], in, bundle[r][row][out]);
      }
    }
    if constexpr (kParts != 1) __syncthreads();  // all outputs of these points have read them
#pragma unroll
    for (u32 r = 0; r < Rows; ++r)
#pragma unroll
      for (u32 out = 0; out < Outs; ++out) at[(r * Polys + first + out) << LP] = sum[r][out];
  }
  __syncthreads();
}

/// ... with bundles that are there.
template <class Shape>
__device__ __forceinline__ void multiply_ready(const double2* ready, double2* work) {
  constexpr u32 Polys = Shape::Polys, LP = Shape::LP;
  constexpr Swizzle swizzle = PassPlan(LP, Shape::RMax).swizzle();
#pragma unroll 1
  for (u32 f = threadIdx.x; f < 1u << LP; f += Shape::Threads) {
    double2 bundle[Polys][Polys], sum[Polys];
#pragma unroll
    for (u32 out = 0; out < Polys; ++out)
#pragma unroll
      for (u32 row = 0; row < Polys; ++row)
        bundle[out][row] = ready[((out * Polys + row) << LP) + f];
    double2* const at = work + place<double2>(f, swizzle);
#pragma unroll
    for (u32 out = 0; out < Polys; ++out) sum[out] = make_double2(0.0, 0.0);
#pragma unroll
    for (u32 row = 0; row < Polys; ++row) {
      const double2 in = at[row << LP];
#pragma unroll
      for (u32 out = 0; out < Polys; ++out) add_product(sum[out], in, bundle[out][row]);
    }
#pragma unroll
    for (u32 out = 0; out < Polys; ++out) at[out << LP] = sum[out];
  }
  __syncthreads();
}

/// One output of one frequency for sizes of run time: products with the bundle, in the same order.
/// `input(row)`: points; `key(set, row)`: words; `root(set)`.
template <class Input, class Key, class Root>
__device__ __forceinline__ double2 bundle_sum(u32 polys, u32 sets, const Input& input,
                                              const Key& key, const Root& root) {
  double2 sum = make_double2(0.0, 0.0);
  for (u32 row = 0; row < polys; ++row) {
    double2 bundle = key(0, row);
    for (u32 set = 1; set < sets; ++set) add_product(bundle, root(set), key(set, row));
    add_product(sum, input(row), bundle);
  }
  return sum;
}

/// ... or the sum of differences.
template <class Input, class Key, class Root>
__device__ __forceinline__ double2 difference_sum(u32 polys, u32 sets, const Input& input,
                                                  const Key& key, const Root& root) {
  double2 sum = make_double2(0.0, 0.0);
  for (u32 set = 1; set < sets; ++set) {
    double2 a = make_double2(0.0, 0.0);
    for (u32 row = 0; row < polys; ++row) add_product(a, input(row), key(set - 1, row));
    const double2 w = root(set), u = make_double2(__dadd_rn(w.x, -1.0), w.y);
    if (set == 1)
      sum = difference(u, a);
    else
      add_product(sum, u, a);
  }
  return sum;
}

inline constexpr u32 kMostPolys = 32;  ///< of multiply_any

/// Products of all points for sizes of run time: one row.
template <class Field>
__device__ __forceinline__ void multiply_any(const Field& field, const BundleArgs& args,
                                             const u32* exponents, const double2* key,
                                             double2* work) {
  const u32 polys = args.rotate.polys, lp = args.rotate.log_points, keys = 1u << args.log_keys;
  for (u32 f = threadIdx.x; f < 1u << lp; f += blockDim.x) {
    const u32 point = field.exponent_of(f), at = place<double2>(f, kSingleLevels);
    double2 sum[kMostPolys];
    const auto input = [&](u32 row) { return work[(row << lp) + at]; };
    const auto root = [&](u32 set) { return field.root(exponents[set], point); };
    for (u32 out = 0; out < polys; ++out) {
      const auto word = [&](u32 set, u32 row) {
        return key[(u64((set * polys + row) * polys + out) << lp) + f];
      };
      sum[out] = args.first_set != 0 ? difference_sum(polys, keys, input, word, root)
                                     : bundle_sum(polys, keys, input, word, root);
    }
    for (u32 out = 0; out < polys; ++out) work[(out << lp) + at] = sum[out];
  }
  __syncthreads();
}

template <class Shape>
__global__ void __launch_bounds__(Shape::Threads, Shape::Blocks)
    bundle_rotate(const __grid_constant__ BundleArgs args) {
  begin_kernel();
  constexpr u32 LP = Shape::LP, RMax = Shape::RMax, Rows = Shape::Rows;
  using Rules = Accumulator<true, i32>;
  using Field = FftField<Rules, LP>;
  const RotateArgs& r = args.rotate;
  const u32 lp = LP != 0 ? LP : r.log_points, n = 2u << lp;
  const u32 polys = Shape::Polys != 0 ? Shape::Polys : r.polys, all = polys * Rows;
  double2* const work = reinterpret_cast<double2*>(block_memory());
  i32* const acc = reinterpret_cast<i32*>(work + (all << lp));
  u32* const exponents = reinterpret_cast<u32*>(acc + all * n);
  const Field field(r, reinterpret_cast<u8*>(exponents + Rows * kMaxBundle));
  const Rules rules{r};
  if constexpr (Shape::Ahead) {
    if (blockIdx.x >= args.rotators) {
      __syncthreads();
      make_ahead<Shape>(field, args);
      return;
    }
  }
  // rows past the end repeat the last one
  const auto row_of = [&](u32 member) { return min(blockIdx.x * Rows + member, r.batch - 1); };

  for (u32 t = threadIdx.x; t < all * n; t += blockDim.x) {
    const u32 poly = t / n;
    acc[t] = first_word(args, rules, row_of(poly / polys), poly % polys, t & (n - 1));
  }
  i32* const state = args.state + u64(blockIdx.x) * all * n;  // Ahead: between launches
  const double2* ready = args.ready + u64(blockIdx.x) * args.count * (polys * polys << lp);
  if (Shape::Ahead && args.first != 0)
    for (u32 t = threadIdx.x; t < all * n; t += blockDim.x) acc[t] = state[t];
  __syncthreads();

  const double2* key = static_cast<const double2*>(r.key);
  for (u32 i = 0; i < args.count; ++i, key += args.step_points()) {
    for (u32 t = threadIdx.x; !Shape::Ahead && t < Rows << args.log_keys; t += blockDim.x) {
      const u32 member = t >> args.log_keys, set = t & ((1u << args.log_keys) - 1);
      exponents[member * kMaxBundle + set] =
          args.exponents[row_of(member) * u64(args.row_exponents()) + (i << args.log_keys) + set];
    }
    forward<Field, LP, RMax>(field, work, all, lp,
                             [&](u32 poly) { return field.points_of(acc + poly * n, 0); });
    if constexpr (Shape::Ahead) {
      multiply_ready<Shape>(ready, work);
      ready += polys * polys << lp;
    } else if constexpr (Shape::Polys != 0)
      multiply_bundles<Shape>(field, args, exponents, key, work);
    else
      multiply_any(field, args, exponents, key, work);
    inverse<Field, LP, RMax>(field, work, all, lp,
                             [&](u32 poly, u32 base, u32 stride, const auto& v) {
                               if (Shape::Polys == 0 && args.first_set != 0)
                                 field.store(acc + poly * n, base, stride, v);
                               else
                                 field.template store<true>(acc + poly * n, base, stride, v);
                             });
  }
  __syncthreads();
  if (Shape::Ahead && args.first + args.count != args.steps) {
    for (u32 t = threadIdx.x; t < all * n; t += blockDim.x) state[t] = acc[t];
    return;
  }

  write_rows(args, rules, blockIdx.x * Rows, Rows,
             [&](u32 member, u32 poly) { return acc + (member * polys + poly) * n; });
}

}  // namespace crenel::backend::cuda::torus
