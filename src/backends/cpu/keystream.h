// The state that per-ISA keystream functions start from.
#pragma once

#include <algorithm>

#include "random/chacha20.h"

namespace crenel::backend::cpu {

/// The initial ChaCha20 state with counter 0, zeroised when it goes.
struct KeystreamState {
  u32 word[16];

  KeystreamState(const random::Seed& seed, random::Nonce nonce) {
    random::ChaChaState s = random::chacha20_state(seed, nonce);
    const u32 constants[4] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    std::copy_n(constants, 4, word);
    std::copy_n(s.key, 8, word + 4);
    word[12] = 0;
    std::copy_n(s.nonce, 3, word + 13);
    random::secure_zero(&s, sizeof(s));
  }
  KeystreamState(const KeystreamState&) = delete;
  KeystreamState& operator=(const KeystreamState&) = delete;
  ~KeystreamState() { random::secure_zero(word, sizeof(word)); }
};

}  // namespace crenel::backend::cpu
