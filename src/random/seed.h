// Seeds, and the one type that hands out nonces, so that a (seed, nonce) pair is never used twice.
#pragma once

#include <array>
#include <atomic>

#include "core/fork.h"
#include "core/secret_pages.h"
#include "crenel/core/types.h"

namespace crenel::random {

/// A 256-bit ChaCha20 key. Public seeds expand the uniform halves of keys and ciphertexts and
/// travel on the wire; secret seeds drive secrets and errors and never leave the client.
using Seed = std::array<u8, 32>;

/// What a stream of random numbers is for; first word of the ChaCha20 nonce.
enum class Purpose : u32 {
  uniform = 1,  ///< uniform half of a ciphertext or key (public seed)
  secret_key = 2,
  error = 3,
  encryption_ternary = 4,
  flooding = 5,
  seed_derivation = 6,
  test = 100,
};

/// ChaCha20 nonce: 32-bit purpose, 64-bit serial number.
struct Nonce {
  Purpose purpose = Purpose::test;
  u64 serial = 0;
};

/// 32 bytes from the operating system (getrandom); throws StateError when it cannot deliver.
Seed seed_from_os();
/// The same into memory of the caller's, so that no copy stays on the stack.
void seed_from_os(Seed& seed);

using core::secure_zero;

/// Overwrites memory when the scope is left, also by an exception. The memory must outlive it.
class WipeOnExit {
 public:
  WipeOnExit(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}
  template <class Container>
  explicit WipeOnExit(Container& c) : WipeOnExit(c.data(), c.size() * sizeof(*c.data())) {}
  WipeOnExit(const WipeOnExit&) = delete;
  WipeOnExit& operator=(const WipeOnExit&) = delete;
  ~WipeOnExit() { secure_zero(data_, bytes_); }

 private:
  void* data_;
  std::size_t bytes_;
};

/// A secret seed with a counter. next(purpose) never repeats; move-only, zeroised on destruction.
/// After fork() the child takes a new seed from the operating system on first use: else both
/// processes would encrypt with the same randomness. The seed lies in a page that fork() wipes: a
/// child never has its parent's, and notices also where it was made without fork()'s handlers.
class SecretSource {
 public:
  /// With a seed of the operating system, of which no copy stays behind.
  static SecretSource from_os();
  explicit SecretSource(const Seed& seed);
  SecretSource(SecretSource&& other) noexcept
      : kept_(std::move(other.kept_)),
        counter_(other.counter_.load()),
        process_(other.process_.load()) {}
  SecretSource(const SecretSource&) = delete;
  SecretSource& operator=(const SecretSource&) = delete;

  /// StateError for a source that was moved from.
  const Seed& seed() {
    renew_after_fork();
    return kept_->seed;
  }
  /// Reserves `count` consecutive serial numbers and returns the first.
  Nonce next(Purpose purpose, u64 count = 1) {
    renew_after_fork();
    return {purpose, counter_.fetch_add(count)};
  }
  /// A fresh seed derived from this source, e.g. the public seed of one ciphertext.
  Seed derive_seed();

 private:
  struct Kept {
    Seed seed;
    std::atomic<u64> intact{1};  ///< 0 once the page was wiped
  };
  SecretSource();
  void renew_after_fork() {
    if (kept_ == nullptr || process_.load(std::memory_order_acquire) != core::forks() ||
        kept_->intact.load(std::memory_order_acquire) == 0)
      renew();
  }
  void renew();

  core::SecretObject<Kept> kept_;
  std::atomic<u64> counter_{0};
  std::atomic<u64> process_;  ///< core::forks() when the seed was made
};

}  // namespace crenel::random
