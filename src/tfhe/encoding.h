// Where messages stand on the torus: m modulo p at m q / p.
#pragma once

#include <span>

#include "crenel/tfhe/params.h"

namespace crenel::tfhe {

/// Plain moduli that gates use always stand modulo q.
inline constexpr u32 kGatePlainModulus = 8;
/// Words of ciphertexts have 32 bits.
inline constexpr u32 kMaxLogModulus = 32;

/// log2 of the largest modulus of a set's ciphertexts: Q_KS, which is what the stated security is
/// for (the same error modulo more is easier to solve), and at most 2^32. With groups q.
u32 max_log_modulus(const Params& params);

/// `plain_modulus`, or the set's when 0. Throws ParameterError unless it is even and
/// log_modulus_for knows where its messages stand.
u32 checked_plain_modulus(const Params& params, u32 plain_modulus);

/// log2 of the modulus of ciphertexts of messages modulo p: log2 q when p is at most the set's
/// plain modulus p0 or 8, else the power of two that leaves a message the room it has at p0, q
/// 2^ceil(log2 p) / 2^floor(log2 p0) (OpenFHE's 2 beta p). Throws ParameterError above
/// 2^max_log_modulus.
u32 log_modulus_for(const Params& params, u32 p);

/// floor(m 2^log_modulus / p + 1/2) modulo 2^log_modulus, m < p. Without a division: m may be
/// secret.
u64 encode_message(u64 m, u32 p, u32 log_modulus);
/// round(p phase / 2^log_modulus) modulo p.
u64 decode_phase(u32 phase, u32 p, u32 log_modulus);
/// Noise up to this, in units of the modulus' integers, leaves a message what it is: half the
/// distance of two, less what rounding their places takes.
double message_margin(u32 p, u32 log_modulus);
/// Number of messages below which every one must stay: p, or p / 2 for padded sets.
u32 message_limit(const Params& params, u32 p);
/// Throws ParameterError naming the first message that is not below the limit.
void check_messages(std::span<const u64> messages, const Params& params, u32 p);

/// floor(log2 x), x > 0.
constexpr u32 floor_log2(u64 x) {
  u32 bits = 0;
  while (x >>= 1) ++bits;
  return bits;
}
constexpr u32 ceil_log2(u64 x) { return x <= 1 ? 0 : floor_log2(x - 1) + 1; }

}  // namespace crenel::tfhe
