// The pipeline of docs/theory/bootstrapping.md, whose steps are numbered there.
#include <algorithm>
#include <cmath>

#include "circuits/bootstrapping/key_fit.h"
#include "circuits/bootstrapping/report.h"
#include "circuits/bootstrapping/state.h"
#include "circuits/bootstrapping/steps.h"
#include "circuits/mod1/eval_mod.h"
#include "ckks/levels.h"
#include "crenel/device/account.h"

namespace crenel::circuits {

using ckks::Ciphertext;
using device::Stage;

// Step 1. A real vector is made so, errors and all: its conjugate is the same message.
Ciphertext Bootstrapper::State::scaled_up(const Ev& ev, const Ciphertext& a) const {
  if (!plan.symmetric) return ev.multiply_integer(a, i64(1) << plan.scale_up);
  return add_conjugate(ev, ev.multiply_integer(a, i64(1) << (plan.scale_up - 1)));
}

// Steps 1-4: integer scale-up, sparse secret, exact lift, dense secret; the copies of a vector of
// fewer slots are summed. The polynomial is m + q0 I with scale 1; with OverModRaise it has been
// through the first factor of CoeffToSlot.
Ciphertext Bootstrapper::State::raise(const Ev& ev, const Ciphertext& a) const {
  std::optional<Stage> stage(std::in_place, ev.stream(), "mod_raise");
  const auto& s = ev.state();
  const Ciphertext scaled = scaled_up(ev, a);
  const auto sparse = encapsulation.to_sparse(*s.stream, scaled.data().poly.view(),
                                              s.lease(rlwe::kDenseToSparse)[0]);
  ckks::Metadata meta = a.metadata();
  meta.level = plan.raised();
  meta.scale = 1.0;
  meta.real = false;
  if (raised_factor) {  // with OverModRaise
    const rlwe::Raised raised = encapsulation.over_raise(*s.stream, sparse.view(), plan.raised());
    watch::advance();
    stage.reset();
    stage.emplace(ev.stream(), "coeff_to_slot");
    return traced(ev, s.wrap(raised_factor.value()(ev, raised), meta));
  }
  return traced(ev, s.wrap(encapsulation.raise(*s.stream, sparse.view(),
                                               s.lease(rlwe::kSparseToDense)[0], plan.raised()),
                           meta));
}

// Of copies of fewer slots. Their rotations commute with the first factor, whose diagonals repeat
// with them.
Ciphertext Bootstrapper::State::traced(const Ev& ev, Ciphertext a) const {
  Ciphertext sum = trace(ev, std::move(a), trace_steps);
  watch::advance();
  return sum;
}

Ciphertext Bootstrapper::State::apply(const Ev& ev, const std::vector<LinearTransform>& factors,
                                      Ciphertext a) const {
  for (const auto& factor : factors) {
    a = factor(ev, with_slots(std::move(a), factor.slots()));
    watch::advance();
  }
  return a;
}

// Steps 1-5: the coefficients of m + q0 I, in the slots.
Ciphertext Bootstrapper::State::raise_to_slots(const Ev& ev, const Ciphertext& a) const {
  Ciphertext raised = raise(ev, a);
  const Stage stage(ev.stream(), "coeff_to_slot");
  return apply(ev, coeff_to_slot, std::move(raised));
}

// Steps 6-8 without SlotToCoeff: real and imaginary parts through EvalMod, in one batch (or,
// joined, in the two halves of one vector); of a symmetric polynomial real parts alone.
Ciphertext Bootstrapper::State::modular_reduction(const Ev& ev, Ciphertext a) const {
  std::optional<Ciphertext> parts;
  {
    const Stage stage(ev.stream(), "coeff_to_slot");
    parts = plan.one_part() ? add_conjugate(ev, std::move(a)) : split_real_imaginary(ev, a);
  }
  const Stage stage(ev.stream(), "eval_mod");
  Ciphertext reduced =
      entries_apart(ev, with_scale(std::move(*parts), plan.eval_scale), [&](Ciphertext y) {
        Ciphertext sines =
            eval_mod(ev, std::move(y), plan.mod1, sine, plan.options.savings.folded_sums);
        // The foot of short levels has the primes of the level below which they stand, and is it.
        sines.data().meta.level = plan.levels.eval_mod_end;
        return plan.options.arcsine_degree != 0 ? arcsine(ev, sines) : std::move(sines);
      });
  watch::advance();
  if (plan.one_part()) return reduced;
  return join_real_imaginary(ev, reduced);
}

// Step 8: SlotToCoeff, on as few limbs as the target allows; then the slots are the message's.
Ciphertext Bootstrapper::State::back_to_slots(const Ev& ev, Ciphertext a) const {
  const Stage stage(ev.stream(), "slot_to_coeff");
  if (a.level() != plan.levels.slot_to_coeff)
    a = ckks::drop_limbs(ev.state(), a, plan.levels.slot_to_coeff);
  return with_scale(with_slots(apply(ev, slot_to_coeff, std::move(a)), plan.slots()),
                    plan.output_scale);
}

// Members of a pack have their own rows from here on; the real part is each one's.
Ciphertext Bootstrapper::State::finish(const Ev& ev, Ciphertext a) const {
  const auto lowered = [&](Ciphertext x) {
    return x.level() == plan.levels.output ? std::move(x) : ev.adjust_level(x, plan.levels.output);
  };
  if (plan.options.pack > 1) {
    const Stage stage(ev.stream(), "unpack");
    a = packing.unpack(ev, lowered(std::move(a)));
  }
  if (plan.real_part()) a = add_conjugate(ev, std::move(a));
  if (plan.options.message == BootstrapMessage::real) a.data().meta.real = true;
  return lowered(std::move(a));
}

Ciphertext Bootstrapper::State::packed(const Ev& ev, const Ciphertext& rows) const {
  const Stage stage(ev.stream(), "pack");
  return packing.pack(ev, rows);
}

Ciphertext Bootstrapper::State::to_coefficients(const Ev& ev, Ciphertext a) const {
  const Stage stage(ev.stream(), "slot_to_coeff");
  return apply(ev, slot_to_coeff, std::move(a));
}

Ciphertext Bootstrapper::State::sine_of_coefficients(const Ev& ev, const Ciphertext& a) const {
  return modular_reduction(ev, raise_to_slots(ev, a));
}

Ciphertext Bootstrapper::State::once(const Ev& ev, const Ciphertext& rows) const {
  if (!plan.slot_to_coeff_first()) {
    Ciphertext raised =
        plan.options.pack > 1 ? raise_to_slots(ev, packed(ev, rows)) : raise_to_slots(ev, rows);
    return finish(ev, back_to_slots(ev, modular_reduction(ev, std::move(raised))));
  }
  const Ciphertext low =
      to_coefficients(ev, plan.options.pack > 1 ? packed(ev, rows) : ev.state().copy(rows));
  // The slots are now the message divided by q0 / Delta', at a large scale: read them as the
  // message (of a pack, over what unpacking and the real part multiply by), and come down to the
  // canonical scale.
  const Ciphertext reduced = with_scale(sine_of_coefficients(ev, low), plan.read_scale);
  if (!halves) return finish(ev, ev.adjust_level(reduced, reduced.level() - 1));
  return finish(ev, with_slots((*halves)(ev, reduced), plan.slots()));
}

// Meta-BTS (BCCKK22): m - BTS(m) is small; times 2^k it is bootstrapped again, and takes
// the error of the first bootstrap away.
Ciphertext Bootstrapper::State::refined(const Ev& ev, const Ciphertext& a) const {
  const i64 gain = i64(1) << correction;
  const Ciphertext coarse = once(ev, ev.adjust_level(a, plan.levels.input));
  const Ciphertext low = ev.adjust_level(coarse, a.level(), a.scale());
  const Ciphertext error = ev.multiply_integer(ev.sub(a, low), gain);
  const Ciphertext fine = once(ev, ev.adjust_level(error, plan.levels.input));
  Ciphertext sum = ev.add(ev.multiply_integer(coarse, gain), fine);
  return with_scale(std::move(sum), coarse.scale() * static_cast<double>(gain));
}

// Those that advance() counts: the raise, every factor, EvalMod.
u64 Bootstrapper::State::steps() const {
  const u64 factors = u64(plan.over_mod_raise()) + coeff_to_slot.size() + slot_to_coeff.size();
  return plan.options.iterations * (2 + factors);
}

Bootstrapper::Bootstrapper(const ckks::Context& context, const BootstrapOptions& options)
    : state_(State::shared(context, plan_bootstrap(context.params(), options))) {}

Bootstrapper::Bootstrapper(const ckks::Context& context, ckks::EvaluationKeys keys,
                           const BootstrapOptions& options) {
  own_ = context.evaluator(std::move(keys));
  KeyFit fit = fit_to_keys(*own_, options);
  State::check_keys(*own_, fit.needs, fit.plan.eval_mod(), options);
  keys_decided_ = fit.decided;
  notice_ = std::move(fit.notice);
  state_ = State::shared(context, std::move(fit.plan), fit.matrices.get());
}

const BootstrapOptions& Bootstrapper::options() const { return state_->plan.options; }
const BootstrapLevels& Bootstrapper::levels() const { return state_->plan.levels; }
u32 Bootstrapper::correction_bits() const { return state_->correction; }

double Bootstrapper::expected_error(const Message& message) const {
  return expected_error_of(state_->context.params(), state_->plan, message);
}

BootstrapReport Bootstrapper::describe() const {
  const State& s = *state_;
  BootstrapReport r = report_of(s.context.params(), s.plan);
  const u32 vectors = s.plan.one_part() ? 1 : 2;
  r.eval_mod_groups = own_ ? groups_apart(*own_, vectors, s.plan.eval_mod())
                           : groups_apart(s.context.stream(), vectors);
  if (own_) {
    r.key_count = static_cast<u32>(own_->keys().count());
    r.key_bytes = own_->keys().bytes();
    r.aligned_keys = own_->keys().aligned_relinearisation().has_value();
  }
  r.keys_decided = keys_decided_;
  r.notice = notice_;
  r.plaintext_bytes = s.packing.bytes();
  if (s.raised_factor) r.plaintext_bytes += s.raised_factor->plaintext_bytes();
  if (s.halves) r.plaintext_bytes += s.halves->plaintext_bytes();
  for (const auto* factors : {&s.coeff_to_slot, &s.slot_to_coeff})
    for (const auto& factor : *factors) r.plaintext_bytes += factor.plaintext_bytes();
  return r;
}

}  // namespace crenel::circuits
