// Transforms and automorphisms.
#include <algorithm>

#include "backends/cpu/parallel.h"
#include "backends/cpu/poly/kernels.h"
#include "backends/cpu/poly/permutation.h"

namespace crenel::backend::cpu {

CpuPolyKernels::CpuPolyKernels(std::shared_ptr<const ring::Ring> ring, Isa isa)
    : PolyKernels(std::move(ring)),
      isa_(isa_table(this->ring().ring_dim() < kMinVectorRow ? Isa::scalar : isa)) {
  for (u32 id = 0; id < this->ring().prime_count(); ++id) {
    const auto& m = this->ring().modulus(id);
    const auto constant = [&](u32 value) { return math::make_shoup<u32>(value, m.q); };
    primes_.push_back({m.q, m.q_inv, constant(1 % m.q), constant(m.r), constant(m.r2),
                       constant(math::mul_mod<u32>(m.r2, m.r, m))});
  }
}

void CpuPolyKernels::forward_row(u32* out, const u32* in, u32 id, const u32* tail, Shoup tail_scale,
                                 const u32* addend) const {
  isa_.ntt->ntt({out, in, ring().log_n(), prime(id).q, ring().prime(id).roots.data(), tail,
                 tail_scale, addend});
}

void CpuPolyKernels::inverse_row(u32* out, const u32* in, u32 id, Shoup scale, Shoup scale_root,
                                 u32 shift) const {
  isa_.ntt->intt({out, in, ring().log_n(), prime(id).q, ring().prime(id).inverse_roots.data(),
                  scale, scale_root, shift});
}

void CpuPolyKernels::do_ntt(Stream&, View out, ConstView in) {
  const u32 components = out.shape.components, polys = out.shape.polys();
  // limb-major: transforms modulo the same prime share its twiddles in cache
  parallel_for(
      u64(polys) * out.limbs.size(), 16 * out.words(),
      [&](u64 i) {
        const u32 l = static_cast<u32>(i / polys), poly = static_cast<u32>(i % polys);
        const u32 b = poly / components, c = poly % components;
        forward_row(out.limb(b, c, l), in.limb(b, c, l), out.limbs[l]);
      },
      std::min<u64>(polys, 4));
}

void CpuPolyKernels::do_intt(Stream&, View out, ConstView in) {
  const u32 components = out.shape.components, polys = out.shape.polys();
  parallel_for(
      u64(polys) * out.limbs.size(), 16 * out.words(),
      [&](u64 i) {
        const u32 l = static_cast<u32>(i / polys), poly = static_cast<u32>(i % polys);
        const u32 b = poly / components, c = poly % components, id = out.limbs[l];
        const auto& t = ring().prime(id);
        const u32 scale_root =
            math::mul_mod<u32>(t.n_inv.value, t.inverse_roots[1].value, t.modulus);
        inverse_row(out.limb(b, c, l), in.limb(b, c, l), id, t.n_inv, shoup(scale_root, id), 0);
      },
      std::min<u64>(polys, 4));
}

void CpuPolyKernels::do_automorphism(Stream& stream, View out, ConstView in, u64 element) {
  permute_rows(stream, out, in, element, false);
}

void CpuPolyKernels::do_automorphism_add(Stream& stream, View out, ConstView in, u64 element,
                                         const ConstView* addend) {
  permute_rows(stream, out, in, element, true, addend);
}

CpuPolyKernels::Permutation CpuPolyKernels::permutation(Stream& stream, u64 element,
                                                        bool inverse) const {
  return Permutation(stream, element, ring().log_n(), isa_.fused->lanes, inverse);
}

namespace {

// Coefficient form: a_i goes to i * element mod 2N, with a sign beyond N.
void permute_coefficients(u32* out, const u32* in, u64 n, u64 element, u32 q, bool add_to) {
  for (u64 i = 0, at = 0; i < n; ++i, at = (at + element) & (2 * n - 1)) {
    const u32 x = at < n ? in[i] : math::neg_mod<u32>(in[i], q);
    u32& y = out[at & (n - 1)];
    y = add_to ? math::add_mod<u32>(y, x, q) : x;
  }
}

}  // namespace

void CpuPolyKernels::permute_rows(Stream& stream, View out, ConstView in, u64 element, bool add_to,
                                  const ConstView* addend) const {
  const u64 n = out.ring_dim(), limbs = out.limbs.size(), components = out.shape.components;
  const bool eval = out.domain == Domain::eval;
  const Permutation map = permutation(stream, eval ? element : 1, false);
  parallel_for(limbs * out.shape.polys(), 2 * out.words(), [&](u64 i) {
    const u32 l = static_cast<u32>(i % limbs), poly = static_cast<u32>(i / limbs);
    const u32 b = poly / static_cast<u32>(components), c = poly % static_cast<u32>(components);
    u32* to = out.limb(b, c, l);
    const u32 q = prime(out.limbs[l]).q;
    const auto row = [&](const u32* from) {
      if (!eval)
        permute_coefficients(to, from, n, element, q, add_to);
      else if (add_to)
        isa_.fused->permute_add(to, from, n, map.view(), q);
      else
        isa_.fused->permute(to, from, n, map.view());
    };
    row(in.limb(b, c, l));
    if (addend != nullptr && c < addend->shape.components) row(addend->limb(b, c, l));
  });
}

}  // namespace crenel::backend::cpu
