// Key switch whose digits multiply the key's rows, the digits of some words of the masks in shared
// memory: by matrix units where digits are bytes, otherwise by words. A block takes a tile of rows
// and of words through a part of the key.
#pragma once

#include "backends/cuda/cluster.cuh"
#include "backends/cuda/ptx.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kProductRows = 16, kProductWords = 128;
/// Words of a mask whose digits are cut at a time; at most so many digits of each.
inline constexpr u32 kProductPart = 16, kProductDigits = 40;
/// By matrix units: digits of a row that are cut at a time; bytes from row to row, so that rows lie
/// in different banks; words of a warp; the largest base.
inline constexpr u32 kUnitDigits = 160, kUnitStride = kUnitDigits + 16, kUnitWords = 16,
                     kUnitBaseLog = 8;

struct ProductSwitchArgs {
  u32* out;
  const u32* in;
  const u32* key;  ///< [in_dim][digits][words]
  u32 batch;
  u32 in_dim, out_dim, slots;
  u32 base_log, digits;
  u32 log_in_modulus, log_modulus, log_out_modulus;
  u64 middle;  ///< half of the base for every digit
  u32 part;    ///< words of a mask that a block takes
  u32* sums;   ///< [batch][words] of the parts, else null
};

/// round(x / 2^(from - to)), halves up, modulo 2^to; from >= to.
__device__ __forceinline__ u32 rounded_to(u64 x, u32 from, u32 to) {
  const u64 half = from == to ? 0 : u64(1) << (from - to - 1);
  return static_cast<u32>((x + half) >> (from - to) & ((u64(1) << to) - 1));
}

/// The digits of a word of a row's mask, signed numbers modulo 2^32: put(j, digit).
template <class Put>
__device__ __forceinline__ void cut_digits(const ProductSwitchArgs& args, u32 row, u32 word,
                                           const Put& put) {
  const u32 kept = args.base_log * args.digits, base = 1u << args.base_log;
  // Bits from `kept` on are dropped, so 32 are enough. Of rows past the end all digits are 0.
  u32 x = static_cast<u32>(args.middle);
  if (row < args.batch)
    x += rounded_to(args.in[u64(row) * (args.in_dim + args.slots) + word], args.log_in_modulus,
                    kept);
  for (u32 j = 0; j < args.digits; ++j, x >>= args.base_log) put(j, (x & (base - 1)) - base / 2);
}

/// Minus the sum of products, to the output's modulus, with the body.
__device__ __forceinline__ void finish_switch(const ProductSwitchArgs& args, u32 row, u32 word,
                                              u32 x) {
  const u32 words = args.out_dim + args.slots, in_words = args.in_dim + args.slots;
  if (word >= args.out_dim)
    x += rounded_to(args.in[u64(row) * in_words + args.in_dim + word - args.out_dim],
                    args.log_in_modulus, args.log_modulus);
  const u32 mask = static_cast<u32>((u64(1) << args.log_modulus) - 1);
  args.out[u64(row) * words + word] = rounded_to(x & mask, args.log_modulus, args.log_out_modulus);
}

/// A block's sum of its part of the key.
__device__ __forceinline__ void put_switch(const ProductSwitchArgs& args, u32 row, u32 word,
                                           u32 x) {
  if (args.sums == nullptr)
    finish_switch(args, row, word, x);
  else
    atomicAdd(args.sums + u64(row) * (args.out_dim + args.slots) + word, x);
}

__global__ void __launch_bounds__(256)
    product_switch_finish(const __grid_constant__ ProductSwitchArgs args) {
  begin_kernel();
  const u32 words = args.out_dim + args.slots, t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < args.batch * words) finish_switch(args, t / words, t % words, args.sums[t]);
}

#if defined(__CUDACC__)
/// d += A B, A signed bytes, B unsigned; of this thread what multiply_bytes (ptx.cuh) says. Sums
/// are modulo 2^32. (A test that runs kernels on the host brings its own.)
__device__ __forceinline__ void multiply_digits(u32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#endif

/// Byte l of four words, for every l < Limbs.
template <u32 Limbs>
__device__ __forceinline__ void bytes_of(const u32 (&w)[4], u32 (&bytes)[Limbs]) {
  const u32 low01 = __byte_perm(w[0], w[1], 0x5140), low23 = __byte_perm(w[2], w[3], 0x5140);
  const u32 high01 = __byte_perm(w[0], w[1], 0x7362), high23 = __byte_perm(w[2], w[3], 0x7362);
  bytes[0] = __byte_perm(low01, low23, 0x5410);
  bytes[1] = __byte_perm(low01, low23, 0x7632);
  bytes[2] = __byte_perm(high01, high23, 0x5410);
  if constexpr (Limbs == 4) bytes[3] = __byte_perm(high01, high23, 0x7632);
}

/// Limbs: bytes of the key's modulus, 3 or 4. Tiles of 16 rows a warp, WarpsM warps of other rows,
/// WarpsN of other words. Staged: the key's words come to shared memory one part ahead; otherwise
/// to registers, one product ahead, for many small blocks.
template <u32 Limbs_, u32 Tiles_, u32 WarpsM_, u32 WarpsN_, bool Staged_>
struct UnitShape {
  static constexpr u32 Limbs = Limbs_, Tiles = Tiles_, WarpsM = WarpsM_, WarpsN = WarpsN_;
  static constexpr bool Staged = Staged_;
  static constexpr u32 Rows = 16 * Tiles * WarpsM, Words = kUnitWords * WarpsN;
  static constexpr u32 Threads = 32 * WarpsM * WarpsN;
  /// From row to row of the key: neighbouring lanes read rows four apart, in different banks.
  static constexpr u32 kKeyStride = Words + 2, kKeyWords = kUnitDigits * kKeyStride;
  static constexpr u32 kBytes = Rows * kUnitStride + (Staged ? 2 * kKeyWords * sizeof(u32) : 0);
};

/// Digits of a part of the masks of the block's rows, from word `part` on, to whole products.
template <class Shape>
__device__ __forceinline__ void cut_part(const ProductSwitchArgs& args, u8 (*cut)[kUnitStride],
                                         u32 part, u32 count, u32 padded) {
  const u32 digits = count * args.digits;
  for (u32 t = threadIdx.x; t < count * Shape::Rows; t += Shape::Threads) {
    const u32 row = t / count, i = t % count;
    u8* const to = &cut[row][i * args.digits];
    cut_digits(args, blockIdx.y * Shape::Rows + row, part + i,
               [&](u32 j, u32 x) { to[j] = static_cast<u8>(x); });
  }
  for (u32 t = threadIdx.x; t < (padded - digits) * Shape::Rows; t += Shape::Threads)
    cut[t % Shape::Rows][digits + t / Shape::Rows] = 0;
}

template <class Shape>
__global__ void __launch_bounds__(Shape::Threads)
    product_switch_units(const __grid_constant__ ProductSwitchArgs args) {
  begin_kernel();
  constexpr u32 Limbs = Shape::Limbs, Tiles = Shape::Tiles, kColumns = kUnitWords / 8;
  auto* const cut = reinterpret_cast<u8(*)[kUnitStride]>(block_memory());
  u32* const staged = reinterpret_cast<u32*>(block_memory() + Shape::Rows * kUnitStride);
  const u32 words = args.out_dim + args.slots, first_row = blockIdx.y * Shape::Rows;
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x & 31, quad = lane & 3;
  const u32 warp_row = warp % Shape::WarpsM * 16 * Tiles + lane / 4;
  const u32 block_word = blockIdx.x * Shape::Words;
  const u32 in_block = warp / Shape::WarpsM * kUnitWords, warp_word = block_word + in_block;
  u32 sum[Tiles][kColumns][Limbs][4] = {};

  const u32 begin = blockIdx.z * args.part, end = min(begin + args.part, args.in_dim);
  const u32 step = kUnitDigits / args.digits;
  // Words past the end repeat the last one.
  const auto stage = [&](u32 part, u32 buffer) {
    const u32* const from = args.key + u64(part) * args.digits * words;
    const u32 column = threadIdx.x % Shape::Words, word = min(block_word + column, words - 1);
    for (u32 row = threadIdx.x / Shape::Words; row < min(step, end - part) * args.digits;
         row += Shape::Threads / Shape::Words)
      copy_async<4>(staged + buffer * Shape::kKeyWords + row * Shape::kKeyStride + column,
                    from + u64(row) * words + word);
    commit_copies();
  };
  if constexpr (Shape::Staged) stage(begin, 0);
  for (u32 part = begin, buffer = 0; part < end; part += step, buffer ^= 1) {
    const u32 count = min(step, end - part), digits = count * args.digits;
    const u32 padded = (digits + 31) / 32 * 32;
    __syncthreads();
    if constexpr (Shape::Staged) {
      if (part + step < end)
        stage(part + step, buffer ^ 1);
      else
        commit_copies();
    }
    cut_part<Shape>(args, cut, part, count, padded);
    if constexpr (Shape::Staged) wait_for_copies_but<1>();
    __syncthreads();
    const u32* const here = staged + buffer * Shape::kKeyWords + in_block + lane / 4;
    const u32* const far = args.key + u64(part) * args.digits * words;
    u32 next[kColumns][2][4];
    const auto fetch = [&](u32 k) {
#pragma unroll
      for (u32 h = 0; h < 2; ++h)
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
          // digits past the end are 0: any row of the key will do
          const u32 row = min(k + 16 * h + 4 * quad + i, digits - 1);
#pragma unroll
          for (u32 c = 0; c < kColumns; ++c)
            next[c][h][i] =
                Shape::Staged
                    ? here[row * Shape::kKeyStride + 8 * c]
                    : far[u64(row) * words + min(warp_word + 8 * c + lane / 4, words - 1)];
        }
    };
    fetch(0);
    for (u32 k = 0; k < padded; k += 32) {
      u32 bytes[kColumns][2][Limbs];
#pragma unroll
      for (u32 c = 0; c < kColumns; ++c)
#pragma unroll
        for (u32 h = 0; h < 2; ++h) bytes_of<Limbs>(next[c][h], bytes[c][h]);
      if (k + 32 < padded) fetch(k + 32);
#pragma unroll
      for (u32 tile = 0; tile < Tiles; ++tile) {
        u32 a[4];
#pragma unroll
        for (u32 i = 0; i < 4; ++i)
          a[i] = *reinterpret_cast<const u32*>(
              &cut[warp_row + 16 * tile + i % 2 * 8][k + i / 2 * 16 + 4 * quad]);
#pragma unroll
        for (u32 c = 0; c < kColumns; ++c)
#pragma unroll
          for (u32 l = 0; l < Limbs; ++l)
            multiply_digits(sum[tile][c][l], a, bytes[c][0][l], bytes[c][1][l]);
      }
    }
  }
#pragma unroll
  for (u32 tile = 0; tile < Tiles; ++tile)
#pragma unroll
    for (u32 c = 0; c < kColumns; ++c)
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        const u32 row = first_row + warp_row + 16 * tile + i / 2 * 8;
        const u32 word = warp_word + 8 * c + 2 * quad + i % 2;
        u32 x = 0;
#pragma unroll
        for (u32 l = 0; l < Limbs; ++l) x -= sum[tile][c][l][i] << (8 * l);
        if (row < args.batch && word < words) put_switch(args, row, word, x);
      }
}

__global__ void __launch_bounds__(kProductWords)
    product_switch(const __grid_constant__ ProductSwitchArgs args) {
  begin_kernel();
  __shared__ u32 cut[kProductPart * kProductDigits][kProductRows];
  const u32 words = args.out_dim + args.slots;
  const u32 word = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * kProductRows;
  u32 sum[kProductRows] = {};
  const u32 begin = blockIdx.z * args.part, end = min(begin + args.part, args.in_dim);
  for (u32 part = begin; part < end; part += kProductPart) {
    const u32 count = min(kProductPart, end - part);
    __syncthreads();
    for (u32 t = threadIdx.x; t < count * kProductRows; t += blockDim.x) {
      const u32 row = t / count, i = t % count;
      cut_digits(args, first + row, part + i,
                 [&](u32 j, u32 x) { cut[i * args.digits + j][row] = x; });
    }
    __syncthreads();
    if (word >= words) continue;
    const u32* key = args.key + u64(part) * args.digits * words + word;
    for (u32 k = 0; k < count * args.digits; ++k, key += words) {
      const u32 value = *key;
#pragma unroll
      for (u32 row = 0; row < kProductRows; ++row) sum[row] -= cut[k][row] * value;
    }
  }
  if (word >= words) return;
#pragma unroll
  for (u32 row = 0; row < kProductRows; ++row)
    if (first + row < args.batch) put_switch(args, first + row, word, sum[row]);
}

}  // namespace crenel::backend::cuda::torus
