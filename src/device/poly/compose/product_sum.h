// The three components of a product and what is added to it, of simpler operations.
#pragma once

#include "device/poly/kernels.h"

namespace crenel::device::compose {

/// The same view: what is made of both is a square.
inline bool same(const PolyView<const u32>& a, const PolyView<const u32>& b) {
  return a.data == b.data && a.component_stride == b.component_stride &&
         a.batch_stride == b.batch_stride;
}

/// PolyKernels::product_sum, unchecked.
void product_sum(PolyKernels& kernels, Stream& stream, const PolyView<u32>& out,
                 const PolyView<const u32>& a, const PolyView<const u32>& b, const ProductSum& sum);

}  // namespace crenel::device::compose
