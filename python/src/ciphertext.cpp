// Ciphertexts, plaintexts and keys: metadata and bytes.
#include <nanobind/stl/filesystem.h>

#include "arrays.h"

namespace crenel::python {
namespace {

template <class T>
nb::bytes serialise(const Bound<T>& object) {
  return to_python(released([&] { return ckks::to_bytes(object.context, object.value); }));
}

std::string describe(const ckks::Metadata& m) {
  return cat("level ", m.level, ", scale ", m.scale, ", ", m.slots, m.real ? " real" : " complex",
             " slots");
}

template <class T>
void bind_metadata(nb::class_<Bound<T>>& c) {
  c.def_prop_ro(
       "level", [](const Bound<T>& o) { return o.value.level(); },
       "Index of the modulus; 0 is the last level.")
      .def_prop_ro(
          "scale", [](const Bound<T>& o) { return o.value.scale(); },
          "Message = decoded polynomial / scale.")
      .def_prop_ro(
          "slots", [](const Bound<T>& o) { return o.value.slots(); },
          "Number of slots; fewer than N/2 repeat in the full vector.")
      .def_prop_ro(
          "real", [](const Bound<T>& o) { return o.value.metadata().real; },
          "Every slot is known to be real.")
      .def_prop_ro(
          "params_id", [](const Bound<T>& o) { return o.value.params_id(); },
          "Content hash of the parameters.")
      .def("to_bytes", &serialise<T>, "A complete safetensors file.");
}

}  // namespace

const Ciphertext& as_ciphertext(nb::handle object) {
  if (nb::isinstance<Ciphertext>(object)) return nb::cast<const Ciphertext&>(object);
  const nb::object inner = nb::getattr(object, "ciphertext", nb::none());
  if (!nb::isinstance<Ciphertext>(inner)) {
    const auto type = nb::cast<std::string>(object.type().attr("__name__"));
    throw nb::type_error(("expected a ciphertext, got " + type).c_str());
  }
  return nb::cast<const Ciphertext&>(inner);  // the operand keeps it alive
}

void bind_ciphertext(nb::module_& m) {
  nb::class_<Plaintext> plaintext(m, "Plaintext", "An encoded vector: one polynomial.");
  bind_metadata(plaintext);
  plaintext.def("__repr__", [](const Plaintext& p) {
    return cat("<ckks.Plaintext ", describe(p.value.metadata()), ">");
  });

  nb::class_<Ciphertext> ciphertext(
      m, "Ciphertext",
      "An encrypted vector: two polynomials, three before relinearisation. Immutable.");
  bind_metadata(ciphertext);
  ciphertext
      .def_prop_ro(
          "components", [](const Ciphertext& c) { return c.value.components(); },
          "2, or 3 before relinearisation.")
      .def_prop_ro(
          "batch", [](const Ciphertext& c) { return c.value.batch(); },
          "Vectors in this ciphertext.")
      .def_prop_ro(
          "nbytes", [](const Ciphertext& c) { return c.value.bytes(); }, "Bytes on the device.")
      .def(
          "clone", [](const Ciphertext& c) { return Ciphertext{c.context, c.value.clone()}; },
          "A copy.", ReleaseGil())
      .def("__repr__", [](const Ciphertext& c) {
        return cat("<ckks.Ciphertext ", describe(c.value.metadata()), ", ", c.value.components(),
                   " components>");
      });

  nb::class_<EvaluationKeys>(m, "EvaluationKeys",
                             "What a server needs to compute: no secret. Immutable.")
      .def_prop_ro(
          "rotations", [](const EvaluationKeys& k) { return k.value.rotations(); },
          "Rotation steps with a key, ascending.")
      .def_prop_ro(
          "conjugate", [](const EvaluationKeys& k) { return k.value.has_conjugation(); },
          "Is there a key for conjugation?")
      .def_prop_ro(
          "relinearisation", [](const EvaluationKeys& k) { return k.value.has_relinearisation(); },
          "Is there a key for products of ciphertexts?")
      .def_prop_ro(
          "has_encapsulation", [](const EvaluationKeys& k) { return k.value.has_encapsulation(); },
          "Are there the keys to an ephemeral sparse secret and back?")
      .def_prop_ro(
          "nbytes", [](const EvaluationKeys& k) { return k.value.bytes(); }, "Bytes on the device.")
      .def_prop_ro(
          "wire_bytes", [](const EvaluationKeys& k) { return k.value.wire_bytes(); },
          "Bytes when serialised: uniform halves travel as seeds.")
      .def("to_bytes", &serialise<ckks::EvaluationKeys>, "A complete safetensors file.")
      .def(
          "save",
          [](const EvaluationKeys& k, const std::filesystem::path& path) {
            ckks::save_evaluation_keys(k.context, k.value, path.string());
          },
          "path"_a, ReleaseGil(), nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Write the file of to_bytes key by key, without holding all of it in memory. It appears\n"
          "under its name when it is complete.")
      .def("__repr__", [](const EvaluationKeys& k) {
        return cat("<ckks.EvaluationKeys ", k.value.rotations().size(), " rotations",
                   k.value.has_conjugation() ? ", conjugation" : "",
                   k.value.has_relinearisation() ? ", relinearisation" : "",
                   k.value.has_encapsulation() ? ", encapsulation" : "", ", ", k.value.bytes(),
                   " bytes>");
      });
}

}  // namespace crenel::python
