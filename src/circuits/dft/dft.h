// CoeffToSlot and SlotToCoeff as products of sparse matrices (docs/theory/bootstrapping.md).
#pragma once

#include <span>
#include <vector>

#include "crenel/circuits/linear_transform.h"

namespace crenel::circuits {

/// w_j = x_j + i x_(j + slots) on both halves of 2 * slots entries: (1 | i) x + (i | 1) rotate(x,
/// slots).
DiagonalMatrix joined_halves(u64 slots);

/// The forward special FFT on `slots` values without its bit reversal, as factors applied first to
/// last: folded coefficients m_k + i m_(k + slots) in bit-reversed order to slots. `stages` says
/// how many of the log2(slots) butterfly stages each factor takes. Every entry is multiplied by
/// `factor` in each matrix. The factors absorb each other's rotations, so that all offsets are
/// non-negative multiples of a factor's stride (pre-rotation removal). With `joined` the input is 2
/// slots values, real parts before imaginary parts, and the first factor combines them; slots of
/// the other factors then repeat.
std::vector<DiagonalMatrix> slot_to_coeff_factors(u64 slots, std::span<const u32> stages,
                                                  double factor, bool joined);

/// The inverse, without bit reversal and without the division by `slots`. With `joined` the last
/// factor makes w followed by -i w of every vector w of `slots` values: adding the conjugate leaves
/// twice the real parts followed by twice the imaginary parts.
std::vector<DiagonalMatrix> coeff_to_slot_factors(u64 slots, std::span<const u32> stages,
                                                  double factor, bool joined);

/// Multiplies what the matrix makes of entry `column` of a vector.
void scale_column(DiagonalMatrix& m, u64 column, double factor);

/// Stages a factor: log2(slots) butterfly stages in `factors` factors. CoeffToSlot takes the larger
/// counts first but one less in its second factor, as in the published 4+3+4+4 of 15.
std::vector<u32> split_stages(u32 log_slots, u32 factors);

/// With OverModRaise: into how many factors what the first one leaves is divided at the least cost.
u32 raised_factors(u32 log_slots);
/// Stages of the first factor, up to four, and of `others` that share the rest.
std::vector<u32> split_raised_stages(u32 log_slots, u32 others);

}  // namespace crenel::circuits
