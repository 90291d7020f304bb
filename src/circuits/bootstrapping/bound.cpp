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
  return std::min(exact, std::exp2(plan.options.message_ratio.value()));
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
  const double range = modulus_ratio(params, plan) * kLargestArgument;
  // Coefficients of members lie side by side; their slots add.
  return plan.slot_to_coeff_first() ? range / plan.options.pack : range;
}

ckks::ResultRange result_range(const ckks::Params& params, const BootstrapPlan& plan) {
  return {modulus_ratio(params, plan) * kTurn, plan.slot_to_coeff_first()};
}

namespace {

// Of one member of `pack`, all of which are in its errors: what its copies have in common is the
// message's, and the rest of theirs is spread over the members.
ckks::ErrorBound member_bound(const ckks::Params& params, const BootstrapPlan& plan,
                              std::span<const ckks::ErrorBound> pack, std::size_t index) {
  const BootstrapModel m = model_of(params, plan);
  const double ratio = modulus_ratio(params, plan), room = largest_message(params, plan);
  double size = 0.0;
  for (const ckks::ErrorBound& a : pack) size = std::max(size, a.message + a.ring);
  if (!(size <= room))
    throw StateError(cat("error model: bootstrap of slots up to ", size, ", expected at most ",
                         room, " for the message ratio ", m.message_ratio),
                     {{"message", size}, {"expected", room}});
  ckks::ErrorBound in = pack[index];
  for (std::size_t j = 0; j < pack.size(); ++j) {
    if (j == index) continue;
    in.rms += pack[j].ring, in.max += pack[j].ring, in.ring += pack[j].ring;
    in.variance += pack[j].variance;
    in.failure += pack[j].failure;
  }
  const auto parts = estimate_precision(m, {MessageKind::bound, size});
  double square = 0.0, fit = parts.fit.max;
  for (const SlotError* p :
       {&parts.fit, &parts.raise, &parts.cts, &parts.eval_mod, &parts.stc, &parts.output})
    square += p->rms * p->rms;
  square += std::pow(size * halves_error(m).rms, 2);
  // Real Gaussians have the tails of complex ones of twice the variance.
  if (m.real_part) square *= 2.0;
  const ckks::NormBounds n(params, in.slots());
  ckks::ErrorBound out = ckks::with_errors(
      in, kMargin * n.noise(square / (2.0 * static_cast<double>(plan.options.slots))));
  // The slope of the sine is at most 1: what came in goes out. The rest is the same in every run.
  const double slots = plan.slot_to_coeff_first() ? size * plan.options.pack : size;
  const double fixed = method_error(plan, ratio, slots) + fit;
  out.rms += fixed, out.max += fixed, out.ring += fixed;
  out.variance += fixed * fixed;
  out.failure += std::exp2(log2_failure_probability(m));
  out.meta.level = plan.levels.output;
  const u32 low =
      plan.levels.slot_to_coeff - static_cast<u32>(plan.options.slot_to_coeff_stages.size());
  const bool as_made = !plan.slot_to_coeff_first() && low == plan.levels.output;
  out.meta.scale = as_made ? plan.output_scale : params.scale(plan.levels.output);
  out.meta.real = plan.options.message == BootstrapMessage::real;
  return out;
}

}  // namespace

ckks::ErrorBound Bootstrapper::operator()(const ckks::ErrorModel& model,
                                          const ckks::ErrorBound& a) const {
  return state_->bounds(model, std::span(&a, 1), false)[0];
}

std::vector<ckks::ErrorBound> Bootstrapper::operator()(const ckks::ErrorModel& model,
                                                       std::span<const ckks::ErrorBound> in) const {
  return state_->bounds(model, in, true);
}

std::vector<ckks::ErrorBound> Bootstrapper::State::bounds(const ckks::ErrorModel& model,
                                                          std::span<const ckks::ErrorBound> in,
                                                          bool list) const {
  if (plan.options.iterations > 1 || plan.options.message == BootstrapMessage::pair)
    throw UnsupportedError("error model of a bootstrap with two iterations or of a pair",
                           {{"iterations", plan.options.iterations}});
  for (const ckks::ErrorBound& a : in) {
    if (a.components != 2)
      throw StateError(cat("bootstrap of ", a.components, " components, expected 2"),
                       {{"components", a.components}, {"expected", 2}});
    check_input(a.meta, list);
  }
  std::vector<ckks::ErrorBound> out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const std::size_t first = i / plan.options.pack * plan.options.pack;
    const auto pack =
        in.subspan(first, std::min<std::size_t>(plan.options.pack, in.size() - first));
    out.push_back(model.result(member_bound(context.params(), plan, pack, i - first)));
  }
  return out;
}

}  // namespace crenel::circuits
