// Linear maps on encrypted vectors, by diagonals and baby steps / giant steps.
#pragma once

#include <complex>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "crenel/ckks/error_model.h"
#include "crenel/ckks/evaluator.h"

namespace crenel::circuits {

/// A square matrix by its generalised diagonals: (M v)_i = sum_k diagonals[k]_i v_((i + k) mod
/// slots).
struct DiagonalMatrix {
  u64 slots = 0;  ///< a power of two: the size of the vectors
  /// By offset k in [0, slots); each of `slots` values. Offsets without an entry are zero.
  std::map<u64, std::vector<std::complex<double>>> diagonals;

  /// From `rows` x `columns` values, row after row, padded with zeros to `slots` (>= both).
  /// Diagonals that are zero are left out.
  static DiagonalMatrix from_dense(std::span<const std::complex<double>> values, u64 rows,
                                   u64 columns, u64 slots);
};

/// Which rotation keys a transform uses.
enum class KeyMode : u8 {
  hoisted,  ///< one a baby step and one a giant step; the decomposition is shared
  minimal,  ///< two: one step of each kind, repeated (Min-KS)
};

/// How a matrix is applied.
struct LinearTransformOptions {
  std::optional<u32> level;  ///< of the input, >= 1; default the top normal level
  /// Scale of the plaintexts; default: that which keeps canonical scales canonical.
  double plain_scale = 0.0;
  u64 baby_steps = 0;  ///< a power of two; 0: the cheapest split
  KeyMode keys = KeyMode::hoisted;
};

/// A matrix prepared for one level: plaintexts on the device. One level; double hoisting (Bossuat
/// et al. 2021) with one final division by P and the rescale's primes. Immutable: any
/// number of threads may apply it.
class LinearTransform {
 public:
  /// ParameterError: level, slots, values that are not finite, sizes that do not fit.
  /// OutOfMemoryError, before anything is encoded, where the device has no room for plaintexts.
  LinearTransform(const ckks::Context& context, const DiagonalMatrix& matrix,
                  const LinearTransformOptions& options = {});
  LinearTransform(LinearTransform&&) noexcept;
  LinearTransform& operator=(LinearTransform&&) noexcept;
  ~LinearTransform();

  /// Level that the input must have, and its slots.
  u32 level() const;
  u64 slots() const;
  /// Rotations it needs keys for, ascending, without 0.
  const std::vector<i64>& rotations() const;
  /// Rotations of the input, and of sums of products: the one by 0 included.
  u64 baby_steps() const;
  u64 giant_steps() const;
  u64 plaintext_bytes() const;  ///< on the device; a plaintext is stored once per period
  /// Device bytes that an application to a batch takes at least, beside its result; with minimal
  /// keys 0, which says nothing.
  u64 working_bytes(u32 batch) const;

  /// M v at level() - 1; the input must be at level() with the matrix's slots. KeyMissingError
  /// names every rotation without a key. A known bound of v grows by the largest sum of a row's
  /// absolute values; StateError where the result's could leave the range of its level.
  ckks::Ciphertext operator()(const ckks::Evaluator& evaluator, const ckks::Ciphertext& v) const;
  /// The same of error bounds. Slots grow by the largest sum of a row's absolute values.
  ckks::ErrorBound operator()(const ckks::ErrorModel& model, const ckks::ErrorBound& v) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The error bound of a transform with these options, without making it: for whoever has parameters
/// and no device. `options.level` defaults to the level of v.
ckks::ErrorBound linear_transform_bound(const ckks::ErrorModel& model, const DiagonalMatrix& matrix,
                                        const ckks::ErrorBound& v,
                                        const LinearTransformOptions& options = {});

/// LinearTransform::plaintext_bytes() of such a transform, without making it.
u64 plaintext_bytes_of(const ckks::Context& context, const DiagonalMatrix& matrix,
                       const LinearTransformOptions& options = {});

/// The rotations a transform of these offsets would need, without making it; of blocks
/// (BlockTransform), where `inputs` and `outputs` are how many and the offsets those of all blocks.
std::vector<i64> linear_transform_rotations(std::span<const u64> offsets, u64 slots,
                                            u64 baby_steps = 0, KeyMode keys = KeyMode::hoisted,
                                            u64 inputs = 1, u64 outputs = 1);

}  // namespace crenel::circuits
