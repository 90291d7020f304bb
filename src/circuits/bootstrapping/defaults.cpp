#include "circuits/bootstrapping/defaults.h"

#include <cmath>
#include <numbers>

#include "circuits/bootstrapping/plan.h"
#include "circuits/bootstrapping/report.h"

namespace crenel::circuits {
namespace {

/// Bits by which a ratio may be worse than the best one, and is taken for its room.
constexpr double kSame = 0.1;
/// Below the best ratio two bits are lost for every step: nothing better comes after this much.
constexpr double kPast = 1.5;
/// What BootstrapSavings::real_symmetry costs at any ratio: errors of coefficients count twice.
constexpr double kSymmetry = 0.55;

}  // namespace

Message message_of(BootstrapValues values, BootstrapMessage message) {
  switch (values) {
    case BootstrapValues::centred:
      return {message == BootstrapMessage::real ? MessageKind::uniform_real
                                                : MessageKind::uniform_complex};
    case BootstrapValues::non_negative:
      return {MessageKind::uniform_unit};
    case BootstrapValues::constant:
      return {MessageKind::constant};
    case BootstrapValues::unknown:
      break;
  }
  // Two vectors within 1 are one of complex numbers, whose absolute values reach sqrt(2).
  const bool pair = message == BootstrapMessage::pair;
  return {MessageKind::bound, pair ? std::numbers::sqrt2 : 1.0};
}

// From the largest ratio down: noise falls by a bit a step until the sine's error outgrows it.
u32 best_message_ratio(const ckks::Params& params, BootstrapOptions options) {
  const Message message = message_of(options.values, options.message);
  const auto most = static_cast<u32>(std::lround(params.log_q(0)) - params.spec().log_scale);
  if (most == 0)
    throw ParameterError(
        cat("no message ratio fits parameters whose q0 = 2^", params.log_q(0), " is their scale"),
        {{"highest", most}});
  std::vector<double> bits;  // of the ratios most, most - 1, ...
  std::vector<bool> symmetric;
  double best = -1e9;
  for (u32 ratio = most; ratio >= 1; --ratio) {
    options.message_ratio = ratio;
    const BootstrapPlan plan = plan_bootstrap(params, options);
    bits.push_back(-std::log2(expected_error_of(params, plan, message)));
    symmetric.push_back(plan.symmetric);
    best = std::max(best, bits.back());
    if (bits.back() < best - kPast) break;
  }
  u32 first = 0;
  while (bits[first] < best - kSame) ++first;
  // The largest ratio of all has no room for that: another where it costs no more than elsewhere.
  for (u32 i = first; i < bits.size() && !symmetric[first]; ++i)
    if (symmetric[i] && bits[i] >= best - kSymmetry) first = i;
  return most - first;
}

}  // namespace crenel::circuits
