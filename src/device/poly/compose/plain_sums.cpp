#include "device/poly/checks.h"
#include "device/poly/compose/workspace.h"

namespace crenel::device {
namespace {

// A plaintext with all N values: the first of every run of equal ones is copied, then the filled
// part of the runs is doubled. `to` has one polynomial.
template <class W>
void expand(Stream& stream, const PolyView<W>& to, const W* words, u32 log_words) {
  const std::size_t runs = std::size_t(to.limbs.size()) << log_words;
  const std::size_t period = sizeof(W) << (to.shape.log_n - log_words);
  stream.copy_rows(to.data, period, words, sizeof(W), sizeof(W), runs);
  for (std::size_t filled = sizeof(W); filled < period; filled *= 2)
    stream.copy_rows(reinterpret_cast<char*>(to.data) + filled, period, to.data, period, filled,
                     runs);
}

}  // namespace

template <class W>
void Kernels<W>::plain_multiply_sum(Stream& stream, std::span<const View> out,
                                    std::span<const ConstView> in, const Grid& plain) {
  checks::plain_multiply_sum<W>(ring(), out, in, plain);
  if (out.empty()) return;
  const compose::Temporary<W> expanded(stream, {ring().log_n(), 1, 1}, plain.limbs, Domain::eval);
  for (u32 g = 0; g < plain.giants; ++g) {
    bool empty = true;
    for (u32 b = 0; b < plain.babies; ++b) {
      if (!plain.has(g, b)) continue;
      expand<W>(stream, expanded.view(), plain.entry(g, b), plain.log_words);
      if (empty)
        mul(stream, out[g], in[b], expanded.view());
      else
        mul_add(stream, out[g], in[b], expanded.view());
      empty = false;
    }
    if (empty) compose::clear<W>(stream, out[g]);
  }
}

template <class W>
void Kernels<W>::hoisted_plain_sums(Stream& stream, std::span<const View> out, ConstView digits,
                                    ConstView b, ConstView a, std::span<const Key> keys,
                                    std::span<const u64> elements, const Grid& plain,
                                    const Scalars& special, u32 first_digit) {
  checks::hoisted_plain_sums<W>(ring(), out, digits, b, a, keys, elements, plain, first_digit);
  if (out.empty()) return;
  const PolyShape shape = out[0].shape;
  const u32 window = b.limbs.size(), babies = static_cast<u32>(elements.size());
  std::vector<compose::Temporary<W>> steps;
  std::vector<ConstView> views;
  compose::Temporary<W> product(stream, shape, plain.limbs, Domain::eval);
  for (u32 r = 0; r < babies; ++r) {
    steps.emplace_back(stream, shape, plain.limbs, Domain::eval);
    const View step = steps.back().view(), kept = step.limb_window(0, window);
    views.push_back(step);
    if (elements[r] == 1) {
      compose::clear<W>(stream, step);
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

#define CRENEL_INSTANTIATE(W)                                                                \
  template void Kernels<W>::plain_multiply_sum(Stream&, std::span<const View>,               \
                                               std::span<const ConstView>, const Grid&);     \
  template void Kernels<W>::hoisted_plain_sums(                                              \
      Stream&, std::span<const View>, ConstView, ConstView, ConstView, std::span<const Key>, \
      std::span<const u64>, const Grid&, const Scalars&, u32);
CRENEL_INSTANTIATE(u32)
CRENEL_INSTANTIATE(u64)
#undef CRENEL_INSTANTIATE

}  // namespace crenel::device
