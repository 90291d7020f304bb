#include <vector>

#include "backends/ref/poly/kernels.h"
#include "crenel/core/watch.h"

namespace crenel::backend::ref {

// Straight from the centred definition: `half`, `offset` and `lazy_terms` of the table are not
// used.
void RefPolyKernels::do_base_convert(Stream&, View out, ConstView in,
                                     const Prepared<rns::BaseConversion>& table) {
  const u32 sources = in.limbs.size();
  std::vector<i128> y(sources);
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c)
      for (u64 k = 0; k < out.ring_dim(); ++k) {
        watch::point();
        for (u32 j = 0; j < sources; ++j) {
          const u32 d = prime(in.limbs, j);
          y[j] = times(in.limb(b, c, j)[k], table->source_scale[j].value, d);
          if (y[j] > static_cast<i128>(d / 2)) y[j] -= d;
        }
        i128 u = 0;  // floor, of negative numbers as well
        for (u32 j = 0; j < table->reciprocal.size(); ++j) u += y[j] * table->reciprocal[j];
        if (table->rounded()) u = (u + (i128(1) << (table->shift - 1))) >> table->shift;
        for (u32 i = 0; i < out.limbs.size(); ++i) {
          const u32 p = prime(out.limbs, i);
          u32 sum = table->rounded() ? times(residue(-u, p), table->product[i], p) : 0;
          for (u32 j = 0; j < sources; ++j)
            sum = plus(sum, times(residue(y[j], p), table->matrix[i * sources + j], p), p);
          out.limb(b, c, i)[k] = sum;
        }
      }
}

void RefPolyKernels::do_reduce_signed(Stream&, View out, const i64* values) {
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c) {
      const i64* poly = values + (u64(b) * out.shape.components + c) * out.ring_dim();
      for (u32 l = 0; l < out.limbs.size(); ++l) {
        watch::point();
        for (u64 k = 0; k < out.ring_dim(); ++k)
          out.limb(b, c, l)[k] = residue(poly[k], prime(out.limbs, l));
      }
    }
}

// Chinese remainders: x = sum_j x_j (D/d_j) [(D/d_j)^-1]_{d_j} mod D, then centred.
void RefPolyKernels::do_lift_signed(Stream&, i64* values, ConstView in) {
  const u32 limbs = in.limbs.size();
  u128 product = 1;
  for (u32 l = 0; l < limbs; ++l) product *= prime(in.limbs, l);
  std::vector<u128> idempotent(limbs);
  for (u32 l = 0; l < limbs; ++l) {
    const auto& d = ring().modulus(in.limbs[l]);
    const u128 rest = product / d.q;
    idempotent[l] = rest * math::inverse_mod<u32>(static_cast<u32>(rest % d.q), d);
  }
  for (u32 b = 0; b < in.shape.batch; ++b)
    for (u32 c = 0; c < in.shape.components; ++c) {
      i64* poly = values + (u64(b) * in.shape.components + c) * in.ring_dim();
      watch::point();
      for (u64 k = 0; k < in.ring_dim(); ++k) {
        u128 x = 0;
        for (u32 l = 0; l < limbs; ++l)
          x = (x + in.limb(b, c, l)[k] * idempotent[l] % product) % product;
        poly[k] =
            static_cast<i64>(x > product / 2 ? static_cast<i128>(x) - static_cast<i128>(product)
                                             : static_cast<i128>(x));
      }
    }
}

}  // namespace crenel::backend::ref
