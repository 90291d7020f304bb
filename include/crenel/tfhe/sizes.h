// Strong integers of TFHE: a dimension cannot be passed where a base is expected.
#pragma once

#include <compare>
#include <ostream>

#include "crenel/core/types.h"

namespace crenel::tfhe {

/// A number that is of one kind.
template <class Tag>
struct Size {
  u32 value = 0;
  /// 0, or a number.
  constexpr Size() = default;
  constexpr explicit Size(u32 v) : value(v) {}
  friend constexpr auto operator<=>(const Size&, const Size&) = default;
  friend std::ostream& operator<<(std::ostream& out, Size s) { return out << s.value; }
};

using LweDim = Size<struct LweDimTag>;              ///< n, or kN of an extracted ciphertext
using GlweDim = Size<struct GlweDimTag>;            ///< k, mask polynomials
using PolySize = Size<struct PolySizeTag>;          ///< N, coefficients
using SlotCount = Size<struct SlotCountTag>;        ///< r, messages under a shared mask
using DecompBaseLog = Size<struct DecompBaseTag>;   ///< log2 of a decomposition base
using DecompLevels = Size<struct DecompLevelsTag>;  ///< digits of a decomposition

}  // namespace crenel::tfhe
