#include "device/poly/checks.h"
#include "device/poly/compose/workspace.h"

namespace crenel::device {

template <class W>
void Kernels<W>::automorphism_add(Stream& stream, View out, ConstView in, u64 element,
                                  const ConstView* addend) {
  checks::automorphism_add<W>(ring(), out, in, element, addend);
  const auto add_rotated = [&](const View& to, const ConstView& v) {
    compose::Temporary<W> rotated(stream, v.shape, v.limbs, v.domain);
    automorphism(stream, rotated.view(), v, element);
    add(stream, to, to, rotated.view());
  };
  add_rotated(out, in);
  if (addend != nullptr) add_rotated(out.components(0, addend->shape.components), *addend);
}

template <class W>
void Kernels<W>::hoisted_rotate_sum(Stream& stream, View out, ConstView digits, ConstView b,
                                    ConstView a, std::span<const Key> keys,
                                    std::span<const u64> elements, const Scalars& special,
                                    u32 first_digit) {
  checks::hoisted_rotate_sum<W>(ring(), out, digits, b, a, keys, elements, first_digit);
  compose::clear<W>(stream, out);
  const u32 window = b.limbs.size();
  compose::Temporary<W> product(stream, out.shape, out.limbs, Domain::eval);
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

#define CRENEL_INSTANTIATE(W)                                                                  \
  template void Kernels<W>::automorphism_add(Stream&, View, ConstView, u64, const ConstView*); \
  template void Kernels<W>::hoisted_rotate_sum(Stream&, View, ConstView, ConstView, ConstView, \
                                               std::span<const Key>, std::span<const u64>,     \
                                               const Scalars&, u32);
CRENEL_INSTANTIATE(u32)
CRENEL_INSTANTIATE(u64)
#undef CRENEL_INSTANTIATE

}  // namespace crenel::device
