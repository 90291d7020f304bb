// C++ errors become the Python classes of crenel.errors, message and fields included.
#include "bindings.h"

namespace crenel::python {
namespace {

void raise(const Error& error) {
  nb::dict fields;
  for (const ErrorField& field : error.fields()) fields[field.name.c_str()] = field.value;
  const nb::object type = nb::module_::import_("crenel.errors").attr(error.code().c_str());
  const nb::object instance = type(nb::str(error.what()), fields);
  PyErr_SetObject(type.ptr(), instance.ptr());
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    try {
      raise(error);
    } catch (nb::python_error& python_error) {
      python_error.restore();
    }
  }
}

}  // namespace

void bind_errors(nb::module_&) { nb::register_exception_translator(translate); }

}  // namespace crenel::python
