// IntegerEvaluator: divisions, overflow, shifts by encrypted counts, counts of bits, types,
// products of arrays, tables.
#include "crenel/core/error.h"
#include "crenel/tfhe/integer.h"
#include "tfhe/compressed.h"
#include "tfhe/integer/checks.h"
#include "tfhe/integer/division.h"
#include "tfhe/integer/job.h"
#include "tfhe/integer/recorded.h"

namespace crenel::tfhe {

Compressed IntegerEvaluator::compress(const Integers& a, StoredForm form) const {
  std::vector<const Ciphertext*> blocks;
  for (const Ciphertext& block : a.blocks()) blocks.push_back(&block);
  const Compressed all = evaluator_.compress(concatenate(blocks), form);
  auto data = std::make_shared<Compressed::Data>(all.data());
  data->integer_bits = a.bits();
  data->is_signed = a.is_signed();
  return Compressed(std::move(data));
}

Integers IntegerEvaluator::decompress(const Compressed& compressed) const {
  const u32 bits = compressed.integer_bits();
  if (bits == 0)
    throw ParameterError(cat("decompression of ", compressed.size(),
                             " messages as integers, expected compressed integers"),
                         {{"bits", 0}, {"size", compressed.size()}});
  const Ciphertext all = evaluator_.decompress(compressed);
  const u64 size = compressed.size() / (bits / 2);
  std::vector<Ciphertext> blocks;
  for (u32 j = 0; j < bits / 2; ++j) blocks.push_back(all.slice(j * size, size));
  return Integers(std::move(blocks), bits, compressed.is_signed());
}
namespace {

using radix::Blocks;
using radix::Circuit;
using radix::Direction;
using radix::Fill;
using radix::Form;
using radix::Job;

Blocks joined(Blocks first, const Blocks& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// operands -> blocks of the quotient, of the remainder or of both.
template <class Pick>
radix::Results divided(const IntegerEvaluator& ev, const IntegerOperand& a, const IntegerOperand& b,
                       bool floored, const char* parts, const Pick& pick) {
  const Integers& like = radix::encrypted_like(a, b);
  if (b.integers() == nullptr && b.value(like.is_signed()).zero()) radix::refuse_zero_divisor();
  Job job(ev, ContentKey(parts).add(u64(floored)), like.size());
  const auto x = job.operand(a, like), y = job.operand(b, like);
  return job.run([&](Circuit& circuit, Form form, const auto& in) {
    return pick(like.is_signed() ? radix::divide_signed(circuit, in(x), in(y), floored, form)
                                 : radix::divide(circuit, in(x), in(y), form));
  });
}

template <class Build>
IntegerEvaluator::Checked checked(const IntegerEvaluator& ev, const char* name,
                                  const IntegerOperand& a, const IntegerOperand& b,
                                  const Build& build) {
  const Integers& like = radix::encrypted_like(a, b);
  Job job(ev, ContentKey(name), like.size());
  const auto x = job.operand(a, like), y = job.operand(b, like);
  auto results = job.run([&](Circuit& circuit, Form form, const auto& in) {
    const radix::Checked result = build(circuit, in(x), in(y), like.is_signed(), form);
    return joined(result.value, {result.overflow});
  });
  Ciphertext overflow = std::move(results.blocks.back());
  return {results.integers(0, like.bits(), like.is_signed()), std::move(overflow)};
}

Integers shifted(const IntegerEvaluator& ev, const Integers& a, const Integers& count,
                 Direction direction, Fill fill) {
  radix::check_shift_count(count.is_signed());
  Job job(ev, ContentKey("shift").add(u64(direction)).add(u64(fill)), a.size());
  const auto x = job.operand(a), by = job.operand(count);
  return job.integers(a.bits(), a.is_signed(), [&](Circuit& circuit, Form, const auto& in) {
    return radix::shift(circuit, in(x), in(by), direction, fill);
  });
}

template <class Build>
Integers counted(const IntegerEvaluator& ev, const char* name, const Integers& a,
                 const Build& build) {
  Job job(ev, ContentKey(name), a.size());
  const auto x = job.operand(a);
  return job.integers(
      radix::count_bits(a.bits()), false,
      [&](Circuit& circuit, Form form, const auto& in) { return build(circuit, in(x), form); });
}

}  // namespace

std::pair<Integers, Integers> IntegerEvaluator::divmod(const IntegerOperand& a,
                                                       const IntegerOperand& b,
                                                       bool floored) const {
  auto both = divided(*this, a, b, floored, "divmod",
                      [](const radix::Division& d) { return joined(d.quotient, d.remainder); });
  const Integers& like = radix::encrypted_of(a, b);
  return {both.integers(0, like.bits(), like.is_signed()),
          both.integers(like.bits() / 2, like.bits(), like.is_signed())};
}

Integers IntegerEvaluator::div(const IntegerOperand& a, const IntegerOperand& b,
                               bool floored) const {
  const Integers& like = radix::encrypted_of(a, b);
  return divided(*this, a, b, floored, "quotient",
                 [](const radix::Division& d) { return d.quotient; })
      .integers(0, like.bits(), like.is_signed());
}

Integers IntegerEvaluator::rem(const IntegerOperand& a, const IntegerOperand& b,
                               bool floored) const {
  const Integers& like = radix::encrypted_of(a, b);
  return divided(*this, a, b, floored, "remainder",
                 [](const radix::Division& d) { return d.remainder; })
      .integers(0, like.bits(), like.is_signed());
}

IntegerEvaluator::Checked IntegerEvaluator::add_overflow(const IntegerOperand& a,
                                                         const IntegerOperand& b) const {
  return checked(*this, "checked add", a, b, radix::checked_add);
}
IntegerEvaluator::Checked IntegerEvaluator::sub_overflow(const IntegerOperand& a,
                                                         const IntegerOperand& b) const {
  return checked(*this, "checked subtract", a, b, radix::checked_subtract);
}
IntegerEvaluator::Checked IntegerEvaluator::mul_overflow(const IntegerOperand& a,
                                                         const IntegerOperand& b) const {
  return checked(*this, "checked multiply", a, b, radix::checked_multiply);
}

Integers IntegerEvaluator::shift_left(const Integers& a, const Integers& count) const {
  return shifted(*this, a, count, Direction::left, Fill::zero);
}
Integers IntegerEvaluator::shift_right(const Integers& a, const Integers& count) const {
  return shifted(*this, a, count, Direction::right, a.is_signed() ? Fill::sign : Fill::zero);
}
Integers IntegerEvaluator::rotate_left(const Integers& a, const Integers& count) const {
  return shifted(*this, a, count, Direction::left, Fill::around);
}
Integers IntegerEvaluator::rotate_right(const Integers& a, const Integers& count) const {
  return shifted(*this, a, count, Direction::right, Fill::around);
}

Integers IntegerEvaluator::leading_zeros(const Integers& a) const {
  return counted(*this, "leading zeros", a, radix::leading_zeros);
}
Integers IntegerEvaluator::trailing_zeros(const Integers& a) const {
  return counted(*this, "trailing zeros", a, radix::trailing_zeros);
}
Integers IntegerEvaluator::count_ones(const Integers& a) const {
  return counted(*this, "count ones", a, radix::count_ones);
}

Integers IntegerEvaluator::convert(const Integers& a, u32 bits, bool is_signed) const {
  radix::check_bits(bits);
  Job job(*this, ContentKey("convert"), a.size());
  const auto x = job.operand(a);
  return job.integers(bits, is_signed, [&](Circuit& circuit, Form, const auto& in) {
    return radix::resized(circuit, in(x), bits / 2, a.is_signed());
  });
}

Integers IntegerEvaluator::dot(std::span<const Integers* const> a,
                               std::span<const Integers* const> b) const {
  if (a.empty() || a.size() != b.size())
    throw ParameterError(cat("dot product of ", a.size(), " and ", b.size(),
                             " integers, expected as many, at least one"),
                         {{"a", a.size()}, {"b", b.size()}});
  const Integers& like = *a[0];
  Job job(*this, ContentKey("dot"), like.size());
  std::vector<std::pair<Job::Operand, Job::Operand>> pairs;
  for (std::size_t i = 0; i < a.size(); ++i) {
    radix::check_pair(like, *a[i]);
    radix::check_pair(like, *b[i]);
    auto x = job.operand(*a[i]), y = job.operand(*b[i]);
    pairs.emplace_back(std::move(x), std::move(y));
  }
  return job.integers(like.bits(), like.is_signed(),
                      [&](Circuit& circuit, Form form, const auto& in) {
                        std::vector<Blocks> columns(like.blocks().size());
                        for (const auto& [x, y] : pairs) {
                          const auto terms = radix::product_columns(circuit, in(x), in(y));
                          for (std::size_t j = 0; j < columns.size(); ++j)
                            columns[j].insert(columns[j].end(), terms[j].begin(), terms[j].end());
                        }
                        return radix::add_columns(circuit, std::move(columns), form);
                      });
}

Integers IntegerEvaluator::look_up(const Integers& index, std::span<const u64> entries, u32 bits,
                                   bool is_signed) const {
  const auto table = radix::table_of(index.bits(), index.is_signed(), entries, bits, is_signed);
  ContentKey recipe("table");
  recipe.add(table.size()).add(std::span(entries));
  Job job(*this, std::move(recipe), index.size());
  const auto at = job.operand(index);
  return job.integers(bits, is_signed, [&](Circuit& circuit, Form, const auto& in) {
    return radix::table_entry(circuit, in(at), table, bits / 2);
  });
}

std::vector<CircuitOutput> IntegerEvaluator::run(const IntegerCircuit& circuit,
                                                 std::span<const CircuitInput> inputs) const {
  const IntegerCircuit::State& described = circuit.state();
  if (inputs.empty() || described.outputs.empty() || inputs.size() != described.inputs.size())
    throw ParameterError(cat("circuit of ", described.inputs.size(), " inputs and ",
                             described.outputs.size(), " outputs on ", inputs.size(),
                             " arrays, expected as many arrays as inputs, at least "
                             "one, and an output"),
                         {{"inputs", inputs.size()}, {"expected", described.inputs.size()}});
  const auto size_of = [](const CircuitInput& input) {
    return std::visit([](const auto* array) { return array->size(); }, input);
  };
  Job job(*this, described.recipe, size_of(inputs[0]));
  std::vector<Job::Operand> operands;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto* const integers = std::get_if<const Integers*>(&inputs[i]);
    const IntegerCircuit::Type found =
        integers == nullptr ? IntegerCircuit::Type{}
                            : IntegerCircuit::Type{(*integers)->bits(), (*integers)->is_signed()};
    if (found != described.inputs[i])
      throw StateError(
          cat("circuit, input ", i, ": ", found.name(), ", expected ", described.inputs[i].name()),
          {{"found", found.name()}, {"expected", described.inputs[i].name()}});
    operands.push_back(integers != nullptr
                           ? job.operand(**integers)
                           : job.condition(*std::get<const Ciphertext*>(inputs[i])));
  }
  auto found = job.run([&](Circuit& building, Form form, const auto& in) {
    std::vector<Blocks> given;
    for (const Job::Operand& operand : operands) given.push_back(in(operand));
    return described.build(building, form, given);
  });
  std::vector<CircuitOutput> results;
  std::size_t first = 0;
  for (const IntegerCircuit::Type& type : described.output_types) {
    if (type.is_bit())
      results.emplace_back(std::move(found.blocks[first]));
    else
      results.emplace_back(found.integers(first, type.bits, type.is_signed));
    first += type.is_bit() ? 1 : type.bits / 2;
  }
  return results;
}

}  // namespace crenel::tfhe
