// Blocks of diagonals prepared for one level: what linear transforms of any number of inputs and
// outputs are made of.
#pragma once

#include <optional>

#include "circuits/linear_transform/block_plan.h"
#include "circuits/linear_transform/norms.h"
#include "circuits/linear_transform/plaintexts.h"
#include "ckks/observer.h"

namespace crenel::circuits {

/// What can be said of blocks without plaintexts: after this only memory may be missing.
struct BlockShape {
  BlockPlan plan;
  /// By output, then by input; nothing where there is no block.
  std::vector<std::vector<std::optional<MatrixNorms>>> norms;
  u32 level = 0;
  double plain_scale = 0.0;
  KeyMode keys = KeyMode::hoisted;

  u64 slots() const { return plan.steps.slots; }
  u32 inputs() const { return plan.inputs(); }
  u32 outputs() const { return plan.outputs; }
  /// Whether every block of the output is real.
  bool real(u32 output) const;
  /// Of the output, from those of the inputs: the largest sums of rows times these.
  double bound(u32 output, std::span<const double> bounds) const;
};

/// ParameterError as LinearTransform and BlockTransform say. `level` where the options have none.
BlockShape shape_of(const ckks::Params& params, const BlockPointers& blocks,
                    const LinearTransformOptions& options, u32 level);
/// Of the plaintexts, on the device.
u64 plaintext_bytes_of(const rlwe::RingContext& ring, const BlockPointers& blocks,
                       const BlockShape& shape);

/// The shape and its plaintexts.
class Blocks {
 public:
  /// OutOfMemoryError before anything is encoded.
  Blocks(const ckks::Context& context, const BlockPointers& blocks, BlockShape shape);

  const ckks::Context& context() const { return context_; }
  const BlockShape& shape() const { return shape_; }
  u64 bytes() const;
  /// As LinearTransform::working_bytes.
  u64 working_bytes(u32 batch) const;

  /// The outputs of vectors that were checked, without bounds. KeyMissingError as promised.
  std::vector<ckks::Ciphertext> apply(const ckks::Evaluator& ev,
                                      std::span<const ckks::Ciphertext* const> in) const;
  /// The same in the clear, of the diagonals as they were encoded.
  std::vector<ckks::ClearSlots> clear(std::span<const ckks::ClearSlots> in) const;

 private:
  struct Sums;
  void hoisted_sums(const ckks::Evaluator& ev, std::span<const ckks::Ciphertext* const> in,
                    Sums& sums) const;
  void minimal_sums(const ckks::Evaluator& ev, std::span<const ckks::Ciphertext* const> in,
                    Sums& sums) const;
  void join_hoisted(const ckks::Evaluator& ev, Sums& sums) const;
  ckks::Ciphertext divided(const ckks::Evaluator& ev, Sums& sums, u32 output,
                           ckks::Metadata meta) const;
  ckks::Ciphertext join_minimal(const ckks::Evaluator& ev, Sums& sums, u32 output,
                                ckks::Metadata meta) const;

  ckks::Context context_;
  BlockShape shape_;
  std::vector<std::vector<DiagonalPlaintexts>> plaintexts_;  ///< by input, then by part
};

/// Refuses a vector that is at another level or has other slots than the transform; `operation`
/// names it. `maker`: how one for another level is made.
void check_vector(const ckks::Params& params, const ckks::Metadata& v, const BlockShape& shape,
                  const char* operation, const std::string& maker);
/// The error bound of an output. StateError for inputs that the transform would refuse.
ckks::ErrorBound bound_of(const BlockShape& shape, const ckks::ErrorModel& model,
                          std::span<const ckks::ErrorBound> in, u32 output, const char* operation,
                          const std::string& maker);

}  // namespace crenel::circuits
