// Integers of 2 to 256 bits in radix form: blocks of 2 bits with room for 2 bits of carry, on a
// padded set with p = 32 (4-bit messages and a padding bit), e.g. lut4-128.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "crenel/tfhe/evaluator.h"

namespace crenel::tfhe {

/// An array of encrypted integers: block j holds bits 2j and 2j+1 of each. Move-only.
class Integers {
 public:
  /// ParameterError for origins() of another number, or out of order.
  Integers(std::vector<Ciphertext> blocks, u32 bits, bool is_signed, std::vector<u32> origins = {});
  u64 size() const;  ///< integers
  /// Width of each.
  u32 bits() const { return bits_; }
  bool is_signed() const { return signed_; }  ///< two's complement
  /// Arrays of messages below 4: block j has bits 2j and 2j + 1 of every integer.
  const std::vector<Ciphertext>& blocks() const { return blocks_; }
  /// What is known of blocks by what made them, public all of it: for block j the first block that
  /// it is a copy of, bit for bit (j where it is of none), or kKnown + m where it is the message m
  /// of all integers. So operations do not look up the same twice, whose errors would be the same,
  /// too. Empty: nothing, as of encryptions and of what was loaded.
  const std::vector<u32>& origins() const { return origins_; }
  static constexpr u32 kKnown = 1024;
  /// Which secret keys decrypt them; none for known values (IntegerEvaluator::trivial): any do.
  const SecretKeyId& secret_key_id() const { return secret_key_; }
  u64 bytes() const;  ///< device bytes of the payload
  /// A copy with payloads of its own.
  Integers clone() const;
  /// Integers [first, first + count), copied; as Ciphertext::slice.
  Integers slice(u64 first, u64 count) const;
  /// Integers index[0], index[1], ..., copied; as Ciphertext::take.
  Integers take(std::span<const u64> index) const;

 private:
  std::vector<Ciphertext> blocks_;
  std::vector<u32> origins_;
  u32 bits_ = 0;
  bool signed_ = false;
  SecretKeyId secret_key_;
};

/// One array from several, as of ciphertexts. Equal widths and signedness, else StateError.
Integers concatenate(std::span<const Integers* const> parts);

/// A public value as two's complement of 256 bits.
class WideValue {
 public:
  static constexpr u32 kWords = 4;
  WideValue() = default;
  /// From a number, extended by zeros or by its sign.
  WideValue(u64 value) : words_{value, 0, 0, 0} {}  // NOLINT: not negative
  static WideValue of_signed(i64 value);
  /// Up to kWords words, least significant first, the last one's sign extended where signed.
  static WideValue of_words(std::span<const u64> words, bool is_signed);
  /// Word i of 64 bits, the least significant first; bits; whether the value is negative, or 0.
  u64 word(u32 i) const { return words_[i]; }
  u64 block(u32 j) const { return words_[j / 32] >> (j % 32 * 2) & 3; }  ///< bits 2j, 2j + 1
  bool negative() const { return (words_[kWords - 1] >> 63) != 0; }
  bool zero() const { return *this == WideValue(); }
  WideValue operator-() const;  ///< modulo 2^256
  /// Is it a value of this type?
  bool fits(u32 bits, bool is_signed) const;
  bool operator==(const WideValue&) const = default;

 private:
  std::array<u64, kWords> words_{};
};
/// Words that a value of so many bits takes.
constexpr u32 words_of(u32 bits) { return (bits + 63) / 64; }

/// `bits` even, 2..256; values as two's complement when signed. ParameterError for values out of
/// range.
Integers encrypt_unsigned(Client& client, std::span<const u64> values, u32 bits);
Integers encrypt_signed(Client& client, std::span<const i64> values, u32 bits);
/// words_of(bits) words a value, least significant first, sign extended where signed.
Integers encrypt_words(Client& client, std::span<const u64> words, u32 bits, bool is_signed);
/// StateError for more than 64 bits, which decrypt_words gives.
std::vector<u64> decrypt_unsigned(const Client& client, const Integers& a);
std::vector<i64> decrypt_signed(const Client& client, const Integers& a);
/// words_of(bits) words a value, as encrypt_words takes them.
std::vector<u64> decrypt_words(const Client& client, const Integers& a);

/// Of integers or messages: by value, with their signs.
enum class Comparison : u8 { equal, not_equal, less, less_equal, greater, greater_equal };

/// Encrypted integers, or one public value for all of them: two's complement of 64 bits, extended
/// by its sign beside signed integers and by zeros beside others, or the whole value.
class IntegerOperand {
 public:
  /// Encrypted integers, which must outlive the call, or a public value.
  IntegerOperand(const Integers& integers) : integers_(&integers) {}  // NOLINT: either is one
  IntegerOperand(u64 value) : value_(value), narrow_(true) {}         // NOLINT
  IntegerOperand(const WideValue& value) : value_(value) {}           // NOLINT
  const Integers* integers() const { return integers_; }              ///< null: a value
  /// The public value beside integers that are signed or not.
  WideValue value(bool is_signed) const {
    return narrow_ && is_signed ? WideValue::of_signed(static_cast<i64>(value_.word(0))) : value_;
  }

 private:
  const Integers* integers_ = nullptr;
  WideValue value_;
  bool narrow_ = false;
};

/// Which of the circuits that compute the same is run. Lean: as few bootstraps as possible, mostly
/// one after the other. Fast: few rounds of many. Automatic: the one that a device with so many
/// processors finishes first at this number of integers. Results are the same numbers.
enum class CircuitForm : u8 { automatic, lean, fast };
const char* name_of(CircuitForm form);
CircuitForm circuit_form_from_string(std::string_view name);  ///< ParameterError for other names

class IntegerCircuit;  // integer_circuit.h
/// Arrays that a circuit takes, and that it gives: integers, or bits.
using CircuitInput = std::variant<const Integers*, const Ciphertext*>;
using CircuitOutput = std::variant<Integers, Ciphertext>;

/// Arithmetic modulo 2^bits. Operands of equal size, width and signedness (StateError otherwise),
/// at least one of them encrypted; public values are taken modulo 2^bits by add, sub and mul, and
/// are of the integers' range elsewhere (ParameterError otherwise). They make circuits smaller.
/// Every result is fully propagated: blocks below 4. Not capturable: circuits look up tables by
/// value. Bootstraps and rounds of every operation: docs/guide/integers.md.
class IntegerEvaluator {
 public:
  /// ParameterError unless the evaluator's set is padded with p = 32, r = 1 and max_norm2 >= 25.
  explicit IntegerEvaluator(Evaluator evaluator, CircuitForm form = CircuitForm::automatic);
  /// What it was made of.
  const Evaluator& evaluator() const { return evaluator_; }
  CircuitForm form() const { return form_; }

  /// Evaluator::compress of all blocks, and the reverse: one rotation a block. ParameterError for a
  /// compressed array of anything but integers.
  Compressed compress(const Integers& a, StoredForm form = StoredForm::switched) const;
  Integers decompress(const Compressed& compressed) const;

  /// Known values as arrays, under no secret key: two's complement modulo 2^bits, `bits` even,
  /// 2..256.
  Integers trivial(std::span<const u64> values, u32 bits, bool is_signed) const;
  /// As encrypt_words.
  Integers trivial_words(std::span<const u64> words, u32 bits, bool is_signed) const;
  /// Modulo 2^bits.
  Integers add(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers sub(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers neg(const Integers& a) const;
  Integers abs(const Integers& a) const;  ///< the least value of a signed type stays what it is
  Integers mul(const IntegerOperand& a, const IntegerOperand& b) const;

  /// Quotient and remainder. `floored`: rounded down, the remainder has the divisor's sign (Python,
  /// NumPy); else rounded towards 0, the remainder has the dividend's (C++). Where an encrypted
  /// divisor is 0 the quotient is -1 (all bits set) and the remainder the dividend, and the least
  /// value of a signed type by -1 is itself, remainder 0 (as RISC-V has it). ParameterError for a
  /// public divisor 0.
  std::pair<Integers, Integers> divmod(const IntegerOperand& a, const IntegerOperand& b,
                                       bool floored = true) const;
  Integers div(const IntegerOperand& a, const IntegerOperand& b, bool floored = true) const;
  Integers rem(const IntegerOperand& a, const IntegerOperand& b, bool floored = true) const;

  /// The result modulo 2^bits, and 1 where it is not what it would be without a modulus (0 or 1 as
  /// messages modulo the set's plain modulus).
  using Checked = std::pair<Integers, Ciphertext>;
  Checked add_overflow(const IntegerOperand& a, const IntegerOperand& b) const;
  Checked sub_overflow(const IntegerOperand& a, const IntegerOperand& b) const;
  Checked mul_overflow(const IntegerOperand& a, const IntegerOperand& b) const;

  /// 0 or 1 as messages modulo the set's plain modulus.
  Ciphertext compare(Comparison comparison, const IntegerOperand& a, const IntegerOperand& b) const;
  /// The lesser, or the greater, of both, element by element.
  Integers min(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers max(const IntegerOperand& a, const IntegerOperand& b) const;
  /// Both by one comparison.
  std::pair<Integers, Integers> min_max(const IntegerOperand& a, const IntegerOperand& b) const;
  /// condition (0 or 1) ? a : b
  Integers select(const Ciphertext& condition, const IntegerOperand& a,
                  const IntegerOperand& b) const;

  /// By a public number of bits, below the width: ParameterError otherwise.
  Integers shift_left(const Integers& a, u32 count) const;   ///< count < bits
  Integers shift_right(const Integers& a, u32 count) const;  ///< arithmetic for signed integers
  Integers rotate_left(const Integers& a, u32 count) const;  ///< count < bits
  Integers rotate_right(const Integers& a, u32 count) const;
  /// By encrypted counts, unsigned integers of any width (StateError for signed ones), one each.
  /// Shifts by `bits` and more leave 0, or the sign of signed integers; rotations are modulo bits.
  Integers shift_left(const Integers& a, const Integers& count) const;
  Integers shift_right(const Integers& a, const Integers& count) const;
  Integers rotate_left(const Integers& a, const Integers& count) const;
  Integers rotate_right(const Integers& a, const Integers& count) const;

  /// Bit by bit.
  Integers bit_and(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers bit_or(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers bit_xor(const IntegerOperand& a, const IntegerOperand& b) const;
  Integers bit_not(const Integers& a) const;
  /// Unsigned integers of 8 bits (of 256-bit ones 16 bits): how many bits are 0 above the highest
  /// or below the lowest that is 1 (all, of 0), and how many are 1.
  Integers leading_zeros(const Integers& a) const;
  Integers trailing_zeros(const Integers& a) const;
  Integers count_ones(const Integers& a) const;

  /// The same value modulo 2^bits in another type. Free but for the sign of signed integers that
  /// get wider: one bootstrap.
  Integers convert(const Integers& a, u32 bits, bool is_signed) const;

  /// The sum of all parts modulo 2^bits: one circuit, which adds many terms with few carries.
  Integers sum(std::span<const Integers* const> parts) const;
  /// sum_i a[i] b[i] modulo 2^bits: the digits of all products are added before any carry goes
  /// through.
  Integers dot(std::span<const Integers* const> a, std::span<const Integers* const> b) const;
  /// The sum of messages of the set, each below 16 (or Ciphertext::bound), modulo 2^bits, exact
  /// where 2^bits exceeds it: messages and counts of bits outgrow their space here. One part is
  /// converted. Look-ups a result: about k / 4 for k bits, 2 k for k messages and as many to add.
  Integers sum_messages(std::span<const Ciphertext* const> parts, u32 bits,
                        bool is_signed = false) const;

  /// Entry `index` of a public table, words_of(bits) words an entry, 0 beyond its end. `index`:
  /// unsigned integers (StateError). ParameterError for no entries, for more than `index` can say
  /// or 65,536, and for entries out of the type's range.
  Integers look_up(const Integers& index, std::span<const u64> entries, u32 bits,
                   bool is_signed) const;

  /// Integers that are uniform and that nobody knows who lacks the secret key: each block is a
  /// function of the phase of a row that the seed expands to. Equal seeds give equal integers, and
  /// who has the secret key and the seed knows them; take a new seed each time (random_seed()).
  Integers random(u64 count, u32 bits, bool is_signed, const std::array<u8, 32>& seed) const;

  /// Several operations as one circuit, on arrays of one size. ParameterError for another number of
  /// inputs than the circuit has, or for one without inputs or outputs; StateError for inputs of
  /// other types.
  std::vector<CircuitOutput> run(const IntegerCircuit& circuit,
                                 std::span<const CircuitInput> inputs) const;

 private:
  Evaluator evaluator_;
  CircuitForm form_;
};

/// 32 bytes from the operating system.
std::array<u8, 32> random_seed();

/// What an operation takes a result, on sets that allow sums of so many squared factors.
struct IntegerCost {
  u64 bootstraps = 0;       ///< rotations
  u64 key_switches = 0;     ///< as many or more: a rotation may give several results
  u32 depth = 0;            ///< rounds one after the other
  std::vector<u64> rounds;  ///< bootstraps of each
};
/// Names of what integer_cost knows.
std::vector<std::string> integer_operations();
/// Of two encrypted operands of `bits` bits, or as the name says. ParameterError for other names.
/// `form` automatic: that of `size` integers on a device of so many processors. `max_norm2`: of the
/// set (Spec::max_norm2), 25 or more. `free_outputs`: of sets with groups, where further results of
/// a rotation cost no key switch, so that all rotations of a round are one call.
IntegerCost integer_cost(std::string_view operation, u32 bits, bool is_signed, CircuitForm form,
                         u64 size = 1, u32 processors = 1, double max_norm2 = 25.0,
                         bool free_outputs = true);

}  // namespace crenel::tfhe
