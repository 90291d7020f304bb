// LweView: an array of LWE ciphertexts under shared masks, in host or device memory, without
// ownership.
#pragma once

#include <type_traits>

#include "crenel/core/error.h"
#include "crenel/core/types.h"

namespace crenel::device {

/// `rows` rows of dim words of mask and `slots` bodies, residues modulo 2^log_modulus.
struct LweShape {
  u64 rows = 0;
  u32 dim = 0;
  u32 slots = 1;
  u32 log_modulus = 0;

  u64 words() const { return u64(dim) + slots; }  ///< of a row
  bool operator==(const LweShape&) const = default;
};

/// Rows are contiguous, words have 32 or 64 bits. Void is const for inputs.
template <class Void>
struct LweArray {
  Void* data = nullptr;
  LweShape shape;
  u32 word_bytes = sizeof(u32);

  LweArray() = default;
  LweArray(Void* memory, const LweShape& s, u32 bytes_of_word)
      : data(memory), shape(s), word_bytes(bytes_of_word) {}
  /// Words of the pointer's type.
  template <class Word, class = std::enable_if_t<sizeof(Word) == 4 || sizeof(Word) == 8>>
  LweArray(Word* memory, const LweShape& s) : LweArray(memory, s, sizeof(Word)) {}
  /// Mutable to const.
  template <class Other, class = std::enable_if_t<std::is_same_v<const Other, Void>>>
  LweArray(const LweArray<Other>& v)  // NOLINT: implicit on purpose
      : LweArray(v.data, v.shape, v.word_bytes) {}

  /// The words; StateError where they have another size.
  template <class Word>
  Word* as() const {
    if (sizeof(Word) != word_bytes)
      throw StateError(cat("LWE rows of ", word_bytes, "-byte words, expected ", sizeof(Word)),
                       {{"got", word_bytes}, {"expected", sizeof(Word)}});
    return static_cast<Word*>(data);
  }
  /// The rows [first, first + count).
  LweArray slice(u64 first, u64 count) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const u8, u8>;
    LweArray v = *this;
    v.data = static_cast<Byte*>(data) + first * shape.words() * word_bytes;
    v.shape.rows = count;
    return v;
  }
};
using LweView = LweArray<void>;
using ConstLweView = LweArray<const void>;

}  // namespace crenel::device
