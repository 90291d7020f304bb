// Arithmetic, comparisons and selection of small messages: what tables alone make expensive.
#pragma once

#include <span>

#include "crenel/tfhe/integer.h"

namespace crenel::tfhe {

/// Encrypted messages, or one public value for all of them.
class MessageOperand {
 public:
  /// Encrypted messages, which must outlive the call, or a public value.
  MessageOperand(const Ciphertext& messages) : messages_(&messages) {}  // NOLINT: either is one
  MessageOperand(i64 value) : value_(value) {}                          // NOLINT
  const Ciphertext* messages() const { return messages_; }              ///< null: a value
  /// The public value.
  i64 value() const { return value_; }

 private:
  const Ciphertext* messages_ = nullptr;
  i64 value_ = 0;
};

/// The space of messages is L = message_bound(params, p): p / 2 on padded sets (16 with lut4-128),
/// else p. Arithmetic is modulo L, exactly: nothing saturates. It is linear and without a
/// bootstrap wherever the bounds that ciphertexts carry (Ciphertext::bound) keep the result below
/// L, and on sets without padding always; otherwise one bootstrap takes off what exceeds L.
///
/// Noise: an operation whose result could not be looked up with the failure probability that the
/// set promises (or that the evaluator allows, whichever is less) refreshes its inputs first, one
/// bootstrap each, on padded sets; where that does not help ParameterError, as of any bootstrap.
/// Every result is fit for a table; without padding, for decryption.
///
/// At least one operand is encrypted (ParameterError), encrypted ones have equal sizes and plain
/// moduli (StateError), on padded sets the set's own. Bits of a padded set are messages 0 and 1.
class MessageEvaluator {
 public:
  /// Arithmetic with the keys and the bound on failures of this evaluator.
  explicit MessageEvaluator(Evaluator evaluator) : evaluator_(std::move(evaluator)) {}
  const Evaluator& evaluator() const { return evaluator_; }

  /// Modulo L: linear where the bounds allow it, else one bootstrap.
  Ciphertext add(const MessageOperand& a, const MessageOperand& b) const;
  Ciphertext sub(const MessageOperand& a, const MessageOperand& b) const;
  /// factor a modulo L: linear where it fits, else a table, one bootstrap.
  Ciphertext mul(const Ciphertext& a, i64 factor) const;
  /// The sum of all parts modulo L: linear as far as the noise allows, then one bootstrap for every
  /// partial sum and another to refresh it. ParameterError for no parts.
  Ciphertext sum(std::span<const Ciphertext* const> parts) const;
  /// Bits, 1 where the comparison holds. Padded sets: one bootstrap, of the difference. Others:
  /// equality by a table (up to two bootstraps), order only with a public value, UnsupportedError
  /// otherwise. ParameterError for a public value that is no message.
  Ciphertext compare(Comparison comparison, const MessageOperand& a, const MessageOperand& b) const;
  /// Which message each one is: L bits, element L i + v is 1 where message i is v. One rotation a
  /// message, whatever L, and L key switches. Errors of the bits of one message may depend on each
  /// other, and are judged so where they are added up. Padded sets whose rows hold one message,
  /// UnsupportedError otherwise.
  Ciphertext one_hot(const Ciphertext& a) const;
  /// condition (bits) ? a : b. Padded sets, five bootstraps in two rounds; UnsupportedError
  /// otherwise. Public values are messages (ParameterError).
  Ciphertext select(const Ciphertext& condition, const MessageOperand& a,
                    const MessageOperand& b) const;

 private:
  Evaluator evaluator_;
};

}  // namespace crenel::tfhe
