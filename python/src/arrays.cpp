#include "arrays.h"

#include <cstring>

namespace crenel::python {
namespace {

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

[[noreturn]] void refuse(const char* name, const std::string& wanted, const std::string& got,
                         const char* field) {
  throw ParameterError(cat(name, " must be ", wanted, ", got ", got), {{field, got}});
}

void refuse_masked(nb::handle object, const char* name) {
  if (!nb::hasattr(object, "mask")) return;
  const nb::object masked = nb::module_::import_("numpy").attr("ma").attr("is_masked");
  if (nb::cast<bool>(masked(object)))
    throw ParameterError(cat(name, " has masked places, expected numbers in all of them"),
                         {{"name", name}});
}

}  // namespace

nb::object as_array(nb::handle object, const char* name) {
  refuse_masked(object, name);
  try {
    return nb::module_::import_("numpy").attr("asarray")(object);
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_ValueError) ||
        text_of(error.value()).find("inhomogeneous") == std::string::npos)
      throw;
  }
  refuse(name, "a vector or a matrix of rows", "rows of different lengths", "shape");
}

Values read_values(nb::handle object, const char* name) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object array = as_array(object, name);
  const nb::object dtype = array.attr("dtype");
  const auto kind = nb::cast<std::string>(dtype.attr("kind"));
  const auto dimensions = nb::cast<std::size_t>(array.attr("ndim"));
  const nb::object shape = array.attr("shape");
  if (dimensions < 1 || dimensions > 2)
    refuse(name, "a vector or a matrix of rows", "shape " + text_of(shape), "shape");
  if (nb::cast<std::size_t>(array.attr("size")) == 0)
    refuse(name, "at least one number", "shape " + text_of(shape), "shape");
  const u32 batch = dimensions == 2 ? as_unsigned<u32>(nb::cast<i64>(shape[0]), "batch") : 1;
  const auto flat = [&](const char* type) {
    return numpy.attr("ascontiguousarray")(array, type).attr("reshape")(-1);
  };
  if (kind == "c") return {nb::cast<Array<std::complex<double>>>(flat("complex128")), batch};
  if (kind == "f" || kind == "i" || kind == "u" || kind == "b")
    return {nb::cast<Array<double>>(flat("float64")), batch};
  refuse(name, "real or complex numbers", "dtype " + text_of(dtype), "dtype");
}

Array<double> read_reals(nb::handle object, const char* name) {
  const Values values = read_values(object, name);
  const auto* reals = std::get_if<Array<double>>(&values.numbers);
  if (!reals) refuse(name, "real numbers", "dtype complex128", "dtype");
  if (values.batch != 1) refuse(name, "a vector", cat(values.batch, " rows"), "shape");
  return *reals;
}

nb::object slots_to_numpy(std::vector<std::complex<double>>&& slots, bool real, u32 batch) {
  nb::object array;
  if (real) {
    expect_host_memory(slots.size() * sizeof(double), "slots as an array of float64");
    std::vector<double> reals(slots.size());
    for (std::size_t i = 0; i < slots.size(); ++i) reals[i] = slots[i].real();
    array = to_numpy(std::move(reals));
  } else {
    array = to_numpy(std::move(slots));
  }
  return batch > 1 ? array.attr("reshape")(batch, -1) : array;
}

BufferView::BufferView(nb::handle object, std::optional<Bytes> max_bytes) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const auto size = static_cast<std::size_t>(view_.len);
  bytes_ = {static_cast<const u8*>(view_.buf), size};
  if (PyBytes_CheckExact(object.ptr()) || size == 0) return;
  try {
    if (max_bytes && size > bytes_of(*max_bytes, "max_bytes")) {
      const std::string found = cat("a buffer of ", size, " bytes, which is copied");
      const std::string expected =
          cat("at most ", max_bytes->value, " bytes, or bytes, which are not");
      throw SerializationError(
          cat("cannot load the buffer: found ", found, ", expected ", expected),
          {{"where", "buffer"},
           {"found", found},
           {"expected", expected},
           {"needed", size},
           {"max_bytes", max_bytes->value}});
    }
    expect_host_memory(size, "a copy of the buffer to load");
    copy_ = std::make_unique_for_overwrite<u8[]>(size);
  } catch (...) {
    PyBuffer_Release(&view_);
    throw;
  }
  {
    nb::gil_scoped_release
        release;  // a change meanwhile is in the copy or is not: both are one time
    std::memcpy(copy_.get(), view_.buf, size);
  }
  bytes_ = {copy_.get(), size};
}

BufferView::~BufferView() {
  if (copy_) wipe({copy_.get(), bytes_.size()});
  PyBuffer_Release(&view_);
}

std::optional<Number> number_of(nb::handle object) {
  nb::object item = nb::borrow(object);
  if (nb::hasattr(object, "ndim")) {
    i64 axes = -1;
    if (!nb::try_cast(object.attr("ndim"), axes) || axes != 0) return std::nullopt;
    refuse_masked(object, "number");
    item = object.attr("item")();
  }
  if (PyFloat_Check(item.ptr())) return nb::cast<double>(item);
  if (PyIndex_Check(item.ptr())) {
    const nb::object index = nb::steal(PyNumber_Index(item.ptr()));
    if (!index.is_valid()) throw nb::python_error();
    const double value = PyLong_AsDouble(index.ptr());
    if (PyErr_Occurred()) {
      PyErr_Clear();
      throw ParameterError("an integer beyond the range of float64, expected one within",
                           {{"number", "beyond float64"}});
    }
    return Integer{value};
  }
  if (PyComplex_Check(item.ptr()) || nb::hasattr(item, "__complex__"))
    return nb::cast<std::complex<double>>(item);
  if (!nb::hasattr(item, "__float__")) return std::nullopt;
  const double value = PyFloat_AsDouble(item.ptr());
  if (PyErr_Occurred()) throw nb::python_error();
  return value;
}

std::function<double(double)> values_by(const RealFunction& f) {
  return [f](double x) {
    const nb::object y = f(x);
    if (const auto number = number_of(y)) {
      if (const auto* real = std::get_if<double>(&*number)) return *real;
      if (const auto* integer = std::get_if<Integer>(&*number)) return integer->value;
    }
    const auto type = nb::cast<std::string>(y.type().attr("__name__"));
    throw ParameterError(cat("the function gives ", type, " at ", x, ", expected a real number"),
                         {{"found", type}, {"x", x}});
  };
}

}  // namespace crenel::python
