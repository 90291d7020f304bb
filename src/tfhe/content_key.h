// What caches of a context look things up by.
#pragma once

#include <span>
#include <string>

#include "crenel/core/types.h"

namespace crenel::tfhe {

/// Fixed-width bytes of integers that state a content.
class ContentKey {
 public:
  explicit ContentKey(const char* kind) : text_(kind) {}
  ContentKey& add(u64 x) { return add(std::span(&x, 1)); }
  template <class T>
  ContentKey& add(std::span<T> words) {
    text_.append(reinterpret_cast<const char*>(words.data()), words.size_bytes());
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace crenel::tfhe
