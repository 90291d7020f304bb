#include "tfhe/encoding.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "crenel/core/error.h"

namespace crenel::tfhe {

u32 max_log_modulus(const Params& params) {
  const Spec& spec = params.spec();
  return std::min(spec.group != 0 ? spec.log_lwe_modulus : spec.log_switch_modulus, kMaxLogModulus);
}

u32 log_modulus_for(const Params& params, u32 p) {
  const u32 log_q = params.spec().log_lwe_modulus, own = params.spec().plain_modulus;
  if (p <= std::max(own, kGatePlainModulus)) {
    if (p <= (u64(1) << log_q) / 4) return log_q;
    throw ParameterError(
        cat("plain modulus ", p, ", expected at most q / 4 = ", (u64(1) << log_q) / 4),
        {{"plain_modulus", p}, {"log_modulus", log_q}});
  }
  const u32 log_modulus = log_q + ceil_log2(p) - floor_log2(own);
  const u32 bound = max_log_modulus(params);
  if (log_modulus > bound)
    throw ParameterError(
        cat("plain modulus ", p, " needs ciphertexts modulo 2^", log_modulus, ", expected at most ",
            bound == kMaxLogModulus    ? "2^"
            : params.spec().group != 0 ? "q = 2^"
                                       : "Q_KS = 2^",
            bound),
        {{"plain_modulus", p}, {"log_modulus", log_modulus}, {"bound", bound}});
  return log_modulus;
}

u32 checked_plain_modulus(const Params& params, u32 plain_modulus) {
  const u32 p = plain_modulus != 0 ? plain_modulus : params.spec().plain_modulus;
  if (p % 2 != 0)
    throw ParameterError(cat("plain modulus ", p, ", expected an even number"),
                         {{"plain_modulus", p}});
  // The reciprocal of encode_message is exact up to here; powers of two need none.
  if (!std::has_single_bit(p) && p > (u32(1) << 15))
    throw ParameterError(cat("plain modulus ", p, ", expected at most 32768 or a power of two"),
                         {{"plain_modulus", p}});
  log_modulus_for(params, p);
  return p;
}

u64 encode_message(u64 m, u32 p, u32 log_modulus) {
  const u64 mask = (u64(1) << log_modulus) - 1;
  if (std::has_single_bit(p)) return (m << (log_modulus - floor_log2(p))) & mask;
  // floor(x / 2p), x = 2 m 2^log_modulus + p: with c = ceil(2^64 / 2p) the product x c / 2^64 lies
  // less than x / 2^64 above x / 2p, which is below 1 / 2p while x 2p < 2^64.
  const u64 x = (m << (log_modulus + 1)) + p;
  const u64 c = ~u64(0) / (2 * u64(p)) + 1;
  return static_cast<u64>((static_cast<u128>(x) * c) >> 64) & mask;
}

u64 decode_phase(u32 phase, u32 p, u32 log_modulus) {
  const u64 half = u64(1) << (log_modulus - 1);
  const u64 m = (static_cast<u64>(phase) * p + half) >> log_modulus;  // in [0, p]
  // p becomes 0, in arithmetic: m - p is 0 or negative.
  return m & (u64(0) - ((m - p) >> 63));
}

u32 message_bound(const Params& params, u32 plain_modulus) {
  return message_limit(params, checked_plain_modulus(params, plain_modulus));
}

double message_margin(u32 p, u32 log_modulus) {
  const double half = std::ldexp(1.0, static_cast<int>(log_modulus) - 1) / p;
  return std::has_single_bit(p) ? half : half - 0.5;
}

u32 message_limit(const Params& params, u32 p) { return params.spec().padded ? p / 2 : p; }

void check_messages(std::span<const u64> messages, const Params& params, u32 p) {
  const u64 limit = message_limit(params, p);
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i] >= limit)
      throw ParameterError(cat("message ", i, " is too large, expected below ", limit,
                               params.spec().padded ? " (half the plain modulus, padded)" : ""),
                           {{"index", i}, {"limit", limit}});  // not the message: errors are logged
}

}  // namespace crenel::tfhe
