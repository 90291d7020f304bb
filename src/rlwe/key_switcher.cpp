#include "rlwe/key_switcher.h"

#include "crenel/device/optimisations.h"

namespace crenel::rlwe {

Poly KeySwitcher::mod_up(ConstView a, u32 level) const {
  const auto& table = ring_.mod_up(level);
  Poly digits(stream_, shape(static_cast<u32>(table->digits.size()), a.shape.batch), table->output,
              Domain::eval);
  ring_.kernels().mod_up(stream_, digits.view(), a, table);
  return digits;
}

Poly KeySwitcher::multiply(const Poly& digits, const KeyView& key, u32 level) const {
  Poly acc(stream_, shape(2, digits.shape().batch), ring_.extended(level), Domain::eval);
  ring_.kernels().key_multiply(stream_, acc.view(), digits.view(), key, ring_.first_digit(level));
  return acc;
}

void KeySwitcher::switch_down(View out, device::SwitchOf of, const KeyView& key, u32 level,
                              const ConstView* addend) const {
  of.factor = &ring_.special_scalars(level);
  ring_.kernels().key_switch_divided(stream_, out, of, ring_.mod_up(level), key,
                                     ring_.first_digit(level), ring_.mod_down(level), addend);
}

Poly KeySwitcher::switch_down(const device::SwitchOf& of, const KeyView& key, u32 level,
                              const ConstView* addend) const {
  Poly out(stream_, shape(2, of.in.shape.batch), ring_.window(level), Domain::eval);
  switch_down(out.view(), of, key, level, addend);
  return out;
}

Poly KeySwitcher::switch_rescale(device::SwitchOf of, const KeyView& key, u32 level) const {
  Poly out(stream_, shape(2, of.in.shape.batch), ring_.window(level - 1), Domain::eval);
  if (device::optimisations(stream_.device()).has(device::Optimisation::merged_rescale)) {
    of.factor = &ring_.special_scalars(level);
    ring_.kernels().key_switch_divided(stream_, out.view(), of, ring_.mod_up(level), key,
                                       ring_.first_digit(level), ring_.mod_down_rescale(level));
    return out;
  }
  const Poly divided = switch_down(of, key, level);
  ring_.kernels().divide(stream_, out.view(), divided.view(), ring_.rescale(level));
  return out;
}

Poly KeySwitcher::mod_down(const Poly& acc, u32 level, const ConstView* addend) const {
  Poly out(stream_, acc.shape(), ring_.window(level), Domain::eval);
  ring_.kernels().divide(stream_, out.view(), acc.view(), ring_.mod_down(level), addend);
  return out;
}

Poly KeySwitcher::mod_down_rescale(ConstView acc, u32 level) const {
  Poly out(stream_, acc.shape, ring_.window(level - 1), Domain::eval);
  if (device::optimisations(stream_.device()).has(device::Optimisation::merged_rescale)) {
    ring_.kernels().divide(stream_, out.view(), acc, ring_.mod_down_rescale(level));
    return out;
  }
  Poly divided(stream_, acc.shape, ring_.window(level), Domain::eval);
  ring_.kernels().divide(stream_, divided.view(), acc, ring_.mod_down(level));
  ring_.kernels().divide(stream_, out.view(), divided.view(), ring_.rescale(level));
  return out;
}

Poly KeySwitcher::automorphism(ConstView in, u64 element) const {
  Poly out(stream_, in.shape, in.limbs, in.domain);
  ring_.kernels().automorphism(stream_, out.view(), in, element);
  return out;
}

void KeySwitcher::add_rotated(View sum, ConstView a, const KeyView& key, u64 element, u32 level,
                              const ConstView& addend) const {
  ring_.kernels().key_switch_rotated(stream_, sum, a, ring_.mod_up(level), key,
                                     ring_.first_digit(level), element, true, &addend);
}

// A division commutes with the rotation: it takes each coefficient alone, and one of the other sign
// to a result of the other sign.
Poly KeySwitcher::rotate_extended(ConstView ciphertext, const KeyView& key, u64 element,
                                  u32 level) const {
  const ConstView b = ciphertext.components(0, 1);
  Poly acc(stream_, shape(2, ciphertext.shape.batch), ring_.extended(level), Domain::eval);
  ring_.kernels().key_switch_rotated(stream_, acc.view(), ciphertext.components(1, 1),
                                     ring_.mod_up(level), key, ring_.first_digit(level), element,
                                     false, &b, &ring_.special_scalars(level));
  return acc;
}

Poly KeySwitcher::rotate(ConstView ciphertext, const KeyView& key, u64 element, u32 level,
                         const ConstView* addend) const {
  Poly out(stream_, ciphertext.shape, ring_.window(level), Domain::eval);
  rotate(out.view(), ciphertext, key, element, level, addend);
  return out;
}

void KeySwitcher::rotate(View out, ConstView ciphertext, const KeyView& key, u64 element, u32 level,
                         const ConstView* addend) const {
  const ConstView b = ciphertext.components(0, 1);
  switch_down(out, {.in = ciphertext.components(1, 1), .element = element, .addend = &b}, key,
              level, addend);
}

Poly KeySwitcher::rotate_hoisted(ConstView b, const Poly& digits, const KeyView& key, u64 element,
                                 u32 level) const {
  const Poly switched = mod_down(multiply(digits, key, level), level, &b);
  return automorphism(switched.view(), element);
}

Poly KeySwitcher::rotate_sum(ConstView ciphertext, std::span<const KeyView> keys,
                             std::span<const u64> elements, u32 level) const {
  // One rotation has nobody to share its digits with: the fused key switch does not store them. The
  // same bits, since P times what is not rotated divides exactly.
  if (elements.size() == 2 && (elements[0] == 1) != (elements[1] == 1)) {
    const std::size_t r = elements[0] == 1 ? 1 : 0;
    return rotate(ciphertext, keys[r], elements[r], level, &ciphertext);
  }
  return mod_down(rotate_sum_extended(ciphertext, keys, elements, level), level, nullptr);
}

Poly KeySwitcher::rotate_sum_extended(ConstView ciphertext, std::span<const KeyView> keys,
                                      std::span<const u64> elements, u32 level) const {
  const Poly digits = mod_up(ciphertext.components(1, 1), level);
  Poly acc(stream_, shape(2, ciphertext.shape.batch), ring_.extended(level), Domain::eval);
  ring_.kernels().hoisted_rotate_sum(
      stream_, acc.view(), digits.view(), ciphertext.components(0, 1), ciphertext.components(1, 1),
      keys, elements, ring_.special_scalars(level), ring_.first_digit(level));
  return acc;
}

}  // namespace crenel::rlwe
