// IntegerEvaluator: checks its operands and runs circuits. Divisions, shifts by encrypted counts
// and tables are in evaluator_more.cpp.
#include "crenel/core/error.h"
#include "crenel/tfhe/integer.h"
#include "tfhe/integer/bits.h"
#include "tfhe/integer/checks.h"
#include "tfhe/integer/job.h"

namespace crenel::tfhe {
namespace {

using radix::binary;
using radix::Blocks;
using radix::Circuit;
using radix::Form;
using radix::Job;
using radix::modular;
using radix::Sum;
using radix::unary;

Integers extreme(const IntegerEvaluator& ev, const IntegerOperand& a, const IntegerOperand& b,
                 Comparison takes_first) {
  const bool is_signed = radix::encrypted_of(a, b).is_signed();
  const ContentKey recipe = ContentKey("extreme").add(u64(takes_first));
  return binary(
      ev, recipe, a, b, [&](Circuit& circuit, const Blocks& x, const Blocks& y, Form form) {
        const Sum first =
            radix::compare(circuit, takes_first, x, y, is_signed, form, radix::kCondition);
        return radix::select(circuit, first, x, y);
      });
}

Integers blockwise(const IntegerEvaluator& ev, const IntegerOperand& a, const IntegerOperand& b,
                   const char* name, u64 (*f)(u64, u64)) {
  return binary(ev, ContentKey(name), a, b,
                [&](Circuit& circuit, const Blocks& x, const Blocks& y, Form) {
                  return radix::blockwise(circuit, x, y, f);
                });
}

}  // namespace

const char* name_of(CircuitForm form) {
  return form == CircuitForm::lean ? "lean" : form == CircuitForm::fast ? "fast" : "automatic";
}

CircuitForm circuit_form_from_string(std::string_view name) {
  for (const CircuitForm form : {CircuitForm::automatic, CircuitForm::lean, CircuitForm::fast})
    if (name == name_of(form)) return form;
  throw ParameterError(
      cat("unknown form of circuits '", name, "', expected automatic, lean or fast"),
      {{"form", std::string(name)}, {"expected", "automatic, lean, fast"}});
}

IntegerEvaluator::IntegerEvaluator(Evaluator evaluator, CircuitForm form)
    : evaluator_(std::move(evaluator)), form_(form) {
  radix::check_set(evaluator_.context().params());
}

Integers IntegerEvaluator::trivial(std::span<const u64> values, u32 bits, bool is_signed) const {
  radix::check_bits(bits);
  std::vector<u64> words;
  for (const u64 value : values)
    for (u32 w = 0; w < words_of(bits); ++w)
      words.push_back(IntegerOperand(value).value(is_signed).word(w));
  return trivial_words(words, bits, is_signed);
}

Integers IntegerEvaluator::trivial_words(std::span<const u64> words, u32 bits,
                                         bool is_signed) const {
  const std::vector<WideValue> values = radix::values_of(words, bits, is_signed);
  std::vector<Ciphertext> blocks;
  std::vector<u64> messages(values.size());
  for (u32 j = 0; j < bits / 2; ++j) {
    for (std::size_t i = 0; i < values.size(); ++i) messages[i] = values[i].block(j);
    blocks.push_back(evaluator_.trivial(messages));
  }
  return Integers(std::move(blocks), bits, is_signed);
}

Integers IntegerEvaluator::add(const IntegerOperand& a, const IntegerOperand& b) const {
  return modular(*this, ContentKey("add"), a, b, radix::add);
}

Integers IntegerEvaluator::sub(const IntegerOperand& a, const IntegerOperand& b) const {
  if (b.integers() == nullptr) return add(a, -b.value(radix::encrypted_of(a, b).is_signed()));
  return modular(*this, ContentKey("subtract"), a, b,
                 [](Circuit& circuit, const Blocks& x, const Blocks& y, Form form) {
                   return radix::subtract(circuit, x, y, form);
                 });
}

Integers IntegerEvaluator::mul(const IntegerOperand& a, const IntegerOperand& b) const {
  return modular(*this, ContentKey("multiply"), a, b, radix::multiply);
}

Integers IntegerEvaluator::neg(const Integers& a) const { return sub(u64(0), a); }

Integers IntegerEvaluator::abs(const Integers& a) const {
  if (!a.is_signed()) return a.clone();
  return unary(*this, ContentKey("absolute"), a, radix::absolute);
}

Ciphertext IntegerEvaluator::compare(Comparison comparison, const IntegerOperand& a,
                                     const IntegerOperand& b) const {
  const Integers& like = radix::encrypted_like(a, b);
  Job job(*this, ContentKey("compare").add(u64(comparison)), like.size());
  const auto x = job.operand(a, like), y = job.operand(b, like);
  auto holds = job.run([&](Circuit& circuit, Form form, const auto& in) {
    return Blocks{radix::compare(circuit, comparison, in(x), in(y), like.is_signed(), form)};
  });
  return std::move(holds.blocks[0]);
}

Integers IntegerEvaluator::min(const IntegerOperand& a, const IntegerOperand& b) const {
  return extreme(*this, a, b, Comparison::less);
}

Integers IntegerEvaluator::max(const IntegerOperand& a, const IntegerOperand& b) const {
  return extreme(*this, a, b, Comparison::greater);
}

std::pair<Integers, Integers> IntegerEvaluator::min_max(const IntegerOperand& a,
                                                        const IntegerOperand& b) const {
  const Integers& like = radix::encrypted_like(a, b);
  Job job(*this, ContentKey("exchange"), like.size());
  const auto x = job.operand(a, like), y = job.operand(b, like);
  auto both = job.run([&](Circuit& circuit, Form form, const auto& in) {
    return radix::exchange(circuit, in(x), in(y), like.is_signed(), form);
  });
  return {both.integers(0, like.bits(), like.is_signed()),
          both.integers(like.bits() / 2, like.bits(), like.is_signed())};
}

Integers IntegerEvaluator::select(const Ciphertext& condition, const IntegerOperand& a,
                                  const IntegerOperand& b) const {
  const Integers& like = radix::encrypted_like(a, b);
  Job job(*this, ContentKey("choose"), like.size());
  const auto x = job.operand(a, like), y = job.operand(b, like), c = job.condition(condition);
  return job.integers(like.bits(), like.is_signed(), [&](Circuit& circuit, Form, const auto& in) {
    return radix::choose(circuit, in(c)[0], in(x), in(y));
  });
}

Integers IntegerEvaluator::shift_left(const Integers& a, u32 count) const {
  radix::check_count(count, a.bits());
  return unary(*this, ContentKey("shift left").add(count), a,
               [&](Circuit& circuit, const Blocks& x, Form) {
                 return radix::shift_left(circuit, x, count);
               });
}

Integers IntegerEvaluator::shift_right(const Integers& a, u32 count) const {
  radix::check_count(count, a.bits());
  return unary(*this, ContentKey("shift right").add(count), a,
               [&](Circuit& circuit, const Blocks& x, Form) {
                 return radix::shift_right(circuit, x, count, a.is_signed());
               });
}

Integers IntegerEvaluator::rotate_left(const Integers& a, u32 count) const {
  radix::check_count(count, a.bits());
  return unary(*this, ContentKey("rotate left").add(count), a,
               [&](Circuit& circuit, const Blocks& x, Form) {
                 return radix::rotate(x, count, radix::Direction::left, circuit);
               });
}

Integers IntegerEvaluator::rotate_right(const Integers& a, u32 count) const {
  radix::check_count(count, a.bits());
  return rotate_left(a, count == 0 ? 0 : a.bits() - count);
}

Integers IntegerEvaluator::bit_and(const IntegerOperand& a, const IntegerOperand& b) const {
  return blockwise(*this, a, b, "and", [](u64 u, u64 v) { return u & v; });
}

Integers IntegerEvaluator::bit_or(const IntegerOperand& a, const IntegerOperand& b) const {
  return blockwise(*this, a, b, "or", [](u64 u, u64 v) { return u | v; });
}

Integers IntegerEvaluator::bit_xor(const IntegerOperand& a, const IntegerOperand& b) const {
  return blockwise(*this, a, b, "xor", [](u64 u, u64 v) { return u ^ v; });
}

Integers IntegerEvaluator::bit_not(const Integers& a) const {
  return unary(*this, ContentKey("not"), a,
               [](Circuit&, const Blocks& x, Form) { return radix::bit_not(x); });
}

Integers IntegerEvaluator::sum(std::span<const Integers* const> parts) const {
  if (parts.empty())
    throw ParameterError("sum of no integers, expected at least one", {{"parts", "0"}});
  const Integers& like = *parts[0];
  Job job(*this, ContentKey("sum"), like.size());
  std::vector<Job::Operand> operands;
  for (const Integers* part : parts) {
    radix::check_pair(like, *part);
    operands.push_back(job.operand(*part));
  }
  return job.integers(like.bits(), like.is_signed(),
                      [&](Circuit& circuit, Form form, const auto& in) {
                        std::vector<Blocks> columns(like.blocks().size());
                        for (const auto& operand : operands) {
                          const Blocks blocks = in(operand);
                          for (std::size_t j = 0; j < blocks.size(); ++j)
                            columns[j].push_back(blocks[j]);
                        }
                        return radix::add_columns(circuit, std::move(columns), form);
                      });
}

Integers IntegerEvaluator::sum_messages(std::span<const Ciphertext* const> parts, u32 bits,
                                        bool is_signed) const {
  if (parts.empty())
    throw ParameterError("sum of no messages, expected at least one", {{"parts", "0"}});
  radix::check_bits(bits);
  Job job(*this, ContentKey("sum of messages"), parts[0]->size());
  std::vector<Job::Operand> operands;
  for (const Ciphertext* part : parts) operands.push_back(job.message(*part));
  return job.integers(bits, is_signed, [&](Circuit& circuit, Form form, const auto& in) {
    std::vector<Blocks> columns(bits / 2);
    for (const auto& operand : operands) {
      const Sum m = in(operand)[0];
      if (m.high <= 3) {
        columns[0].push_back(m);
        continue;
      }
      columns[0].push_back(circuit.look_up(m, [](u64 v) { return v & 3; }));
      if (columns.size() > 1)
        columns[1].push_back(circuit.look_up(m, [](u64 v) { return v >> 2; }));
    }
    return radix::add_columns(circuit, std::move(columns), form);
  });
}

}  // namespace crenel::tfhe
