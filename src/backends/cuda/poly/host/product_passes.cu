#include <algorithm>

#include "backends/cuda/poly/host/product_passes.h"
#include "device/poly/compose/product_sum.h"

namespace crenel::backend::cuda {
namespace {

using device::LimbScalars;
using device::ProductSum;
using ConstView = ring::PolyView<const u32>;

bool has_third(const ProductSum& sum) {
  return !sum.addends.empty() && sum.addends[0].shape.components == 3;
}

// y and the third component of the one addend are read where they lie.
template <bool Square>
ProductRows<Square> product_rows(const ring::Ring& ring, const ConstView& b,
                                 const ProductSum& sum) {
  ProductRows<Square> rows = {};
  rows.y = poly(b.components(1, 1));
  rows.doubled = sum.doubled ? 1 : 0;
  if (!has_third(sum)) return rows;
  rows.z = poly(sum.addends[0].components(2, 1));
  for (u32 l = 0; l < b.limbs.size(); ++l) {
    const math::Modulus<u32>& m = ring.modulus(b.limbs[l]);
    rows.factor[l] = math::mul_mod<u32>(sum.factors[0].low[l], m.r, m);
  }
  return rows;
}

template <bool Square>
ProductSwitch<Square> product_switch(const ring::Ring& ring, const ConstView& a, const ConstView& b,
                                     const LimbScalars& lift, const ProductSum& sum) {
  const ProductRows<Square> rows = product_rows<Square>(ring, b, sum);
  ProductSwitch<Square> last = {};
  last.x = poly(a);
  last.y = poly(b);
  last.z = rows.z;
  last.limbs = a.limbs.size();
  last.doubled = rows.doubled;
  std::copy_n(rows.factor, last.limbs, last.factor);
  for (u32 l = 0; l < last.limbs; ++l) {
    const math::Modulus<u32>& m = ring.modulus(a.limbs[l]);
    const auto times = [&](u32 x, u32 y) { return math::mul_mod<u32>(x, y, m); };
    const u32 p = lift.low[l];
    last.lift[l] = times(sum.doubled ? math::add_mod<u32>(p, p, m.q) : p, m.r);
    if (sum.constant == nullptr) continue;
    last.low[l] = times(p, sum.constant->low[l]);
    last.high[l] = times(p, sum.constant->high[l]);
  }
  return last;
}

bool is_square(const ConstView& a, const ConstView& b, const ProductSum& sum) {
  return device::compose::same(a, b) && !has_third(sum);
}

}  // namespace

bool is_real(const ConstView* addend, const LimbScalars* factor) {
  return addend == nullptr || factor == nullptr ||
         std::equal(factor->low, factor->low + addend->limbs.size(), factor->high);
}

bool has_passes(const ProductSum& sum, u32 limbs) {
  return sum.addends.size() <= 1 &&
         std::all_of(sum.factors.begin(), sum.factors.end(), [&](const LimbScalars& factor) {
           return std::equal(factor.low, factor.low + limbs, factor.high);
         });
}

RowSource rows_of(const ring::Ring& ring, const device::SourcesOf& of) {
  if (!of.product()) return PlainRows();
  if (is_square(of.in, of.other, of.sum)) return product_rows<true>(ring, of.other, of.sum);
  return product_rows<false>(ring, of.other, of.sum);
}

ConstView first_rows(const device::SourcesOf& of) {
  return of.product() ? of.in.components(1, 1) : of.in;
}

KeySwitchForm switch_of(const ring::Ring& ring, const ConstView& a, const ConstView& b,
                        const LimbScalars& lift, const ProductSum& sum) {
  if (is_square(a, b, sum)) return product_switch<true>(ring, a, b, lift, sum);
  return product_switch<false>(ring, a, b, lift, sum);
}

LimbScalars lifted_factor(const ring::Ring& ring, const rns::LimbSet& limbs,
                          const LimbScalars& lift, const LimbScalars& factor) {
  LimbScalars both = lift;
  for (u32 l = 0; l < limbs.size(); ++l)
    both.low[l] = math::mul_mod<u32>(lift.low[l], factor.low[l], ring.modulus(limbs[l]));
  return both;
}

}  // namespace crenel::backend::cuda
