// Random sets of column constants and operands, by class.
#pragma once

#include <random>
#include <string>

#include "fhecore/dv/unit_shape.h"

namespace crenel::fhecore::dv {

using Names = std::vector<std::string>;
inline const Names kModuli{"paper", "edge", "one", "small", "power_of_two", "free_shift"};
inline const Names kBroken{"q_zero", "q_low", "shift_high", "reserved_bit", "reserved_word"};
inline const Names kOperands{"below_q", "any_word", "all_ones", "zero", "q_minus_1", "sparse"};
inline const Names kAddends{"none", "below_q",   "any_word", "all_ones",
                            "zero", "q_minus_1", "sparse"};

class Random {
 public:
  explicit Random(u64 seed) : engine_(seed) {}
  u64 word() { return engine_(); }
  u32 below(u64 n) { return static_cast<u32>(engine_() % n); }
  bool one_in(u32 n) { return below(n) == 0; }

 private:
  std::mt19937_64 engine_;
};

inline void encode_column(Set& set, u32 j, u32 q_shifted, u32 shift) {
  const auto mu = static_cast<u64>((static_cast<unsigned __int128>(1) << 65) / q_shifted);
  set.words[j] = {q_shifted, static_cast<u32>(mu), static_cast<u32>(mu >> 32) | shift << 8, 0};
  set.valid[j] = set.checked[j] = true;
}

/// A modulus of the class (not free_shift).
inline u32 draw_modulus(Random& random, u32 group) {
  static const u32 edges[] = {(1u << 28) + 1,
                              (1u << 28) - 1,
                              1u << 28,
                              (1u << 29) - 1,
                              (1u << 29) + 1,
                              (1u << 31) - 1,
                              (1u << 31) + 1,
                              0xffffffffu,
                              0xfffffffbu,
                              0xfffffffeu,
                              0xc0000001u,
                              2,
                              3};
  switch (group) {
    case 0:
      return (1u << 28) + 1 + random.below(0xefffffffull);
    case 1:
      return edges[random.below(std::size(edges))];
    case 2:
      return 1;
    case 3:
      return 1 + random.below(u64(1) << (1 + random.below(28)));
    default:
      return 1u << random.below(32);
  }
}

inline void draw_column(Random& random, Set& set, u32 j, u32 group) {
  set.group[j] = group;
  if (kModuli[group] == "free_shift") {  // q' and s of no modulus: the datapath's own arithmetic
    const u32 q = (1u << 28) + 1 + random.below(0xefffffffull);
    encode_column(set, j, q, random.below(31));
    set.modulus[j] = 0;
    return;
  }
  const u32 q = draw_modulus(random, group);
  u32 bits = 0;
  for (u32 x = q; x != 0; x >>= 1) ++bits;
  const u32 shift = q > 1u << 28 ? 0 : 30 - bits;
  encode_column(set, j, q << shift, shift);
  set.modulus[j] = q;
}

/// `group` >= moduli classes: every column its own class and modulus; else all columns the same
/// one.
inline Set draw_set(Random& random, u32 group) {
  Set set;
  for (u32 j = 0; j < C; ++j) {
    const bool mixed = group >= kModuli.size();
    if (mixed || j == 0)
      draw_column(random, set, j, mixed ? random.below(kModuli.size()) : group);
    else {
      set.words[j] = set.words[0];
      set.modulus[j] = set.modulus[0];
      set.valid[j] = set.checked[j] = true;
      set.group[j] = group;
    }
  }
  return set;
}

/// Makes column j one that the hardware must refuse.
inline void break_column(Random& random, Set& set, u32 j, u32 how) {
  auto& w = set.words[j];
  switch (how) {
    case 0:
      w[0] = 0;
      break;
    case 1:
      w[0] = random.one_in(2) ? 1u << 28 : 1 + random.below(1u << 28);
      break;
    case 2:
      w[2] = (w[2] & 31) | 31u << 8;
      break;
    case 3: {
      const u32 bit = random.below(22);  // 5..7 and 13..31
      w[2] |= 1u << (bit < 3 ? 5 + bit : 10 + bit);
      break;
    }
    default:
      w[3] = 1u << random.below(32);
  }
  set.valid[j] = false;
}

/// A mu that is not that of q': the column's results are unspecified, its neighbours' are not.
inline void spoil_mu(Random& random, Set& set, u32 j) {
  set.words[j][1] = static_cast<u32>(random.word());
  set.words[j][2] = (set.words[j][2] & ~31u) | random.below(32);
  set.checked[j] = false;
}

/// One word of an operand class for a column that works modulo q' with shift s; `names` is
/// kOperands.
inline u32 draw_word(Random& random, const std::string& kind, u32 q_shifted, u32 shift) {
  const u32 q = q_shifted >> shift;  // below 1 only for broken columns
  const u32 most = 0xffffffffu >> shift;
  if (kind == "below_q") return q == 0 ? 0 : random.below(q);
  if (kind == "any_word") return static_cast<u32>(random.word()) & most;
  if (kind == "all_ones") return most;
  if (kind == "q_minus_1") return q == 0 ? 0 : q - 1;
  if (kind == "sparse") return random.one_in(4) ? 1u << random.below(32 - shift) : 0;
  return 0;
}

inline u32 shift_of(const Set& set, u32 j) { return set.words[j][2] >> 8 & 31; }

/// B (rows = K) or C (rows = R) of a class: words that survive the shift of their column.
inline Words draw_operand(Random& random, const std::string& kind, const Set& set, u32 rows) {
  Words words(rows * C);
  for (u32 j = 0; j < C; ++j)
    for (u32 i = 0; i < rows; ++i)
      words[i * C + j] = draw_word(random, kind, set.words[j][0], shift_of(set, j));
  return words;
}

/// A: rows meet every column, so "below q" is below the first column's.
inline Words draw_a(Random& random, const std::string& kind, const Set& set) {
  Words words(R * K);
  for (u32& w : words)
    w = draw_word(random, kind, set.words[0][0], kind == "below_q" ? shift_of(set, 0) : 0);
  return words;
}

}  // namespace crenel::fhecore::dv
