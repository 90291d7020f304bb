// Negacyclic NTT of one row. Included by ntt_<isa>.cpp after a vec_*.h.
//
// Stages form a binary tree: `node` 1 is the whole row, the halves of node b are 2b and 2b + 1, and
// the twiddle of splitting node b is roots[b]. The recursion is depth first, so that everything
// below a block that fits L1 happens in L1. Down to blocks of kLanes elements, butterflies join
// whole vectors and twiddles are broadcast, up to 2^kMaxRadixLog-point transforms in registers; the
// last log2(kLanes) stages work on pairs of vectors and exchange lanes in between.
//
// Ranges. Twiddle products are lazy Shoup products in [0, 2q). `wide` primes, 2^30 < q < 2^31,
// leave no room for more: forward data is in [0, 2q), inverse data canonical. For the others
// (Harvey) forward data is in [0, 4q), inverse data in [0, 2q), which saves one fold a butterfly.
#pragma once

#include "backends/cpu/poly/modular_impl.h"

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

inline constexpr u32 kNarrowBound = u32(1) << 30;

struct Moduli {
  V q, q2;
  explicit Moduli(u32 prime) : q(Vec::set1(prime)), q2(Vec::set1(2 * prime)) {}
};

template <bool dup>
inline V twiddle_product(V y, const VShoup& w, V q) {
  if constexpr (dup)
    return mul_shoup_lazy_dup(y, w, q);
  else
    return mul_shoup_lazy(y, w, q);
}

template <bool wide, bool dup = true>
inline void forward_butterfly(V& x, V& y, const VShoup& w, const Moduli& m) {
  V t = twiddle_product<dup>(y, w, m.q);
  if constexpr (wide) {
    x = fold(x, m.q);
    t = fold(t, m.q);
    y = Vec::add(Vec::sub(x, t), m.q);
  } else {
    x = fold(x, m.q2);
    y = Vec::add(Vec::sub(x, t), m.q2);
  }
  x = Vec::add(x, t);
}

template <bool wide, bool dup = true>
inline void inverse_butterfly(V& x, V& y, const VShoup& w, const Moduli& m) {
  const V bound = wide ? m.q : m.q2;
  const V d = Vec::add(Vec::sub(x, y), bound);
  x = fold(Vec::add(x, y), bound);
  y = twiddle_product<dup>(d, w, m.q);
  if constexpr (wide) y = fold(y, m.q);
}

// How many of the `stages` levels above single vectors one pass takes: all, or the most that leaves
// no single level over.
inline constexpr int pass_stages(int stages) {
  if (stages <= Vec::kMaxRadixLog) return stages;
  const int rest = stages % Vec::kMaxRadixLog;
  return rest == 1 && Vec::kMaxRadixLog > 2 ? Vec::kMaxRadixLog - 1 : Vec::kMaxRadixLog;
}

// `stages` levels of the tree below `node` on len elements; out == in allowed.
template <int stages, bool wide>
inline void forward_pass(u32* out, const u32* in, u64 len, u64 node, const NttArgs& args) {
  constexpr int points = 1 << stages;
  const Moduli m(args.q);
  const u64 step = len >> stages;
  VShoup w[points];
#pragma GCC unroll 8
  for (int s = 0; s < stages; ++s)
#pragma GCC unroll 8
    for (int i = 0; i < 1 << s; ++i) w[(1 << s) + i] = broadcast(args.roots[(node << s) + u64(i)]);
  for (u64 j = 0; j < step; j += Vec::kLanes) {
    V x[points];
#pragma GCC unroll 8
    for (int k = 0; k < points; ++k) x[k] = Vec::load(in + j + u64(k) * step);
#pragma GCC unroll 8
    for (int s = 0; s < stages; ++s)
#pragma GCC unroll 8
      for (int k = 0; k < points / 2; ++k) {
        const int half = points >> (s + 1), block = k / half, i = 2 * half * block + k % half;
        forward_butterfly<wide>(x[i], x[i + half], w[(1 << s) + block], m);
      }
#pragma GCC unroll 8
    for (int k = 0; k < points; ++k) Vec::store(out + j + u64(k) * step, x[k]);
  }
}

// Inverse of forward_pass. `last` at the root: its last stage multiplies by args.scale too.
template <int stages, bool wide, bool last>
inline void inverse_pass(u32* out, u64 len, u64 node, const InttArgs& args) {
  constexpr int points = 1 << stages;
  const Moduli m(args.q);
  const u64 step = len >> stages;
  VShoup w[points];
#pragma GCC unroll 8
  for (int s = 0; s < stages; ++s)
#pragma GCC unroll 8
    for (int i = 0; i < 1 << s; ++i) w[(1 << s) + i] = broadcast(args.roots[(node << s) + u64(i)]);
  const VShoup scale = broadcast(args.scale), scale_root = broadcast(args.scale_root);
  const V shift = Vec::set1(args.shift);
  for (u64 j = 0; j < step; j += Vec::kLanes) {
    V x[points];
#pragma GCC unroll 8
    for (int k = 0; k < points; ++k) x[k] = Vec::load(out + j + u64(k) * step);
#pragma GCC unroll 8
    for (int s = stages - 1; s >= (last ? 1 : 0); --s)
#pragma GCC unroll 8
      for (int k = 0; k < points / 2; ++k) {
        const int half = points >> (s + 1), block = k / half, i = 2 * half * block + k % half;
        inverse_butterfly<wide>(x[i], x[i + half], w[(1 << s) + block], m);
      }
    if constexpr (last) {
#pragma GCC unroll 8
      for (int k = 0; k < points / 2; ++k) {
        const V a = x[k], b = x[k + points / 2];
        // sum and difference are any words below 2^32
        x[k] = add_mod(mul_shoup(Vec::add(a, b), scale, m.q), shift, m.q);
        const V d = Vec::add(Vec::sub(a, b), wide ? m.q : m.q2);
        x[k + points / 2] = add_mod(mul_shoup(d, scale_root, m.q), shift, m.q);
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < points; ++k) Vec::store(out + j + u64(k) * step, x[k]);
  }
}

// Stages t, t/2, ..., 1 inside `vectors` consecutive vectors; node: of the first one. Stage by
// stage over all pairs, for the sake of independent work.
template <u32 t, int vectors, bool wide>
inline void forward_lanes(V* x, u64 node, const NttArgs& args, const Moduli& m) {
  if constexpr (t > 0) {
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k += 2) {
      VShoup w;
      Vec::split<t>(x[k], x[k + 1]);
      const u64 first = node + u64(k) * (Vec::kLanes / 2 / t);
      Vec::load_twiddles<t, false>(args.roots + first, w.value, w.quotient);
      forward_butterfly<wide, (t > 1)>(x[k], x[k + 1], w, m);
    }
    forward_lanes<t / 2, vectors, wide>(x, 2 * node, args, m);
  }
}

template <u32 t, int vectors, bool wide>
inline void inverse_lanes(V* x, u64 node, const InttArgs& args, const Moduli& m) {
  if constexpr (t > 0) {
    inverse_lanes<t / 2, vectors, wide>(x, 2 * node, args, m);
#pragma GCC unroll 4
    for (int k = 0; k < vectors; k += 2) {
      VShoup w;
      const u64 first = node + u64(k) * (Vec::kLanes / 2 / t);
      Vec::load_twiddles<t, true>(args.roots + first, w.value, w.quotient);
      inverse_butterfly<wide, (t > 1)>(x[k], x[k + 1], w, m);
      Vec::merge<t>(x[k], x[k + 1]);
    }
  }
}

template <bool wide>
inline V finish_forward(V x, u64 at, const NttArgs& args, const VShoup& scale, const Moduli& m) {
  if constexpr (!wide) x = fold(x, m.q2);
  x = fold(x, m.q);
  if (args.tail) x = add_mod(x, mul_shoup(Vec::load(args.tail + at), scale, m.q), m.q);
  if (args.addend) x = add_mod(x, Vec::load(args.addend + at), m.q);
  return x;
}

// The bottom of the tree, 2^stages vectors at offset `at`, all in registers.
template <int stages, bool wide>
inline void forward_leaf(const u32* in, u64 at, u64 node, const NttArgs& args) {
  constexpr int points = 1 << stages;
  const Moduli m(args.q);
  V x[points];
#pragma GCC unroll 8
  for (int k = 0; k < points; ++k) x[k] = Vec::load(in + u32(k) * Vec::kLanes);
#pragma GCC unroll 8
  for (int s = 0; s < stages; ++s)
#pragma GCC unroll 8
    for (int k = 0; k < points / 2; ++k) {
      const int half = points >> (s + 1), block = k / half, i = 2 * half * block + k % half;
      const VShoup w = broadcast(args.roots[(node << s) + u64(block)]);
      forward_butterfly<wide>(x[i], x[i + half], w, m);
    }
  forward_lanes<Vec::kLanes / 2, points, wide>(x, node << stages, args, m);
#pragma GCC unroll 4
  for (int k = 0; k < points; k += 2) Vec::join(x[k], x[k + 1]);
  const VShoup scale = broadcast(args.tail_scale);
#pragma GCC unroll 8
  for (int k = 0; k < points; ++k) {
    const u64 i = at + u32(k) * Vec::kLanes;
    Vec::store(args.out + i, finish_forward<wide>(x[k], i, args, scale, m));
  }
}

template <int stages, bool wide>
inline void inverse_leaf(u64 at, u64 node, const InttArgs& args) {
  constexpr int points = 1 << stages;
  const Moduli m(args.q);
  V x[points];
#pragma GCC unroll 8
  for (int k = 0; k < points; ++k) x[k] = Vec::load(args.in + at + u32(k) * Vec::kLanes);
#pragma GCC unroll 4
  for (int k = 0; k < points; k += 2) Vec::unjoin(x[k], x[k + 1]);
  inverse_lanes<Vec::kLanes / 2, points, wide>(x, node << stages, args, m);
#pragma GCC unroll 8
  for (int s = stages - 1; s >= 0; --s)
#pragma GCC unroll 8
    for (int k = 0; k < points / 2; ++k) {
      const int half = points >> (s + 1), block = k / half, i = 2 * half * block + k % half;
      const VShoup w = broadcast(args.roots[(node << s) + u64(block)]);
      inverse_butterfly<wide>(x[i], x[i + half], w, m);
    }
#pragma GCC unroll 8
  for (int k = 0; k < points; ++k) Vec::store(args.out + at + u32(k) * Vec::kLanes, x[k]);
}

// stages: levels of the tree between this block and single vectors; at: its offset in the row.
template <bool wide>
void forward_tree(const u32* in, u64 at, int stages, u64 node, const NttArgs& args) {
  const u64 len = u64(Vec::kLanes) << stages;
  const int now = pass_stages(stages);
  if (now == stages) {
    if constexpr (Vec::kMaxRadixLog >= 3)
      if (now == 3) return forward_leaf<3, wide>(in, at, node, args);
    return now == 2 ? forward_leaf<2, wide>(in, at, node, args)
                    : forward_leaf<1, wide>(in, at, node, args);
  }
  if constexpr (Vec::kMaxRadixLog >= 3)
    if (now == 3) forward_pass<3, wide>(args.out + at, in, len, node, args);
  if (now == 2) forward_pass<2, wide>(args.out + at, in, len, node, args);
  if (now == 1) forward_pass<1, wide>(args.out + at, in, len, node, args);
  const u64 child = len >> now;
  for (u64 k = 0; k < u64(1) << now; ++k)
    forward_tree<wide>(args.out + at + k * child, at + k * child, stages - now, (node << now) + k,
                       args);
}

// The root is never a leaf, because it scales. Vector paths have two levels at least
// (kMinVectorRow).
template <bool wide, bool root>
void inverse_tree(u64 at, int stages, u64 node, const InttArgs& args) {
  const u64 len = u64(Vec::kLanes) << stages;
  int now = pass_stages(stages);
  if (!root && now == stages) {
    if constexpr (Vec::kMaxRadixLog >= 3)
      if (now == 3) return inverse_leaf<3, wide>(at, node, args);
    return now == 2 ? inverse_leaf<2, wide>(at, node, args) : inverse_leaf<1, wide>(at, node, args);
  }
  if (now == stages) {  // a root without leaves: leave one level for them, where there is one
    now = 1;
    if (stages == 1)
      for (u64 i = 0; i < len; ++i) args.out[i] = args.in[i];
  }
  const u64 child = len >> now;
  for (u64 k = 0; stages > now && k < u64(1) << now; ++k)
    inverse_tree<wide, false>(at + k * child, stages - now, (node << now) + k, args);
  if constexpr (Vec::kMaxRadixLog >= 3)
    if (now == 3) inverse_pass<3, wide, root>(args.out + at, len, node, args);
  if (now == 2) inverse_pass<2, wide, root>(args.out + at, len, node, args);
  if (now == 1) inverse_pass<1, wide, root>(args.out + at, len, node, args);
}

inline void ntt_row(const NttArgs& args) {
  const int stages = static_cast<int>(args.log_n - Vec::kLogLanes);
  if (args.q < kNarrowBound)
    forward_tree<false>(args.in, 0, stages, 1, args);
  else
    forward_tree<true>(args.in, 0, stages, 1, args);
}

inline void intt_row(const InttArgs& args) {
  const int stages = static_cast<int>(args.log_n - Vec::kLogLanes);
  if (args.q < kNarrowBound)
    inverse_tree<false, true>(0, stages, 1, args);
  else
    inverse_tree<true, true>(0, stages, 1, args);
}

inline constexpr NttTable kNtt = {ntt_row, intt_row};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
