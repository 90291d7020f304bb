// Products of a thread's points with the rows of a key that is stored, for rotations that make no
// bundles.
#pragma once

#include "backends/cuda/torus/device/rotate_args.cuh"

namespace crenel::backend::cuda::torus {

/// Shape of an instance. LP: log2 of the points (0: of run time); RMax: levels of a transform that
/// a thread does in registers; OG outputs times BT rows are accumulated by a thread; Staged: digit
/// by digit with the sums in registers (the workspace does not depend on the digits), which needs a
/// thread for every sum; otherwise all digits are transformed first. Digits are pieces of
/// digits where a plan is split.
template <u32 LP_, u32 RMax_, u32 OG_, u32 BT_, u32 Threads_, bool Staged_, u32 Blocks_ = 1,
          u32 Tiles_ = 1,
          u32 Ahead_ = OG_ * BT_ == 1 && LP_ != 0 && LP_ <= 10 && Threads_ <= 512 ? 4 : 1>
struct RotateShape {
  static constexpr u32 LP = LP_, RMax = RMax_, OG = OG_, BT = BT_, Threads = Threads_;
  static constexpr bool Staged = Staged_;
  static constexpr u32 Blocks = Blocks_;  ///< a multiprocessor
  /// Words that accumulator polynomials are moved apart: where a warp's first pass covers two of
  /// them (16 tasks each), the second one's banks follow the first one's.
  static constexpr u32 Pad = LP_ == 8 && RMax_ == 4 ? 16 : 0;
  static constexpr u32 Tiles = Tiles_;  ///< staged: points that a thread keeps sums for
  /// Rows of the key on their way to a thread's registers: more where a thread has one sum and
  /// nothing else hides the latency.
  static constexpr u32 Ahead = Ahead_;
};

/// Most rows of a key that are multiplied without a loop.
inline constexpr u32 kUnrolledTerms = 8;

/// Adds the products of `terms` operands' points with the key's rows to the sums of one thread. Key
/// words are on their way while earlier ones are used, Ahead rows before. Terms: as a constant.
template <class Field, class Shape, bool Ternary, u32 Terms>
__device__ __forceinline__ void multiply_rows(const Field& field, u32 terms, u32 polys, u32 lp,
                                              typename Field::Sum (&sum)[Shape::OG][Shape::BT],
                                              const typename Field::Element* points,
                                              const typename Field::Key* key) {
  constexpr u32 Ahead = Shape::Ahead, Parts = Ternary ? 2 : 1;
  struct Row {
    typename Field::Key at[Parts][Shape::OG];
  };
  Row rows[Ahead + 1];
  const u32 row_words = Parts * polys << lp;
  const auto fetch = [&](u32 row, Row& to) {
#pragma unroll
    for (u32 c = 0; c < Parts; ++c)
#pragma unroll
      for (u32 o = 0; o < Shape::OG; ++o)
        to.at[c][o] = key[u64(row) * row_words + ((c * polys + o) << lp)];
  };
#pragma unroll
  for (u32 a = 0; a < Ahead; ++a)
    if (a == 0 || a < terms) fetch(a, rows[a]);
  [[maybe_unused]] constexpr u32 Unroll = Terms != 0 && Terms <= kUnrolledTerms ? Terms : 1;
#pragma unroll Unroll
  for (u32 first = 0; first < terms; first += Ahead + 1) {
#pragma unroll
    for (u32 a = 0; a <= Ahead; ++a) {
      const u32 row = first + a;
      if (row >= terms) break;
      if (row + Ahead < terms) fetch(row + Ahead, rows[(a + Ahead) % (Ahead + 1)]);
#pragma unroll
      for (u32 b = 0; b < Shape::BT; ++b) {
        const auto in = points[(b * terms + row) << lp];
#pragma unroll
        for (u32 o = 0; o < Shape::OG; ++o)
          field.template multiply<Ternary>(sum[o][b], in, rows[a].at[0][o],
                                           rows[a].at[Parts - 1][o]);
      }
    }
  }
}

}  // namespace crenel::backend::cuda::torus
