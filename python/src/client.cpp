// Client: the holder of the secret key. Nothing here prints or copies a secret.
#include "arrays.h"

namespace crenel::python {
namespace {

using ckks::Client;
using ckks::Share;

Ciphertext encrypt(Client& client, nb::handle object, std::optional<i64> level,
                   std::optional<double> scale, std::optional<i64> slots,
                   std::optional<double> bound) {
  const Encoding e(level, scale, slots, bound);
  return with_values(object, [&](const auto& numbers, u32 batch) {
    return Ciphertext{client.context(),
                      client.encrypt(numbers, e.level, e.scale, e.slots, batch, e.bound)};
  });
}

Ciphertext public_encrypt(const PublicKey& key, nb::handle object, std::optional<i64> level,
                          std::optional<double> scale, std::optional<i64> slots,
                          std::optional<double> bound) {
  const Encoding e(level, scale, slots, bound);
  return with_values(object, [&](const auto& numbers, u32 batch) {
    const ckks::Plaintext plaintext =
        key.context.encode(numbers, e.level, e.scale, e.slots, batch, e.bound);
    return Ciphertext{key.context, key.value.encrypt(plaintext)};
  });
}

/// crenel.ckks.Array, by its mark: others that have a method `decrypt`, as clients, are not asked.
bool is_array(nb::handle object) { return nb::hasattr(object.type(), "_decrypted_by_client"); }

nb::object decrypt(Client& client, nb::handle object) {
  const bool known = nb::isinstance<Ciphertext>(object) || nb::isinstance<ckks::Operand>(object);
  if (!known && is_array(object)) throw nb::next_overload();
  const ckks::Ciphertext& ciphertext = as_ciphertext(object);
  auto slots = released([&] { return client.decrypt(ciphertext); });
  return slots_to_numpy(std::move(slots), ciphertext.metadata().real, ciphertext.batch());
}

/// A share with its values as an array.
struct BoundShare {
  nb::object values;
  Share share;
};

BoundShare decrypt_to_share(Client& client, nb::handle object, const ckks::BoundOperand& bound,
                            i64 statistical_bits, i64 queries) {
  const ckks::Ciphertext& ciphertext = as_ciphertext(object);
  const ckks::Sharing sharing{as_unsigned<u32>(statistical_bits, "statistical_bits"),
                              as_unsigned<u64>(queries, "queries")};
  Share share =
      released([&] { return client.decrypt_to_share(ciphertext, bound.bound(), sharing); });
  nb::object values = slots_to_numpy(std::move(share.values), share.real, ciphertext.batch());
  return {std::move(values), std::move(share)};
}

Plaintext decrypt_to_plaintext(const Client& client, nb::handle object) {
  const ckks::Ciphertext& ciphertext = as_ciphertext(object);
  return released(
      [&] { return Plaintext{client.context(), client.decrypt_to_plaintext(ciphertext)}; });
}

EvaluationKeys evaluation_keys(Client& client, nb::handle rotations, bool conjugate,
                               bool relinearisation, bool encapsulation, nb::handle bootstrap,
                               std::optional<i64> max_level, bool aligned, nb::handle progress) {
  const ckks::Context& context = client.context();
  const ckks::Params& params = context.params();
  const ckks::KeyRequest asked =
      key_request(rotations, conjugate, relinearisation, encapsulation, max_level);
  const ckks::KeyRequest request =
      with_bootstrap(with_aligned(asked, params, aligned), params, bootstrap);
  const Progress told(progress);
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
    "slots : a power of two; default all N/2\n"
    "bound : states, in the clear, that every |value| is at most that. Operations then know how\n"
    "    large their results may be, and raise StateError where one could leave the range of its\n"
    "    level (params.max_value). Without, such a result decrypts to nonsense without a sign.\n\n"
    "Raises ParameterError for a value beyond `bound`, naming its place, and a bound beyond\n"
    "params.max_value.";

void bind_share(nb::module_& m) {
  const auto number = [](double Share::* field) {
    return [field](const BoundShare& s) { return s.share.*field; };
  };
  nb::class_<BoundShare>(m, "Share",
                         "A result that may leave the key holder, and what it was protected with.")
      .def_ro("values", &BoundShare::values, nb::sig("def values(self) -> " CRENEL_SLOTS),
              "The slots, multiples of `grid`; float64 when the model says real, else complex128.")
      .def_prop_ro("noise_std", number(&Share::noise_std),
                   "Root mean square of the noise in a slot.")
      .def_prop_ro("error_rms", number(&Share::error_rms),
                   "What the circuit itself loses, at most.")
      .def_prop_ro("precision_bits", number(&Share::precision_bits),
                   "log2 of the largest message over the noise: the bits that remain.")
      .def_prop_ro("bits_lost", number(&Share::bits_lost),
                   "log2 of noise over error: what sharing costs.")
      .def_prop_ro("grid", number(&Share::grid), "Step of the values, a power of two.")
      .def_prop_ro(
          "statistical_bits", [](const BoundShare& s) { return s.share.sharing.statistical_bits; },
          "As asked for.")
      .def_prop_ro(
          "queries", [](const BoundShare& s) { return s.share.sharing.queries; }, "As asked for.")
      .def_prop_ro(
          "given", [](const BoundShare& s) { return s.share.given; },
          "Vectors that this client has shared, these among them.")
      .def("__repr__", [](const BoundShare& s) {
        return cat("<ckks.Share of ", s.share.precision_bits, " bits, noise ", s.share.noise_std,
                   ", ", s.share.sharing.statistical_bits, " statistical bits, ", s.share.given,
                   " of ", s.share.sharing.queries, " queries>");
      });
}

void bind_decryption(nb::class_<Client>& c) {
  c.def(
       "decrypt", &decrypt, "ciphertext"_a,
       nb::sig("def decrypt(self, ciphertext: Ciphertext | Operand) -> " CRENEL_SLOTS),
       "The slots, float64 when ciphertext.real, else complex128: a vector, or a matrix with a\n"
       "row for each vector of a batch. Raises StateError for a ciphertext of other parameters, of "
       "another\n"
       "device, or of another secret key.\n\n"
       "Exact, and so for the key holder's own eyes: a single one of these results gives the\n"
       "secret key to whoever has the ciphertext too, however it is rounded. What others get is\n"
       "`decrypt_to_share`.")
      .def(
          "decrypt",
          [](nb::handle self, nb::handle array) -> nb::object {
            if (!is_array(array)) throw nb::next_overload();
            return array.attr("decrypt")(self);
          },
          "array"_a,
          nb::sig("def decrypt(self, array: Array) -> "
                  "numpy.typing.NDArray[numpy.float64 | numpy.complex128]"),
          "Array.decrypt: an array of the shape of `array`.")
      .def(
          "decrypt_to_share", &decrypt_to_share, "ciphertext"_a, "bound"_a, nb::kw_only(),
          "statistical_bits"_a, "queries"_a,
          nb::sig("def decrypt_to_share(self, ciphertext: Ciphertext | Operand, "
                  "bound: ErrorBound, *, statistical_bits: int, queries: int) -> Share"),
          "The slots for somebody else, with noise that hides the errors and with them the key.\n\n"
          "Parameters\n----------\n"
          "bound : what the circuit makes of ErrorModel inputs, stated by you and not by the "
          "server\n"
          "statistical_bits : 30 to 64; a share is told from the exact result plus noise with "
          "an\n"
          "    advantage below 2^-(statistical_bits / 2 + 2), and costs half as many bits\n"
          "queries : vectors to be shared under this key, all told; the client refuses more\n\n"
          "Raises ParameterError where nothing of the message would remain, naming the numbers;\n"
          "StateError where the ciphertext's level, scale or slots are not the bound's, where the\n"
          "key's account is used up, and where the noisy result is beyond the bound: the circuit "
          "was\n"
          "not followed (this counts as a share: keep it from the server).")
      .def_prop_ro(
          "share_account",
          [](const Client& client) {
            const ckks::ShareAccount account = client.share_account();
            return std::pair(account.shares, account.spent);
          },
          nb::sig("def share_account(self) -> tuple[int, float]"),
          "Vectors shared so far, and what they have used up: the sum of\n"
          "2^-statistical_bits / queries. Keep it with an exported key.")
      .def(
          "add_to_share_account",
          [](Client& client, i64 shares, double spent) {
            client.add_to_share_account({as_unsigned<u64>(shares, "shares"), spent});
          },
          "shares"_a, "spent"_a,
          "Count shares that were given under this key elsewhere. Raises ParameterError for\n"
          "numbers that are negative or not finite.")
      .def("decrypt_to_plaintext", &decrypt_to_plaintext, "ciphertext"_a,
           nb::sig("def decrypt_to_plaintext(self, ciphertext: Ciphertext | Operand) -> "
                   "Plaintext"),
           "The noisy polynomial of a ciphertext, for measurements: as exact as decrypt(). It can "
           "be\n"
           "decoded, but neither encrypted nor computed with, and to_bytes() wants an explicit "
           "wish.");
}

void bind_public_key(nb::module_& m) {
  nb::class_<PublicKey>(m, "PublicKey", "Anyone can encrypt with it, nobody can decrypt.")
      .def_prop_ro(
          "context", [](const PublicKey& key) { return key.context; }, "The context.")
      .def_prop_ro(
          "secret_key_id", [](const PublicKey& key) { return key.value.secret_key_id().text(); },
          "The public name of the secret key that decrypts what it encrypts.")
      .def(
          "encrypt",
          [](const PublicKey& key, const Plaintext& plaintext) {
            return Ciphertext{key.context, key.value.encrypt(plaintext.value)};
          },
          "plaintext"_a, ReleaseGil(),
          "Encrypt an encoded vector, with the bound that was stated for it.")
      .def("encrypt", &public_encrypt, "values"_a, "level"_a = nb::none(), "scale"_a = nb::none(),
           "slots"_a = nb::none(), "bound"_a = nb::none(),
           nb::sig("def encrypt(self, values: numpy.typing.ArrayLike, level: int | None = None, "
                   "scale: float | None = None, slots: int | None = None, "
                   "bound: float | None = None) -> Ciphertext"),
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
       "evaluation_keys", &evaluation_keys, nb::kw_only(), "rotations"_a = nb::tuple(),
       "conjugate"_a = false, "relinearisation"_a = true, "encapsulation"_a = false,
       "bootstrap"_a = false, "max_level"_a = nb::none(), "aligned"_a = false,
       "progress"_a = nb::none(),
       nb::sig("def evaluation_keys(self, *, " CRENEL_KEYS_SIG ", " CRENEL_PROGRESS_SIG
               ") -> EvaluationKeys"),
       "The keys that a server needs; only what is asked for is made.\n\n"
       "Parameters\n----------\n"
       "rotations : steps to the left, negative ones to the right; as a mapping, the highest "
       "level\n"
       "    at which each is used\n"
       "conjugate : for Evaluator.conjugate\n"
       "relinearisation : for products of ciphertexts\n"
       "encapsulation : the switch to an ephemeral sparse secret and back, for bootstrapping\n"
       "bootstrap : all that Context.bootstrapper needs, besides what is asked for otherwise: "
       "True\n"
       "    for its default options, 'minimal' for these with two keys a transform, the options, "
       "or\n"
       "    several options, whose keys are shared\n"
       "max_level : highest level at which keys are used, where `rotations` does not say another;\n"
       "    default every level. Keys for lower levels are smaller (EvaluationKeys.nbytes), and "
       "give\n"
       "    the same bits. Those of a bootstrap serve what it needs, and every normal "
       "level\n"
       "aligned : beside each key one for the aligned levels up to its own (by default the normal "
       "ones):\n"
       "    operations at these take a digit less (Params.highest_aligned). Bootstraps have them "
       "anyway\n" CRENEL_PROGRESS_DOC
       "\n"
       "Raises ParameterError for levels beyond params.max_level, for `aligned` where no level "
       "is,\n"
       "where that sparse secret would have less than 128 bits of security,\n"
       "or that have no levels for bootstrapping, UnsupportedError for parameters without\n"
       "encapsulation, and OutOfMemoryError, before any key is made, where the device has less "
       "than\n"
       "Params.key_bytes of the same arguments; its `fits` says how many keys there is room for.")
      .def(
          "public_key",
          [](Client& client) { return PublicKey{client.context(), client.public_key()}; },
          ReleaseGil(), "A key with which anyone can encrypt.")
      .def(
          "export_secret_key",
          [](const Client& client) { return secret_to_python(client.export_secret_key()); },
          "The secret key itself, a safetensors file with checksums: whoever has it reads every\n"
          "message. Guard it.")
      .def("__repr__", [](const Client&) { return "<ckks.Client>"; });
}

}  // namespace

void bind_client(nb::module_& m) {
  bind_share(m);
  bind_public_key(m);
  nb::class_<Client> c(m, "Client",
                       "The holder of the secret key: encrypts and decrypts. What its keys\n"
                       "and ciphertexts rest on: docs/theory/security.md.");
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
          "plaintext"_a, ReleaseGil(),
          "Encrypt an encoded vector, with the bound that was stated for it.")
      .def("encrypt", &encrypt, "values"_a, "level"_a = nb::none(), "scale"_a = nb::none(),
           "slots"_a = nb::none(), "bound"_a = nb::none(),
           nb::sig("def encrypt(self, values: numpy.typing.ArrayLike, level: int | None = None, "
                   "scale: float | None = None, slots: int | None = None, "
                   "bound: float | None = None) -> Ciphertext"),
           kEncryptDoc);
  bind_decryption(c);
  bind_keys(c);
}

}  // namespace crenel::python
