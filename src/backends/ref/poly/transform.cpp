#include <vector>

#include "backends/ref/poly/kernels.h"
#include "device/poly/checks.h"

namespace crenel::backend::ref {
namespace {

u64 reverse_bits(u64 i, u32 bits) {
  u64 r = 0;
  for (u32 b = 0; b < bits; ++b)
    if (i >> b & 1) r |= u64(1) << (bits - 1 - b);
  return r;
}

// 1, base, base^2, ..., base^(n-1).
template <class W>
std::vector<W> powers(W base, u64 n, W q) {
  std::vector<W> p(n, 1);
  for (u64 i = 1; i < n; ++i) p[i] = times<W>(p[i - 1], base, q);
  return p;
}

// Cyclic transform X_k = sum_j x_j w^(jk), natural order on both sides, textbook radix 2: transform
// the even and the odd elements, then combine. `w_powers` holds the powers of the n-th root w.
template <class W>
void cyclic_transform(std::vector<W>& x, const std::vector<W>& w_powers, u32 log_n, W q) {
  const u64 n = x.size();
  for (u64 i = 0; i < n; ++i)
    if (const u64 j = reverse_bits(i, log_n); i < j) std::swap(x[i], x[j]);
  for (u64 size = 2; size <= n; size *= 2)
    for (u64 start = 0; start < n; start += size)
      for (u64 k = 0; k < size / 2; ++k) {
        const W even = x[start + k];
        const W odd = times<W>(x[start + k + size / 2], w_powers[k * (n / size)], q);
        x[start + k] = plus<W>(even, odd, q);
        x[start + k + size / 2] = plus<W>(even, static_cast<W>(q - odd), q);
      }
}

// a(psi^(2k+1)) = sum_j (a_j psi^j) (psi^2)^(jk): twist, then a cyclic transform.
template <class W>
void evaluate(W* out, const W* in, const ring::PrimeTables<W>& t, u32 log_n) {
  const W q = t.modulus.q;
  const u64 n = u64(1) << log_n;
  const std::vector<W> psi = powers<W>(t.psi, n, q);
  const std::vector<W> w = powers<W>(times<W>(t.psi, t.psi, q), n, q);
  std::vector<W> x(n);
  for (u64 j = 0; j < n; ++j) x[j] = times<W>(in[j], psi[j], q);
  cyclic_transform<W>(x, w, log_n, q);
  for (u64 i = 0; i < n; ++i) out[i] = x[reverse_bits(i, log_n)];
}

// The inverse, step by step backwards.
template <class W>
void interpolate(W* out, const W* in, const ring::PrimeTables<W>& t, u32 log_n) {
  const W q = t.modulus.q;
  const u64 n = u64(1) << log_n;
  const std::vector<W> psi = powers<W>(t.psi_inv, n, q);
  const std::vector<W> w = powers<W>(times<W>(t.psi_inv, t.psi_inv, q), n, q);
  std::vector<W> x(n);
  for (u64 i = 0; i < n; ++i) x[reverse_bits(i, log_n)] = in[i];
  cyclic_transform<W>(x, w, log_n, q);
  for (u64 j = 0; j < n; ++j) out[j] = times<W>(times<W>(x[j], psi[j], q), t.n_inv.value, q);
}

// X^i -> X^(i e), X^N = -1.
template <class W>
void substitute(W* out, const W* in, u64 element, u64 n, W q) {
  for (u64 i = 0; i < n; ++i) {
    const u64 exponent = i * element % (2 * n);
    const W value = in[i];
    if (exponent < n)
      out[exponent] = value;
    else
      out[exponent - n] = value == 0 ? W(0) : static_cast<W>(q - value);
  }
}

// a(X^e) at psi^(2k+1) is a at psi^(e (2k+1)).
template <class W>
void permute(W* out, const W* in, u64 element, u32 log_n) {
  const u64 n = u64(1) << log_n;
  for (u64 k = 0; k < n; ++k) {
    const u64 exponent = (2 * k + 1) * element % (2 * n);
    out[reverse_bits(k, log_n)] = in[reverse_bits((exponent - 1) / 2, log_n)];
  }
}

}  // namespace

template <class W>
void RefKernels<W>::ntt(Stream&, View out, ConstView in) {
  device::checks::transform<W>("ntt", this->ring(), out, in, Domain::coeff, Domain::eval);
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c)
      for (u32 l = 0; l < out.limbs.size(); ++l)
        evaluate<W>(out.limb(b, c, l), in.limb(b, c, l), this->ring().prime(out.limbs[l]),
                    this->ring().log_n());
}

template <class W>
void RefKernels<W>::intt(Stream&, View out, ConstView in) {
  device::checks::transform<W>("intt", this->ring(), out, in, Domain::eval, Domain::coeff);
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c)
      for (u32 l = 0; l < out.limbs.size(); ++l)
        interpolate<W>(out.limb(b, c, l), in.limb(b, c, l), this->ring().prime(out.limbs[l]),
                       this->ring().log_n());
}

template <class W>
void RefKernels<W>::automorphism(Stream&, View out, ConstView in, u64 element) {
  device::checks::automorphism<W>("automorphism", this->ring(), out, in, element);
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c)
      for (u32 l = 0; l < out.limbs.size(); ++l) {
        W* to = out.limb(b, c, l);
        const W* from = in.limb(b, c, l);
        if (in.domain == Domain::coeff)
          substitute<W>(to, from, element, out.ring_dim(), prime(out.limbs, l));
        else
          permute<W>(to, from, element, this->ring().log_n());
      }
}

#define CRENEL_INSTANTIATE(W)                                  \
  template void RefKernels<W>::ntt(Stream&, View, ConstView);  \
  template void RefKernels<W>::intt(Stream&, View, ConstView); \
  template void RefKernels<W>::automorphism(Stream&, View, ConstView, u64);
CRENEL_INSTANTIATE(u32)
CRENEL_INSTANTIATE(u64)
#undef CRENEL_INSTANTIATE

}  // namespace crenel::backend::ref
