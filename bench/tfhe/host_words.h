// Words in host memory that a GPU copies from and to directly: page-locked where the build knows
// how.
#pragma once

#include <utility>
#include <vector>

#include "crenel/core/types.h"

#ifdef CRENEL_BENCH_PAGE_LOCK
#include <cuda_runtime_api.h>
#endif

namespace crenel::bench {

class HostWords {
 public:
  /// `lock`: for a GPU. Where locking fails the memory stays as it is: copies are slower, not
  /// wrong.
  HostWords(u64 words, bool lock) : words_(words) {
#ifdef CRENEL_BENCH_PAGE_LOCK
    locked_ =
        lock && cudaHostRegister(words_.data(), bytes(), cudaHostRegisterDefault) == cudaSuccess;
    if (lock && !locked_) cudaGetLastError();
#else
    locked_ = lock && false;
#endif
  }
  HostWords(HostWords&& other) noexcept
      : words_(std::move(other.words_)), locked_(std::exchange(other.locked_, false)) {}
  HostWords& operator=(HostWords&&) = delete;
  ~HostWords() {
#ifdef CRENEL_BENCH_PAGE_LOCK
    if (locked_) cudaHostUnregister(words_.data());
#endif
  }

  u32* data() { return words_.data(); }
  u64 size() const { return words_.size(); }
  u64 bytes() const { return words_.size() * sizeof(u32); }
  bool locked() const { return locked_; }

 private:
  std::vector<u32> words_;  ///< moving keeps its address
  bool locked_ = false;
};

}  // namespace crenel::bench
