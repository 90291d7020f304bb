// Shared pieces of the nanobind module: one bind_* function a topic, and values with their context.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "crenel/crenel.h"
#include "watch.h"

namespace crenel::python {

namespace nb = nanobind;
using namespace nb::literals;

void bind_errors(nb::module_& m);
void bind_optimisations(nb::module_& m);
void bind_tuning(nb::module_& m);
void bind_device(nb::module_& m);
void bind_params(nb::module_& m);
void bind_ciphertext(nb::module_& m);
void bind_context(nb::module_& m);
void bind_client(nb::module_& m);
void bind_error_model(nb::module_& m);
void bind_evaluator(nb::module_& m);
void bind_operand(nb::module_& m);
void bind_chebyshev(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_account(nb::module_& m);
void bind_linear_transform(nb::module_& m);
void bind_block_transform(nb::module_& m);
void bind_bootstrapping(nb::module_& m);
void bind_fhecore(nb::module_& m);
void bind_bench(nb::module_& m);
void bind_files(nb::module_& m);
void bind_watch(nb::module_& m);

/// A value together with its context, so that it can serialise itself.
template <class T, class Context = ckks::Context>
struct Bound {
  Context context;
  T value;
};
/// The same for a ciphertext, which it shares with the operands made of it.
template <>
struct Bound<ckks::Ciphertext, ckks::Context> {
  ckks::Context context;
  std::shared_ptr<const ckks::Ciphertext> shared;
  const ckks::Ciphertext& value;

  Bound(ckks::Context c, std::shared_ptr<const ckks::Ciphertext> s)
      : context(std::move(c)), shared(std::move(s)), value(*shared) {}
  Bound(ckks::Context c, ckks::Ciphertext&& v)
      : Bound(std::move(c), std::make_shared<const ckks::Ciphertext>(std::move(v))) {}
};

using Ciphertext = Bound<ckks::Ciphertext>;
using Plaintext = Bound<ckks::Plaintext>;
using EvaluationKeys = Bound<ckks::EvaluationKeys>;
using PublicKey = Bound<ckks::PublicKey>;

/// Keywords of a key request, as Python states them.
#define CRENEL_KEYS_SIG                                                                  \
  "rotations: collections.abc.Sequence[int] | collections.abc.Mapping[int, int] = (), "  \
  "conjugate: bool = False, relinearisation: bool = True, encapsulation: bool = False, " \
  "bootstrap: bool | typing.Literal['hoisted', 'minimal'] | BootstrapOptions | "         \
  "collections.abc.Sequence[BootstrapOptions] = False, max_level: int | None = None, "   \
  "aligned: bool = False"

/// Around every call that computes: other Python threads run meanwhile, and it can be stopped.
using ReleaseGil = nb::call_guard<Computing>;

/// The ciphertext of a bound one or of an operand, which `object` keeps alive.
const ckks::Ciphertext& as_ciphertext(nb::handle object);

/// TypeError "expected WHAT, got TYPE", with the name of the object's type.
[[noreturn]] void refuse_type(const std::string& what, nb::handle object);

/// The class of crenel.errors with this name. The package states them (register_errors): this
/// module imports nothing of it.
nb::object error_type(const char* name);

/// The request with what bootstrapping needs added: `bootstrap` is a bool, a name of a key mode, a
/// BootstrapOptions object or several of them.
ckks::KeyRequest with_bootstrap(ckks::KeyRequest request, const ckks::Params& params,
                                nb::handle bootstrap);
/// A request as Python states it: `rotations` is a sequence of steps, or a mapping of steps to the
/// highest level of each.
ckks::KeyRequest key_request(nb::handle rotations, bool conjugate, bool relinearisation,
                             bool encapsulation, std::optional<i64> max_level);
/// The request with a key for aligned levels beside each where `aligned` asks for them;
/// ParameterError where the parameters have none up to the levels of the request.
ckks::KeyRequest with_aligned(ckks::KeyRequest request, const ckks::Params& params, bool aligned);

/// A Python integer as an unsigned one; ParameterError names the argument.
template <class T>
T as_unsigned(i64 value, const char* name) {
  if (value < 0 || static_cast<u64>(value) > std::numeric_limits<T>::max())
    throw ParameterError(
        cat(name, " must be between 0 and ", u64{std::numeric_limits<T>::max()}, ", got ", value),
        {{name, value}});
  return static_cast<T>(value);
}

/// A number of bytes as an argument: any integer of Python, so that one too large is an error of
/// its value and not of its type.
struct Bytes {
  i64 value = 0;
  bool fits = true;  ///< 64 bits; `value` is nothing otherwise
};

/// ParameterError names the argument.
inline u64 bytes_of(Bytes bytes, const char* name) {
  if (!bytes.fits)
    throw ParameterError(cat(name, " must be between 0 and 2^63 - 1, got an integer beyond that"),
                         {{name, "beyond 64 bits"}});
  return as_unsigned<u64>(bytes.value, name);
}

/// An optional level.
inline std::optional<u32> as_level(std::optional<i64> level) {
  if (!level) return std::nullopt;
  return as_unsigned<u32>(*level, "level");
}

/// An optional scale: the C++ interface spells "canonical" as 0.
inline double as_scale(std::optional<double> scale) {
  if (!scale) return 0.0;
  if (!(*scale > 0.0 && *scale < std::numeric_limits<double>::infinity()))
    throw ParameterError(cat("scale must be positive and finite, got ", *scale),
                         {{"scale", *scale}});
  return *scale;
}

/// An optional bound of slots: the C++ interface spells "unknown" as infinity.
inline double as_bound(std::optional<double> bound) { return bound.value_or(ckks::kUnknownBound); }

/// An optional slot count: the C++ interface spells "all" as 0.
inline u64 as_slots(std::optional<i64> slots) {
  if (!slots) return 0;
  if (*slots <= 0)
    throw ParameterError(cat("slots must be a power of two of at least 1, got ", *slots),
                         {{"slots", *slots}});
  return static_cast<u64>(*slots);
}

}  // namespace crenel::python

template <>
struct nanobind::detail::type_caster<crenel::python::Bytes> {
  NB_TYPE_CASTER(crenel::python::Bytes, const_name("int"))
  bool from_python(handle source, auto, cleanup_list*) noexcept {
    if (!PyIndex_Check(source.ptr()) || PyFloat_Check(source.ptr())) return false;
    const object index = steal(PyNumber_Index(source.ptr()));
    int overflow = 0;
    if (index.is_valid()) value.value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    value.fits = overflow == 0;
    if (!PyErr_Occurred()) return index.is_valid();
    PyErr_Clear();
    return false;
  }
};
