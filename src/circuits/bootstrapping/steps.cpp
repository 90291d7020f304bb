#include "circuits/bootstrapping/steps.h"

namespace crenel::circuits {
namespace {

// a += its image, in place: the bits of a key switch, an automorphism and a sum, in a pass less.
void add_rotated(const ckks::Evaluator& ev, ckks::Ciphertext& a, u64 element) {
  const auto& s = ev.state();
  const auto switcher = s.switcher();
  const rlwe::View both = a.data().poly.view();
  const rlwe::ConstView b = both.components(0, 1);
  const auto keys = s.lease(element);
  const rlwe::Poly sum = switcher.switch_key(both.components(1, 1), keys[0], a.level());
  const rlwe::Poly switched = switcher.mod_down(sum, a.level(), &b);
  s.kernels().automorphism_add(*s.stream, both, switched.view(), element);
}

}  // namespace

using ckks::Ciphertext;
using ckks::Evaluator;
using ckks::Metadata;
using rlwe::ConstView;
using rlwe::Poly;

Ciphertext split_real_imaginary(const Evaluator& ev, const Ciphertext& a) {
  const auto& s = ev.state();
  const Ciphertext conjugate = ev.conjugate(a);
  const ConstView x = a.data().poly.view(), c = conjugate.data().poly.view();
  const u32 batch = a.batch();
  Poly out = s.poly(2, 2 * batch, a.level());
  const auto& limbs = s.ring().window(a.level());
  s.kernels().add(*s.stream, out.view().rows(0, batch), x, c);
  const ConstView terms[] = {c, x};
  const rlwe::Scalars scalars[] = {s.ring().integer_scalars(limbs, 0, 1),
                                   s.ring().integer_scalars(limbs, 0, -1)};
  s.kernels().linear_combination(*s.stream, out.view().rows(batch, batch), terms, scalars, nullptr);
  Metadata meta = a.metadata();
  meta.real = true;
  return s.wrap(std::move(out), meta);
}

Ciphertext join_real_imaginary(const Evaluator& ev, const Ciphertext& a) {
  const auto& s = ev.state();
  const u32 batch = a.batch() / 2;
  const ConstView x = a.data().poly.view();
  Poly out = s.poly(2, batch, a.level());
  const auto& limbs = s.ring().window(a.level());
  const ConstView terms[] = {x.rows(0, batch), x.rows(batch, batch)};
  const rlwe::Scalars scalars[] = {s.ring().integer_scalars(limbs, 1, 0),
                                   s.ring().integer_scalars(limbs, 0, 1)};
  s.kernels().linear_combination(*s.stream, out.view(), terms, scalars, nullptr);
  Metadata meta = a.metadata();
  meta.real = false;
  return s.wrap(std::move(out), meta);
}

Ciphertext trace(const Evaluator& ev, Ciphertext a, std::span<const i64> steps) {
  // Copies of a vector of fewer slots cannot be told apart: read all N/2 slots while they are
  // summed.
  const u64 slots = a.slots();
  a = with_slots(std::move(a), ev.context().params().slots());
  for (i64 step : steps)
    add_rotated(ev, a, ev.state().rotation_element(step, a.slots(), a.level()));
  return with_slots(std::move(a), slots);
}

Ciphertext add_conjugate(const Evaluator& ev, Ciphertext a) {
  add_rotated(ev, a, ev.state().conjugation_element(a.level()));
  return a;
}

Ciphertext with_slots(Ciphertext a, u64 slots) {
  a.data().meta.slots = slots;
  return a;
}

Ciphertext with_scale(Ciphertext a, double scale) {
  a.data().meta.scale = scale;
  return a;
}

}  // namespace crenel::circuits
