#include "circuits/bootstrapping/precision.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "crenel/core/error.h"

namespace crenel::circuits {
namespace {

void require(bool ok, const char* name, double value, const char* expected) {
  if (!ok)
    throw ParameterError(cat("bootstrap model: ", name, " is ", value, ", expected ", expected),
                         {{name, value}, {"expected", expected}});
}

void check(const BootstrapModel& m, const Message& message) {
  require(m.log_n >= 2 && m.log_n <= 20, "log_n", m.log_n, "2..20");
  require(std::has_single_bit(m.slots) && m.slots <= u64{1} << (m.log_n - 1), "slots",
          static_cast<double>(m.slots), "a power of two, at most N/2");
  require(std::has_single_bit(m.pack) && m.pack <= m.slots, "pack", m.pack,
          "a power of two, at most the slots");
  require(message.bound > 0, "bound", message.bound, "a positive number");
  require(std::has_single_bit(message.period), "period", message.period, "a power of two");
  require(std::log2(message.bound) < m.message_ratio, "message_ratio", m.message_ratio,
          "a bound below 2^rho: the message must be smaller than Q_0");
  const u32 log_slots = static_cast<u32>(std::countr_zero(m.slots));
  for (const auto* levels : {&m.cts, &m.stc}) {
    u32 stages = 0;
    for (const auto& level : *levels) stages += level.stages;
    require(stages == log_slots, "stages", stages, "log2 of the slots in CtS and in StC");
  }
}

/// Levels of a transform with every gain filled in; they add up to `log_total`.
std::vector<TransformLevel> with_gains(std::vector<TransformLevel> levels, double log_total) {
  u32 open = 0;
  for (const auto& level : levels) {
    if (level.log_gain) log_total -= *level.log_gain;
    open += !level.log_gain;
  }
  for (auto& level : levels)
    if (!level.log_gain) level.log_gain = log_total / open;
  return levels;
}

/// Mean squares of the slots of a ciphertext on its way through a linear transform, in units of the
/// polynomial (no scale): the values and their error.
struct Walk {
  double value;
  double noise;
};

/// Variance of one division, in slots.
double rounding(const BootstrapModel& m) {
  return std::exp2(m.log_n) * rescale_variance(m.dense_weight);
}

/// One level up to the rescale, whose own rounding is the caller's. `largest` is the number of
/// stages whose stride is at most that of the level's largest. `single`: one column differs from
/// those that its entries repeat in, of half of the diagonals.
void transform(Walk& w, const BootstrapModel& m, const TransformLevel& level, u32 largest,
               bool single = false) {
  const double gain = std::exp2(level.stages + 2 * level.log_gain.value());
  // Diagonals are rounded to integers at the scale rp. They are periodic, that is in a subring:
  // only 2 * period coefficients are there to be rounded.
  const double period = std::exp2(largest);
  const bool wraps = period >= static_cast<double>(m.slots);  // strides +-slots/2 coincide
  const double diagonals = std::exp2(level.stages + !wraps) - !wraps;
  const double whole = single ? std::min(std::exp2(level.stages), diagonals) : 0.0;
  const double coefficients = 2 * (period * (diagonals - whole) + double(m.slots) * whole);
  const double plain = coefficients / 12 * std::exp2(-2 * level.log_ratio);
  if (!m.hoisted)  // baby step b is rotated b times, out of about sqrt(diagonals)
    w.noise += rounding(m) * std::sqrt(diagonals) / 2;
  // Unnormalised butterflies sum 2^stages entries of absolute value 1 into every slot.
  w.noise = w.noise * gain + plain * w.value;
  w.value *= gain;
}

// Errors of t / (q0 w) in slots, at the scale E, to errors of message slots. EvalMod multiplies by
// w (the slope of sin(2 pi w y) / 2 pi), the change to the message's unit by 2^rho, and StC sums
// the 2 * slots coefficients.
double to_message(const BootstrapModel& m, double mod1_variance) {
  return 2.0 * static_cast<double>(m.slots) * std::exp2(2 * m.message_ratio) * mod1_variance;
}

double cts_variance(const BootstrapModel& m) {
  const double n = std::exp2(m.log_n), k = m.mod1.width;
  const double q0 = std::exp2(m.log_q0), e = std::exp2(m.log_mod1_scale);
  const double switching = rounding(m);
  // After ModRaise: coefficients of b + a s, b and a uniform modulo q0.
  const double copies = n / 2 / static_cast<double>(m.slots);  // the trace adds as many rotations
  Walk w{n * q0 * q0 * (1.0 + m.mod1.secret_weight) / 12, 0.0};
  const auto trace = [&] {
    w.value *= copies;
    w.noise = w.noise * copies + switching * (copies - 1);
  };
  if (!m.over_mod_raise) trace();
  const auto levels = with_gains(m.cts, m.log_mod1_scale - m.log_n - m.log_q0 - std::log2(k));
  u32 largest = static_cast<u32>(std::countr_zero(m.slots));
  for (u32 i = 0; i < levels.size(); ++i) {
    transform(w, m, levels[i], largest);
    largest -= levels[i].stages;
    if (i + 1 == levels.size() && m.conjugate_before_rescale)  // switched, then divided by rp
      w.noise += 0.5 * switching * std::exp2(-2 * levels[i].log_ratio);
    w.noise += rounding(m);
    if (i == 0 && m.over_mod_raise) trace();
  }
  // ct +- conj(ct): both have the real (imaginary) part twice, values and errors alike, and the
  // error of the key switch once.
  w.noise *= 2.0;
  if (!m.conjugate_before_rescale || levels.empty()) w.noise += switching;
  return to_message(m, k * k * w.noise / (e * e));
}

/// log2 of the scale that StC starts with.
double reduced_scale(const BootstrapModel& m) {
  return m.arcsine_degree >= 3 ? m.log_arcsine_scale : m.log_mod1_scale;
}

double mod1_variance(const BootstrapModel& m) {
  const auto at = [&](double log_scale) { return rounding(m) * std::exp2(-2 * log_scale); };
  double sum = at(m.log_mod1_scale) * mod1_noise_gain(m.mod1);
  // x changes level at E; its product with 1 + ... is rescaled. The slope of both is 1.
  if (m.arcsine_degree >= 3) sum += at(m.log_mod1_scale) + at(m.log_arcsine_scale);
  return to_message(m, sum);
}

struct StcVariance {
  double before, last;
};
StcVariance stc_variance(const BootstrapModel& m, const Message& message) {
  const double unit = std::exp2(-2 * m.log_scale), in = reduced_scale(m);
  // Slots m_j + i m_{j + slots} over q0, at the scale `in`; of a symmetric message m_j alone.
  const u64 slots = m.slots / m.pack;
  Walk w{mean_square(message, slots) / static_cast<double>(slots) *
             std::exp2(2 * (in - m.message_ratio)) * (m.symmetric ? 0.5 : 1.0),
         0.0};
  const auto levels = with_gains(m.stc, m.message_ratio + m.log_scale - in);
  u32 largest = 0;
  double last = 0.0;
  for (const auto& level : levels) {
    w.noise += last;
    largest += level.stages;
    transform(w, m, level, largest, m.symmetric && largest == level.stages);
    last = rounding(m);
  }
  return {w.noise * unit, last * unit};
}

// The mean of the slots: the coefficient that is its own mirror image.
double mean_of(const Message& message) {
  switch (message.kind) {
    case MessageKind::constant:
    case MessageKind::bound:
      return message.bound;
    case MessageKind::uniform_unit:
      return message.bound / 2.0;
    case MessageKind::periodic:
      return message.bound / std::sqrt(3.0 * message.period);
    default:
      return 0.0;
  }
}

// A symmetric message's first factor of StC multiplies that coefficient by 1/2, in diagonals that
// differ there from what repeats by a wave of amplitude a = entry / N. Rounded, all of the waves
// are the same samples in another order: one error, real, in all slots. Its mean square is N / 12
// from samples, of which each occurs twice, and what rounding does to the wave itself: harmonics
// (2 / pi m) J_1(2 pi m a) sum up to 0.157 / sqrt(a).
double mirror_error(const BootstrapModel& m, const Message& message) {
  if (!m.symmetric) return 0.0;
  const double log_gain = m.stc[0].log_gain.value_or(
      (m.message_ratio + m.log_scale - reduced_scale(m)) / static_cast<double>(m.stc.size()));
  const double n = std::exp2(m.log_n), entry = std::exp2(m.stc[0].log_ratio + log_gain);
  const double wave = 0.157 * n / 2.0 * std::sqrt(n / entry);
  return 2.0 * mean_of(message) * std::hypot(std::sqrt(n / 12.0), wave) / entry;
}

double raise_variance(const BootstrapModel& m) {
  // The message's scale is Q_0 / 2^rho. The switch back is one product with a key modulo Q P; only
  // its ModDown counts (docs/theory/bootstrapping.md, "Encapsulation"); OverModRaise has it in CtS.
  // So does the conjugation that makes a message symmetric.
  const double switches = (m.over_mod_raise ? 0.0 : 1.0) + (m.symmetric ? 1.0 : 0.0);
  const double back = switches * rescale_variance(m.dense_weight);
  const double coefficient = rescale_variance(m.mod1.secret_weight) + back;
  return 2.0 * static_cast<double>(m.slots) * coefficient *
         std::exp2(2 * (m.message_ratio - m.log_q0));
}

// A rotation a stage, whose error all later stages double.
double unpack_variance(const BootstrapModel& m) {
  return (m.pack - 1.0) * std::exp2(-2 * m.log_scale) * rounding(m);
}

SlotError gaussian(double variance, u64 slots) {
  return {std::sqrt(variance), std::sqrt(variance) * maximum_factor(slots)};
}

SlotError real_gaussian(double variance, u64 slots) {
  return {std::sqrt(variance), std::sqrt(variance) * real_maximum_factor(slots)};
}

// Of coefficients. Half of the error is the real part's; of a symmetric message half of the
// coefficients come twice, which is all of it.
SlotError of_coefficients(const BootstrapModel& m, double variance) {
  if (!m.real_part) return gaussian(variance, m.slots);
  return real_gaussian(m.symmetric ? variance : variance / 2.0, m.slots);
}

// Of slots, before the conjugate is added: twice the real part.
SlotError of_slots(const BootstrapModel& m, double variance) {
  return m.real_part ? real_gaussian(2.0 * variance, m.slots) : gaussian(variance, m.slots);
}

SlotError fit_part(const BootstrapModel& m, const Message& message) {
  // The constant's one large coefficient is far outside the others: take the error over the whole
  // range that a message can reach, which the weights of the fit hardly notice.
  Mod1Params wide = m.mod1;
  wide.fit_radius = std::min(
      0.25, std::max(m.mod1.fit_radius, message.bound * std::exp2(-double(m.message_ratio))));
  const bool spread = message.kind == MessageKind::uniform_complex ||
                      message.kind == MessageKind::uniform_real ||
                      message.kind == MessageKind::one_hot;
  const auto coefficients = fit_mod1(m.mod1);
  const FitError e = fit_error(spread ? m.mod1 : wide, coefficients);
  SlotError out = of_coefficients(m, to_message(m, e.rms * e.rms));
  // The mean error is the same in every coefficient: its polynomial is 2 / (1 - zeta), large in the
  // slots next to 1, slot 0 above all: 2 d / pi for d coefficients.
  const double d = 2.0 * static_cast<double>(m.slots);
  out.max += std::abs(e.mean) * std::exp2(m.message_ratio) * 2 * d / std::numbers::pi;
  return out;
}

}  // namespace

double maximum_factor(u64 slots) {
  // |w|^2 is exponential: the largest of n has the mean H_n = ln n + gamma + ...
  double harmonic = 0.0;
  if (slots <= 64)
    for (u64 k = 1; k <= slots; ++k) harmonic += 1.0 / static_cast<double>(k);
  else
    harmonic = std::log(static_cast<double>(slots)) + std::numbers::egamma;
  return std::sqrt(harmonic);
}

double real_maximum_factor(u64 slots) {
  // The mean of the largest: the integral of the probability that it is above t.
  constexpr double kStep = 1.0 / 128;
  constexpr u32 kSteps = 12 * 128;
  double mean = 0.5 * kStep;
  for (u32 i = 1; i < kSteps; ++i) {
    const double t = kStep * i;
    const double below = std::log1p(-std::erfc(t / std::numbers::sqrt2));
    mean -= kStep * std::expm1(static_cast<double>(slots) * below);
  }
  return mean;
}

SlotError slot_error(double coefficient_variance, u32 log_n, u64 slots, double log_scale) {
  return gaussian(coefficient_variance * std::exp2(log_n - 2 * log_scale), slots);
}

SlotError halves_error(const BootstrapModel& m) {
  if (!m.log_halves_scale) return {};
  // Polynomials of 4 slots coefficients. Slots of the members of a pack add up.
  const double coefficients = 4.0 * static_cast<double>(m.slots);
  const double rms = std::sqrt(coefficients / 12.0) * std::exp2(-*m.log_halves_scale) * m.pack;
  return {rms, rms * maximum_factor(m.slots / m.pack)};
}

PrecisionEstimate estimate_precision(const BootstrapModel& model, const Message& message) {
  check(model, message);
  const auto stc = stc_variance(model, message);
  // Members of a pack own its coefficients in turn: what is done to coefficients each has from its
  // own. Noises of the packed vector's slots are averaged over as many slots as there are members;
  // those of SlotToCoeff, whose result is divided by that number, are enlarged by it before.
  BootstrapModel member = model;
  member.slots = model.slots / model.pack, member.pack = 1;
  const double pack = model.pack;
  PrecisionEstimate p;
  p.sine = sine_error(member, message);
  p.fit = fit_part(member, message);
  p.raise = of_coefficients(member, raise_variance(model) / pack);
  p.cts = of_coefficients(member, cts_variance(model) / pack);
  p.eval_mod = of_coefficients(member, mod1_variance(model) / pack);
  p.stc = of_slots(member, stc.before * pack);
  const double mirror = mirror_error(model, message);
  p.stc.rms = std::hypot(p.stc.rms, mirror);
  p.stc.max += mirror;
  // The conjugation's key switch errs in imaginary parts, too.
  const double last = stc.last * pack + unpack_variance(model);
  const double conjugation =
      model.real_part ? 0.5 * rounding(model) * std::exp2(-2 * model.log_scale) : 0.0;
  p.output = of_slots(member, last + conjugation);
  // The noises are independent Gaussians. The sine's error is of the same kind for random messages,
  // but the same number in every slot for constant-like ones: then the maxima add.
  double squares = 0.0, rms = p.sine.rms * p.sine.rms;
  for (const SlotError* part : {&p.fit, &p.raise, &p.cts, &p.eval_mod, &p.stc, &p.output}) {
    rms += part->rms * part->rms;
    squares += part->max * part->max;
  }
  const bool random =
      message.kind == MessageKind::uniform_complex || message.kind == MessageKind::uniform_real;
  p.total.rms = std::sqrt(rms);
  const double largest = std::sqrt(squares);
  p.total.max = random ? std::hypot(p.sine.max, largest) : p.sine.max + largest;
  return p;
}

double log2_failure_probability(const BootstrapModel& model) {
  // Sparse packing: the trace keeps 2 * slots of the integers.
  return log2_overflow_probability(model.mod1.secret_weight, model.mod1.range,
                                   model.symmetric ? model.slots : 2 * model.slots);
}

RatioChoice recommended_message_ratio(const Message& message, double wanted_bits,
                                      BootstrapModel model) {
  RatioChoice best{0, -1e9, false};
  // Past the base modulus's room for the message nothing is left of it.
  const u32 most = static_cast<u32>(std::max(1.0, model.log_q0 - 10));
  const u32 least = static_cast<u32>(std::max(2.0, std::floor(std::log2(message.bound)) + 2));
  for (u32 rho = least; rho <= most; ++rho) {
    model.message_ratio = rho;
    const double bits = -std::log2(estimate_precision(model, message).total.max);
    if (bits >= wanted_bits) return {rho, bits, true};
    if (bits > best.bits) best = {rho, bits, false};
    if (bits < best.bits - 3) break;  // past the best one, noise costs a bit per step
  }
  return best;
}

}  // namespace crenel::circuits
