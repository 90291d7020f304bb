#include "arrays.h"

namespace crenel::python {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& wanted, const std::string& got,
                         const char* field) {
  throw ParameterError(cat(name, " must be ", wanted, ", got ", got), {{field, got}});
}

}  // namespace

Values read_values(nb::handle object, const char* name) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  const nb::object array = numpy.attr("asarray")(object);
  const auto dtype = nb::cast<std::string>(nb::str(array.attr("dtype")));
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  if (nb::cast<std::size_t>(array.attr("ndim")) != 1)
    refuse(name, "one-dimensional", "shape " + nb::cast<std::string>(nb::str(array.attr("shape"))),
           "shape");
  if (kind == "c")
    return nb::cast<Array<std::complex<double>>>(
        numpy.attr("ascontiguousarray")(array, "complex128"));
  if (kind == "f" || kind == "i" || kind == "u" || kind == "b")
    return nb::cast<Array<double>>(numpy.attr("ascontiguousarray")(array, "float64"));
  refuse(name, "real or complex numbers", "dtype " + dtype, "dtype");
}

Array<double> read_reals(nb::handle object, const char* name) {
  const Values values = read_values(object, name);
  if (const auto* reals = std::get_if<Array<double>>(&values)) return *reals;
  refuse(name, "real numbers", "dtype complex128", "dtype");
}

nb::object slots_to_numpy(std::vector<std::complex<double>>&& slots, bool real) {
  if (!real) return to_numpy(std::move(slots));
  std::vector<double> reals(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) reals[i] = slots[i].real();
  return to_numpy(std::move(reals));
}

BufferView::BufferView(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
}

BufferView::~BufferView() { PyBuffer_Release(&view_); }

std::span<const u8> BufferView::bytes() const {
  return {static_cast<const u8*>(view_.buf), static_cast<std::size_t>(view_.len)};
}

}  // namespace crenel::python
