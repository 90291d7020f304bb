// Noise of one bootstrap in standard deviations, and failure bounds. Every variance is over keys,
// masks and errors; operands of an external product and rounding errors are taken as uniform.
#include "tfhe/params/noise.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "crenel/core/error.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {
namespace {

using device::TorusPlan;

constexpr double kBinarySquare = 1.0 / 2;

double lwe_square(const TorusPlan& plan) {
  return plan.secret == device::LweSecret::ternary ? kTernarySquare : kBinarySquare;
}

double two_to(double exponent) { return std::exp2(exponent); }

// Mean square of the rounding error of one word, times what a phase gathers: its body and `dim`
// words times secrets. Rounding to the nearest of every 2^step-th integer, halves upwards.
double rounding(double step, u32 dim, double secret_square) {
  if (step <= 0) return 0;
  const double word = (1 + 2 * two_to(-2 * step)) / 12;
  return word * (1 + dim * secret_square);
}

// From a modulus that is no power of two: errors uniform in [-1/2, 1/2].
double rounding_from_odd(u32 dim, double secret_square) { return (1 + dim * secret_square) / 12; }

// Mean square of a digit uniform on [-B/2, B/2), B integers.
double digit_square(double base) { return (base * base + 2) / 12; }

// Phase error of one blind rotation step. A key is used times X^e - 1, mean square 2 over e.
double step_variance(const TorusPlan& plan, double variance) {
  const double extracted = plan.extracted_dim();
  const double secret_norm = 1 + extracted * kTernarySquare;
  const double modulus = static_cast<double>(plan.modulus);
  if (plan.group != 0) {
    // 2^g products, rows times N each; a key is a sum of 2^(made - g) of those that were made.
    // Differences: one product less, each times X^c - 1, mean square 2.
    const double sum = two_to(plan.made_group() - plan.group);
    const double keys = (plan.differences ? 2 : 1) * plan.keys_per_step() * sum;
    const double scale = modulus / static_cast<double>(plan.key_modulus());
    const double product =
        keys * plan.polys() * plan.ring_dim() * variance * modulus * modulus / 12;
    return product * scale * scale + secret_norm / 12;
  }
  // sum of operand coefficients times independent key errors, rows times N of them
  const double errors = 2.0 * plan.keys_per_step() * plan.polys() * plan.ring_dim() * variance;
  if (plan.path == device::NoisePath::raising) {
    const double scale = modulus / static_cast<double>(plan.key_modulus());
    return errors * modulus * modulus / 12 * scale * scale + secret_norm / 12;
  }
  const double base = two_to(plan.base_log);
  const double last = modulus / std::pow(base, plan.digits);
  const double operands = (plan.digits - 1) * digit_square(base) + digit_square(last);
  // the dropped digit goes missing from the message that the key of a non-zero s_i passes on
  const double dropped = 2 * lwe_square(plan) * digit_square(base) * secret_norm;
  return errors * operands + dropped;
}

// Best cuts of 2^g exponents, for uniform fractions: variance of the phase, times 12, by element.
// From 10^6 draws each, to 3 in the fourth digit (tests/unit/tfhe/params/noise_test.cpp).
constexpr double kCutSquare[] = {0, 0.25, 0.23455, 0.21374, 0.19056, 0.16861, 0.14956};

// At 2N: the body's rounding and the cuts.
double cut_variance(const TorusPlan& plan) {
  if (plan.log_switch_modulus <= plan.log_n + 1) return 0;
  return (1 + plan.lwe_dim * kCutSquare[plan.group]) / 12;
}

// With groups, at Q_KS: masks are rounded to the digits that are kept, bodies to Q_KS.
double input_rounding(const TorusPlan& plan) {
  const u32 kept = plan.switch_base_log * plan.switch_digits;
  const double mask =
      rounding(double(plan.log_lwe_modulus) - kept, plan.extracted_dim(), kTernarySquare) -
      rounding(double(plan.log_lwe_modulus) - kept, 0, 0);
  return squared(two_to(double(plan.log_switch_modulus) - kept)) * mask +
         rounding(double(plan.log_lwe_modulus) - plan.log_switch_modulus, 0, 0);
}

// Signed digits multiply the rows.
double product_variance(const TorusPlan& plan, double variance) {
  return double(plan.extracted_dim()) * plan.switch_digits *
         digit_square(two_to(plan.switch_base_log)) * variance;
}

// No row is subtracted for a digit 0, so a digit adds an error with probability 1 - 1/B.
double switch_variance(const TorusPlan& plan, double variance) {
  const u32 last = plan.log_switch_modulus - plan.switch_base_log * (plan.switch_digits - 1);
  const double rows = (plan.switch_digits - 1) * (1 - two_to(-double(plan.switch_base_log))) +
                      (1 - two_to(-double(last)));
  return plan.extracted_dim() * rows * variance;
}

}  // namespace

NoiseBudget noise_budget(const TorusPlan& plan, double sigma) {
  const double variance = sigma * sigma;
  const u32 extracted = plan.extracted_dim();
  NoiseBudget budget;
  budget.blind_rotation = plan.steps() * step_variance(plan, variance);
  if (plan.arithmetic != device::Arithmetic::exact)
    budget.transform = plan.steps() * squared(device::transform_error_std(plan)) *
                       (1 + extracted * kTernarySquare);
  const double log_q = std::log2(static_cast<double>(plan.modulus));
  if (plan.group != 0) {
    budget.switch_rounding = input_rounding(plan);
    budget.key_switch = product_variance(plan, variance);
    budget.rest_rounding = rounding(log_q - plan.log_lwe_modulus, extracted, kTernarySquare);
    budget.rotation_rounding = cut_variance(plan);
    return budget;
  }
  budget.switch_rounding =
      plan.path == device::NoisePath::raising
          ? rounding(log_q - plan.log_switch_modulus, extracted, kTernarySquare)
          : rounding_from_odd(extracted, kTernarySquare);
  budget.key_switch = switch_variance(plan, variance);
  const double square = lwe_square(plan);
  budget.rest_rounding =
      rounding(double(plan.log_switch_modulus) - plan.log_lwe_modulus, plan.lwe_dim, square);
  budget.rotation_rounding =
      rounding(double(plan.log_lwe_modulus) - (plan.log_n + 1), plan.lwe_dim, square);
  return budget;
}

double bootstrap_variance(const TorusPlan& plan, const NoiseBudget& budget, u32 log_modulus) {
  const double rest = two_to(log_modulus);
  const double from_q = squared(rest / static_cast<double>(plan.modulus));
  const double from_switch = squared(rest / two_to(plan.log_switch_modulus));
  if (plan.group != 0) {
    const double rounded = std::log2(static_cast<double>(plan.modulus)) - log_modulus;
    return from_q * (budget.blind_rotation + budget.transform) +
           rounding(rounded, plan.extracted_dim(), kTernarySquare);
  }
  return from_q * (budget.blind_rotation + budget.transform) +
         from_switch * (budget.switch_rounding + budget.key_switch) +
         switching_variance(plan, plan.log_switch_modulus, log_modulus);
}

double fresh_variance(const TorusPlan& plan, const NoiseBudget& budget) {
  return bootstrap_variance(plan, budget, plan.log_lwe_modulus);
}

double switching_variance(const TorusPlan& plan, u32 log_from, u32 log_to) {
  const double square = plan.rests_extracted() ? kTernarySquare : lwe_square(plan);
  return rounding(double(log_from) - log_to, plan.rest_dim(), square);
}

double reading_variance(const TorusPlan& plan, u32 log_modulus) {
  if (plan.group == 0) return reading_variance(plan, {}, log_modulus);
  return reading_variance(plan, noise_budget(plan, std::sqrt(kErrorVariance)), log_modulus);
}

double reading_variance(const TorusPlan& plan, const NoiseBudget& budget, u32 log_modulus) {
  const u32 steps = plan.log_n + 1;
  if (plan.group != 0)
    return squared(two_to(double(log_modulus) - plan.log_switch_modulus)) *
               (budget.switch_rounding + budget.key_switch) +
           squared(two_to(double(log_modulus) - steps)) * budget.rotation_rounding;
  return squared(two_to(double(log_modulus) - steps)) *
         switching_variance(plan, log_modulus, steps);
}

double stored_variance(const TorusPlan& plan, const NoiseBudget& budget) {
  const u32 steps = plan.log_n + 1;
  // masks rounded one by one, their errors centred on the secrets' mean as a cut's of one element
  const double rounding =
      plan.log_switch_modulus > steps ? (1 + plan.lwe_dim * kCutSquare[1]) / 12 : 0.0;
  return squared(two_to(double(plan.log_lwe_modulus) - plan.log_switch_modulus)) *
             (budget.switch_rounding + budget.key_switch) +
         squared(two_to(double(plan.log_lwe_modulus) - steps)) * rounding;
}

double packing_variance(const TorusPlan& plan, const device::SwitchShape& shape, double sigma) {
  const u32 last = shape.log_modulus - shape.base_log * (shape.digits - 1);
  const double rows =
      (shape.digits - 1) * (1 - two_to(-double(shape.base_log))) + (1 - two_to(-double(last)));
  const double to_rest = squared(two_to(double(shape.log_out_modulus) - shape.log_modulus));
  return to_rest * shape.in_dim * rows * squared(sigma) +
         switching_variance(plan, shape.log_modulus, shape.log_out_modulus);
}

double tail_log2(double variance, double margin) {
  if (!(margin > 0)) return 0;
  return std::min(0.0, 1 - margin * margin / (2 * variance) * std::log2(std::exp(1.0)));
}

double failure_log2(const TorusPlan& plan, double sigma, double norm2, u32 plain_modulus) {
  const NoiseBudget budget = noise_budget(plan, sigma);
  const double variance =
      norm2 * fresh_variance(plan, budget) + reading_variance(plan, budget, plan.log_lwe_modulus);
  return tail_log2(variance, two_to(plan.log_lwe_modulus) / (2.0 * plain_modulus));
}

u32 table_log_modulus(const TorusPlan& plan) {
  const u32 doubled = plan.log_lwe_modulus + 1;
  return doubled <= plan.log_n + 1 && doubled <= plan.log_switch_modulus ? doubled : doubled - 1;
}

double promise_log2(const TorusPlan& plan, const Spec& spec) {
  constexpr double kGateNorm2 = 2;
  const NoiseBudget budget = noise_budget(plan, std::sqrt(kErrorVariance));
  const double input = std::max(fresh_variance(plan, budget), kErrorVariance);
  const auto margin = [&](u32 p) { return two_to(plan.log_lwe_modulus) / (2.0 * p); };
  const auto stated = [&](double norm2, u32 p) {
    return tail_log2(norm2 * input + reading_variance(plan, plan.log_lwe_modulus), margin(p));
  };
  // bits of a padded set stand modulo its own p, those of others modulo 4
  const double sums = std::max(stated(spec.max_norm2, spec.plain_modulus),
                               stated(kGateNorm2, spec.padded ? spec.plain_modulus : 4));
  if (spec.padded || spec.plain_modulus <= 4) return sums;
  const u32 log = table_log_modulus(plan);
  const double table = input + bootstrap_variance(plan, budget, log) + reading_variance(plan, log);
  return std::max(sums, tail_log2(table, margin(spec.plain_modulus)));
}

std::string plan_problem(const TorusPlan& plan, double max_norm2) {
  try {
    device::check(plan);
  } catch (const ParameterError& error) {
    return error.what();
  }
  const NoiseBudget budget = noise_budget(plan, std::sqrt(kErrorVariance));
  const double to_rest = two_to(plan.log_lwe_modulus) / static_cast<double>(plan.modulus);
  const double transform = squared(to_rest) * budget.transform;
  const double fresh = fresh_variance(plan, budget);
  if (plan.group != 0) {
    const double read = max_norm2 * fresh + reading_variance(plan, budget, plan.log_lwe_modulus);
    if (4 * max_norm2 * transform <= read) return {};
    return cat("arithmetic is approx, but in a sum of norm2 = ", max_norm2,
               " the transform's error has variance ", max_norm2 * transform, " of ", read,
               ", expected at most 1/4");
  }
  const u32 least = plan.path == device::NoisePath::gadget ? 32 : 2;
  if (transform * least <= fresh) return {};
  return cat("arithmetic is ", to_string(arithmetic_of(plan)),
             ", but the transform's error has variance ", transform, " of a fresh ciphertext's ",
             fresh, ", expected at most 1/", least);
}

NoiseBudget noise_budget(const Params& params, double sigma) {
  return noise_budget(plan_of(params), sigma);
}

double fresh_std(const Params& params, double sigma) {
  const TorusPlan plan = plan_of(params);
  return std::sqrt(fresh_variance(plan, noise_budget(plan, sigma)));
}

double failure_log2(const Params& params, double sigma, double norm2, u32 plain_modulus) {
  if (!(sigma >= 0) || !(norm2 >= 0) || plain_modulus == 0)
    throw ParameterError(cat("sigma = ", sigma, ", norm2 = ", norm2, ", plain_modulus = ",
                             plain_modulus, ", expected none negative and a positive modulus"),
                         {{"sigma", sigma}, {"norm2", norm2}, {"plain_modulus", plain_modulus}});
  return failure_log2(plan_of(params), sigma, norm2, plain_modulus);
}

double paper_sigma_total(const Params& params) {
  const Spec& spec = params.spec();
  if (spec.path != NoisePath::raising)
    throw UnsupportedError(cat("'", spec.name, "' uses gadget decomposition; equation 14 of ",
                               "BOLT-FHE covers modulus raising"),
                           {{"name", spec.name}, {"path", "gadget"}});
  constexpr double kPi = 3.14159265358979323846;
  const double n = spec.lwe_dim.value, k = spec.glwe_dim.value, ring = spec.poly_size.value;
  const double r = params.slots().value, extracted = k * ring;
  const double key = 2 * kPi * squared(3.19);  // squared subgaussian parameter of key errors
  const double delta = two_to(double(spec.log_raised_modulus) - 2.0 * spec.log_modulus);
  const double delta2 = delta * delta;
  const double sigma1 =
      kPi / (72 * delta2) *
          (3 * n + 2 * n * extracted + 12 * n * delta2 + 8 * n * extracted * delta2) +
      n * (k + r) * ring * key / delta2;
  const double sigma2 = (2 * kPi * extracted + 3 * kPi) / 18;
  const double sigma3 = extracted * params.switch_digits().value * key;
  const double sigma4 = (2 * kPi * n + 3 * kPi) / 18;
  const double to_rest = two_to(2.0 * spec.log_lwe_modulus - 2.0 * spec.log_switch_modulus);
  const double to_switch = two_to(2.0 * spec.log_switch_modulus - 2.0 * spec.log_modulus);
  return std::sqrt(to_rest * (to_switch * sigma1 + sigma2 + sigma3) + sigma4);
}

double paper_failure_bits(const Params& params) {
  constexpr double kPi = 3.14159265358979323846;
  const double margin = two_to(double(params.spec().log_lwe_modulus) - 3);
  const double exponent = kPi * squared(margin) / (2 * squared(paper_sigma_total(params)));
  return exponent * std::log2(std::exp(1.0)) - 1;
}

}  // namespace crenel::tfhe
