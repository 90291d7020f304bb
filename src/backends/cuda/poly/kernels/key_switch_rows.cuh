// Last stages of the transforms of all digits, fused with the inner product with a switching key:
// the digits in evaluation form are never written. Limbs that a division drops after it go through
// the first stages of the inverse transform before they are stored.
#pragma once

#include "backends/cuda/poly/kernels/key_switch_forms.cuh"

namespace crenel::backend::cuda {

/// Limbs that nothing but the inverse transform of a division reads: stored as the first pass of
/// that leaves them.
struct DroppedRows {
  const uint2* roots;                   ///< TransformArgs::roots of the inverse transform
  const uint4* last_roots;              ///< and its last_roots
  u32 limbs[rns::kMaxLimbs / 32] = {};  ///< bits, by limb

  __host__ __device__ __forceinline__ bool has(u32 limb) const {
    return (limbs[limb / 32] >> (limb % 32) & 1) != 0;
  }
};

/// args.in holds the digits after the column pass, args.components the digits of a batch entry;
/// args.out is addressed by limb plus first_limb, the lists by limb.
struct KeySwitchTail {
  OwnLimbs own;
  KeyPoly key;
  LimbBytes in_key;  ///< position of the limb
  u32 first_limb;
  Poly<const u32> addend;  ///< factor * addend is added, on the first addend_limbs limbs
  u32 addend_components;   ///< 0: none
  u32 addend_limbs;
  u32 digits_end;              ///< nobody reads args.in after
  u32 factor[rns::kMaxLimbs];  ///< by limb of the addend
  DroppedRows dropped;
  LimbOrder order;
};

/// Threads of a block for each of its entries, and the rows they work on.
template <u32 Bits, u32 Entries>
inline constexpr u32 kKeySwitchThreads = Entries == 1 ? kRowThreads<Bits> : 32;
template <u32 Bits, u32 Entries>
inline constexpr u32 kKeySwitchRows = kKeySwitchThreads<Bits, Entries> >> (Bits - 4);

/// Of each entry tile, twiddles and the rows of one digit; the key values of two digits.
template <u32 Bits, u32 Entries>
inline constexpr u32 kKeySwitchRowBytes =
    kKeySwitchRows<Bits, Entries> *
    (Entries * (kRowTileStride<Bits> + (2u << kRowRound<Bits>)) + ((Entries + 4) << Bits)) * 4;

__device__ __forceinline__ uint4 multiply_add(uint4 acc, uint4 x, uint4 y, u32 q, u32 q_inv) {
  return make_uint4(add_mod(acc.x, mont_mul(x.x, y.x, q, q_inv), q),
                    add_mod(acc.y, mont_mul(x.y, y.y, q, q_inv), q),
                    add_mod(acc.z, mont_mul(x.z, y.z, q, q_inv), q),
                    add_mod(acc.w, mont_mul(x.w, y.w, q, q_inv), q));
}

/// The last sums of a row, R times, to the first pass of the inverse transform, and what that
/// leaves to `out`. `heap` is this row's room for twiddles, which are on their way there.
template <u32 Bits, class Form>
__device__ __forceinline__ void store_dropped(const Poly<u32>& out, const DroppedRows& dropped,
                                              const SwitchWork<Bits>& work, const Form& form,
                                              uint4 (&acc)[2][4], u32 id, const uint2* heap) {
  const u32 q = work.prime.q, q_inv = work.prime.q_inv, r2 = work.prime.r2;
  const u32 row = form.row(work), i = work.place.i;
  const u32 node = (1u << (work.log_n - Bits)) + row;
  const ShoupTwiddles roots = {dropped.roots + (u64(id) << (work.log_n - 4)), q};
  const LastTwiddles last = {
      last_root(dropped.last_roots, id, (node << (Bits - 4)) + i, work.log_n), roots, q_inv};
#pragma unroll 1
  for (u32 c = 0; c < 2; ++c) {
    __syncwarp();  // all have read their tile
#pragma unroll
    for (u32 k = 0; k < 4; ++k)
      store4(work.tile + row_slot(form.column(work, k)),
             form.ordered(work, k, scaled4(acc[0][k], r2, q, q_inv)));
    u32 x[kPerThread];
    inverse_row<Bits>(x, work.tile, SharedTwiddles{heap, q}, roots, last, node, i);
    u32* to = out.limb(work.batch, c, work.limb, work.log_n) + (row << Bits) + i;
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) to[e << (Bits - 4)] = x[e];
#pragma unroll
    for (u32 k = 0; k < 4; ++k) acc[0][k] = acc[1][k];
  }
}

/// Grid: x tiles of rows, y batch, z limbs in tail.order. The rows and key values of the next digit
/// travel to shared memory while a digit is transformed.
///
/// Two entries: the warp with y = 0 works on one, that with y = 1 on the next, and each brings one
/// component of the key for both; they wait for each other once a digit. The last entry of an odd
/// batch has its block to itself.
template <u32 Bits, u32 Entries, class Form>
__global__ void __launch_bounds__(Entries* kKeySwitchThreads<Bits, Entries>,
                                  Entries == 1 ? kKeySwitchBlocksPerSm : kKeySwitchPairsPerSm)
    key_switch_rows(const __grid_constant__ TransformArgs args,
                    const __grid_constant__ KeySwitchTail tail, const __grid_constant__ Form form) {
  u32* const shared = dynamic_shared();
  constexpr u32 kRows = kKeySwitchRows<Bits, Entries>, kBlockWords = kRows << Bits;
  constexpr u32 kStep = 4 * kKeySwitchThreads<Bits, Entries>;
  constexpr u32 kTileWords = kRows * kRowTileStride<Bits>,
                kHeapWords = kRows * 2 << kRowRound<Bits>;
  const RowPlace<Bits> place = row_place<Bits>(kRows, tail.order);
  const u32 half = Entries == 1 ? 0 : threadIdx.y, batch = Entries * blockIdx.y + half;
  const bool paired = Entries == 2 && (Entries * blockIdx.y + 1) * args.components < args.polys;
  if (Entries == 2 && half == 1 && !paired) return;
  const u32 limb = place.limb, id = args.prime.at[limb];
  const u32 q = args.primes[id].q, q_inv = args.primes[id].q_inv;
  const u32 own_digit = tail.own.component.at[limb];
  u32* tile = place.tile(shared + half * kTileWords);
  u32* heaps = shared + Entries * kTileWords + half * kHeapWords;
  u32* rows = shared + Entries * (kTileWords + kHeapWords) + half * kBlockWords;
  u32* const key_words = shared + Entries * (kTileWords + kHeapWords + kBlockWords);
  u32* keys = key_words + 4 * threadIdx.x;  // [digit parity][component]
  const u32* own = tail.own.from.limb(batch, 0, tail.own.position.at[limb], args.log_n);
  const u32 row_in_block = (place.row % kRows) << Bits;
  const u32* key_limb = tail.key.words() + (u64(tail.in_key.at[limb]) << args.log_n) + place.start;
  // The n-th digit: of a product the own one is the first, made beside the sums.
  const auto digit = [&](u32 n) {
    if constexpr (Form::kProduct)
      if (own_digit < args.components) return n == 0 ? own_digit : n <= own_digit ? n - 1 : n;
    return n;
  };
  const auto fetch_rows = [&](u32 n) {
    const u32 d = digit(n);
    const u32* from =
        d == own_digit ? own : args.in.limb(batch, d, args.in_position.at[limb], args.log_n);
    if (!Form::kProduct || d != own_digit)
#pragma unroll
      for (u32 k = 0; k < 4; ++k)
        copy_async<16>(rows + row_in_block + place.at(k), from + place.start + place.at(k));
  };
  const auto fetch_keys = [&](u32 n) {
    const u32* key0 = key_limb + digit(n) * tail.key.digit_stride;
    const u32* key1 = key0 + tail.key.component_stride;
    u32* to = keys + (n & 1) * 2 * kBlockWords;
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      if (half == 0) copy_async<16>(to + k * kStep, key0 + place.at(k));
      if (half == 1 || !paired) copy_async<16>(to + kBlockWords + k * kStep, key1 + place.at(k));
    }
  };
  const u32 node = place.node(args.log_n);
  const ShoupTwiddles roots = shoup_twiddles(args, id, args.log_n);
  const SharedTwiddles first_round =
      fetch_row_twiddles<Bits>(heaps, place.row_in_block(), roots, node, place.i);
  fetch_keys(0);
  begin_kernel();  // after what no kernel of this operation writes
  fetch_rows(0);
  const u32 out_limb = tail.first_limb + limb;
  // Of the key values of the second digit a component for each entry.
  u32* const free_words = keys + (2 + half) * kBlockWords;
  const SwitchWork<Bits> work{
      args.primes[id], args.log_n,          batch, out_limb, place, free_words,
      kStep,           rows + row_in_block, tile};
  // Of dropped limbs: with the last digit the twiddles of their inverse pass come, to key words of
  // this warp's that no digit needs any more.
  const bool dropped = tail.dropped.has(limb);
  const u32 row_in_warp = place.row_in_block() % (32 / RowPlace<Bits>::kThreads);
  u32* const inverse_heaps =
      key_words + ((args.components & 1) * 2 + half) * kBlockWords + threadIdx.x / 32 * 128;
  [[maybe_unused]] const auto early = [&] {
    if constexpr (!Form::kPlain)
      return form.fetch(args.out, work);
    else
      return 0;
  }();
  const LastTwiddles last_round = last_twiddles(args, id, place.last_node(args.log_n));
  // Sums are R^-1 times the result until the end: so is the factor's product as it stands.
  uint4 acc[2][4] = {};
  if (out_limb < tail.addend_limbs) {
    const u32 f = tail.factor[out_limb];
    const u32* from = tail.addend.limb(batch, 0, out_limb, args.log_n) + place.start;
    if (tail.addend_components != 0)
#pragma unroll
      for (u32 k = 0; k < 4; ++k) acc[0][k] = load4(from + place.at(k));
    from += tail.addend.component_stride;
    if (tail.addend_components > 1)
#pragma unroll
      for (u32 k = 0; k < 4; ++k) acc[1][k] = load4(from + place.at(k));
#pragma unroll
    for (u32 c = 0; c < 2; ++c)
#pragma unroll
      for (u32 k = 0; k < 4; ++k) acc[c][k] = scaled4(acc[c][k], f, q, q_inv);
  }
  if constexpr (!Form::kPlain) {
    wait_for_copies();
    form.begin(acc, early, work);
  }
  for (u32 n = 0; n < args.components; ++n) {
    const u32 d = digit(n);
    wait_for_copies();
    // The row is complete: it was fetched by threads of this warp. So are the key values, when the
    // other warp has come here, and those of the digit before are not needed any more.
    if (Entries == 1 || !paired)
      __syncwarp();
    else
      barrier();
    u32 x[kPerThread];
    if (d == own_digit) {
      if constexpr (!Form::kProduct)
#pragma unroll
        for (u32 k = 0; k < 4; ++k)
          store4(tile + row_slot(place.at(k)), load4(rows + row_in_block + place.at(k)));
    } else {
      read_row<Bits>(x, rows + row_in_block, place.i);
      if (tail.digits_end != 0)
        discard_row<Bits>(
            args.in.limb(batch, d, args.in_position.at[limb], args.log_n) + place.start, place.i);
    }
    __syncwarp();
    if (n + 1 < args.components)
      fetch_rows(n + 1), fetch_keys(n + 1);
    else if (dropped)
      fetch_row_twiddles<Bits>(inverse_heaps, row_in_warp,
                               ShoupTwiddles{tail.dropped.roots + (u64(id) << (args.log_n - 4)), q},
                               (1u << (args.log_n - Bits)) + form.row(work), place.i);
    if (d != own_digit) forward_row<Bits>(x, tile, first_round, roots, last_round, node, place.i);
    const u32* key = keys + (n & 1) * 2 * kBlockWords;
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const uint4 v = load4(tile + row_slot(place.at(k)));
      acc[0][k] = multiply_add(acc[0][k], v, load4(key + k * kStep), q, q_inv);
      acc[1][k] = multiply_add(acc[1][k], v, load4(key + kBlockWords + k * kStep), q, q_inv);
    }
  }
  if (dropped)
    return store_dropped<Bits>(
        args.out, tail.dropped, work, form, acc, id,
        reinterpret_cast<const uint2*>(inverse_heaps) + (row_in_warp << kRowRound<Bits>));
  const u32 r2 = args.primes[id].r2;
#pragma unroll
  for (u32 c = 0; c < 2; ++c)
#pragma unroll
    for (u32 k = 0; k < 4; ++k) form.store(args.out, work, c, k, scaled4(acc[c][k], r2, q, q_inv));
}

}  // namespace crenel::backend::cuda
