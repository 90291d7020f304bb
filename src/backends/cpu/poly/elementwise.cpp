// Element-wise operations: rows cut into pieces, so that few long limbs use all threads too.
#include <algorithm>

#include "backends/cpu/parallel.h"
#include "backends/cpu/poly/kernels.h"

namespace crenel::backend::cpu {
namespace {

using View = ring::PolyView<u32>;
using ConstView = ring::PolyView<const u32>;

// Never more than half a limb: a piece has one scalar of LimbScalars.
u64 piece_words(u64 ring_dim) { return std::min<u64>(ring_dim / 2, u64(1) << 14); }

// f(batch, component, limb, first coefficient, coefficients) for every piece of v.
template <class F>
void for_pieces(const View& v, const F& f) {
  const u64 piece = piece_words(v.ring_dim()), pieces = v.ring_dim() / piece;
  const u64 limbs = v.limbs.size(), components = v.shape.components;
  parallel_for(
      v.words() / piece, 2 * v.words(),
      [&](u64 i) {
        const u64 row = i / pieces;
        f(static_cast<u32>(row / limbs / components), static_cast<u32>(row / limbs % components),
          static_cast<u32>(row % limbs), i % pieces * piece, piece);
      },
      4);
}

// The piece of an operand that may be broadcast.
const u32* operand(const ConstView& v, u32 b, u32 c, u32 l, u64 at) {
  return v.limb(v.shape.batch == 1 ? 0 : b, v.shape.components == 1 ? 0 : c, l) + at;
}

}  // namespace

void CpuPolyKernels::do_add(Stream&, View out, ConstView a, ConstView b) {
  for_pieces(out, [&](u32 e, u32 c, u32 l, u64 at, u64 n) {
    isa_.arithmetic->add(out.limb(e, c, l) + at, a.limb(e, c, l) + at, operand(b, e, c, l, at), n,
                         prime(out.limbs[l]).q);
  });
}

void CpuPolyKernels::do_sub(Stream&, View out, ConstView a, ConstView b) {
  for_pieces(out, [&](u32 e, u32 c, u32 l, u64 at, u64 n) {
    isa_.arithmetic->sub(out.limb(e, c, l) + at, a.limb(e, c, l) + at, operand(b, e, c, l, at), n,
                         prime(out.limbs[l]).q);
  });
}

void CpuPolyKernels::do_neg(Stream&, View out, ConstView a) {
  for_pieces(out, [&](u32 e, u32 c, u32 l, u64 at, u64 n) {
    isa_.arithmetic->neg(out.limb(e, c, l) + at, a.limb(e, c, l) + at, n, prime(out.limbs[l]).q);
  });
}

void CpuPolyKernels::do_mul(Stream&, View out, ConstView a, ConstView b) {
  for_pieces(out, [&](u32 e, u32 c, u32 l, u64 at, u64 n) {
    isa_.arithmetic->mul(out.limb(e, c, l) + at, a.limb(e, c, l) + at, operand(b, e, c, l, at), n,
                         prime(out.limbs[l]));
  });
}

void CpuPolyKernels::do_mul_add(Stream&, View out, ConstView a, ConstView b) {
  for_pieces(out, [&](u32 e, u32 c, u32 l, u64 at, u64 n) {
    isa_.arithmetic->mul_add(out.limb(e, c, l) + at, a.limb(e, c, l) + at, operand(b, e, c, l, at),
                             n, prime(out.limbs[l]));
  });
}

void CpuPolyKernels::do_mul_scalar(Stream&, View out, ConstView a, const Scalars& scalars) {
  for_pieces(out, [&](u32 e, u32 c, u32 l, u64 at, u64 n) {
    const u32 id = out.limbs[l];
    const u32 s = at < out.ring_dim() / 2 ? scalars.low[l] : scalars.high[l];
    isa_.arithmetic->mul_scalar(out.limb(e, c, l) + at, a.limb(e, c, l) + at, n, shoup(s, id),
                                prime(id).q);
  });
}

void CpuPolyKernels::do_mul_add_scalar(Stream&, View out, ConstView a, const Scalars& scalars) {
  for_pieces(out, [&](u32 e, u32 c, u32 l, u64 at, u64 n) {
    const u32 id = out.limbs[l];
    const u32 s = at < out.ring_dim() / 2 ? scalars.low[l] : scalars.high[l];
    isa_.arithmetic->mul_add_scalar(out.limb(e, c, l) + at, a.limb(e, c, l) + at, n, shoup(s, id),
                                    prime(id).q);
  });
}

void CpuPolyKernels::do_add_scalar(Stream&, View out, ConstView a, const Scalars& scalars) {
  for_pieces(out, [&](u32 e, u32 c, u32 l, u64 at, u64 n) {
    const u32 s = at < out.ring_dim() / 2 ? scalars.low[l] : scalars.high[l];
    isa_.arithmetic->add_scalar(out.limb(e, c, l) + at, a.limb(e, c, l) + at, n, s,
                                prime(out.limbs[l]).q);
  });
}

void CpuPolyKernels::do_reduce_signed(Stream&, View out, const i64* values) {
  const u64 n = out.ring_dim();
  for_pieces(out, [&](u32 e, u32 c, u32 l, u64 at, u64 count) {
    const i64* from = values + (u64(e) * out.shape.components + c) * n + at;
    isa_.arithmetic->reduce_signed(out.limb(e, c, l) + at, from, count, prime(out.limbs[l]));
  });
}

void CpuPolyKernels::do_tensor(Stream&, View out, ConstView a, ConstView b) {
  for_pieces(out.components(0, 1), [&](u32 e, u32, u32 l, u64 at, u64 n) {
    u32* const o[3] = {out.limb(e, 0, l) + at, out.limb(e, 1, l) + at, out.limb(e, 2, l) + at};
    const u32* const x[2] = {a.limb(e, 0, l) + at, a.limb(e, 1, l) + at};
    const u32* const y[2] = {b.limb(e, 0, l) + at, b.limb(e, 1, l) + at};
    isa_.fused->tensor(o, x, y, n, prime(out.limbs[l]));
  });
}

void CpuPolyKernels::do_tensor_square(Stream&, View out, ConstView a, const Scalars* doubled) {
  for_pieces(out.components(0, 1), [&](u32 e, u32, u32 l, u64 at, u64 n) {
    u32* const o[3] = {out.limb(e, 0, l) + at, out.limb(e, 1, l) + at, out.limb(e, 2, l) + at};
    const u32* const x[2] = {a.limb(e, 0, l) + at, a.limb(e, 1, l) + at};
    const Prime& p = prime(out.limbs[l]);
    if (doubled == nullptr) return isa_.fused->tensor_square(o, x, n, p);
    const u32 added = at < out.ring_dim() / 2 ? doubled->low[l] : doubled->high[l];
    isa_.fused->tensor_square_doubled(o, x, n, added, p);
  });
}

}  // namespace crenel::backend::cpu
