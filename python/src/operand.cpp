// The convenient form: C++ operands with Python's operators, numbers and NumPy arrays.
#include <sstream>

#include "arrays.h"
#include "ciphertext_like.h"
#include "names.h"

namespace crenel::python {
namespace {

using ckks::Operand;
using Complex = std::complex<double>;

/// What may stand beside an operand.
using Term =
    std::variant<const ckks::Ciphertext*, const ckks::Plaintext*, Integer, double, Complex, Values>;

Term term_of(nb::handle object) {
  if (const CiphertextLike found = find_ciphertext(object); found.shared) return &found.get();
  if (nb::isinstance<Plaintext>(object)) return &nb::cast<const Plaintext&>(object).value;
  if (const auto number = number_of(object))
    return std::visit([](auto x) { return Term(x); }, *number);
  if (nb::hasattr(object, "bound_to") || nb::hasattr(object, "evaluator"))
    throw nb::next_overload();  // arrays and records of programs compute with operands themselves
  return read_values(object);
}

/// Numbers as the operation wants them, everything else as it is.
template <class Operation>
struct OnTerm {
  Operation operation;

  Operand operator()(const ckks::Ciphertext* b) const { return operation(*b); }
  Operand operator()(const ckks::Plaintext* b) const { return operation(*b); }
  Operand operator()(Integer b) const { return operation(b); }
  Operand operator()(double b) const { return operation(b); }
  Operand operator()(Complex b) const { return operation(b); }
  Operand operator()(const Values& b) const {
    return std::visit([&](const auto& a) { return operation(as_span(a), b.batch); }, b.numbers);
  }
};

template <class Operation>
Operand on_term(nb::handle object, Operation operation) {
  const Term term = term_of(object);
  return released([&] { return std::visit(OnTerm<Operation>{operation}, term); });
}

/// Operations that do not care whether a number is an integer.
template <class Operation>
auto plainly(Operation operation) {
  return [operation](const auto& b, auto... batch) {
    if constexpr (std::is_same_v<std::decay_t<decltype(b)>, Integer>)
      return operation(Complex(b.value));
    else if constexpr (std::is_same_v<std::decay_t<decltype(b)>, double>)
      return operation(Complex(b));
    else
      return operation(b, batch...);
  };
}

Operand add(const Operand& a, nb::handle b) {
  return on_term(b, plainly([&](const auto&... x) { return a.add(x...); }));
}

Operand sub(const Operand& a, nb::handle b) {
  return on_term(b, plainly([&](const auto&... x) { return a.sub(x...); }));
}

Operand sub_from(const Operand& a, nb::handle b) {
  return on_term(b, plainly([&](const auto&... x) { return (-a).add(x...); }));
}

Operand multiply(const Operand& a, nb::handle b) {
  return on_term(b, [&](const auto& x, auto... batch) {
    if constexpr (std::is_same_v<std::decay_t<decltype(x)>, Integer>)
      return a.multiply(Complex(x.value));  // whole numbers are integers there
    else
      return a.multiply(x, batch...);
  });
}

Operand divide(const Operand& a, nb::handle b) {
  if (nb::isinstance<Operand>(b) || nb::isinstance<Ciphertext>(b) || nb::isinstance<Plaintext>(b))
    throw nb::next_overload();  // Python's TypeError
  if (const auto number = number_of(b)) {
    const auto* integer = std::get_if<Integer>(&*number);
    const auto* complex = std::get_if<Complex>(&*number);
    const Complex z = complex ? *complex : integer ? integer->value : std::get<double>(*number);
    if (z == 0.0) {
      PyErr_SetString(PyExc_ZeroDivisionError, "division of a ciphertext by zero");
      throw nb::python_error();
    }
    return released([&] { return complex ? a.divide(z) : a.divide(z.real()); });
  }
  const Values values = read_values(b);
  return released([&] {
    return std::visit([&](const auto& v) { return a.divide(as_span(v), values.batch); },
                      values.numbers);
  });
}

Operand power(const Operand& a, nb::handle exponent) {
  i64 k = 0;
  if (PyIndex_Check(exponent.ptr())) {
    const nb::object index = nb::steal(PyNumber_Index(exponent.ptr()));
    if (index.is_valid())
      nb::try_cast(index, k);
    else if (PyErr_ExceptionMatches(PyExc_TypeError))  // as of an array with axes
      PyErr_Clear();
    else
      throw nb::python_error();
  }
  if (k < 1) {
    const auto text = nb::cast<std::string>(nb::repr(exponent));
    throw ParameterError(cat("the exponent must be a positive integer, got ", text),
                         {{"exponent", text}});
  }
  return released([&] { return a.power(static_cast<u64>(k)); });
}

Operand polynomial(const Operand& x, nb::handle coefficients, const std::string& basis,
                   std::pair<double, double> interval) {
  const Array<double> c = read_reals(coefficients, "coefficients");
  const ckks::PolynomialBasis b = from_name(kBases, basis, "basis");
  return released([&] { return x.polynomial(as_span(c), b, interval.first, interval.second); });
}

using OperandClass = nb::class_<Operand>;

#define CRENEL_OPERAND_LIKE "Operand | Ciphertext | Plaintext | numpy.typing.ArrayLike"

void bind_facts(OperandClass& c) {
  c.def_prop_ro(
       "ciphertext",
       [](const Operand& o) { return Ciphertext{o.evaluator().context(), o.shared_ciphertext()}; },
       "The ciphertext, for the explicit operations.")
      .def_prop_ro(
          "evaluator", [](const Operand& o) { return o.evaluator(); },
          "The evaluator whose keys and device are used.")
      .def_prop_ro("level", &Operand::level,
                   "Index of the modulus: levels that can still be consumed.")
      .def_prop_ro("scale", &Operand::scale, "Scale of the message.")
      .def_prop_ro("slots", &Operand::slots, "Number of slots.")
      .def_prop_ro("bound", &Operand::bound, "Largest |slot| that it can have; inf: unknown.")
      .def_prop_ro(
          "real", [](const Operand& o) { return o.ciphertext().metadata().real; },
          "Every slot is known to be real.")
      .def(
          "to_bytes",
          [](const Operand& o) {
            return to_python(
                released([&] { return ckks::to_bytes(o.evaluator().context(), o.ciphertext()); }));
          },
          "The ciphertext as a complete safetensors file.")
      .def("__repr__", [](const Operand& o) {
        std::ostringstream scale;
        scale << o.scale();
        return cat("<ckks.Operand level ", o.level(), ", scale ", scale.str(), ", ", o.slots(),
                   " slots>");
      });
}

void bind_operators(OperandClass& c) {
  c.attr("__array_ufunc__") = nb::none();  // numpy_array * operand is ours, not NumPy's
  const auto both = [&](const char* name, const char* reflected, auto f, auto g, const char* doc) {
    const auto signature = [](const char* n) {
      return cat("def ", n, "(self, other: " CRENEL_OPERAND_LIKE ") -> Operand");
    };
    c.def(name, f, "other"_a, nb::is_operator(), nb::sig(signature(name).c_str()), doc);
    c.def(reflected, g, "other"_a, nb::is_operator(), nb::sig(signature(reflected).c_str()));
  };
  both("__add__", "__radd__", &add, &add, "Sum. Level: the lower one of the operands.");
  both("__sub__", "__rsub__", &sub, &sub_from, "Difference. Level: the lower one of the operands.");
  both("__mul__", "__rmul__", &multiply, &multiply,
       "Product, rescaled. Level l -> l - 1; by an integer: l -> l.");
  c.def("__truediv__", &divide, "other"_a, nb::is_operator(),
        nb::sig("def __truediv__(self, other: complex | numpy.typing.ArrayLike) -> Operand"),
        "Quotient by a number or an array. Level l -> l - 1.")
      .def("__pow__", &power, "exponent"_a, nb::sig("def __pow__(self, exponent: int) -> Operand"),
           "Power with a positive integer. Level l -> l - ceil(log2 exponent).")
      .def(
          "__neg__", [](const Operand& a) { return -a; }, ReleaseGil())
      .def(
          "__pos__", [](nb::object self) { return self; }, nb::sig("def __pos__(self) -> Operand"))
      .def("square", &Operand::square, ReleaseGil(), "Square, rescaled. Level l -> l - 1.");
}

void bind_slots(OperandClass& c) {
  using Steps = std::vector<i64>;
  c.def("multiply_monomial", &Operand::multiply_monomial, "power"_a, ReleaseGil(),
        "As Evaluator.multiply_monomial: X^power times it. Level l -> l.")
      .def("rotate", &Operand::rotate, "steps"_a, ReleaseGil(),
           "Slot i becomes slot i + steps: ``numpy.roll(x, -steps)``. Level l -> l.")
      .def(
          "rotate_many", [](const Operand& a, const Steps& steps) { return a.rotate_many(steps); },
          "steps"_a, ReleaseGil(),
          "All these rotations with one decomposition (hoisting). Level l -> l.")
      .def(
          "rotate_sum", [](const Operand& a, const Steps& steps) { return a.rotate_sum(steps); },
          "steps"_a, ReleaseGil(),
          "Sum of these rotations (0: the operand itself), hoisted. Level l -> l.")
      .def("conjugate", &Operand::conjugate, ReleaseGil(),
           "Complex conjugate of every slot. Level l -> l.")
      .def(
          "sum",
          [](const Operand& a, std::optional<i64> count, i64 stride) {
            std::optional<u64> slots;
            if (count) slots = as_unsigned<u64>(*count, "count");
            return a.sum(slots, stride);
          },
          "count"_a = nb::none(), "stride"_a = 1, ReleaseGil(),
          "Slot i becomes the sum of `count` slots i, i + stride, ... (default: of all slots).\n\n"
          "Needs the rotations of ``ckks.sum_slots_rotations(count, stride)``. Level l -> l.")
      .def(
          "mean", [](const Operand& a) { return a.sum().divide(static_cast<double>(a.slots())); },
          ReleaseGil(),
          "Every slot becomes the mean of all slots, padding included: a ckks.Array knows how "
          "many\n"
          "are numbers of yours. Needs the rotations of sum(). Level l -> l - 1.")
      .def(
          "with_slots",
          [](const Operand& a, i64 slots, bool repeating) {
            return a.with_slots(as_slots(slots), repeating);
          },
          "slots"_a, nb::kw_only(), "repeating"_a = false, ReleaseGil(),
          "As Evaluator.with_slots. Level l -> l.");
}

void bind_levels(OperandClass& c) {
  c.def(
       "at_level",
       [](const Operand& a, i64 level) { return a.at_level(as_unsigned<u32>(level, "level")); },
       "level"_a, ReleaseGil(), "The same message at a lower level and its canonical scale.")
      .def("polynomial", &polynomial, "coefficients"_a, "basis"_a = "power",
           "interval"_a = std::pair(-1.0, 1.0),
           nb::sig("def polynomial(self, coefficients: numpy.typing.ArrayLike, "
                   "basis: typing.Literal['power', 'chebyshev'] = 'power', "
                   "interval: tuple[float, float] = (-1.0, 1.0)) -> Operand"),
           "Polynomial of every slot. Level l -> l - polynomial_depth(degree).");
}

}  // namespace

void bind_operand(nb::module_& m) {
  OperandClass c(
      m, "Operand",
      "A ciphertext bound to an evaluator: the convenient form. Immutable; every operation\n"
      "returns a new one.\n\n"
      "Operands combine by ``+ - * /`` with operands, ciphertexts, plaintexts, NumPy arrays\n"
      "(encoded as needed; shorter ones are padded with zeros) and Python numbers:\n\n"
      "* products are rescaled at once, so every operand sits at the canonical scale of its\n"
      "  level;\n"
      "* operands at different levels are brought to the lower one first;\n"
      "* a product with a Python integer, or a complex number whose parts are integers\n"
      "  (``1j``), repeats addition and consumes no level; any other product consumes one.\n\n"
      "Raises StateError naming the levels where too few are left, and for operands of other\n"
      "parameters, slots or secret keys; KeyMissingError naming the key that an operation "
      "needs.\n"
      "Errors: docs/theory/precision.md, \"Operations\"; hoisted rotations: BMTH21.");
  c.def(
      "__init__",
      [](Operand* self, const ckks::Evaluator& ev, CiphertextLike a) {
        new (self) Operand(ev, *a.shared);
      },
      "evaluator"_a, "ciphertext"_a, "What evaluator(ciphertext) makes.");
  refuse_comparisons(c, "an encrypted vector");
  c.def(
      "__iter__",
      [](const Operand&) -> nb::object {
        throw nb::type_error(
            "an encrypted vector is not iterated over: decrypt it, or rotate its slots");
      },
      nb::sig("def __iter__(self) -> typing.NoReturn"));
  bind_facts(c);
  bind_operators(c);
  bind_slots(c);
  bind_levels(c);
}

}  // namespace crenel::python
