// How transforms and base conversions become tiles of fhe_sync: passes, matrices, constants
// (fhecore/doc/mapping.md). Host tables; backends bring them into their memory.
#pragma once

#include <memory>
#include <vector>

#include "crenel/device/fhecore.h"
#include "fhecore/model/fragment.h"
#include "ring/ring.h"
#include "rns/tables.h"

namespace crenel::device {

/// Work of one warp between two FHEC.SETC, the same on every backend so that counts agree: column
/// strips of a radix-16 pass, coefficient tiles of a base conversion.
inline constexpr u32 kFhecoreStrips = 8;
inline constexpr u32 kFhecoreCoefficientTiles = 16;

/// One pass over a limb: in every one of 2^log_blocks blocks of R 2^log_stride elements,
/// R = 2^log_radix, the elements r, r + stride, r + 2 stride, ... become R results at the same
/// places. Columns of tiles are 16 values of r, or, where the stride is 1, 16 blocks.
struct FhecorePass {
  u32 log_n = 0;
  u32 log_radix = 0;   ///< 1..4 or 8
  u32 log_blocks = 0;  ///< 0 where the radix is below 16
  u32 log_stride = 0;
  /// Stride 1: the blocks of a tile differ, so one DFT matrix serves all, and the powers of psi are
  /// multiplied in element by element, before the product (inverse: after it).
  bool twiddles = false;
  u64 matrix_at = 0;  ///< first word within a prime's matrices

  /// Rows of the matrix; below radix 16 it is block-diagonal, 16 / R times the DFT.
  CRENEL_HD u32 side() const { return log_radix < 4 ? 16 : 1u << log_radix; }
  CRENEL_HD u32 depth_tiles() const { return side() / 16; }
  CRENEL_HD u32 strips() const { return (1u << log_n) / (16 * side()); }
  CRENEL_HD u32 strips_per_warp() const { return log_radix == 8 ? 1 : kFhecoreStrips; }
  CRENEL_HD u32 warps() const { return (strips() + strips_per_warp() - 1) / strips_per_warp(); }
  u64 matrix_words() const { return (u64(side()) * side()) << (twiddles ? 0 : log_blocks); }
};

/// 16 columns of a pass: element (row, col) of its `side` rows is word at(row, col) of the limb.
struct FhecoreStrip {
  u64 first = 0;
  u64 matrix = 0;  ///< first word of its matrix within the pass
  u32 log_radix = 0, log_stride = 0, log_col_stride = 0;

  CRENEL_HD FhecoreStrip(const FhecorePass& p, u32 strip)
      : log_radix(p.log_radix), log_stride(p.log_stride) {
    if (p.log_stride == 0) {
      first = static_cast<u64>(strip) << (4 + p.log_radix);
      log_col_stride = p.log_radix;
      return;
    }
    // Below radix 16 there is one block, and 16 / R runs of 16 columns share a strip.
    const u32 log_width = p.log_radix < 4 ? 8 - p.log_radix : 4;
    const u32 log_block_strips = p.log_stride - log_width;
    const u32 block = strip >> log_block_strips;
    const u32 column = (strip & ((1u << log_block_strips) - 1)) << log_width;
    first = (static_cast<u64>(block) << (p.log_radix + p.log_stride)) + column;
    if (!p.twiddles) matrix = static_cast<u64>(block) * p.side() * p.side();
  }
  CRENEL_HD u64 at(u32 row, u32 col) const {
    const u32 inner = row & ((1u << log_radix) - 1), run = row >> log_radix;
    return first + (static_cast<u64>(inner) << log_stride) + run * 16 +
           (static_cast<u64>(col) << log_col_stride);
  }
};

/// Passes of the forward transform; the inverse runs them backwards. ParameterError for a log_n
/// that the decomposition does not serve.
std::vector<FhecorePass> fhecore_passes(u32 log_n, FhecoreDecomposition decomposition);
/// Passes of these radices, log2: the first 1..4 or 8, the others 4 or 8, with a sum of at least 8.
std::vector<FhecorePass> fhecore_passes(const std::vector<u32>& log_radices);

/// Matrices and twiddles of every prime of a ring.
struct FhecoreTransform {
  struct Direction {
    std::vector<u32> matrices;                       ///< [prime][matrix_words], rows of `side`
    std::vector<math::ShoupConstant<u32>> twiddles;  ///< [prime][N], of the pass that has them
  };
  std::shared_ptr<const ring::Ring> ring;
  std::vector<FhecorePass> passes;
  u64 matrix_words = 0;                               ///< of one prime
  Direction forward, inverse;                         ///< the inverse holds the factors 1/R
  std::vector<fhecore::FragmentConstants> constants;  ///< one a prime: 8 equal columns
};
FhecoreTransform make_fhecore_transform(std::shared_ptr<const ring::Ring> ring,
                                        std::vector<FhecorePass> passes);
inline FhecoreTransform make_fhecore_transform(std::shared_ptr<const ring::Ring> ring,
                                               FhecoreDecomposition decomposition) {
  auto passes = fhecore_passes(ring->log_n(), decomposition);
  return make_fhecore_transform(std::move(ring), std::move(passes));
}

/// A base conversion, transposed: rows are coefficients, columns destinations, K the sources.
///   z_j = (x_j source_scale_j + half_j) mod d_j, element by element;
///   D[m][i] = (sum_j z_j[m] matrix[j][i] + offset[i]) mod p_i.
struct FhecoreConversion {
  rns::BaseConversion table;
  std::vector<u32> source_moduli;
  u32 depth_tiles = 0;                                ///< ceil(sources / 16)
  u32 halves = 0;                                     ///< ceil(destinations / 8)
  std::vector<u32> matrix;                            ///< [16 depth_tiles][8 halves]; padding is 0
  std::vector<u32> offset;                            ///< [8 halves]
  std::vector<fhecore::FragmentConstants> constants;  ///< [halves]; columns to spare: modulus 1
};
/// ParameterError for an empty table, a rounded quotient, or a modulus of 2^31 and more.
FhecoreConversion make_fhecore_conversion(const rns::Moduli& moduli, rns::BaseConversion table);

}  // namespace crenel::device
