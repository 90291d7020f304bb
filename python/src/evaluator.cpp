// Evaluator: homomorphic operations on ciphertexts. Explicit: nothing rescales behind your back.

#include "arrays.h"
#include "ciphertext_like.h"
#include "names.h"

namespace crenel::python {
namespace {

using ckks::Evaluator;
using Complex = std::complex<double>;
using EvaluatorClass = nb::class_<Evaluator>;

Ciphertext wrap(const Evaluator& ev, ckks::Ciphertext&& value) {
  return Ciphertext{ev.context(), std::move(value)};
}

/// A member function of one ciphertext as a function of bound ones.
template <ckks::Ciphertext (Evaluator::*op)(const ckks::Ciphertext&) const>
Ciphertext unary(const Evaluator& ev, CiphertextLike a) {
  return wrap(ev, (ev.*op)(a.get()));
}

template <ckks::Ciphertext (Evaluator::*op)(const ckks::Ciphertext&, const ckks::Ciphertext&) const>
Ciphertext binary(const Evaluator& ev, CiphertextLike a, CiphertextLike b) {
  return wrap(ev, (ev.*op)(a.get(), b.get()));
}

template <ckks::Ciphertext (Evaluator::*op)(const ckks::Ciphertext&, const ckks::Plaintext&) const>
Ciphertext with_plaintext(const Evaluator& ev, CiphertextLike a, const Plaintext& b) {
  return wrap(ev, (ev.*op)(a.get(), b.value));
}

Ciphertext polynomial(const Evaluator& ev, CiphertextLike x, nb::handle coefficients,
                      const std::string& basis, std::pair<double, double> interval) {
  const Array<double> c = read_reals(coefficients, "coefficients");
  const auto b = from_name(kBases, basis, "basis");
  return released([&] {
    return wrap(ev, ev.polynomial(x.get(), as_span(c), b, interval.first, interval.second));
  });
}

nb::object chebyshev_fit(const RealFunction& f, i64 degree, std::pair<double, double> interval) {
  return to_numpy(ckks::chebyshev_coefficients(values_by(f), interval.first, interval.second,
                                               as_unsigned<u32>(degree, "degree")));
}

std::vector<i64> sum_slots_rotations(i64 count, i64 stride) {
  return ckks::sum_slots_rotations(as_unsigned<u64>(count, "count"), stride);
}

void bind_linear(EvaluatorClass& c) {
  c.def("add", &binary<&Evaluator::add>, "a"_a, "b"_a, ReleaseGil(),
        "a + b. Level l -> l, scale s -> s; levels, scales and slots must agree.\n\n"
        "Raises StateError naming both values where parameters, devices, secret keys, levels, "
        "scales\n"
        "(by more than 1e-12 of them) or slots differ, as every operation of two does.")
      .def("add", &with_plaintext<&Evaluator::add>, "a"_a, "b"_a, ReleaseGil())
      .def(
          "add",
          [](const Evaluator& ev, CiphertextLike a, Complex b) {
            return wrap(ev, ev.add(a.get(), b));
          },
          "a"_a, "b"_a, ReleaseGil())
      .def("sub", &binary<&Evaluator::sub>, "a"_a, "b"_a, ReleaseGil(),
           "a - b. Level l -> l, scale s -> s; levels, scales and slots must agree.")
      .def("sub", &with_plaintext<&Evaluator::sub>, "a"_a, "b"_a, ReleaseGil())
      .def(
          "sub",
          [](const Evaluator& ev, CiphertextLike a, Complex b) {
            return wrap(ev, ev.add(a.get(), -b));
          },
          "a"_a, "b"_a, ReleaseGil())
      .def("negate", &unary<&Evaluator::negate>, "a"_a, ReleaseGil(),
           "-a. Level l -> l, scale s -> s.")
      .def(
          "multiply_integer",
          [](const Evaluator& ev, CiphertextLike a, i64 re, i64 im) {
            return wrap(ev, ev.multiply_integer(a.get(), re, im));
          },
          "a"_a, "re"_a, "im"_a = 0, ReleaseGil(),
          "a times the Gaussian integer re + im i. Level l -> l, scale s -> s; the noise grows\n"
          "with the integer.")
      .def(
          "multiply_monomial",
          [](const Evaluator& ev, CiphertextLike a, i64 power) {
            return wrap(ev, ev.multiply_monomial(a.get(), power));
          },
          "a"_a, "power"_a, ReleaseGil(),
          "a times X^power: slot j times exp(pi i power 5^j / N). Level l -> l, scale s -> s, the\n"
          "same noise, no key. Of any sign, modulo 2 N: X^N is -1, X^(N/2) is i.\n\n"
          "Of n slots, a multiple of N / 2n keeps n; another power, which 2^v divides and no "
          "higher\n"
          "power of two, makes N / 2^(v + 1). Each power is prepared once for a context, which "
          "keeps\n"
          "it: 4 N / 2^v bytes for each prime (OutOfMemoryError where there is no room).");
}

void bind_products(EvaluatorClass& c) {
  c.def("multiply", &binary<&Evaluator::multiply>, "a"_a, "b"_a, ReleaseGil(),
        "a * b, relinearised. Level l -> l, scale s_a, s_b -> s_a s_b; rescale when wanted.\n\n"
        "Raises StateError, as add does, and where the scale would not be below the level's "
        "modulus;\n"
        "KeyMissingError without a relinearisation key.")
      .def("multiply", &with_plaintext<&Evaluator::multiply>, "a"_a, "b"_a, ReleaseGil())
      .def(
          "multiply",
          [](const Evaluator& ev, CiphertextLike a, Complex b, std::optional<double> scale) {
            return wrap(ev, ev.multiply(a.get(), b, as_scale(scale)));
          },
          "a"_a, "b"_a, "scale"_a = nb::none(), ReleaseGil(),
          "By a constant, encoded at `scale` (default: such that rescale lands on the canonical\n"
          "scale).")
      .def("square", &unary<&Evaluator::square>, "a"_a, ReleaseGil(),
           "a * a, relinearised. Level l -> l, scale s -> s^2.")
      .def("multiply_lazy", &binary<&Evaluator::multiply_lazy>, "a"_a, "b"_a, ReleaseGil(),
           "a * b with 3 components: sums of such products need one relinearisation.")
      .def("square_lazy", &unary<&Evaluator::square_lazy>, "a"_a, ReleaseGil(),
           "a * a with 3 components.")
      .def("relinearise", &unary<&Evaluator::relinearise>, "a"_a, ReleaseGil(),
           "From 3 components to 2. Level l -> l, scale s -> s. Raises StateError for 2 already.")
      .def("multiply_rescale", &binary<&Evaluator::multiply_rescale>, "a"_a, "b"_a, ReleaseGil(),
           "rescale(multiply(a, b)) in one. Level l -> l-1, scale -> s_a s_b / rescale_ratio(l).")
      .def("relinearise_rescale", &unary<&Evaluator::relinearise_rescale>, "a"_a, ReleaseGil(),
           "rescale(relinearise(a)) in one. Level l -> l-1, scale s -> s / rescale_ratio(l).");
}

void bind_levels(EvaluatorClass& c) {
  c.def("rescale", &unary<&Evaluator::rescale>, "a"_a, ReleaseGil(),
        "Divide by the last primes. Level l -> l-1, scale s -> s / rescale_ratio(l).\n\n"
        "Raises StateError at level 0.")
      .def(
          "adjust_level",
          [](const Evaluator& ev, CiphertextLike a, i64 level, std::optional<double> scale) {
            return wrap(
                ev, ev.adjust_level(a.get(), as_unsigned<u32>(level, "level"), as_scale(scale)));
          },
          "a"_a, "level"_a, "scale"_a = nb::none(), ReleaseGil(),
          "To a lower level and a scale (default: its canonical one); the message stays.\n"
          "Level l -> level, scale s -> scale.\n\n"
          "Raises StateError for a level above the ciphertext's, ParameterError for one below 0 "
          "and for\n"
          "scales outside 1 to the level's modulus.");
}

void bind_slots(EvaluatorClass& c) {
  c.def(
       "rotate",
       [](const Evaluator& ev, CiphertextLike a, i64 steps) {
         return wrap(ev, ev.rotate(a.get(), steps));
       },
       "a"_a, "steps"_a, ReleaseGil(),
       "Slot i becomes slot i + steps of a: numpy.roll(a, -steps). Level l -> l, scale s -> s.\n\n"
       "Raises KeyMissingError naming the rotation when there is no key for it.")
      .def("conjugate", &unary<&Evaluator::conjugate>, "a"_a, ReleaseGil(),
           "Complex conjugate of every slot. Level l -> l, scale s -> s.")
      .def(
          "rotate_many",
          [](const Evaluator& ev, CiphertextLike a, const std::vector<i64>& steps) {
            std::vector<Ciphertext> results;
            for (ckks::Ciphertext& value : ev.rotate_many(a.get(), steps))
              results.push_back(wrap(ev, std::move(value)));
            return results;
          },
          "a"_a, "steps"_a, ReleaseGil(),
          "All these rotations of one ciphertext, hoisted: one decomposition for all.")
      .def(
          "rotate_sum",
          [](const Evaluator& ev, CiphertextLike a, const std::vector<i64>& steps) {
            return wrap(ev, ev.rotate_sum(a.get(), steps));
          },
          "a"_a, "steps"_a, ReleaseGil(),
          "Sum of rotations (step 0: a itself), hoisted. Level l -> l, scale s -> s.")
      .def(
          "with_slots",
          [](const Evaluator& ev, CiphertextLike a, i64 slots, bool repeating) {
            return wrap(ev, ev.with_slots(a.get(), as_slots(slots), repeating));
          },
          "a"_a, "slots"_a, nb::kw_only(), "repeating"_a = false, ReleaseGil(),
          "The same ciphertext as a vector of `slots` slots. Level l -> l, scale s -> s.\n\n"
          "More: the vector repeats. Fewer: only where slot i and slot i + slots are equal "
          "anyway,\n"
          "which a ciphertext does not show: StateError unless `repeating` says so. A sum over\n"
          "count = a.slots / slots at stride `slots` repeats.")
      .def(
          "sum_slots",
          [](const Evaluator& ev, CiphertextLike a, i64 count, i64 stride) {
            return wrap(ev, ev.sum_slots(a.get(), as_unsigned<u64>(count, "count"), stride));
          },
          "a"_a, "count"_a, "stride"_a = 1, ReleaseGil(),
          "Slot i becomes the sum of `count` (a power of two) slots i, i + stride, ...\n"
          "Needs the rotations of ckks.sum_slots_rotations(count, stride). Level l -> l,\n"
          "scale s -> s. Raises ParameterError for a count that is no power of two up to slots.");
}

}  // namespace

void bind_evaluator(nb::module_& m) {
  EvaluatorClass c(
      m, "Evaluator",
      "Homomorphic operations, each exactly what it says: nothing rescales or changes level\n"
      "behind your back. Call it on a ciphertext for the convenient form: ev(a) * ev(b) + 1.\n"
      "Where the bounds of operands are known, a result that could exceed params.max_value is\n"
      "refused before any work: StateError names operation, level, bound and max_value.\n\n"
      "Errors of operations: docs/theory/precision.md, \"Operations\"; hoisted rotations and "
      "series\n"
      "in powers or Chebyshev polynomials: BMTH21.");
  c.def_prop_ro("context", &Evaluator::context, "The context.")
      .def_prop_ro(
          "keys", [](const Evaluator& ev) { return EvaluationKeys{ev.context(), ev.keys()}; },
          "The keys.")
      .def("checked", &Evaluator::checked, "client"_a, ReleaseGil(),
           "For tests: the same evaluator, whose every operation also decrypts its operands and "
           "its\n"
           "result, and compares with the operation in the clear.\n\n"
           "StateError names the first operation whose result left the range of its level "
           "(operation,\n"
           "level, factor) or whose error is far beyond what it should be. It tells of decrypted\n"
           "magnitudes and holds the secret key: never for a server. Slow. Raises StateError for "
           "the\n"
           "client of another context or secret key.")
      .def(
          "__call__",
          [](const Evaluator& ev, CiphertextLike a) { return ckks::Operand(ev, *a.shared); },
          "ciphertext"_a,
          "The convenient form: operators on ciphertexts, levels and scales handled.")
      .def(
          "__call__",
          [](nb::handle self, nb::handle array) -> nb::object {
            if (!nb::hasattr(array, "bound_to")) throw nb::next_overload();
            return array.attr("bound_to")(self);
          },
          "array"_a, nb::sig("def __call__(self, array: Array) -> Array"),
          "Array.bound_to: every ciphertext of the array with this evaluator.");
  bind_linear(c);
  bind_products(c);
  bind_levels(c);
  bind_slots(c);
  c.def(
      "polynomial", &polynomial, "x"_a, "coefficients"_a, "basis"_a = "power",
      "interval"_a = std::pair(-1.0, 1.0),
      nb::sig("def polynomial(self, x: Ciphertext | Operand, coefficients: numpy.typing.ArrayLike, "
              "basis: typing.Literal['power', 'chebyshev'] = 'power', "
              "interval: tuple[float, float] = (-1.0, 1.0)) -> Ciphertext"),
      "sum_k coefficients[k] x^k, a vector, lowest first, or the Chebyshev series on "
      "`interval`.\n\n"
      "Level l -> l - polynomial_depth(degree), one lower for an interval other than (-1, 1);\n"
      "scale -> canonical. Raises StateError naming both levels when there are too few.");
  c.def_static(
      "chebyshev_fit", &chebyshev_fit, "f"_a, "degree"_a, "interval"_a = std::pair(-1.0, 1.0),
      nb::sig(
          "def chebyshev_fit(f: collections.abc.Callable[[float], float], degree: int, "
          "interval: tuple[float, float] = (-1.0, 1.0)) -> numpy.typing.NDArray[numpy.float64]"),
      "Coefficients of f on an interval for polynomial(..., basis='chebyshev'): degree + 1 of "
      "them.\n\n"
      "Raises ParameterError for an empty interval, degrees below 0 and values of f that are not\n"
      "finite.");
  c.def("__repr__", [](const Evaluator& ev) {
    return cat("<ckks.Evaluator on ", ev.context().device().info().name, ">");
  });
  m.def("sum_slots_rotations", &sum_slots_rotations, "count"_a, "stride"_a = 1,
        "Rotations whose keys a sum over `count` slots (a power of two) at this distance needs.\n\n"
        "Raises ParameterError for any other count.");
  m.def(
      "polynomial_depth",
      [](i64 degree) { return ckks::polynomial_depth(as_unsigned<u32>(degree, "degree")); },
      "degree"_a, "Levels that Evaluator.polynomial consumes for this degree.");
}

}  // namespace crenel::python
