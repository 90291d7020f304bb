// A bootstrap's error bound (docs/theory/precision.md, "Bounds for results that are shared").
#include <algorithm>
#include <cmath>

#include "circuits/bootstrapping/report.h"
#include "circuits/bootstrapping/state.h"
#include "ckks/norms.h"

namespace crenel::circuits {
namespace {

/// Message and errors must stay where sine and modulus agree: |x| <= 1/8 in units of the modulus.
constexpr double kLargestArgument = 0.125;
/// Beyond a quarter of it the sine turns back: what comes out may be of another message.
constexpr double kTurn = 0.25;
/// Roundings inside EvalMod are propagated to first order only.
constexpr double kMargin = 2.0;

/// q0 over the scale that the message is raised at: nearly 2^message_ratio, as the primes allow.
double modulus_ratio(const ckks::Params& params, const BootstrapPlan& plan) {
  const double exact = plan.q0 / (params.scale(0) * std::exp2(plan.scale_up));
  return std::min(exact, std::exp2(plan.options.message_ratio));
}

/// The method's error in a slot, for slots of at most `size`: no message is worse than the constant
/// (docs/theory/precision.md, "Sine"). SlotToCoeff first, the slots themselves go through the sine,
/// real and imaginary part apart.
double method_error(const BootstrapPlan& plan, double ratio, double size) {
  const double part = ratio * std::abs(modular_error(size / ratio, plan.options.arcsine_degree));
  return plan.slot_to_coeff_first() ? std::sqrt(2.0) * part : part;
}

}  // namespace

double largest_message(const ckks::Params& params, const BootstrapPlan& plan) {
  return modulus_ratio(params, plan) * kLargestArgument;
}

ckks::ResultRange result_range(const ckks::Params& params, const BootstrapPlan& plan) {
  return {modulus_ratio(params, plan) * kTurn, plan.slot_to_coeff_first()};
}

ckks::ErrorBound Bootstrapper::operator()(const ckks::ErrorModel& model,
                                          const ckks::ErrorBound& a) const {
  const BootstrapPlan& plan = state_->plan;
  const ckks::Params& params = state_->context.params();
  if (plan.options.iterations > 1 || plan.options.message == BootstrapMessage::pair)
    throw UnsupportedError("error model of a bootstrap with two iterations or of a pair",
                           {{"iterations", plan.options.iterations}});
  if (a.components != 2)
    throw StateError(cat("bootstrap of ", a.components, " components, expected 2"),
                     {{"components", a.components}, {"expected", 2}});
  state_->check_input(a.meta);
  const BootstrapModel m = model_of(params, plan);
  const double ratio = modulus_ratio(params, plan);
  const double size = a.message + a.ring, room = largest_message(params, plan);
  if (!(size <= room))
    throw StateError(cat("error model: bootstrap of slots up to ", size, ", expected at most ",
                         room, " for the message ratio ", m.message_ratio),
                     {{"message", size}, {"expected", room}});
  const auto parts = estimate_precision(m, {MessageKind::bound, size});
  double square = 0.0, fit = parts.fit.max;
  for (const SlotError* p :
       {&parts.fit, &parts.raise, &parts.cts, &parts.eval_mod, &parts.stc, &parts.output})
    square += p->rms * p->rms;
  const ckks::NormBounds n(params, a.slots());
  ckks::ErrorBound out =
      ckks::with_errors(a, kMargin * n.noise(square / (2.0 * double(a.slots()))));
  // The slope of the sine is at most 1: what came in goes out. The rest is the same in every run.
  const double fixed = method_error(plan, ratio, size) + fit;
  out.rms += fixed, out.max += fixed, out.ring += fixed;
  out.variance += fixed * fixed;
  out.failure += std::exp2(log2_failure_probability(m));
  out.meta.level = plan.levels.output;
  const u32 low =
      plan.levels.slot_to_coeff - static_cast<u32>(plan.options.slot_to_coeff_stages.size());
  const bool as_made = !plan.slot_to_coeff_first() && low == plan.levels.output;
  out.meta.scale = as_made ? plan.output_scale : params.scale(plan.levels.output);
  out.meta.real = plan.options.message == BootstrapMessage::real;
  return model.result(std::move(out));
}

}  // namespace crenel::circuits
