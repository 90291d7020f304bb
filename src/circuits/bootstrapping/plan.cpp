#include "circuits/bootstrapping/plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "circuits/bootstrapping/defaults.h"
#include "circuits/dft/dft.h"
#include "circuits/linear_transform/raised_transform.h"
#include "circuits/mod1/arcsine.h"
#include "ckks/levels.h"

namespace crenel::circuits {
namespace {

constexpr u32 kCoeffToSlotFactors = 4, kSlotToCoeffFactors = 3;

u64 checked_slots(const ckks::Params& params, u64 slots, u32 pack) {
  if (slots != 0 && (!std::has_single_bit(slots) || slots > params.slots()))
    throw ParameterError(
        cat("bootstrap of ", slots, " slots, expected a power of two up to ", params.slots()),
        {{"slots", slots}, {"max_slots", params.slots()}});
  const u64 most = params.slots() / std::max<u64>(slots, 1);
  if (!std::has_single_bit(pack) || pack > most)
    throw ParameterError(cat("bootstrap of ", pack, " ciphertexts in one, expected a power of two ",
                             "up to ", most, ", for at most ", params.slots(), " slots together"),
                         {{"pack", pack}, {"slots", slots}, {"max_pack", most}});
  return slots == 0 ? params.slots() / pack : slots;
}

std::vector<u32> checked_stages(std::vector<u32> stages, u32 log_slots, u32 factors,
                                const char* what) {
  if (stages.empty()) return split_stages(log_slots, factors);
  u64 total = 0;
  for (u32 s : stages) total += s;
  if (total != log_slots || stages.size() > factors)
    throw ParameterError(cat(what, " stages: ", total, " in ", stages.size(), " factors, expected ",
                             log_slots, " in at most ", factors),
                         {{"stages", total}, {"factors", stages.size()}});
  return stages;
}

double exact_q0(const ckks::Params& params) {
  u64 product = 1;
  for (u32 i = params.window_begin(0); i < params.window_end(0); ++i) product *= params.primes()[i];
  return static_cast<double>(product);
}

// Whether the modulus of a level has room for something of this scale.
bool holds(const ckks::Params& params, u32 level, double log_scale) {
  return log_scale + 1.0 < params.log_q(level);
}

// Lowest level that limbs can be dropped to from that of `from`, that still leaves `levels` above
// target, and whose last factor of SlotToCoeff has room for the large scale that it starts with.
std::optional<u32> lowest_start(const ckks::Params& params, const ArcsinePlan& from, u32 target,
                                u32 levels) {
  for (u32 l = target + levels; l <= from.level; ++l) {
    double plain = 0.0;
    for (u32 i = 0; i < levels; ++i) plain += std::log2(params.rescale_ratio(l - i)) / levels;
    if (ckks::can_drop_to(params, from.level, l) &&
        holds(params, l - levels + 1, std::log2(from.scale) + plain))
      return l;
  }
  return std::nullopt;
}

std::string name_of(const ckks::Params& params) {
  return params.name().empty() ? params.id() : params.name();
}

// `highest`: level of a result; nothing where the normal levels do not suffice for any.
void check_target(const ckks::Params& params, const BootstrapOptions& o,
                  std::optional<u32> highest) {
  if (!highest)
    throw ParameterError(
        cat("parameters ", name_of(params), " have ", params.normal_top_level(),
            " normal levels, too few for ", o.slot_to_coeff_stages.size(),
            " factors of SlotToCoeff", o.arcsine_degree != 0 ? " and the arcsine" : "",
            ", expected more levels or fewer factors (slot_to_coeff_stages)"),
        {{"levels", params.normal_top_level()}, {"stages", o.slot_to_coeff_stages.size()}});
  if (o.target_level && *o.target_level > *highest)
    throw ParameterError(cat("bootstrap to level ", *o.target_level, ", expected at most ",
                             *highest, " with these options"),
                         {{"target_level", *o.target_level}, {"highest", *highest}});
}

// Levels that CoeffToSlot takes.
u32 coeff_to_slot_levels(const BootstrapOptions& o) {
  return static_cast<u32>(o.coeff_to_slot_stages.size()) -
         u32(o.savings.over_mod_raise.value_or(false));
}

// Level and scale after EvalMod, which ends at this level and scale, and the arcsine.
ArcsinePlan after_arcsine(const ckks::Params& params, const BootstrapOptions& o, u32 end,
                          double scale) {
  return o.arcsine_degree ? plan_arcsine(params, end, scale) : ArcsinePlan{end, scale, 0};
}

// The highest level of a result when EvalMod and arcsine end at `after`, which may be too low.
std::optional<u32> highest_output(const BootstrapOptions& o, u32 after) {
  // SlotToCoeff first: one level brings the scale back to the canonical one.
  const u32 taken = o.order == BootstrapOrder::slot_to_coeff_first
                        ? 1
                        : static_cast<u32>(o.slot_to_coeff_stages.size());
  return after >= taken ? std::optional(after - taken) : std::nullopt;
}

// The lowest level whose primes are enough for the result, if that is not the normal top.
std::optional<u32> short_base(const ckks::Params& params, const BootstrapOptions& o,
                              double eval_mod_scale) {
  constexpr u32 kArcsineLevels = 3;  // at most
  if (!o.target_level || !o.savings.short_raise) return std::nullopt;
  const u32 least = o.arcsine_degree ? kArcsineLevels : 1;
  for (u32 base = least; base < params.normal_top_level(); ++base) {
    if (!params.is_short_base(base) || !holds(params, base, std::log2(eval_mod_scale))) continue;
    const ArcsinePlan after = after_arcsine(params, o, base, eval_mod_scale);
    if (highest_output(o, after.level).value_or(0) < *o.target_level || after.level == 0) continue;
    const bool first = o.order == BootstrapOrder::slot_to_coeff_first;
    const double joined =  // halves with the last rescale, or a constant
        std::log2(params.scale(after.level - 1) * params.rescale_ratio(after.level));
    const auto stc = static_cast<u32>(o.slot_to_coeff_stages.size());
    if (first ? holds(params, after.level, joined)
              : lowest_start(params, after, *o.target_level, stc).has_value())
      return base;
  }
  return std::nullopt;
}

BootstrapLevels plan_levels(const ckks::Params& params, const BootstrapOptions& o,
                            const ArcsinePlan& after_eval_mod, std::optional<u32> base) {
  const u32 cts = coeff_to_slot_levels(o);
  const u32 stc = static_cast<u32>(o.slot_to_coeff_stages.size());
  BootstrapLevels l{};
  l.short_base = base;
  l.eval_mod_end = base.value_or(params.normal_top_level());
  l.eval_mod = params.normal_top_level() + kEvalModLevels;
  l.raised = l.eval_mod + cts;
  const u32 after = after_eval_mod.level;
  if (o.order == BootstrapOrder::slot_to_coeff_first) {
    l.input = stc, l.slot_to_coeff = stc;
    // One level brings the scale back to the canonical one.
    l.output = o.target_level.value_or(after - 1);
    return l;
  }
  l.input = 0;
  l.slot_to_coeff = o.target_level
                        ? lowest_start(params, after_eval_mod, *o.target_level, stc).value_or(after)
                        : after;
  l.output = o.target_level.value_or(l.slot_to_coeff - stc);
  return l;
}

// `above` the normal levels.
void check_levels(const ckks::Params& params, u32 above) {
  const u32 needed = params.normal_top_level() + above;
  if (params.max_level() < needed)
    throw ParameterError(
        cat("parameters ", name_of(params), " have ",
            params.max_level() - params.normal_top_level(),
            " levels above the normal ones, bootstrapping needs ", above, "; use a boot... set"),
        {{"levels", params.max_level()}, {"expected", needed}});
}

void check_options(const ckks::Params& params, const BootstrapOptions& o) {
  check_levels(params, kEvalModLevels + coeff_to_slot_levels(o));
  const double room = params.log_q(0) - params.spec().log_scale;
  const u32 ratio = o.message_ratio.value_or(1);
  if (ratio < 1 || ratio > std::lround(room))
    throw ParameterError(cat("message ratio 2^", ratio, ", expected 2^1 to 2^", std::lround(room),
                             " with q0 = 2^", params.log_q(0)),
                         {{"message_ratio", ratio}, {"highest", std::lround(room)}});
  if (o.iterations < 1 || o.iterations > 2)
    throw ParameterError(cat(o.iterations, " iterations, expected 1 or 2"),
                         {{"iterations", o.iterations}});
  const u32 degree = o.arcsine_degree;
  if (degree != 0 && degree != 3)
    throw ParameterError(cat("arcsine of degree ", degree, ", expected 0 (none) or 3"),
                         {{"arcsine_degree", degree}});
  if (o.message == BootstrapMessage::pair && o.order == BootstrapOrder::slot_to_coeff_first)
    throw ParameterError("a pair of vectors with SlotToCoeff first, expected CoeffToSlot first",
                         {{"order", "slot_to_coeff_first"}});
  if (o.message == BootstrapMessage::pair && o.iterations > 1)
    throw ParameterError("two iterations of a pair of vectors, expected one",
                         {{"iterations", o.iterations}});
}

// The top EvalMod level divides by about this much: squaring and rescaling then keep the scale.
double eval_scale_of(const ckks::Params& params) {
  const u32 top = params.normal_top_level() + kEvalModLevels;
  return std::exp2(std::round(std::log2(params.rescale_ratio(top))));
}

// Product of the factors of the CoeffToSlot matrices.
double coeff_to_slot_gain(const ckks::Params& params, const Mod1Params& mod1) {
  return eval_scale_of(params) /
         (static_cast<double>(params.ring_dim()) * exact_q0(params) * mod1.width);
}

// Why OverModRaise is not possible, or nothing; `stages` of CoeffToSlot as they were given.
std::string hindrance(const ckks::Params& params, const BootstrapOptions& o, u32 log_slots) {
  const auto& stages = o.coeff_to_slot_stages;
  if (o.keys == KeyMode::minimal) return "minimal keys, expected hoisted ones";
  if (!supports_over_mod_raise(params))
    return cat(params.alpha(), " special primes of ", params.log_p(), " bits, expected ",
               rlwe::kOverPrimes, " and more than those of level 0 besides");
  if (coeff_to_slot_gain(params, BootstrapPlan().mod1) > 1.0)  // at a scale of 2^62
    return "CoeffToSlot matrices of values above 1";
  if (!stages.empty() && stages.size() < 2)
    return cat(stages.size(), " factor of CoeffToSlot, expected at least 2");
  // Where the first stage is the largest, +-slots/2 are one diagonal.
  const u32 first = stages.empty() ? 0 : std::min(stages[0], log_slots);
  if (u64(1) << first > kMostRaisedDiagonals)
    return cat(first, " stages in the first factor of CoeffToSlot, expected at most ",
               std::bit_width(kMostRaisedDiagonals) - 1);
  return "";
}

// Levels for CoeffToSlot; what has none is refused later.
u32 coeff_to_slot_room(const ckks::Params& params) {
  const u32 end = params.normal_top_level() + kEvalModLevels;
  return std::clamp<u32>(params.max_level() - std::min(params.max_level(), end), 1,
                         kCoeffToSlotFactors);
}

// The cheapest number of factors, or more where their levels are too uneven: all diagonals are
// encoded at the geometric mean of the levels' ratios, and their integers have 62 bits.
std::vector<u32> default_raised_stages(const ckks::Params& params, u32 log_slots, u32 most) {
  constexpr double kMostBits = 60.5;
  const u32 end = params.normal_top_level() + kEvalModLevels;
  const u32 cheapest = std::min(raised_factors(log_slots), most);
  for (u32 others = cheapest; others <= most && end + others <= params.max_level(); ++others)
    if ((params.log_q(end + others) - params.log_q(end)) / others <= kMostBits)
      return split_raised_stages(log_slots, others);
  return split_raised_stages(log_slots, cheapest);
}

// Whether OverModRaise is used: where it was not chosen, if nothing hinders.
bool over_mod_raise(const ckks::Params& params, const BootstrapOptions& o, u32 log_slots) {
  const auto& wanted = o.savings.over_mod_raise;
  const std::string why = wanted == false ? "" : hindrance(params, o, log_slots);
  if (wanted == true && !why.empty())
    throw ParameterError(cat("OverModRaise with ", why), {{"over_mod_raise", true}});
  return wanted.value_or(why.empty());
}

}  // namespace

BootstrapPlan plan_bootstrap(const ckks::Params& params, BootstrapOptions options) {
  options.slots = checked_slots(params, options.slots, options.pack);
  // All of them by check_options; without these what comes first would look at levels beyond.
  check_levels(params, kEvalModLevels + 1);
  if (!options.keys) options.keys = KeyMode::hoisted;
  const u64 slots = options.slots * options.pack;
  const u32 log_slots = static_cast<u32>(std::bit_width(slots)) - 1;
  const bool over = over_mod_raise(params, options, log_slots);
  options.savings.over_mod_raise = over;
  const u32 factors = coeff_to_slot_room(params);
  options.coeff_to_slot_stages =
      over && options.coeff_to_slot_stages.empty()
          ? default_raised_stages(params, log_slots, factors)
          : checked_stages(std::move(options.coeff_to_slot_stages), log_slots, factors + u32(over),
                           "CoeffToSlot");
  options.slot_to_coeff_stages = checked_stages(std::move(options.slot_to_coeff_stages), log_slots,
                                                kSlotToCoeffFactors, "SlotToCoeff");
  check_options(params, options);
  BootstrapPlan p;
  p.ratio_chosen = !options.message_ratio;
  const u32 ratio =
      options.message_ratio ? *options.message_ratio : best_message_ratio(params, options);
  options.message_ratio = ratio;
  p.options = std::move(options);
  const BootstrapOptions& o = p.options;
  p.joined = slots < params.slots() && !p.only_real();
  p.q0 = exact_q0(params);
  p.scale_up = static_cast<u32>(std::lround(params.log_q(0)) - params.spec().log_scale - ratio);
  // Made symmetric at level 0, the message is twice as large: the last bit of scaling it up.
  p.symmetric = o.savings.real_symmetry && p.real_part() && !p.slot_to_coeff_first() &&
                o.pack == 1 && slots == params.slots() && p.scale_up > 0;
  const u32 bottom = params.normal_top_level(), top = bottom + kEvalModLevels;
  p.eval_scale = eval_scale_of(params);
  double scale = p.eval_scale;  // at EvalMod's end
  for (u32 l = top; l > bottom; --l) scale = scale * scale / params.rescale_ratio(l);
  p.reduced = after_arcsine(params, o, bottom, scale);
  check_target(params, o, highest_output(o, p.reduced.level));
  const auto base = short_base(params, o, scale);
  if (base) p.reduced = after_arcsine(params, o, *base, scale);
  p.levels = plan_levels(params, o, p.reduced, base);

  const double cts = coeff_to_slot_gain(params, p.mod1);
  p.coeff_to_slot_factor = std::pow(cts, 1.0 / static_cast<double>(o.coeff_to_slot_stages.size()));
  if (o.order == BootstrapOrder::slot_to_coeff_first) {
    // What goes through the sine is divided by q0 / Delta'; unpacking and the real part multiply.
    const double ratio = p.q0 / (params.scale(0) * std::exp2(p.scale_up));
    p.read_scale = p.reduced.scale / ratio * o.pack * (p.real_part() ? 2.0 : 1.0);
    const u32 level = p.reduced.level;
    p.halves_scale = params.scale(level - 1) * params.rescale_ratio(level) / p.read_scale;
    return p;
  }
  const u32 stc = static_cast<u32>(o.slot_to_coeff_stages.size());
  p.output_scale = params.scale(p.levels.slot_to_coeff - stc);
  const double raised = params.scale(0) * std::exp2(p.scale_up);  // Delta'
  double total = p.q0 * p.output_scale / (p.reduced.scale * raised);
  // Half of a symmetric polynomial and its conjugate are the whole: nothing is doubled.
  if (o.message != BootstrapMessage::complex && !p.symmetric) total /= 2.0;
  total /= o.pack;  // which unpacking multiplies by
  p.slot_to_coeff_factor = std::pow(total, 1.0 / stc);
  return p;
}

std::vector<DiagonalMatrix> coeff_to_slot_matrices(const BootstrapPlan& p) {
  return coeff_to_slot_factors(p.slots(), p.options.coeff_to_slot_stages, p.coeff_to_slot_factor,
                               p.joined);
}

std::vector<DiagonalMatrix> slot_to_coeff_matrices(const BootstrapPlan& p) {
  auto factors =
      slot_to_coeff_factors(p.slots(), p.options.slot_to_coeff_stages, p.slot_to_coeff_factor,
                            p.joined && !p.slot_to_coeff_first());
  // The constant coefficient is its own mirror image, which the conjugate adds once more. In
  // bit-reversed order it is the first.
  if (p.symmetric) scale_column(factors[0], 0, 0.5);
  return factors;
}

}  // namespace crenel::circuits
