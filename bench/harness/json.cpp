#include "harness/json.h"

#include <cmath>
#include <cstdio>

namespace crenel::bench {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string number(double v) {
  if (!std::isfinite(v)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, std::floor(v) == v && std::abs(v) < 1e15 ? "%.0f" : "%.6g", v);
  return text;
}

}  // namespace

std::string Json::dump(int indent) const {
  const std::string pad(indent, ' '), inner(indent + 2, ' ');
  if (std::holds_alternative<std::nullptr_t>(value_)) return "null";
  if (const auto* b = std::get_if<bool>(&value_)) return *b ? "true" : "false";
  if (const auto* d = std::get_if<double>(&value_)) return number(*d);
  if (const auto* s = std::get_if<std::string>(&value_)) return quoted(*s);
  std::string out;
  if (const auto* a = std::get_if<Array>(&value_)) {
    for (const Json& v : *a)
      out.append(out.empty() ? "\n" : ",\n").append(inner + v.dump(indent + 2));
    return a->empty() ? "[]" : "[" + out + "\n" + pad + "]";
  }
  const auto& object = std::get<Object>(value_);
  for (const auto& [key, v] : object)
    out.append(out.empty() ? "\n" : ",\n").append(inner + quoted(key) + ": " + v.dump(indent + 2));
  return object.empty() ? "{}" : "{" + out + "\n" + pad + "}";
}

}  // namespace crenel::bench
