// Integers of 2 to 64 bits in radix form: blocks of 2 bits with room for 2 bits of carry, on a
// padded set with p = 32 (4-bit messages and a padding bit), e.g. lut4-128.
#pragma once

#include <vector>

#include "crenel/tfhe/evaluator.h"

namespace crenel::tfhe {

/// An array of encrypted integers: block j holds bits 2j and 2j+1 of each. Move-only.
class Integers {
 public:
  Integers(std::vector<Ciphertext> blocks, u32 bits, bool is_signed);
  u64 size() const;  ///< integers
  u32 bits() const { return bits_; }
  bool is_signed() const { return signed_; }  ///< two's complement
  const std::vector<Ciphertext>& blocks() const { return blocks_; }
  /// Which secret keys decrypt them; none for known values (IntegerEvaluator::trivial): any do.
  const SecretKeyId& secret_key_id() const { return secret_key_; }
  u64 bytes() const;  ///< device bytes of the payload
  Integers clone() const;
  /// Integers [first, first + count), copied; as Ciphertext::slice.
  Integers slice(u64 first, u64 count) const;
  /// Integers index[0], index[1], ..., copied; as Ciphertext::take.
  Integers take(std::span<const u64> index) const;

 private:
  std::vector<Ciphertext> blocks_;
  u32 bits_ = 0;
  bool signed_ = false;
  SecretKeyId secret_key_;
};

/// One array from several, as of ciphertexts. Equal widths and signedness, else StateError.
Integers concatenate(std::span<const Integers* const> parts);

/// `bits` even, 2..64; values as two's complement when signed. ParameterError for values out of
/// range.
Integers encrypt_unsigned(Client& client, std::span<const u64> values, u32 bits);
Integers encrypt_signed(Client& client, std::span<const i64> values, u32 bits);
std::vector<u64> decrypt_unsigned(const Client& client, const Integers& a);
std::vector<i64> decrypt_signed(const Client& client, const Integers& a);

enum class Comparison : u8 { equal, not_equal, less, less_equal, greater, greater_equal };

/// Encrypted integers, or one public value for all of them (two's complement of 64 bits).
class IntegerOperand {
 public:
  IntegerOperand(const Integers& integers) : integers_(&integers) {}  // NOLINT: either is one
  IntegerOperand(u64 value) : value_(value) {}                        // NOLINT
  const Integers* integers() const { return integers_; }              ///< null: a value
  u64 value() const { return value_; }

 private:
  const Integers* integers_ = nullptr;
  u64 value_ = 0;
};

/// Arithmetic modulo 2^bits. Operands of equal size, width and signedness (StateError otherwise),
/// at least one of them encrypted; public values are taken modulo 2^bits by add, sub and mul, and
/// are of the integers' range elsewhere (ParameterError otherwise). They make circuits smaller.
/// Every result is fully propagated: blocks below 4. Not capturable: circuits look up tables by
/// value.
class IntegerEvaluator {
 public:
  /// ParameterError unless the evaluator's set is padded with p = 32, r = 1 and max_norm2 >= 25.
  explicit IntegerEvaluator(Evaluator evaluator);
  const Evaluator& evaluator() const { return evaluator_; }

  Integers trivial(std::span<const u64> values, u32 bits, bool is_signed) const;
  Integers add(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers sub(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers neg(const Integers& a) const;
  Integers mul(const IntegerOperand& a, const IntegerOperand& b) const;
  /// 0 or 1 as messages modulo the set's plain modulus.
  Ciphertext compare(Comparison comparison, const IntegerOperand& a, const IntegerOperand& b) const;
  Integers min(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers max(const IntegerOperand& a, const IntegerOperand& b) const;
  /// condition (0 or 1) ? a : b
  Integers select(const Ciphertext& condition, const IntegerOperand& a,
                  const IntegerOperand& b) const;
  Integers shift_left(const Integers& a, u32 count) const;   ///< count < bits
  Integers shift_right(const Integers& a, u32 count) const;  ///< arithmetic for signed integers
  Integers bit_and(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers bit_or(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers bit_xor(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers bit_not(const Integers& a) const;

  /// The sum of all parts modulo 2^bits: one circuit, which adds many terms with few carries.
  Integers sum(std::span<const Integers* const> parts) const;
  /// The sum of messages of the set, each below 16 (or Ciphertext::bound), modulo 2^bits, exact
  /// where 2^bits exceeds it: messages and counts of bits outgrow their space here. One part is
  /// converted. Look-ups a result: about k / 4 for k bits, 2 k for k messages and as many to add.
  Integers sum_messages(std::span<const Ciphertext* const> parts, u32 bits,
                        bool is_signed = false) const;

 private:
  Evaluator evaluator_;
};

}  // namespace crenel::tfhe
