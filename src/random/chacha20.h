// ChaCha20 block function (RFC 8439 section 2.3), written once for host and device.
#pragma once

#include "math/word.h"
#include "random/seed.h"

namespace crenel::random {

/// One 64-byte keystream block as little-endian words.
struct ChaChaBlock {
  u32 word[16];
};

/// Key and nonce as the words of the initial state. The nonce is (purpose, serial low, serial
/// high).
struct ChaChaState {
  u32 key[8];
  u32 nonce[3];
};

CRENEL_HD u32 rotate_left(u32 x, int bits) { return (x << bits) | (x >> (32 - bits)); }

CRENEL_HD void quarter_round(u32& a, u32& b, u32& c, u32& d) {
  a += b, d = rotate_left(d ^ a, 16);
  c += d, b = rotate_left(b ^ c, 12);
  a += b, d = rotate_left(d ^ a, 8);
  c += d, b = rotate_left(b ^ c, 7);
}

/// Keystream block number `counter` of the state.
CRENEL_HD ChaChaBlock chacha20_block(const ChaChaState& state, u32 counter) {
  // "expand 32-byte k"
  const u32 initial[16] = {0x61707865u,  0x3320646eu,    0x79622d32u,    0x6b206574u,
                           state.key[0], state.key[1],   state.key[2],   state.key[3],
                           state.key[4], state.key[5],   state.key[6],   state.key[7],
                           counter,      state.nonce[0], state.nonce[1], state.nonce[2]};
  ChaChaBlock x;
  for (int i = 0; i < 16; ++i) x.word[i] = initial[i];
  u32* w = x.word;
  for (int round = 0; round < 10; ++round) {
    quarter_round(w[0], w[4], w[8], w[12]);
    quarter_round(w[1], w[5], w[9], w[13]);
    quarter_round(w[2], w[6], w[10], w[14]);
    quarter_round(w[3], w[7], w[11], w[15]);
    quarter_round(w[0], w[5], w[10], w[15]);
    quarter_round(w[1], w[6], w[11], w[12]);
    quarter_round(w[2], w[7], w[8], w[13]);
    quarter_round(w[3], w[4], w[9], w[14]);
  }
  for (int i = 0; i < 16; ++i) w[i] += initial[i];
  return x;
}

/// Host side: the state of a (seed, nonce) pair; the key is the seed in little-endian words. Holds
/// key material: callers with a secret seed secure_zero() it when done.
inline ChaChaState chacha20_state(const Seed& seed, Nonce nonce) {
  ChaChaState s;
  for (std::size_t i = 0; i < 8; ++i)
    s.key[i] = u32(seed[4 * i]) | u32(seed[4 * i + 1]) << 8 | u32(seed[4 * i + 2]) << 16 |
               u32(seed[4 * i + 3]) << 24;
  s.nonce[0] = static_cast<u32>(nonce.purpose);
  s.nonce[1] = static_cast<u32>(nonce.serial);
  s.nonce[2] = static_cast<u32>(nonce.serial >> 32);
  return s;
}

}  // namespace crenel::random
