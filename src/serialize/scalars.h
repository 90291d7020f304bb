// Numbers as metadata strings: one canonical text per value, so that equal objects give equal
// files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "crenel/core/types.h"

namespace crenel::serialize {

/// Decimal digits without leading zeros, below 2^64; nothing for any other text.
std::optional<u64> parse_integer(std::string_view text);

/// A positive normal double as C's hexadecimal floating literal with the shortest mantissa:
/// "0x1.8p+40". Exact, and read by Python's float.fromhex and by strtod.
std::string format_real(double value);
/// The inverse; nothing for any text that format_real does not write.
std::optional<double> parse_real(std::string_view text);

}  // namespace crenel::serialize
