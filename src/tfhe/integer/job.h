// Operands of an integer operation as inputs of a circuit, checked; and the run of the circuit.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "crenel/tfhe/integer.h"
#include "tfhe/integer/schedule.h"

namespace crenel::tfhe::radix {

/// Throw StateError for two arrays of other widths, signedness or size.
void check_pair(const Integers& a, const Integers& b);
/// The encrypted operand, after which the other is read; ParameterError where both are public.
const Integers& encrypted_of(const IntegerOperand& a, const IntegerOperand& b);
/// The same; ParameterError where the public operand is none of the type's values.
const Integers& encrypted_like(const IntegerOperand& a, const IntegerOperand& b);

/// The ciphertexts that a circuit's inputs stand for. build(circuit, form, in) -> outputs, with
/// in(operand) its blocks.
class Job {
 public:
  Job(const IntegerEvaluator& integers, u64 size) : integers_(integers), size_(size) {}

  /// Inputs of a circuit, or known blocks.
  struct Operand {
    Blocks known;
    std::size_t first = 0, count = 0;
  };
  using Reader = std::function<Blocks(const Operand&)>;

  Operand operand(const Integers& a);
  /// A public value is as wide and as signed as `like`.
  Operand operand(const IntegerOperand& a, const Integers& like);
  /// A bit.
  Operand condition(const Ciphertext& c);
  /// A message of the set, with the noise of one look-up: refreshed where it has more.
  Operand message(const Ciphertext& m);

  template <class Build>
  std::vector<Ciphertext> run(const Build& build) const {
    const Program program = compose(
        integers_.form(), size_, processors(), max_norm2(), [&](Circuit& circuit, Form form) {
          Blocks inputs;
          for (const i64 high : highs_) inputs.push_back(circuit.input(high));
          return build(circuit, form, [&](const Operand& operand) {
            if (operand.count == 0) return operand.known;
            const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(operand.first);
            return Blocks(first, first + static_cast<std::ptrdiff_t>(operand.count));
          });
        });
    return execute(program);
  }
  template <class Build>
  Integers integers(u32 bits, bool is_signed, const Build& build) const {
    return Integers(run(build), bits, is_signed);
  }

 private:
  u32 processors() const;
  double max_norm2() const;
  std::vector<Ciphertext> execute(const Program& program) const;
  Operand input(const Ciphertext& c, i64 high);
  void check_message(const Ciphertext& m, const char* what) const;

  const IntegerEvaluator& integers_;
  u64 size_;
  std::vector<const Ciphertext*> inputs_;
  std::vector<i64> highs_;
  std::deque<Ciphertext> fresh_;  ///< inputs of its own
};

/// Of one array: operation(circuit, blocks, form) gives integers of its type.
template <class F>
Integers unary(const IntegerEvaluator& ev, const Integers& a, const F& operation) {
  Job job(ev, a.size());
  const auto x = job.operand(a);
  return job.integers(a.bits(), a.is_signed(), [&](Circuit& circuit, Form form, const auto& in) {
    return operation(circuit, in(x), form);
  });
}

/// Of two: operation(circuit, blocks, blocks, form). For operations modulo 2^bits, where any public
/// value has a meaning.
template <class F>
Integers modular(const IntegerEvaluator& ev, const IntegerOperand& a, const IntegerOperand& b,
                 const F& operation) {
  const Integers& like = encrypted_of(a, b);
  Job job(ev, like.size());
  const auto x = job.operand(a, like), y = job.operand(b, like);
  return job.integers(like.bits(), like.is_signed(),
                      [&](Circuit& circuit, Form form, const auto& in) {
                        return operation(circuit, in(x), in(y), form);
                      });
}

/// The same where public values are integers like the encrypted ones.
template <class F>
Integers binary(const IntegerEvaluator& ev, const IntegerOperand& a, const IntegerOperand& b,
                const F& operation) {
  encrypted_like(a, b);
  return modular(ev, a, b, operation);
}

/// `count` of the blocks that a run gave, as integers.
Integers taken(std::vector<Ciphertext>& blocks, std::size_t first, u32 bits, bool is_signed);

}  // namespace crenel::tfhe::radix
