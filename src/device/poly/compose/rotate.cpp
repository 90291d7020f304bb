#include "device/poly/compose/workspace.h"

namespace crenel::device {

void PolyKernels::do_automorphism_add(Stream& stream, View out, ConstView in, u64 element,
                                      const ConstView* addend) {
  const auto add_rotated = [&](const View& to, const ConstView& v) {
    compose::Temporary rotated(stream, v.shape, v.limbs, v.domain);
    automorphism(stream, rotated.view(), v, element);
    add(stream, to, to, rotated.view());
  };
  add_rotated(out, in);
  if (addend != nullptr) add_rotated(out.components(0, addend->shape.components), *addend);
}

void PolyKernels::do_hoisted_rotate_sum(Stream& stream, View out, ConstView digits, ConstView b,
                                        ConstView a, std::span<const Key> keys,
                                        std::span<const u64> elements, const Scalars& special,
                                        u32 first_digit) {
  compose::clear(stream, out);
  const u32 window = b.limbs.size();
  compose::Temporary product(stream, out.shape, out.limbs, Domain::eval);
  for (std::size_t r = 0; r < elements.size(); ++r) {
    if (elements[r] == 1) {
      const View kept = out.limb_window(0, window);
      mul_add_scalar(stream, kept.components(0, 1), b, special);
      mul_add_scalar(stream, kept.components(1, 1), a, special);
      continue;
    }
    key_multiply(stream, product.view(), digits, keys[r], first_digit);
    mul_add_scalar(stream, product.view().limb_window(0, window).components(0, 1), b, special);
    automorphism_add(stream, out, product.view(), elements[r]);
  }
}

}  // namespace crenel::device
