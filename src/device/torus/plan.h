// TorusPlan: shape, moduli and noise path of one TFHE bootstrap, as the backends see it.
#pragma once

#include <vector>

#include "crenel/core/types.h"

namespace crenel::device {

/// How an external product keeps its noise small.
enum class NoisePath : u8 {
  gadget,   ///< the accumulator is decomposed into digits; keys live modulo Q
  raising,  ///< keys live modulo T > Q, the product is scaled by Q / T and rounded
};

/// Which results a bootstrap gives.
enum class Arithmetic : u8 {
  exact,   ///< integers: a mathematical function of the inputs
  approx,  ///< products by a double-precision transform, whose operations kernels.h fixes
  split,   ///< ... of digits in two pieces, each with a key of its own: gadgets whose whole digits
           ///< approx would multiply with too large an error
};

/// Distribution of the LWE secrets. A ternary one takes two keys an element, a binary one takes
/// one.
enum class LweSecret : u8 { ternary, binary };

/// Symbols in brackets are those of BOLT-FHE, table 2.
struct TorusPlan {
  u32 lwe_dim = 0;   ///< [n]
  u32 glwe_dim = 0;  ///< [k] mask polynomials of the accumulator
  u32 slots = 1;     ///< [r] messages that share a mask
  /// [g] elements of a binary LWE secret that a step of the rotation takes together, by a bundle of
  /// 2^g keys: 1..6, dividing n. 0: one element a step, by differences of monomials. Ciphertexts
  /// rest after the key switch where it is 0, and before it, under the extracted key, where not.
  u32 group = 0;
  /// Elements of a group of the keys as they were made: a multiple of `group`, whose keys are sums
  /// of theirs. 0: the same.
  u32 key_group = 0;
  /// Groups: the accumulator grows by products with X^(c_S) - 1 for all S but the empty one, which
  /// then has no key; otherwise it becomes the product with the whole bundle.
  bool differences = false;
  u32 log_n = 0;            ///< log2 of the ring degree [N], 3..12
  u32 log_lwe_modulus = 0;  ///< log2 of the modulus [q] of ciphertexts at rest, 1..32
  NoisePath path = NoisePath::gadget;
  Arithmetic arithmetic = Arithmetic::exact;
  LweSecret secret = LweSecret::ternary;
  /// [Q] of the accumulator, below 2^56. Raising: a power of two. Gadget: the product of primes.
  u64 modulus = 0;
  /// One or two, each = 1 mod 2N and below 2^28. Gadget: their product is Q. Raising: it is [T],
  /// below 2^56.
  std::vector<u64> primes;
  u32 base_log = 0;  ///< gadget: log2 of the base [B_g]
  /// Gadget: digits in use, weights 2^base_log, ..., 2^(base_log digits). Raising: 1.
  u32 digits = 1;
  u32 log_switch_modulus = 0;  ///< log2 of the modulus [Q_KS] of extracted ciphertexts, 1..40
  u32 switch_base_log = 0;     ///< log2 of the base [B_KS] of the key switch
  /// [d_KS], switch_base_log * switch_digits >= log_switch_modulus; with groups at most that, the
  /// digits that are kept.
  u32 switch_digits = 0;

  u32 ring_dim() const { return u32(1) << log_n; }
  u32 polys() const { return glwe_dim + slots; }               ///< of the accumulator
  u32 extracted_dim() const { return glwe_dim * ring_dim(); }  ///< kN
  u32 extracted_words() const { return extracted_dim() + slots; }
  bool rests_extracted() const { return group != 0; }
  u32 rest_dim() const { return rests_extracted() ? extracted_dim() : lwe_dim; }
  u32 words() const { return rest_dim() + slots; }  ///< of a ciphertext at rest
  /// Of what a blind rotation reads, and log2 of its modulus.
  u32 read_words() const { return lwe_dim + slots; }
  u32 log_read_modulus() const { return group != 0 ? log_switch_modulus : log_lwe_modulus; }
  u32 steps() const { return group != 0 ? lwe_dim / group : lwe_dim; }  ///< of a blind rotation
  u32 made_group() const { return key_group != 0 ? key_group : group; }
  u32 sets() const { return u32(1) << group; }  ///< values S of a group
  /// Of a group, the S whose key comes first: key i is that of S = first_set() + i.
  u32 first_set() const { return differences ? 1 : 0; }
  /// Keys of a step.
  u32 keys_per_step() const {
    return group != 0 ? sets() - first_set() : secret == LweSecret::ternary ? 2 : 1;
  }
  /// Whether a step adds to the accumulator, or gives it anew.
  bool accumulates() const { return group == 0 || differences; }
  /// Pieces that a digit is multiplied in.
  u32 digit_pieces() const { return arithmetic == Arithmetic::split ? 2 : 1; }
  /// Polynomials that one polynomial of the accumulator enters the products as.
  u32 operands() const { return digits * digit_pieces(); }
  /// Polynomials of the bootstrapping key of one step: [key][digit][row][out].
  u64 key_polys() const { return u64(keys_per_step()) * digits * polys() * polys(); }
  /// Product of the primes: the modulus of the bootstrapping key.
  u64 key_modulus() const {
    u64 product = 1;
    for (u64 p : primes) product *= p;
    return product;
  }
  bool operator==(const TorusPlan&) const = default;
};

/// Whether the double-precision transform gives the exact integers of this gadget plan: its error,
/// twelve standard deviations of it, stays below 1/2 for uniform keys (docs/design/0012). Backends
/// may then compute `exact` plans by it.
bool transform_is_exact(const TorusPlan& plan);
/// split: log2 of the weight of the digits' upper pieces, half of the bits of the widest digit.
u32 piece_log(const TorusPlan& plan);
/// Standard deviation of the error of one external product by the double-precision transform, in
/// units of the accumulator's integers.
double transform_error_std(const TorusPlan& plan);

/// Whether the double-precision path reduces a sum modulo Q before its last rounding: always for
/// gadgets, and for raising where the rounding trick alone could not hold the sums (|x| < 2^51,
/// with fourteen standard deviations).
bool reduces_product(const TorusPlan& plan);

inline constexpr u32 kMaxGroup = 6;

/// Throws ParameterError naming the field that is out of the ranges above.
void check(const TorusPlan& plan);

}  // namespace crenel::device
