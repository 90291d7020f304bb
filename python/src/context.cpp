// Context: parameters on a device, the root of every other object.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>

#include "arrays.h"

namespace crenel::python {
namespace {

using ckks::Context;

Plaintext encode(const Context& context, nb::handle object, std::optional<i64> level,
                 std::optional<double> scale, std::optional<i64> slots,
                 std::optional<double> bound) {
  const Encoding e(level, scale, slots, bound);
  return with_values(object, [&](const auto& numbers, u32 batch) {
    return Plaintext{context, context.encode(numbers, e.level, e.scale, e.slots, batch, e.bound)};
  });
}

Plaintext encode_constant(const Context& context, std::complex<double> value,
                          std::optional<i64> level, std::optional<double> scale,
                          std::optional<i64> slots, std::optional<double> bound) {
  const Encoding e(level, scale, slots, bound);
  return released([&] {
    return Plaintext{context, context.encode_constant(value, e.level, e.scale, e.slots, e.bound)};
  });
}

nb::object decode(const Context& context, const Plaintext& plaintext) {
  auto slots = released([&] { return context.decode(plaintext.value); });
  const u32 batch = static_cast<u32>(slots.size() / plaintext.value.slots());
  return slots_to_numpy(std::move(slots), plaintext.value.metadata().real, batch);
}

/// Loader of untrusted bytes: everything is validated against the context before use.
template <class T, T (*load)(const Context&, std::span<const u8>, const LoadLimits&)>
Bound<T> from_bytes(const Context& context, nb::handle data, std::optional<Bytes> max_bytes) {
  const BufferView view(data, max_bytes);
  const LoadLimits limits = limits_of(max_bytes);
  return released([&] { return Bound<T>{context, load(context, view.bytes(), limits)}; });
}

EvaluationKeys load_keys(const Context& context, const std::filesystem::path& path,
                         std::optional<std::vector<i64>> rotations, bool relinearisation,
                         bool conjugate, bool encapsulation, std::optional<Bytes> staged_bytes,
                         std::optional<Bytes> max_bytes, nb::handle progress) {
  std::optional<u64> staged;
  if (staged_bytes) staged = bytes_of(*staged_bytes, "staged_bytes");
  const LoadLimits limits = limits_of(max_bytes);
  const ckks::KeySelection selection{std::move(rotations), relinearisation, conjugate,
                                     encapsulation};
  const Progress told(progress);
  return released([&] {
    return EvaluationKeys{
        context, ckks::load_evaluation_keys(context, path.string(), selection, staged, limits)};
  });
}

ckks::Client import_client(const Context& context, nb::handle data) {
  const BufferView view(data);
  return released([&] { return ckks::Client::import_secret_key(context, view.bytes()); });
}

ckks::Evaluator evaluator(const Context& context, const EvaluationKeys* keys) {
  return context.evaluator(keys ? keys->value : ckks::EvaluationKeys());
}

#define BYTES_SIG(name, result)                                                      \
  nb::sig("def " name                                                                \
          "(self, data: bytes | bytearray | memoryview, *, max_bytes: int | None = " \
          "None) -> " result)
#define LIMITED nb::kw_only(), "max_bytes"_a = nb::none()
#define MAX_BYTES(usual)                                                              \
  "\n\nmax_bytes : refuse what takes more memory, before it is taken; default " usual \
  ", or four\n"                                                                       \
  "    times the data where that is more. Raises SerializationError saying what and where."

void bind_loaders(nb::class_<Context>& c) {
  c.def("ciphertext_from_bytes", &from_bytes<ckks::Ciphertext, ckks::ciphertext_from_bytes>,
        "data"_a, LIMITED, BYTES_SIG("ciphertext_from_bytes", "Ciphertext"),
        "A ciphertext from untrusted bytes." MAX_BYTES("256 MiB"))
      .def("plaintext_from_bytes", &from_bytes<ckks::Plaintext, ckks::plaintext_from_bytes>,
           "data"_a, LIMITED, BYTES_SIG("plaintext_from_bytes", "Plaintext"),
           "A plaintext from untrusted bytes." MAX_BYTES("256 MiB"))
      .def("evaluation_keys_from_bytes",
           &from_bytes<ckks::EvaluationKeys, ckks::evaluation_keys_from_bytes>, "data"_a, LIMITED,
           BYTES_SIG("evaluation_keys_from_bytes", "EvaluationKeys"),
           "Evaluation keys from untrusted bytes." MAX_BYTES("16 GiB"))
      .def(
          "load_evaluation_keys", &load_keys, "path"_a, "rotations"_a = nb::none(),
          "relinearisation"_a = true, "conjugate"_a = true, "encapsulation"_a = true,
          "staged_bytes"_a = nb::none(), LIMITED, "progress"_a = nb::none(),
          nb::sig("def load_evaluation_keys(self, path: str | os.PathLike[str], rotations: "
                  "collections.abc.Sequence[int] | None = None, relinearisation: bool = True, "
                  "conjugate: bool = True, encapsulation: bool = True, "
                  "staged_bytes: int | None = None, *, max_bytes: int | None = "
                  "None, " CRENEL_PROGRESS_SIG ") -> EvaluationKeys"),
          "Evaluation keys from an untrusted file: only what is selected is read, checked and put "
          "on\n"
          "the device.\n\n"
          "Parameters\n----------\n"
          "path : a file of EvaluationKeys.save, or the bytes of to_bytes\n"
          "rotations : steps, default all of the file; with those for aligned levels\n"
          "relinearisation, conjugate, encapsulation : these keys, when the file has them\n"
          "staged_bytes : keep the keys in host memory, and at most so many bytes on the device, "
          "as\n"
          "    EvaluationKeys.staged does\n"
          "max_bytes : refuse what takes more memory, before it is taken; default 16 GiB, or four\n"
          "    times the file where that is more\n" CRENEL_PROGRESS_DOC
          "\n"
          "Raises KeyMissingError naming every rotation that the file lacks, and "
          "SerializationError\n"
          "saying what is wrong and where, also when the file changes meanwhile.")
      .def("public_key_from_bytes", &from_bytes<ckks::PublicKey, ckks::public_key_from_bytes>,
           "data"_a, LIMITED, BYTES_SIG("public_key_from_bytes", "PublicKey"),
           "A public key from untrusted bytes." MAX_BYTES("256 MiB"))
      .def("client_from_secret_key", &import_client, "data"_a,
           nb::sig(
               "def client_from_secret_key(self, data: bytes | bytearray | memoryview) -> Client"),
           "The client of a secret key exported with Client.export_secret_key.\n\n"
           "Raises SerializationError for damaged bytes, other parameters, and coefficients that "
           "no key\n"
           "generation gives.");
}

void bind_stream(nb::class_<Context>& c) {
  c.def("synchronize", &Context::synchronize, ReleaseGil(),
        "Wait until everything queued so far is done; raises DeviceError when some of it failed.")
      .def_prop_ro(
          "bytes_in_use", [](const Context& context) { return context.stream().bytes_in_use(); },
          "Bytes of device memory held by the objects of this context, tables and the memory of\n"
          "recorded graphs aside: Device.pools() has that, too.")
      .def_prop_ro(
          "peak_bytes", [](const Context& context) { return context.stream().peak_bytes(); },
          "Highest bytes_in_use since the context was made, or since reset_peak.")
      .def(
          "reset_peak", [](const Context& context) { context.stream().reset_peak(); },
          "Let peak_bytes start anew from bytes_in_use.");
}

}  // namespace

void bind_context(nb::module_& m) {
  nb::class_<Context> c(m, "Context",
                        "Parameters on a device: tables, immutable and shared. The root of every "
                        "other object: docs/notation.md, \"Contexts\".");
  c.def(nb::init<const ckks::Params&, const std::string&>(), "params"_a, "device"_a = "auto",
        ReleaseGil(),
        "Tables for `params` on a device of their own: 'ref', 'cpu', 'cuda', 'cuda:<index>' or "
        "'auto'\n"
        "(the first GPU when there is one, else the CPU). Raises DeviceError saying why a device\n"
        "cannot be had.")
      .def(nb::init<const ckks::Params&, std::shared_ptr<device::Device>>(), "params"_a, "device"_a,
           ReleaseGil(),
           "On a crenel.Device that other contexts may share: objects of contexts with equal\n"
           "parameters on one Device work together.")
      .def_prop_ro("params", &Context::params, "The parameters.")
      .def_prop_ro(
          "device", [](const Context& context) { return context.shared_device(); },
          "The device that computes; other contexts may be made on it.")
      .def("keygen", &Context::keygen, ReleaseGil(),
           "A new secret key, from the randomness of the operating system.")
      .def("evaluator", &evaluator, "keys"_a = nb::none(), ReleaseGil(),
           nb::sig("def evaluator(self, keys: EvaluationKeys | None = None) -> Evaluator"),
           "Operations with these keys; without keys, those that need none. Raises StateError for "
           "keys "
           "of\n"
           "other parameters or of another device.")
      .def("encode", &encode, "values"_a, "level"_a = nb::none(), "scale"_a = nb::none(),
           "slots"_a = nb::none(), "bound"_a = nb::none(),
           nb::sig("def encode(self, values: numpy.typing.ArrayLike, level: int | None = None, "
                   "scale: float | None = None, slots: int | None = None, "
                   "bound: float | None = None) -> Plaintext"),
           "Encode a vector of bool, int, float or complex numbers.\n\n"
           "Parameters\n----------\n"
           "values : at most `slots` of them, padded with zeros; a matrix makes a batch, a vector "
           "a row\n"
           "level : default the top normal level\n"
           "scale : default the canonical scale of the level\n"
           "slots : a power of two; default all N/2\n"
           "bound : states that every |value| is at most that; it goes with what is encrypted, in "
           "the\n"
           "    clear. Without, the plaintext alone knows its largest |slot|\n\n"
           "Raises ParameterError for NaN, infinity, too many values, overflow of the modulus, a "
           "value\n"
           "beyond `bound` (naming its place), and a bound beyond params.max_value.")
      .def("encode_constant", &encode_constant, "value"_a, "level"_a = nb::none(),
           "scale"_a = nb::none(), "slots"_a = nb::none(), "bound"_a = nb::none(),
           nb::sig("def encode_constant(self, value: complex, level: int | None = None, "
                   "scale: float | None = None, slots: int | None = None, "
                   "bound: float | None = None) -> Plaintext"),
           "Encode one public number in all slots.\n\n"
           "The plaintext that encode() makes of a vector of it, but without a transform, and "
           "without\n"
           "waiting for the device. Parameters and errors as of encode(). Not for secrets: the "
           "number is\n"
           "an argument of a kernel, which nobody wipes.")
      .def("decode", &decode, "plaintext"_a,
           nb::sig("def decode(self, plaintext: Plaintext) -> " CRENEL_SLOTS),
           "The slots of a plaintext: float64 when they are real, else complex128; a vector, or a "
           "matrix\n"
           "with a row for each vector of a batch. Raises StateError for other parameters or "
           "devices.");
  bind_loaders(c);
  bind_stream(c);
  c.def("__repr__", [](const Context& context) {
    const ckks::Params& p = context.params();
    return cat("<ckks.Context log N = ", p.log_n(), ", ", p.normal_top_level(), " levels on ",
               context.device().info().name, ">");
  });
}

}  // namespace crenel::python
