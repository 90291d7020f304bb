// Client: the holder of the secret key. Nothing here prints or copies a secret.
#include "arrays.h"

namespace crenel::python {
namespace {

using ckks::Client;
using ckks::Flooding;

Ciphertext encrypt(Client& client, nb::handle object, std::optional<i64> level,
                   std::optional<double> scale, std::optional<i64> slots) {
  const Values values = read_values(object);
  const auto l = as_level(level);
  const double s = as_scale(scale);
  const u64 n = as_slots(slots);
  return released([&] {
    return std::visit(
        [&](const auto& a) {
          return Ciphertext{client.context(), client.encrypt(as_span(a), l, s, n, values.batch)};
        },
        values.numbers);
  });
}

Ciphertext public_encrypt(const PublicKey& key, nb::handle object, std::optional<i64> level,
                          std::optional<double> scale, std::optional<i64> slots) {
  const Values values = read_values(object);
  const auto l = as_level(level);
  const double s = as_scale(scale);
  const u64 n = as_slots(slots);
  return released([&] {
    return std::visit(
        [&](const auto& a) {
          const ckks::Plaintext plaintext = key.context.encode(as_span(a), l, s, n, values.batch);
          return Ciphertext{key.context, key.value.encrypt(plaintext)};
        },
        values.numbers);
  });
}

nb::object decrypt(Client& client, nb::handle object, std::optional<Flooding> flooding) {
  const ckks::Ciphertext& ciphertext = as_ciphertext(object);
  auto slots = released([&] { return client.decrypt(ciphertext, flooding); });
  return slots_to_numpy(std::move(slots), ciphertext.metadata().real, ciphertext.batch());
}

Plaintext decrypt_to_plaintext(const Client& client, nb::handle object) {
  const ckks::Ciphertext& ciphertext = as_ciphertext(object);
  return released(
      [&] { return Plaintext{client.context(), client.decrypt_to_plaintext(ciphertext)}; });
}

EvaluationKeys evaluation_keys(Client& client, std::vector<i64> rotations, bool conjugate,
                               bool relinearisation, bool encapsulation, nb::handle bootstrap) {
  const ckks::Context& context = client.context();
  const ckks::KeyRequest request =
      with_bootstrap({std::move(rotations), conjugate, relinearisation, encapsulation},
                     context.params(), bootstrap);
  return released([&] { return EvaluationKeys{context, client.evaluation_keys(request)}; });
}

constexpr const char* kEncryptDoc =
    "Encode and encrypt a vector.\n\n"
    "Parameters\n----------\n"
    "values : bool, int, float or complex numbers, at most `slots` of them, padded with zeros; a\n"
    "    matrix makes a batch, a vector a row: shape (k, n) decrypts to shape (k, slots), one row "
    "to\n"
    "    a vector\n"
    "level : default the top normal level\n"
    "scale : default the canonical scale of the level\n"
    "slots : a power of two; default all N/2";

void bind_flooding(nb::module_& m) {
  nb::class_<Flooding>(
      m, "Flooding",
      "Noise added to a decryption before it is published (SECURITY.md): standard\n"
      "deviation sqrt(12 queries) 2^(statistical_bits / 2) noise_std.")
      .def(
          "__init__",
          [](Flooding* self, double noise_std, i64 queries, i64 statistical_bits) {
            new (self) Flooding{noise_std, as_unsigned<u64>(queries, "queries"),
                                as_unsigned<u32>(statistical_bits, "statistical_bits")};
          },
          "noise_std"_a, "queries"_a = 1, "statistical_bits"_a = 30,
          "noise_std : estimate of the ciphertext's error, in coefficient units, positive\n"
          "queries : decryptions to be published under this key\n"
          "statistical_bits : at least 30")
      .def_ro("noise_std", &Flooding::noise_std, "Estimate of the ciphertext's error.")
      .def_ro("queries", &Flooding::queries, "Decryptions to be published.")
      .def_ro("statistical_bits", &Flooding::statistical_bits, "Statistical security.")
      .def("__repr__", [](const Flooding& f) {
        return cat("Flooding(noise_std=", f.noise_std, ", queries=", f.queries,
                   ", statistical_bits=", f.statistical_bits, ")");
      });
}

void bind_public_key(nb::module_& m) {
  nb::class_<PublicKey>(m, "PublicKey", "Anyone can encrypt with it, nobody can decrypt.")
      .def_prop_ro(
          "secret_key_id", [](const PublicKey& key) { return key.value.secret_key_id().text(); },
          "The public name of the secret key that decrypts what it encrypts.")
      .def(
          "encrypt",
          [](const PublicKey& key, const Plaintext& plaintext) {
            return Ciphertext{key.context, key.value.encrypt(plaintext.value)};
          },
          "plaintext"_a, ReleaseGil(), "Encrypt an encoded vector.")
      .def("encrypt", &public_encrypt, "values"_a, "level"_a = nb::none(), "scale"_a = nb::none(),
           "slots"_a = nb::none(),
           nb::sig("def encrypt(self, values: numpy.typing.ArrayLike, level: int | None = None, "
                   "scale: float | None = None, slots: int | None = None) -> Ciphertext"),
           kEncryptDoc)
      .def(
          "to_bytes",
          [](const PublicKey& key) {
            return to_python(released([&] { return ckks::to_bytes(key.context, key.value); }));
          },
          "A complete safetensors file.")
      .def("__repr__", [](const PublicKey&) { return "<ckks.PublicKey>"; });
}

void bind_keys(nb::class_<Client>& c) {
  c.def(
       "evaluation_keys", &evaluation_keys, nb::kw_only(), "rotations"_a = std::vector<i64>(),
       "conjugate"_a = false, "relinearisation"_a = true, "encapsulation"_a = false,
       "bootstrap"_a = false,
       nb::sig("def evaluation_keys(self, *, rotations: collections.abc.Sequence[int] = (), "
               "conjugate: bool = False, relinearisation: bool = True, "
               "encapsulation: bool = False, "
               "bootstrap: bool | typing.Literal['hoisted', 'minimal'] | BootstrapOptions = False) "
               "-> EvaluationKeys"),
       "The keys that a server needs; only what is asked for is made.\n\n"
       "Parameters\n----------\n"
       "rotations : steps to the left, negative ones to the right\n"
       "conjugate : for Evaluator.conjugate\n"
       "relinearisation : for products of ciphertexts\n"
       "encapsulation : the switch to an ephemeral sparse secret and back, for bootstrapping\n"
       "bootstrap : all that Context.bootstrapper needs, besides what is asked for otherwise: "
       "True\n"
       "    for its default options, 'minimal' for these with two keys a transform, or the "
       "options\n\n"
       "Raises ParameterError where that sparse secret would have less than 128 bits of security,\n"
       "or that have no levels for bootstrapping, and UnsupportedError for parameters without\n"
       "encapsulation.")
      .def(
          "public_key",
          [](Client& client) { return PublicKey{client.context(), client.public_key()}; },
          ReleaseGil(), "A key with which anyone can encrypt.")
      .def(
          "export_secret_key",
          [](const Client& client) {
            std::vector<u8> bytes = client.export_secret_key();
            nb::bytes result = to_python(bytes);
            for (volatile u8& b : bytes) b = 0;  // only the caller's copy stays
            return result;
          },
          "The secret key itself, a safetensors file with checksums: whoever has it reads every\n"
          "message. Guard it.")
      .def("__repr__", [](const Client&) { return "<ckks.Client>"; });
}

}  // namespace

void bind_client(nb::module_& m) {
  bind_flooding(m);
  bind_public_key(m);
  nb::class_<Client> c(m, "Client", "The holder of the secret key: encrypts and decrypts.");
  c.def_prop_ro("context", &Client::context, "The context.")
      .def_prop_ro(
          "secret_key_id", [](const Client& client) { return client.secret_key_id().text(); },
          "The public name of the secret key, 32 random hexadecimal digits: all that is made with "
          "it\n"
          "carries them, and objects of two secret keys are not mixed (StateError).")
      .def(
          "encrypt",
          [](Client& client, const Plaintext& plaintext) {
            return Ciphertext{client.context(), client.encrypt(plaintext.value)};
          },
          "plaintext"_a, ReleaseGil(), "Encrypt an encoded vector.")
      .def("encrypt", &encrypt, "values"_a, "level"_a = nb::none(), "scale"_a = nb::none(),
           "slots"_a = nb::none(),
           nb::sig("def encrypt(self, values: numpy.typing.ArrayLike, level: int | None = None, "
                   "scale: float | None = None, slots: int | None = None) -> Ciphertext"),
           kEncryptDoc)
      .def(
          "decrypt", &decrypt, "ciphertext"_a, "flooding"_a = nb::none(),
          nb::sig("def decrypt(self, ciphertext: Ciphertext | Operand, "
                  "flooding: Flooding | None = None) -> numpy.ndarray"),
          "The slots, float64 when ciphertext.real, else complex128: a vector, or a matrix with a\n"
          "row for each vector of a batch.\n\n"
          "Raises StateError for a ciphertext of another context or another secret key.\n\n"
          "Results carry a little noise that depends on the key: do not publish them without\n"
          "`flooding` (SECURITY.md).")
      .def("decrypt_to_plaintext", &decrypt_to_plaintext, "ciphertext"_a,
           nb::sig("def decrypt_to_plaintext(self, ciphertext: Ciphertext | Operand) -> "
                   "Plaintext"),
           "The noisy polynomial of a ciphertext, for measurements. Never publish it.");
  bind_keys(c);
}

}  // namespace crenel::python
