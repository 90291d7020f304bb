// Keys of several steps, and which of them a batch takes.
#include "crenel/tfhe/steps.h"

#include <algorithm>
#include <cmath>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "device/room.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/keygen.h"
#include "tfhe/params/plan.h"
#include "tfhe/step_times.h"

namespace crenel::tfhe {
namespace {

// On hosts every thread takes rotations of its own, so that a step is as good for one as for many:
// user seconds of a look-up of lut4-128 by steps of 2, 4 and 1 are as 1 to 1.12 to 1.47, medians of
// 9 in turns, one thread with AVX-512.
constexpr u32 kHostSteps[] = {2, 4, 3, 1, 6, 5};

std::vector<u32> ascending(std::span<const u32> steps) {
  std::vector<u32> out(steps.begin(), steps.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Of a step at a measured batch; infinite where it was not measured.
double seconds_of(u32 step, u32 batch) {
  for (const StepTime& time : kStepTimes)
    if (time.step == step && time.rotations == batch) return time.seconds;
  return HUGE_VAL;
}

u32 best_of(std::span<const u32> steps, u32 batch) {
  return *std::min_element(steps.begin(), steps.end(), [&](u32 a, u32 b) {
    return seconds_of(a, batch) < seconds_of(b, batch);
  });
}

// As kStepTimes has it, on a device of so many multiprocessors. Between two batches times are taken
// as linear, and the table changes where they meet. Empty where no step was measured.
StepTable fastest(std::span<const u32> steps, u32 processors) {
  std::vector<u32> batches;
  for (const StepTime& time : kStepTimes) batches.push_back(time.rotations);
  batches = ascending(batches);
  std::vector<u32> measured;
  for (const u32 step : steps)
    if (std::isfinite(seconds_of(step, batches[0]))) measured.push_back(step);
  if (measured.empty()) return {};
  const auto here = [&](double batch) {
    return std::max<u64>(1, static_cast<u64>(batch * processors / kStepTimesProcessors));
  };
  StepTable table{{0, best_of(measured, batches[0])}};
  for (std::size_t i = 1; i < batches.size(); ++i) {
    const u32 low = batches[i - 1], high = batches[i], before = table.back().step;
    const u32 after = best_of(measured, high);
    if (after == before) continue;
    const double ahead = seconds_of(after, low) - seconds_of(before, low);
    const double behind = seconds_of(before, high) - seconds_of(after, high);
    table.back().rotations = here(low + (high - low) * (ahead / (ahead + behind)));
    table.push_back({0, after});
  }
  table.back().rotations = here(batches.back());
  return table;
}

[[noreturn]] void refuse_table(const std::string& found, const std::string& expected) {
  throw ParameterError(cat("step_table: ", found, ", expected ", expected),
                       {{"found", found}, {"expected", expected}});
}

void check_table(const StepTable& table, std::span<const u32> steps) {
  u64 before = 0;
  for (const StepRule& rule : table) {
    if (rule.rotations <= before)
      refuse_table(cat("rule for up to ", rule.rotations, " rotations after one for ", before),
                   "ascending numbers, at least 1");
    before = rule.rotations;
    if (std::find(steps.begin(), steps.end(), rule.step) == steps.end())
      refuse_table(cat("steps of ", rule.step), "steps that the evaluator has keys for");
  }
}

// The most that any of several steps adds, term by term.
void take_most(NoiseBudget& budget, const NoiseBudget& other) {
  for (double NoiseBudget::* term :
       {&NoiseBudget::blind_rotation, &NoiseBudget::transform, &NoiseBudget::switch_rounding,
        &NoiseBudget::key_switch, &NoiseBudget::rest_rounding, &NoiseBudget::rotation_rounding})
    budget.*term = std::max(budget.*term, other.*term);
}

std::vector<StepKeys::Key> keys_of(const Context::State& home, const EvaluationKeys::Data& keys,
                                   std::span<const u32> steps) {
  return keys.others->get(
      steps,
      [&](std::span<const u32> missing) {
        u64 bytes = 0;
        for (const u32 step : missing) bytes += home.stepped(step).bootstrap_key_bytes();
        device::expect_room(*home.device, {.device = bytes}, [&] {
          return core::MemoryRequest{
              .what = cat("keys of ", home.params.name(), " for ", missing.size(), " more steps"),
              .advice = "ask for fewer steps"};
        });
      },
      [&](u32 step) {
        const watch::Task task(made_plan(home.plan).steps(), "keys of another step");
        auto key = std::make_shared<const device::Buffer>(
            load_bootstrap_key(home, home.stepped(step), keys));
        home.stream->trim();  // what the making took is more than evaluation will need
        return key;
      });
}

}  // namespace

u32 step_of(const StepTable& table, u64 rotations) {
  for (const StepRule& rule : table)
    if (rotations <= rule.rotations) return rule.step;
  return table.back().step;
}

u64 step_bytes(const Context& context, u32 step) {
  const Params params = context.params().with_step(step);
  return context.state().stepped(params.spec().step).bootstrap_key_bytes();
}

StepTable measured_step_table(const Context& context, std::span<const u32> steps) {
  const std::vector<u32> wanted = ascending(steps);
  if (wanted.empty()) throw ParameterError("no steps, expected at least one", {{"steps", 0}});
  for (const u32 step : wanted) context.params().with_step(step);  // refuses
  if (wanted.size() == 1) return {{1, wanted[0]}};
  const auto& info = context.device().info();
  if (info.kind != device::Kind::cuda) {
    for (const u32 step : kHostSteps)
      if (std::find(wanted.begin(), wanted.end(), step) != wanted.end()) return {{1, step}};
  } else if (const auto& plan = context.state().plan;
             plan.ring_dim() == kStepTimesRingDim && plan.polys() == kStepTimesPolys) {
    StepTable table = fastest(wanted, info.processors);
    if (!table.empty()) return table;
  }
  throw UnsupportedError(
      cat("no times are known of steps of '", context.params().name(), "' on ", info.description,
          ", expected a step_table, which says up to how many rotations each step is taken"),
      {{"name", context.params().name()}, {"device", info.name}});
}

void Evaluator::State::take_steps(const EvaluatorOptions& options) {
  const u32 own = plan().group;
  if (own == 0) {
    if (!options.steps.empty() || !options.step_table.empty())
      params().with_step(options.steps.empty() ? 1 : options.steps[0]);  // refuses, saying why
    return;
  }
  std::vector<u32> others = ascending(options.steps);
  others.erase(std::remove(others.begin(), others.end(), own), others.end());
  double promise = params().p_fail_log2();
  for (const u32 step : others) {
    const Params stepped = params().with_step(step);
    promise = std::max(promise, stepped.p_fail_log2());
    take_most(budget, noise_budget(plan_of(stepped), std::sqrt(kErrorVariance)));
  }
  if (!options.max_p_fail_log2) max_p_fail_log2 = std::max(max_p_fail_log2, promise);
  std::vector<u32> all = others;
  all.push_back(own);
  check_table(options.step_table, all);
  if (!options.step_table.empty())
    step_table = options.step_table;
  else if (!others.empty())
    step_table = measured_step_table(context, all);
  forms.push_back({own, home().torus.get(), nullptr});
  if (others.empty()) return;
  const std::vector<StepKeys::Key> made = keys_of(home(), bootstrap_keys(), others);
  for (std::size_t i = 0; i < others.size(); ++i)
    forms.push_back({others[i], &home().stepped(others[i]), made[i]});
}

const Evaluator::State::Form& Evaluator::State::form_of(u64 rows) const {
  if (step_table.empty()) return forms.front();
  const u32 step = step_of(step_table, rows);
  return *std::find_if(forms.begin(), forms.end(), [&](const Form& f) { return f.step == step; });
}

std::vector<u32> Evaluator::steps() const {
  std::vector<u32> found;
  for (const State::Form& form : state_->forms) found.push_back(form.step);
  return ascending(found);
}

const StepTable& Evaluator::step_table() const { return state_->step_table; }

std::vector<u32> EvaluationKeys::steps() const {
  if (!data_ || data_->home->plan.group == 0) return {};
  std::vector<u32> found = data_->others->steps();
  found.push_back(data_->home->plan.group);
  return ascending(found);
}

}  // namespace crenel::tfhe
