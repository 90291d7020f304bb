// C++ errors become the Python classes of crenel.errors, message and fields included.
#include <new>

#include "bindings.h"

namespace crenel::python {
namespace {

PyObject* registered = nullptr;  // classes by name; for as long as the process lives

void register_errors(const nb::dict& types) {
  Py_XDECREF(registered);
  registered = nb::object(types).release().ptr();
}

void raise(const Error& error) {
  nb::dict fields;
  for (const ErrorField& field : error.fields())
    fields[field.name.c_str()] =
        std::visit([](const auto& value) { return nb::cast(value); }, field.value.value());
  // What the operating system refused is one of Python's own errors of files, too.
  const FieldValue* code = error.find_field("errno");
  const nb::object type = code != nullptr && error.find_field("filename") != nullptr
                              ? error_type("file_error")(std::get<i64>(code->value()))
                              : error_type(error.code().c_str());
  const nb::object instance = type(nb::str(error.what()), fields);
  PyErr_SetObject(type.ptr(), instance.ptr());
}

void raise_as_python(const Error& error) {
  try {
    raise(error);
  } catch (nb::python_error& python_error) {
    python_error.restore();
  }
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    raise_as_python(error);
  } catch (const std::bad_alloc&) {
    const HostMemory left = host_memory();
    raise_as_python(OutOfMemoryError(
        cat("the host gave no memory to this operation, it has ", left.bytes, " bytes available (",
            left.limit, "); free what is not needed, or do less at a time"),
        {{"available", left.bytes}, {"device", "host"}, {"limit", left.limit}}));
  }
}

}  // namespace

nb::object error_type(const char* name) {
  if (registered == nullptr)
    throw nb::import_error("crenel._crenel was imported alone; import crenel");
  return nb::borrow<nb::dict>(registered)[name];
}

void bind_errors(nb::module_& m) {
  nb::register_exception_translator(translate);
  m.def(
      "register_errors", &register_errors, "types"_a,
      nb::sig(
          "def register_errors(types: dict[str, type[Exception] | collections.abc.Callable[[int], "
          "type[Exception]]]) -> None"),
      "States the classes that errors and warnings are raised as, by name.");
}

}  // namespace crenel::python
