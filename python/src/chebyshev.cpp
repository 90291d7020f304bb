// Fits of functions by Chebyshev series.
#include <iomanip>
#include <sstream>

#include "arrays.h"

namespace crenel::python {
namespace {

/// A fit with the evaluator that it is called with; none where an error model made it.
struct Fit {
  ckks::ChebyshevFit value;
  std::optional<ckks::Evaluator> evaluator;
};

Ciphertext call(const Fit& fit, const Ciphertext& x) {
  if (!fit.evaluator)
    throw StateError(
        "a fit of an error model, called on a ciphertext, expected one of an evaluator",
        {{"found", "error model"}, {"expected", "evaluator"}});
  return Ciphertext{fit.evaluator->context(), fit.value(*fit.evaluator, x.value)};
}

template <class Maker>
auto maker() {
  return [](const Maker& ev, const RealFunction& f, double a, double b, i64 degree) {
    std::optional<ckks::Evaluator> evaluator;
    if constexpr (std::is_same_v<Maker, ckks::Evaluator>) evaluator = ev;
    return Fit{ckks::ChebyshevFit(values_by(f), a, b, as_unsigned<u32>(degree, "degree")),
               std::move(evaluator)};
  };
}

/// The series of an array of any shape in the clear.
nb::object clear(const Fit& fit, nb::handle x) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("asarray")(x, "float64");
  const auto flat =
      nb::cast<Array<double>>(numpy.attr("ascontiguousarray")(array).attr("reshape")(-1));
  std::vector<double> values(flat.data(), flat.data() + flat.size());
  for (double& v : values) v = fit.value.clear(v);
  const nb::object shaped = to_numpy(std::move(values)).attr("reshape")(array.attr("shape"));
  return shaped[nb::tuple()];  // a number for a number
}

}  // namespace

void bind_chebyshev(nb::module_& m) {
  nb::class_<Fit>(
      m, "ChebyshevFit",
      "A Chebyshev series on an interval, to be called on ciphertexts. See\n"
      "Evaluator.chebyshev. Outside the interval it grows without bound. How it is evaluated:\n"
      "docs/theory/bootstrapping.md, \"EvalMod\".")
      .def_prop_ro(
          "coefficients",
          [](const Fit& f) { return to_numpy(std::vector<double>(f.value.coefficients())); },
          nb::sig("def coefficients(self) -> numpy.typing.NDArray[numpy.float64]"),
          "Of T_0, T_1, ..., as Evaluator.polynomial(..., basis='chebyshev') takes them.")
      .def_prop_ro(
          "interval", [](const Fit& f) { return std::pair(f.value.a(), f.value.b()); },
          "Where the series was fitted.")
      .def_prop_ro(
          "error", [](const Fit& f) { return f.value.error(); },
          "Largest distance from the function on the interval, measured on a dense grid; the "
          "errors\n"
          "of encryption come on top.")
      .def_prop_ro(
          "evaluator", [](const Fit& f) { return f.evaluator; }, "For calls on ciphertexts.")
      .def_prop_ro(
          "degree", [](const Fit& f) { return f.value.degree(); },
          "Degree of the series, without trailing zeros.")
      .def_prop_ro(
          "depth", [](const Fit& f) { return f.value.depth(); },
          "Levels that a call consumes: one more where the interval is not [-1, 1].")
      .def("__call__", &call, "x"_a, ReleaseGil(),
           "The series of every slot. Level l -> l - depth, scale -> canonical.\n\n"
           "Raises StateError naming both levels when there are too few.")
      .def(
          "__call__", [](const Fit& f, const ckks::Operand& x) { return f.value(x); }, "x"_a,
          ReleaseGil())
      .def(
          "__call__",
          [](const Fit& f, const ckks::BoundOperand& x) {
            return x.polynomial(f.value.coefficients(), ckks::PolynomialBasis::chebyshev,
                                f.value.a(), f.value.b());
          },
          "x"_a, ReleaseGil())
      .def("clear", &clear, "x"_a,
           nb::sig(
               "def clear(self, x: numpy.typing.ArrayLike) -> numpy.typing.NDArray[numpy.float64]"),
           "The series of real numbers in the clear.")
      .def("__repr__", [](const Fit& f) {
        std::ostringstream out;
        out << "<ckks.ChebyshevFit of degree " << f.value.degree() << " on [" << f.value.a() << ", "
            << f.value.b() << "], error " << std::setprecision(3) << f.value.error() << ">";
        return out.str();
      });
  nb::borrow<nb::class_<ckks::Evaluator>>(nb::type<ckks::Evaluator>())
      .def("chebyshev", maker<ckks::Evaluator>(), "f"_a, "a"_a, "b"_a, "degree"_a,
           nb::sig("def chebyshev(self, f: collections.abc.Callable[[float], float], a: float, "
                   "b: float, degree: int) -> ChebyshevFit"),
           "The polynomial that agrees with f in degree + 1 Chebyshev nodes of [a, b]: with its "
           "largest\n"
           "error on the interval as `error`, and called on a ciphertext to evaluate it.\n\n"
           "    gelu = ev.chebyshev(f, -4, 4, 15); y = gelu(x)\n\n"
           "Level l -> l - fit.depth, scale -> canonical. Raises ParameterError for an empty "
           "interval,\n"
           "degrees above 65536 and values of f that are not finite; what f raises comes through.");
  nb::borrow<nb::class_<ckks::ErrorModel>>(nb::type<ckks::ErrorModel>())
      .def("chebyshev", maker<ckks::ErrorModel>(), "f"_a, "a"_a, "b"_a, "degree"_a,
           nb::sig("def chebyshev(self, f: collections.abc.Callable[[float], float], a: float, "
                   "b: float, degree: int) -> ChebyshevFit"),
           "The fit that Evaluator.chebyshev makes, to be called on bounds.");
}

}  // namespace crenel::python
