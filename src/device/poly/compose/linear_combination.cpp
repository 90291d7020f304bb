#include "device/poly/kernels.h"

namespace crenel::device {

// One scalar a limb for all inputs that are `out` itself, since the first write destroys them.
void PolyKernels::do_linear_combination(Stream& stream, View out, std::span<const ConstView> in,
                                        std::span<const Scalars> scalars, const Scalars* constant) {
  Scalars own;
  bool in_place = false;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (in[k].data != out.data) continue;
    in_place = true;
    for (u32 l = 0; l < out.limbs.size(); ++l) {
      const u32 q = ring().modulus(out.limbs[l]).q;
      own.low[l] = math::add_mod<u32>(own.low[l], scalars[k].low[l], q);
      own.high[l] = math::add_mod<u32>(own.high[l], scalars[k].high[l], q);
    }
  }
  if (in_place)
    mul_scalar(stream, out, out, own);
  else
    mul_scalar(stream, out, in[0], scalars[0]);
  for (std::size_t k = in_place ? 0 : 1; k < in.size(); ++k)
    if (in[k].data != out.data) mul_add_scalar(stream, out, in[k], scalars[k]);
  if (constant != nullptr) add_scalar(stream, out, out, *constant);
}

}  // namespace crenel::device
