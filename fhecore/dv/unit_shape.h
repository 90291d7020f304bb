// Shape of the unit under test and its word order, written from the specification (doc/isa.md,
// doc/microarchitecture.md) apart from the RTL and from fhecore/model.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fhecore/model/fhe_sync.h"

#ifndef FHECORE_CONFIG_VALUES
#error "define FHECORE_CONFIG_VALUES: the fields of Config in order, comma separated"
#endif

namespace crenel::fhecore::dv {

inline constexpr Config S{FHECORE_CONFIG_VALUES};
inline constexpr u32 R = S.rows, C = S.cols, K = S.depth, L = S.lanes;
static_assert(S.word_bits == 32, "the bench drives 32-bit words");
inline constexpr bool kPtx = R == 16 && C == 8 && K == 16 && L == 32;
inline constexpr u32 kBeatsA = R * K / L, kBeatsB = K * C / L, kBeatsC = R * C / L;
inline constexpr u32 kBeatsSet = (3 * C + L - 1) / L;

using Beat = std::array<u32, L>;
using Words = std::vector<u32>;  ///< a dense row-major matrix

/// One place of a fragment: register (beat) and lane, and the element there.
struct Spot {
  u32 beat, lane, element;
};

/// Word order of an operand, `kind` 'A', 'B' or 'C' (also D): row major beat by beat, or the
/// fragment of PTX mma.m16n8k16 for the shape that has one.
inline std::vector<Spot> spots(char kind) {
  const u32 beats = kind == 'A' ? kBeatsA : kind == 'B' ? kBeatsB : kBeatsC;
  std::vector<Spot> result;
  for (u32 i = 0; i < beats; ++i)
    for (u32 lane = 0; lane < L; ++lane) {
      const u32 g = lane >> 2, t = lane & 3;
      u32 element = i * L + lane;
      if (kPtx && kind == 'A')
        element = (g + 8 * ((i >> 1) & 1)) * K + 2 * t + (i & 1) + 8 * (i >> 2);
      if (kPtx && kind == 'B') element = (2 * t + (i & 1) + 8 * (i >> 1)) * C + g;
      if (kPtx && kind == 'C') element = (g + 8 * (i >> 1)) * C + 2 * t + (i & 1);
      result.push_back({i, lane, element});
    }
  return result;
}

inline void append_beats(std::vector<Beat>& beats, char kind, const Words& dense) {
  const std::size_t base = beats.size();
  for (const Spot& s : spots(kind)) {
    if (base + s.beat == beats.size()) beats.emplace_back();
    beats[base + s.beat][s.lane] = dense[s.element];
  }
}

/// A set of column constants as it is in registers, and what is known about it.
struct Set {
  std::array<std::array<u32, 4>, C> words{};  ///< [column][word], word 3 is reserved
  std::array<u32, C> modulus{};               ///< q of a column, 0: the constants are of no modulus
  std::array<bool, C> valid{};                ///< the hardware shall accept the column
  std::array<bool, C> checked{};              ///< false: mu is of no use, results are unspecified
  std::array<u32, C> group{};                 ///< coverage class of the column

  std::vector<Beat> beats() const {
    std::vector<Beat> out(kBeatsSet, Beat{});
    for (u32 n = 0; n < kBeatsSet * L; ++n) out[n / L][n % L] = words[n % C][n / C];
    return out;
  }
};
static_assert(kBeatsSet * L <= 4 * C, "a fragment has at most four words a column");

/// What the tile must give: fault bits and D, dense.
struct Outcome {
  u32 fault = 0;
  Words d;
};

/// Independent golden: plain integer remainders of 128-bit sums. c may be null.
inline Outcome golden(const Words& a, const Words& b, const Words* c, const Set& set) {
  Outcome out{0, Words(R * C, 0)};
  for (u32 j = 0; j < C; ++j) {
    const u32 s = set.words[j][2] >> 8 & 31;
    bool ok = set.valid[j];
    for (u32 k = 0; k < K; ++k) ok = ok && u64(b[k * C + j]) << s >> 32 == 0;
    for (u32 i = 0; c != nullptr && i < R; ++i) ok = ok && u64((*c)[i * C + j]) << s >> 32 == 0;
    if (!ok) out.fault |= u32(1) << j;
    for (u32 i = 0; ok && i < R; ++i) {
      unsigned __int128 sum = c != nullptr ? (*c)[i * C + j] : 0;
      for (u32 k = 0; k < K; ++k)
        sum += static_cast<unsigned __int128>(a[i * K + k]) * b[k * C + j];
      out.d[i * C + j] = static_cast<u32>(set.modulus[j] != 0 ? sum % set.modulus[j]
                                                              : (sum << s) % set.words[j][0] >> s);
    }
  }
  return out;
}

/// The functional model that software uses, on the same raw words.
inline Outcome model(const Words& a, const Words& b, const Words* c, const Set& set) {
  Column columns[C];
  for (u32 j = 0; j < C; ++j)
    columns[j] = decode(set.words[j][0], set.words[j][1], set.words[j][2], set.words[j][3]);
  Outcome out{0, Words(R * C)};
  out.fault =
      fhec<S>(out.d.data(), a.data(), b.data(), c != nullptr ? c->data() : nullptr, columns);
  return out;
}

}  // namespace crenel::fhecore::dv
