// Evaluators of TFHE on plain arrays; crenel.tfhe.Evaluator is in Python.
#include <nanobind/stl/variant.h>

#include <map>

#include "crenel/tfhe/message.h"
#include "tfhe.h"

namespace crenel::python {
namespace {

using tfhe::Evaluator;
using tfhe::MessageEvaluator;

using Pointers = std::vector<const TfheCiphertext*>;

TfheCiphertext wrap(const Evaluator& ev, tfhe::Ciphertext&& value) {
  return {ev.context(), std::move(value)};
}

TfheCiphertext gate(const Evaluator& ev, const std::string& name, const Pointers& inputs) {
  return wrap(ev, ev.gate(tfhe::gate_from_string(name), values_of(inputs)));
}

TfheCiphertext linear(const Evaluator& ev, const Pointers& inputs, const std::vector<i64>& factors,
                      i64 constant, u32 plain_modulus) {
  if (inputs.size() != factors.size())
    throw ParameterError(cat(factors.size(), " factors, expected ", inputs.size()),
                         {{"factors", factors.size()}, {"inputs", inputs.size()}});
  const std::vector<const tfhe::Ciphertext*> values = values_of(inputs);
  std::vector<tfhe::Term> terms;
  for (std::size_t i = 0; i < values.size(); ++i) terms.push_back({values[i], factors[i]});
  return wrap(ev, ev.linear(terms, constant, plain_modulus));
}

/// One table for all, or with `index` one of several for each message.
TfheCiphertext lut(const Evaluator& ev, const TfheCiphertext& a,
                   std::vector<std::vector<u64>> tables, u32 out_modulus,
                   const std::optional<Array<u32>>& index) {
  std::vector<tfhe::Lut> luts;
  for (auto& table : tables) luts.push_back({std::move(table), out_modulus});
  const std::span<const u32> chosen = index ? as_span(*index) : std::span<const u32>();
  return released([&] {
    if (!index && luts.size() == 1) return wrap(ev, ev.lut(a.value, luts.front()));
    return wrap(ev, ev.lut(a.value, luts, chosen));
  });
}

std::vector<TfheCiphertext> decompose(const Evaluator& ev, const TfheCiphertext& a, u32 base_bits) {
  auto digits = ev.decompose(a.value, base_bits);
  std::vector<TfheCiphertext> out;
  for (tfhe::Ciphertext& digit : digits) out.push_back(wrap(ev, std::move(digit)));
  return out;
}

void bind_messages(nb::module_& m) {
  nb::class_<Evaluator>(m, "TfheEvaluator", "Operations on encrypted messages.")
      .def_prop_ro("context", &Evaluator::context)
      .def_prop_ro("steps", &Evaluator::steps)
      .def_prop_ro("step_table", [](const Evaluator& ev) { return to_rules(ev.step_table()); })
      .def_prop_ro("keys", [](const Evaluator& ev) { return TfheKeys{ev.context(), ev.keys()}; })
      .def_prop_ro("max_p_fail_log2", &Evaluator::max_p_fail_log2)
      .def(
          "p_fail_log2",
          [](const Evaluator& ev, const std::string& name) { return ev.p_fail_log2(name); },
          "operation"_a)
      .def("gate", &gate, "name"_a, "inputs"_a, ReleaseGil())
      .def("linear", &linear, "inputs"_a, "factors"_a, "constant"_a = 0, "plain_modulus"_a = 0,
           ReleaseGil())
      .def("lut", &lut, "a"_a, "tables"_a, "out_modulus"_a = 0, "index"_a = nb::none())
      .def("decompose", &decompose, "a"_a, "base_bits"_a, ReleaseGil())
      .def(
          "invert",  // stubs leave out names that end with an underscore
          [](const Evaluator& ev, const TfheCiphertext& a) { return wrap(ev, ev.not_(a.value)); },
          "a"_a, ReleaseGil())
      .def(
          "mux",
          [](const Evaluator& ev, const TfheCiphertext& c, const TfheCiphertext& a,
             const TfheCiphertext& b) { return wrap(ev, ev.mux(c.value, a.value, b.value)); },
          "condition"_a, "a"_a, "b"_a, ReleaseGil())
      .def(
          "refresh",
          [](const Evaluator& ev, const TfheCiphertext& a) {
            return wrap(ev, ev.refresh(a.value));
          },
          "a"_a, ReleaseGil())
      .def(
          "trivial",
          [](const Evaluator& ev, const Array<u64>& messages, u32 plain_modulus) {
            return wrap(ev, ev.trivial(as_span(messages), plain_modulus));
          },
          "messages"_a, "plain_modulus"_a = 0, ReleaseGil())
      .def(
          "floor",
          [](const Evaluator& ev, const TfheCiphertext& a, i64 bits) {
            return wrap(ev, ev.floor(a.value, as_unsigned<u32>(bits, "bits")));
          },
          "a"_a, "bits"_a, ReleaseGil())
      .def(
          "sign",
          [](const Evaluator& ev, const TfheCiphertext& a) { return wrap(ev, ev.sign(a.value)); },
          "a"_a, ReleaseGil())
      .def(
          "compress",
          [](const Evaluator& ev, const TfheCiphertext& a, bool lists) {
            return TfheCompressed{ev.context(), ev.compress(a.value, stored_form(lists))};
          },
          "a"_a, "lists"_a = false, ReleaseGil())
      .def(
          "decompress",
          [](const Evaluator& ev, const TfheCompressed& c) {
            return wrap(ev, ev.decompress(c.value));
          },
          "compressed"_a, ReleaseGil())
      .def(
          "pack",
          [](const Evaluator& ev, const TfheCiphertext& a) { return wrap(ev, ev.pack(a.value)); },
          "single"_a, ReleaseGil());
}

/// Messages, or a public value.
using MessageTerm = std::variant<const TfheCiphertext*, i64>;

tfhe::MessageOperand message(const MessageTerm& x) {
  if (const i64* value = std::get_if<i64>(&x)) return *value;
  const TfheCiphertext* messages = std::get<const TfheCiphertext*>(x);
  if (messages == nullptr) throw nb::type_error("expected messages, got None");
  return messages->value;
}

void bind_message_arithmetic(nb::module_& m) {
  using E = MessageEvaluator;
  nb::class_<E>(m, "TfheMessageEvaluator", "Arithmetic and comparisons of encrypted messages.")
      .def(nb::init<Evaluator>(), "evaluator"_a)
      .def(
          "add",
          [](const E& ev, const MessageTerm& a, const MessageTerm& b) {
            return wrap(ev.evaluator(), ev.add(message(a), message(b)));
          },
          "a"_a, "b"_a, ReleaseGil())
      .def(
          "sub",
          [](const E& ev, const MessageTerm& a, const MessageTerm& b) {
            return wrap(ev.evaluator(), ev.sub(message(a), message(b)));
          },
          "a"_a, "b"_a, ReleaseGil())
      .def(
          "mul",
          [](const E& ev, const TfheCiphertext& a, i64 factor) {
            return wrap(ev.evaluator(), ev.mul(a.value, factor));
          },
          "a"_a, "factor"_a, ReleaseGil())
      .def(
          "sum",
          [](const E& ev, const Pointers& parts) {
            return wrap(ev.evaluator(), ev.sum(values_of(parts)));
          },
          "parts"_a, ReleaseGil())
      .def(
          "compare",
          [](const E& ev, const std::string& name, const MessageTerm& a, const MessageTerm& b) {
            return wrap(ev.evaluator(), ev.compare(comparison(name), message(a), message(b)));
          },
          "comparison"_a, "a"_a, "b"_a, ReleaseGil())
      .def(
          "select",
          [](const E& ev, const TfheCiphertext& condition, const MessageTerm& a,
             const MessageTerm& b) {
            return wrap(ev.evaluator(), ev.select(condition.value, message(a), message(b)));
          },
          "condition"_a, "a"_a, "b"_a, ReleaseGil())
      .def(
          "one_hot",
          [](const E& ev, const TfheCiphertext& a) {
            return wrap(ev.evaluator(), ev.one_hot(a.value));
          },
          "a"_a, ReleaseGil());
}

}  // namespace

tfhe::Comparison comparison(const std::string& name) {
  using tfhe::Comparison;
  static const std::map<std::string, Comparison> known{
      {"equal", Comparison::equal},     {"not_equal", Comparison::not_equal},
      {"less", Comparison::less},       {"less_equal", Comparison::less_equal},
      {"greater", Comparison::greater}, {"greater_equal", Comparison::greater_equal}};
  const auto found = known.find(name);
  if (found == known.end())
    throw ParameterError(cat("unknown comparison '", name, "'"), {{"comparison", name}});
  return found->second;
}

void bind_tfhe_evaluator(nb::module_& m) {
  bind_messages(m);
  bind_message_arithmetic(m);
}

void bind_tfhe(nb::module_& m) {
  bind_tfhe_params(m);
  bind_tfhe_objects(m);
  bind_tfhe_evaluator(m);
  bind_tfhe_integers(m);
}

}  // namespace crenel::python
