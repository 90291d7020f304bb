#include "random/seed.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "crenel/core/error.h"
#include "random/chacha20.h"

namespace crenel::random {

Seed seed_from_os() {
  Seed seed;
  std::size_t filled = 0;
  while (filled < seed.size()) {
    const ssize_t got = getrandom(seed.data() + filled, seed.size() - filled, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw StateError(cat("the operating system gives no random bytes: ", std::strerror(errno)),
                       {{"errno", cat(errno)}});
    }
    filled += static_cast<std::size_t>(got);
  }
  return seed;
}

void secure_zero(void* data, std::size_t bytes) noexcept {
  std::memset(data, 0, bytes);
  // The compiler must assume that this reads the memory, so the store above is not dead.
  asm volatile("" : : "r"(data) : "memory");
}

Seed SecretSource::derive_seed() {
  ChaChaState state = chacha20_state(seed_, next(Purpose::seed_derivation));
  ChaChaBlock block = chacha20_block(state, 0);
  Seed derived;
  for (std::size_t i = 0; i < derived.size(); ++i)
    derived[i] = static_cast<u8>(block.word[i / 4] >> (8 * (i % 4)));
  secure_zero(&state, sizeof state);
  secure_zero(&block, sizeof block);
  return derived;
}

}  // namespace crenel::random
