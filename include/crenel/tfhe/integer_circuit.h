// Several operations on encrypted integers as one circuit: what does not depend on each other
// shares rounds, what two operations both look up is looked up once, and nothing is copied between
// them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "crenel/tfhe/integer.h"

namespace crenel::tfhe {

/// A program of operations on integers and bits, described before it is run: inputs by their types,
/// operations in order, outputs. IntegerEvaluator::run computes it on arrays, element by element.
/// Operations have the names, the meaning and the errors of IntegerEvaluator's (gates, of
/// Evaluator's). Copies share what was described.
///
///     IntegerCircuit circuit;
///     const auto payer = circuit.integers(64), payee = circuit.integers(64),
///                amount = circuit.integers(64);
///     const auto enough = circuit.compare(Comparison::greater_equal, payer, amount);
///     const auto moved = circuit.select(enough, amount, u64(0));
///     circuit.output(circuit.sub(payer, moved));
///     circuit.output(circuit.add(payee, moved));
///
/// An addition, or a subtraction, of select(c, x, 0) does not wait for the bit c: its carries are
/// found meanwhile, and what is added goes with the bit at the end; select(c, a + x, a) is the
/// same.
class IntegerCircuit {
 public:
  /// What a value is: integers of `bits` bits, or with 0 bits a bit.
  struct Type {
    u32 bits = 0;
    bool is_signed = false;
    /// Whether it is a bit.
    bool is_bit() const { return bits == 0; }
    std::string name() const;  ///< in words
    bool operator==(const Type&) const = default;
  };
  /// An input, or a result of an operation. Of the circuit that made it (StateError elsewhere).
  class Value {
   public:
    /// Width and sign, or that it is a bit.
    Type type() const { return type_; }

   private:
    friend class IntegerCircuit;
    u64 circuit_ = 0;  // State::id, which no later circuit has, as an address may
    u32 node_ = 0, part_ = 0;
    Type type_;
  };
  /// A value, or a public one for all elements, as IntegerOperand.
  class Operand {
   public:
    /// A value of the circuit, or a public one.
    Operand(const Value& value) : value_(&value) {}       // NOLINT: either is one
    Operand(u64 known) : known_(known), narrow_(true) {}  // NOLINT
    Operand(const WideValue& known) : known_(known) {}    // NOLINT
    const Value* value() const { return value_; }         ///< null: a public one
    /// The public value beside integers that are signed or not.
    WideValue known(bool is_signed) const {
      return narrow_ && is_signed ? WideValue::of_signed(static_cast<i64>(known_.word(0))) : known_;
    }

   private:
    const Value* value_ = nullptr;
    WideValue known_;
    bool narrow_ = false;
  };

  /// Without inputs, operations and outputs.
  IntegerCircuit();

  Value integers(u32 bits, bool is_signed = false);  ///< the next input
  Value bit();                                       ///< the next input
  void output(const Value& value);                   ///< the next output

  /// As IntegerEvaluator's operations of the same names.
  Value add(const Operand& a, const Operand& b);
  Value sub(const Operand& a, const Operand& b);
  Value neg(const Value& a);
  Value abs(const Value& a);
  Value mul(const Operand& a, const Operand& b);
  std::pair<Value, Value> divmod(const Operand& a, const Operand& b, bool floored = true);
  Value div(const Operand& a, const Operand& b, bool floored = true);
  Value rem(const Operand& a, const Operand& b, bool floored = true);
  std::pair<Value, Value> add_overflow(const Operand& a, const Operand& b);
  std::pair<Value, Value> sub_overflow(const Operand& a, const Operand& b);
  std::pair<Value, Value> mul_overflow(const Operand& a, const Operand& b);

  /// As IntegerEvaluator's; a comparison gives a bit.
  Value compare(Comparison comparison, const Operand& a, const Operand& b);
  Value min(const Operand& a, const Operand& b);
  Value max(const Operand& a, const Operand& b);
  std::pair<Value, Value> min_max(const Operand& a, const Operand& b);
  /// Of integers, or of bits.
  Value select(const Value& condition, const Operand& a, const Operand& b);

  /// As IntegerEvaluator's operations of the same names.
  Value shift_left(const Value& a, u32 count);
  Value shift_right(const Value& a, u32 count);
  Value rotate_left(const Value& a, u32 count);
  Value rotate_right(const Value& a, u32 count);
  Value shift_left(const Value& a, const Value& count);
  Value shift_right(const Value& a, const Value& count);
  Value rotate_left(const Value& a, const Value& count);
  Value rotate_right(const Value& a, const Value& count);
  Value bit_and(const Operand& a, const Operand& b);
  Value bit_or(const Operand& a, const Operand& b);
  Value bit_xor(const Operand& a, const Operand& b);
  Value bit_not(const Value& a);
  Value leading_zeros(const Value& a);
  Value trailing_zeros(const Value& a);
  Value count_ones(const Value& a);
  /// Of integers, or of a bit: 0 or 1.
  Value convert(const Value& a, u32 bits, bool is_signed);
  /// As IntegerEvaluator's.
  Value look_up(const Value& index, std::span<const u64> entries, u32 bits, bool is_signed);

  /// Of bits: and, or, nand, nor, xor, xnor of two, majority of three.
  Value gate(Gate gate, std::span<const Value> bits);
  /// The opposite of a bit; no bootstrap.
  Value not_(const Value& bit);

  /// Types of what it takes and gives, in the order in which they were described.
  std::vector<Type> inputs() const;
  std::vector<Type> outputs() const;
  /// As integer_cost. ParameterError for a circuit without outputs.
  IntegerCost cost(CircuitForm form, u64 size = 1, u32 processors = 1, double max_norm2 = 25.0,
                   bool free_outputs = true) const;

  struct State;
  const State& state() const { return *state_; }

 private:
  class Recorder;
  std::shared_ptr<State> state_;
};

}  // namespace crenel::tfhe
