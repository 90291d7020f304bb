// Norms of a matrix, for the bounds of what it makes of errors.
#pragma once

#include "crenel/circuits/linear_transform.h"

namespace crenel::circuits {

struct MatrixNorms {
  double rows = 0.0;     ///< largest sum of absolute values in a row
  double columns = 0.0;  ///< in a column
  double sum = 0.0;      ///< of the largest absolute values of the diagonals
  double largest = 0.0;  ///< entry
  u64 diagonals = 0;
  bool real = true;  ///< every entry is
  /// At least the largest singular value.
  double two() const;
};
MatrixNorms norms_of(const DiagonalMatrix& matrix);

}  // namespace crenel::circuits
