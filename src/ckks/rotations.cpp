// Rotations, conjugation, hoisting, sums over slots.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <type_traits>

#include "ckks/evaluator_state.h"
#include "ckks/magnitude.h"
#include "ckks/observer.h"
#include "device/room.h"

namespace crenel::ckks {
namespace {

rlwe::Poly rotated(const Evaluator::State& s, const Ciphertext& a, u64 element) {
  const auto [id, level] = s.choice(element, a.level());
  return s.switcher().rotate(a.data().poly.view(), s.lease(id)[0], element, level);
}

// rotate_sum() where some keys are aligned and some are not: their digits differ, so that each kind
// has a sum; one division for both.
rlwe::Poly mixed_sum(const Evaluator::State& s, const Ciphertext& a,
                     std::span<const u64> elements) {
  std::vector<u64> aligned, others;
  for (u64 element : elements)
    (rlwe::is_aligned(s.choice(element, a.level()).level) ? aligned : others).push_back(element);
  const auto sum = [&](std::span<const u64> turns) {
    const auto keys = s.choices(turns, a.level()).value();
    const auto lease = s.lease(keys.ids);
    return s.switcher().rotate_sum_extended(a.data().poly.view(), lease.views(), turns, keys.level);
  };
  rlwe::Poly both = sum(aligned);
  s.kernels().add(*s.stream, both.view(), both.view(), sum(others).view());
  return s.switcher().mod_down(both, a.level(), nullptr);
}

}  // namespace

Ciphertext Evaluator::rotate(const Ciphertext& a, i64 steps) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "rotate", [&](const auto& on, const auto& x) { return on.rotate(x, steps); }, a);
  s.check_components(a, 2, "rotation");
  const u64 element = s.rotation_element(steps, a.slots(), a.level());
  if (element == 1) return s.copy(a);
  return s.wrap(rotated(s, a, element), a.metadata());
}

Ciphertext Evaluator::conjugate(const Ciphertext& a) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "conjugate", [](const auto& on, const auto& x) { return on.conjugate(x); }, a);
  s.check_components(a, 2, "conjugation");
  return s.wrap(rotated(s, a, s.conjugation_element(a.level())), a.metadata());
}

std::vector<Ciphertext> Evaluator::rotate_many(const Ciphertext& a,
                                               std::span<const i64> steps) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "rotate_many", [&](const auto& on, const auto& x) { return on.rotate_many(x, steps); }, a);
  s.check_components(a, 2, "rotation");
  const auto elements = s.rotation_elements(steps, a.slots(), a.level(), "rotate_many");
  const auto ks = s.switcher();
  const rlwe::ConstView v = a.data().poly.view();
  const u64 each = a.data().poly.bytes();
  device::expect_room(*s.stream, {.device = elements.size() * each}, [&] {
    return core::MemoryRequest{.what = cat("rotate_many to ", elements.size(), " ciphertexts"),
                               .count = elements.size(),
                               .each = each,
                               .units = "rotations",
                               .advice = "ask for fewer at a time, or for their sum (rotate_sum)"};
  });
  std::map<u32, rlwe::Poly> digits;  // by level: of aligned keys and of the others
  std::vector<Ciphertext> out;
  for (u64 element : elements) {
    if (element == 1) {
      out.push_back(s.copy(a));
      continue;
    }
    const auto [id, level] = s.choice(element, a.level());
    rlwe::Poly& own = digits[level];
    if (!own) own = ks.mod_up(v.components(1, 1), level);
    out.push_back(s.wrap(ks.rotate_hoisted(v.components(0, 1), own, s.lease(id)[0], element, level),
                         a.metadata()));
  }
  return out;
}

Ciphertext Evaluator::rotate_sum(const Ciphertext& a, std::span<const i64> steps) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "rotate_sum", [&](const auto& on, const auto& x) { return on.rotate_sum(x, steps); }, a);
  s.check_components(a, 2, "rotation");
  if (steps.empty()) throw ParameterError("rotate_sum of no steps, expected at least one", {});
  const double terms = static_cast<double>(steps.size());
  const Metadata meta = magnitude::bounded(s.params(), a.metadata(),
                                           magnitude::scaled(a.bound(), terms), "rotate_sum");
  const auto elements = s.rotation_elements(steps, a.slots(), a.level(), "rotate_sum");
  if (const auto keys = s.choices(elements, a.level())) {
    const auto lease = s.lease(keys->ids);
    return s.wrap(
        s.switcher().rotate_sum(a.data().poly.view(), lease.views(), elements, keys->level), meta);
  }
  return s.wrap(mixed_sum(s, a, elements), meta);
}

Ciphertext Evaluator::sum_slots(const Ciphertext& a, u64 count, i64 stride) const {
  if (state_->observer)
    return state_->observer->watch(
        "sum_slots", [&](const auto& on, const auto& x) { return on.sum_slots(x, count, stride); },
        a);
  state_->check_components(a, 2, "rotation");
  check_sum(count, a.slots());
  magnitude::bounded(state_->params(), a.metadata(),
                     magnitude::scaled(a.bound(), static_cast<double>(count)), "sum_slots");
  stride %= static_cast<i64>(a.slots());  // the same rotations, and products that do not overflow
  std::vector<i64> all;
  for (u64 k = 1; k < count; k *= 2) all.push_back(stride * static_cast<i64>(k));
  state_->rotation_elements(all, a.slots(), a.level(), "sum_slots");  // before any work
  std::optional<Ciphertext> sum;
  for (u64 k = 1; k < count; k *= 2) {
    const i64 steps[] = {0, stride * static_cast<i64>(k)};
    sum = rotate_sum(sum ? *sum : a, steps);
  }
  return sum ? std::move(*sum) : state_->copy(a);
}

void check_relabelling(const Params& params, u64 slots, u64 wanted, bool repeating) {
  if (!std::has_single_bit(wanted) || wanted > params.slots())
    throw ParameterError(
        cat("slots must be a power of two of at most ", params.slots(), ", got ", wanted),
        {{"slots", wanted}, {"max_slots", params.slots()}});
  if (wanted < slots && !repeating)
    throw StateError(
        cat("a vector of ", slots, " slots as one of ", wanted, ": only where it repeats after ",
            wanted, " slots, which the caller must know (repeating); a sum over count = ",
            slots / wanted, " at stride ", wanted, " makes it so"),
        {{"slots", slots}, {"wanted", wanted}});
}

Ciphertext Evaluator::with_slots(const Ciphertext& a, u64 slots, bool repeating) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "with_slots",
        [&](const auto& on, const auto& x) {
          auto out = on.with_slots(x, slots, repeating);
          // What repeats does so up to its errors, which an exact message does not have.
          if constexpr (std::is_same_v<std::decay_t<decltype(out)>, ErrorBound>)
            if (slots != a.slots()) out.max += 0x1p-12 * std::max(1.0, out.message);
          return out;
        },
        a);
  s.check(a);
  check_relabelling(s.params(), a.slots(), slots, repeating);
  Ciphertext out = s.copy(a);
  out.data().meta.slots = slots;
  return out;
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
