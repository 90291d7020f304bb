#include "circuits/linear_transform/norms.h"

#include <algorithm>
#include <cmath>

namespace crenel::circuits {

double MatrixNorms::two() const { return std::sqrt(rows * columns); }

MatrixNorms norms_of(const DiagonalMatrix& matrix) {
  MatrixNorms norms;
  std::vector<double> rows(matrix.slots), columns(matrix.slots);
  for (const auto& [offset, values] : matrix.diagonals) {
    double largest = 0.0;
    for (u64 i = 0; i < matrix.slots; ++i) {
      const double size = std::abs(values[i]);
      norms.real = norms.real && values[i].imag() == 0.0;
      rows[i] += size;
      columns[(i + offset) % matrix.slots] += size;
      largest = std::max(largest, size);
    }
    norms.sum += largest;
    norms.largest = std::max(norms.largest, largest);
    ++norms.diagonals;
  }
  norms.rows = *std::max_element(rows.begin(), rows.end());
  norms.columns = *std::max_element(columns.begin(), columns.end());
  return norms;
}

}  // namespace crenel::circuits
