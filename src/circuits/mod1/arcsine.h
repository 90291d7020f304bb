// The arcsine correction after the sine: y from sin(2 pi y) / 2 pi, to third order.
#pragma once

#include "ckks/evaluator_state.h"

namespace crenel::circuits {

/// Where the correction of a ciphertext at (level, scale) ends.
struct ArcsinePlan {
  u32 level = 0;
  double scale = 0.0;
  u32 rescales = 0;  ///< of the final product
};
/// The product keeps a scale well above the canonical one: the values are as small as messages
/// before they are divided by q0 / Delta', and noise would be enlarged with them. 16 -> 13 at scale
/// 2^58 over levels of 40 bits.
ArcsinePlan plan_arcsine(const ckks::Params& params, u32 level, double scale);

/// x + (2 pi)^2 x^3 / 6 for x = sin(2 pi y) / 2 pi: y with an error of order y^5.
ckks::Ciphertext arcsine(const ckks::Evaluator& evaluator, const ckks::Ciphertext& x);

}  // namespace crenel::circuits
