// Which scales a plaintext or ciphertext may have (docs/reference/file-format.md, "Metadata").
#pragma once

#include <string>

#include "crenel/ckks/params.h"

namespace crenel::ckks {

/// Scale of the polynomial that ModRaise makes, the smallest that the library itself uses. Below it
/// rounding to integers alone would be off by more than half a unit of the message.
inline constexpr double kMinScale = 1.0;
/// What rescaling may leave: ModRaise's scale drifts by the ratios of canonical scales on its way
/// through CoeffToSlot, and scales must not go on to where doubles end.
inline constexpr double kMinRescaled = 0x1p-10;

/// Part of the range of a level that messages leave to errors (docs/theory/precision.md, "How large
/// values may be").
inline constexpr double kErrorRoom = 0x1p-10;
/// Params::max_value, of any positive scale.
double largest_value(const Params& params, u32 level, double scale);

/// In [1, modulus of `level`], and finite: what decodes at such a scale is a finite number, and not
/// always 0.
bool scale_fits(const Params& params, u32 level, double scale);
/// "a number in [1, 2^...]"
std::string scale_range(const Params& params, u32 level);
/// ParameterError that `what` ("scale") does not fit.
void expect_scale(const Params& params, u32 level, double scale, const char* what);

}  // namespace crenel::ckks
