// Diagonals as plaintexts on the device, each stored once per period.
#pragma once

#include <span>

#include "circuits/linear_transform/block_plan.h"
#include "ckks/objects.h"

namespace crenel::circuits {

/// The grid [row][baby] of what one input is multiplied by, encoded at `scale` on `limbs`: entry
/// (r, b) is the diagonal of offset rows[r].giant + babies[b] of the block of that row's output,
/// rotated back by the giant step.
class DiagonalPlaintexts {
 public:
  /// `column`: by output, null where there is no block. Advances a task of all diagonals by one for
  /// each. Asks for no memory: bytes_of() says how much it takes.
  DiagonalPlaintexts(const ckks::Context::State& context,
                     std::span<const DiagonalMatrix* const> column, std::span<const BlockRow> rows,
                     std::span<const u64> babies, u64 slots, double scale,
                     const ring::LimbSet& limbs);

  /// bytes() of such a grid, before there is one.
  static u64 bytes_of(std::span<const DiagonalMatrix* const> column, std::size_t rows,
                      std::size_t babies, u32 limbs);

  device::PlainGrid grid() const;
  /// The values of entry (row, baby), one period of them, read back from the device; none
  /// where the matrix has no such diagonal.
  std::vector<std::complex<double>> values(const ckks::Context::State& context, double scale,
                                           u32 row, u32 baby) const;
  u64 bytes() const { return words_.bytes(); }

 private:
  ring::LimbSet limbs_;
  u32 log_words_ = 0;
  u32 rows_, babies_;
  std::vector<u8> present_;
  device::Buffer words_;
};

/// Smallest power of two p such that v repeats after p values.
u64 period_of(std::span<const std::complex<double>> v);

}  // namespace crenel::circuits
