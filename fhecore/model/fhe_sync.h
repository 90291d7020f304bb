// Functional model of the instruction FHEC.16816 and of the intrinsic fhe_sync, bit for bit the
// RTL: results, faults, and what hardware does with raw constants (doc/isa.md).
//
//   D[i][j] = (sum_k A[i][k] B[k][j] + C[i][j]) mod q_j
//
// Compiles alone: -I<repo> -I<repo>/src -I<repo>/include, C++20.
#pragma once

#include <vector>

#include "fhecore/model/fragment.h"

namespace crenel::fhecore {

/// Whether `word` survives the shift of its column.
template <unsigned W = 32>
CRENEL_HD bool fits_shift(u32 word, u32 shift) {
  return (static_cast<u64>(word) << shift) <= low_mask<W>();
}

/// FHEC on dense row-major tiles: a [R][K], b [K][C], c [R][C] or null for zeros, d [R][C];
/// `columns`: C of them. Any words of W bits. Returns the fault bits, bit j for column j: constants
/// that are not valid, or an element of b or c that the column's shift pushes out of the word. The
/// elements of a faulty column are 0; other columns are not touched by it. d may be c.
template <Config S = kPaper>
inline u32 fhec(u32* d, const u32* a, const u32* b, const u32* c, const Column* columns) {
  constexpr unsigned W = S.word_bits;
  u32 faults = 0;
  for (u32 j = 0; j < S.cols; ++j) {
    const ColumnConstants& m = columns[j].constants;
    bool ok = columns[j].valid;
    for (u32 k = 0; ok && k < S.depth; ++k) ok = fits_shift<W>(b[k * S.cols + j], m.shift);
    for (u32 i = 0; ok && c != nullptr && i < S.rows; ++i)
      ok = fits_shift<W>(c[i * S.cols + j], m.shift);
    if (!ok) faults |= u32(1) << j;
    for (u32 i = 0; i < S.rows; ++i) {
      u32 acc = 0;
      for (u32 k = 0; ok && k < S.depth; ++k) {
        const u32 addend = k == 0 && c != nullptr ? c[i * S.cols + j] << m.shift : 0;
        acc = pe_step<W>(acc, a[i * S.depth + k], b[k * S.cols + j] << m.shift, addend, m.q, m.mu);
      }
      d[i * S.cols + j] = ok ? acc >> m.shift : 0;
    }
  }
  return faults;
}

/// The same with the words of a constants register: [C][4]. For tests of the RTL.
template <Config S = kPaper>
inline u32 fhec_raw(u32* d, const u32* a, const u32* b, const u32* c, const u32* words) {
  static_assert(S.word_bits == 32, "the encoding is that of 32-bit words");
  Column columns[S.cols];
  for (u32 j = 0; j < S.cols; ++j)
    columns[j] = decode(words[4 * j], words[4 * j + 1], words[4 * j + 2], words[4 * j + 3]);
  return fhec<S>(d, a, b, c, columns);
}

/// FHEC.16816.u32 as a warp sees it; c may be null (RZ). Returns the fault bits.
inline u32 fhec(FragmentC& d, const FragmentA& a, const FragmentB& b, const FragmentC* c,
                const Column* columns) {
  u32 rows[kRows * kDepth], cols[kDepth * kCols], addend[kRows * kCols];
  to_dense(rows, a);
  to_dense(cols, b);
  if (c != nullptr) to_dense(addend, *c);
  u32 result[kRows * kCols];
  const u32 faults = fhec(result, rows, cols, c != nullptr ? addend : nullptr, columns);
  d = to_fragment<MapC>(result);
  return faults;
}

/// Operands of the intrinsic: left half, right half.
struct SyncB {
  FragmentB half[2];
};
struct SyncC {
  FragmentC half[2];
};
struct SyncConstants {
  FragmentConstants half[2];
};

/// fhe_sync on fragments, m16n16k16: two instructions, columns 0..7 and 8..15. Bits 8..15 of the
/// result are the faults of the right half.
inline u32 fhe_sync(SyncC& d, const FragmentA& a, const SyncB& b, const SyncC* c,
                    const SyncConstants& constants) {
  u32 faults = 0;
  for (u32 h = 0; h < 2; ++h) {
    const auto columns = decode(constants.half[h]);
    faults |= fhec(d.half[h], a, b.half[h], c != nullptr ? &c->half[h] : nullptr, columns.data())
              << (kCols * h);
  }
  return faults;
}

// ---- tiles in memory ----------------------------------------------------------------------------

/// A 16 x 16 tile inside a row-major matrix; `stride` words between rows.
template <class Word>
struct Tile {
  Word* data = nullptr;
  std::size_t stride = 16;
};

/// Addresses are multiples of 32 bytes and strides multiples of 4 words, at least 16, as those of
/// the WMMA loads that fragments are filled by. ParameterError otherwise.
inline void check_tile(const char* name, const void* data, std::size_t stride) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (data == nullptr || address % 32 != 0)
    throw ParameterError(cat("tile ", name, " at address ", address, ", expected a multiple of 32"),
                         {{name, address}});
  if (stride < 16 || stride % 4 != 0)
    throw ParameterError(
        cat("tile ", name, ": stride of ", stride, " words, expected a multiple of 4, at least 16"),
        {{name, stride}});
}

/// fhe_sync on 16 x 16 tiles in memory, with constants of 16 columns as they are (check() is the
/// caller's); c.data may be null, d may be c. Returns the fault bits of 16 columns. ParameterError
/// for misaligned tiles.
inline u32 fhe_sync(Tile<u32> d, Tile<const u32> a, Tile<const u32> b, Tile<const u32> c,
                    const ColumnConstants* constants) {
  check_tile("d", d.data, d.stride);
  check_tile("a", a.data, a.stride);
  check_tile("b", b.data, b.stride);
  if (c.data != nullptr) check_tile("c", c.data, c.stride);
  u32 rows[kRows * kDepth];
  for (u32 i = 0; i < kRows; ++i)
    for (u32 k = 0; k < kDepth; ++k) rows[i * kDepth + k] = a.data[i * a.stride + k];
  u32 faults = 0;
  for (u32 h = 0; h < 2; ++h) {
    u32 right[kDepth * kCols], addend[kRows * kCols], result[kRows * kCols];
    Column columns[kCols];
    for (u32 j = 0; j < kCols; ++j) {
      const u32 at = h * kCols + j;
      columns[j] = {constants[at], in_range<32>(constants[at])};
      for (u32 k = 0; k < kDepth; ++k) right[k * kCols + j] = b.data[k * b.stride + at];
      for (u32 i = 0; c.data != nullptr && i < kRows; ++i)
        addend[i * kCols + j] = c.data[i * c.stride + at];
    }
    faults |= fhec(result, rows, right, c.data != nullptr ? addend : nullptr, columns)
              << (kCols * h);
    for (u32 i = 0; i < kRows; ++i)
      for (u32 j = 0; j < kCols; ++j) d.data[i * d.stride + h * kCols + j] = result[i * kCols + j];
  }
  return faults;
}

/// The same for moduli: 1 or 16 of them. ParameterError for a modulus outside [1, 2^32).
inline u32 fhe_sync(Tile<u32> d, Tile<const u32> a, Tile<const u32> b, Tile<const u32> c,
                    const std::vector<u64>& moduli) {
  if (moduli.size() != 1 && moduli.size() != 16)
    throw ParameterError(cat(moduli.size(), " moduli, expected 1 or 16"),
                         {{"moduli", moduli.size()}});
  ColumnConstants constants[16];
  for (u32 j = 0; j < 16; ++j)
    constants[j] = column_constants<32>(moduli[moduli.size() == 1 ? 0 : j]);
  return fhe_sync(d, a, b, c, constants);
}

}  // namespace crenel::fhecore
