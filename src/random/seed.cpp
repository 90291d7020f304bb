#include "random/seed.h"

#if !defined(__EMSCRIPTEN__)
#include <sys/random.h>
#endif

#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>

#include "crenel/core/error.h"
#include "crenel/core/fork_mutex.h"
#include "random/chacha20.h"

namespace crenel::random {

Seed seed_from_os() {
  Seed seed;
  seed_from_os(seed);
  return seed;
}

#if defined(__EMSCRIPTEN__)

// Of the page that loads the module (web/crenel.mjs): crypto.getRandomValues, or 0 where there is
// none. No other generator of JavaScript is one for keys.
extern "C" __attribute__((import_module("crenel"), import_name("crenel_random"))) int
crenel_browser_random(u8* to, std::size_t bytes);

void seed_from_os(Seed& seed) {
  if (crenel_browser_random(seed.data(), seed.size()) == 1) return;
  secure_zero(seed.data(), seed.size());
  throw StateError("the browser gives no random bytes, expected those of crypto.getRandomValues",
                   {{"found", "no random bytes"}, {"expected", "crypto.getRandomValues"}});
}

#else

void seed_from_os(Seed& seed) {
  std::size_t filled = 0;
  while (filled < seed.size()) {
    const ssize_t got = getrandom(seed.data() + filled, seed.size() - filled, 0);
    if (got < 0) {
      const int code = errno;
      if (code == EINTR) continue;
      throw StateError(cat("the operating system gives no random bytes: ",
                           std::generic_category().message(code)),
                       {{"errno", code}});
    }
    filled += static_cast<std::size_t>(got);
  }
}

#endif

namespace {

ForkMutex renewal;  // of any source: it happens once a source and fork

}  // namespace

SecretSource::SecretSource()
    : kept_(new (core::allocate_secret(sizeof(Kept), core::OnFork::wipe)) Kept),
      process_(core::forks()) {}

SecretSource::SecretSource(const Seed& seed) : SecretSource() { kept_->seed = seed; }

SecretSource SecretSource::from_os() {
  SecretSource source;
  seed_from_os(source.kept_->seed);
  return source;
}

void SecretSource::renew() {
  if (kept_ == nullptr)
    throw StateError("a source of randomness that was moved from",
                     {{"found", "moved from"}, {"expected", "a source with its seed"}});
  std::lock_guard lock(renewal);
  const u64 now = core::forks();
  if (process_.load(std::memory_order_relaxed) == now &&
      kept_->intact.load(std::memory_order_relaxed) != 0)
    return;  // another thread was first
  seed_from_os(kept_->seed);
  process_.store(now, std::memory_order_relaxed);
  kept_->intact.store(1, std::memory_order_release);
}

Seed SecretSource::derive_seed() {
  const Nonce nonce = next(Purpose::seed_derivation);
  ChaChaState state = chacha20_state(kept_->seed, nonce);
  ChaChaBlock block = chacha20_block(state, 0);
  Seed derived;
  for (std::size_t i = 0; i < derived.size(); ++i)
    derived[i] = static_cast<u8>(block.word[i / 4] >> (8 * (i % 4)));
  secure_zero(&state, sizeof state);
  secure_zero(&block, sizeof block);
  return derived;
}

}  // namespace crenel::random
