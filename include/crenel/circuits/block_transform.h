// Linear maps from several encrypted vectors to several: matrices of blocks.
#pragma once

#include "crenel/circuits/linear_transform.h"

namespace crenel::circuits {

/// By output, then by input: what the input is multiplied by for that output; nothing where that is
/// zero. All have the same slots.
using BlockMatrix = std::vector<std::vector<std::optional<DiagonalMatrix>>>;

/// A matrix of blocks prepared for one level: output o is the sum over i of block (o, i) times
/// input i. One level. An input is decomposed once and its baby steps serve all outputs; sums over
/// the inputs come before the giant steps, so that an output has one rotation a giant step and one
/// division, however many inputs it has. All blocks share one split of their offsets. Immutable:
/// any number of threads may apply it.
class BlockTransform {
 public:
  /// ParameterError as LinearTransform's, and for rows of unequal length, an output without a
  /// block, a block without a diagonal. OutOfMemoryError, before anything is encoded, where the
  /// device has no room for plaintexts.
  BlockTransform(const ckks::Context& context, const BlockMatrix& blocks,
                 const LinearTransformOptions& options = {});
  BlockTransform(BlockTransform&&) noexcept;
  BlockTransform& operator=(BlockTransform&&) noexcept;
  ~BlockTransform();

  /// Ciphertexts that are taken and given, the level that inputs have, and slots of each.
  u32 inputs() const;
  u32 outputs() const;
  u32 level() const;
  u64 slots() const;
  /// Rotations it needs keys for, ascending, without 0.
  const std::vector<i64>& rotations() const;
  u64 baby_steps() const;   ///< of all inputs together, the one by 0 included
  u64 giant_steps() const;  ///< of all outputs together, the one by 0 included
  /// On the device; a plaintext is stored once per period.
  u64 plaintext_bytes() const;
  /// As LinearTransform::working_bytes.
  u64 working_bytes(u32 batch) const;

  /// The outputs at level() - 1. All inputs have level(), the same scale, batch and secret key and
  /// the blocks' slots: StateError. KeyMissingError names every rotation without a key. Known
  /// bounds of all inputs of an output give that of the output; StateError where it could leave the
  /// range of its level.
  std::vector<ckks::Ciphertext> operator()(const ckks::Evaluator& evaluator,
                                           std::span<const ckks::Ciphertext> inputs) const;
  /// The same of inputs that do not lie in one array.
  std::vector<ckks::Ciphertext> operator()(const ckks::Evaluator& evaluator,
                                           std::span<const ckks::Ciphertext* const> inputs) const;
  /// The same of error bounds. Inputs may depend on one another: their errors are added.
  std::vector<ckks::ErrorBound> operator()(const ckks::ErrorModel& model,
                                           std::span<const ckks::ErrorBound> inputs) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The error bounds of such a transform, without making it; `options.level` defaults to the level
/// of the inputs.
std::vector<ckks::ErrorBound> block_transform_bounds(const ckks::ErrorModel& model,
                                                     const BlockMatrix& blocks,
                                                     std::span<const ckks::ErrorBound> inputs,
                                                     const LinearTransformOptions& options = {});

/// BlockTransform::plaintext_bytes() of such a transform, without making it.
u64 plaintext_bytes_of(const ckks::Context& context, const BlockMatrix& blocks,
                       const LinearTransformOptions& options = {});

}  // namespace crenel::circuits
