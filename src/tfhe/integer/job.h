// Operands of an integer operation as inputs of a circuit, checked; and the run of the circuit.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "crenel/tfhe/integer.h"
#include "tfhe/content_key.h"
#include "tfhe/integer/schedule.h"

namespace crenel::tfhe::radix {

/// Throw StateError for two arrays of other widths, signedness or size.
void check_pair(const Integers& a, const Integers& b);
/// The encrypted operand, after which the other is read; ParameterError where both are public.
const Integers& encrypted_of(const IntegerOperand& a, const IntegerOperand& b);
/// The same; ParameterError where the public operand is none of the type's values.
const Integers& encrypted_like(const IntegerOperand& a, const IntegerOperand& b);

/// What a run gave, and the sums of nodes that it is.
struct Results {
  std::vector<Ciphertext> blocks;
  Blocks sums;

  /// bits / 2 of the blocks, taken, with what is known of them: equal sums are copies.
  Integers integers(std::size_t first, u32 bits, bool is_signed);
};

/// The ciphertexts that a circuit's inputs stand for. build(circuit, form, in) -> outputs, with
/// in(operand) its blocks.
///
/// `recipe` names what build does: all that it depends on, but the operands (which blocks are known
/// and what they are, widths, signs), the form, and the type of the result. It is composed once
/// for equal recipes and operands (circuit_cache.h).
class Job {
 public:
  Job(const IntegerEvaluator& integers, ContentKey recipe, u64 size)
      : integers_(integers), size_(size), recipe_(std::move(recipe)) {}

  /// Of each block the number of the circuit's input that it is, or what is known of it. Copies are
  /// one input, and known messages none: equal arguments of equal tables have equal errors, and the
  /// circuit sees then that they are.
  struct Operand {
    std::vector<std::variant<std::size_t, Sum>> blocks;
  };

  Operand operand(const Integers& a);
  /// A public value is as wide and as signed as `like`.
  Operand operand(const IntegerOperand& a, const Integers& like);
  /// A bit.
  Operand condition(const Ciphertext& c);
  /// A message of the set, with the noise of one look-up: refreshed where it has more.
  Operand message(const Ciphertext& m);

  template <class Build>
  Results run(const Build& build) const {
    return run_composed([&](Circuit& circuit, Form form) {
      Blocks inputs;
      for (const i64 high : highs_) inputs.push_back(circuit.input(high));
      return build(circuit, form, [&](const Operand& operand) {
        Blocks blocks;
        for (const auto& block : operand.blocks) {
          const auto* const input = std::get_if<std::size_t>(&block);
          blocks.push_back(input != nullptr ? inputs[*input] : std::get<Sum>(block));
        }
        return blocks;
      });
    });
  }
  template <class Build>
  Integers integers(u32 bits, bool is_signed, const Build& build) {
    recipe_.add(bits).add(u64(is_signed));
    return run(build).integers(0, bits, is_signed);
  }

 private:
  using Compose = std::function<Blocks(Circuit&, Form)>;
  Results run_composed(const Compose& compose) const;
  std::size_t input(const Ciphertext& c, i64 high);
  void check_message(const Ciphertext& m, const char* what) const;

  const IntegerEvaluator& integers_;
  u64 size_;
  ContentKey recipe_;
  std::vector<const Ciphertext*> inputs_;
  std::vector<i64> highs_;
  std::deque<Ciphertext> fresh_;  ///< inputs of its own
};

/// Of one array: operation(circuit, blocks, form) gives integers of its type.
template <class F>
Integers unary(const IntegerEvaluator& ev, ContentKey recipe, const Integers& a,
               const F& operation) {
  Job job(ev, std::move(recipe), a.size());
  const auto x = job.operand(a);
  return job.integers(a.bits(), a.is_signed(), [&](Circuit& circuit, Form form, const auto& in) {
    return operation(circuit, in(x), form);
  });
}

/// Of two: operation(circuit, blocks, blocks, form). For operations modulo 2^bits, where any public
/// value has a meaning.
template <class F>
Integers modular(const IntegerEvaluator& ev, ContentKey recipe, const IntegerOperand& a,
                 const IntegerOperand& b, const F& operation) {
  const Integers& like = encrypted_of(a, b);
  Job job(ev, std::move(recipe), like.size());
  const auto x = job.operand(a, like), y = job.operand(b, like);
  return job.integers(like.bits(), like.is_signed(),
                      [&](Circuit& circuit, Form form, const auto& in) {
                        return operation(circuit, in(x), in(y), form);
                      });
}

/// The same where public values are integers like the encrypted ones.
template <class F>
Integers binary(const IntegerEvaluator& ev, ContentKey recipe, const IntegerOperand& a,
                const IntegerOperand& b, const F& operation) {
  encrypted_like(a, b);
  return modular(ev, std::move(recipe), a, b, operation);
}

}  // namespace crenel::tfhe::radix
