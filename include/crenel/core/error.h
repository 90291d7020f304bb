// The one error tree. Every error names the offending value and what was expected, in `what()` for
// people and in `fields()` for programs; Python sees the same classes with the same fields.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crenel {

/// One named value of an error, e.g. {"level", "3"}.
struct ErrorField {
  std::string name;
  std::string value;
};

/// Base of all errors thrown by the library.
class Error : public std::runtime_error {
 public:
  /// `code` is the stable machine-readable class name, e.g. "StateError".
  Error(std::string_view code, const std::string& message, std::vector<ErrorField> fields)
      : std::runtime_error(message), code_(code), fields_(std::move(fields)) {}

  const std::string& code() const noexcept { return code_; }
  const std::vector<ErrorField>& fields() const noexcept { return fields_; }
  /// Value of the field `name`, or "" when the error has no such field.
  std::string field(std::string_view name) const {
    for (const auto& f : fields_)
      if (f.name == name) return f.value;
    return {};
  }

 private:
  std::string code_;
  std::vector<ErrorField> fields_;
};

// NOLINTBEGIN(bugprone-macro-parentheses): the name of a class takes none
#define CRENEL_DEFINE_ERROR(Name)                                                      \
  class Name : public Error {                                                          \
   public:                                                                             \
    explicit Name(const std::string& message, std::vector<ErrorField> f = {})          \
        : Error(#Name, message, std::move(f)) {}                                       \
                                                                                       \
   protected:                                                                          \
    Name(std::string_view code, const std::string& message, std::vector<ErrorField> f) \
        : Error(code, message, std::move(f)) {}                                        \
  }
// NOLINTEND(bugprone-macro-parentheses)

/// A parameter set or an argument value is outside what is allowed.
CRENEL_DEFINE_ERROR(ParameterError);
/// Objects disagree: level, scale, domain, slot count, context, secret key; or an object cannot be
/// used now: inside a recording, or in a forked child.
CRENEL_DEFINE_ERROR(StateError);
/// An operation needs an evaluation key that was not generated; field "rotation" names it.
CRENEL_DEFINE_ERROR(KeyMissingError);
/// Bytes that are truncated, oversized, corrupted, of another context or of another version of the
/// format; files that cannot be read or written.
CRENEL_DEFINE_ERROR(SerializationError);
/// A device is absent, out of memory, or failed.
CRENEL_DEFINE_ERROR(DeviceError);
/// Memory of a device or of the host that is not there, found before it was taken wherever it can
/// be. Fields: needed and available in bytes, device, limit (what sets it), fits where many equal
/// things were asked for.
class OutOfMemoryError : public DeviceError {
 public:
  explicit OutOfMemoryError(const std::string& message, std::vector<ErrorField> f = {})
      : DeviceError("OutOfMemoryError", message, std::move(f)) {}
};
/// The request is meaningful but not supported by this build, device or parameter set.
CRENEL_DEFINE_ERROR(UnsupportedError);
#undef CRENEL_DEFINE_ERROR

/// Concatenates its arguments through operator<<; for error messages.
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  out.precision(17);
  (out << ... << args);
  return out.str();
}

/// A number for people, four digits of it; fields have all of them.
inline std::string brief(double value) {
  std::ostringstream out;
  out.precision(4);
  out << value;
  return out.str();
}

}  // namespace crenel
