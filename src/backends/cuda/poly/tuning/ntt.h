// Shapes of the two transform passes. Plain data, no CUDA.
//
// A transform of 2^log_n points is a pass over columns (the first `column_bits` stages) and one
// over rows (the other `row_bits`). A block works on 4096 values (fewer for small rings), 16 a
// thread.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

inline constexpr u32 kMinFastLogN = 10, kMaxLogN = 17;

constexpr u32 column_bits(u32 log_n) { return log_n / 2; }       // 5..8
constexpr u32 row_bits(u32 log_n) { return log_n - log_n / 2; }  // 5..9

/// Columns of a block of the column pass of `bits` stages.
constexpr u32 tile_columns(u32 bits) { return bits == 5 ? 32 : 4096u >> bits; }
/// The same of the pass that stores to other GPUs limb by limb, not in tiles: whole lines of 128
/// bytes. With half of one, two H200 took nearly as long for an exchange as by a kernel of its own
/// that stores more at once, though that one hides nothing
/// (docs/notes/2026-11-26-several-gpus.md).
constexpr u32 spread_columns(u32 bits) { return tile_columns(bits) < 32 ? 32 : tile_columns(bits); }
/// Rows of a block of the row pass of `bits` stages.
constexpr u32 tile_rows(u32 bits) { return bits <= 6 ? 32 : 4096u >> bits; }

constexpr u32 column_threads(u32 bits) { return (tile_columns(bits) << bits) / 16; }
constexpr u32 row_threads(u32 bits) { return (tile_rows(bits) << bits) / 16; }

// The same as constants, which device code can name.
template <u32 LogN>
inline constexpr u32 kColumnBits = column_bits(LogN);
template <u32 LogN>
inline constexpr u32 kRowBits = row_bits(LogN);
template <u32 Bits>
inline constexpr u32 kTileColumns = tile_columns(Bits);
template <u32 Bits>
inline constexpr u32 kSpreadColumns = spread_columns(Bits);
template <u32 Bits>
inline constexpr u32 kTileRows = tile_rows(Bits);
template <u32 Bits>
inline constexpr u32 kColumnThreads = column_threads(Bits);
template <u32 Bits>
inline constexpr u32 kSpreadThreads = (kSpreadColumns<Bits> << Bits) / 16;
template <u32 Bits>
inline constexpr u32 kRowThreads = row_threads(Bits);

// Measured on one H200 (sm_90, CUDA 13.0), 2026-11-21, N = 2^16, by
//   dev/kernels/sweep.sh "tuning/ntt.h:s/NAME = OLD/NAME = NEW/"
// us of mod_up, mod_down, hmult at 48 limbs | at 24 limbs:
//   kNttBlocksPerSm       4: 125.7 75.8 247.2 | 46.4 47.7 118.3
//                         3: 128.6 77.6 248.8 | 46.2 48.5 118.5
//     (an earlier version, no hmult) 4: 127.9 80.3 | 50.9 53.4   5: 125.5 82.0 | 53.7 55.1 (spills)
//   kRowPolysPerBlock     4: 129.0 82.0   1: 128.3 82.1
//   kKeySwitchBlocksPerSm (key_switch)  2: 212.3   3: 215.1 (spills)   4: 224.5

/// Blocks that shall be resident on a multiprocessor (bounds the registers of a thread).
inline constexpr u32 kNttBlocksPerSm = 4;
inline constexpr u32 kKeySwitchBlocksPerSm = 2;
/// The same of blocks of two warps, a ciphertext each: as many warps. Larger blocks of pairs would
/// wait for each other's first loads; without pairs, as in divisions, blocks of 64 and of 256
/// threads draw (H200, dev/kernels/README.md, b19).
inline constexpr u32 kKeySwitchPairsPerSm = 8;

/// What a chain of launches (base conversion, column pass, row pass) writes at a time for each
/// ciphertext, beside a second-level cache of so many bytes. More than it holds: smaller parts move
/// less from memory, and lose more by their small grids. boot40 on one H100, ms, by MiB of a part:
/// all 11.90, 64 11.83, 48 12.07, 40 12.04, 31 12.07, 24 12.41, 16 12.80 (dev/kernels/README.md,
/// b6).
constexpr u64 chain_bytes(u64 l2_bytes) { return l2_bytes / 4 * 5; }

/// Polynomials (with the same primes) that one block of the row pass transforms one after the
/// other, so that it reads its twiddles from L1 after the first; at most this many, and fewer when
/// the blocks of one polynomial each would not fill the GPU several times.
inline constexpr u32 kRowPolysPerBlock = 4;
inline constexpr u32 kRowRounds = 4;
constexpr u32 row_min_blocks(u32 processors) { return processors * kNttBlocksPerSm * kRowRounds; }
constexpr u32 row_polys_per_block(u32 blocks_per_poly, u32 polys, u32 most, u32 min_blocks) {
  u32 count = most;
  while (count > 1 && blocks_per_poly * ((polys + count - 1) / count) < min_blocks) --count;
  return count;
}

/// Whether passes may start while the launch before them ends (Tunable::passes_early): what they
/// read of older data then comes meanwhile. Blocks of a pass that neither fills the GPU nor fits
/// beside what runs pile up on the multiprocessors that end first (ptx.cuh).
/// dev/kernels/README.md, b32.
inline constexpr u32 kPassesEarly = 1;
/// Whether rows that nobody will read again leave L2 without being written back
/// (Tunable::discard_read). dev/kernels/README.md, b43.
inline constexpr u32 kDiscardRead = 1;
/// Warps of a multiprocessor that such passes need to fill it: those of its resident blocks.
inline constexpr u32 kRowWarpsPerSm = kNttBlocksPerSm * 8, kSwitchWarpsPerSm = 16;

}  // namespace crenel::backend::cuda
