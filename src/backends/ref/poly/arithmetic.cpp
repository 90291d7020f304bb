#include "backends/ref/poly/kernels.h"
#include "device/poly/checks.h"

namespace crenel::backend::ref {
namespace {

// f(batch, component, limb) for every limb of v.
template <class View, class F>
void for_each_limb(const View& v, F f) {
  for (u32 b = 0; b < v.shape.batch; ++b)
    for (u32 c = 0; c < v.shape.components; ++c)
      for (u32 l = 0; l < v.limbs.size(); ++l) f(b, c, l);
}

// The limb of v that serves (b, c, l) when axes of size 1 are broadcast.
template <class View>
auto* broadcast_limb(const View& v, u32 b, u32 c, u32 l) {
  return v.limb(v.shape.batch == 1 ? 0 : b, v.shape.components == 1 ? 0 : c, l);
}

template <class W>
W scalar(const LimbScalars<W>& s, u32 l, u64 i, u64 n) {
  return i < n / 2 ? s.low[l] : s.high[l];
}

}  // namespace

template <class W>
void RefKernels<W>::add(Stream&, View out, ConstView a, ConstView b) {
  device::checks::binary<W>("add", this->ring(), out, a, b);
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const W q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = plus<W>(a.limb(n, c, l)[i], broadcast_limb(b, n, c, l)[i], q);
  });
}

template <class W>
void RefKernels<W>::sub(Stream&, View out, ConstView a, ConstView b) {
  device::checks::binary<W>("sub", this->ring(), out, a, b);
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const W q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = residue<W>(
          static_cast<i128>(a.limb(n, c, l)[i]) - static_cast<i128>(broadcast_limb(b, n, c, l)[i]),
          q);
  });
}

template <class W>
void RefKernels<W>::neg(Stream&, View out, ConstView a) {
  device::checks::unary<W>("neg", this->ring(), out, a);
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] =
          residue<W>(-static_cast<i128>(a.limb(n, c, l)[i]), prime(out.limbs, l));
  });
}

template <class W>
void RefKernels<W>::mul(Stream&, View out, ConstView a, ConstView b) {
  device::checks::binary<W>("mul", this->ring(), out, a, b);
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const W q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = times<W>(a.limb(n, c, l)[i], broadcast_limb(b, n, c, l)[i], q);
  });
}

template <class W>
void RefKernels<W>::mul_add(Stream&, View out, ConstView a, ConstView b) {
  device::checks::binary<W>("mul_add", this->ring(), out, a, b);
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const W q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i) {
      W& x = out.limb(n, c, l)[i];
      x = plus<W>(x, times<W>(a.limb(n, c, l)[i], broadcast_limb(b, n, c, l)[i], q), q);
    }
  });
}

template <class W>
void RefKernels<W>::mul_scalar(Stream&, View out, ConstView a, const Scalars& scalars) {
  device::checks::unary<W>("mul_scalar", this->ring(), out, a);
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const W q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = times<W>(a.limb(n, c, l)[i], scalar(scalars, l, i, out.ring_dim()), q);
  });
}

template <class W>
void RefKernels<W>::mul_add_scalar(Stream&, View out, ConstView a, const Scalars& scalars) {
  device::checks::unary<W>("mul_add_scalar", this->ring(), out, a);
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const W q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i) {
      W& x = out.limb(n, c, l)[i];
      x = plus<W>(x, times<W>(a.limb(n, c, l)[i], scalar(scalars, l, i, out.ring_dim()), q), q);
    }
  });
}

template <class W>
void RefKernels<W>::add_scalar(Stream&, View out, ConstView a, const Scalars& scalars) {
  device::checks::unary<W>("add_scalar", this->ring(), out, a);
  for_each_limb(out, [&](u32 n, u32 c, u32 l) {
    const W q = prime(out.limbs, l);
    for (u64 i = 0; i < out.ring_dim(); ++i)
      out.limb(n, c, l)[i] = plus<W>(a.limb(n, c, l)[i], scalar(scalars, l, i, out.ring_dim()), q);
  });
}

#define CRENEL_INSTANTIATE(W)                                                            \
  template void RefKernels<W>::add(Stream&, View, ConstView, ConstView);                 \
  template void RefKernels<W>::sub(Stream&, View, ConstView, ConstView);                 \
  template void RefKernels<W>::neg(Stream&, View, ConstView);                            \
  template void RefKernels<W>::mul(Stream&, View, ConstView, ConstView);                 \
  template void RefKernels<W>::mul_add(Stream&, View, ConstView, ConstView);             \
  template void RefKernels<W>::mul_scalar(Stream&, View, ConstView, const Scalars&);     \
  template void RefKernels<W>::mul_add_scalar(Stream&, View, ConstView, const Scalars&); \
  template void RefKernels<W>::add_scalar(Stream&, View, ConstView, const Scalars&);
CRENEL_INSTANTIATE(u32)
CRENEL_INSTANTIATE(u64)
#undef CRENEL_INSTANTIATE

}  // namespace crenel::backend::ref
