// Constants of base conversion, ModUp and division by dropped primes, computed once a context.
#pragma once

#include <vector>

#include "math/modulus.h"
#include "rns/limb_set.h"

namespace crenel::rns {

/// Primes of the chain by id.
using Moduli = std::vector<math::Modulus<u32>>;

/// What becomes of the multiple of D in the sum of a base conversion.
enum class Quotient : u8 {
  kept,     ///< it stays: x + u D, |u| <= (#source)/2
  rounded,  ///< it is taken off: a value in (-D/2, D/2), up to what the reciprocals round
};

/// Centred base conversion from D = prod d_j (source) to the primes p_i (destination):
///
///   y_j = centred([x_j * s_j * (D/d_j)^-1]_{d_j})  in [-(d_j-1)/2, (d_j-1)/2]
///   out_i = sum_j y_j * (D/d_j)  mod p_i
///
/// which is s*x + u*D for an integer u of zero mean, |u| <= (#source)/2: divided by D an error of
/// variance (#source)/12 (docs/theory/ckks-primes.md, "Base conversion, centred, in integers"). In
/// integers without signs:
///
///   z_j = (x_j * source_scale_j + half_j) mod d_j            (so y_j = z_j - half_j)
///   out_i = (sum_j z_j * matrix_ij + offset_i) mod p_i
///
/// Quotient::rounded takes u off, by reciprocals in fixed point:
///
///   u = floor(sum_j y_j * reciprocal_j / 2^shift + 1/2),     |u| <= (#source)/2
///   out_i = sum_j y_j * (D/d_j) - u * D  mod p_i
///
/// A value of at most (1/2 + sum_j d_j / 2^(shift + 1)) D: the variance is 1/12, whatever the
/// number of sources. u is an integer function of integers, the same everywhere.
struct BaseConversion {
  LimbSet source;
  LimbSet destination;
  std::vector<math::ShoupConstant<u32>> source_scale;  ///< [s_j (D/d_j)^-1]_{d_j}
  std::vector<u32> half;                               ///< (d_j - 1) / 2
  std::vector<u32> matrix;  ///< [i * source.size() + j] = (D/d_j) mod p_i, canonical
  std::vector<u32> offset;  ///< -sum_j half_j (D/d_j) mod p_i, canonical
  /// Largest c such that for every destination any c consecutive products z_j * matrix_ij, plus one
  /// value below p_i, stay below 2^64: the accumulator needs no reduction in between.
  /// source.size() when the chain is overflow-free (docs/theory/ckks-primes.md, "When twelve
  /// products fit 64 bits").
  u32 lazy_terms = 0;
  /// Quotient::rounded and more than one source (one is rounded already): floor(2^shift / d_j),
  /// below 2^31. Otherwise empty, and shift is 0.
  std::vector<u32> reciprocal;
  u32 shift = 0;             ///< 33..56
  std::vector<u32> product;  ///< D mod p_i, canonical; empty with `reciprocal`

  u32 source_size() const { return source.size(); }
  bool rounded() const { return shift != 0; }
  u32 largest_quotient() const { return rounded() ? source_size() / 2 : 0; }
};

/// ModUp of hybrid key switching: every digit of the input window, extended to the output basis.
struct ModUp {
  struct Digit {
    u32 first = 0;  ///< position of the digit's first limb in `input`
    u32 count = 0;
    BaseConversion conversion;  ///< digit limbs to (output minus digit limbs), output order
  };
  LimbSet input;   ///< the window of a level
  LimbSet output;  ///< the window followed by the special primes
  std::vector<Digit> digits;
};

/// Division by B = prod of the dropped primes with A = prod of the added primes: rational rescale,
/// ModDown, and both merged (docs/theory/ckks-primes.md, "Rescaling by a rational number"):
///
///   r   = BaseConversion(x * A) from the dropped primes to the output
///   y_i = x_i * (A / B) - r_i / B   mod p_i    (x_i = 0 for the added primes, where A = 0)
struct Divide {
  LimbSet input;              ///< all limbs of x
  LimbSet output;             ///< limbs of y
  LimbSet dropped;            ///< input minus output, in input order
  LimbSet added;              ///< output minus input, in output order
  BaseConversion conversion;  ///< dropped to output, rounded; source_scale includes A
  std::vector<math::ShoupConstant<u32>> input_scale;   ///< per output limb: A/B mod p_i, 0 if added
  std::vector<math::ShoupConstant<u32>> result_scale;  ///< per output limb: 1/B mod p_i
};

/// `source_factor` multiplies x before the conversion (A of Divide), as a list of prime ids.
BaseConversion make_base_conversion(const Moduli& moduli, const LimbSet& source,
                                    const LimbSet& destination, const LimbSet& source_factor = {},
                                    Quotient quotient = Quotient::kept);

/// The same conversion with its sources in another order and some of its destinations: the same
/// values of those. No destinations: what the sources are multiplied by.
BaseConversion rearranged(const Moduli& moduli, const BaseConversion& conversion,
                          const LimbSet& source, const LimbSet& destination);

/// Digits are the fixed blocks [0, alpha - lead), [alpha - lead, 2 alpha - lead), ... of chain
/// positions, cut to `window` (contiguous ids); special primes follow in the output.
ModUp make_mod_up(const Moduli& moduli, const LimbSet& window, const LimbSet& special, u32 alpha,
                  u32 lead = 0);

Divide make_divide(const Moduli& moduli, const LimbSet& input, const LimbSet& output);

}  // namespace crenel::rns
