#include "random/seed.h"

#include <pthread.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>

#include "crenel/core/error.h"
#include "random/chacha20.h"

namespace crenel::random {

Seed seed_from_os() {
  Seed seed;
  std::size_t filled = 0;
  while (filled < seed.size()) {
    const ssize_t got = getrandom(seed.data() + filled, seed.size() - filled, 0);
    if (got < 0) {
      const int code = errno;
      if (code == EINTR) continue;
      throw StateError(cat("the operating system gives no random bytes: ",
                           std::generic_category().message(code)),
                       {{"errno", cat(code)}});
    }
    filled += static_cast<std::size_t>(got);
  }
  return seed;
}

void secure_zero(void* data, std::size_t bytes) noexcept {
  if (bytes == 0) return;  // an empty vector has a null pointer, which memset must not see
  std::memset(data, 0, bytes);
  // The compiler must assume that this reads the memory, so the store above is not dead.
  asm volatile("" : : "r"(data) : "memory");
}

namespace {

std::atomic<u64> fork_count{0};
std::mutex renewal;  // of any source: it happens once a source and fork

}  // namespace

u64 SecretSource::forks() noexcept {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_release); });
  static_cast<void>(registered);
  return fork_count.load(std::memory_order_acquire);
}

SecretSource SecretSource::from_os() {
  Seed seed = seed_from_os();
  const WipeOnExit wipe(seed);
  return SecretSource(seed);
}

void SecretSource::renew() {
  std::lock_guard lock(renewal);
  const u64 now = forks();
  if (process_.load(std::memory_order_relaxed) == now) return;  // another thread was first
  seed_ = seed_from_os();
  process_.store(now, std::memory_order_release);
}

Seed SecretSource::derive_seed() {
  const Nonce nonce = next(Purpose::seed_derivation);
  ChaChaState state = chacha20_state(seed_, nonce);
  ChaChaBlock block = chacha20_block(state, 0);
  Seed derived;
  for (std::size_t i = 0; i < derived.size(); ++i)
    derived[i] = static_cast<u8>(block.word[i / 4] >> (8 * (i % 4)));
  secure_zero(&state, sizeof state);
  secure_zero(&block, sizeof block);
  return derived;
}

}  // namespace crenel::random
