// Linear maps on encrypted vectors: matrices and diagonals from NumPy.
#include "circuits.h"

namespace crenel::python {
namespace {

using circuits::DiagonalMatrix;
using ckks::BoundOperand;
using ckks::Operand;
using Complex = std::complex<double>;

using LinearTransform = BoundTransform<circuits::LinearTransform>;

std::vector<Complex> as_complex(const Values& values) {
  return std::visit(
      [](const auto& a) { return std::vector<Complex>(a.data(), a.data() + a.size()); },
      values.numbers);
}

/// A Python integer of any kind (of NumPy too); TypeError for other objects.
i64 as_integer(nb::handle object, const char* name) {
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  i64 value = 0;
  if (!nb::try_cast(index, value))
    throw ParameterError(cat(name, " does not fit 64 bits"), {{name, "out of range"}});
  return value;
}

}  // namespace

u64 checked_slots(const ckks::Params& params, std::optional<i64> given) {
  const u64 slots = given ? as_slots(given) : params.slots();
  if ((slots & (slots - 1)) != 0 || slots > params.slots())
    throw ParameterError(
        cat("slots must be a power of two of at most ", params.slots(), ", got ", slots),
        {{"slots", slots}, {"max_slots", params.slots()}});
  return slots;
}

namespace {

u64 checked_offset(i64 offset, u64 slots) {
  const i64 n = static_cast<i64>(slots);
  if (offset <= -n || offset >= n)
    throw ParameterError(cat("diagonal offset ", offset, ", expected more than -", slots,
                             " and less than ", slots, " (the slots)"),
                         {{"offset", offset}, {"slots", slots}});
  return static_cast<u64>(offset < 0 ? offset + n : offset);
}

std::vector<Complex> diagonal_of(nb::handle object, i64 offset, u64 slots) {
  const Values values = read_values(object, "diagonal");
  std::vector<Complex> diagonal = as_complex(values);
  if (values.batch != 1 || diagonal.size() > slots)
    throw ParameterError(
        cat("diagonal ", offset, " has ", diagonal.size(), " values in ", values.batch,
            " rows, expected a vector of at most ", slots, " (the slots)"),
        {{"offset", offset}, {"values", diagonal.size()}, {"slots", slots}});
  diagonal.resize(slots);
  return diagonal;
}

DiagonalMatrix from_diagonals(const nb::dict& given, u64 slots) {
  DiagonalMatrix matrix{slots, {}};
  for (const auto& [key, values] : given) {
    const i64 offset = as_integer(key, "offset");
    const bool fresh =
        matrix.diagonals.emplace(checked_offset(offset, slots), diagonal_of(values, offset, slots))
            .second;
    if (!fresh)
      throw ParameterError(cat("diagonal ", offset, " is given twice: offsets that differ by ",
                               slots, " (the slots) are the same"),
                           {{"offset", offset}, {"slots", slots}});
  }
  return matrix;
}

}  // namespace

DiagonalMatrix matrix_of(nb::handle object, u64 slots) {
  if (nb::hasattr(object, "items")) {  // any mapping
    const nb::handle dict(reinterpret_cast<PyObject*>(&PyDict_Type));
    return from_diagonals(nb::cast<nb::dict>(dict(object)), slots);
  }
  const nb::object array = as_array(object, "matrix");
  if (nb::cast<std::size_t>(array.attr("ndim")) != 2) {
    const nb::object shape = array.attr("shape");
    const auto text = nb::cast<std::string>(nb::str(shape));
    throw ParameterError(
        cat("matrix must have two axes, or be a dict of diagonals by offset, got shape ", text),
        {{"shape", text}});
  }
  const Values values = read_values(array, "matrix");
  const std::vector<Complex> numbers = as_complex(values);
  const u64 rows = values.batch, columns = rows ? numbers.size() / rows : 0;
  return released([&] { return DiagonalMatrix::from_dense(numbers, rows, columns, slots); });
}

circuits::LinearTransformOptions transform_options(std::optional<i64> level, i64 baby_steps,
                                                   const std::string& keys,
                                                   std::optional<double> scale) {
  circuits::LinearTransformOptions o;
  o.level = as_level(level);
  o.plain_scale = as_scale(scale);
  o.baby_steps = as_unsigned<u64>(baby_steps, "baby_steps");
  o.keys = from_name(kKeyModes, keys, "keys");
  return o;
}

namespace {

LinearTransform make_linear_transform(const ckks::Context& context, nb::handle object,
                                      std::optional<i64> level, std::optional<i64> slots,
                                      i64 baby_steps, const std::string& keys,
                                      std::optional<double> scale, nb::handle progress) {
  const auto o = transform_options(level, baby_steps, keys, scale);
  const DiagonalMatrix matrix = matrix_of(object, checked_slots(context.params(), slots));
  const Progress told(progress);
  return released([&] {
    return LinearTransform{context, circuits::LinearTransform(context, matrix, o), o.keys};
  });
}

}  // namespace

void expect_transform_of(const ckks::Context& made, const ckks::Context& used) {
  const auto agree = [](const std::string& found, const std::string& expected, const char* what) {
    if (found != expected)
      throw StateError(
          cat("linear transform of another ", what, ": ", found, ", expected ", expected),
          {{"found", found}, {"expected", expected}});
  };
  agree(made.params().id(), used.params().id(), "context");
  agree(made.device().info().name, used.device().info().name, "device");
}

namespace {

Ciphertext apply(const LinearTransform& t, const ckks::Evaluator& ev, nb::handle object) {
  const ckks::Ciphertext& v = as_ciphertext(object);
  expect_transform_of(t.context, ev.context());
  return released([&] { return Ciphertext{ev.context(), t.value(ev, v)}; });
}

Ciphertext apply_either(const ckks::Evaluator& ev, nb::handle transform, nb::handle object) {
  if (nb::isinstance<LinearTransform>(transform))
    return apply(nb::cast<const LinearTransform&>(transform), ev, object);
  const ckks::Ciphertext& v = as_ciphertext(object);
  const i64 level = std::max(v.level(), u32(1));  // of a vector at level 0: to be refused by it
  const auto made =
      make_linear_transform(ev.context(), transform, level, static_cast<i64>(v.slots()), 0,
                            "hoisted", std::nullopt, nb::none());
  return apply(made, ev, object);
}

ckks::BoundOperand apply_to_bound(const LinearTransform& t, const ckks::ErrorModel& model,
                                  const ckks::BoundOperand& v) {
  return {model, t.value(model, v.bound())};
}

/// Scale of a matrix whose product with a vector of this level and scale is canonical.
double plain_scale(const ckks::Params& params, u32 level, double scale) {
  return level > 0 ? params.rescale_ratio(level) * params.scale(level - 1) / scale : 0.0;
}

Operand apply_to_operand(const Operand& a, const circuits::DiagonalMatrix& matrix) {
  const Operand v = a.reduced();
  const ckks::Context& context = v.evaluator().context();
  circuits::LinearTransformOptions o;
  o.level = v.level();
  o.plain_scale = plain_scale(context.params(), v.level(), v.scale());
  const circuits::LinearTransform t(context, matrix, o);
  return {v.evaluator(), t(v.evaluator(), v.ciphertext())};
}

BoundOperand apply_to_operand(const BoundOperand& a, const circuits::DiagonalMatrix& matrix) {
  const BoundOperand v = a.reduced();
  circuits::LinearTransformOptions o;
  o.plain_scale = plain_scale(v.model().params(), v.level(), v.scale());
  return {v.model(), circuits::linear_transform_bound(v.model(), matrix, v.bound(), o)};
}

/// The array as a matrix to multiply from the left: transposed where it stands on the right.
nb::object as_factor(nb::handle object, bool on_the_right) {
  nb::object array = as_array(object, "matrix");
  return on_the_right ? nb::object(array.attr("T")) : array;
}

/// The convenient form on ciphertexts and on bounds.
template <class T>
void bind_operand(const char* name) {
  const auto signature = [&](const char* method, const char* argument) {
    return cat("def ", method, "(self, ", argument, ") -> ", name);
  };
  const auto product = [](const T& a, nb::handle object, bool on_the_right) {
    const DiagonalMatrix matrix = matrix_of(as_factor(object, on_the_right), a.slots());
    return released([&] { return apply_to_operand(a, matrix); });
  };
  const auto dot = [](nb::handle a, nb::handle other) {
    return (nb::object(a * other)).attr("sum")();
  };
  const auto one_axis = [](nb::handle object) {
    if (nb::isinstance<T>(object) || nb::isinstance<Ciphertext>(object)) return true;
    const nb::object array = as_array(object, "values");
    return nb::cast<std::size_t>(array.attr("ndim")) == 1;
  };
  nb::borrow<nb::class_<T>>(nb::type<T>())
      .def(
          "linear_transform",
          [](const T& a, nb::handle matrix) {
            const DiagonalMatrix m = matrix_of(matrix, a.slots());
            return released([&] { return apply_to_operand(a, m); });
          },
          "matrix"_a, nb::sig(signature("linear_transform", "matrix: " CRENEL_MATRIX).c_str()),
          "The matrix times this vector: what Context.linear_transform takes, encoded at every "
          "call.\n"
          "Level l -> l - 1; a canonical scale stays canonical. Raises as these do.")
      .def(
          "__matmul__",
          [=](nb::handle self, nb::handle other) -> nb::object {
            if (one_axis(other)) return dot(self, other);
            return nb::cast(product(nb::cast<const T&>(self), other, true));
          },
          "other"_a, nb::is_operator(),
          nb::sig(signature("__matmul__",
                            "other: Operand | Ciphertext | ErrorBound | "
                            "numpy.typing.ArrayLike")
                      .c_str()),
          "This vector times a clear matrix of at most `slots` rows and columns; with a vector, "
          "`dot`.\n"
          "Level l -> l - 1.")
      .def(
          "__rmatmul__",
          [=](nb::handle self, nb::handle other) -> nb::object {
            if (one_axis(other)) return dot(self, other);
            return nb::cast(product(nb::cast<const T&>(self), other, false));
          },
          "other"_a, nb::is_operator(),
          nb::sig(signature("__rmatmul__", "other: numpy.typing.ArrayLike").c_str()),
          "A clear matrix times this vector. Level l -> l - 1.")
      .def(
          "dot",
          [=](nb::handle self, nb::handle other) {
            if (!one_axis(other))
              throw ParameterError("dot takes a vector: for a matrix write a @ matrix",
                                   {{"other", "not a vector"}});
            return dot(self, other);
          },
          "other"_a,
          nb::sig(signature("dot",
                            "other: Operand | Ciphertext | ErrorBound | "
                            "numpy.typing.ArrayLike")
                      .c_str()),
          "Every slot becomes the sum of the products of slots with a vector, clear or encrypted.\n"
          "Needs the rotations of sum(). Level l -> l - 1.");
}

void bind_class(nb::module_& m) {
  nb::class_<LinearTransform> c(
      m, "LinearTransform",
      "A matrix prepared for one level, its diagonals encoded: t(ev, v) is the matrix times v.\n"
      "Made by Context.linear_transform. Double hoisting: Bossuat et al., Eurocrypt 2021.");
  c.def("__call__", &apply, "evaluator"_a, "ciphertext"_a,
        nb::sig("def __call__(self, evaluator: Evaluator, "
                "ciphertext: Ciphertext | Operand) -> Ciphertext"),
        "The matrix times a vector (of any batch). Level l -> l - 1; a canonical scale stays\n"
        "canonical.\n\n"
        "Raises StateError when level, slots, parameters or device differ from the transform's, "
        "and\n"
        "KeyMissingError naming every rotation without a key.")
      .def("__call__", &apply_to_bound, "model"_a, "bound"_a, "The error bound of that.")
      .def_prop_ro(
          "baby_steps", [](const LinearTransform& t) { return t.value.baby_steps(); },
          "Rotations of the vector, the one by 0 included.")
      .def_prop_ro(
          "giant_steps", [](const LinearTransform& t) { return t.value.giant_steps(); },
          "Rotations of sums, the one by 0 included.")
      .def("__repr__", [](const LinearTransform& t) {
        return cat("<ckks.LinearTransform of ", t.value.slots(), " slots, level ", t.value.level(),
                   " -> ", t.value.level() - 1, ", ", t.value.baby_steps(), " baby and ",
                   t.value.giant_steps(), " giant steps, ", t.value.plaintext_bytes(), " bytes>");
      });
  bind_transform_facts(c, "linear_transform", "Recorded", "Recorded");
}

void bind_makers() {
  nb::borrow<nb::class_<ckks::Context>>(nb::type<ckks::Context>())
      .def(
          "linear_transform", &make_linear_transform, "matrix"_a, "level"_a = nb::none(),
          "slots"_a = nb::none(), nb::kw_only(), "baby_steps"_a = 0, "keys"_a = "hoisted",
          "scale"_a = nb::none(), "progress"_a = nb::none(),
          nb::sig("def linear_transform(self, matrix: " CRENEL_MATRIX ", level: int | None = None, "
                  "slots: int | None = None, *, baby_steps: int = 0, "
                  "keys: typing.Literal['hoisted', 'minimal'] = 'hoisted', "
                  "scale: float | None = None, " CRENEL_PROGRESS_SIG ") -> LinearTransform"),
          "A matrix prepared for encrypted vectors of one level.\n\n"
          "Parameters\n----------\n"
          "matrix : real or complex numbers with two axes, at most `slots` rows and columns, "
          "padded\n"
          "    with zeros; or a dict of diagonals by offset k in -slots < k < slots, vectors d "
          "with\n"
          "    d[i] the entry in row i and column (i + k) mod slots, padded likewise\n"
          "level : of the vectors, at least 1; default the top normal level\n"
          "slots : of the vectors, a power of two; default all N/2\n"
          "baby_steps : a power of two; 0 chooses, about the square root of the diagonals' number\n"
          "keys : 'hoisted' (a key a step) or 'minimal' (two keys, slower)\n"
          "scale : of the encoded diagonals; default: canonical scales stay canonical\n\n"
          "Raises ParameterError for numbers that are not finite and for sizes, levels and "
          "offsets\n"
          "out of range.");
  nb::borrow<nb::class_<ckks::Evaluator>>(nb::type<ckks::Evaluator>())
      .def("linear_transform", &apply_either, "transform"_a, "ciphertext"_a,
           nb::sig("def linear_transform(self, transform: LinearTransform | " CRENEL_MATRIX ", "
                   "ciphertext: Ciphertext | Operand) -> Ciphertext"),
           "A matrix times a vector. Level l -> l - 1; a canonical scale stays canonical.\n\n"
           "The transform is one of Context.linear_transform, or what that takes as a matrix: this "
           "is\n"
           "then encoded at every call. Raises as LinearTransform.__call__ and\n"
           "Context.linear_transform do.");
  nb::borrow<nb::class_<ckks::ErrorModel>>(nb::type<ckks::ErrorModel>())
      .def(
          "linear_transform",
          [](const ckks::ErrorModel& model, const LinearTransform& t, const ckks::BoundOperand& v) {
            return apply_to_bound(t, model, v);
          },
          "transform"_a, "bound"_a,
          "The error bound of a transform of Context.linear_transform. Level l -> l - 1.");
}

}  // namespace

void bind_linear_transform(nb::module_& m) {
  bind_class(m);
  bind_makers();
  bind_operand<Operand>("Operand");
  bind_operand<BoundOperand>("ErrorBound");
  m.def(
      "linear_transform_rotations",
      [](const std::vector<i64>& offsets, i64 slots, i64 baby_steps, const std::string& keys,
         i64 inputs, i64 outputs) {
        const u64 n = as_slots(slots);
        std::vector<u64> known;
        for (i64 k : offsets) known.push_back(checked_offset(k, n));
        return circuits::linear_transform_rotations(
            known, n, as_unsigned<u64>(baby_steps, "baby_steps"),
            from_name(kKeyModes, keys, "keys"), as_unsigned<u64>(inputs, "inputs"),
            as_unsigned<u64>(outputs, "outputs"));
      },
      "offsets"_a, "slots"_a, nb::kw_only(), "baby_steps"_a = 0, "keys"_a = "hoisted",
      "inputs"_a = 1, "outputs"_a = 1,
      nb::sig(
          "def linear_transform_rotations(offsets: collections.abc.Sequence[int], slots: int, *, "
          "baby_steps: int = 0, keys: typing.Literal['hoisted', 'minimal'] = 'hoisted', "
          "inputs: int = 1, outputs: int = 1) -> list[int]"),
      "Rotations that a linear transform with these diagonals needs keys for, without making it; "
      "of a\n"
      "BlockTransform with the offsets of all its blocks and so many inputs and outputs.");
}

}  // namespace crenel::python
