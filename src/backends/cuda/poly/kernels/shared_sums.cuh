// Inner sums of hoisted transforms of a batch: what a block reads of keys and plaintexts serves
// several ciphertexts.
#pragma once

#include "backends/cuda/poly/device/walk.h"
#include "backends/cuda/poly/kernels/plain_sums.cuh"

namespace crenel::backend::cuda {

struct SharedSumArgs {
  HoistedArgs hoisted;
  u32 batch;
  u32 groups;      ///< of entries, each of `each` or one fewer
  u32 each;        ///< entries of a group, at most those of the kernel
  u32 log_stride;  ///< see granule_on_walk(); kNoWalk: granules in their order
};

/// Key words of `Count` digits and those digits of several entries, read together.
template <u32 Count, u32 Entries, u32 Values>
struct SharedDigits {
  Words<Values> key[2][Count], digit[Entries][Count];

  __device__ __forceinline__ void load(const HoistedArgs& args, const HoistedStep& step,
                                       const u32* digits, const u64 (&offset)[Entries],
                                       const u32* keys, u64 policy) {
#pragma unroll
    for (u32 d = 0; d < Count; ++d) {
      const u32* k = keys + d * step.key.digit_stride;
      key[0][d] = Words<Values>::load_once(k, policy);
      key[1][d] = Words<Values>::load_once(k + step.key.component_stride, policy);
    }
#pragma unroll
    for (u32 e = 0; e < Entries; ++e)
#pragma unroll
      for (u32 d = 0; d < Count; ++d)
        digit[e][d] = Words<Values>::load(digits + offset[e] + d * args.digits.component_stride);
  }
  /// Adds the products, not folded: four of words below q, below R / 2, stay below 2 q R.
  __device__ __forceinline__ void add(u64 (&sum)[2][Values], u32 entry) const {
#pragma unroll
    for (u32 d = 0; d < Count; ++d)
#pragma unroll
      for (u32 c = 0; c < 2; ++c)
#pragma unroll
        for (u32 u = 0; u < Values; ++u)
          sum[c][u] = mad_wide(digit[entry][d].at[u], key[c][d].at[u], sum[c][u]);
  }
};

template <u32 Values>
__device__ __forceinline__ void fold_sums(u64 (&sum)[2][Values], u32 q) {
#pragma unroll
  for (u32 c = 0; c < 2; ++c)
#pragma unroll
    for (u32 u = 0; u < Values; ++u) sum[c][u] = fold_high(sum[c][u], q);
}

/// hoisted_sums for `Entries` batch entries a thread. Grid: x tiles of values times groups of
/// entries, those of a tile next to each other, z limbs. Entries that a group lacks are read as its
/// last one and not computed.
template <u32 Giants, u32 Entries, bool Full, u32 Digits>
__global__ void __launch_bounds__(kPlainThreads, kSharedBlocksPerSm<Giants, Entries>)
    shared_sums(const __grid_constant__ SharedSumArgs shared) {
  begin_kernel();
  using Sums = GiantSums<Giants, Full, Entries>;
  constexpr u32 kValues = Sums::kValues;
  constexpr u32 kLogGranule = 5 + (kValues == 4 ? 2 : 1);
  const HoistedArgs& args = shared.hoisted;
  const u32 limb = blockIdx.z, group = blockIdx.x % shared.groups, log_n = args.log_n;
  const u32 first = group * shared.each, count = min(shared.each, shared.batch - first);
  __shared__ const u32* keys[kLaunchBabies];
  if (threadIdx.x < args.steps && (args.turned || args.step[threadIdx.x].element != 1))
    keys[threadIdx.x] = args.step[threadIdx.x].key.words() +
                        (u64(args.in_key[args.step[threadIdx.x].form].at[limb]) << log_n);
  __syncthreads();
  u32 granule = blockIdx.x / shared.groups * (kPlainThreads / 32) + threadIdx.x / 32;
  if (granule >> (log_n - min(log_n, kLogGranule)) != 0) return;
  if (shared.log_stride != kNoWalk)
    granule = granule_on_walk(granule, log_n - kLogGranule, shared.log_stride);
  const u32 at = (granule << kLogGranule) + kValues * (threadIdx.x % 32);
  if (at >= (1u << log_n)) return;
  const PrimeConstants m = args.primes[args.prime.at[limb]];
  const u64 policy = shared.groups == 1 ? streaming_policy() : ordinary_policy();
  const bool lifted = limb < args.window;
  const u32 special = args.special[limb];
  u64 offset[Entries], b_offset[Entries];
#pragma unroll
  for (u32 e = 0; e < Entries; ++e) {
    offset[e] = min(e, count - 1) * args.digits.batch_stride;
    b_offset[e] = min(e, count - 1) * args.b.batch_stride;
  }
  Sums sums(args.plain, limb, log_n, at);
  for (u32 s = 0; s < args.steps; ++s) {
    const HoistedStep& step = args.step[s];
    const bool has_key = args.turned || step.element != 1;
    if (!has_key && !lifted) continue;
    const u32 source = ring::galois_eval_source(at, step.element, log_n);
    const u32 from = source & ~(kValues - 1);
    sums.fetch(args.plain, step.column, policy);
    Words<kValues> b[Entries] = {};
    if (lifted) {
      const u32* words = args.b.limb(first, 0, limb, log_n) + from;
#pragma unroll
      for (u32 e = 0; e < Entries; ++e) b[e] = Words<kValues>::load(words + b_offset[e]);
    }
    // The lift on top: of four products in all, or of two on a folded sum.
    const auto finish = [&](u32 e, u64(&sum)[2][kValues]) {
      if (lifted) {
#pragma unroll
        for (u32 u = 0; u < kValues; ++u) {
          if constexpr (Digits == 4) sum[0][u] = fold_high(sum[0][u], m.q);
          sum[0][u] = mad_wide(special, b[e].at[u], sum[0][u]);
        }
      }
      u32 x[2][kValues];
#pragma unroll
      for (u32 c = 0; c < 2; ++c) {
#pragma unroll
        for (u32 u = 0; u < kValues; ++u)
          x[c][u] = mont_reduce(fold_high(sum[c][u], m.q), m.q, m.q_inv);
        permute<kValues>(x[c], source, step.element);
      }
      sums.add(step.column, e, x, m.q);
    };
    if (!has_key) {
      const u32* words = args.a.limb(first, 0, limb, log_n) + from;
#pragma unroll
      for (u32 e = 0; e < Entries; ++e) {
        if (e >= count) break;
        const auto a = Words<kValues>::load(words + e * args.a.batch_stride);
        u64 sum[2][kValues] = {};
#pragma unroll
        for (u32 u = 0; u < kValues; ++u) sum[1][u] = u64(special) * a.at[u];
        finish(e, sum);
      }
    } else if constexpr (Digits != 0) {
      SharedDigits<Digits, Entries, kValues> words;
      words.load(args, step, args.digits.limb(first, 0, limb, log_n) + from, offset, keys[s] + from,
                 policy);
#pragma unroll
      for (u32 e = 0; e < Entries; ++e) {
        if (e >= count) break;
        u64 sum[2][kValues] = {};
        words.add(sum, e);
        finish(e, sum);
      }
    } else {
      u64 sum[Entries][2][kValues] = {};
      const u32* digits = args.digits.limb(first, 0, limb, log_n) + from;
      const u32* key = keys[s] + from;
      const auto take = [&](auto words) {
        words.load(args, step, digits, offset, key, policy);
#pragma unroll
        for (u32 e = 0; e < Entries; ++e) words.add(sum[e], e);
      };
      for (u32 pair = args.count / 2; pair != 0; --pair) {
        take(SharedDigits<2, Entries, kValues>());
#pragma unroll
        for (u32 e = 0; e < Entries; ++e) fold_sums(sum[e], m.q);
        digits += 2 * args.digits.component_stride;
        key += 2 * step.key.digit_stride;
      }
      if (args.count % 2 != 0) take(SharedDigits<1, Entries, kValues>());
#pragma unroll
      for (u32 e = 0; e < Entries; ++e) {
        if (e >= count) break;
        finish(e, sum[e]);
      }
    }
    sums.end_step();
  }
  // The baby steps came divided by R: R^3 / R restores them and the division at the end.
  const u32 scale = mont_mul(m.r2, m.r2, m.q, m.q_inv);
#pragma unroll
  for (u32 e = 0; e < Entries; ++e) {
    if (e >= count) break;
    sums.store(args.plain, first + e, 0, 2, limb, log_n, at, scale, m, e);
  }
}

}  // namespace crenel::backend::cuda
