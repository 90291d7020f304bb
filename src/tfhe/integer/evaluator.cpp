// IntegerEvaluator: checks its operands, builds a circuit and runs it.
#include "crenel/core/error.h"
#include "crenel/tfhe/integer.h"
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
                     {{"bits", cat(b.bits())}, {"expected", cat(a.bits())}});
  if (a.is_signed() != b.is_signed())
    throw StateError(cat(signed_name(a), " and ", signed_name(b), " integers, expected equal"),
                     {{"found", signed_name(b)}, {"expected", signed_name(a)}});
  if (a.size() != b.size())
    throw StateError(cat("arrays of ", a.size(), " and of ", b.size(), " integers, expected equal"),
                     {{"size", cat(b.size())}, {"expected", cat(a.size())}});
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
                         {{"count", cat(count)}, {"bits", cat(bits)}});
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

  Sum condition(const Ciphertext& c) {
    check_home(evaluator_, c.params_id());
    if (c.size() != size_)
      throw StateError(
          cat("condition of ", c.size(), " messages for ", size_, " integers, expected equal"),
          {{"size", cat(c.size())}, {"expected", cat(size_)}});
    if (c.plain_modulus() != 32)
      throw StateError(cat("condition has messages modulo ", c.plain_modulus(), ", expected 32"),
                       {{"plain_modulus", cat(c.plain_modulus())}});
    inputs_.push_back(&c);
    return circuit.input(1);
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
};

template <class F>
Integers unary(const Evaluator& evaluator, const Integers& a, F operation) {
  Job job(evaluator, a.size());
  const Blocks x = job.blocks_of(a);
  return job.integers(operation(job.circuit, x), a);
}

template <class F>
Integers binary(const Evaluator& evaluator, const Integers& a, const Integers& b, F operation) {
  check_pair(a, b);
  Job job(evaluator, a.size());
  const Blocks x = job.blocks_of(a), y = job.blocks_of(b);
  return job.integers(operation(job.circuit, x, y), a);
}

Integers extreme(const Evaluator& evaluator, const Integers& a, const Integers& b,
                 Comparison takes_first) {
  return binary(evaluator, a, b, [&](Circuit& circuit, const Blocks& x, const Blocks& y) {
    const Sum first = radix::compare(circuit, takes_first, x, y, a.is_signed(), radix::kCondition);
    return radix::select(circuit, first, x, y);
  });
}

}  // namespace

IntegerEvaluator::IntegerEvaluator(Evaluator evaluator) : evaluator_(std::move(evaluator)) {
  radix::check_set(evaluator_.context().params());
}

Integers IntegerEvaluator::trivial(std::span<const u64> values, u32 bits, bool is_signed) const {
  radix::check_bits(bits);
  for (const u64 value : values) radix::check_range(value, bits, is_signed, "value");
  std::vector<Ciphertext> blocks;
  std::vector<u64> messages(values.size());
  for (u32 bit = 0; bit < bits; bit += 2) {
    for (std::size_t i = 0; i < values.size(); ++i) messages[i] = values[i] >> bit & 3;
    blocks.push_back(evaluator_.trivial(messages));
  }
  return Integers(std::move(blocks), bits, is_signed);
}

Integers IntegerEvaluator::add(const Integers& a, const Integers& b) const {
  return binary(evaluator_, a, b, radix::add);
}

Integers IntegerEvaluator::sub(const Integers& a, const Integers& b) const {
  return binary(evaluator_, a, b, radix::subtract);
}

Integers IntegerEvaluator::mul(const Integers& a, const Integers& b) const {
  return binary(evaluator_, a, b, [](Circuit& circuit, const Blocks& x, const Blocks& y) {
    return radix::multiply(circuit, x, y);
  });
}

Integers IntegerEvaluator::neg(const Integers& a) const {
  return unary(evaluator_, a, [&](Circuit& circuit, const Blocks& x) {
    return radix::subtract(circuit, radix::constant_blocks(0, a.bits()), x);
  });
}

Integers IntegerEvaluator::add(const Integers& a, u64 scalar) const {
  return unary(evaluator_, a, [&](Circuit& circuit, const Blocks& x) {
    return radix::add(circuit, x, radix::constant_blocks(scalar, a.bits()));
  });
}

Integers IntegerEvaluator::sub(const Integers& a, u64 scalar) const { return add(a, 0 - scalar); }

Integers IntegerEvaluator::mul(const Integers& a, u64 scalar) const {
  return unary(evaluator_, a, [&](Circuit& circuit, const Blocks& x) {
    return radix::multiply(circuit, x, scalar, a.bits());
  });
}

Ciphertext IntegerEvaluator::compare(Comparison comparison, const Integers& a,
                                     const Integers& b) const {
  check_pair(a, b);
  Job job(evaluator_, a.size());
  const Blocks x = job.blocks_of(a), y = job.blocks_of(b);
  const Sum holds = radix::compare(job.circuit, comparison, x, y, a.is_signed());
  return std::move(job.run({holds})[0]);
}

Ciphertext IntegerEvaluator::compare(Comparison comparison, const Integers& a, u64 scalar) const {
  radix::check_range(scalar, a.bits(), a.is_signed(), "scalar");
  Job job(evaluator_, a.size());
  const Blocks x = job.blocks_of(a), y = radix::constant_blocks(scalar, a.bits());
  const Sum holds = radix::compare(job.circuit, comparison, x, y, a.is_signed());
  return std::move(job.run({holds})[0]);
}

Integers IntegerEvaluator::min(const Integers& a, const Integers& b) const {
  return extreme(evaluator_, a, b, Comparison::less);
}

Integers IntegerEvaluator::max(const Integers& a, const Integers& b) const {
  return extreme(evaluator_, a, b, Comparison::greater);
}

Integers IntegerEvaluator::select(const Ciphertext& condition, const Integers& a,
                                  const Integers& b) const {
  check_pair(a, b);
  Job job(evaluator_, a.size());
  const Blocks x = job.blocks_of(a), y = job.blocks_of(b);
  // its own look-up, as 8 times a bootstrapped message would be too noisy
  const Sum c =
      job.circuit.look_up(job.condition(condition), [](u64 v) { return radix::kCondition * v; });
  return job.integers(radix::select(job.circuit, c, x, y), a);
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

Integers IntegerEvaluator::bit_and(const Integers& a, const Integers& b) const {
  return binary(evaluator_, a, b, [](Circuit& circuit, const Blocks& x, const Blocks& y) {
    return radix::blockwise(circuit, x, y, [](u64 u, u64 v) { return u & v; });
  });
}

Integers IntegerEvaluator::bit_or(const Integers& a, const Integers& b) const {
  return binary(evaluator_, a, b, [](Circuit& circuit, const Blocks& x, const Blocks& y) {
    return radix::blockwise(circuit, x, y, [](u64 u, u64 v) { return u | v; });
  });
}

Integers IntegerEvaluator::bit_xor(const Integers& a, const Integers& b) const {
  return binary(evaluator_, a, b, [](Circuit& circuit, const Blocks& x, const Blocks& y) {
    return radix::blockwise(circuit, x, y, [](u64 u, u64 v) { return u ^ v; });
  });
}

Integers IntegerEvaluator::bit_not(const Integers& a) const {
  return unary(evaluator_, a, [](Circuit&, const Blocks& x) { return radix::bit_not(x); });
}

}  // namespace crenel::tfhe
