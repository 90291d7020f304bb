// Plaintexts of a bootstrap, and what its keys and inputs must be.
#include "circuits/bootstrapping/state.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "circuits/bootstrapping/defaults.h"
#include "circuits/bootstrapping/key_fit.h"
#include "circuits/bootstrapping/report.h"
#include "circuits/dft/dft.h"
#include "circuits/linear_transform/keys.h"
#include "ckks/batch_request.h"
#include "ckks/params/chain.h"
#include "crenel/core/watch.h"

namespace crenel::circuits {

using ckks::Ciphertext;

namespace {

// Their options, a level for each.
std::vector<LinearTransformOptions> transform_options(const ckks::Context& context,
                                                      const BootstrapPlan& plan,
                                                      std::span<const DiagonalMatrix> matrices,
                                                      u32 level, bool keep_scale) {
  // With the geometric mean of the rescale ratios the tracked scale ends where it began, and all
  // plaintexts are equally precise however uneven the levels are. 0: canonical to canonical.
  double log_scale = 0.0;
  for (u32 i = 0; i < matrices.size(); ++i)
    log_scale += std::log2(context.params().rescale_ratio(level - i));
  std::vector<LinearTransformOptions> out;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    LinearTransformOptions o;
    o.level = level;
    o.plain_scale = keep_scale ? std::exp2(log_scale / static_cast<double>(matrices.size())) : 0.0;
    o.keys = plan.options.keys.value();
    out.push_back(o);
    --level;
  }
  return out;
}

u64 bytes_of(const ckks::Context& context, std::span<const DiagonalMatrix> matrices,
             const std::vector<LinearTransformOptions>& options) {
  u64 bytes = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i)
    bytes += plaintext_bytes_of(context, matrices[i], options[i]);
  return bytes;
}

std::vector<LinearTransform> transforms(const ckks::Context& context,
                                        std::span<const DiagonalMatrix> matrices,
                                        const std::vector<LinearTransformOptions>& options) {
  std::vector<LinearTransform> out;
  for (std::size_t i = 0; i < matrices.size(); ++i)
    out.emplace_back(context, matrices[i], options[i]);
  return out;
}

// Rotations by slots, 2 slots, ..., N/4: their sum is the trace to the subring of fewer slots.
std::vector<i64> trace_rotations(const ckks::Params& params, u64 slots) {
  std::vector<i64> steps;
  for (u64 k = slots; k < params.slots(); k *= 2) steps.push_back(static_cast<i64>(k));
  return steps;
}

}  // namespace

BootstrapMatrices::BootstrapMatrices(const BootstrapPlan& plan)
    : coeff_to_slot(coeff_to_slot_matrices(plan)), slot_to_coeff(slot_to_coeff_matrices(plan)) {
  if (plan.join_halves()) halves = joined_halves(plan.slots());
}

// Of every matrix, and of the trace.
std::vector<RotationNeed> BootstrapMatrices::rotations(const ckks::Params& params,
                                                       const BootstrapPlan& plan) const {
  std::vector<RotationNeed> needs;
  std::span<const DiagonalMatrix> first = coeff_to_slot;
  if (plan.over_mod_raise()) {
    RotationNeed raised{{}, first[0].slots, plan.raised(), true};
    for (const auto& [k, values] : first[0].diagonals) raised.steps.push_back(static_cast<i64>(k));
    needs.push_back(std::move(raised));
    first = first.subspan(1);
  }
  const auto add = [&](std::span<const DiagonalMatrix> matrices, u32 level) {
    for (const auto& matrix : matrices) {
      std::vector<u64> offsets;
      for (const auto& [k, values] : matrix.diagonals) offsets.push_back(k);
      needs.push_back(
          {linear_transform_rotations(offsets, matrix.slots, 0, plan.options.keys.value()),
           matrix.slots, level--});
    }
  };
  add(first, plan.raised());
  add(slot_to_coeff, plan.levels.slot_to_coeff);
  if (halves) add(std::span(&*halves, 1), plan.reduced.level);
  needs.push_back({trace_rotations(params, plan.slots()), params.slots(), plan.raised()});
  if (plan.options.pack > 1)
    needs.push_back({MonomialPacking::rotations(plan.options.slots, plan.options.pack),
                     params.slots(), plan.levels.output});
  return needs;
}

ckks::KeyRequest bootstrap_key_request(const ckks::Params& params,
                                       const BootstrapOptions& options) {
  const BootstrapPlan plan = plan_bootstrap(params, with_any_ratio(options));
  // Also what a program does between bootstraps, which never is above the top normal level, nor, by
  // rotation keys that are no larger for it, above the one whose primes a short raise keeps.
  const u32 least = params.normal_top_level(), low = plan.levels.short_base.value_or(least);
  const rlwe::Chain chain = ckks::chain_of(params);
  const auto aligned = [&](u32 level) {
    return plan.options.savings.aligned_keys && !rlwe::is_short(level) && chain.aligned(level);
  };
  ckks::KeyRequest request;
  for (const RotationNeed& need : BootstrapMatrices(plan).rotations(params, plan)) {
    if (need.turned) {
      request.encapsulation_rotations = need.steps;
      continue;
    }
    // With an aligned key beside it a key need not serve that level itself: it has a digit less.
    const bool beside = aligned(need.level);
    const u32 level = !beside ? rlwe::both(low, need.level) : low == need.level ? low - 1 : low;
    for (i64 steps : need.steps) {
      u32& highest = request.rotation_levels.try_emplace(steps, level).first->second;
      highest = rlwe::both(highest, level);
      if (!beside) continue;
      u32& top = request.aligned_rotations.try_emplace(steps, need.level).first->second;
      top = std::max(top, need.level);
    }
  }
  for (const auto& [steps, level] : request.rotation_levels) request.rotations.push_back(steps);
  request.conjugate = true;
  request.conjugation_level = rlwe::both(least, plan.eval_mod());
  request.relinearisation_level = request.conjugation_level;
  if (!rlwe::is_short(plan.eval_mod()) && plan.options.savings.aligned_keys)
    request.aligned_relinearisation = chain.highest_aligned(plan.eval_mod());
  request.encapsulation = true;
  return request;
}

Bootstrapper::State::State(const ckks::Context& c, BootstrapPlan p,
                           const BootstrapMatrices& matrices)
    : context(c),
      plan(std::move(p)),
      encapsulation(*c.state().ring),
      sine(fit_mod1(plan.mod1)),
      correction(circuits::correction_bits(c.params(), plan)),
      trace_steps(trace_rotations(c.params(), plan.slots())),
      rotations(matrices.rotations(c.params(), plan)),
      packing(*c.state().ring, plan.options.slots, plan.options.pack, plan.levels.input,
              plan.levels.output) {
  if (plan.levels.short_base)
    c.state().ring->make_short_levels(*plan.levels.short_base, plan.levels.raised);
  std::span<const DiagonalMatrix> regular = matrices.coeff_to_slot;
  if (plan.over_mod_raise()) regular = regular.subspan(1);
  const auto first = transform_options(c, plan, regular, plan.raised(), true);
  const auto last = transform_options(c, plan, matrices.slot_to_coeff, plan.levels.slot_to_coeff,
                                      !plan.slot_to_coeff_first());
  LinearTransformOptions join;
  join.level = plan.reduced.level;
  join.plain_scale = plan.halves_scale;
  join.keys = plan.options.keys.value();
  u64 bytes = bytes_of(c, regular, first) + bytes_of(c, matrices.slot_to_coeff, last);
  if (matrices.halves) bytes += plaintext_bytes_of(c, *matrices.halves, join);
  if (plan.over_mod_raise())
    bytes += raised_plaintext_bytes(c, matrices.coeff_to_slot[0], plan.raised());
  device::expect_room(c.device(), {.device = bytes}, [&] {
    return core::MemoryRequest{.what = "plaintexts of a bootstrapper",
                               .advice = "bootstrap fewer slots, or in more stages"};
  });
  u64 diagonals = matrices.halves ? matrices.halves->diagonals.size() : 0;
  for (const auto* factors : {&matrices.coeff_to_slot, &matrices.slot_to_coeff})
    for (const auto& factor : *factors) diagonals += factor.diagonals.size();
  watch::Task task(diagonals, "bootstrapper");
  if (plan.over_mod_raise()) raised_factor.emplace(c, matrices.coeff_to_slot[0], plan.raised());
  coeff_to_slot = transforms(c, regular, first);
  slot_to_coeff = transforms(c, matrices.slot_to_coeff, last);
  if (matrices.halves) halves.emplace(c, *matrices.halves, join);
  task.finish();
}

void Bootstrapper::State::expect_room(const ckks::Evaluator& ev, u32 batch) const {
  u64 needed = raised_factor ? raised_factor->working_bytes(batch) : 0;
  for (const auto* factors : {&coeff_to_slot, &slot_to_coeff})
    for (const auto& factor : *factors) needed = std::max(needed, factor.working_bytes(batch));
  device::expect_room(ev.stream(), {.device = needed},
                      [&] { return ckks::batch_request("a bootstrap", batch, needed); });
}

std::shared_ptr<Bootstrapper::State> Bootstrapper::State::shared(
    const ckks::Context& context, BootstrapPlan plan, const BootstrapMatrices* matrices) {
  const BootstrapOptions& o = plan.options;
  std::string key =
      cat("bootstrapper ", o.slots, " ", o.pack, " ", o.message_ratio.value(), " ", int(o.values),
          plan.ratio_chosen, " ", int(o.message), " ", int(o.order), " ", o.arcsine_degree, " ",
          o.target_level ? cat(*o.target_level) : "highest", " ", o.iterations, " ",
          int(o.keys.value()), " ", o.graph, plan.over_mod_raise(), o.savings.folded_sums,
          o.savings.short_raise, o.savings.real_symmetry, o.savings.aligned_keys);
  for (const auto* stages : {&o.coeff_to_slot_stages, &o.slot_to_coeff_stages}) {
    key += " |";
    for (u32 s : *stages) key += cat(" ", s);
  }
  return context.state().shared.get<State>(key, [&] {
    if (matrices != nullptr) return std::make_shared<State>(context, std::move(plan), *matrices);
    const BootstrapMatrices made(plan);
    return std::make_shared<State>(context, std::move(plan), made);
  });
}

bool serves(const ckks::Evaluator::State& s, const RotationNeed& need) {
  if (!need.turned) return missing_rotations(s, need.steps, need.slots, need.level).empty();
  return std::all_of(need.steps.begin(), need.steps.end(), [&](i64 k) {
    const u64 element = ring::galois_element_for_rotation(k, s.params().log_n());
    return s.has_key(rlwe::turned_key(element), need.level);
  });
}

void Bootstrapper::State::check_keys(const ckks::Evaluator& ev,
                                     std::span<const RotationNeed> rotations, u32 level,
                                     const BootstrapOptions& options) {
  const auto& s = ev.state();
  const u32 log_n = s.params().log_n();
  const rlwe::KeyId others[] = {ring::galois_element_for_conjugation(log_n), rlwe::kRelinearisation,
                                rlwe::kDenseToSparse};
  // Not by aligned keys: those serve some of EvalMod's levels only.
  const auto has = [&](rlwe::KeyId id) { return s.serves({id, level}); };
  const auto served = [&](const RotationNeed& need) { return serves(s, need); };
  if (std::all_of(std::begin(others), std::end(others), has) &&
      std::all_of(rotations.begin(), rotations.end(), served))
    return;
  ckks::KeyDemand demand(log_n);
  std::vector<rlwe::KeyId> turned;
  for (const RotationNeed& need : rotations)
    for (i64 k : need.steps) {
      if (need.turned)
        turned.push_back(rlwe::turned_key(ring::galois_element_for_rotation(k, log_n)));
      else
        demand.rotation(k, {need.level, s.rotation_level(k, need.slots, need.level)});
    }
  for (rlwe::KeyId id : others) demand.key(id, {level, s.key_level(id)});
  for (rlwe::KeyId id : turned) demand.key(id, {level, s.key_level(id)});
  demand.expect("bootstrap", key_call(s.params(), options));
}

void Bootstrapper::State::check_input(const Ev& ev, const Ciphertext& a, bool list) const {
  const auto& s = ev.state();
  s.check_serves(context);
  s.check_components(a, 2, "bootstrap");
  const bool canonical = check_input(a.metadata(), list);
  if (plan.options.iterations > 1) check_refinable(a, canonical);
}

bool Bootstrapper::State::check_input(const ckks::Metadata& a, bool list) const {
  const u32 input = plan.levels.input;
  const u64 slots = plan.options.slots;
  if (list ? a.slots > slots : a.slots != slots)
    throw StateError(
        cat("bootstrap of ", a.slots, " slots, made for ", slots, list ? " or fewer" : ""),
        {{"slots", a.slots}, {"expected", slots}});
  const double scale = context.params().scale(input);
  const bool canonical = ckks::scales_agree(a.scale, scale);
  if (plan.options.iterations > 1) return canonical;
  if (a.level != input)
    throw StateError(cat("bootstrap of a ciphertext at level ", a.level, ", expected level ", input,
                         "; adjust_level it"),
                     {{"operation", "bootstrap"}, {"level", a.level}, {"expected", input}});
  if (!canonical)
    throw StateError(cat("bootstrap of a ciphertext of scale ", a.scale, ", expected ", scale,
                         ", the canonical one of level ", input),
                     {{"scale", a.scale}, {"expected", scale}});
  return canonical;
}

void Bootstrapper::State::check_bound(const Ciphertext& a, double bound) const {
  if (bound == ckks::kUnknownBound) return;
  const double largest = largest_message(context.params(), plan);
  if (bound <= largest) return;
  throw StateError(
      cat("bootstrap at level ", a.level(), " of values up to ", brief(bound),
          " by their bound, expected at most ", brief(largest), " for the message ratio ",
          plan.options.message_ratio.value(), "; scale them down, or take a larger message_ratio"),
      {{"operation", "bootstrap"}, {"level", a.level()}, {"bound", bound}, {"max_value", largest}});
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
                     {{"level", a.level()},
                      {"scale", a.scale()},
                      {"expected", cat(input, "..", plan.levels.output - 1)}});
  if (a.level() == input) return;
  // Room for the constants that bring input and result to each other's scale.
  const double highest = context.params().log_q(a.level()) - 20.0;
  if (!(std::log2(a.scale()) < highest))
    throw StateError(cat("two iterations on a ciphertext of scale 2^", std::log2(a.scale()),
                         " at level ", a.level(), ", expected below 2^", highest),
                     {{"scale", a.scale()}, {"expected", cat("2^", highest)}});
}

}  // namespace crenel::circuits
