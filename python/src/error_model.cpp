// Error bounds: the evaluator and the operands that run a circuit on them.
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "ciphertext_like.h"
#include "names.h"

namespace crenel::python {
namespace {

using ckks::BoundOperand;
using ckks::ErrorBound;
using ckks::ErrorModel;
using Complex = std::complex<double>;

constexpr Names<ckks::Encryption, 2> kEncryptions{
    {{"secret_key", ckks::Encryption::secret_key}, {"public_key", ckks::Encryption::public_key}}};

std::vector<Complex> as_complex(const Values& values) {
  return std::visit(
      [](const auto& a) { return std::vector<Complex>(a.data(), a.data() + a.size()); },
      values.numbers);
}

/// The bound of an encoded vector: of its own values.
BoundOperand bound_of(const ErrorModel& model, const Plaintext& p) {
  double largest = 0.0;
  for (const Complex& v : p.context.decode(p.value)) largest = std::max(largest, std::abs(v));
  return {model, model.plaintext(largest, p.value.metadata().real, p.value.level(), p.value.scale(),
                                 p.value.slots())};
}

/// Calls f with a bound, an integer, a real or complex number, or a vector.
template <class F>
BoundOperand with_term(const ErrorModel& model, nb::handle object, F f) {
  if (nb::isinstance<BoundOperand>(object)) return f(nb::cast<const BoundOperand&>(object));
  if (nb::isinstance<Plaintext>(object))
    return f(bound_of(model, nb::cast<const Plaintext&>(object)));
  if (nb::isinstance<Ciphertext>(object) || nb::isinstance<ckks::Operand>(object))
    throw nb::type_error("a ciphertext beside an error bound: give the bound of its input");
  if (const auto number = number_of(object)) return std::visit(f, *number);
  const auto values = as_complex(read_values(object));
  return f(std::span<const Complex>(values));
}

BoundOperand add(const BoundOperand& a, nb::handle b) {
  return with_term(a.model(), b, [&](const auto& x) {
    if constexpr (std::is_same_v<std::decay_t<decltype(x)>, Integer>)
      return a.add(Complex(x.value));
    else if constexpr (std::is_same_v<std::decay_t<decltype(x)>, double>)
      return a.add(Complex(x));
    else
      return a.add(x);
  });
}

BoundOperand multiply(const BoundOperand& a, nb::handle b) {
  return with_term(a.model(), b, [&](const auto& x) {
    if constexpr (std::is_same_v<std::decay_t<decltype(x)>, Integer>)
      return a.multiply(Complex(x.value));
    else
      return a.multiply(x);
  });
}

BoundOperand divide(const BoundOperand& a, nb::handle b) {
  if (nb::isinstance<BoundOperand>(b) || nb::isinstance<Plaintext>(b)) throw nb::next_overload();
  return with_term(a.model(), b, [&](const auto& x) -> BoundOperand {
    using T = std::decay_t<decltype(x)>;
    if constexpr (std::is_same_v<T, BoundOperand>) {
      throw nb::next_overload();
    } else if constexpr (std::is_same_v<T, std::span<const Complex>>) {
      return a.divide(x);
    } else {
      const Complex z = [&] {
        if constexpr (std::is_same_v<T, Integer>)
          return Complex(x.value);
        else
          return Complex(x);
      }();
      if (z == 0.0) {
        PyErr_SetString(PyExc_ZeroDivisionError, "division of a ciphertext by zero");
        throw nb::python_error();
      }
      if constexpr (std::is_same_v<T, Complex>)
        return a.divide(z);
      else
        return a.divide(z.real());
    }
  });
}

BoundOperand power(const BoundOperand& a, i64 exponent) {
  return a.power(as_unsigned<u64>(exponent, "exponent"));
}

BoundOperand polynomial(const BoundOperand& x, nb::handle coefficients, const std::string& basis,
                        std::pair<double, double> interval) {
  const Array<double> c = read_reals(coefficients, "coefficients");
  return x.polynomial(as_span(c), from_name(kBases, basis, "basis"), interval.first,
                      interval.second);
}

/// What is no operation of the model is refused by name, so that no circuit is modelled in part.
/// Names with underscores are Python's own questions.
nb::object refuse(nb::handle self, const std::string& name) {
  if (name.starts_with('_')) throw nb::attribute_error(cat("no attribute '", name, "'").c_str());
  const auto type = nb::cast<std::string>(self.type().attr("__name__"));
  throw UnsupportedError(cat(type, ".", name, ": the error model does not know this operation"),
                         {{"operation", name}});
}

std::vector<BoundOperand> wrapped(const ErrorModel& model, std::vector<ErrorBound> bounds) {
  std::vector<BoundOperand> out;
  for (ErrorBound& b : bounds) out.emplace_back(model, std::move(b));
  return out;
}

using ModelClass = nb::class_<ErrorModel>;
using BoundClass = nb::class_<BoundOperand>;

template <ErrorBound (ErrorModel::*op)(const ErrorBound&) const>
BoundOperand unary(const ErrorModel& m, const BoundOperand& a) {
  return {m, (m.*op)(a.bound())};
}
template <ErrorBound (ErrorModel::*op)(const ErrorBound&, const ErrorBound&) const>
BoundOperand binary(const ErrorModel& m, const BoundOperand& a, const BoundOperand& b) {
  return {m, (m.*op)(a.bound(), b.bound())};
}
template <ErrorBound (ErrorModel::*op)(const ErrorBound&, const ErrorBound&) const>
BoundOperand with_plaintext(const ErrorModel& m, const BoundOperand& a, const Plaintext& b) {
  return {m, (m.*op)(a.bound(), bound_of(m, b).bound())};
}

void bind_inputs(ModelClass& c) {
  c.def(nb::init<const ckks::Params&>(), "params"_a, "Of circuits with these parameters.")
      .def_prop_ro("params", &ErrorModel::params, "The parameters.")
      .def(
          "input",
          [](const ErrorModel& m, double max_abs, bool real, std::optional<i64> level,
             std::optional<double> scale, std::optional<i64> slots, const std::string& encryption) {
            return BoundOperand(
                m, m.input(max_abs, real, as_level(level), as_scale(scale), as_slots(slots),
                           from_name(kEncryptions, encryption, "encryption")));
          },
          nb::kw_only(), "max_abs"_a, "real"_a = false, "level"_a = nb::none(),
          "scale"_a = nb::none(), "slots"_a = nb::none(), "encryption"_a = "secret_key",
          nb::sig(
              "def input(self, *, max_abs: float, real: bool = False, level: int | None = None, "
              "scale: float | None = None, slots: int | None = None, encryption: "
              "typing.Literal['secret_key', 'public_key'] = 'secret_key') -> ErrorBound"),
          "The bound of a fresh encryption.\n\n"
          "Parameters\n----------\n"
          "max_abs : largest absolute value of a slot, positive; you answer for it\n"
          "real : every slot is a real number\n"
          "level, scale, slots : as the vector is encrypted with\n"
          "encryption : 'public_key' for PublicKey.encrypt\n\n"
          "The values must not come from a decryption. Raises ParameterError.")
      .def(
          "__call__", [](const ErrorModel&, const BoundOperand& a) { return a; }, "bound"_a,
          "The bound itself: what an evaluator does with a ciphertext.")
      .def(
          "__call__",
          [](nb::handle self, nb::handle array) -> nb::object {
            if (!nb::hasattr(array, "bound_to")) throw nb::next_overload();
            return array.attr("bound_to")(self);
          },
          "array"_a, nb::sig("def __call__(self, array: Array) -> Array"), "Array.bound_to.");
}

void bind_explicit(ModelClass& c) {
  using Steps = std::vector<i64>;
  c.def("add", &binary<&ErrorModel::add>, "a"_a, "b"_a, "As Evaluator.add.")
      .def("add", &with_plaintext<&ErrorModel::add>, "a"_a, "b"_a)
      .def(
          "add",
          [](const ErrorModel& m, const BoundOperand& a, Complex b) {
            return BoundOperand(m, m.add(a.bound(), b));
          },
          "a"_a, "b"_a)
      .def("sub", &binary<&ErrorModel::sub>, "a"_a, "b"_a, "As Evaluator.sub.")
      .def("sub", &with_plaintext<&ErrorModel::sub>, "a"_a, "b"_a)
      .def(
          "sub",
          [](const ErrorModel& m, const BoundOperand& a, Complex b) {
            return BoundOperand(m, m.add(a.bound(), -b));
          },
          "a"_a, "b"_a)
      .def("negate", &unary<&ErrorModel::negate>, "a"_a, "As Evaluator.negate.")
      .def(
          "multiply_integer",
          [](const ErrorModel& m, const BoundOperand& a, i64 re, i64 im) {
            return BoundOperand(m, m.multiply_integer(a.bound(), re, im));
          },
          "a"_a, "re"_a, "im"_a = 0, "As Evaluator.multiply_integer.")
      .def(
          "multiply_monomial",
          [](const ErrorModel& m, const BoundOperand& a, i64 power) {
            return BoundOperand(m, m.multiply_monomial(a.bound(), power));
          },
          "a"_a, "power"_a, "As Evaluator.multiply_monomial.")
      .def("multiply", &binary<&ErrorModel::multiply>, "a"_a, "b"_a, "As Evaluator.multiply.")
      .def("multiply", &with_plaintext<&ErrorModel::multiply>, "a"_a, "b"_a)
      .def(
          "multiply",
          [](const ErrorModel& m, const BoundOperand& a, Complex b, std::optional<double> scale) {
            return BoundOperand(m, m.multiply(a.bound(), b, as_scale(scale)));
          },
          "a"_a, "b"_a, "scale"_a = nb::none())
      .def("square", &unary<&ErrorModel::square>, "a"_a, "As Evaluator.square.")
      .def("multiply_lazy", &binary<&ErrorModel::multiply_lazy>, "a"_a, "b"_a,
           "As Evaluator.multiply_lazy.")
      .def("square_lazy", &unary<&ErrorModel::square_lazy>, "a"_a, "As Evaluator.square_lazy.")
      .def("relinearise", &unary<&ErrorModel::relinearise>, "a"_a, "As Evaluator.relinearise.")
      .def("multiply_rescale", &binary<&ErrorModel::multiply_rescale>, "a"_a, "b"_a,
           "As Evaluator.multiply_rescale.")
      .def("relinearise_rescale", &unary<&ErrorModel::relinearise_rescale>, "a"_a,
           "As Evaluator.relinearise_rescale.")
      .def("rescale", &unary<&ErrorModel::rescale>, "a"_a,
           "As Evaluator.rescale; UnsupportedError for three components.")
      .def(
          "adjust_level",
          [](const ErrorModel& m, const BoundOperand& a, i64 level, std::optional<double> scale) {
            return BoundOperand(
                m, m.adjust_level(a.bound(), as_unsigned<u32>(level, "level"), as_scale(scale)));
          },
          "a"_a, "level"_a, "scale"_a = nb::none(), "As Evaluator.adjust_level.")
      .def(
          "rotate",
          [](const ErrorModel& m, const BoundOperand& a, i64 steps) {
            return BoundOperand(m, m.rotate(a.bound(), steps));
          },
          "a"_a, "steps"_a, "As Evaluator.rotate.")
      .def("conjugate", &unary<&ErrorModel::conjugate>, "a"_a, "As Evaluator.conjugate.")
      .def(
          "rotate_many",
          [](const ErrorModel& m, const BoundOperand& a, const Steps& steps) {
            return wrapped(m, m.rotate_many(a.bound(), steps));
          },
          "a"_a, "steps"_a, "As Evaluator.rotate_many.")
      .def(
          "rotate_sum",
          [](const ErrorModel& m, const BoundOperand& a, const Steps& steps) {
            return BoundOperand(m, m.rotate_sum(a.bound(), steps));
          },
          "a"_a, "steps"_a, "As Evaluator.rotate_sum.")
      .def(
          "sum_slots",
          [](const ErrorModel& m, const BoundOperand& a, i64 count, i64 stride) {
            return BoundOperand(m,
                                m.sum_slots(a.bound(), as_unsigned<u64>(count, "count"), stride));
          },
          "a"_a, "count"_a, "stride"_a = 1, "As Evaluator.sum_slots.")
      .def(
          "with_slots",
          [](const ErrorModel& m, const BoundOperand& a, i64 slots, bool repeating) {
            return BoundOperand(m, m.with_slots(a.bound(), as_slots(slots), repeating));
          },
          "a"_a, "slots"_a, nb::kw_only(), "repeating"_a = false, "As Evaluator.with_slots.")
      .def(
          "polynomial",
          [](const ErrorModel&, const BoundOperand& x, nb::handle coefficients,
             const std::string& basis, std::pair<double, double> interval) {
            return polynomial(x, coefficients, basis, interval);
          },
          "x"_a, "coefficients"_a, "basis"_a = "power", "interval"_a = std::pair(-1.0, 1.0),
          nb::sig("def polynomial(self, x: ErrorBound, coefficients: numpy.typing.ArrayLike, "
                  "basis: typing.Literal['power', 'chebyshev'] = 'power', "
                  "interval: tuple[float, float] = (-1.0, 1.0)) -> ErrorBound"),
          "As Evaluator.polynomial.");
}

void bind_facts(BoundClass& c) {
  const auto fact = [&](const char* name, double ErrorBound::* field, const char* doc) {
    c.def_prop_ro(name, [field](const BoundOperand& b) { return b.bound().*field; }, doc);
  };
  c.def_prop_ro("level", &BoundOperand::level, "Level that the ciphertext must have.")
      .def_prop_ro("scale", &BoundOperand::scale, "Scale that it must have.")
      .def_prop_ro("slots", &BoundOperand::slots, "Its slots.")
      .def_prop_ro(
          "components", [](const BoundOperand& b) { return b.bound().components; },
          "Of the ciphertext: 2, or 3 before relinearisation.")
      .def_prop_ro(
          "real", [](const BoundOperand& b) { return b.bound().meta.real; },
          "Every slot is a real number.");
  fact("message", &ErrorBound::message, "Largest |slot| of the exact result.");
  fact("bound", &ErrorBound::message, "`message`, by the name that ciphertexts have for it.");
  fact("rms", &ErrorBound::rms, "Root mean square of the slots' errors, at most.");
  fact("max", &ErrorBound::max, "Largest |slot| of the error, at most.");
  fact("variance", &ErrorBound::variance,
       "Expected mean square of the slots' errors were all of them independent: no bound.");
  fact("failure", &ErrorBound::failure, "Probability, at most, that a bound does not hold.");
  c.def("__repr__", [](const BoundOperand& b) {
    return cat("<ckks.ErrorBound level ", b.level(), ", slots up to ", b.bound().message,
               ", error ", b.bound().rms, " rms>");
  });
}

void bind_operators(BoundClass& c) {
  c.attr("__array_ufunc__") = nb::none();
  const auto both = [&](const char* name, const char* reflected, auto f) {
    for (const char* n : {name, reflected})
      c.def(n, f, "other"_a, nb::is_operator(),
            nb::sig(cat("def ", n,
                        "(self, other: ErrorBound | Plaintext | "
                        "numpy.typing.ArrayLike) -> ErrorBound")
                        .c_str()));
  };
  both("__add__", "__radd__", &add);
  both("__sub__", "__rsub__", &add);  // errors and bounds of a difference are those of the sum
  both("__mul__", "__rmul__", &multiply);
  c.def("__truediv__", &divide, "other"_a, nb::is_operator(),
        nb::sig("def __truediv__(self, other: complex | numpy.typing.ArrayLike) -> ErrorBound"))
      .def("__pow__", &power, "exponent"_a)
      .def("__neg__", [](const BoundOperand& a) { return -a; })
      .def(
          "__pos__", [](nb::object self) { return self; },
          nb::sig("def __pos__(self) -> ErrorBound"))
      .def("square", &BoundOperand::square, "As Operand.square.");
}

void bind_slots(BoundClass& c) {
  using Steps = std::vector<i64>;
  c.def("multiply_monomial", &BoundOperand::multiply_monomial, "power"_a,
        "As Operand.multiply_monomial.")
      .def("rotate", &BoundOperand::rotate, "steps"_a, "As Operand.rotate.")
      .def(
          "rotate_many",
          [](const BoundOperand& a, const Steps& steps) { return a.rotate_many(steps); }, "steps"_a,
          "As Operand.rotate_many.")
      .def(
          "rotate_sum",
          [](const BoundOperand& a, const Steps& steps) { return a.rotate_sum(steps); }, "steps"_a,
          "As Operand.rotate_sum.")
      .def("conjugate", &BoundOperand::conjugate, "As Operand.conjugate.")
      .def(
          "sum",
          [](const BoundOperand& a, std::optional<i64> count, i64 stride) {
            std::optional<u64> slots;
            if (count) slots = as_unsigned<u64>(*count, "count");
            return a.sum(slots, stride);
          },
          "count"_a = nb::none(), "stride"_a = 1, "As Operand.sum.")
      .def(
          "mean",
          [](const BoundOperand& a) { return a.sum().divide(static_cast<double>(a.slots())); },
          "As Operand.mean.")
      .def(
          "with_slots",
          [](const BoundOperand& a, i64 slots, bool repeating) {
            return a.with_slots(as_slots(slots), repeating);
          },
          "slots"_a, nb::kw_only(), "repeating"_a = false, "As Operand.with_slots.")
      .def(
          "at_level",
          [](const BoundOperand& a, i64 level) {
            return a.at_level(as_unsigned<u32>(level, "level"));
          },
          "level"_a, "As Operand.at_level.")
      .def("polynomial", &polynomial, "coefficients"_a, "basis"_a = "power",
           "interval"_a = std::pair(-1.0, 1.0),
           nb::sig("def polynomial(self, coefficients: numpy.typing.ArrayLike, "
                   "basis: typing.Literal['power', 'chebyshev'] = 'power', "
                   "interval: tuple[float, float] = (-1.0, 1.0)) -> ErrorBound"),
           "As Operand.polynomial.")
      .def_prop_ro(
          "ciphertext", [](nb::object self) { return self; },
          nb::sig("def ciphertext(self) -> ErrorBound"), "The bound itself.")
      .def_prop_ro("evaluator", &BoundOperand::model, "The model.");
}

}  // namespace

void bind_error_model(nb::module_& m) {
  ModelClass model(
      m, "ErrorModel",
      "The errors that a circuit leaves, from what the client knows: parameters, circuit, "
      "bounds\n"
      "of the inputs. It stands where an Evaluator does: run your function on it and on "
      "inputs of\n"
      "`input`, and give the result to Client.decrypt_to_share.\n\n"
      "Bounds hold whatever the inputs are within theirs, but for a probability of about "
      "2^-128\n"
      "an operation: docs/theory/precision.md, \"Bounds for results that are shared\". What has "
      "no\n"
      "model raises UnsupportedError.");
  BoundClass bound(
      m, "ErrorBound",
      "What holds of a ciphertext at some place of a circuit. Immutable; computes as "
      "Operand\n"
      "does, with the same levels and scales: docs/theory/precision.md, \"Operations\".");
  bind_inputs(model);
  bind_explicit(model);
  model.def("__getattr__", &refuse, "name"_a).def("__repr__", [](const ErrorModel& e) {
    return cat("<ckks.ErrorModel of ",
               e.params().name().empty() ? e.params().id() : e.params().name(), ">");
  });
  refuse_comparisons(bound, "the bound of a ciphertext");
  bind_facts(bound);
  bind_operators(bound);
  bind_slots(bound);
  bound.def("__getattr__", &refuse, "name"_a);
}

}  // namespace crenel::python
