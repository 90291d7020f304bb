// The one error tree. Every error names the offending value and what was expected, in `what()` for
// people and in `fields()` for programs; Python sees the same classes with the same fields.
#pragma once

#include <concepts>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace crenel {

/// Concatenates its arguments through operator<<; for error messages.
template <class... Args>
std::string cat(const Args&... args) {
  std::ostringstream out;
  out.precision(17);
  (out << ... << args);
  return out.str();
}

/// The value of a field: text, a number, a truth value, or a list of integers. Converts from these.
class FieldValue {
 public:
  using List = std::vector<std::int64_t>;
  /// Integers are std::int64_t; those of 2^63 and more are std::uint64_t.
  using Variant = std::variant<std::string, std::int64_t, std::uint64_t, double, bool, List>;

  /// From what a field may be.
  FieldValue(std::string text) : value_(std::move(text)) {}
  FieldValue(std::string_view text) : value_(std::string(text)) {}
  FieldValue(const char* text) : value_(std::string(text)) {}
  FieldValue(std::same_as<bool> auto truth) : value_(truth) {}
  FieldValue(std::floating_point auto number) : value_(static_cast<double>(number)) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  FieldValue(T number) : value_(static_cast<std::int64_t>(number)) {
    if (std::cmp_greater(number, INT64_MAX)) value_ = static_cast<std::uint64_t>(number);
  }
  template <std::integral T>
  FieldValue(const std::vector<T>& list) : value_(List(list.begin(), list.end())) {}

  /// The value with its type.
  const Variant& value() const noexcept { return value_; }
  /// As text: numbers with all their digits, "true" or "false", lists as "1, 2, 4".
  std::string text() const {
    struct Text {
      std::string operator()(const std::string& text) const { return text; }
      std::string operator()(bool truth) const { return truth ? "true" : "false"; }
      std::string operator()(std::int64_t number) const { return std::to_string(number); }
      std::string operator()(std::uint64_t number) const { return std::to_string(number); }
      std::string operator()(double number) const { return cat(number); }
      std::string operator()(const List& list) const {
        std::string all;
        for (const std::int64_t k : list) all += (all.empty() ? "" : ", ") + std::to_string(k);
        return all;
      }
    };
    return std::visit(Text{}, value_);
  }

 private:
  Variant value_;
};

/// One named value of an error, e.g. {"level", 3}.
struct ErrorField {
  std::string name;
  FieldValue value;
};

/// Base of all errors thrown by the library.
class Error : public std::runtime_error {
 public:
  /// `code` is the stable machine-readable class name, e.g. "StateError".
  Error(std::string_view code, const std::string& message, std::vector<ErrorField> fields)
      : std::runtime_error(message), code_(code), fields_(std::move(fields)) {}

  /// Name of the class, and the values that the message names, by their names.
  const std::string& code() const noexcept { return code_; }
  const std::vector<ErrorField>& fields() const noexcept { return fields_; }
  /// The field `name` as text, or "" when the error has no such field.
  std::string field(std::string_view name) const {
    const FieldValue* found = find_field(name);
    return found == nullptr ? std::string() : found->text();
  }
  /// The field `name`, or null when the error has none; lives as long as the error.
  const FieldValue* find_field(std::string_view name) const noexcept {
    for (const auto& f : fields_)
      if (f.name == name) return &f.value;
    return nullptr;
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
/// An operation needs evaluation keys that were not made: fields "rotations" and "key" name them.
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
  /// With the message and the fields named above.
  explicit OutOfMemoryError(const std::string& message, std::vector<ErrorField> f = {})
      : DeviceError("OutOfMemoryError", message, std::move(f)) {}
};
/// The request is meaningful but not supported by this build, device or parameter set.
CRENEL_DEFINE_ERROR(UnsupportedError);
#undef CRENEL_DEFINE_ERROR

/// A number for people, four digits of it; fields have all of them.
inline std::string brief(double value) {
  std::ostringstream out;
  out.precision(4);
  out << value;
  return out.str();
}

}  // namespace crenel
