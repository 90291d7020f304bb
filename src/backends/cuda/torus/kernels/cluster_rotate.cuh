// Blind rotation by groups of secret bits, for latency: a cluster of blocks a row, of which each
// transforms one polynomial of the accumulator. The points of all meet in every block's shared
// memory once a step. Bundles do not depend on the accumulator: other blocks of the same launch
// make those of the next launch's steps.
#pragma once

#include "backends/cuda/cluster.cuh"
#include "backends/cuda/ptx.cuh"
#include "backends/cuda/torus/device/bundle.cuh"
#include "backends/cuda/torus/device/make_ahead.cuh"
#include "backends/cuda/torus/device/passes.cuh"

namespace crenel::backend::cuda::torus {

/// Joint: a thread multiplies the points that its last forward pass leaves in registers, and goes
/// on with the first inverse pass.
template <u32 LP_, u32 RMax_, u32 Polys_, u32 Threads_, bool Joint_ = false>
struct ClusterShape : MadeAhead<LP_, Polys_, Threads_> {
  static constexpr u32 LP = LP_, RMax = RMax_, Polys = Polys_, Threads = Threads_;
  static constexpr bool Ahead = true, Joint = Joint_;
  static constexpr PassPlan kPlan{LP, RMax};
  static constexpr u32 kLast = kPlan.count - 1, kBits = kPlan.bits[kLast];  ///< the last pass
  static constexpr u32 kTasks = (1u << (LP - kBits)) / Threads;             ///< ... of a thread
  static_assert(!Joint || kTasks >= 1);
  /// Where point f of a bundle lies: as threads read them.
  static __device__ __forceinline__ u32 bundle_place(u32 f) {
    return Joint ? ((f & ((1u << kBits) - 1)) << (LP - kBits)) + (f >> kBits) : f;
  }
  static constexpr u32 kPoints = 1u << LP, kEach = kPoints / Threads;  ///< points a thread
  /// Of shared memory before the tables.
  static constexpr u32 kBytes =
      (2 * Polys + 1) * kPoints * sizeof(double2) + 2 * kPoints * sizeof(i32);
};

/// Puts points where every block of the cluster has them.
template <u32 Blocks>
struct ForAll {
  double2* to[Blocks];
  __device__ __forceinline__ void operator()(double2*, u32 at, double2 value) const {
#pragma unroll
    for (u32 b = 0; b < Blocks; ++b) to[b][at] = value;
  }
  __device__ __forceinline__ void sync() const { cluster_sync(); }
};

/// The last forward pass, the products and the first inverse pass of one step: points of this
/// block's polynomial stay in registers, the others' come from `points`.
template <class Shape, class Field>
__device__ __forceinline__ void multiply_joint(
    const Field& field, double2* work, const double2* points,
    const ForAll<Shape::Polys>& everywhere, u32 poly,
    const double2 (&bundle)[Shape::kEach][Shape::Polys]) {
  constexpr u32 LP = Shape::LP, RB = Shape::kBits, Depth = LP - RB, Polys = Shape::Polys;
  constexpr u32 kCount = 1u << RB;
  constexpr Swizzle swizzle = Shape::kPlan.swizzle();
  constexpr u32 twiddles = twiddle_offset<Field::kEvenOnly>(Shape::kPlan, Shape::kLast);
  double2 v[Shape::kTasks][kCount];
  u32 at[Shape::kTasks];
#pragma unroll
  for (u32 t = 0; t < Shape::kTasks; ++t) {
    const Task task(t * Shape::Threads + threadIdx.x, LP, Depth, RB);
    at[t] = place<double2>(task.base, swizzle);
#pragma unroll
    for (u32 j = 0; j < kCount; ++j) v[t][j] = work[at[t] ^ place<double2>(j, swizzle)];
    forward_levels<Field, RB, false>(field, v[t], twiddles, Depth, task.block);
#pragma unroll
    for (u32 j = 0; j < kCount; ++j)
#pragma unroll
      for (u32 b = 0; b < Polys; ++b)
        if (b != poly) everywhere.to[b][at[t] ^ place<double2>(j, swizzle)] = v[t][j];
  }
  cluster_sync();
#pragma unroll
  for (u32 t = 0; t < Shape::kTasks; ++t) {
    const Task task(t * Shape::Threads + threadIdx.x, LP, Depth, RB);
#pragma unroll
    for (u32 j = 0; j < kCount; ++j) {
      double2 sum = make_double2(0.0, 0.0);
#pragma unroll
      for (u32 in = 0; in < Polys; ++in) {
        double2 point = v[t][j];
        if (in != poly) point = points[(in << LP) + (at[t] ^ place<double2>(j, swizzle))];
        add_product(sum, point, bundle[j * Shape::kTasks + t][in]);
      }
      v[t][j] = sum;
    }
    inverse_levels<Field, RB, false>(field, v[t], twiddles, Depth, task.block);
#pragma unroll
    for (u32 j = 0; j < kCount; ++j) work[at[t] ^ place<double2>(j, swizzle)] = v[t][j];
  }
}

template <class Shape>
__global__ void CRENEL_CLUSTER_OF(Shape::Polys) __launch_bounds__(Shape::Threads, 2)
    cluster_rotate(const __grid_constant__ BundleArgs args) {
  begin_kernel();
  constexpr u32 LP = Shape::LP, RMax = Shape::RMax, Polys = Shape::Polys, M = Shape::kPoints;
  constexpr u32 n = 2 * M;
  using Rules = Accumulator<true, i32>;
  using Field = FftField<Rules, LP>;
  constexpr Swizzle swizzle = PassPlan(LP, RMax).swizzle();
  const RotateArgs& r = args.rotate;
  double2* const meeting = reinterpret_cast<double2*>(block_memory());  // [2][polys][M]
  double2* const work = meeting + 2 * Polys * M;
  i32* const acc = reinterpret_cast<i32*>(work + M);
  const Field field(r, reinterpret_cast<u8*>(acc + n));
  const Rules rules{r};
  __syncthreads();
  if (blockIdx.x >= args.rotators) {  // whole clusters
    make_ahead<Shape>(field, args);
    return;
  }

  const u32 row = blockIdx.x / Polys, poly = cluster_rank();
  i32* const state = args.state + ((row * u64(Polys) + poly) * n);
  for (u32 m = threadIdx.x; m < n; m += Shape::Threads)
    acc[m] = args.first != 0 ? state[m] : first_word(args, rules, row, poly, m);
  ForAll<Polys> everywhere[2];
#pragma unroll
  for (u32 b = 0; b < Polys; ++b)
#pragma unroll
    for (u32 buffer = 0; buffer < 2; ++buffer)
      everywhere[buffer].to[b] = cluster_peer(meeting + (buffer * Polys + poly) * M, b);
  cluster_sync();  // all blocks have begun: their memory may be written

  const double2* ready = args.ready + (row * u64(args.count) * Polys + poly) * Polys * M;
  for (u32 i = 0; i < args.count; ++i) {
    double2 bundle[Shape::kEach][Polys];
#pragma unroll
    for (u32 e = 0; e < Shape::kEach; ++e)  // on their way during the transform
#pragma unroll
      for (u32 in = 0; in < Polys; ++in)
        bundle[e][in] = ready[in * M + e * Shape::Threads + threadIdx.x];
    ready += Polys * Polys * M;
    const u32 buffer = i & 1;  // the other blocks may still read the one before
    const auto load = [&](u32) { return field.points_of(acc, 0); };
    const auto store = [&](u32, u32 base, u32 stride, const auto& v) {
      field.template store<true>(acc, base, stride, v);
    };
    if constexpr (Shape::Joint) {
      forward<Field, LP, RMax, 0, Shape::kLast>(field, work, 1, LP, load);
      multiply_joint<Shape>(field, work, meeting + buffer * Polys * M, everywhere[buffer], poly,
                            bundle);
      __syncthreads();
      inverse<Field, LP, RMax, 1>(field, work, 1, LP, store);
      continue;
    }
    if (buffer == 0)
      forward<Field, LP, RMax>(field, work, 1, LP, load, everywhere[0]);
    else
      forward<Field, LP, RMax>(field, work, 1, LP, load, everywhere[1]);
    const double2* const points = meeting + buffer * Polys * M;
#pragma unroll
    for (u32 e = 0; e < Shape::kEach; ++e) {
      const u32 f = e * Shape::Threads + threadIdx.x, at = place<double2>(f, swizzle);
      double2 sum = make_double2(0.0, 0.0);
#pragma unroll
      for (u32 in = 0; in < Polys; ++in) add_product(sum, points[in * M + at], bundle[e][in]);
      work[at] = sum;
    }
    __syncthreads();
    inverse<Field, LP, RMax>(field, work, 1, LP, store);
  }
  __syncthreads();

  if (args.first + args.count != args.steps) {
    for (u32 m = threadIdx.x; m < n; m += Shape::Threads) state[m] = acc[m];
    return;
  }
  const u32 words = r.glwe_dim * n + r.slots;
  const bool body = poly >= r.glwe_dim;
  const u32 each = body ? 1 : n, at = body ? r.glwe_dim * (n - 1) + poly : poly * n;
  u32* const out = args.out + row * u64(r.outputs) * words + at;
  for (u32 t = threadIdx.x; t < r.outputs * each; t += Shape::Threads) {
    const u32 output = t / each, j = t % each;
    out[output * words + j] = rest_word(args, rules, row, poly, acc, output, j);
  }
}

}  // namespace crenel::backend::cuda::torus
