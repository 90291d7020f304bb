#include "device/poly/compose/workspace.h"

namespace crenel::device {
namespace {

// A plaintext with all N values: the first of every run of equal ones is copied, then the filled
// part of the runs is doubled. `to` has one polynomial.
void expand(Stream& stream, const PolyView<u32>& to, const u32* words, u32 log_words) {
  const std::size_t runs = std::size_t(to.limbs.size()) << log_words;
  const std::size_t period = sizeof(u32) << (to.shape.log_n - log_words);
  stream.copy_rows(to.data, period, words, sizeof(u32), sizeof(u32), runs);
  for (std::size_t filled = sizeof(u32); filled < period; filled *= 2)
    stream.copy_rows(reinterpret_cast<char*>(to.data) + filled, period, to.data, period, filled,
                     runs);
}

}  // namespace

void PolyKernels::do_plain_multiply_sum(Stream& stream, std::span<const View> out,
                                        std::span<const ConstView> in, const Grid& plain) {
  if (out.empty()) return;
  const compose::Temporary expanded(stream, {ring().log_n(), 1, 1}, plain.limbs, Domain::eval);
  for (u32 g = 0; g < plain.giants; ++g) {
    bool empty = true;
    for (u32 b = 0; b < plain.babies; ++b) {
      if (!plain.has(g, b)) continue;
      expand(stream, expanded.view(), plain.entry(g, b), plain.log_words);
      if (empty)
        mul(stream, out[g], in[b], expanded.view());
      else
        mul_add(stream, out[g], in[b], expanded.view());
      empty = false;
    }
    if (empty) compose::clear(stream, out[g]);
  }
}

void PolyKernels::do_hoisted_plain_sums(Stream& stream, std::span<const View> out, ConstView digits,
                                        ConstView b, ConstView a, std::span<const Key> keys,
                                        std::span<const u64> elements, const Grid& plain,
                                        const Scalars& special, u32 first_digit) {
  if (out.empty()) return;
  const PolyShape shape = out[0].shape;
  const u32 window = b.limbs.size(), babies = static_cast<u32>(elements.size());
  std::vector<compose::Temporary> steps;
  std::vector<ConstView> views;
  compose::Temporary product(stream, shape, plain.limbs, Domain::eval);
  for (u32 r = 0; r < babies; ++r) {
    steps.emplace_back(stream, shape, plain.limbs, Domain::eval);
    const View step = steps.back().view(), kept = step.limb_window(0, window);
    views.push_back(step);
    if (elements[r] == 1 && a.data != nullptr) {
      compose::clear(stream, step);
      mul_scalar(stream, kept.components(0, 1), b, special);
      mul_scalar(stream, kept.components(1, 1), a, special);
      continue;
    }
    key_multiply(stream, product.view(), digits, keys[r], first_digit);
    mul_add_scalar(stream, product.view().limb_window(0, window).components(0, 1), b, special);
    automorphism(stream, step, product.view(), elements[r]);
  }
  plain_multiply_sum(stream, out, views, plain);
}

}  // namespace crenel::device
