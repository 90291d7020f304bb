// IntegerEvaluator: checks its operands, builds a circuit and runs it.
#include <algorithm>
#include <deque>

#include "crenel/core/error.h"
#include "crenel/tfhe/integer.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/integer/carries.h"
#include "tfhe/integer/checks.h"
#include "tfhe/integer/execute.h"
#include "tfhe/integer/operations.h"

namespace crenel::tfhe {
namespace {

using radix::Blocks;
using radix::Circuit;
using radix::Sum;

const char* signed_name(const Integers& a) { return a.is_signed() ? "signed" : "unsigned"; }

void check_pair(const Integers& a, const Integers& b) {
  if (a.bits() != b.bits())
    throw StateError(cat("integers of ", a.bits(), " and of ", b.bits(), " bits, expected equal"),
                     {{"bits", b.bits()}, {"expected", a.bits()}});
  if (a.is_signed() != b.is_signed())
    throw StateError(cat(signed_name(a), " and ", signed_name(b), " integers, expected equal"),
                     {{"found", signed_name(b)}, {"expected", signed_name(a)}});
  if (a.size() != b.size())
    throw StateError(cat("arrays of ", a.size(), " and of ", b.size(), " integers, expected equal"),
                     {{"size", b.size()}, {"expected", a.size()}});
}

/// The encrypted operand, after which the other is read.
const Integers& encrypted_of(const IntegerOperand& a, const IntegerOperand& b) {
  if (a.integers() != nullptr && b.integers() != nullptr) check_pair(*a.integers(), *b.integers());
  if (a.integers() == nullptr && b.integers() == nullptr)
    throw ParameterError("two public values, expected encrypted integers at least once",
                         {{"operands", "public"}});
  return a.integers() != nullptr ? *a.integers() : *b.integers();
}

void check_home(const Evaluator& evaluator, const std::string& params_id) {
  const std::string& expected = evaluator.context().params().id();
  if (params_id != expected)
    throw StateError(cat("integers of parameters ", params_id, ", expected ", expected),
                     {{"found", params_id}, {"expected", expected}});
}

void check_count(u32 count, u32 bits) {
  if (count >= bits)
    throw ParameterError(cat("shift by ", count, ", expected 0..", bits - 1),
                         {{"count", count}, {"bits", bits}});
}

/// A circuit and the ciphertexts that its inputs stand for.
class Job {
 public:
  Job(const Evaluator& evaluator, u64 size) : evaluator_(evaluator), size_(size) {}

  Circuit circuit;

  Blocks blocks_of(const Integers& a) {
    check_home(evaluator_, a.blocks()[0].params_id());
    for (const Ciphertext& block : a.blocks()) inputs_.push_back(&block);
    return circuit.inputs(static_cast<u32>(a.blocks().size()));
  }
  /// A public value is as wide and as signed as `like`.
  Blocks blocks_of(const IntegerOperand& a, const Integers& like) {
    return a.integers() != nullptr ? blocks_of(*a.integers())
                                   : radix::constant_blocks(a.value(), like.bits());
  }

  Sum condition(const Ciphertext& c) {
    check_home(evaluator_, c.params_id());
    if (c.size() != size_)
      throw StateError(
          cat("condition of ", c.size(), " messages for ", size_, " integers, expected equal"),
          {{"size", c.size()}, {"expected", size_}});
    if (c.plain_modulus() != 32)
      throw StateError(cat("condition has messages modulo ", c.plain_modulus(), ", expected 32"),
                       {{"plain_modulus", c.plain_modulus()}});
    evaluator_.state().check_bits(c, "select");
    inputs_.push_back(&c);
    return circuit.input(1);
  }

  /// Of the set, with the noise of one look-up: refreshed where it has more.
  Sum message(const Ciphertext& m) {
    check_home(evaluator_, m.params_id());
    if (m.size() != size_)
      throw StateError(cat("arrays of ", m.size(), " and of ", size_, " messages, expected equal"),
                       {{"size", m.size()}, {"expected", size_}});
    if (m.plain_modulus() != 32)
      throw StateError(cat("messages modulo ", m.plain_modulus(), ", expected 32"),
                       {{"plain_modulus", m.plain_modulus()}});
    const auto& state = evaluator_.state();
    const double least = state.bootstrap_noise(1, state.log_q()).variance() * (1 + 1e-9);
    inputs_.push_back(m.noise_variance() > least ? &fresh_.emplace_back(evaluator_.refresh(m))
                                                 : &m);
    return circuit.input(m.bound() == 0 ? radix::kMessages - 1
                                        : std::min<i64>(m.bound(), radix::kMessages) - 1);
  }

  std::vector<Ciphertext> run(const Blocks& outputs) const {
    return radix::execute(evaluator_, circuit, inputs_, outputs, size_);
  }
  Integers integers(const Blocks& outputs, const Integers& like) const {
    return Integers(run(outputs), like.bits(), like.is_signed());
  }

 private:
  const Evaluator& evaluator_;
  u64 size_;
  std::vector<const Ciphertext*> inputs_;
  std::deque<Ciphertext> fresh_;  ///< inputs of its own
};

template <class F>
Integers unary(const Evaluator& evaluator, const Integers& a, F operation) {
  Job job(evaluator, a.size());
  const Blocks x = job.blocks_of(a);
  return job.integers(operation(job.circuit, x), a);
}

/// For operations modulo 2^bits, where any public value has a meaning.
template <class F>
Integers modular(const Evaluator& evaluator, const IntegerOperand& a, const IntegerOperand& b,
                 F operation) {
  const Integers& like = encrypted_of(a, b);
  Job job(evaluator, like.size());
  const Blocks x = job.blocks_of(a, like), y = job.blocks_of(b, like);
  return job.integers(operation(job.circuit, x, y), like);
}

/// Public values are integers like the encrypted ones.
const Integers& encrypted_like(const IntegerOperand& a, const IntegerOperand& b) {
  const Integers& like = encrypted_of(a, b);
  for (const IntegerOperand* x : {&a, &b})
    if (x->integers() == nullptr)
      radix::check_range(x->value(), like.bits(), like.is_signed(), "scalar");
  return like;
}

template <class F>
Integers binary(const Evaluator& evaluator, const IntegerOperand& a, const IntegerOperand& b,
                F operation) {
  encrypted_like(a, b);
  return modular(evaluator, a, b, operation);
}

Integers extreme(const Evaluator& evaluator, const IntegerOperand& a, const IntegerOperand& b,
                 Comparison takes_first) {
  const bool is_signed = encrypted_of(a, b).is_signed();
  return binary(evaluator, a, b, [&](Circuit& circuit, const Blocks& x, const Blocks& y) {
    const Sum first = radix::compare(circuit, takes_first, x, y, is_signed, radix::kCondition);
    return radix::select(circuit, first, x, y);
  });
}

Integers blockwise(const Evaluator& evaluator, const IntegerOperand& a, const IntegerOperand& b,
                   u64 (*f)(u64, u64)) {
  return binary(evaluator, a, b, [&](Circuit& circuit, const Blocks& x, const Blocks& y) {
    return radix::blockwise(circuit, x, y, f);
  });
}

}  // namespace

IntegerEvaluator::IntegerEvaluator(Evaluator evaluator) : evaluator_(std::move(evaluator)) {
  radix::check_set(evaluator_.context().params());
}

Integers IntegerEvaluator::trivial(std::span<const u64> values, u32 bits, bool is_signed) const {
  radix::check_bits(bits);
  for (std::size_t i = 0; i < values.size(); ++i)
    radix::check_range(values[i], bits, is_signed, cat("value ", i));
  std::vector<Ciphertext> blocks;
  std::vector<u64> messages(values.size());
  for (u32 bit = 0; bit < bits; bit += 2) {
    for (std::size_t i = 0; i < values.size(); ++i) messages[i] = values[i] >> bit & 3;
    blocks.push_back(evaluator_.trivial(messages));
  }
  return Integers(std::move(blocks), bits, is_signed);
}

Integers IntegerEvaluator::add(const IntegerOperand& a, const IntegerOperand& b) const {
  return modular(evaluator_, a, b, radix::add);
}

Integers IntegerEvaluator::sub(const IntegerOperand& a, const IntegerOperand& b) const {
  if (b.integers() == nullptr) return add(a, 0 - b.value());
  return modular(evaluator_, a, b, radix::subtract);
}

Integers IntegerEvaluator::mul(const IntegerOperand& a, const IntegerOperand& b) const {
  if (a.integers() == nullptr) return mul(encrypted_of(a, b), a);
  if (b.integers() == nullptr)
    return unary(evaluator_, *a.integers(), [&](Circuit& circuit, const Blocks& x) {
      return radix::multiply(circuit, x, b.value(), a.integers()->bits());
    });
  return modular(evaluator_, a, b, [](Circuit& circuit, const Blocks& x, const Blocks& y) {
    return radix::multiply(circuit, x, y);
  });
}

Integers IntegerEvaluator::neg(const Integers& a) const { return sub(0, a); }

Ciphertext IntegerEvaluator::compare(Comparison comparison, const IntegerOperand& a,
                                     const IntegerOperand& b) const {
  const Integers& like = encrypted_like(a, b);
  Job job(evaluator_, like.size());
  const Blocks x = job.blocks_of(a, like), y = job.blocks_of(b, like);
  const Sum holds = radix::compare(job.circuit, comparison, x, y, like.is_signed());
  return std::move(job.run({holds})[0]);
}

Integers IntegerEvaluator::min(const IntegerOperand& a, const IntegerOperand& b) const {
  return extreme(evaluator_, a, b, Comparison::less);
}

Integers IntegerEvaluator::max(const IntegerOperand& a, const IntegerOperand& b) const {
  return extreme(evaluator_, a, b, Comparison::greater);
}

Integers IntegerEvaluator::select(const Ciphertext& condition, const IntegerOperand& a,
                                  const IntegerOperand& b) const {
  const Integers& like = encrypted_like(a, b);
  Job job(evaluator_, like.size());
  const Blocks x = job.blocks_of(a, like), y = job.blocks_of(b, like);
  // its own look-up, as 8 times a bootstrapped message would be too noisy
  const Sum c =
      job.circuit.look_up(job.condition(condition), [](u64 v) { return radix::kCondition * v; });
  return job.integers(radix::select(job.circuit, c, x, y), like);
}

Integers IntegerEvaluator::shift_left(const Integers& a, u32 count) const {
  check_count(count, a.bits());
  return unary(evaluator_, a, [&](Circuit& circuit, const Blocks& x) {
    return radix::shift_left(circuit, x, count);
  });
}

Integers IntegerEvaluator::shift_right(const Integers& a, u32 count) const {
  check_count(count, a.bits());
  return unary(evaluator_, a, [&](Circuit& circuit, const Blocks& x) {
    return radix::shift_right(circuit, x, count, a.is_signed());
  });
}

Integers IntegerEvaluator::bit_and(const IntegerOperand& a, const IntegerOperand& b) const {
  return blockwise(evaluator_, a, b, [](u64 u, u64 v) { return u & v; });
}

Integers IntegerEvaluator::bit_or(const IntegerOperand& a, const IntegerOperand& b) const {
  return blockwise(evaluator_, a, b, [](u64 u, u64 v) { return u | v; });
}

Integers IntegerEvaluator::bit_xor(const IntegerOperand& a, const IntegerOperand& b) const {
  return blockwise(evaluator_, a, b, [](u64 u, u64 v) { return u ^ v; });
}

Integers IntegerEvaluator::bit_not(const Integers& a) const {
  return unary(evaluator_, a, [](Circuit&, const Blocks& x) { return radix::bit_not(x); });
}

Integers IntegerEvaluator::sum(std::span<const Integers* const> parts) const {
  if (parts.empty())
    throw ParameterError("sum of no integers, expected at least one", {{"parts", "0"}});
  const Integers& like = *parts[0];
  Job job(evaluator_, like.size());
  std::vector<Blocks> columns(like.blocks().size());
  for (const Integers* part : parts) {
    check_pair(like, *part);
    const Blocks blocks = job.blocks_of(*part);
    for (std::size_t j = 0; j < blocks.size(); ++j) columns[j].push_back(blocks[j]);
  }
  return job.integers(radix::add_columns(job.circuit, std::move(columns)), like);
}

Integers IntegerEvaluator::sum_messages(std::span<const Ciphertext* const> parts, u32 bits,
                                        bool is_signed) const {
  if (parts.empty())
    throw ParameterError("sum of no messages, expected at least one", {{"parts", "0"}});
  radix::check_bits(bits);
  Job job(evaluator_, parts[0]->size());
  std::vector<Blocks> columns(bits / 2);
  for (const Ciphertext* part : parts) {
    const Sum m = job.message(*part);
    if (m.high <= 3) {
      columns[0].push_back(m);
      continue;
    }
    columns[0].push_back(job.circuit.look_up(m, [](u64 v) { return v & 3; }));
    if (columns.size() > 1)
      columns[1].push_back(job.circuit.look_up(m, [](u64 v) { return v >> 2; }));
  }
  return Integers(job.run(radix::add_columns(job.circuit, std::move(columns))), bits, is_signed);
}

}  // namespace crenel::tfhe
