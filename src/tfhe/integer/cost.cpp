// What operations of integers cost, by the circuits that compute them.
#include <functional>
#include <map>

#include "crenel/core/error.h"
#include "tfhe/integer/checks.h"
#include "tfhe/integer/circuit_cache.h"
#include "tfhe/integer/division.h"
#include "tfhe/integer/schedule.h"

namespace crenel::tfhe {
namespace {

using radix::Blocks;
using radix::Circuit;
using radix::Form;
using radix::Sum;

struct Operands {
  Circuit& circuit;
  u32 bits;
  bool is_signed;
  Form form;

  Blocks integer() const { return circuit.inputs(bits / 2); }
  Blocks integer(u32 width) const { return circuit.inputs(width / 2); }
};
using Build = std::function<Blocks(const Operands&)>;

constexpr u32 kShiftCountBits = 8;  // of an encrypted count
constexpr u32 kTerms = 16;          // of a sum and a dot product
constexpr u32 kTableEntries = 256;
constexpr u32 kIndexBits = 8;

Blocks quotient(const Operands& o, bool remainder) {
  const Blocks a = o.integer(), d = o.integer();
  const auto result = o.is_signed ? radix::divide_signed(o.circuit, a, d, true, o.form)
                                  : radix::divide(o.circuit, a, d, o.form);
  Blocks both = result.quotient;
  if (remainder) both.insert(both.end(), result.remainder.begin(), result.remainder.end());
  return both;
}

template <class F>
Build checked(F f) {
  return [f](const Operands& o) {
    const Blocks a = o.integer(), b = o.integer();
    radix::Checked result = f(o.circuit, a, b, o.is_signed, o.form);
    result.value.push_back(result.overflow);
    return result.value;
  };
}

Build shifted(radix::Direction direction, bool around) {
  return [=](const Operands& o) {
    const Blocks a = o.integer(), count = o.integer(kShiftCountBits);
    const bool sign = o.is_signed && direction == radix::Direction::right;
    return radix::shift(o.circuit, a, count, direction,
                        around ? radix::Fill::around
                        : sign ? radix::Fill::sign
                               : radix::Fill::zero);
  };
}

Blocks summed(const Operands& o, bool products) {
  std::vector<Blocks> columns(o.bits / 2);
  for (u32 i = 0; i < kTerms; ++i) {
    const Blocks a = o.integer();
    std::vector<Blocks> terms(columns.size());
    if (products)
      terms = radix::product_columns(o.circuit, a, o.integer());
    else
      for (std::size_t j = 0; j < a.size(); ++j) terms[j].push_back(a[j]);
    for (std::size_t j = 0; j < columns.size(); ++j)
      columns[j].insert(columns[j].end(), terms[j].begin(), terms[j].end());
  }
  return radix::add_columns(o.circuit, std::move(columns), o.form);
}

Blocks looked_up(const Operands& o) {
  std::vector<std::vector<u8>> entries;
  u64 word = 1;
  for (u32 i = 0; i < kTableEntries; ++i) {  // entries that share nothing
    auto& entry = entries.emplace_back();
    for (u32 j = 0; j < o.bits / 2; ++j) {
      word = word * 6364136223846793005u + 1442695040888963407u;
      entry.push_back(static_cast<u8>(word >> 62));
    }
  }
  return radix::table_entry(o.circuit, o.integer(kIndexBits), entries, o.bits / 2);
}

Sum compared(const Operands& o, Comparison comparison, u64 one) {
  const Blocks a = o.integer(), b = o.integer();
  return radix::compare(o.circuit, comparison, a, b, o.is_signed, o.form, one);
}

using Operations = std::vector<std::pair<std::string, Build>>;

Operations arithmetic() {
  return {
      {"add",
       [](const Operands& o) { return radix::add(o.circuit, o.integer(), o.integer(), o.form); }},
      {"sub",
       [](const Operands& o) {
         const Blocks a = o.integer(), b = o.integer();
         return radix::subtract(o.circuit, a, b, o.form);
       }},
      {"neg",
       [](const Operands& o) {
         return radix::subtract(o.circuit, radix::constant_blocks(u64(0), o.bits), o.integer(),
                                o.form);
       }},
      {"abs", [](const Operands& o) { return radix::absolute(o.circuit, o.integer(), o.form); }},
      {"mul",
       [](const Operands& o) {
         return radix::multiply(o.circuit, o.integer(), o.integer(), o.form);
       }},
      {"mul by 10",
       [](const Operands& o) {
         return radix::multiply(o.circuit, o.integer(), radix::constant_blocks(u64(10), o.bits),
                                o.form);
       }},
      {"div", [](const Operands& o) { return quotient(o, false); }},
      {"divmod", [](const Operands& o) { return quotient(o, true); }},
      {"add_overflow", checked(radix::checked_add)},
      {"sub_overflow", checked(radix::checked_subtract)},
      {"mul_overflow", checked(radix::checked_multiply)},
  };
}

Operations choices() {
  return {
      {"less", [](const Operands& o) { return Blocks{compared(o, Comparison::less, 1)}; }},
      {"equal", [](const Operands& o) { return Blocks{compared(o, Comparison::equal, 1)}; }},
      {"max",
       [](const Operands& o) {
         const Blocks a = o.integer(), b = o.integer();
         const Sum first = radix::compare(o.circuit, Comparison::greater, a, b, o.is_signed, o.form,
                                          radix::kCondition);
         return radix::select(o.circuit, first, a, b);
       }},
      {"min_max",
       [](const Operands& o) {
         const Blocks a = o.integer(), b = o.integer();
         return radix::exchange(o.circuit, a, b, o.is_signed, o.form);
       }},
      {"select",
       [](const Operands& o) {
         const Sum bit = o.circuit.input(1);
         const Blocks a = o.integer(), b = o.integer();
         return radix::choose(o.circuit, bit, a, b);
       }},
  };
}

Operations bits_and_arrays() {
  return {
      {"bit_and",
       [](const Operands& o) {
         const Blocks a = o.integer(), b = o.integer();
         return radix::blockwise(o.circuit, a, b, [](u64 u, u64 v) { return u & v; });
       }},
      {"shift by 1",
       [](const Operands& o) { return radix::shift_left(o.circuit, o.integer(), 1); }},
      {"shift", shifted(radix::Direction::right, false)},
      {"rotate", shifted(radix::Direction::left, true)},
      {"leading_zeros",
       [](const Operands& o) { return radix::leading_zeros(o.circuit, o.integer(), o.form); }},
      {"count_ones",
       [](const Operands& o) { return radix::count_ones(o.circuit, o.integer(), o.form); }},
      {"sum of 16", [](const Operands& o) { return summed(o, false); }},
      {"dot of 16", [](const Operands& o) { return summed(o, true); }},
      {"table of 256", looked_up},
  };
}

const Operations& operations() {
  static const Operations known = [] {
    Operations all;
    for (auto part : {arithmetic, choices, bits_and_arrays})
      for (auto& operation : part()) all.push_back(std::move(operation));
    return all;
  }();
  return known;
}

}  // namespace

std::vector<std::string> integer_operations() {
  std::vector<std::string> names;
  for (const auto& [name, build] : operations()) names.push_back(name);
  return names;
}

IntegerCost radix::cost_of(const Compose& compose, CircuitForm form, u64 size, u32 processors,
                           const Room& room) {
  if (!(room.max_norm2 >= kMaxNorm2))
    throw ParameterError(cat("max_norm2 is ", room.max_norm2, ", expected at least ", kMaxNorm2),
                         {{"max_norm2", room.max_norm2}});
  // what choose() takes; a cache that nobody keeps compares the forms
  CircuitCache circuits;
  const auto program = circuits.get(ContentKey("cost"), form, size, std::max(processors, 1u),
                                    [&](Form chosen) { return made(chosen, room, compose); });
  const Schedule& plan = program->plan;
  IntegerCost cost{plan.rotations(), plan.outputs(), plan.depth(), {}};
  for (u32 round = 1; round <= cost.depth; ++round)
    cost.rounds.push_back(plan.rounds[round].size());
  return cost;
}

IntegerCost integer_cost(std::string_view operation, u32 bits, bool is_signed, CircuitForm form,
                         u64 size, u32 processors, double max_norm2, bool free_outputs) {
  radix::check_bits(bits);
  for (const auto& [name, build] : operations()) {
    if (name != operation) continue;
    return radix::cost_of(
        [&, &build = build](Circuit& circuit, Form f) {  // clang before 16 captures no bindings
          return build(Operands{circuit, bits, is_signed, f});
        },
        form, size, processors, {max_norm2, free_outputs});
  }
  throw ParameterError(cat("unknown operation of integers '", std::string(operation), "'"),
                       {{"operation", std::string(operation)}});
}

}  // namespace crenel::tfhe
