// Encrypted integers on plain arrays; crenel.tfhe dresses them.
#include <nanobind/stl/tuple.h>

#include "crenel/tfhe/integer_circuit.h"
#include "tfhe_operations.h"

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

struct Computed {
  using Self = const IntegerEvaluator;
  using Operand = tfhe::IntegerOperand;
  using Integers = TfheIntegers;
  using Bits = TfheCiphertext;
  using Guard = ReleaseGil;
  static constexpr const char* kIntegers = "integers";
  static constexpr bool kRounds = true;
  static const tfhe::Integers& value(const TfheIntegers& x) { return x.value; }
  static const tfhe::Ciphertext& value(const TfheCiphertext& x) { return x.value; }
  template <class Result>
  static auto result(Self& ev, Result&& made) {
    return wrap(ev, std::forward<Result>(made));
  }
};
using IntegersClass = IntegerOperations<Computed>::Class;

using Parts = std::vector<const TfheIntegers*>;

void bind_others(IntegersClass& c) {
  using E = IntegerEvaluator;
  c.def("run", &run_circuit, "circuit"_a, "arrays"_a, ReleaseGil())
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
          "sum", [](const E& ev, const Parts& parts) { return wrap(ev, ev.sum(values_of(parts))); },
          "parts"_a, ReleaseGil())
      .def(
          "dot",
          [](const E& ev, const Parts& a, const Parts& b) {
            return wrap(ev, ev.dot(values_of(a), values_of(b)));
          },
          "a"_a, "b"_a, ReleaseGil())
      .def(
          "sum_messages",
          [](const E& ev, const std::vector<const TfheCiphertext*>& parts, u32 bits,
             bool is_signed) {
            return wrap(ev, ev.sum_messages(values_of(parts), bits, is_signed));
          },
          "parts"_a, "bits"_a, "signed"_a, ReleaseGil());
}

}  // namespace

void bind_tfhe_integers(nb::module_& m) {
  bind_tfhe_circuits(m);
  IntegersClass c(m, "TfheIntegerEvaluator", "Operations on encrypted integers.");
  c.def(
       "__init__",
       [](IntegerEvaluator* self, const tfhe::Evaluator& evaluator, const std::string& form) {
         new (self) IntegerEvaluator(evaluator, tfhe::circuit_form_from_string(form));
       },
       "evaluator"_a, "form"_a = "automatic")
      .def_prop_ro("form", [](const IntegerEvaluator& ev) { return tfhe::name_of(ev.form()); });
  IntegerOperations<Computed>(c).bind();
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
