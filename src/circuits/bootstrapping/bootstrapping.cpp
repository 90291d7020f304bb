// The pipeline of ckks_algorithms.md 2.1.
#include <cmath>
#include <set>

#include "circuits/bootstrapping/plan.h"
#include "circuits/bootstrapping/report.h"
#include "circuits/bootstrapping/stages.h"
#include "circuits/linear_transform/keys.h"
#include "circuits/mod1/arcsine.h"
#include "circuits/mod1/eval_mod.h"
#include "ckks/levels.h"
#include "crenel/device/account.h"
#include "rlwe/encapsulation.h"

namespace crenel::circuits {

using ckks::Ciphertext;
using ckks::Evaluator;
using device::Stage;

namespace {

std::vector<LinearTransform> transforms(const ckks::Context& context, const BootstrapPlan& plan,
                                        const std::vector<DiagonalMatrix>& matrices, u32 level,
                                        bool keep_scale) {
  // With the geometric mean of the rescale ratios the tracked scale ends where it began, and all
  // plaintexts are equally precise however uneven the levels are. 0: canonical to canonical.
  double log_scale = 0.0;
  for (u32 i = 0; i < matrices.size(); ++i)
    log_scale += std::log2(context.params().rescale_ratio(level - i));
  std::vector<LinearTransform> out;
  for (const auto& matrix : matrices) {
    LinearTransformOptions o;
    o.level = level;
    o.plain_scale = keep_scale ? std::exp2(log_scale / static_cast<double>(matrices.size())) : 0.0;
    o.keys = plan.options.keys;
    out.emplace_back(context, matrix, o);
    --level;
  }
  return out;
}

// Rotations by slots, 2 slots, ..., N/4: their sum is the trace to the subring of fewer slots.
std::vector<i64> trace_rotations(const ckks::Params& params, u64 slots) {
  std::vector<i64> steps;
  for (u64 k = slots; k < params.slots(); k *= 2) steps.push_back(static_cast<i64>(k));
  return steps;
}

std::vector<u64> offsets_of(const DiagonalMatrix& matrix) {
  std::vector<u64> offsets;
  for (const auto& [k, values] : matrix.diagonals) offsets.push_back(k);
  return offsets;
}

bool stc_first(const BootstrapPlan& p) {
  return p.options.order == BootstrapOrder::slot_to_coeff_first;
}

// SlotToCoeff first, real slots become real coefficients: there is no imaginary half.
bool only_real(const BootstrapPlan& p) {
  return stc_first(p) && p.options.message == BootstrapMessage::real;
}

}  // namespace

ckks::KeyRequest bootstrap_key_request(const ckks::Params& params,
                                       const BootstrapOptions& options) {
  const BootstrapPlan plan = plan_bootstrap(params, options);
  std::set<i64> steps;
  for (const auto& matrices : {coeff_to_slot_matrices(plan), slot_to_coeff_matrices(plan)})
    for (const auto& matrix : matrices)
      for (i64 k :
           linear_transform_rotations(offsets_of(matrix), matrix.slots, 0, plan.options.keys))
        steps.insert(k);
  for (i64 k : trace_rotations(params, plan.slots())) steps.insert(k);
  ckks::KeyRequest request;
  request.rotations.assign(steps.begin(), steps.end());
  request.conjugate = true;
  request.encapsulation = true;
  return request;
}

struct Bootstrapper::State {
  ckks::Context context;
  BootstrapPlan plan;
  Evaluator ev;
  rlwe::Encapsulation encapsulation;
  std::vector<double> sine;  ///< Chebyshev coefficients of EvalMod
  std::vector<i64> trace_steps;
  std::vector<LinearTransform> coeff_to_slot, slot_to_coeff;
  std::unique_ptr<ckks::Graph> graph;  ///< of the last signature
  ckks::Metadata graph_meta;
  u32 graph_batch = 0;

  State(const ckks::Context& c, ckks::EvaluationKeys keys, const BootstrapOptions& options)
      : context(c),
        plan(plan_bootstrap(c.params(), options)),
        ev(c.evaluator(std::move(keys))),
        encapsulation(*c.state().ring),
        sine(fit_mod1(plan.mod1)),
        trace_steps(trace_rotations(c.params(), plan.slots())) {
    const auto cts = coeff_to_slot_matrices(plan), stc = slot_to_coeff_matrices(plan);
    check_keys(cts, stc);
    coeff_to_slot = transforms(c, plan, cts, plan.levels.raised, true);
    slot_to_coeff = transforms(c, plan, stc, plan.levels.slot_to_coeff, !stc_first(plan));
  }

  void check_keys(const std::vector<DiagonalMatrix>& cts,
                  const std::vector<DiagonalMatrix>& stc) const;
  void check_input(const Ciphertext& a) const;
  void check_refinable(const Ciphertext& a, bool canonical) const;
  Ciphertext eager(const Ciphertext& a) const;
  Ciphertext run(const Ciphertext& a);
  Ciphertext once(const Ciphertext& a) const;
  Ciphertext raise(const Ciphertext& a) const;
  Ciphertext apply(const std::vector<LinearTransform>& factors, Ciphertext a) const;
  Ciphertext modular_reduction(const Ciphertext& a) const;
  Ciphertext back_to_slots(Ciphertext a) const;
  Ciphertext finish(Ciphertext a) const;
  Ciphertext refined(const Ciphertext& a) const;
};

void Bootstrapper::State::check_keys(const std::vector<DiagonalMatrix>& cts,
                                     const std::vector<DiagonalMatrix>& stc) const {
  std::set<i64> missing;
  const auto collect = [&](std::span<const i64> steps, u64 slots) {
    const auto some = missing_rotations(ev.state(), steps, slots);
    missing.insert(some.begin(), some.end());
  };
  for (const auto* matrices : {&cts, &stc})
    for (const auto& matrix : *matrices)
      collect(linear_transform_rotations(offsets_of(matrix), matrix.slots, 0, plan.options.keys),
              matrix.slots);
  collect(trace_steps, context.params().slots());
  std::string names;
  const auto miss = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (i64 k : missing) miss(cat(k));
  if (!ev.keys().has_conjugation()) miss("conjugate");
  if (!ev.keys().has_relinearisation()) miss("relinearisation");
  if (!ev.keys().has_encapsulation()) miss("encapsulation");
  if (!names.empty())
    throw KeyMissingError(cat("no evaluation keys for bootstrapping: ", names,
                              "; ask for them by evaluation_keys(bootstrap=True)"),
                          {{"rotation", names}});
}

void Bootstrapper::State::check_input(const Ciphertext& a) const {
  const auto& s = ev.state();
  const u32 input = plan.levels.input;
  s.check_components(a, 2, "bootstrap");
  if (a.slots() != plan.slots())
    throw StateError(cat("bootstrap of ", a.slots(), " slots, made for ", plan.slots()),
                     {{"slots", cat(a.slots())}, {"expected", cat(plan.slots())}});
  const double scale = context.params().scale(input);
  const bool canonical = ckks::scales_agree(a.scale(), scale);
  if (plan.options.iterations > 1) return check_refinable(a, canonical);
  if (a.level() != input)
    throw StateError(cat("bootstrap of a ciphertext at level ", a.level(), ", expected level ",
                         input, "; adjust_level it"),
                     {{"level", cat(a.level())}, {"expected", cat(input)}});
  if (!canonical)
    throw StateError(cat("bootstrap of a ciphertext of scale ", a.scale(), ", expected ", scale,
                         ", the canonical one of level ", input),
                     {{"scale", cat(a.scale())}, {"expected", cat(scale)}});
}

// Two iterations compare the first result with the input, at the input's level and scale: the
// result must be able to get there.
void Bootstrapper::State::check_refinable(const Ciphertext& a, bool canonical) const {
  const u32 input = plan.levels.input;
  if (a.level() < input || a.level() >= plan.levels.output || (a.level() == input && !canonical))
    throw StateError(cat("two iterations on a ciphertext at level ", a.level(), " of scale ",
                         a.scale(), ", expected level ", input,
                         " with its canonical scale, or a level above it and "
                         "below ",
                         plan.levels.output, ", the result's"),
                     {{"level", cat(a.level())},
                      {"scale", cat(a.scale())},
                      {"expected", cat(input, "..", plan.levels.output - 1)}});
  if (a.level() == input) return;
  // Room for the constants that bring input and result to each other's scale.
  const double highest = context.params().log_q(a.level()) - 20.0;
  if (!(std::log2(a.scale()) < highest))
    throw StateError(cat("two iterations on a ciphertext of scale 2^", std::log2(a.scale()),
                         " at level ", a.level(), ", expected below 2^", highest),
                     {{"scale", cat(a.scale())}, {"expected", cat("2^", highest)}});
}

// Steps 1-4: integer scale-up, sparse secret, exact lift, dense secret; the copies of a vector of
// fewer slots are summed. The polynomial is m + q0 I with scale 1.
Ciphertext Bootstrapper::State::raise(const Ciphertext& a) const {
  const Stage stage(ev.stream(), "mod_raise");
  const auto& s = ev.state();
  const Ciphertext scaled = ev.multiply_integer(a, i64(1) << plan.scale_up);
  const auto& keys = *ev.keys().data()->set.encapsulation;
  const auto sparse = encapsulation.to_sparse(*s.stream, scaled.data().poly.view(), keys);
  ckks::Metadata meta = a.metadata();
  meta.level = plan.levels.raised;
  meta.scale = 1.0;
  meta.real = false;
  Ciphertext raised =
      s.wrap(encapsulation.raise(*s.stream, sparse.view(), keys, plan.levels.raised), meta);
  return trace(ev, std::move(raised), trace_steps);
}

Ciphertext Bootstrapper::State::apply(const std::vector<LinearTransform>& factors,
                                      Ciphertext a) const {
  for (const auto& factor : factors) a = factor(ev, with_slots(std::move(a), factor.slots()));
  return a;
}

// Steps 6-8 without SlotToCoeff: real and imaginary parts through EvalMod, in one batch (or,
// joined, in the two halves of one vector).
Ciphertext Bootstrapper::State::modular_reduction(const Ciphertext& a) const {
  std::optional<Ciphertext> parts;
  {
    const Stage stage(ev.stream(), "coeff_to_slot");
    const bool one = plan.joined || only_real(plan);
    parts = one ? ev.add(a, ev.conjugate(a)) : split_real_imaginary(ev, a);
  }
  const Stage stage(ev.stream(), "eval_mod");
  Ciphertext reduced =
      eval_mod(ev, with_scale(std::move(*parts), plan.eval_scale), plan.mod1, sine);
  if (plan.options.arcsine_degree != 0) reduced = arcsine(ev, reduced);
  if (plan.joined || only_real(plan)) return reduced;
  return join_real_imaginary(ev, reduced);
}

// Step 8: SlotToCoeff, on as few limbs as the target allows; then the slots are the message's.
Ciphertext Bootstrapper::State::back_to_slots(Ciphertext a) const {
  const Stage stage(ev.stream(), "slot_to_coeff");
  if (a.level() != plan.levels.slot_to_coeff)
    a = ckks::drop_limbs(ev.state(), a, plan.levels.slot_to_coeff);
  return with_scale(with_slots(apply(slot_to_coeff, std::move(a)), plan.slots()),
                    plan.output_scale);
}

Ciphertext Bootstrapper::State::finish(Ciphertext a) const {
  if (plan.options.message == BootstrapMessage::real) {
    if (!stc_first(plan)) a = ev.add(a, ev.conjugate(a));
    a.data().meta.real = true;
  }
  return a.level() == plan.levels.output ? std::move(a) : ev.adjust_level(a, plan.levels.output);
}

Ciphertext Bootstrapper::State::once(const Ciphertext& a) const {
  if (!stc_first(plan)) {
    Ciphertext up = raise(a);
    {
      const Stage stage(ev.stream(), "coeff_to_slot");
      up = apply(coeff_to_slot, std::move(up));
    }
    return finish(back_to_slots(modular_reduction(up)));
  }
  Ciphertext low = [&] {
    const Stage stage(ev.stream(), "slot_to_coeff");
    return apply(slot_to_coeff, ev.state().copy(a));
  }();
  Ciphertext up = raise(low);
  {
    const Stage stage(ev.stream(), "coeff_to_slot");
    up = apply(coeff_to_slot, std::move(up));
  }
  // The slots are now the message divided by q0 / Delta', at a large scale: read them as the
  // message, and come down to the canonical scale.
  Ciphertext reduced = modular_reduction(up);
  const double ratio = plan.q0 / (context.params().scale(0) * std::exp2(plan.scale_up));
  reduced = with_scale(std::move(reduced), reduced.scale() / ratio);
  return finish(ev.adjust_level(reduced, reduced.level() - 1));
}

// Meta-BTS (ePrint 2022/1167): m - BTS(m) is small; times 2^k it is bootstrapped again, and takes
// the error of the first bootstrap away.
Ciphertext Bootstrapper::State::refined(const Ciphertext& a) const {
  const auto& params = context.params();
  const i64 gain = i64(1) << circuits::correction_bits(params, plan);
  const Ciphertext coarse = once(ev.adjust_level(a, plan.levels.input));
  const Ciphertext low = ev.adjust_level(coarse, a.level(), a.scale());
  const Ciphertext error = ev.multiply_integer(ev.sub(a, low), gain);
  const Ciphertext fine = once(ev.adjust_level(error, plan.levels.input));
  Ciphertext sum = ev.add(ev.multiply_integer(coarse, gain), fine);
  return with_scale(std::move(sum), coarse.scale() * static_cast<double>(gain));
}

Bootstrapper::Bootstrapper(const ckks::Context& context, ckks::EvaluationKeys keys,
                           const BootstrapOptions& options)
    : state_(std::make_unique<State>(context, std::move(keys), options)) {}
Bootstrapper::Bootstrapper(Bootstrapper&&) noexcept = default;
Bootstrapper::~Bootstrapper() = default;

const BootstrapOptions& Bootstrapper::options() const { return state_->plan.options; }
const BootstrapLevels& Bootstrapper::levels() const { return state_->plan.levels; }

BootstrapReport Bootstrapper::describe() const {
  const State& s = *state_;
  BootstrapReport r = report_of(s.context.params(), s.plan);
  s.ev.keys().data()->set.for_each([&](const auto& key) {
    ++r.key_count;
    r.key_bytes += key.pairs.bytes();
  });
  r.plaintext_bytes = 0;
  for (const auto* factors : {&s.coeff_to_slot, &s.slot_to_coeff})
    for (const auto& factor : *factors) r.plaintext_bytes += factor.plaintext_bytes();
  return r;
}

double Bootstrapper::expected_error(const Message& message) const {
  return expected_error_of(state_->context.params(), state_->plan, message);
}

u32 Bootstrapper::correction_bits() const {
  return circuits::correction_bits(state_->context.params(), state_->plan);
}

Ciphertext Bootstrapper::State::eager(const Ciphertext& a) const {
  check_input(a);
  return plan.options.iterations > 1 ? refined(a) : once(a);
}

Ciphertext Bootstrapper::State::run(const Ciphertext& a) {
  const bool graphs = context.device().info().kind == device::Kind::cuda;
  if (!plan.options.graph || !graphs || plan.options.iterations > 1) return eager(a);
  check_input(a);
  if (!graph || graph_batch != a.batch() || graph_meta.real != a.metadata().real) {
    graph.reset();  // first: its memory serves the next one
    graph =
        std::make_unique<ckks::Graph>(ev, std::span(&a, 1), [this](std::span<const Ciphertext> in) {
          std::vector<Ciphertext> out;
          out.push_back(once(in[0]));
          return out;
        });
    graph_batch = a.batch();
    graph_meta = a.metadata();
  }
  return ev.state().copy(graph->replay(std::span(&a, 1))[0]);
}

namespace {

// What comes out of a bootstrap of pairs is half of them, for pair() to split.
void expect_one_vector(const BootstrapPlan& plan) {
  if (plan.options.message == BootstrapMessage::pair)
    throw StateError("bootstrap of one ciphertext by a bootstrapper of pairs; call pair(u, v)",
                     {{"message", "pair"}, {"expected", "complex or real"}});
}

}  // namespace

Ciphertext Bootstrapper::eager(const Ciphertext& a) const {
  expect_one_vector(state_->plan);
  return state_->eager(a);
}

Ciphertext Bootstrapper::operator()(const Ciphertext& a) {
  expect_one_vector(state_->plan);
  return state_->run(a);
}

std::pair<Ciphertext, Ciphertext> Bootstrapper::pair(const Ciphertext& u, const Ciphertext& v) {
  State& s = *state_;
  if (s.plan.options.message != BootstrapMessage::pair)
    throw StateError("bootstrap of a pair, made with another kind of message",
                     {{"expected", "BootstrapMessage::pair"}});
  const Ciphertext both = s.run(s.ev.add(u, s.ev.multiply_integer(v, 0, 1)));
  const Ciphertext parts = split_real_imaginary(s.ev, both);
  Ciphertext first = batch_rows(s.ev, parts, 0, u.batch());
  return {std::move(first), batch_rows(s.ev, parts, u.batch(), u.batch())};
}

}  // namespace crenel::circuits
