// The pipeline of docs/theory/bootstrapping.md, whose steps are numbered there.
#include <algorithm>
#include <cmath>

#include "circuits/bootstrapping/key_fit.h"
#include "circuits/bootstrapping/report.h"
#include "circuits/bootstrapping/state.h"
#include "circuits/bootstrapping/steps.h"
#include "circuits/mod1/eval_mod.h"
#include "ckks/levels.h"
#include "core/watch_lock.h"
#include "crenel/device/account.h"

namespace crenel::circuits {

using ckks::Ciphertext;
using device::Stage;

// Steps 1-4: integer scale-up, sparse secret, exact lift, dense secret; the copies of a vector of
// fewer slots are summed. The polynomial is m + q0 I with scale 1.
Ciphertext Bootstrapper::State::raise(const Ev& ev, const Ciphertext& a) const {
  const Stage stage(ev.stream(), "mod_raise");
  const auto& s = ev.state();
  const Ciphertext scaled = ev.multiply_integer(a, i64(1) << plan.scale_up);
  const auto sparse = encapsulation.to_sparse(*s.stream, scaled.data().poly.view(),
                                              s.lease(rlwe::kDenseToSparse)[0]);
  ckks::Metadata meta = a.metadata();
  meta.level = plan.levels.raised;
  meta.scale = 1.0;
  meta.real = false;
  Ciphertext raised =
      s.wrap(encapsulation.raise(*s.stream, sparse.view(), s.lease(rlwe::kSparseToDense)[0],
                                 plan.levels.raised),
             meta);
  Ciphertext sum = trace(ev, std::move(raised), trace_steps);
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
// joined, in the two halves of one vector).
Ciphertext Bootstrapper::State::modular_reduction(const Ev& ev, const Ciphertext& a) const {
  std::optional<Ciphertext> parts;
  {
    const Stage stage(ev.stream(), "coeff_to_slot");
    const bool one = plan.joined || plan.only_real();
    parts = one ? ev.add(a, ev.conjugate(a)) : split_real_imaginary(ev, a);
  }
  const Stage stage(ev.stream(), "eval_mod");
  Ciphertext reduced =
      eval_mod(ev, with_scale(std::move(*parts), plan.eval_scale), plan.mod1, sine);
  if (plan.options.arcsine_degree != 0) reduced = arcsine(ev, reduced);
  watch::advance();
  if (plan.joined || plan.only_real()) return reduced;
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

Ciphertext Bootstrapper::State::finish(const Ev& ev, Ciphertext a) const {
  if (plan.options.message == BootstrapMessage::real) {
    if (!plan.slot_to_coeff_first()) a = ev.add(a, ev.conjugate(a));
    a.data().meta.real = true;
  }
  return a.level() == plan.levels.output ? std::move(a) : ev.adjust_level(a, plan.levels.output);
}

Ciphertext Bootstrapper::State::once(const Ev& ev, const Ciphertext& a) const {
  if (!plan.slot_to_coeff_first())
    return finish(ev, back_to_slots(ev, modular_reduction(ev, raise_to_slots(ev, a))));
  Ciphertext low = [&] {
    const Stage stage(ev.stream(), "slot_to_coeff");
    return apply(ev, slot_to_coeff, ev.state().copy(a));
  }();
  // The slots are now the message divided by q0 / Delta', at a large scale: read them as the
  // message, and come down to the canonical scale.
  Ciphertext reduced = modular_reduction(ev, raise_to_slots(ev, low));
  const double ratio = plan.q0 / (context.params().scale(0) * std::exp2(plan.scale_up));
  const double scale = reduced.scale() / ratio;  // read before it is moved from
  reduced = with_scale(std::move(reduced), scale);
  return finish(ev, ev.adjust_level(reduced, reduced.level() - 1));
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

template <class F>
Ciphertext Bootstrapper::State::with_bound(const Ev& ev, const Ciphertext& a, const F& f) const {
  if (a.bound() == ckks::kUnknownBound) return f(a);
  check_input(ev, a);
  check_bound(a);
  Ciphertext free = ev.state().copy(a);
  free.state_bound(ckks::kUnknownBound);
  Ciphertext out = f(free);
  out.data().meta.bound = a.bound();
  return out;
}

Ciphertext Bootstrapper::State::eager(const Ev& ev, const Ciphertext& a) const {
  check_input(ev, a);
  check_keys(ev, rotations, plan.options);
  expect_room(ev, a.batch());
  const rlwe::KeySource::Pass pass(ev.state().source, this);
  watch::Task task(steps(), "bootstrap");
  Ciphertext result = plan.options.iterations > 1 ? refined(ev, a) : once(ev, a);
  task.finish();
  return result;
}

// Those that advance() counts: the raise, every factor, EvalMod.
u64 Bootstrapper::State::steps() const {
  return plan.options.iterations * (2 + coeff_to_slot.size() + slot_to_coeff.size());
}

Ciphertext Bootstrapper::State::run(const Ev& ev, const Ciphertext& a) {
  const bool graphs = context.device().info().kind == device::Kind::cuda;
  const bool fixed = ev.state().source && ev.state().source->fixed();
  // Inside a recording of the caller: its replays must not read what tenants of this graph bind.
  const bool recorded = ev.stream().capturing();
  if (!plan.options.graph || !graphs || !fixed || recorded || plan.options.iterations > 1)
    return eager(ev, a);
  check_input(ev, a);
  check_keys(ev, rotations, plan.options);
  watch::Task task(steps(), "bootstrap");
  const auto lock = watch::lock(mutex_);
  if (!graph_ || graph_batch_ != a.batch() || graph_real_ != a.metadata().real ||
      !graph_->serves(ev)) {
    graph_.reset();  // first: its memory serves the next one
    expect_room(ev, a.batch());
    const ckks::Graph::KeyedFunction body = [this](const Ev& keys, std::span<const Ciphertext> in) {
      std::vector<Ciphertext> out;
      out.push_back(once(keys, in[0]));
      return out;
    };
    graph_ = std::make_unique<ckks::Graph>(ev, std::span(&a, 1), body);
    graph_batch_ = a.batch();
    graph_real_ = a.metadata().real;
  }
  std::vector<Ciphertext> results = graph_->replay(ev, std::span(&a, 1));
  task.finish();
  return std::move(results[0]);
}

Bootstrapper::Bootstrapper(const ckks::Context& context, const BootstrapOptions& options)
    : state_(State::shared(context, plan_bootstrap(context.params(), options))) {}

Bootstrapper::Bootstrapper(const ckks::Context& context, ckks::EvaluationKeys keys,
                           const BootstrapOptions& options) {
  own_ = context.evaluator(std::move(keys));
  KeyFit fit = fit_to_keys(*own_, options);
  State::check_keys(*own_, fit.needs, options);
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
  if (own_) {
    r.key_count = static_cast<u32>(own_->keys().count());
    r.key_bytes = own_->keys().bytes();
  }
  r.keys_decided = keys_decided_;
  r.notice = notice_;
  r.plaintext_bytes = 0;
  for (const auto* factors : {&s.coeff_to_slot, &s.slot_to_coeff})
    for (const auto& factor : *factors) r.plaintext_bytes += factor.plaintext_bytes();
  return r;
}

namespace {

// What comes out of a bootstrap of pairs is half of them, for pair() to split.
void expect_one_vector(const BootstrapPlan& plan) {
  if (plan.options.message == BootstrapMessage::pair)
    throw StateError("bootstrap of one ciphertext by a bootstrapper of pairs; call pair(u, v)",
                     {{"message", "pair"}, {"expected", "complex or real"}});
}

}  // namespace

const ckks::Evaluator& Bootstrapper::own() const {
  if (!own_)
    throw StateError(
        "bootstrap without keys; pass an evaluator, or make the bootstrapper with keys",
        {{"expected", "an evaluator"}});
  return *own_;
}

namespace {

// A bootstrap as its observer sees it: the identity, of real parts where those are asked for.
template <class F>
Ciphertext observed(const ckks::Observer& observer, const Bootstrapper& boot,
                    const ckks::ResultRange& range, const Ciphertext& a, const F& f) {
  return observer.watch_within(
      "bootstrap", range,
      [&](const auto& on, const auto& x) {
        using On = std::decay_t<decltype(on)>;
        if constexpr (std::is_same_v<On, ckks::ClearModel>) {
          ckks::ClearSlots out = x;
          if (boot.options().message == BootstrapMessage::real)
            for (auto& v : out.values) v = v.real();
          return out;
        } else if constexpr (std::is_same_v<On, ckks::ErrorModel>) {
          return boot(on, x);
        } else {
          return f(on, x);
        }
      },
      a);
}

}  // namespace

Ciphertext Bootstrapper::operator()(const ckks::Evaluator& ev, const Ciphertext& a) const {
  expect_one_vector(state_->plan);
  if (const auto& observer = ev.state().observer)
    return observed(*observer, *this, result_range(state_->context.params(), state_->plan), a,
                    [&](const auto& on, const auto& x) { return (*this)(on, x); });
  return state_->with_bound(ev, a, [&](const Ciphertext& x) { return state_->run(ev, x); });
}

Ciphertext Bootstrapper::eager(const ckks::Evaluator& ev, const Ciphertext& a) const {
  expect_one_vector(state_->plan);
  if (const auto& observer = ev.state().observer)
    return observed(*observer, *this, result_range(state_->context.params(), state_->plan), a,
                    [&](const auto& on, const auto& x) { return eager(on, x); });
  return state_->with_bound(ev, a, [&](const Ciphertext& x) { return state_->eager(ev, x); });
}

std::pair<Ciphertext, Ciphertext> Bootstrapper::pair(const ckks::Evaluator& ev, const Ciphertext& u,
                                                     const Ciphertext& v) const {
  if (state_->plan.options.message != BootstrapMessage::pair)
    throw StateError("bootstrap of a pair, made with another kind of message",
                     {{"expected", "BootstrapMessage::pair"}});
  if (const auto& observer = ev.state().observer) {
    std::pair<Ciphertext, Ciphertext> out = pair(observer->evaluator(), u, v);
    const auto range = result_range(state_->context.params(), state_->plan);
    const auto compare = [&](const Ciphertext& in, Ciphertext made) {
      return observed(*observer, *this, range, in,
                      [&](const auto&, const auto&) { return std::move(made); });
    };
    Ciphertext first = compare(u, std::move(out.first));
    return {std::move(first), compare(v, std::move(out.second))};
  }
  const Ciphertext both =
      state_->with_bound(ev, ev.add(u, ev.multiply_integer(v, 0, 1)),
                         [&](const Ciphertext& x) { return state_->run(ev, x); });
  const Ciphertext parts = split_real_imaginary(ev, both);
  Ciphertext first = parts.slice(0, u.batch()), second = parts.slice(u.batch(), u.batch());
  first.data().meta.bound = u.bound();
  second.data().meta.bound = v.bound();
  return {std::move(first), std::move(second)};
}

Ciphertext Bootstrapper::operator()(const Ciphertext& a) const { return (*this)(own(), a); }
Ciphertext Bootstrapper::eager(const Ciphertext& a) const { return eager(own(), a); }
std::pair<Ciphertext, Ciphertext> Bootstrapper::pair(const Ciphertext& u,
                                                     const Ciphertext& v) const {
  return pair(own(), u, v);
}

}  // namespace crenel::circuits
