// A value that prints itself as JSON: just what results need.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace crenel::bench {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  ///< keeps the order of insertion

  Json() : value_(nullptr) {}
  Json(bool v) : value_(v) {}                      // NOLINT: implicit on purpose
  Json(double v) : value_(v) {}                    // NOLINT
  Json(std::string v) : value_(std::move(v)) {}    // NOLINT
  Json(const char* v) : value_(std::string(v)) {}  // NOLINT
  Json(Array v) : value_(std::move(v)) {}          // NOLINT
  Json(Object v) : value_(std::move(v)) {}         // NOLINT
  template <class T>
    requires std::integral<T>
  Json(T v) : value_(static_cast<double>(v)) {}  // NOLINT

  /// One key or element a line.
  std::string dump(int indent = 0) const;

 private:
  std::variant<std::nullptr_t, bool, double, std::string, Array, Object> value_;
};

}  // namespace crenel::bench
