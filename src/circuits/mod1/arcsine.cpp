#include "circuits/mod1/arcsine.h"

#include <cmath>
#include <numbers>

namespace crenel::circuits {
namespace {

constexpr double kCubic = 2.0 * std::numbers::pi * std::numbers::pi / 3.0;  // (2 pi)^2 / 6
constexpr double kBitsAboveCanonical = 8.0;

// Scale of 1 + (2 pi)^2 x^2 / 6: the factor is absorbed by declaring a smaller scale for x^2.
double bracket_scale(const ckks::Params& params, u32 level, double scale) {
  return scale * scale / params.rescale_ratio(level) / kCubic;
}

}  // namespace

ArcsinePlan plan_arcsine(const ckks::Params& params, u32 level, double scale) {
  ArcsinePlan p{level - 1, scale * bracket_scale(params, level, scale), 0};
  const double least = std::exp2(params.spec().log_scale + kBitsAboveCanonical);
  while (p.level > 0 && p.scale / params.rescale_ratio(p.level) >= least) {
    p.scale /= params.rescale_ratio(p.level);
    --p.level, ++p.rescales;
  }
  return p;
}

ckks::Ciphertext arcsine(const ckks::Evaluator& ev, const ckks::Ciphertext& x) {
  const auto& params = ev.context().params();
  const ArcsinePlan plan = plan_arcsine(params, x.level(), x.scale());
  ckks::Ciphertext bracket = ev.relinearise_rescale(ev.square_lazy(x));
  bracket.data().meta.scale = bracket_scale(params, x.level(), x.scale());
  bracket = ev.add(bracket, std::complex<double>(1.0));
  ckks::Ciphertext out = ev.multiply_lazy(ev.adjust_level(x, bracket.level(), x.scale()), bracket);
  if (plan.rescales == 0) out = ev.relinearise(out);
  for (u32 i = 0; i < plan.rescales; ++i)
    out = i == 0 ? ev.relinearise_rescale(out) : ev.rescale(out);
  out.data().meta.scale = plan.scale;  // equal up to bookkeeping rounding
  return out;
}

}  // namespace crenel::circuits
