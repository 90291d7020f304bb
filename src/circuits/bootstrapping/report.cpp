#include "circuits/bootstrapping/report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "circuits/bootstrapping/defaults.h"
#include "circuits/linear_transform/raised_transform.h"

namespace crenel::circuits {
namespace {

// Diagonals are all encoded at the geometric mean of the rescale ratios (state.cpp).
std::vector<TransformLevel> transform_levels(const ckks::Params& params,
                                             std::span<const u32> stages, u32 top, double factor) {
  double mean = 0.0;
  for (u32 f = 0; f < stages.size(); ++f) mean += std::log2(params.rescale_ratio(top - f));
  mean /= static_cast<double>(stages.size());
  std::vector<TransformLevel> levels;
  for (u32 f = 0; f < stages.size(); ++f) {
    const double ratio = std::log2(params.rescale_ratio(top - f));
    levels.push_back({stages[f], ratio, std::log2(factor) + mean - ratio});
  }
  return levels;
}

// SlotToCoeff first, the slots themselves go through the sine: the largest of them decides,
// whatever the others are, and what EvalMod's noise adds is less than in the other order.
// Slots of the members of a pack add up, each with a factor of absolute value 1.
double slotwise_error(const BootstrapModel& m) {
  const double x = std::exp2(-static_cast<double>(m.message_ratio));
  return std::sqrt(2.0) * std::abs(modular_error(m.pack * x, m.arcsine_degree)) / x;
}

double worst(const BootstrapModel& model, BootstrapOrder order, BootstrapMessage message) {
  const auto estimate = estimate_precision(model, message_of(BootstrapValues::unknown, message));
  if (order == BootstrapOrder::coeff_to_slot_first) return estimate.total.max;
  // The last rescale, of vectors over the members of their pack, and the rotations of unpacking.
  const double last = (2.0 * model.pack - 1.0) * rescale_variance(model.dense_weight);
  const auto rounding = slot_error(last, model.log_n, model.slots / model.pack, model.log_scale);
  return std::hypot(slotwise_error(model), estimate.eval_mod.max,
                    std::hypot(rounding.max, halves_error(model).max));
}

const char* name_of(BootstrapValues values) {
  constexpr const char* kNames[] = {"unknown", "centred", "non-negative", "constant"};
  return kNames[static_cast<int>(values)];
}

std::string bits(double error) {
  std::ostringstream out;
  out << "2^" << std::fixed << std::setprecision(1) << std::log2(error);
  return out.str();
}

std::string mebibytes(u64 bytes) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << static_cast<double>(bytes) / 1048576.0 << " MiB";
  return out.str();
}

}  // namespace

BootstrapModel model_of(const ckks::Params& params, const BootstrapPlan& plan) {
  BootstrapModel m;
  const auto& o = plan.options;
  m.log_n = params.log_n();
  m.slots = plan.slots();
  m.pack = o.pack;
  m.log_q0 = params.log_q(0);
  m.message_ratio = o.message_ratio.value();
  m.mod1 = plan.mod1;
  m.arcsine_degree = o.arcsine_degree;
  m.log_scale = std::log2(params.scale(plan.levels.output));
  m.log_mod1_scale = std::log2(plan.eval_scale);
  if (o.arcsine_degree) m.log_arcsine_scale = std::log2(plan.reduced.scale);
  const u32 weight = params.spec().hamming_weight;
  m.dense_weight = weight ? weight : static_cast<u32>(params.ring_dim() / 2);
  std::span<const u32> stages = o.coeff_to_slot_stages;
  m.over_mod_raise = plan.over_mod_raise();
  if (m.over_mod_raise) stages = stages.subspan(1);
  m.cts = transform_levels(params, stages, plan.levels.raised, plan.coeff_to_slot_factor);
  if (m.over_mod_raise)
    m.cts.insert(m.cts.begin(), {o.coeff_to_slot_stages[0], log_over_scale(params),
                                 std::log2(plan.coeff_to_slot_factor)});
  m.stc = transform_levels(params, o.slot_to_coeff_stages, plan.levels.slot_to_coeff,
                           plan.slot_to_coeff_factor);
  m.hoisted = o.keys == KeyMode::hoisted;
  m.real_part = plan.real_part() && !plan.slot_to_coeff_first();
  m.symmetric = plan.symmetric;
  if (plan.join_halves()) m.log_halves_scale = std::log2(plan.halves_scale);
  return m;
}

double expected_error_of(const ckks::Params& params, const BootstrapPlan& plan,
                         const Message& message) {
  const BootstrapModel model = model_of(params, plan);
  if (plan.options.order == BootstrapOrder::slot_to_coeff_first)
    return message.bound * worst(model, plan.options.order, plan.options.message);
  return estimate_precision(model, message).total.max;
}

u32 correction_bits(const ckks::Params& params, const BootstrapPlan& plan) {
  if (plan.options.iterations < 2) return 0;
  // Three bits to spare, so that no slot of the enlarged error leaves the bound of messages.
  const double spare =
      -std::log2(worst(model_of(params, plan), plan.options.order, plan.options.message)) - 3.0;
  return static_cast<u32>(std::clamp(std::floor(spare), 1.0, 30.0));
}

u64 workspace_bytes(const ckks::Params& params, const BootstrapPlan& plan) {
  // EvalMod's basis elements and their lowered copies: 21 ciphertexts of its top level were counted
  // at the peak, the pool's size classes included.
  constexpr u64 kCiphertexts = 24;
  const u64 limb = params.ring_dim() * sizeof(u32), parts = plan.one_part() ? 1 : 2;
  const u64 eval_mod = kCiphertexts * 2 * parts * params.limb_count(plan.eval_mod()) * limb;
  // CoeffToSlot: every giant step's sum, the digits, input and results, in the extended basis.
  u64 giants = 1;
  for (u32 stages : plan.options.coeff_to_slot_stages)
    giants = std::max<u64>(giants, u64(1) << (stages + 1) / 2);
  const u64 extended = params.limb_count(plan.raised()) + params.alpha();
  const u64 transform = (3 * giants + 2 * params.dnum() + 8) * extended * limb * 5 / 4;
  // Unpacking rotates half of the members at once, a real part all of them.
  u64 unpack = 0;
  if (plan.options.pack > 1) {
    const u64 limbs = params.limb_count(plan.levels.output), all = limbs + params.alpha();
    const u64 digits = (limbs - 1) / params.alpha() + 2;  // that may start inside one
    unpack = plan.options.pack * ((digits + 2) * all + 6 * limbs) * limb * 5 / 4;
  }
  return std::max({eval_mod, transform, unpack});
}

BootstrapReport report_of(const ckks::Params& params, const BootstrapPlan& plan) {
  BootstrapReport r;
  const BootstrapModel model = model_of(params, plan);
  const Message random = message_of(BootstrapValues::centred, plan.options.message);
  const auto uniform = estimate_precision(model, random).total;
  r.levels = plan.levels;
  r.slots = plan.options.slots;
  r.pack = plan.options.pack;
  r.message_ratio = model.message_ratio;
  r.ratio_chosen = plan.ratio_chosen;
  r.message = plan.options.message;
  r.values = plan.options.values;
  r.values_error = expected_error_of(params, plan, message_of(r.values, r.message));
  r.keys = plan.options.keys.value();
  r.over_mod_raise = plan.over_mod_raise();
  r.real_symmetry = plan.symmetric;
  r.raised_limbs = params.limb_count(plan.raised());
  r.eval_mod_limbs = params.limb_count(plan.eval_mod());
  r.full_raised_limbs = params.limb_count(plan.levels.raised);
  r.full_eval_mod_limbs = params.limb_count(plan.levels.eval_mod);
  r.iterations = plan.options.iterations;
  r.correction_bits = correction_bits(params, plan);
  r.workspace_bytes = workspace_bytes(params, plan);
  r.worst_error = worst(model, plan.options.order, plan.options.message);
  // the cube of a number uniform in [-1, 1] has 0.38 of its largest value on average
  const bool slotwise = plan.options.order == BootstrapOrder::slot_to_coeff_first;
  r.expected_error = slotwise ? r.worst_error : uniform.max;
  r.expected_rms = slotwise ? r.worst_error * 0.38 : uniform.rms;
  r.log2_failure = log2_failure_probability(model) + std::log2(plan.options.iterations);
  return r;
}

std::string BootstrapReport::text() const {
  std::ostringstream out;
  out << "slots           " << slots;
  if (pack > 1) out << ", " << pack << " ciphertexts in one bootstrap of " << slots * pack;
  out << "\n"
      << "levels          " << levels.input << " in, raised to " << levels.raised << ", EvalMod "
      << levels.eval_mod << " to " << levels.eval_mod_end << ", SlotToCoeff from "
      << levels.slot_to_coeff << ", " << levels.output << " out\n"
      << "keys            " << key_count << ", " << mebibytes(key_bytes) << "\n"
      << "plaintexts      " << mebibytes(plaintext_bytes) << "\n"
      << "workspace       at most " << mebibytes(workspace_bytes) << " for one "
      << (pack > 1 ? "bootstrap" : "ciphertext") << ", as often as a batch has them\n"
      << "message ratio   2^" << message_ratio << (ratio_chosen ? ", chosen" : ", given") << " for "
      << name_of(values) << " values within 1: largest error about " << bits(values_error) << "\n"
      << "expected error  about " << bits(expected_error)
      << ", the largest of slots uniform in [-1, 1]"
      << (message == BootstrapMessage::real ? "" : "^2") << " (" << bits(expected_rms) << " rms), "
      << bits(worst_error) << " for any slots bounded by 1\n";
  if (iterations > 1)
    out << "iterations      " << iterations << ": the errors above, of one iteration, shrink by 2^"
        << correction_bits << " or more; the scale grows by as much\n";
  out << "failure         2^" << std::fixed << std::setprecision(1) << log2_failure
      << " a bootstrap\n"
      << "key mode        " << (keys == KeyMode::hoisted ? "hoisted" : "minimal")
      << (keys_decided ? ", and the slots: what the keys given serve" : "");
  std::vector<std::string> savings;
  if (over_mod_raise)
    savings.emplace_back("OverModRaise: CoeffToSlot's first factor takes no level");
  if (real_symmetry)
    savings.emplace_back("real vectors are symmetric: EvalMod on one ciphertext in place of two");
  if (aligned_keys)
    savings.emplace_back("keys for aligned levels: a digit less of products and rotations there");
  if (eval_mod_groups > 1)
    savings.push_back(
        cat("EvalMod's two vectors on ", eval_mod_groups, " groups of devices, each with one"));
  if (levels.short_base)
    savings.push_back(cat("raised to ", raised_limbs, " primes in place of ", full_raised_limbs,
                          ", EvalMod from ", eval_mod_limbs, " in place of ", full_eval_mod_limbs,
                          ", over those of level ", *levels.short_base));
  out << "\nsavings         " << (savings.empty() ? "none" : "");
  for (std::size_t i = 0; i < savings.size(); ++i) out << (i == 0 ? "" : "; ") << savings[i];
  if (!notice.empty()) out << "\nnote            " << notice;
  return out.str();
}

}  // namespace crenel::circuits
