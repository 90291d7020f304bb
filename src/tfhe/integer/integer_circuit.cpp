// IntegerCircuit: checks operations as they are described, and builds their look-ups together.
#include "crenel/tfhe/integer_circuit.h"

#include <algorithm>
#include <atomic>

#include "crenel/core/error.h"
#include "tfhe/gate_table.h"
#include "tfhe/integer/checks.h"
#include "tfhe/integer/circuit_cache.h"
#include "tfhe/integer/division.h"
#include "tfhe/integer/recorded.h"

namespace crenel::tfhe {

using radix::Blocks;
using radix::Circuit;
using radix::Direction;
using radix::Fill;
using radix::Form;
using radix::Sum;
using Results = std::vector<Blocks>;
using Kind = IntegerCircuit::State::Kind;
using Ref = IntegerCircuit::State::Ref;
using Type = IntegerCircuit::Type;
using Value = IntegerCircuit::Value;
using Operand = IntegerCircuit::Operand;
using Pair = std::pair<Value, Value>;

namespace {

constexpr Type kBit{};

[[noreturn]] void refuse(const char* what, const std::string& found, const std::string& expected) {
  throw StateError(cat("circuit, ", what, ": ", found, ", expected ", expected),
                   {{"found", found}, {"expected", expected}});
}

}  // namespace

std::string IntegerCircuit::Type::name() const {
  return is_bit() ? std::string("bits")
                  : cat(is_signed ? "signed" : "unsigned", " integers of ", bits, " bits");
}

Blocks IntegerCircuit::State::build(Circuit& circuit, Form form, const Results& given) const {
  std::vector<bool> needed(nodes.size(), false);
  const auto mark = [&](const Ref& ref) {
    if (!ref.is_known) needed[ref.node] = true;
  };
  for (const Ref& ref : outputs) mark(ref);
  for (std::size_t i = nodes.size(); i-- > 0;)
    if (needed[i]) std::for_each(nodes[i].operands.begin(), nodes[i].operands.end(), mark);
  std::vector<Results> results(nodes.size());
  const auto blocks_of = [&](const Ref& ref) {
    return ref.is_known ? ref.known : results[ref.node][ref.part];
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (!needed[i]) continue;
    if (node.kind == Kind::input) {
      results[i] = {given[node.input]};
      continue;
    }
    Results operands;
    for (const Ref& ref : node.operands) operands.push_back(blocks_of(ref));
    results[i] = node.build(circuit, form, operands);
    // What an operation gives are blocks. It may know less of them: look-ups are composed for all
    // of a range, also where not all of it occurs.
    for (std::size_t part = 0; part < results[i].size(); ++part)
      for (Sum& block : results[i][part])
        block = block.within(0, node.types[part].is_bit() ? 1 : 3);
  }
  Blocks all;
  for (const Ref& ref : outputs) {
    const Blocks blocks = blocks_of(ref);
    all.insert(all.end(), blocks.begin(), blocks.end());
  }
  return all;
}

/// Adds nodes to a circuit.
class IntegerCircuit::Recorder {
 public:
  explicit Recorder(State& state) : state_(state) {}

  Value value(u32 node, u32 part) const {
    Value value;
    value.circuit_ = state_.id;
    value.node_ = node;
    value.part_ = part;
    value.type_ = state_.nodes[node].types[part];
    return value;
  }
  Ref ref(const Value& value) const {
    if (value.circuit_ != state_.id)
      refuse("operand", "a value of another circuit", "one of this circuit");
    return {value.node_, value.part_, false, {}};
  }
  Ref integers(const char* what, const Value& value) const {
    if (value.type().is_bit()) refuse(what, "bits", "integers, which convert makes of bits");
    return ref(value);
  }
  Ref bit(const char* what, const Value& value) const {
    if (!value.type().is_bit()) refuse(what, value.type().name(), "bits, which comparisons give");
    return ref(value);
  }

  Value input(Type type) {
    state_.recipe.add(u64(type.bits)).add(u64(type.is_signed));
    State::Node node;
    node.kind = Kind::input;
    node.input = static_cast<u32>(state_.inputs.size());
    node.types = {type};
    state_.inputs.push_back(type);
    state_.nodes.push_back(std::move(node));
    return value(static_cast<u32>(state_.nodes.size() - 1), 0);
  }

  /// `name` and `parameters` say what `build` does.
  std::vector<Value> operation(const ContentKey& name, std::vector<Ref> operands,
                               std::vector<Type> types, State::Build build,
                               Kind kind = Kind::other) {
    ContentKey& recipe = state_.recipe;
    recipe.add(u64(name.text().size())).add(std::span(name.text())).add(u64(operands.size()));
    for (const Ref& ref : operands) {
      recipe.add(u64(ref.is_known)).add(u64(ref.node)).add(u64(ref.part)).add(ref.known.size());
      for (const Sum& block : ref.known) recipe.add(static_cast<u64>(block.constant));
    }
    for (const Type& type : types) recipe.add(u64(type.bits)).add(u64(type.is_signed));
    const auto at = static_cast<u32>(state_.nodes.size());
    state_.nodes.push_back({kind, std::move(operands), std::move(build), 0, std::move(types)});
    std::vector<Value> values;
    for (u32 part = 0; part < state_.nodes[at].types.size(); ++part)
      values.push_back(value(at, part));
    return values;
  }
  template <class Build>
  Value one(const ContentKey& name, std::vector<Ref> operands, Type type, const Build& build,
            Kind kind = Kind::other) {
    return operation(
        name, std::move(operands), {type},
        [build](Circuit& circuit, Form form, const Results& in) {
          return Results{build(circuit, form, in)};
        },
        kind)[0];
  }
  template <class Build>
  Pair two(const ContentKey& name, std::vector<Ref> operands, Type first, Type second,
           const Build& build) {
    const auto values = operation(name, std::move(operands), {first, second}, build);
    return {values[0], values[1]};
  }

  struct Operands {
    Ref a, b;
    Type type;
  };
  /// Of one type, at least one of them a value. `modular`: any public value has a meaning.
  Operands both(const char* what, const Operand& a, const Operand& b, bool modular) const {
    const Value* const like = a.value() != nullptr ? a.value() : b.value();
    if (like == nullptr)
      throw ParameterError(cat("circuit, ", what, ": two public values, expected a value"),
                           {{"operands", "public"}});
    const Type type = like->type();
    return {one_of(what, a, type, modular), one_of(what, b, type, modular), type};
  }

  const State::Node& node(const Ref& ref) const { return state_.nodes[ref.node]; }

 private:
  Ref one_of(const char* what, const Operand& x, const Type& type, bool modular) const {
    if (x.value() != nullptr) {
      const Ref ref = integers(what, *x.value());
      if (x.value()->type() != type)
        refuse(what, cat(type.name(), " and ", x.value()->type().name()), "one type");
      return ref;
    }
    const WideValue value = x.known(type.is_signed);
    if (!modular) radix::check_range(value, type.bits, type.is_signed, "scalar");
    return {0, 0, true, radix::constant_blocks(value, type.bits)};
  }

  State& state_;
};

namespace {

bool is_zero(const Ref& ref) {
  return ref.is_known && std::all_of(ref.known.begin(), ref.known.end(),
                                     [](const Sum& block) { return block.constant == 0; });
}

// add_where or subtract_where
template <class Recorder>
Value where(Recorder& r, bool add, const Ref& bit, const Ref& a, const Ref& x, Type type) {
  return r.one(ContentKey(add ? "add where" : "subtract where"), {bit, a, x}, type,
               [add](Circuit& circuit, Form form, const Results& in) {
                 return (add ? radix::add_where : radix::subtract_where)(circuit, in[0][0], in[1],
                                                                         in[2], form);
               });
}

// Is it select(c, x, 0)?
template <class Recorder>
bool is_masked(const Recorder& r, const Ref& ref) {
  return !ref.is_known && r.node(ref).kind == Kind::choose && is_zero(r.node(ref).operands[2]);
}

// Build of an operation on two integers with blocks as result.
template <class F>
auto of_two(F f) {
  return [f](Circuit& circuit, Form form, const Results& in) {
    return f(circuit, in[0], in[1], form);
  };
}
template <class F>
auto of_one(F f) {
  return [f](Circuit& circuit, Form form, const Results& in) { return f(circuit, in[0], form); };
}

}  // namespace

IntegerCircuit::IntegerCircuit() : state_(std::make_shared<State>()) {
  static std::atomic<u64> made{0};
  state_->id = ++made;
}

Value IntegerCircuit::integers(u32 bits, bool is_signed) {
  radix::check_bits(bits);
  return Recorder(*state_).input({bits, is_signed});
}
Value IntegerCircuit::bit() { return Recorder(*state_).input(kBit); }

void IntegerCircuit::output(const Value& value) {
  const Ref ref = Recorder(*state_).ref(value);
  state_->recipe.add(~u64(0)).add(u64(ref.node)).add(u64(ref.part));
  state_->outputs.push_back(ref);
  state_->output_types.push_back(value.type());
}

std::vector<Type> IntegerCircuit::inputs() const { return state_->inputs; }
std::vector<Type> IntegerCircuit::outputs() const { return state_->output_types; }

IntegerCost IntegerCircuit::cost(CircuitForm form, u64 size, u32 processors, double max_norm2,
                                 bool free_outputs) const {
  if (state_->outputs.empty())
    throw ParameterError("circuit without outputs, expected one at least", {{"outputs", 0}});
  return radix::cost_of(
      [this](Circuit& circuit, Form chosen) {
        Results given;
        for (const Type& type : state_->inputs)
          given.push_back(type.is_bit() ? Blocks{circuit.input(1)} : circuit.inputs(type.bits / 2));
        return state_->build(circuit, chosen, given);
      },
      form, size, processors, {max_norm2, free_outputs});
}

// ---- arithmetic

Value IntegerCircuit::add(const Operand& a, const Operand& b) {
  Recorder r(*state_);
  const auto [x, y, type] = r.both("add", a, b, true);
  for (const auto& [sum, masked] : {std::pair(x, y), std::pair(y, x)})
    if (is_masked(r, masked)) {
      const auto& chosen = r.node(masked).operands;
      return where(r, true, chosen[0], sum, chosen[1], type);
    }
  return r.one(ContentKey("add"), {x, y}, type, of_two(radix::add), Kind::add);
}

Value IntegerCircuit::sub(const Operand& a, const Operand& b) {
  Recorder r(*state_);
  if (b.value() == nullptr && a.value() != nullptr)
    return add(a, -b.known(a.value()->type().is_signed));
  const auto [x, y, type] = r.both("sub", a, b, true);
  if (is_masked(r, y)) {
    const auto& chosen = r.node(y).operands;
    return where(r, false, chosen[0], x, chosen[1], type);
  }
  return r.one(ContentKey("subtract"), {x, y}, type,
               of_two([](Circuit& circuit, const Blocks& u, const Blocks& v, Form form) {
                 return radix::subtract(circuit, u, v, form);
               }),
               Kind::subtract);
}

Value IntegerCircuit::neg(const Value& a) { return sub(u64(0), a); }

Value IntegerCircuit::abs(const Value& a) {
  Recorder r(*state_);
  const Ref x = r.integers("abs", a);
  if (!a.type().is_signed) return a;
  return r.one(ContentKey("absolute"), {x}, a.type(), of_one(radix::absolute));
}

Value IntegerCircuit::mul(const Operand& a, const Operand& b) {
  Recorder r(*state_);
  const auto [x, y, type] = r.both("mul", a, b, true);
  return r.one(ContentKey("multiply"), {x, y}, type, of_two(radix::multiply));
}

Pair IntegerCircuit::divmod(const Operand& a, const Operand& b, bool floored) {
  Recorder r(*state_);
  const auto [x, y, type] = r.both("divmod", a, b, false);
  if (is_zero(y)) radix::refuse_zero_divisor();
  return r.two(
      ContentKey("divmod").add(u64(floored)), {x, y}, type, type,
      [is_signed = type.is_signed, floored](Circuit& circuit, Form form, const Results& in) {
        auto both = is_signed ? radix::divide_signed(circuit, in[0], in[1], floored, form)
                              : radix::divide(circuit, in[0], in[1], form);
        return Results{std::move(both.quotient), std::move(both.remainder)};
      });
}
Value IntegerCircuit::div(const Operand& a, const Operand& b, bool floored) {
  return divmod(a, b, floored).first;  // what nothing reads is not looked up
}
Value IntegerCircuit::rem(const Operand& a, const Operand& b, bool floored) {
  return divmod(a, b, floored).second;
}

namespace {

template <class Recorder, class F>
Pair checked(Recorder r, const char* name, const Operand& a, const Operand& b, F f) {
  const auto [x, y, type] = r.both(name, a, b, false);
  return r.two(ContentKey(name), {x, y}, type, kBit,
               [f, is_signed = type.is_signed](Circuit& circuit, Form form, const Results& in) {
                 radix::Checked result = f(circuit, in[0], in[1], is_signed, form);
                 return Results{std::move(result.value), Blocks{result.overflow}};
               });
}

template <class Recorder>
Value extreme(Recorder r, const char* name, Comparison takes_first, const Operand& a,
              const Operand& b) {
  const auto [x, y, type] = r.both(name, a, b, false);
  return r.one(ContentKey(name), {x, y}, type,
               [=, is_signed = type.is_signed](Circuit& circuit, Form form, const Results& in) {
                 const Sum first = radix::compare(circuit, takes_first, in[0], in[1], is_signed,
                                                  form, radix::kCondition);
                 return radix::select(circuit, first, in[0], in[1]);
               });
}

}  // namespace

Pair IntegerCircuit::add_overflow(const Operand& a, const Operand& b) {
  return checked(Recorder(*state_), "checked add", a, b, radix::checked_add);
}
Pair IntegerCircuit::sub_overflow(const Operand& a, const Operand& b) {
  return checked(Recorder(*state_), "checked subtract", a, b, radix::checked_subtract);
}
Pair IntegerCircuit::mul_overflow(const Operand& a, const Operand& b) {
  return checked(Recorder(*state_), "checked multiply", a, b, radix::checked_multiply);
}

// ---- comparisons and choices

Value IntegerCircuit::compare(Comparison comparison, const Operand& a, const Operand& b) {
  Recorder r(*state_);
  const auto [x, y, type] = r.both("compare", a, b, false);
  return r.one(ContentKey("compare").add(u64(comparison)), {x, y}, kBit,
               [=, is_signed = type.is_signed](Circuit& circuit, Form form, const Results& in) {
                 return Blocks{radix::compare(circuit, comparison, in[0], in[1], is_signed, form)};
               });
}

Value IntegerCircuit::min(const Operand& a, const Operand& b) {
  return extreme(Recorder(*state_), "min", Comparison::less, a, b);
}
Value IntegerCircuit::max(const Operand& a, const Operand& b) {
  return extreme(Recorder(*state_), "max", Comparison::greater, a, b);
}

Pair IntegerCircuit::min_max(const Operand& a, const Operand& b) {
  Recorder r(*state_);
  const auto [x, y, type] = r.both("min_max", a, b, false);
  return r.two(ContentKey("exchange"), {x, y}, type, type,
               [is_signed = type.is_signed](Circuit& circuit, Form form, const Results& in) {
                 const Blocks both = radix::exchange(circuit, in[0], in[1], is_signed, form);
                 const auto half = both.begin() + static_cast<std::ptrdiff_t>(both.size() / 2);
                 return Results{Blocks(both.begin(), half), Blocks(half, both.end())};
               });
}

Value IntegerCircuit::select(const Value& condition, const Operand& a, const Operand& b) {
  Recorder r(*state_);
  const Ref c = r.bit("select, condition", condition);
  const bool bits = (a.value() != nullptr && a.value()->type().is_bit()) &&
                    (b.value() != nullptr && b.value()->type().is_bit());
  if (bits)
    return r.one(
        ContentKey("mux"), {c, r.ref(*a.value()), r.ref(*b.value())}, kBit,
        [](Circuit& circuit, Form, const Results& in) {
          const Sum both = 2 * in[1][0] + in[2][0];
          Sum read = 4 * in[0][0] + both;
          if (read.norm2() > circuit.max_norm2())  // the condition chooses itself
            read = circuit.look_up(in[0][0], [](u64 v) { return 4 * v; }) + both;
          return Blocks{circuit.look_up(read, [](u64 v) { return v >= 4 ? v >> 1 & 1 : v & 1; })};
        });
  const auto [x, y, type] = r.both("select", a, b, false);
  // select(c, y + z, y): what is added goes with the bit
  if (!x.is_known && (r.node(x).kind == Kind::add || r.node(x).kind == Kind::subtract)) {
    const bool added = r.node(x).kind == Kind::add;
    const std::vector<Ref> terms = r.node(x).operands;
    if (terms[0].same(y)) return where(r, added, c, y, terms[1], type);
    if (added && terms[1].same(y)) return where(r, true, c, y, terms[0], type);
  }
  return r.one(
      ContentKey("choose"), {c, x, y}, type,
      [](Circuit& circuit, Form, const Results& in) {
        return radix::choose(circuit, in[0][0], in[1], in[2]);
      },
      Kind::choose);
}

// ---- bits

namespace {

template <class Recorder, class F>
Value shifted(Recorder r, const char* name, const Value& a, u32 count, F f) {
  const Ref x = r.integers(name, a);
  radix::check_count(count, a.type().bits);
  return r.one(ContentKey(name).add(count), {x}, a.type(),
               [=, type = a.type()](Circuit& circuit, Form, const Results& in) {
                 return f(circuit, in[0], count, type);
               });
}

template <class Recorder>
Value shifted(Recorder r, const char* name, const Value& a, const Value& count, Direction direction,
              Fill fill) {
  const Ref x = r.integers(name, a), by = r.integers(name, count);
  radix::check_shift_count(count.type().is_signed);
  return r.one(ContentKey("shift").add(u64(direction)).add(u64(fill)), {x, by}, a.type(),
               [=](Circuit& circuit, Form, const Results& in) {
                 return radix::shift(circuit, in[0], in[1], direction, fill);
               });
}

template <class Recorder>
Value blockwise(Recorder r, const char* name, const Operand& a, const Operand& b,
                u64 (*f)(u64, u64)) {
  const auto [x, y, type] = r.both(name, a, b, false);
  return r.one(ContentKey(name), {x, y}, type, [f](Circuit& circuit, Form, const Results& in) {
    return radix::blockwise(circuit, in[0], in[1], f);
  });
}

template <class Recorder, class F>
Value counted(Recorder r, const char* name, const Value& a, F f) {
  const Ref x = r.integers(name, a);
  return r.one(ContentKey(name), {x}, {radix::count_bits(a.type().bits), false}, of_one(f));
}

}  // namespace

Value IntegerCircuit::shift_left(const Value& a, u32 count) {
  return shifted(Recorder(*state_), "shift left", a, count,
                 [](Circuit& circuit, const Blocks& x, u32 k, Type) {
                   return radix::shift_left(circuit, x, k);
                 });
}
Value IntegerCircuit::shift_right(const Value& a, u32 count) {
  return shifted(Recorder(*state_), "shift right", a, count,
                 [](Circuit& circuit, const Blocks& x, u32 k, Type type) {
                   return radix::shift_right(circuit, x, k, type.is_signed);
                 });
}
Value IntegerCircuit::rotate_left(const Value& a, u32 count) {
  return shifted(Recorder(*state_), "rotate left", a, count,
                 [](Circuit& circuit, const Blocks& x, u32 k, Type) {
                   return radix::rotate(x, k, Direction::left, circuit);
                 });
}
Value IntegerCircuit::rotate_right(const Value& a, u32 count) {
  radix::check_count(count, a.type().is_bit() ? count + 1 : a.type().bits);
  return rotate_left(a, count == 0 ? 0 : a.type().bits - count);
}
Value IntegerCircuit::shift_left(const Value& a, const Value& count) {
  return shifted(Recorder(*state_), "shift left", a, count, Direction::left, Fill::zero);
}
Value IntegerCircuit::shift_right(const Value& a, const Value& count) {
  return shifted(Recorder(*state_), "shift right", a, count, Direction::right,
                 a.type().is_signed ? Fill::sign : Fill::zero);
}
Value IntegerCircuit::rotate_left(const Value& a, const Value& count) {
  return shifted(Recorder(*state_), "rotate left", a, count, Direction::left, Fill::around);
}
Value IntegerCircuit::rotate_right(const Value& a, const Value& count) {
  return shifted(Recorder(*state_), "rotate right", a, count, Direction::right, Fill::around);
}

Value IntegerCircuit::bit_and(const Operand& a, const Operand& b) {
  return blockwise(Recorder(*state_), "and", a, b, [](u64 u, u64 v) { return u & v; });
}
Value IntegerCircuit::bit_or(const Operand& a, const Operand& b) {
  return blockwise(Recorder(*state_), "or", a, b, [](u64 u, u64 v) { return u | v; });
}
Value IntegerCircuit::bit_xor(const Operand& a, const Operand& b) {
  return blockwise(Recorder(*state_), "xor", a, b, [](u64 u, u64 v) { return u ^ v; });
}
Value IntegerCircuit::bit_not(const Value& a) {
  Recorder r(*state_);
  const Ref x = r.integers("not", a);
  return r.one(ContentKey("not"), {x}, a.type(),
               [](Circuit&, Form, const Results& in) { return radix::bit_not(in[0]); });
}

Value IntegerCircuit::leading_zeros(const Value& a) {
  return counted(Recorder(*state_), "leading zeros", a, radix::leading_zeros);
}
Value IntegerCircuit::trailing_zeros(const Value& a) {
  return counted(Recorder(*state_), "trailing zeros", a, radix::trailing_zeros);
}
Value IntegerCircuit::count_ones(const Value& a) {
  return counted(Recorder(*state_), "count ones", a, radix::count_ones);
}

Value IntegerCircuit::convert(const Value& a, u32 bits, bool is_signed) {
  Recorder r(*state_);
  radix::check_bits(bits);
  return r.one(ContentKey("convert"), {r.ref(a)}, {bits, is_signed},
               [=, from_signed = a.type().is_signed](Circuit& circuit, Form, const Results& in) {
                 return radix::resized(circuit, in[0], bits / 2, from_signed);
               });
}

Value IntegerCircuit::look_up(const Value& index, std::span<const u64> entries, u32 bits,
                              bool is_signed) {
  Recorder r(*state_);
  const Ref at = r.integers("table", index);
  auto table = radix::table_of(index.type().bits, index.type().is_signed, entries, bits, is_signed);
  return r.one(ContentKey("table").add(entries.size()).add(entries), {at}, {bits, is_signed},
               [table = std::move(table), bits](Circuit& circuit, Form, const Results& in) {
                 return radix::table_entry(circuit, in[0], table, bits / 2);
               });
}

Value IntegerCircuit::gate(Gate gate, std::span<const Value> bits) {
  Recorder r(*state_);
  const GateConstants& g = constants(gate);
  if (bits.size() != g.inputs)
    throw ParameterError(
        cat("circuit, gate '", g.name, "' of ", bits.size(), " bits, expected ", g.inputs),
        {{"inputs", bits.size()}, {"expected", g.inputs}});
  std::vector<Ref> operands;
  for (const Value& bit : bits) operands.push_back(r.bit("gate", bit));
  return r.one(ContentKey("gate").add(u64(gate)), std::move(operands), kBit,
               [counts = g.counts](Circuit& circuit, Form, const Results& in) {
                 Sum sum;
                 for (const Blocks& bit : in) sum = sum + bit[0];
                 return Blocks{circuit.look_up(sum, [=](u64 v) { return u64(counts >> v & 1); })};
               });
}

Value IntegerCircuit::not_(const Value& bit) {
  Recorder r(*state_);
  return r.one(ContentKey("not of a bit"), {r.bit("not", bit)}, kBit,
               [](Circuit&, Form, const Results& in) { return Blocks{1 - in[0][0]}; });
}

}  // namespace crenel::tfhe
