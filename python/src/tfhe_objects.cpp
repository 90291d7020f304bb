// Context, client, ciphertexts and keys of TFHE. Nothing here prints or copies a secret.
#include <nanobind/stl/shared_ptr.h>

#include "tfhe.h"

namespace crenel::python {
namespace {

using tfhe::Client;
using tfhe::Context;

tfhe::ArrayInfo info_of(std::vector<u64> shape, std::string element) {
  return {std::move(shape), std::move(element)};
}

template <class T>
nb::bytes array_to_bytes(const Bound<T, tfhe::Context>& array, std::vector<u64> shape,
                         std::string element) {
  const tfhe::ArrayInfo info = info_of(std::move(shape), std::move(element));
  return to_python(released([&] { return tfhe::to_bytes(array.context, array.value, info); }));
}

/// (array, shape, element type) from untrusted bytes.
template <class T,
          T (*load)(const Context&, std::span<const u8>, tfhe::ArrayInfo*, const LoadLimits&)>
nb::tuple array_from_bytes(const Context& context, nb::handle data,
                           std::optional<Bytes> max_bytes) {
  const BufferView view(data, max_bytes);
  const LoadLimits limits = limits_of(max_bytes);
  tfhe::ArrayInfo info;
  auto array = released(
      [&] { return Bound<T, tfhe::Context>{context, load(context, view.bytes(), &info, limits)}; });
  return nb::make_tuple(nb::cast(std::move(array)), info.shape, info.element);
}

TfheKeys keys_from_bytes(const Context& context, nb::handle data, std::optional<Bytes> max_bytes,
                         nb::handle progress) {
  const BufferView view(data, max_bytes);
  const LoadLimits limits = limits_of(max_bytes);
  const Progress told(progress);
  return released([&] {
    return TfheKeys{context, tfhe::evaluation_keys_from_bytes(context, view.bytes(), limits)};
  });
}

Client import_client(const Context& context, nb::handle data) {
  const BufferView view(data);
  return released([&] { return Client::import_secret_key(context, view.bytes()); });
}

void bind_tfhe_context(nb::module_& m) {
  nb::class_<Context>(m, "TfheContext", "TFHE parameters on a device.")
      .def(nb::init<const tfhe::Params&, const std::string&>(), "params"_a, "device"_a = "auto",
           ReleaseGil())
      .def(nb::init<const tfhe::Params&, std::shared_ptr<device::Device>>(), "params"_a, "device"_a,
           ReleaseGil())
      .def_prop_ro("params", &Context::params)
      .def_prop_ro("device", [](const Context& c) { return c.device().shared_from_this(); })
      .def(
          "key_bytes",
          [](const Context& c, bool packing, bool lists) {
            return tfhe::key_bytes(c, {packing, lists});
          },
          "packing"_a = false, "lists"_a = false)
      .def(
          "key_wire_bytes",
          [](const Context& c, bool packing, bool lists) {
            return tfhe::key_wire_bytes(c, {packing, lists});
          },
          "packing"_a = false, "lists"_a = false)
      .def(
          "stored_bytes",
          [](const Context& c, u64 size, bool lists) {
            return tfhe::stored_bytes(c, size, stored_form(lists));
          },
          "size"_a, "lists"_a = false)
      .def("keygen", &Context::keygen, ReleaseGil())
      .def("client_from_secret_key", &import_client, "data"_a)
      .def(
          "evaluator",
          [](const Context& c, const TfheKeys& keys, std::optional<double> max_p_fail_log2,
             const std::vector<u32>& steps, const Rules& step_table) {
            return c.evaluator(keys.value, {max_p_fail_log2, steps, from_rules(step_table)});
          },
          "keys"_a, "max_p_fail_log2"_a = nb::none(), "steps"_a = std::vector<u32>(),
          "step_table"_a = Rules(), ReleaseGil())
      .def("step_bytes", &tfhe::step_bytes, "step"_a, ReleaseGil())
      .def(
          "measured_step_table",
          [](const Context& c, const std::vector<u32>& steps) {
            return to_rules(tfhe::measured_step_table(c, steps));
          },
          "steps"_a)
      .def("ciphertext_from_bytes",
           &array_from_bytes<tfhe::Ciphertext, tfhe::ciphertext_from_bytes>, "data"_a,
           "max_bytes"_a = nb::none())
      .def("integers_from_bytes", &array_from_bytes<tfhe::Integers, tfhe::integers_from_bytes>,
           "data"_a, "max_bytes"_a = nb::none())
      .def("compressed_from_bytes",
           &array_from_bytes<tfhe::Compressed, tfhe::compressed_from_bytes>, "data"_a,
           "max_bytes"_a = nb::none())
      .def("evaluation_keys_from_bytes", &keys_from_bytes, "data"_a, "max_bytes"_a = nb::none(),
           "progress"_a = nb::none())
      .def(
          "synchronize", [](const Context& c) { c.stream().synchronize(); }, ReleaseGil())
      .def_prop_ro("bytes_in_use", [](const Context& c) { return c.stream().bytes_in_use(); })
      .def_prop_ro("peak_bytes", [](const Context& c) { return c.stream().peak_bytes(); })
      .def("reset_peak", [](const Context& c) { c.stream().reset_peak(); });
}

/// Of either kind of array.
template <class T>
Bound<T, Context> slice(const Bound<T, Context>& array, i64 first, i64 count) {
  return {array.context,
          array.value.slice(as_unsigned<u64>(first, "first"), as_unsigned<u64>(count, "count"))};
}

template <class T>
Bound<T, Context> take(const Bound<T, Context>& array, const Array<u64>& index) {
  return {array.context, array.value.take(as_span(index))};
}

template <class T>
Bound<T, Context> concatenate(const std::vector<const Bound<T, Context>*>& parts) {
  if (parts.empty()) throw ParameterError("concatenation of no arrays", {{"parts", 0}});
  const std::vector<const T*> values = values_of(parts);
  return {parts.front()->context, tfhe::concatenate(std::span<const T* const>(values))};
}

void bind_arrays(nb::module_& m) {
  nb::class_<TfheCiphertext>(m, "TfheCiphertext", "Encrypted messages in a row.")
      .def_prop_ro("size", [](const TfheCiphertext& c) { return c.value.size(); })
      .def_prop_ro("plain_modulus", [](const TfheCiphertext& c) { return c.value.plain_modulus(); })
      .def_prop_ro("nbytes", [](const TfheCiphertext& c) { return c.value.bytes(); })
      .def_prop_ro("params_id", [](const TfheCiphertext& c) { return c.value.params_id(); })
      .def_prop_ro("secret_key_id",
                   [](const TfheCiphertext& c) { return c.value.secret_key_id().text(); })
      .def_prop_ro("noise_variance",
                   [](const TfheCiphertext& c) { return c.value.noise_variance(); })
      .def_prop_ro("bound", [](const TfheCiphertext& c) { return c.value.bound(); })
      .def("slice", &slice<tfhe::Ciphertext>, "first"_a, "count"_a, ReleaseGil())
      .def("take", &take<tfhe::Ciphertext>, "index"_a, ReleaseGil())
      .def(
          "clone",
          [](const TfheCiphertext& c) { return TfheCiphertext{c.context, c.value.clone()}; },
          ReleaseGil())
      .def("to_bytes", &array_to_bytes<tfhe::Ciphertext>, "shape"_a, "element"_a);
  nb::class_<TfheIntegers>(m, "TfheIntegers", "Encrypted integers in a row, in radix form.")
      .def_prop_ro("size", [](const TfheIntegers& i) { return i.value.size(); })
      .def_prop_ro("bits", [](const TfheIntegers& i) { return i.value.bits(); })
      .def_prop_ro("secret_key_id",
                   [](const TfheIntegers& i) { return i.value.secret_key_id().text(); })
      .def_prop_ro("signed", [](const TfheIntegers& i) { return i.value.is_signed(); })
      .def_prop_ro("nbytes", [](const TfheIntegers& i) { return i.value.bytes(); })
      .def("slice", &slice<tfhe::Integers>, "first"_a, "count"_a, ReleaseGil())
      .def("take", &take<tfhe::Integers>, "index"_a, ReleaseGil())
      .def("to_bytes", &array_to_bytes<tfhe::Integers>, "shape"_a, "element"_a);
  m.def("tfhe_concatenate", &concatenate<tfhe::Ciphertext>, "parts"_a, ReleaseGil());
  m.def("tfhe_concatenate", &concatenate<tfhe::Integers>, "parts"_a, ReleaseGil());
}

void bind_compressed(nb::module_& m) {
  nb::class_<TfheCompressed>(m, "TfheCompressed", "Encrypted messages in the form for storage.")
      .def_prop_ro("size", [](const TfheCompressed& c) { return c.value.size(); })
      .def_prop_ro("plain_modulus", [](const TfheCompressed& c) { return c.value.plain_modulus(); })
      .def_prop_ro("nbytes", [](const TfheCompressed& c) { return c.value.bytes(); })
      .def_prop_ro("integer_bits", [](const TfheCompressed& c) { return c.value.integer_bits(); })
      .def_prop_ro("signed", [](const TfheCompressed& c) { return c.value.is_signed(); })
      .def_prop_ro(
          "lists",
          [](const TfheCompressed& c) { return c.value.form() == tfhe::StoredForm::lists; })
      .def_prop_ro("secret_key_id",
                   [](const TfheCompressed& c) { return c.value.secret_key_id().text(); })
      .def("to_bytes", &array_to_bytes<tfhe::Compressed>, "shape"_a, "element"_a);
}

void bind_tfhe_keys(nb::module_& m) {
  nb::class_<TfheKeys>(m, "TfheEvaluationKeys",
                       "What a server needs to compute: bootstrapping and key-switching keys, no\n"
                       "secret. Immutable.")
      .def_prop_ro(
          "secret_key_id", [](const TfheKeys& k) { return k.value.secret_key_id().text(); },
          "The public name of the secret keys that they were made with.")
      .def_prop_ro(
          "nbytes", [](const TfheKeys& k) { return k.value.bytes(); }, "Bytes on the device.")
      .def_prop_ro(
          "wire_bytes", [](const TfheKeys& k) { return k.value.wire_bytes(); },
          "Bytes when serialised: uniform halves travel as seeds.")
      .def_prop_ro(
          "steps", [](const TfheKeys& k) { return k.value.steps(); },
          "Secret bits a step that there are keys for on the device, ascending: the context's, "
          "and\n"
          "those that evaluators asked for. Empty for sets without groups.")
      .def_prop_ro(
          "has_packing", [](const TfheKeys& k) { return k.value.has_packing(); },
          "Is there a key for Evaluator.pack?")
      .def_prop_ro(
          "has_lists", [](const TfheKeys& k) { return k.value.has_lists(); },
          "Is there a key for Evaluator.compress(lists=True)?")
      .def(
          "to_bytes",
          [](const TfheKeys& k) {
            return to_python(released([&] { return tfhe::to_bytes(k.context, k.value); }));
          },
          "A complete safetensors file.")
      .def("__repr__", [](const TfheKeys& k) {
        return cat("<tfhe.EvaluationKeys ", k.context.params().name(),
                   k.value.has_packing() ? ", packing" : "", k.value.has_lists() ? ", lists" : "",
                   ", ", k.value.bytes(), " bytes>");
      });
}

template <class T>
nb::object decrypted(std::vector<T>&& values) {
  return to_numpy(std::move(values));
}

void bind_tfhe_client(nb::module_& m) {
  nb::class_<Client>(m, "TfheClient", "The holder of the secret keys.")
      .def_prop_ro("context", &Client::context)
      .def_prop_ro("secret_key_id",
                   [](const Client& client) { return client.secret_key_id().text(); })
      .def(
          "encrypt",
          [](Client& client, const Array<u64>& messages, u32 plain_modulus, u32 bound) {
            return TfheCiphertext{client.context(),
                                  client.encrypt(as_span(messages), plain_modulus, bound)};
          },
          "messages"_a, "plain_modulus"_a = 0, "bound"_a = 0, ReleaseGil())
      .def(
          "encrypt_words",
          [](Client& client, const Array<u64>& words, u32 bits, bool is_signed) {
            return TfheIntegers{client.context(),
                                tfhe::encrypt_words(client, as_span(words), bits, is_signed)};
          },
          "words"_a, "bits"_a, "signed"_a, ReleaseGil())
      .def(
          "decrypt",
          [](const Client& client, const TfheCiphertext& c) {
            return decrypted(released([&] { return client.decrypt(c.value); }));
          },
          "ciphertext"_a, nb::sig("def decrypt(self, ciphertext: TfheCiphertext) -> numpy.ndarray"))
      .def(
          "decrypt_words",
          [](const Client& client, const TfheIntegers& i) {
            return decrypted(released([&] { return tfhe::decrypt_words(client, i.value); }));
          },
          "integers"_a, nb::sig("def decrypt_words(self, integers: TfheIntegers) -> numpy.ndarray"))
      .def(
          "p_fail_log2",
          [](const Client& client, const TfheCiphertext& c) { return client.p_fail_log2(c.value); },
          "ciphertext"_a)
      .def(
          "phase_errors",
          [](const Client& client, const TfheCiphertext& c, const Array<u64>& messages) {
            return decrypted(
                released([&] { return client.phase_errors(c.value, as_span(messages)); }));
          },
          "ciphertext"_a, "messages"_a,
          nb::sig("def phase_errors(self, ciphertext: TfheCiphertext, messages: numpy.ndarray) -> "
                  "numpy.ndarray"))
      .def(
          "evaluation_keys",
          [](Client& client, bool packing, bool lists, nb::handle progress) {
            const Progress told(progress);
            return released([&] {
              return TfheKeys{client.context(), client.evaluation_keys({packing, lists})};
            });
          },
          "packing"_a = false, "lists"_a = false, "progress"_a = nb::none(),
          nb::sig("def evaluation_keys(self, packing: bool = False, lists: bool = "
                  "False, " CRENEL_PROGRESS_SIG ") -> TfheEvaluationKeys"))
      .def(
          "single",
          [](const Client& client, i64 slot) {
            return client.single(as_unsigned<u32>(slot, "slot"));
          },
          "slot"_a = 0, ReleaseGil())
      .def("export_secret_key",
           [](const Client& client) { return secret_to_python(client.export_secret_key()); });
}

}  // namespace

void bind_tfhe_objects(nb::module_& m) {
  bind_tfhe_context(m);
  bind_arrays(m);
  bind_compressed(m);
  bind_tfhe_keys(m);
  bind_tfhe_client(m);
}

}  // namespace crenel::python
