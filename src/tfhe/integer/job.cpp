#include "tfhe/integer/job.h"

#include <algorithm>

#include "crenel/core/error.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/integer/checks.h"
#include "tfhe/integer/circuit_cache.h"
#include "tfhe/integer/execute.h"
#include "tfhe/integer/operations.h"

namespace crenel::tfhe::radix {
namespace {

/// Beside 0 and 1, the signs of encrypted operands.
constexpr u64 kKnown = 2;

const char* signed_name(const Integers& a) { return a.is_signed() ? "signed" : "unsigned"; }

void check_home(const Evaluator& evaluator, const std::string& params_id) {
  const std::string& expected = evaluator.context().params().id();
  if (params_id != expected)
    throw StateError(cat("integers of parameters ", params_id, ", expected ", expected),
                     {{"found", params_id}, {"expected", expected}});
}

}  // namespace

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

const Integers& encrypted_of(const IntegerOperand& a, const IntegerOperand& b) {
  if (a.integers() != nullptr && b.integers() != nullptr) check_pair(*a.integers(), *b.integers());
  if (a.integers() == nullptr && b.integers() == nullptr)
    throw ParameterError("two public values, expected encrypted integers at least once",
                         {{"operands", "public"}});
  return a.integers() != nullptr ? *a.integers() : *b.integers();
}

const Integers& encrypted_like(const IntegerOperand& a, const IntegerOperand& b) {
  const Integers& like = encrypted_of(a, b);
  for (const IntegerOperand* x : {&a, &b})
    if (x->integers() == nullptr)
      check_range(x->value(like.is_signed()), like.bits(), like.is_signed(), "scalar");
  return like;
}

Job::Operand Job::operand(const Integers& a) {
  check_home(integers_.evaluator(), a.blocks()[0].params_id());
  if (a.size() != size_)
    throw StateError(cat("arrays of ", size_, " and of ", a.size(), " integers, expected equal"),
                     {{"size", a.size()}, {"expected", size_}});
  recipe_.add(u64(a.is_signed())).add(a.blocks().size());
  Operand operand;
  for (u32 j = 0; j < a.blocks().size(); ++j) {
    const u32 origin = a.origins().empty() ? j : a.origins()[j];
    if (origin == j) {
      operand.blocks.emplace_back(input(a.blocks()[j], 3));
      continue;
    }
    recipe_.add(kMessages + origin);  // what an input adds is below
    if (origin >= Integers::kKnown)
      operand.blocks.emplace_back(Sum(origin - Integers::kKnown));
    else
      operand.blocks.push_back(operand.blocks[origin]);
  }
  return operand;
}

Job::Operand Job::operand(const IntegerOperand& a, const Integers& like) {
  if (a.integers() != nullptr) return operand(*a.integers());
  const WideValue value = a.value(like.is_signed());
  recipe_.add(kKnown).add(like.bits());
  for (u32 w = 0; w < WideValue::kWords; ++w) recipe_.add(value.word(w));
  Operand operand;
  for (const Sum& block : constant_blocks(value, like.bits())) operand.blocks.emplace_back(block);
  return operand;
}

std::size_t Job::input(const Ciphertext& c, i64 high) {
  inputs_.push_back(&c);
  highs_.push_back(high);
  recipe_.add(static_cast<u64>(high));
  return inputs_.size() - 1;
}

void Job::check_message(const Ciphertext& m, const char* what) const {
  check_home(integers_.evaluator(), m.params_id());
  if (m.size() != size_)
    throw StateError(cat(what, " of ", m.size(), " messages for ", size_, ", expected equal"),
                     {{"size", m.size()}, {"expected", size_}});
  if (m.plain_modulus() != 32)
    throw StateError(cat(what, " of messages modulo ", m.plain_modulus(), ", expected 32"),
                     {{"plain_modulus", m.plain_modulus()}});
}

Job::Operand Job::condition(const Ciphertext& c) {
  check_message(c, "condition");
  integers_.evaluator().state().check_bits(c, "select");
  return {{input(c, 1)}};
}

Job::Operand Job::message(const Ciphertext& m) {
  check_message(m, "array");
  const Evaluator& evaluator = integers_.evaluator();
  const auto& state = evaluator.state();
  const double least = state.bootstrap_noise(1, state.log_q()).variance() * (1 + 1e-9);
  return {{input(m.noise_variance() > least ? fresh_.emplace_back(evaluator.refresh(m)) : m,
                 m.bound() == 0 ? kMessages - 1 : std::min<i64>(m.bound(), kMessages) - 1)}};
}

Results Job::run_composed(const Compose& compose) const {
  const Context context = integers_.evaluator().context();
  const auto program = context.state().circuits->get(
      recipe_, integers_.form(), size_, context.device().info().processors,
      [&](Form form) { return made(form, Room::of(context.params()), compose); });
  return {execute(integers_.evaluator(), *program, inputs_, size_), program->outputs};
}

Integers Results::integers(std::size_t first, u32 bits, bool is_signed) {
  std::vector<Ciphertext> part;
  std::vector<u32> origins;
  for (u32 j = 0; j < bits / 2; ++j) {
    const Sum& sum = sums[first + j];
    u32 i = 0;
    while (i < j && !sums[first + i].same_value(sum)) ++i;
    const bool known = sum.is_constant() && 0 <= sum.constant && sum.constant <= 3;
    origins.push_back(known ? Integers::kKnown + static_cast<u32>(sum.constant) : i);
    part.push_back(std::move(blocks[first + j]));
  }
  return Integers(std::move(part), bits, is_signed, std::move(origins));
}

}  // namespace crenel::tfhe::radix
