// The constants of one column of the array: made from a modulus on the host, and their encoding in
// registers. The unit itself sees only the encoded words.
#pragma once

#include <array>

#include "crenel/core/error.h"
#include "fhecore/model/barrett.h"
#include "fhecore/model/config.h"

namespace crenel::fhecore {

/// What a column needs to compute modulo `modulus` = q >> shift. Moduli of at most 2^(W-4) are
/// shifted up so that the fixed shifts of the reduction serve them too.
struct ColumnConstants {
  u32 q = 0;      ///< q' = modulus << shift, 2^(W-4) < q' < 2^W
  u32 shift = 0;  ///< s: operands b, c go up by it on entry, results down on exit
  u64 mu = 0;     ///< floor(2^(2W+1) / q')

  friend bool operator==(const ColumnConstants&, const ColumnConstants&) = default;
};

/// Words of a column in a constants fragment: q'; mu, low 32 bits; mu, high 5 bits, and the shift
/// from bit 8 on; 0.
using ConstantWords = std::array<u32, 4>;

constexpr u32 bit_length(u64 x) {
  u32 bits = 0;
  for (; x != 0; x >>= 1) ++bits;
  return bits;
}

/// The constants of a modulus in [1, 2^W). ParameterError for any other.
template <unsigned W = 32>
inline ColumnConstants column_constants(u64 modulus) {
  static_assert(W >= 6 && W <= 32);
  if (modulus == 0 || modulus >> W != 0)
    throw ParameterError(cat("modulus ", modulus, ", expected 1..2^", W, " - 1"),
                         {{"modulus", modulus}});
  ColumnConstants c;
  c.shift = modulus > (u64(1) << (W - 4)) ? 0 : W - 2 - bit_length(modulus);
  c.q = static_cast<u32>(modulus << c.shift);
  c.mu = static_cast<u64>((u128(1) << (2 * W + 1)) / c.q);
  return c;
}

/// What the hardware can tell about constants: q', mu and s are in range. A mu in range that does
/// not belong to q' is not noticed.
template <unsigned W = 32>
CRENEL_HD bool in_range(const ColumnConstants& c) {
  const u64 q = c.q;
  return q > (u64(1) << (W - 4)) && q <= low_mask<W>() && c.mu <= low_mask<W + 5>() &&
         c.shift <= W - 2;
}

/// Throws ParameterError unless the constants are those of a modulus: what software owes the
/// hardware. Returns the modulus.
template <unsigned W = 32>
inline u32 check(const ColumnConstants& c) {
  const u32 modulus = c.shift <= W - 2 ? c.q >> c.shift : 0;
  if (modulus != 0 && column_constants<W>(modulus) == c) return modulus;
  throw ParameterError(cat("column constants q' = ", c.q, ", mu = ", c.mu, ", shift ", c.shift,
                           ", expected those of a modulus: mu = floor(2^", 2 * W + 1, " / q')"),
                       {{"q", c.q}, {"mu", c.mu}, {"shift", c.shift}});
}

inline ConstantWords encode(const ColumnConstants& c) {
  return {c.q, static_cast<u32>(c.mu), static_cast<u32>(c.mu >> 32) | c.shift << 8, 0};
}

/// One column as the unit holds it after FHEC.SETC. `valid` is the inverse of its fault bit.
struct Column {
  ColumnConstants constants;
  bool valid = false;
};

/// The words as the hardware reads them: never an error, only a column that is not valid (its
/// constants are then all 0 here: nothing is computed with them).
CRENEL_HD Column decode(u32 word0, u32 word1, u32 word2, u32 word3) {
  // Bits 13..31 are reserved: a shift read with them is out of range.
  const ColumnConstants c{word0, word2 >> 8, static_cast<u64>(word2 & 31) << 32 | word1};
  if (!in_range<32>(c) || (word2 & 0xe0) != 0 || word3 != 0) return {};
  return {c, true};
}
inline Column decode(const ConstantWords& w) { return decode(w[0], w[1], w[2], w[3]); }

}  // namespace crenel::fhecore
