// Sums of products with plaintexts for several giant steps at once, in registers.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "backends/cuda/poly/tuning/plain_sums.h"

namespace crenel::backend::cuda {

/// Values in a row, read as one word of memory: 1, 2 or 4.
template <u32 Count>
struct Words {
  u32 at[Count];

  __device__ __forceinline__ static Words load(const u32* p) {
    if constexpr (Count == 4) {
      const uint4 v = load4(p);
      return {{v.x, v.y, v.z, v.w}};
    } else if constexpr (Count == 2) {
      const uint2 v = load2(p);
      return {{v.x, v.y}};
    } else {
      return {{*p}};
    }
  }
  __device__ __forceinline__ static Words load_once(const u32* p, u64 policy) {
    if constexpr (Count == 4) {
      const uint4 v = load_streaming(p, policy);
      return {{v.x, v.y, v.z, v.w}};
    } else {
      static_assert(Count == 2);
      const uint2 v = load_streaming2(p, policy);
      return {{v.x, v.y}};
    }
  }
  __device__ __forceinline__ void store(u32* p) const {
    if constexpr (Count == 4)
      store4(p, make_uint4(at[0], at[1], at[2], at[3]));
    else
      store2(p, make_uint2(at[0], at[1]));
  }
};

/// What a launch needs besides the baby steps.
struct PlainArgs {
  Poly<u32> out[kManyGiants];
  const u32* data;   ///< device::PlainGrid, from the launch's first giant step on
  u64 giant_stride;  ///< words
  u32 log_words;
  u32 giants;
  u32 add;  ///< to what `out` holds, instead of overwriting it
};

/// A baby step's place in the grid.
struct GridColumn {
  u64 offset;  ///< words before its first entry
  u32 giants;  ///< bit g: entry (g, baby) is there
};

/// `kValues` neighbouring values of two components of `Entries` batch entries, for up to `Giants`
/// giant steps. Full: a plaintext has a word a value; otherwise the values of a thread share one.
template <u32 Giants, bool Full, u32 Entries = 1>
class GiantSums {
 public:
  static constexpr u32 kValues = sum_values(Giants, Entries);

  __device__ __forceinline__ GiantSums(const PlainArgs& args, u32 limb, u32 log_n, u32 at)
      : words_(args.data + (u64(limb) << args.log_words) + (at >> (log_n - args.log_words))) {}

  /// Starts reading the plaintexts of a column.
  __device__ __forceinline__ void fetch(const PlainArgs& args, const GridColumn& column,
                                        u64 policy) {
    const u32* entry = words_ + column.offset;
#pragma unroll
    for (u32 g = 0; g < Giants; ++g) {
      if (column.giants >> g & 1) {
        if constexpr (Full)
          plain_[g] = Words<kWords>::load_once(entry, policy);
        else
          plain_[g] = Words<kWords>::load(entry);
      }
      entry += args.giant_stride;
    }
  }

  /// Adds the products of x, below q, with the plaintexts read. Two products on top of a folded sum
  /// stay below 2 q R.
  __device__ __forceinline__ void add(const GridColumn& column, const u32 (&x)[2][kValues], u32 q) {
    static_assert(Entries == 1);
    add_products(column, 0, x);
    if (odd_) fold_all(0, q);
    odd_ = !odd_;
  }
  /// The same of one entry; end_step() after the last one's.
  __device__ __forceinline__ void add(const GridColumn& column, u32 entry,
                                      const u32 (&x)[2][kValues], u32 q) {
    add_products(column, entry, x);
    if (odd_) fold_all(entry, q);
  }
  __device__ __forceinline__ void end_step() { odd_ = !odd_; }

  /// Sums times scale / R to the components [first, first + count) of the outputs.
  __device__ __forceinline__ void store(const PlainArgs& args, u32 batch, u32 first, u32 count,
                                        u32 limb, u32 log_n, u32 at, u32 scale,
                                        const PrimeConstants& m, u32 entry = 0) {
    fold_all(entry, m.q);
#pragma unroll
    for (u32 g = 0; g < Giants; ++g) {
      if (g >= args.giants) break;
#pragma unroll
      for (u32 c = 0; c < 2; ++c) {
        if (c >= count) break;
        u32* to = args.out[g].limb(batch, first + c, limb, log_n) + at;
        Words<kValues> v;
#pragma unroll
        for (u32 u = 0; u < kValues; ++u)
          v.at[u] = mont_mul(mont_reduce(sum_[entry][g][c][u], m.q, m.q_inv), scale, m.q, m.q_inv);
        if (args.add) {
          const Words<kValues> old = Words<kValues>::load(to);
#pragma unroll
          for (u32 u = 0; u < kValues; ++u) v.at[u] = add_mod(v.at[u], old.at[u], m.q);
        }
        v.store(to);
      }
    }
  }

 private:
  static constexpr u32 kWords = Full ? kValues : 1;

  __device__ __forceinline__ void add_products(const GridColumn& column, u32 entry,
                                               const u32 (&x)[2][kValues]) {
#pragma unroll
    for (u32 g = 0; g < Giants; ++g) {
      if (column.giants >> g & 1) {
#pragma unroll
        for (u32 c = 0; c < 2; ++c)
#pragma unroll
          for (u32 u = 0; u < kValues; ++u)
            sum_[entry][g][c][u] =
                mad_wide(plain_[g].at[Full ? u : 0], x[c][u], sum_[entry][g][c][u]);
      }
    }
  }

  __device__ __forceinline__ void fold_all(u32 entry, u32 q) {
#pragma unroll
    for (u32 g = 0; g < Giants; ++g)
#pragma unroll
      for (u32 c = 0; c < 2; ++c)
#pragma unroll
        for (u32 u = 0; u < kValues; ++u) sum_[entry][g][c][u] = fold_high(sum_[entry][g][c][u], q);
  }

  const u32* words_;
  bool odd_ = false;
  u64 sum_[Entries][Giants][2][kValues] = {};
  Words<kWords> plain_[Giants];
};

}  // namespace crenel::backend::cuda
