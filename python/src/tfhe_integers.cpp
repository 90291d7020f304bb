// Encrypted integers on plain arrays; crenel.tfhe dresses them.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include "crenel/tfhe/integer_circuit.h"
#include "tfhe.h"

namespace crenel::python {
namespace {

using tfhe::IntegerEvaluator;

TfheIntegers wrap(const IntegerEvaluator& ev, tfhe::Integers&& value) {
  return {ev.evaluator().context(), std::move(value)};
}
TfheCiphertext wrap(const IntegerEvaluator& ev, tfhe::Ciphertext&& value) {
  return {ev.evaluator().context(), std::move(value)};
}
template <class A, class B>
auto wrap(const IntegerEvaluator& ev, std::pair<A, B>&& both) {
  return std::make_pair(wrap(ev, std::move(both.first)), wrap(ev, std::move(both.second)));
}

/// Integers, or the words of a public value as two's complement of 256 bits.
using Operand = std::variant<const TfheIntegers*, std::vector<u64>>;

tfhe::IntegerOperand operand(const Operand& x) {
  if (const auto* words = std::get_if<std::vector<u64>>(&x))
    return tfhe::WideValue::of_words(
        std::span(*words).first(std::min<std::size_t>(words->size(), tfhe::WideValue::kWords)),
        true);
  const TfheIntegers* integers = std::get<const TfheIntegers*>(x);
  if (integers == nullptr) throw nb::type_error("expected integers, got None");
  return integers->value;
}

using Class = nb::class_<IntegerEvaluator>;
using In = const tfhe::IntegerOperand&;

template <class Result>
void binary(Class& c, const char* name, Result (IntegerEvaluator::*op)(In, In) const) {
  c.def(
      name,
      [op](const IntegerEvaluator& ev, const Operand& a, const Operand& b) {
        return wrap(ev, (ev.*op)(operand(a), operand(b)));
      },
      "a"_a, "b"_a, ReleaseGil());
}

/// Division rounded as asked.
template <class Result>
void division(Class& c, const char* name, Result (IntegerEvaluator::*op)(In, In, bool) const) {
  c.def(
      name,
      [op](const IntegerEvaluator& ev, const Operand& a, const Operand& b, bool floored) {
        return wrap(ev, (ev.*op)(operand(a), operand(b), floored));
      },
      "a"_a, "b"_a, "floored"_a = true, ReleaseGil());
}

/// By a public count or encrypted ones.
using ByCount = tfhe::Integers (IntegerEvaluator::*)(const tfhe::Integers&, u32) const;
using ByIntegers = tfhe::Integers (IntegerEvaluator::*)(const tfhe::Integers&,
                                                        const tfhe::Integers&) const;
void shift(Class& c, const char* name, ByCount by_count, ByIntegers by_integers) {
  c.def(
       name,
       [by_count](const IntegerEvaluator& ev, const TfheIntegers& a, i64 count) {
         return wrap(ev, (ev.*by_count)(a.value, as_unsigned<u32>(count, "count")));
       },
       "a"_a, "count"_a, ReleaseGil())
      .def(
          name,
          [by_integers](const IntegerEvaluator& ev, const TfheIntegers& a,
                        const TfheIntegers& count) {
            return wrap(ev, (ev.*by_integers)(a.value, count.value));
          },
          "a"_a, "count"_a, ReleaseGil());
}

void unary(Class& c, const char* name,
           tfhe::Integers (IntegerEvaluator::*op)(const tfhe::Integers&) const) {
  c.def(
      name,
      [op](const IntegerEvaluator& ev, const TfheIntegers& a) {
        return wrap(ev, (ev.*op)(a.value));
      },
      "a"_a, ReleaseGil());
}

template <class T, class Plain>
std::vector<const Plain*> plain(const std::vector<const T*>& parts) {
  std::vector<const Plain*> values;
  for (const T* part : parts) {
    if (part == nullptr) throw nb::type_error("expected encrypted arrays, got None");
    values.push_back(&part->value);
  }
  return values;
}
using Parts = std::vector<const TfheIntegers*>;
const auto integers_of = plain<TfheIntegers, tfhe::Integers>;

void bind_operations(Class& c) {
  using E = IntegerEvaluator;
  binary(c, "add", &E::add);
  binary(c, "sub", &E::sub);
  binary(c, "mul", &E::mul);
  binary(c, "min", &E::min);
  binary(c, "max", &E::max);
  binary(c, "min_max", &E::min_max);
  binary(c, "bit_and", &E::bit_and);
  binary(c, "bit_or", &E::bit_or);
  binary(c, "bit_xor", &E::bit_xor);
  binary(c, "add_overflow", &E::add_overflow);
  binary(c, "sub_overflow", &E::sub_overflow);
  binary(c, "mul_overflow", &E::mul_overflow);
  division(c, "div", &E::div);
  division(c, "rem", &E::rem);
  division(c, "divmod", &E::divmod);
  shift(c, "shift_left", &E::shift_left, &E::shift_left);
  shift(c, "shift_right", &E::shift_right, &E::shift_right);
  shift(c, "rotate_left", &E::rotate_left, &E::rotate_left);
  shift(c, "rotate_right", &E::rotate_right, &E::rotate_right);
  unary(c, "neg", &E::neg);
  unary(c, "abs", &E::abs);
  unary(c, "bit_not", &E::bit_not);
  unary(c, "leading_zeros", &E::leading_zeros);
  unary(c, "trailing_zeros", &E::trailing_zeros);
  unary(c, "count_ones", &E::count_ones);
}

void bind_others(Class& c) {
  using E = IntegerEvaluator;
  c.def("run", &run_circuit, "circuit"_a, "arrays"_a, ReleaseGil());
  c.def(
       "compare",
       [](const E& ev, const std::string& name, const Operand& a, const Operand& b) {
         return wrap(ev, ev.compare(comparison(name), operand(a), operand(b)));
       },
       "comparison"_a, "a"_a, "b"_a, ReleaseGil())
      .def(
          "select",
          [](const E& ev, const TfheCiphertext& condition, const Operand& a, const Operand& b) {
            return wrap(ev, ev.select(condition.value, operand(a), operand(b)));
          },
          "condition"_a, "a"_a, "b"_a, ReleaseGil())
      .def(
          "convert",
          [](const E& ev, const TfheIntegers& a, u32 bits, bool is_signed) {
            return wrap(ev, ev.convert(a.value, bits, is_signed));
          },
          "a"_a, "bits"_a, "signed"_a, ReleaseGil())
      .def(
          "compress",
          [](const E& ev, const TfheIntegers& a, bool lists) {
            return TfheCompressed{ev.evaluator().context(),
                                  ev.compress(a.value, stored_form(lists))};
          },
          "a"_a, "lists"_a = false, ReleaseGil())
      .def(
          "decompress",
          [](const E& ev, const TfheCompressed& c) { return wrap(ev, ev.decompress(c.value)); },
          "compressed"_a, ReleaseGil())
      .def(
          "trivial",
          [](const E& ev, const Array<u64>& words, u32 bits, bool is_signed) {
            return wrap(ev, ev.trivial_words(as_span(words), bits, is_signed));
          },
          "words"_a, "bits"_a, "signed"_a, ReleaseGil())
      .def(
          "look_up",
          [](const E& ev, const TfheIntegers& index, const Array<u64>& words, u32 bits,
             bool is_signed) {
            return wrap(ev, ev.look_up(index.value, as_span(words), bits, is_signed));
          },
          "index"_a, "words"_a, "bits"_a, "signed"_a, ReleaseGil())
      .def(
          "random",
          [](const E& ev, u64 count, u32 bits, bool is_signed, const nb::bytes& seed) {
            std::array<u8, 32> given = tfhe::random_seed();
            if (seed.size() != 0 && seed.size() != given.size())
              throw ParameterError(cat("seed of ", seed.size(), " bytes, expected ", given.size()),
                                   {{"bytes", seed.size()}, {"expected", given.size()}});
            if (seed.size() != 0) std::memcpy(given.data(), seed.data(), given.size());
            return released([&] { return wrap(ev, ev.random(count, bits, is_signed, given)); });
          },
          "count"_a, "bits"_a, "signed"_a, "seed"_a = nb::bytes("", 0))
      .def(
          "sum",
          [](const E& ev, const Parts& parts) { return wrap(ev, ev.sum(integers_of(parts))); },
          "parts"_a, ReleaseGil())
      .def(
          "dot",
          [](const E& ev, const Parts& a, const Parts& b) {
            return wrap(ev, ev.dot(integers_of(a), integers_of(b)));
          },
          "a"_a, "b"_a, ReleaseGil())
      .def(
          "sum_messages",
          [](const E& ev, const std::vector<const TfheCiphertext*>& parts, u32 bits,
             bool is_signed) {
            return wrap(ev, ev.sum_messages(plain<TfheCiphertext, tfhe::Ciphertext>(parts), bits,
                                            is_signed));
          },
          "parts"_a, "bits"_a, "signed"_a, ReleaseGil());
}

}  // namespace

void bind_tfhe_integers(nb::module_& m) {
  bind_tfhe_circuits(m);
  Class c(m, "TfheIntegerEvaluator", "Operations on encrypted integers.");
  c.def(
       "__init__",
       [](IntegerEvaluator* self, const tfhe::Evaluator& evaluator, const std::string& form) {
         new (self) IntegerEvaluator(evaluator, tfhe::circuit_form_from_string(form));
       },
       "evaluator"_a, "form"_a = "automatic")
      .def_prop_ro("form", [](const IntegerEvaluator& ev) { return tfhe::name_of(ev.form()); });
  bind_operations(c);
  bind_others(c);
  m.def("tfhe_integer_operations", &tfhe::integer_operations);
  m.def(
      "tfhe_integer_cost",
      [](const std::string& operation, u32 bits, bool is_signed, const std::string& form, u64 size,
         u32 processors, double max_norm2, bool free_outputs) {
        const auto cost =
            tfhe::integer_cost(operation, bits, is_signed, tfhe::circuit_form_from_string(form),
                               size, processors, max_norm2, free_outputs);
        return std::make_tuple(cost.bootstraps, cost.key_switches, cost.depth, cost.rounds);
      },
      "operation"_a, "bits"_a, "signed"_a, "form"_a = "automatic", "size"_a = 1, "processors"_a = 1,
      "max_norm2"_a = 25.0, "free_outputs"_a = true);
}

}  // namespace crenel::python
