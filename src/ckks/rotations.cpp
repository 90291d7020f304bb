// Rotations, conjugation, hoisting, sums over slots.
#include <bit>
#include <optional>

#include "ckks/evaluator_state.h"

namespace crenel::ckks {

Ciphertext Evaluator::rotate(const Ciphertext& a, i64 steps) const {
  const State& s = *state_;
  s.check_components(a, 2, "rotation");
  const u64 element = s.rotation_element(steps, a.slots());
  if (element == 1) return s.copy(a);
  auto out = s.switcher().rotate(a.data().poly.view(), s.lease(element)[0], element, a.level());
  return s.wrap(std::move(out), a.metadata());
}

Ciphertext Evaluator::conjugate(const Ciphertext& a) const {
  const State& s = *state_;
  s.check_components(a, 2, "conjugation");
  const u64 element = s.conjugation_element();
  auto out = s.switcher().rotate(a.data().poly.view(), s.lease(element)[0], element, a.level());
  return s.wrap(std::move(out), a.metadata());
}

std::vector<Ciphertext> Evaluator::rotate_many(const Ciphertext& a,
                                               std::span<const i64> steps) const {
  const State& s = *state_;
  s.check_components(a, 2, "rotation");
  const auto elements = s.rotation_elements(steps, a.slots(), "rotate_many");
  const auto ks = s.switcher();
  const rlwe::ConstView v = a.data().poly.view();
  rlwe::Poly digits;
  std::vector<Ciphertext> out;
  for (u64 element : elements) {
    if (element == 1) {
      out.push_back(s.copy(a));
      continue;
    }
    if (!digits) digits = ks.mod_up(v.components(1, 1), a.level());
    out.push_back(s.wrap(
        ks.rotate_hoisted(v.components(0, 1), digits, s.lease(element)[0], element, a.level()),
        a.metadata()));
  }
  return out;
}

Ciphertext Evaluator::rotate_sum(const Ciphertext& a, std::span<const i64> steps) const {
  const State& s = *state_;
  s.check_components(a, 2, "rotation");
  if (steps.empty()) throw ParameterError("rotate_sum of no steps, expected at least one", {});
  const auto elements = s.rotation_elements(steps, a.slots(), "rotate_sum");
  const auto keys = s.lease(elements);
  return s.wrap(s.switcher().rotate_sum(a.data().poly.view(), keys.views(), elements, a.level()),
                a.metadata());
}

Ciphertext Evaluator::sum_slots(const Ciphertext& a, u64 count, i64 stride) const {
  state_->check_components(a, 2, "rotation");
  check_sum(count, a.slots());
  stride %= static_cast<i64>(a.slots());  // the same rotations, and products that do not overflow
  std::vector<i64> all;
  for (u64 k = 1; k < count; k *= 2) all.push_back(stride * static_cast<i64>(k));
  state_->rotation_elements(all, a.slots(), "sum_slots");  // before any work
  std::optional<Ciphertext> sum;
  for (u64 k = 1; k < count; k *= 2) {
    const i64 steps[] = {0, stride * static_cast<i64>(k)};
    sum = rotate_sum(sum ? *sum : a, steps);
  }
  return sum ? std::move(*sum) : state_->copy(a);
}

std::vector<i64> sum_slots_rotations(u64 count, i64 stride) {
  if (!std::has_single_bit(count))
    throw ParameterError(cat("count must be a power of two, got ", count), {{"count", count}});
  std::vector<i64> steps;
  i64 step = stride;
  for (u64 k = 1; k < count; k *= 2) {
    if (k > 1 && __builtin_mul_overflow(step, i64(2), &step))
      throw ParameterError(
          cat("sum over ", count, " slots at stride ", stride, ": rotations beyond 64 bits"),
          {{"count", count}, {"stride", stride}});
    steps.push_back(step);
  }
  return steps;
}

}  // namespace crenel::ckks
