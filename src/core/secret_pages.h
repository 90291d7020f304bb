// Host memory for secrets: pages of its own between guard pages, locked into memory, left out of
// core dumps, wiped before anything else can see them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "crenel/core/secret_memory.h"

namespace crenel::core {

/// Overwrites memory in a way the compiler keeps.
void secure_zero(void* data, std::size_t bytes) noexcept;

/// What a child of fork() finds: the same contents, or zeros.
enum class OnFork : u8 { keep, wipe };

/// At least `bytes` bytes, 256-byte aligned, uninitialised; from 2 MiB on, in huge pages where the
/// system has them. Up to 255 bytes behind the last one lies a page that cannot be accessed. What
/// cannot be locked or left out of dumps is used nevertheless, and counted by secret_memory().
/// Throws OutOfMemoryError naming the bytes. A system without OnFork::wipe leaves the contents:
/// whoever asks for it must not rely on it alone.
void* allocate_secret(std::size_t bytes, OnFork on_fork = OnFork::keep);
/// Wipes and gives back. `wiped`: the caller has done so.
void deallocate_secret(void* memory, bool wiped = false) noexcept;
/// Bytes that an allocation of `bytes` takes of its pages.
constexpr std::size_t secret_capacity(std::size_t bytes) {
  return bytes == 0 ? 256 : (bytes + 255) / 256 * 256;
}
/// Gives idle pages back to the system.
void trim_secrets() noexcept;

/// For containers of secrets: what they let go of is wiped, also when they grow.
template <class T>
struct SecretAllocator {
  using value_type = T;
  SecretAllocator() = default;
  template <class U>
  SecretAllocator(const SecretAllocator<U>&) noexcept {}
  T* allocate(std::size_t count) { return static_cast<T*>(allocate_secret(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t) noexcept { deallocate_secret(memory); }
  friend bool operator==(const SecretAllocator&, const SecretAllocator&) { return true; }
};

template <class T>
using SecretVector = std::vector<T, SecretAllocator<T>>;

struct FreeSecret {
  void operator()(void* memory) const noexcept { deallocate_secret(memory); }
};
/// One plain object in pages of its own.
template <class T>
using SecretObject = std::unique_ptr<T, FreeSecret>;

}  // namespace crenel::core
