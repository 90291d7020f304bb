// Calls of a bootstrapper: one ciphertext, two real vectors, or a list, by one way.
#include <algorithm>

#include "circuits/bootstrapping/state.h"
#include "circuits/bootstrapping/steps.h"
#include "ckks/magnitude.h"
#include "ckks/scale.h"
#include "core/watch_lock.h"

namespace crenel::circuits {

using ckks::Ciphertext;
using Inputs = std::span<const Ciphertext* const>;

namespace {

void expect_same(std::size_t index, const char* what, bool same, const std::string& found,
                 const std::string& first) {
  if (!same)
    throw StateError(cat("bootstrap of a list: ciphertext ", index, " has ", what, " ", found,
                         ", the first ", first, "; one bootstrap takes equal ones"),
                     {{"index", index}, {what, found}, {"expected", first}});
}

}  // namespace

u64 Bootstrapper::State::vectors() const {
  return plan.options.message == BootstrapMessage::pair ? 2 : 1;
}

u64 Bootstrapper::State::packs(std::size_t inputs) const {
  const u64 each = vectors() * plan.options.pack;
  return (inputs + each - 1) / each;
}

void Bootstrapper::State::check_inputs(const Ev& ev, Inputs in, bool list) const {
  if (in.empty())
    throw ParameterError("bootstrap of no ciphertexts, expected at least one",
                         {{"ciphertexts", 0}, {"expected", ">= 1"}});
  const Ciphertext& first = *in[0];
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Ciphertext& a = *in[i];
    check_input(ev, a, list);
    expect_same(i, "level", a.level() == first.level(), cat(a.level()), cat(first.level()));
    expect_same(i, "scale", ckks::scales_agree(a.scale(), first.scale()), cat(a.scale()),
                cat(first.scale()));
    expect_same(i, "batch", a.batch() == first.batch(), cat(a.batch()), cat(first.batch()));
    expect_same_secret_key(a.secret_key_id(), first.secret_key_id(), "ciphertext", "the first");
  }
}

// A place has one vector, or u + i v of two.
void Bootstrapper::State::check_bounds(Inputs in) const {
  for (std::size_t i = 0; i < in.size(); i += vectors()) {
    double bound = in[i]->bound();
    if (vectors() == 2 && i + 1 < in.size())
      bound = ckks::magnitude::sum(bound, in[i + 1]->bound());
    check_bound(*in[i], bound);
  }
}

// Row k of pack p is place p K + k, in the order that MonomialPacking wants: all rows of k = 0
// first. Places that nobody has are zero.
Ciphertext Bootstrapper::State::gathered(const Ev& ev, Inputs in) const {
  const auto& s = ev.state();
  const Ciphertext& first = *in[0];
  const u32 batch = first.batch(), pack = plan.options.pack,
            count = static_cast<u32>(packs(in.size()));
  rlwe::Poly rows = s.poly(2, pack * count * batch, first.level());
  const u64 places = (in.size() + vectors() - 1) / vectors();
  for (u32 p = 0; p < count; ++p)
    for (u32 k = 0; k < pack; ++k) {
      const rlwe::View to = rows.view().rows((k * count + p) * batch, batch);
      const u64 place = u64(p) * pack + k, i = place * vectors();
      const std::size_t bytes = first.data().poly.bytes();
      if (place >= places) {
        s.stream->fill_zero(to.data, bytes);
      } else if (vectors() == 2 && i + 1 < in.size()) {
        const auto& limbs = s.ring().window(first.level());
        const rlwe::ConstView terms[] = {in[i]->data().poly.view(), in[i + 1]->data().poly.view()};
        const rlwe::Scalars scalars[] = {s.ring().integer_scalars(limbs, 1, 0),
                                         s.ring().integer_scalars(limbs, 0, 1)};
        s.kernels().linear_combination(*s.stream, to, terms, scalars, nullptr);
      } else {
        s.stream->copy(to.data, in[i]->data().poly.data(), bytes);
      }
    }
  ckks::Metadata meta = first.metadata();
  meta.slots = plan.options.slots;
  meta.real = false;
  meta.bound = ckks::kUnknownBound;
  return s.wrap(std::move(rows), meta);
}

std::vector<Ciphertext> Bootstrapper::State::scattered(const Ev& ev, Ciphertext rows,
                                                       Inputs in) const {
  const u32 batch = in[0]->batch(), pack = plan.options.pack,
            count = static_cast<u32>(packs(in.size())), all = rows.batch();
  if (vectors() == 2) rows = split_real_imaginary(ev, rows);
  std::vector<Ciphertext> out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const u32 place = static_cast<u32>(i / vectors()), part = static_cast<u32>(i % vectors());
    const u32 row = (place % pack * count + place / pack) * batch;
    out.push_back(with_slots(rows.slice(part * all + row, batch), in[i]->slots()));
  }
  return out;
}

std::vector<Ciphertext> Bootstrapper::State::refreshed(const Ev& ev, Inputs in) const {
  const auto refresh = [&](const Ciphertext& rows) {
    return plan.options.iterations > 1 ? refined(ev, rows) : once(ev, rows);
  };
  std::vector<Ciphertext> out;
  if (in.size() == 1 && vectors() == 1 && plan.options.pack == 1)  // nothing to gather
    out.push_back(with_slots(refresh(*in[0]), in[0]->slots()));
  else
    out = scattered(ev, refresh(gathered(ev, in)), in);
  return out;
}

template <class F>
std::vector<Ciphertext> Bootstrapper::State::with_bounds(const Ev& ev, Inputs in, bool list,
                                                         const F& f) const {
  check_inputs(ev, in, list);
  check_bounds(in);
  // The steps between are of other vectors than the messages.
  std::vector<Ciphertext> free;
  std::vector<const Ciphertext*> unbounded(in.begin(), in.end());
  free.reserve(in.size());
  for (auto& a : unbounded)
    if (a->bound() != ckks::kUnknownBound) {
      free.push_back(ev.state().copy(*a));
      free.back().state_bound(ckks::kUnknownBound);
      a = &free.back();
    }
  std::vector<Ciphertext> out = f(Inputs(unbounded));
  for (std::size_t i = 0; i < in.size(); ++i) out[i].data().meta.bound = in[i]->bound();
  return out;
}

// The inputs were checked.
std::vector<Ciphertext> Bootstrapper::State::without_graph(const Ev& ev, Inputs in) const {
  check_keys(ev, rotations, plan.eval_mod(), plan.options);
  expect_room(ev, static_cast<u32>(packs(in.size())) * in[0]->batch());
  const rlwe::KeySource::Pass pass(ev.state().source, this);
  watch::Task task(steps(), "bootstrap");
  std::vector<Ciphertext> results = refreshed(ev, in);
  task.finish();
  return results;
}

std::vector<Ciphertext> Bootstrapper::State::run(const Ev& ev, Inputs in) {
  const bool graphs = context.device().has_graphs();
  const bool fixed = ev.state().source && ev.state().source->fixed();
  // Inside a recording of the caller: its replays must not read what tenants of this graph bind.
  const bool recorded = ev.stream().capturing();
  if (!plan.options.graph || !graphs || !fixed || recorded || plan.options.iterations > 1)
    return without_graph(ev, in);
  check_keys(ev, rotations, plan.eval_mod(), plan.options);
  watch::Task task(steps(), "bootstrap");
  const auto lock = watch::lock(mutex_);
  std::vector<Signature> wanted;
  for (const Ciphertext* a : in) wanted.push_back({a->slots(), a->batch(), a->metadata().real});
  if (!graph_ || graph_inputs_ != wanted || !graph_->serves(ev)) {
    graph_.reset();  // first: its memory serves the next one
    expect_room(ev, static_cast<u32>(packs(in.size())) * in[0]->batch());
    const ckks::Graph::KeyedFunction body = [this](const Ev& keys,
                                                   std::span<const Ciphertext> inputs) {
      std::vector<const Ciphertext*> pointers;
      for (const Ciphertext& a : inputs) pointers.push_back(&a);
      return refreshed(keys, pointers);
    };
    std::vector<Ciphertext> copies;
    for (const Ciphertext* a : in) copies.push_back(ev.state().copy(*a));
    graph_ = std::make_unique<ckks::Graph>(ev, copies, body);
    graph_inputs_ = std::move(wanted);
  }
  std::vector<Ciphertext> results = graph_->replay(ev, in);
  task.finish();
  return results;
}

namespace {

// What comes out of a bootstrap of pairs is half of them, for pair() to split.
void expect_one_vector(const BootstrapPlan& plan) {
  if (plan.options.message == BootstrapMessage::pair)
    throw StateError(
        "bootstrap of one ciphertext by a bootstrapper of pairs; call pair(u, v), or give a list",
        {{"message", "pair"}, {"expected", "complex or real"}});
}

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

Ciphertext only(std::vector<Ciphertext> results) { return std::move(results[0]); }

}  // namespace

template <class F>
std::vector<Ciphertext> Bootstrapper::State::all(const Bootstrapper& boot, const Ev& ev, Inputs in,
                                                 bool list, const F& f) {
  const auto& observer = ev.state().observer;
  if (!observer) return with_bounds(ev, in, list, [&](Inputs x) { return f(ev, x); });
  std::vector<Ciphertext> out = all(boot, observer->evaluator(), in, list, f);
  const auto range = result_range(context.params(), plan);
  for (std::size_t i = 0; i < in.size(); ++i)
    out[i] = observed(*observer, boot, range, *in[i],
                      [&](const auto&, const auto&) { return std::move(out[i]); });
  return out;
}

std::vector<Ciphertext> Bootstrapper::State::called(const Bootstrapper& boot, const Ev& ev,
                                                    Inputs in, bool list) {
  return all(boot, ev, in, list, [&](const Ev& on, Inputs x) { return run(on, x); });
}

std::vector<Ciphertext> Bootstrapper::State::eager(const Bootstrapper& boot, const Ev& ev,
                                                   Inputs in, bool list) {
  return all(boot, ev, in, list, [&](const Ev& on, Inputs x) { return without_graph(on, x); });
}

const ckks::Evaluator& Bootstrapper::own() const {
  if (!own_)
    throw StateError(
        "bootstrap without keys; pass an evaluator, or make the bootstrapper with keys",
        {{"expected", "an evaluator"}});
  return *own_;
}

Ciphertext Bootstrapper::operator()(const ckks::Evaluator& ev, const Ciphertext& a) const {
  expect_one_vector(state_->plan);
  const Ciphertext* in = &a;
  return only(state_->called(*this, ev, {&in, 1}, false));
}

Ciphertext Bootstrapper::eager(const ckks::Evaluator& ev, const Ciphertext& a) const {
  expect_one_vector(state_->plan);
  const Ciphertext* in = &a;
  return only(state_->eager(*this, ev, {&in, 1}, false));
}

std::vector<Ciphertext> Bootstrapper::operator()(const ckks::Evaluator& ev, Inputs in) const {
  return state_->called(*this, ev, in, true);
}

std::vector<Ciphertext> Bootstrapper::eager(const ckks::Evaluator& ev, Inputs in) const {
  return state_->eager(*this, ev, in, true);
}

std::pair<Ciphertext, Ciphertext> Bootstrapper::pair(const ckks::Evaluator& ev, const Ciphertext& u,
                                                     const Ciphertext& v) const {
  if (state_->plan.options.message != BootstrapMessage::pair)
    throw StateError("bootstrap of a pair, made with another kind of message",
                     {{"expected", "BootstrapMessage::pair"}});
  const Ciphertext* in[] = {&u, &v};
  std::vector<Ciphertext> out = state_->called(*this, ev, in, false);
  return {std::move(out[0]), std::move(out[1])};
}

Ciphertext Bootstrapper::operator()(const Ciphertext& a) const { return (*this)(own(), a); }
Ciphertext Bootstrapper::eager(const Ciphertext& a) const { return eager(own(), a); }
std::vector<Ciphertext> Bootstrapper::operator()(Inputs in) const { return (*this)(own(), in); }
std::vector<Ciphertext> Bootstrapper::eager(Inputs in) const { return eager(own(), in); }
std::pair<Ciphertext, Ciphertext> Bootstrapper::pair(const Ciphertext& u,
                                                     const Ciphertext& v) const {
  return pair(own(), u, v);
}

}  // namespace crenel::circuits
