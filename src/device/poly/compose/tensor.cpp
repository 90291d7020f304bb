#include "device/poly/kernels.h"

namespace crenel::device {

void PolyKernels::do_tensor(Stream& stream, View out, ConstView a, ConstView b) {
  const ConstView a0 = a.components(0, 1), a1 = a.components(1, 1);
  const ConstView b0 = b.components(0, 1), b1 = b.components(1, 1);
  mul(stream, out.components(0, 1), a0, b0);
  mul(stream, out.components(1, 1), a0, b1);
  mul_add(stream, out.components(1, 1), a1, b0);
  mul(stream, out.components(2, 1), a1, b1);
}

void PolyKernels::do_tensor_square(Stream& stream, View out, ConstView a, const Scalars* doubled) {
  tensor(stream, out, a, a);
  if (doubled == nullptr) return;
  add(stream, out, out, out);
  add_scalar(stream, out.components(0, 1), out.components(0, 1), *doubled);
}

}  // namespace crenel::device
