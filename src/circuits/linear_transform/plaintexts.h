// Diagonals as plaintexts on the device, each stored once per period.
#pragma once

#include "circuits/linear_transform/bsgs.h"
#include "ckks/objects.h"

namespace crenel::circuits {

/// The grid [giant][baby] of a plan, encoded at `scale` on `limbs`; entry (g, b) is the diagonal of
/// offset giants[g] + babies[b], rotated back by its giant step.
class DiagonalPlaintexts {
 public:
  DiagonalPlaintexts(const ckks::Context::State& context, const DiagonalMatrix& matrix,
                     const Bsgs& plan, double scale, const ring::LimbSet& limbs);

  /// bytes() of such a grid, before there is one.
  static u64 bytes_of(const DiagonalMatrix& matrix, const Bsgs& plan, u32 limbs);

  device::PlainGrid grid() const;
  /// The values of entry (giant g, baby b), one period of them, read back from the device; none
  /// where the matrix has no such diagonal.
  std::vector<std::complex<double>> values(const ckks::Context::State& context, double scale, u32 g,
                                           u32 b) const;
  u64 bytes() const { return words_.bytes(); }

 private:
  ring::LimbSet limbs_;
  u32 log_words_ = 0;
  u32 giants_, babies_;
  std::vector<u8> present_;
  device::Buffer words_;
};

/// Smallest power of two p such that v repeats after p values.
u64 period_of(std::span<const std::complex<double>> v);

}  // namespace crenel::circuits
