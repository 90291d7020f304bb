#include "circuits/bootstrapping/steps.h"

#include "crenel/device/optimisations.h"
#include "device/apart.h"

namespace crenel::circuits {
namespace {

// a plus its image.
rlwe::Poly plus_rotated(const ckks::Evaluator& ev, const ckks::Ciphertext& a, u64 element) {
  const auto& s = ev.state();
  const rlwe::ConstView both = a.data().poly.view();
  const auto [id, level] = s.choice(element, a.level());
  return s.switcher().rotate(both, s.lease(id)[0], element, level, &both);
}

}  // namespace

using ckks::Ciphertext;
using ckks::Evaluator;
using ckks::Metadata;
using rlwe::ConstView;
using rlwe::Poly;

Ciphertext split_real_imaginary(const Evaluator& ev, const Ciphertext& a) {
  const auto& s = ev.state();
  const ConstView x = a.data().poly.view();
  const u32 batch = a.batch();
  const u64 element = s.conjugation_element(a.level());
  Poly out = s.poly(2, 2 * batch, a.level());
  const auto& limbs = s.ring().window(a.level());
  const rlwe::View sum = out.view().rows(0, batch);
  const auto [id, level] = s.choice(element, a.level());
  s.switcher().rotate(sum, x, s.lease(id)[0], element, level, &x);
  // i (conj(x) - x) = i (conj(x) + x) - 2 i x
  const ConstView terms[] = {sum, x};
  const rlwe::Scalars scalars[] = {s.ring().integer_scalars(limbs, 0, 1),
                                   s.ring().integer_scalars(limbs, 0, -2)};
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
    a.data().poly = plus_rotated(ev, a, ev.state().rotation_element(step, a.slots(), a.level()));
  return with_slots(std::move(a), slots);
}

Ciphertext add_conjugate(const Evaluator& ev, Ciphertext a) {
  a.data().poly = plus_rotated(ev, a, ev.state().conjugation_element(a.level()));
  return a;
}

u32 groups_apart(const device::Stream& stream, u32 batch) {
  const u32 groups = device::entry_groups(stream);
  const bool apart =
      batch % groups == 0 &&
      device::optimisations(stream.device()).has(device::Optimisation::entries_apart);
  return apart ? groups : 1;
}

u32 groups_apart(const Evaluator& ev, u32 batch, u32 level) {
  const auto& s = ev.state();
  const u32 groups = groups_apart(*s.stream, batch);
  if (groups == 1) return 1;
  return s.source->shared_by(s.choice(rlwe::kRelinearisation, level).id) == groups ? groups : 1;
}

Ciphertext entries_apart(const Evaluator& ev, Ciphertext a,
                         const std::function<Ciphertext(Ciphertext)>& f) {
  const auto& s = ev.state();
  if (groups_apart(ev, a.batch(), a.level()) == 1) return f(std::move(a));
  const auto regrouped = [&](const Ciphertext& from) {
    Poly to = s.poly(from.components(), from.batch(), from.level());
    device::regroup(*s.stream, to.view(), from.data().poly.view());
    return s.wrap(std::move(to), from.metadata());
  };
  std::optional<Ciphertext> whole(std::move(a)), result;
  {
    const device::EntriesApart scope(*s.stream);
    Ciphertext dealt = regrouped(*whole);
    whole.reset();  // its memory serves what follows
    result = f(std::move(dealt));
  }
  return regrouped(*result);
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
