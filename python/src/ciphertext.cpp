// Ciphertexts, plaintexts and keys: metadata and bytes.
#include <nanobind/stl/filesystem.h>

#include "arrays.h"
#include "ciphertext_like.h"

namespace crenel::python {
namespace {

template <class T>
nb::bytes serialise(const T& object) {
  return to_python(released([&] { return ckks::to_bytes(object.context, object.value); }));
}

std::string describe(const ckks::Metadata& m) {
  return cat("level ", m.level, ", scale ", m.scale, ", ", m.slots, m.real ? " real" : " complex",
             " slots", m.bound < ckks::kUnknownBound ? cat(", bound ", brief(m.bound)) : "");
}

template <class T>
void bind_metadata(nb::class_<T>& c) {
  c.def_prop_ro(
       "level", [](const T& o) { return o.value.level(); },
       "Index of the modulus; 0 is the last level.")
      .def_prop_ro(
          "scale", [](const T& o) { return o.value.scale(); },
          "Message = decoded polynomial / scale.")
      .def_prop_ro(
          "slots", [](const T& o) { return o.value.slots(); },
          "Number of slots; fewer than N/2 repeat in the full vector.")
      .def_prop_ro(
          "real", [](const T& o) { return o.value.metadata().real; },
          "Every slot is known to be real.")
      .def_prop_ro(
          "bound", [](const T& o) { return o.value.bound(); },
          "Largest |slot| that it can have, errors not counted; inf: unknown. A plaintext without "
          "a\n"
          "stated bound has the largest that was encoded.")
      .def_prop_ro(
          "params_id", [](const T& o) { return o.value.params_id(); },
          "Content hash of the parameters.");
}

Ciphertext rows(const Ciphertext& c, u32 first, u32 count) {
  return released([&] { return Ciphertext{c.context, c.value.slice(first, count)}; });
}

Ciphertext item(const Ciphertext& c, i64 index) {
  const i64 batch = c.value.batch();
  if (index < -batch || index >= batch)
    throw nb::index_error(cat("row ", index, " of a batch of ", batch).c_str());
  return rows(c, static_cast<u32>(index < 0 ? index + batch : index), 1);
}

Ciphertext range(const Ciphertext& c, const nb::slice& key) {
  const auto [start, stop, step, count] = key.compute(c.value.batch());
  if (step != 1 || count == 0)
    throw ParameterError(
        cat("ranges have step 1 and at least one row, got ", nb::cast<std::string>(nb::str(key)),
            " of a batch of ", c.value.batch()),
        {{"key", nb::cast<std::string>(nb::str(key))}, {"batch", c.value.batch()}});
  return rows(c, static_cast<u32>(start), static_cast<u32>(count));
}

Ciphertext concatenate(nb::handle parts) {
  std::vector<const ckks::Ciphertext*> values;  // `held` keeps the objects alive
  const nb::list held(parts);
  for (nb::handle part : held) values.push_back(&as_ciphertext(part));
  if (values.empty()) throw ParameterError("concatenation of no ciphertexts", {{"parts", 0}});
  const nb::handle first = held[0];
  const ckks::Context context = nb::isinstance<Ciphertext>(first)
                                    ? nb::cast<const Ciphertext&>(first).context
                                    : nb::cast<const ckks::Operand&>(first).evaluator().context();
  return released([&] { return Ciphertext{context, ckks::concatenate(values)}; });
}

void bind_rows(nb::class_<Ciphertext>& c) {
  c.def(
       "__len__", [](const Ciphertext& x) { return x.value.batch(); }, "Vectors in the batch.")
      .def("__getitem__", &item, "index"_a, "A vector of the batch, copied. Raises IndexError.")
      .def("__getitem__", &range, "rows"_a,
           "A range of the batch, copied. Raises ParameterError for an empty range and for steps\n"
           "other than 1.")
      .def(
          "__array__",
          [](const Ciphertext&, const nb::args&, const nb::kwargs&) -> nb::object {
            throw nb::type_error("a ciphertext is not an array: decrypt it first");
          },
          nb::sig("def __array__(self, dtype: numpy.typing.DTypeLike | None = None, "
                  "copy: bool | None = None) -> typing.NoReturn"));
  c.attr("__array_ufunc__") = nb::none();  // numpy_array + ciphertext is no sum over its rows
}

void bind_encrypted(nb::module_& m) {
  nb::class_<Plaintext> plaintext(m, "Plaintext", "An encoded vector: one polynomial.");
  bind_metadata(plaintext);
  refuse_comparisons(plaintext, "a plaintext");
  plaintext.def(
      "to_bytes",
      [](const Plaintext& p, bool allow_exact) {
        return to_python(released([&] { return ckks::to_bytes(p.context, p.value, allow_exact); }));
      },
      nb::kw_only(), "allow_exact"_a = false,
      "A complete safetensors file.\n\n"
      "Raises StateError for what Client.decrypt_to_plaintext gave, unless `allow_exact`: whoever\n"
      "reads that file and the ciphertext has the secret key.");
  plaintext.def("__repr__", [](const Plaintext& p) {
    return cat("<ckks.Plaintext ", describe(p.value.metadata()), ">");
  });

  nb::class_<Ciphertext> ciphertext(
      m, "Ciphertext",
      "An encrypted vector: two polynomials, three before relinearisation. Immutable.\n\n"
      "It may hold a batch of vectors, which every operation treats alike: len(c) of them, c[1] "
      "one\n"
      "of them, c[2:5] some; ckks.concatenate joins them again.");
  bind_metadata(ciphertext);
  refuse_comparisons(ciphertext, "a ciphertext");
  refuse_operators(ciphertext);
  ciphertext.def("to_bytes", &serialise<Ciphertext>, "A complete safetensors file.");
  bind_rows(ciphertext);
  ciphertext
      .def_prop_ro(
          "secret_key_id", [](const Ciphertext& c) { return c.value.secret_key_id().text(); },
          "The public name of the secret key that decrypts it: 32 hexadecimal digits.")
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
      .def(
          "with_bound",
          [](const Ciphertext& c, std::optional<double> bound) {
            ckks::Ciphertext copy = c.value.clone();
            copy.state_bound(as_bound(bound));
            return Ciphertext{c.context, std::move(copy)};
          },
          "bound"_a.none(), ReleaseGil(),
          nb::sig("def with_bound(self, bound: float | None) -> Ciphertext"),
          "A copy that claims every |slot| to be at most `bound`, instead of what was known: for "
          "a\n"
          "result that you know to be smaller than its operations tell. None: unknown.\n\n"
          "Raises ParameterError for a bound that is not positive.")
      .def("__repr__", [](const Ciphertext& c) {
        const u32 batch = c.value.batch();
        return cat("<ckks.Ciphertext ", describe(c.value.metadata()), ", ", c.value.components(),
                   " components", batch > 1 ? cat(", batch of ", batch) : "", ">");
      });
  m.def("concatenate", &concatenate, "ciphertexts"_a,
        nb::sig("def concatenate(ciphertexts: collections.abc.Iterable[Ciphertext | Operand]) -> "
                "Ciphertext"),
        "The vectors of all ciphertexts, one after the other, as one batch.\n\n"
        "Raises StateError unless they have equal parameters, device, secret key, level, scale,\n"
        "slots and components; ParameterError for none.");
}

std::optional<u32> level_of(const EvaluationKeys& k, nb::handle key, bool aligned) {
  const ckks::EvaluationKeys& keys = k.value;
  i64 steps = 0;
  if (nb::try_cast(key, steps))
    return aligned ? keys.aligned_rotation(steps) : keys.rotation_level(steps);
  std::string name;
  if (nb::try_cast(key, name)) {
    if (name == "conjugate") return aligned ? keys.aligned_conjugation() : keys.conjugation_level();
    if (name == "relinearisation")
      return aligned ? keys.aligned_relinearisation() : keys.relinearisation_level();
  }
  throw nb::type_error("key must be a rotation step, 'conjugate' or 'relinearisation'");
}

void bind_evaluation_keys(nb::module_& m) {
  nb::class_<EvaluationKeys>(m, "EvaluationKeys",
                             "What a server needs to compute: no secret. Immutable.\n"
                             "docs/theory/ckks-primes.md, \"Digits of key switching\".")
      .def_prop_ro(
          "secret_key_id", [](const EvaluationKeys& k) { return k.value.secret_key_id().text(); },
          "The public name of the secret key that they were made with; 'none' for no keys.")
      .def_prop_ro(
          "rotations", [](const EvaluationKeys& k) { return k.value.rotations(); },
          "Rotation steps with a key, ascending; without those that have one for aligned levels "
          "only.")
      .def_prop_ro(
          "aligned_rotations", [](const EvaluationKeys& k) { return k.value.aligned_rotations(); },
          "Rotation steps with a key for aligned levels (Params.highest_aligned), ascending.")
      .def_prop_ro(
          "conjugate", [](const EvaluationKeys& k) { return k.value.has_conjugation(); },
          "Is there a key for conjugation?")
      .def_prop_ro(
          "relinearisation", [](const EvaluationKeys& k) { return k.value.has_relinearisation(); },
          "Is there a key for products of ciphertexts?")
      .def("level_of", &level_of, "key"_a, "aligned"_a = false,
           nb::sig("def level_of(self, key: int | typing.Literal['conjugate', 'relinearisation'], "
                   "aligned: bool = False) -> int | None"),
           "The highest level at which a key can be used (max_level of Client.evaluation_keys), "
           "of a\n"
           "rotation by so many steps or the other kinds, `aligned`: of the key for aligned "
           "levels;\n"
           "None where there is no such key.")
      .def_prop_ro(
          "has_encapsulation", [](const EvaluationKeys& k) { return k.value.has_encapsulation(); },
          "Are there the keys to an ephemeral sparse secret and back?")
      .def_prop_ro(
          "nbytes", [](const EvaluationKeys& k) { return k.value.bytes(); }, "Bytes on the device.")
      .def_prop_ro(
          "host_bytes", [](const EvaluationKeys& k) { return k.value.host_bytes(); },
          "Bytes of staged keys in page-locked host memory.")
      .def_prop_ro(
          "count", [](const EvaluationKeys& k) { return k.value.count(); },
          "Number of keys, of encapsulation both.")
      .def_prop_ro(
          "wire_bytes", [](const EvaluationKeys& k) { return k.value.wire_bytes(); },
          "Bytes when serialised: uniform halves travel as seeds.")
      .def(
          "staged",
          [](const EvaluationKeys& k, Bytes device_bytes, nb::handle progress) {
            const u64 bytes = bytes_of(device_bytes, "device_bytes");
            const Progress told(progress);
            return released([&] { return EvaluationKeys{k.context, k.value.staged(bytes)}; });
          },
          "device_bytes"_a, nb::kw_only(), "progress"_a = nb::none(),
          nb::sig("def staged(self, device_bytes: int, *, " CRENEL_PROGRESS_SIG
                  ") -> EvaluationKeys"),
          "The same keys in page-locked host memory: operations bring them to the device when "
          "they\n"
          "need them, and a bootstrap ahead of need; at most `device_bytes` are there at a "
          "time.\n\n"
          "For keys that do not fit: each that is not there costs its transfer, which a batch\n"
          "shares. Raises ParameterError where not even two keys fit, StateError for staged keys.\n"
          "Staged keys cannot be saved: save those that they were made "
          "from.\n\n" CRENEL_PROGRESS_DOC)
      .def("to_bytes", &serialise<EvaluationKeys>, "A complete safetensors file.")
      .def(
          "save",
          [](const EvaluationKeys& k, const std::filesystem::path& path, nb::handle progress) {
            const Progress told(progress);
            released([&] { ckks::save_evaluation_keys(k.context, k.value, path.string()); });
          },
          "path"_a, nb::kw_only(), "progress"_a = nb::none(),
          nb::sig("def save(self, path: str | os.PathLike[str], *, " CRENEL_PROGRESS_SIG
                  ") -> None"),
          "Write the file of to_bytes key by key, without holding all of it in memory. It takes\n"
          "its name when it is complete and on the disk, as that of crenel.write_file does, which\n"
          "states the errors.\n\n" CRENEL_PROGRESS_DOC)
      .def("__repr__", [](const EvaluationKeys& k) {
        return cat(
            "<ckks.EvaluationKeys ", k.value.rotations().size(), " rotations",
            k.value.has_conjugation() ? ", conjugation" : "",
            k.value.has_relinearisation() ? ", relinearisation" : "",
            k.value.has_encapsulation() ? ", encapsulation" : "", ", ", k.value.bytes(), " bytes",
            k.value.host_bytes() ? cat(", ", k.value.host_bytes(), " in host memory") : "", ">");
      });
}

}  // namespace

CiphertextLike find_ciphertext(nb::handle object) noexcept {
  if (nb::isinstance<Ciphertext>(object)) return {&nb::inst_ptr<Ciphertext>(object)->shared};
  if (nb::isinstance<ckks::Operand>(object))
    return {&nb::inst_ptr<ckks::Operand>(object)->shared_ciphertext()};
  return {};
}

const ckks::Ciphertext& as_ciphertext(nb::handle object) {
  if (const CiphertextLike found = find_ciphertext(object); found.shared) return found.get();
  refuse_type("a ciphertext", object);
}

void refuse_type(const std::string& what, nb::handle object) {
  auto type = nb::cast<std::string>(object.type().attr("__name__"));
  const auto module = nb::cast<std::string>(object.type().attr("__module__"));
  if (module.starts_with("crenel.") &&
      !module.starts_with("crenel._"))  // several have a Ciphertext
    type = cat(module.substr(0, module.find('.', sizeof("crenel.") - 1)), ".", type);
  throw nb::type_error(cat("expected ", what, ", got ", type).c_str());
}

void bind_ciphertext(nb::module_& m) {
  bind_encrypted(m);
  bind_evaluation_keys(m);
}

}  // namespace crenel::python
