#include <vector>

#include "backends/ref/poly/kernels.h"
#include "core/secret_pages.h"
#include "crenel/core/watch.h"

namespace crenel::backend::ref {
namespace {

u64 reverse_bits(u64 i, u32 bits) {
  u64 r = 0;
  for (u32 b = 0; b < bits; ++b)
    if (i >> b & 1) r |= u64(1) << (bits - 1 - b);
  return r;
}

// 1, base, base^2, ..., base^(n-1).
std::vector<u32> powers(u32 base, u64 n, u32 q) {
  std::vector<u32> p(n, 1);
  for (u64 i = 1; i < n; ++i) p[i] = times(p[i - 1], base, q);
  return p;
}

// Cyclic transform X_k = sum_j x_j w^(jk), natural order on both sides, textbook radix 2: transform
// the even and the odd elements, then combine. `w_powers` holds the powers of the n-th root w.
void cyclic_transform(core::SecretVector<u32>& x, const std::vector<u32>& w_powers, u32 log_n,
                      u32 q) {
  const u64 n = x.size();
  for (u64 i = 0; i < n; ++i)
    if (const u64 j = reverse_bits(i, log_n); i < j) std::swap(x[i], x[j]);
  for (u64 size = 2; size <= n; size *= 2) {
    watch::point();
    for (u64 start = 0; start < n; start += size)
      for (u64 k = 0; k < size / 2; ++k) {
        const u32 even = x[start + k];
        const u32 odd = times(x[start + k + size / 2], w_powers[k * (n / size)], q);
        x[start + k] = plus(even, odd, q);
        x[start + k + size / 2] = plus(even, static_cast<u32>(q - odd), q);
      }
  }
}

// a(psi^(2k+1)) = sum_j (a_j psi^j) (psi^2)^(jk): twist, then a cyclic transform.
void evaluate(u32* out, const u32* in, const ring::PrimeTables& t, u32 log_n) {
  const u32 q = t.modulus.q;
  const u64 n = u64(1) << log_n;
  const std::vector<u32> psi = powers(t.psi, n, q);
  const std::vector<u32> w = powers(times(t.psi, t.psi, q), n, q);
  core::SecretVector<u32> x(n);  // what is transformed may be a key
  for (u64 j = 0; j < n; ++j) x[j] = times(in[j], psi[j], q);
  cyclic_transform(x, w, log_n, q);
  for (u64 i = 0; i < n; ++i) out[i] = x[reverse_bits(i, log_n)];
}

// The inverse, step by step backwards.
void interpolate(u32* out, const u32* in, const ring::PrimeTables& t, u32 log_n) {
  const u32 q = t.modulus.q;
  const u64 n = u64(1) << log_n;
  const std::vector<u32> psi = powers(t.psi_inv, n, q);
  const std::vector<u32> w = powers(times(t.psi_inv, t.psi_inv, q), n, q);
  core::SecretVector<u32> x(n);
  for (u64 i = 0; i < n; ++i) x[reverse_bits(i, log_n)] = in[i];
  cyclic_transform(x, w, log_n, q);
  for (u64 j = 0; j < n; ++j) out[j] = times(times(x[j], psi[j], q), t.n_inv.value, q);
}

// X^i -> X^(i e), X^N = -1.
void substitute(u32* out, const u32* in, u64 element, u64 n, u32 q) {
  for (u64 i = 0; i < n; ++i) {
    const u64 exponent = i * element % (2 * n);
    const u32 value = in[i];
    if (exponent < n)
      out[exponent] = value;
    else
      out[exponent - n] = value == 0 ? u32(0) : static_cast<u32>(q - value);
  }
}

// a(X^e) at psi^(2k+1) is a at psi^(e (2k+1)).
void permute(u32* out, const u32* in, u64 element, u32 log_n) {
  const u64 n = u64(1) << log_n;
  for (u64 k = 0; k < n; ++k) {
    const u64 exponent = (2 * k + 1) * element % (2 * n);
    out[reverse_bits(k, log_n)] = in[reverse_bits((exponent - 1) / 2, log_n)];
  }
}

}  // namespace

void RefPolyKernels::do_ntt(Stream&, View out, ConstView in) {
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c)
      for (u32 l = 0; l < out.limbs.size(); ++l) {
        watch::point();
        evaluate(out.limb(b, c, l), in.limb(b, c, l), ring().prime(out.limbs[l]), ring().log_n());
      }
}

void RefPolyKernels::do_intt(Stream&, View out, ConstView in) {
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c)
      for (u32 l = 0; l < out.limbs.size(); ++l) {
        watch::point();
        interpolate(out.limb(b, c, l), in.limb(b, c, l), ring().prime(out.limbs[l]),
                    ring().log_n());
      }
}

void RefPolyKernels::do_automorphism(Stream&, View out, ConstView in, u64 element) {
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c)
      for (u32 l = 0; l < out.limbs.size(); ++l) {
        watch::point();
        u32* to = out.limb(b, c, l);
        const u32* from = in.limb(b, c, l);
        if (in.domain == Domain::coeff)
          substitute(to, from, element, out.ring_dim(), prime(out.limbs, l));
        else
          permute(to, from, element, ring().log_n());
      }
}

}  // namespace crenel::backend::ref
