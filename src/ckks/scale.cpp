#include "ckks/scale.h"

#include <algorithm>
#include <cmath>

#include "crenel/core/error.h"

namespace crenel::ckks {

double largest_value(const Params& params, u32 level, double scale) {
  const double bits = params.log_q(level) - 1.0 - std::log2(scale);
  return std::exp2(std::min(bits, 1023.0)) * (1.0 - kErrorRoom);
}

bool scale_fits(const Params& params, u32 level, double scale) {
  return std::isfinite(scale) && scale >= kMinScale && std::log2(scale) <= params.log_q(level);
}

std::string scale_range(const Params& params, u32 level) {
  return cat("a finite number in [1, 2^", params.log_q(level), "], the modulus of level ", level);
}

void expect_scale(const Params& params, u32 level, double scale, const char* what) {
  if (scale_fits(params, level, scale)) return;
  throw ParameterError(
      cat(what, " ", scale, ", expected ", scale_range(params, level)),
      {{"scale", scale}, {"level", level}, {"expected", scale_range(params, level)}});
}

}  // namespace crenel::ckks
