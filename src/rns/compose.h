// CRT composition: residues to the centred integer, exactly, then to the nearest double or its
// neighbour.
#pragma once

#include <optional>
#include <vector>

#include "math/modulus.h"

namespace crenel::rns {

/// For a fixed list of k primes: x mod q_0, ..., x mod q_{k-1} to the representative of x in
/// (-Q/2, Q/2), Q = prod q_i, by Garner's mixed radix and exact multi-word arithmetic.
class CrtComposer {
 public:
  explicit CrtComposer(std::vector<math::Modulus<u32>> moduli);

  /// residues[i * stride], i < k. Rounding starts with the words of the exact integer: relative
  /// error below 2^-51.
  double to_double(const u32* residues, std::size_t stride) const;
  /// The same from the first `count` residues only, provided the value also has the right residue
  /// modulo prime `count`; nullopt when it does not (the value is larger than the first primes
  /// hold).
  std::optional<double> to_double_checked(const u32* residues, std::size_t stride, u32 count) const;
  u32 size() const { return static_cast<u32>(moduli_.size()); }

 private:
  static constexpr u32 kMaxWords = 132;
  struct Big {
    u32 words[kMaxWords] = {};
    u32 used = 0;
    bool negative = false;
  };
  Big compose(const u32* residues, std::size_t stride, u32 count) const;
  static double to_double(const Big& x);

  std::vector<math::Modulus<u32>> moduli_;
  std::vector<std::vector<u32>> inverse_;  ///< [i][j] = q_j^-1 mod q_i, j < i
  std::vector<Big> product_;               ///< [count] = q_0 ... q_{count-1}
};

}  // namespace crenel::rns
