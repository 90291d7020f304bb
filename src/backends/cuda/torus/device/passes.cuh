// Register passes of the transforms of one polynomial in shared memory: 2^LP points, a tree of
// radix-2 butterflies, of which a thread does RB levels on 2^RB points at a time. Grouping levels
// changes no operation, so results do not depend on the plan.
#pragma once

#include "backends/cuda/ptx.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kMaxPasses = 12;

/// Where points lie: `last` levels are done in the last pass, `both` in the last two of three.
struct Swizzle {
  static constexpr u32 kNone = 31;
  u32 last, both;
};

/// ... where every pass does one level.
inline constexpr Swizzle kSingleLevels = {1, Swizzle::kNone};

/// How the LP levels are split into passes of at most `rmax` levels, as evenly as it goes, larger
/// ones first. rmax = 1 is a pass a level.
struct PassPlan {
  u32 count = 0;
  u32 bits[kMaxPasses] = {};
  u32 depth[kMaxPasses] = {};  ///< levels before the pass

  __host__ __device__ constexpr PassPlan(u32 log_points, u32 rmax) {
    count = (log_points + rmax - 1) / rmax;
    u32 done = 0;
    for (u32 p = 0; p < count; ++p) {
      bits[p] = (log_points - done + (count - p) - 1) / (count - p);
      depth[p] = done;
      done += bits[p];
    }
  }
  __host__ __device__ constexpr Swizzle swizzle() const;
};

/// Twiddles of a pass lie in slots of 2^depth neighbouring blocks each, so that threads with
/// neighbouring blocks read neighbouring words. Slot of node s (s < 2^t) of level t of the pass:
/// fields whose odd nodes are the even ones times i store the even nodes only.
template <bool EvenOnly>
__host__ __device__ constexpr u32 twiddle_slots(u32 bits) {
  return EvenOnly ? 1u << (bits - 1) : (1u << bits) - 1;
}
template <bool EvenOnly>
__host__ __device__ constexpr u32 twiddle_slot(u32 level, u32 node) {
  if (!EvenOnly) return (1u << level) - 1 + node;
  return level == 0 ? 0 : (1u << (level - 1)) + node / 2;
}
template <bool EvenOnly>
__host__ __device__ constexpr u32 twiddle_offset(const PassPlan& plan, u32 pass) {
  u32 offset = 0;
  for (u32 p = 0; p < pass; ++p) offset += twiddle_slots<EvenOnly>(plan.bits[p]) << plan.depth[p];
  return offset;
}

__host__ __device__ constexpr Swizzle PassPlan::swizzle() const {
  return {bits[count - 1], count == 3 ? bits[2] + bits[1] : Swizzle::kNone};
}

/// Where point e of a polynomial lies: an exchange of low bits that keeps the accesses of all
/// passes free of bank conflicts. Neighbouring lanes differ in the low bits in the first pass, in
/// those above `last` in the last. In the middle one of three they differ in 2^last neighbours and
/// in the bits above `both`, which matter where 2^last points are less than all banks. Linear:
/// place(a ^ b) = place(a) ^ place(b).
template <class Element>
__device__ __forceinline__ u32 place(u32 e, Swizzle s) {
  constexpr u32 mask = 128 / sizeof(Element) - 1;
  return e ^ ((e >> s.last) & mask) ^ (((e >> s.both) << s.last) & mask);
}

/// Work of one pass for one thread: block and offset of its points.
struct Task {
  u32 block;   ///< node at the pass's depth
  u32 base;    ///< index of the first point
  u32 stride;  ///< between points

  __device__ __forceinline__ Task(u32 position, u32 lp, u32 depth, u32 bits) {
    const u32 log_stride = lp - depth - bits;
    block = position >> log_stride;
    stride = 1u << log_stride;
    base = (block << (lp - depth)) + (position & (stride - 1));
  }
};

/// Level T and those after it of a pass on points in registers, forward. Recursion in place of a
/// loop: every index must be a constant, or the points leave the registers. First: the pass of
/// depth 0, whose only block has the same twiddles for all threads (kept in constant memory).
template <class Field, u32 RB, bool First, u32 T = 0>
__device__ __forceinline__ void forward_levels(const Field& field,
                                               typename Field::Element (&v)[1u << RB], u32 twiddles,
                                               u32 depth, u32 block) {
  if constexpr (T < RB) {
    constexpr u32 half = 1u << (RB - 1 - T);
#pragma unroll
    for (u32 s = 0; s < (1u << T); ++s) {
      const u32 slot = twiddle_slot<Field::kEvenOnly>(T, s);
      const auto stored = First ? field.template first_twiddle<true>(slot)
                                : field.template twiddle<true>(twiddles + (slot << depth) + block);
      const auto w = field.turned(stored, T != 0 && (s & 1));
#pragma unroll
      for (u32 q = 0; q < half; ++q)
        field.forward(v[2 * half * s + q], v[2 * half * s + q + half], w);
    }
    forward_levels<Field, RB, First, T + 1>(field, v, twiddles, depth, block);
  }
}

/// The levels below T, last one first, inverse.
template <class Field, u32 RB, bool First, u32 T = RB>
__device__ __forceinline__ void inverse_levels(const Field& field,
                                               typename Field::Element (&v)[1u << RB], u32 twiddles,
                                               u32 depth, u32 block) {
  if constexpr (T > 0) {
    constexpr u32 half = 1u << (RB - T);
#pragma unroll
    for (u32 s = 0; s < (1u << (T - 1)); ++s) {
      const u32 slot = twiddle_slot<Field::kEvenOnly>(T - 1, s);
      const auto stored = First ? field.template first_twiddle<false>(slot)
                                : field.template twiddle<false>(twiddles + (slot << depth) + block);
      const auto w = field.turned(stored, T != 1 && (s & 1));
#pragma unroll
      for (u32 q = 0; q < half; ++q)
        field.inverse(v[2 * half * s + q], v[2 * half * s + q + half], w);
    }
    inverse_levels<Field, RB, First, T - 1>(field, v, twiddles, depth, block);
  }
}

/// Where a forward transform leaves its points: in the workspace, for the block.
struct InPlace {
  template <class Element>
  __device__ __forceinline__ void operator()(Element* points, u32 at, Element value) const {
    points[at] = value;
  }
  __device__ __forceinline__ void sync() const { __syncthreads(); }
};

/// One forward pass over `polys` polynomials by all threads of the block. `load(poly)(e)` gives a
/// point's input in the first pass; `put(points, at, value)` takes what lies at `at`.
template <class Field, u32 RB, bool First, class Load, class Put = InPlace>
__device__ __forceinline__ void forward_pass(const Field& field, typename Field::Element* work,
                                             u32 polys, u32 lp, u32 depth, u32 twiddles,
                                             Swizzle swizzle, const Load& load,
                                             const Put& put = {}) {
  using Element = typename Field::Element;
  const u32 log_tasks = lp - RB;
  for (u32 t = threadIdx.x; t < polys << log_tasks; t += blockDim.x) {
    const u32 poly = t >> log_tasks;
    const Task task(t & ((1u << log_tasks) - 1), lp, depth, RB);
    Element* const points = work + (poly << lp);
    // The bits of task.base and of multiples of the stride are apart: one exclusive or a point.
    const u32 at = place<Element>(task.base, swizzle);
    Element v[1u << RB];
    if constexpr (First) {
      const auto input = load(poly);
#pragma unroll
      for (u32 j = 0; j < (1u << RB); ++j) v[j] = input(task.base + j * task.stride);
    } else {
#pragma unroll
      for (u32 j = 0; j < (1u << RB); ++j)
        v[j] = points[at ^ place<Element>(j * task.stride, swizzle)];
    }
    forward_levels<Field, RB, First>(field, v, twiddles, depth, task.block);
#pragma unroll
    for (u32 j = 0; j < (1u << RB); ++j)
      put(points, at ^ place<Element>(j * task.stride, swizzle), v[j]);
  }
}

/// One inverse pass; `store(poly, base, stride, values)` takes a thread's points of the last one
/// (that of depth 0), base, base + stride, ...
template <class Field, u32 RB, bool Last, class Store>
__device__ __forceinline__ void inverse_pass(const Field& field, typename Field::Element* work,
                                             u32 polys, u32 lp, u32 depth, u32 twiddles,
                                             Swizzle swizzle, const Store& store) {
  using Element = typename Field::Element;
  const u32 log_tasks = lp - RB;
  for (u32 t = threadIdx.x; t < polys << log_tasks; t += blockDim.x) {
    const u32 poly = t >> log_tasks;
    const Task task(t & ((1u << log_tasks) - 1), lp, depth, RB);
    Element* const points = work + (poly << lp);
    // The bits of task.base and of multiples of the stride are apart: one exclusive or a point.
    const u32 at = place<Element>(task.base, swizzle);
    Element v[1u << RB];
#pragma unroll
    for (u32 j = 0; j < (1u << RB); ++j)
      v[j] = points[at ^ place<Element>(j * task.stride, swizzle)];
    inverse_levels<Field, RB, Last>(field, v, twiddles, depth, task.block);
    if constexpr (Last) {
      store(poly, task.base, task.stride, v);
    } else {
#pragma unroll
      for (u32 j = 0; j < (1u << RB); ++j)
        points[at ^ place<Element>(j * task.stride, swizzle)] = v[j];
    }
  }
}

/// A whole forward transform, passes split by __syncthreads, the last one followed by put.sync().
/// LP = 0: sizes of run time, a level a pass, in place. Passes from End on are left out.
template <class Field, u32 LP, u32 RMax, u32 Pass = 0, u32 End = kMaxPasses, class Load,
          class Put = InPlace>
__device__ __forceinline__ void forward(const Field& field, typename Field::Element* work,
                                        u32 polys, u32 log_points, const Load& load,
                                        const Put& put = {}) {
  if constexpr (LP == 0) {
    forward_pass<Field, 1, true>(field, work, polys, log_points, 0, 0, kSingleLevels, load);
    __syncthreads();
    for (u32 depth = 1; depth < log_points; ++depth) {
      forward_pass<Field, 1, false>(field, work, polys, log_points, depth, (1u << depth) - 1,
                                    kSingleLevels, load);
      __syncthreads();
    }
  } else {
    constexpr PassPlan plan(LP, RMax);
    constexpr u32 twiddles = twiddle_offset<Field::kEvenOnly>(plan, Pass);
    if constexpr (Pass + 1 == plan.count) {
      forward_pass<Field, plan.bits[Pass], Pass == 0>(field, work, polys, LP, plan.depth[Pass],
                                                      twiddles, plan.swizzle(), load, put);
      put.sync();
    } else {
      forward_pass<Field, plan.bits[Pass], Pass == 0>(field, work, polys, LP, plan.depth[Pass],
                                                      twiddles, plan.swizzle(), load);
      __syncthreads();
      if constexpr (Pass + 1 < End)
        forward<Field, LP, RMax, Pass + 1, End>(field, work, polys, log_points, load, put);
    }
  }
}

/// A whole inverse transform, not normalised. No barrier after the last pass: its points, and what
/// `store` writes, belong to the thread that the first forward pass gives them to.
template <class Field, u32 LP, u32 RMax, u32 Pass = 0, class Store>
__device__ __forceinline__ void inverse(const Field& field, typename Field::Element* work,
                                        u32 polys, u32 log_points, const Store& store) {
  if constexpr (LP == 0) {
    for (u32 depth = log_points - 1; depth > 0; --depth) {
      inverse_pass<Field, 1, false>(field, work, polys, log_points, depth, (1u << depth) - 1,
                                    kSingleLevels, store);
      __syncthreads();
    }
    inverse_pass<Field, 1, true>(field, work, polys, log_points, 0, 0, kSingleLevels, store);
  } else {
    constexpr PassPlan plan(LP, RMax);
    if constexpr (Pass < plan.count) {
      constexpr u32 p = plan.count - 1 - Pass;
      inverse_pass<Field, plan.bits[p], p == 0>(field, work, polys, LP, plan.depth[p],
                                                twiddle_offset<Field::kEvenOnly>(plan, p),
                                                plan.swizzle(), store);
      if constexpr (p != 0) __syncthreads();
      inverse<Field, LP, RMax, Pass + 1>(field, work, polys, log_points, store);
    }
  }
}

}  // namespace crenel::backend::cuda::torus
