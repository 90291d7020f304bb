#include "backends/ref/poly/kernels.h"
#include "crenel/core/watch.h"

namespace crenel::backend::ref {
namespace {

// f(batch, component, limb) for every limb of v.
template <class View, class F>
void for_each_limb(const View& v, F f) {
  for (u32 b = 0; b < v.shape.batch; ++b)
    for (u32 c = 0; c < v.shape.components; ++c)
      for (u32 l = 0; l < v.limbs.size(); ++l) {
        watch::point();
        f(b, c, l);
      }
}

// The limb of v that serves (b, c, l) when axes of size 1 are broadcast.
template <class View>
auto* broadcast_limb(const View& v, u32 b, u32 c, u32 l) {
  return v.limb(v.shape.batch == 1 ? 0 : b, v.shape.components == 1 ? 0 : c, l);
}

u32 scalar(const LimbScalars& s, u32 l, u64 i, u64 n) { return i < n / 2 ? s.low[l] : s.high[l]; }

}  // namespace

void RefPolyKernels::do_add(Stream&, View out, ConstView a, ConstView b) {
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const u32 q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = plus(a.limb(n, c, l)[i], broadcast_limb(b, n, c, l)[i], q);
  });
}

void RefPolyKernels::do_sub(Stream&, View out, ConstView a, ConstView b) {
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const u32 q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = residue(
          static_cast<i128>(a.limb(n, c, l)[i]) - static_cast<i128>(broadcast_limb(b, n, c, l)[i]),
          q);
  });
}

void RefPolyKernels::do_neg(Stream&, View out, ConstView a) {
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = residue(-static_cast<i128>(a.limb(n, c, l)[i]), prime(out.limbs, l));
  });
}

void RefPolyKernels::do_mul(Stream&, View out, ConstView a, ConstView b) {
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const u32 q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = times(a.limb(n, c, l)[i], broadcast_limb(b, n, c, l)[i], q);
  });
}

void RefPolyKernels::do_mul_add(Stream&, View out, ConstView a, ConstView b) {
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const u32 q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i) {
      u32& x = out.limb(n, c, l)[i];
      x = plus(x, times(a.limb(n, c, l)[i], broadcast_limb(b, n, c, l)[i], q), q);
    }
  });
}

void RefPolyKernels::do_mul_scalar(Stream&, View out, ConstView a, const Scalars& scalars) {
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const u32 q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = times(a.limb(n, c, l)[i], scalar(scalars, l, i, out.ring_dim()), q);
  });
}

void RefPolyKernels::do_mul_add_scalar(Stream&, View out, ConstView a, const Scalars& scalars) {
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const u32 q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i) {
      u32& x = out.limb(n, c, l)[i];
      x = plus(x, times(a.limb(n, c, l)[i], scalar(scalars, l, i, out.ring_dim()), q), q);
    }
  });
}

void RefPolyKernels::do_add_scalar(Stream&, View out, ConstView a, const Scalars& scalars) {
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const u32 q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = plus(a.limb(n, c, l)[i], scalar(scalars, l, i, out.ring_dim()), q);
  });
}

}  // namespace crenel::backend::ref
