// The three components of a product and what is added to it, of simpler operations.
#pragma once

#include <algorithm>

#include "device/poly/compose/workspace.h"

namespace crenel::device::compose {

/// The same view: what is made of both is a square.
inline bool same(const PolyView<const u32>& a, const PolyView<const u32>& b) {
  return a.data == b.data && a.component_stride == b.component_stride &&
         a.batch_stride == b.batch_stride;
}

/// f(sum with its addends added up), where there are several: kernels that take part in a product
/// read one.
template <class F>
void with_one_addend(PolyKernels& kernels, Stream& stream, const ProductSum& sum, const F& f) {
  if (sum.addends.size() < 2) return f(sum);
  const PolyView<const u32>& first = sum.addends[0];
  const Temporary one(stream, first.shape, first.limbs, Domain::eval);
  kernels.linear_combination(stream, one.view(), sum.addends, sum.factors, nullptr);
  LimbScalars factor;
  std::fill_n(factor.low, first.limbs.size(), 1);
  std::fill_n(factor.high, first.limbs.size(), 1);
  const PolyView<const u32> added = one.view();
  f(ProductSum{sum.doubled, sum.constant, std::span(&added, 1), std::span(&factor, 1)});
}

/// The last component of product_sum, alone.
void product_third(PolyKernels& kernels, Stream& stream, const PolyView<u32>& out,
                   const PolyView<const u32>& a, const PolyView<const u32>& b,
                   const ProductSum& sum);

/// PolyKernels::product_sum, unchecked.
void product_sum(PolyKernels& kernels, Stream& stream, const PolyView<u32>& out,
                 const PolyView<const u32>& a, const PolyView<const u32>& b, const ProductSum& sum);

}  // namespace crenel::device::compose
