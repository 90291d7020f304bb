// The bridge on plain arrays; crenel.bridge dresses it.
#include <array>

#include "tfhe.h"

namespace crenel::python {
namespace {

using bridge::Bridge;
using bridge::Grid;

/// Keys with the contexts that they are saved by.
struct BridgeKeys {
  ckks::Context ckks;
  tfhe::Context tfhe;
  bridge::Keys value;
};

struct BoundBridge {
  ckks::Context ckks;
  tfhe::Context tfhe;
  Bridge value;
};

BridgeKeys keys_from_bytes(const ckks::Context& ckks, const tfhe::Context& tfhe, nb::handle data,
                           std::optional<Bytes> max_bytes) {
  const BufferView view(data, max_bytes);
  const LoadLimits limits = limits_of(max_bytes);
  return released([&] {
    return BridgeKeys{ckks, tfhe, bridge::keys_from_bytes(ckks, tfhe, view.bytes(), limits)};
  });
}

TfheCiphertext to_messages(const BoundBridge& b, const ckks::Evaluator& ev, const BridgeKeys& keys,
                           nb::handle object, double low, double step) {
  const ckks::Ciphertext& a = as_ciphertext(object);
  return released(
      [&] { return TfheCiphertext{b.tfhe, b.value.to_messages(ev, keys.value, a, {low, step})}; });
}

Ciphertext to_slots(const BoundBridge& b, const ckks::Evaluator& ev, const tfhe::Evaluator& tfhe,
                    const BridgeKeys& keys, const TfheCiphertext& a, const Array<double>& values) {
  const auto span = as_span(values);
  return released(
      [&] { return Ciphertext{b.ckks, b.value.to_slots(ev, tfhe, keys.value, a.value, span)}; });
}

Ciphertext lut(const BoundBridge& b, const ckks::Evaluator& ev, const tfhe::Evaluator& tfhe,
               const BridgeKeys& keys, nb::handle object, double low, double step,
               const Array<double>& values, nb::handle progress) {
  const ckks::Ciphertext& a = as_ciphertext(object);
  const auto span = as_span(values);
  const Progress told(progress);
  return released(
      [&] { return Ciphertext{b.ckks, b.value.lut(ev, tfhe, keys.value, a, {low, step}, span)}; });
}

Ciphertext compare(const BoundBridge& b, const ckks::Evaluator& ev, const tfhe::Evaluator& tfhe,
                   const BridgeKeys& keys, nb::handle object, double threshold, double bound,
                   double less, double otherwise, nb::handle progress) {
  const ckks::Ciphertext& a = as_ciphertext(object);
  const Progress told(progress);
  return released([&] {
    const std::array values{less, otherwise};
    return Ciphertext{b.ckks, b.value.compare(ev, tfhe, keys.value, a, threshold, bound, values)};
  });
}

void bind_bridge_keys(nb::module_& m) {
  nb::class_<BridgeKeys>(m, "BridgeKeys",
                         "What a server needs to cross between CKKS and TFHE, beside the keys of\n"
                         "both: switching keys between their secrets, no secret. Immutable.")
      .def_prop_ro(
          "ckks_secret_key_id",
          [](const BridgeKeys& k) { return k.value.ckks_secret_key_id().text(); },
          "The public name of the CKKS secret that they lead from and to.")
      .def_prop_ro(
          "tfhe_secret_key_id",
          [](const BridgeKeys& k) { return k.value.tfhe_secret_key_id().text(); },
          "The public name of the TFHE secrets that they lead to and from.")
      .def_prop_ro(
          "nbytes", [](const BridgeKeys& k) { return k.value.bytes(); }, "Bytes on the device.")
      .def_prop_ro(
          "wire_bytes", [](const BridgeKeys& k) { return k.value.wire_bytes(); },
          "Bytes when serialised, without the head: uniform halves travel as seeds.")
      .def(
          "to_bytes",
          [](const BridgeKeys& k) {
            return to_python(released([&] { return bridge::to_bytes(k.ckks, k.tfhe, k.value); }));
          },
          "A complete safetensors file; read by `crenel.bridge.keys_from_bytes`.")
      .def("__repr__", [](const BridgeKeys& k) {
        return cat("<BridgeKeys ", k.ckks.params().name(), " and ", k.tfhe.params().name(), ", ",
                   k.value.bytes(), " bytes>");
      });
  m.def(
      "make_bridge_keys",
      [](const ckks::Client& ckks, const tfhe::Client& tfhe) {
        return BridgeKeys{ckks.context(), tfhe.context(), bridge::make_keys(ckks, tfhe)};
      },
      "ckks"_a, "tfhe"_a, ReleaseGil());
  m.def("bridge_keys_from_bytes", &keys_from_bytes, "ckks"_a, "tfhe"_a, "data"_a,
        "max_bytes"_a = nb::none());
}

void bind_noise(nb::module_& m) {
  nb::class_<bridge::Noise>(m, "BridgeNoise",
                            "Standard deviations of phases by the bridge's model, on a circle of\n"
                            "length 1: docs/theory/bridge.md, \"Noise\".")
      .def_ro("extracted", &bridge::Noise::extracted,
              "What crossing to TFHE adds to a number, from SlotToCoeff on.")
      .def_ro("reading", &bridge::Noise::reading, "Of a table or a comparison that reads it.")
      .def_ro("looked_up", &bridge::Noise::looked_up, "Of what a table gives.")
      .def_ro("packed", &bridge::Noise::packed, "What packing adds to that.")
      .def("__repr__", [](const bridge::Noise& n) {
        return cat("<BridgeNoise extracted ", n.extracted, ", reading ", n.reading, ", looked_up ",
                   n.looked_up, ", packed ", n.packed, ">");
      });
}

void bind_key_facts(nb::module_& m) {
  nb::class_<bridge::KeyFacts>(m, "BridgeKeyFacts",
                               "What the bridge's keys are. Moduli with special primes, in bits.")
      .def_ro("nbytes", &bridge::KeyFacts::bytes, "Bytes on the device.")
      .def_ro("wire_bytes", &bridge::KeyFacts::wire_bytes,
              "Bytes when serialised, without the head.")
      .def_ro("middle_dim", &bridge::KeyFacts::middle_dim,
              "Degree of the ring that most of packing computes in.")
      .def_ro("log_down", &bridge::KeyFacts::log_down,
              "Of the key to the TFHE secret, at the degree of its ring.")
      .def_ro("log_middle", &bridge::KeyFacts::log_middle,
              "Of keys under the secret between, at degree `middle_dim`.")
      .def_ro("log_last", &bridge::KeyFacts::log_last,
              "Of those under the CKKS secret, at the degree of its ring.");
}

}  // namespace

void bind_bridge(nb::module_& m) {
  bind_bridge_keys(m);
  bind_noise(m);
  bind_key_facts(m);
  nb::class_<BoundBridge>(m, "BridgeCore", "The bridge on arrays of crenel._crenel.")
      .def(
          "__init__",
          [](BoundBridge* self, const ckks::Context& ckks, const tfhe::Context& tfhe,
             std::optional<i64> slots) {
            const u64 count = as_slots(slots);
            const Computing computing;
            new (self) BoundBridge{ckks, tfhe, Bridge(ckks, tfhe, count)};
          },
          "ckks"_a, "tfhe"_a, "slots"_a = nb::none())
      .def_prop_ro("slots", [](const BoundBridge& b) { return b.value.slots(); })
      .def_prop_ro("messages", [](const BoundBridge& b) { return b.value.messages(); })
      .def_prop_ro("level", [](const BoundBridge& b) { return b.value.level(); })
      .def_prop_ro("output_level", [](const BoundBridge& b) { return b.value.output_level(); })
      .def_prop_ro("bootstrap", [](const BoundBridge& b) { return b.value.bootstrap(); })
      .def_prop_ro("key_facts", [](const BoundBridge& b) { return b.value.key_facts(); })
      .def(
          "noise",
          [](const BoundBridge& b, double low, double step) {
            return b.value.noise(Grid{low, step});
          },
          "low"_a, "step"_a)
      .def(
          "noise_of_comparison",
          [](const BoundBridge& b, double bound) { return b.value.noise(bound); }, "bound"_a)
      .def("to_messages", &to_messages, "ckks"_a, "keys"_a, "a"_a, "low"_a, "step"_a)
      .def("to_slots", &to_slots, "ckks"_a, "tfhe"_a, "keys"_a, "a"_a, "values"_a)
      .def("lut", &lut, "ckks"_a, "tfhe"_a, "keys"_a, "a"_a, "low"_a, "step"_a, "values"_a,
           "progress"_a = nb::none())
      .def("compare", &compare, "ckks"_a, "tfhe"_a, "keys"_a, "a"_a, "threshold"_a, "bound"_a,
           "less"_a, "otherwise"_a, "progress"_a = nb::none());
}

}  // namespace crenel::python
