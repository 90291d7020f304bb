#include "serialize/scalars.h"

namespace crenel::serialize {
namespace {

constexpr char kHex[] = "0123456789abcdef";
constexpr u32 kMantissaBits = 52;
constexpr int kBias = 1023;

}  // namespace

std::optional<u64> parse_integer(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  u64 value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const u64 digit = static_cast<u64>(c - '0');
    if (value > (~u64{0} - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

std::string format_real(double value) {
  const u64 bits = __builtin_bit_cast(u64, value);
  const int exponent = static_cast<int>(bits >> kMantissaBits) - kBias;
  std::string digits;
  for (u32 shift = kMantissaBits; shift > 0; shift -= 4) digits += kHex[bits >> (shift - 4) & 15];
  digits.erase(digits.find_last_not_of('0') + 1);
  return "0x1" + (digits.empty() ? "" : "." + digits) + (exponent < 0 ? "p-" : "p+") +
         std::to_string(exponent < 0 ? -exponent : exponent);
}

std::optional<double> parse_real(std::string_view text) {
  if (text.substr(0, 3) != "0x1") return std::nullopt;
  const std::size_t p = text.find('p');
  if (p == std::string_view::npos || p + 2 > text.size() || p > 3 + 1 + kMantissaBits / 4)
    return std::nullopt;
  u64 mantissa = 0;
  u32 shift = kMantissaBits;
  for (std::size_t i = 4; i < p; ++i) {
    const std::size_t digit = std::string_view(kHex).find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    shift -= 4;
    mantissa |= static_cast<u64>(digit) << shift;
  }
  const auto magnitude = parse_integer(text.substr(p + 2));
  if (!magnitude || *magnitude > kBias) return std::nullopt;
  const int exponent =
      text[p + 1] == '-' ? -static_cast<int>(*magnitude) : static_cast<int>(*magnitude);
  if (exponent <= -kBias) return std::nullopt;  // subnormal
  const u64 bits = static_cast<u64>(exponent + kBias) << kMantissaBits | mantissa;
  const double value = __builtin_bit_cast(double, bits);
  // One text a value: whatever was let through above is caught here.
  if (format_real(value) != text) return std::nullopt;
  return value;
}

}  // namespace crenel::serialize
