// What key_switch_rows does besides: nothing; an automorphism of the result, which may be added to
// what is there; or the product of two ciphertexts, whose components are never stored.
//
// A form says what it reads (fetch), what the sums begin with besides the addend (begin), and where
// the result goes: store, or of a row that goes on to the inverse transform, which row of the
// result that is (row), where in it the k-th four values of a thread lie (column), and in which
// order (ordered). What it reads comes with the first digit, into shared memory that nothing else
// uses then: a block has few warps to wait with. A thread reads only what it has fetched itself.
// Sums are R^-1 times the result until the end.
#pragma once

#include "backends/cuda/poly/device/permutation.cuh"
#include "backends/cuda/poly/device/row_source.cuh"
#include "ring/ring.h"

namespace crenel::backend::cuda {

/// Where a thread of key_switch_rows works, and where what it fetches lands: four values at
/// keys + k step, rows + at(k), tile + row_slot(at(k)).
template <u32 Bits>
struct SwitchWork {
  PrimeConstants prime;
  u32 log_n, batch;
  u32 limb;  ///< of the output
  RowPlace<Bits> place;
  u32* keys;  ///< of the second digit
  u32 step;
  u32* rows;  ///< free where the first digit is an own one
  u32* tile;

  __device__ __forceinline__ u32* in_tile(u32 k) const { return tile + row_slot(place.at(k)); }
  /// Of a component of this limb and batch entry.
  template <class Word>
  __device__ __forceinline__ Word* row(const Poly<Word>& p, u32 component) const {
    return p.limb(batch, component, limb, log_n) + place.start;
  }
};

__device__ __forceinline__ uint4 add4(uint4 x, uint4 y, u32 q) {
  return make_uint4(add_mod(x.x, y.x, q), add_mod(x.y, y.y, q), add_mod(x.z, y.z, q),
                    add_mod(x.w, y.w, q));
}
/// R^-1 x f
__device__ __forceinline__ uint4 scaled4(uint4 x, u32 f, u32 q, u32 q_inv) {
  return make_uint4(mont_mul(x.x, f, q, q_inv), mont_mul(x.y, f, q, q_inv),
                    mont_mul(x.z, f, q, q_inv), mont_mul(x.w, f, q, q_inv));
}
/// R^-1 x
__device__ __forceinline__ uint4 reduced4(uint4 x, u32 q, u32 q_inv) {
  return make_uint4(mont_reduce(x.x, q, q_inv), mont_reduce(x.y, q, q_inv),
                    mont_reduce(x.z, q, q_inv), mont_reduce(x.w, q, q_inv));
}

/// Sums that belong where they are made.
struct StraightRows {
  template <u32 Bits>
  __device__ __forceinline__ void store(const Poly<u32>& out, const SwitchWork<Bits>& work, u32 c,
                                        u32 k, uint4 v) const {
    store4(work.row(out, c) + work.place.at(k), v);
  }
  template <u32 Bits>
  __device__ __forceinline__ u32 row(const SwitchWork<Bits>& work) const {
    return work.place.row;
  }
  template <u32 Bits>
  __device__ __forceinline__ u32 column(const SwitchWork<Bits>& work, u32 k) const {
    return work.place.at(k);
  }
  template <u32 Bits>
  __device__ __forceinline__ uint4 ordered(const SwitchWork<Bits>&, u32, uint4 v) const {
    return v;
  }
};

struct PlainSwitch : StraightRows {
  static constexpr bool kPlain = true, kProduct = false;
};

/// Four values of the sums belong to an aligned block of four of the output, and neighbouring
/// threads to neighbouring parts of an aligned block: whole sectors are read and written. A thread
/// reads the words that it writes itself.
struct TurnedSwitch {
  static constexpr bool kPlain = false, kProduct = false;
  struct Early {};
  u32 element;
  u32 inverse;  ///< element^-1 mod 2N
  u32 adds;     ///< to what is there

  template <u32 Bits>
  __device__ __forceinline__ u32 target(const SwitchWork<Bits>& work, u32 k) const {
    return ring::galois_eval_source(work.place.start + work.place.at(k), inverse, work.log_n);
  }
  template <u32 Bits>
  __device__ __forceinline__ Early fetch(const Poly<u32>& out, const SwitchWork<Bits>& work) const {
    if (adds == 0) return {};
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const u32 to = target(work, k) & ~3u;
      const u32* from = out.limb(work.batch, 0, work.limb, work.log_n) + to;
      copy_async<16>(work.keys + k * work.step, from);
      copy_async<16>(work.in_tile(k), from + out.component_stride);
    }
    return {};
  }
  template <u32 Bits>
  __device__ __forceinline__ void begin(uint4 (&acc)[2][4], const Early&,
                                        const SwitchWork<Bits>& work) const {
    if (adds == 0) return;
    const u32 q = work.prime.q, q_inv = work.prime.q_inv;
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const u32 to = target(work, k);
      const uint4 v0 = load4(work.keys + k * work.step), v1 = load4(work.in_tile(k));
      acc[0][k] = add4(acc[0][k], reduced4(permuted(v0, to, inverse), q, q_inv), q);
      acc[1][k] = add4(acc[1][k], reduced4(permuted(v1, to, inverse), q, q_inv), q);
    }
  }
  template <u32 Bits>
  __device__ __forceinline__ void store(const Poly<u32>& out, const SwitchWork<Bits>& work, u32 c,
                                        u32 k, uint4 v) const {
    const u32 to = target(work, k) & ~3u;
    const u32 from = ring::galois_eval_source(to, element, work.log_n);
    store_whole(out.limb(work.batch, c, work.limb, work.log_n) + to, permuted(v, from, element));
  }
  // A row of the sums is one of the result: a class of exponents goes to a class.
  template <u32 Bits>
  __device__ __forceinline__ u32 row(const SwitchWork<Bits>& work) const {
    return target(work, 0) >> Bits;
  }
  template <u32 Bits>
  __device__ __forceinline__ u32 column(const SwitchWork<Bits>& work, u32 k) const {
    return target(work, k) & ((1u << Bits) - 4);
  }
  template <u32 Bits>
  __device__ __forceinline__ uint4 ordered(const SwitchWork<Bits>& work, u32 k, uint4 v) const {
    const u32 to = target(work, k) & ~3u;
    return permuted(v, ring::galois_eval_source(to, element, work.log_n), element);
  }
};

/// With d = s tensor(x, y) + (constant, 0, 0): P (d_0, d_1) is added, and the digits are those of
/// d_2 + z f (ProductRows), of which a limb's own, the first here, is made in the tile. Square: y
/// is x, and there is no z.
template <bool Square>
struct ProductSwitch : StraightRows {
  static constexpr bool kPlain = false, kProduct = true;
  /// What has no room in shared memory.
  struct Early {
    uint4 y1[4], z[4];
  };
  Poly<const u32> x, y;        ///< two components
  Poly<const u32> z;           ///< one component; data null: none
  u32 limbs;                   ///< of x, y and z
  u32 doubled;                 ///< s is 2
  u32 lift[rns::kMaxLimbs];    ///< s P R
  u32 factor[rns::kMaxLimbs];  ///< f R
  u32 low[rns::kMaxLimbs];     ///< P times the constant of the first half of the points
  u32 high[rns::kMaxLimbs];    ///< of the second half

  template <u32 Bits>
  __device__ __forceinline__ Early fetch(const Poly<u32>&, const SwitchWork<Bits>& work) const {
    Early early;
    if (work.limb >= limbs) return early;
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      copy_async<16>(work.keys + k * work.step, work.row(x, 0) + work.place.at(k));
      copy_async<16>(work.in_tile(k), work.row(x, 1) + work.place.at(k));
      if constexpr (!Square)
        copy_async<16>(work.rows + work.place.at(k), work.row(y, 0) + work.place.at(k));
    }
    if constexpr (!Square) {
#pragma unroll
      for (u32 k = 0; k < 4; ++k) early.y1[k] = load4(work.row(y, 1) + work.place.at(k));
      if (z.data != nullptr)
#pragma unroll
        for (u32 k = 0; k < 4; ++k) early.z[k] = load4(work.row(z, 0) + work.place.at(k));
    }
    return early;
  }
  template <u32 Bits>
  __device__ __forceinline__ void begin(uint4 (&acc)[2][4], const Early& early,
                                        const SwitchWork<Bits>& work) const {
    if (work.limb >= limbs) return;
    const u32 q = work.prime.q, q_inv = work.prime.q_inv, f = lift[work.limb];
    const ProductScale m = {q, q_inv, product_scale(work.prime, doubled != 0), factor[work.limb]};
    // A row lies in one half of the points.
    const bool second = work.place.start >> (work.log_n - 1) != 0;
    const u32 constant = mont_reduce((second ? high : low)[work.limb], q, q_inv);
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const uint4 x0 = load4(work.keys + k * work.step), x1 = load4(work.in_tile(k));
      const uint4 y0 = Square ? x0 : load4(work.rows + work.place.at(k));
      const uint4 y1 = Square ? x1 : early.y1[k];
      uint4 d0, d1, d2 = product(x1, y1, m);
      const auto one = [&](u32 x0, u32 x1, u32 y0, u32 y1, u32& d0, u32& d1) {
        x0 = mont_mul(x0, f, q, q_inv);
        d0 = add_mod(mont_mul(x0, y0, q, q_inv), constant, q);
        if constexpr (Square) {
          d1 = mont_mul(x0, y1, q, q_inv);
          d1 = add_mod(d1, d1, q);
        } else {
          x1 = mont_mul(x1, f, q, q_inv);
          d1 = mont_reduce(mad_wide(x1, y0, u64(x0) * y1), q, q_inv);
        }
      };
      one(x0.x, x1.x, y0.x, y1.x, d0.x, d1.x);
      one(x0.y, x1.y, y0.y, y1.y, d0.y, d1.y);
      one(x0.z, x1.z, y0.z, y1.z, d0.z, d1.z);
      one(x0.w, x1.w, y0.w, y1.w, d0.w, d1.w);
      acc[0][k] = add4(acc[0][k], d0, q);
      acc[1][k] = add4(acc[1][k], d1, q);
      if constexpr (!Square)
        if (z.data != nullptr) d2 = add_scaled(d2, early.z[k], m);
      store4(work.in_tile(k), d2);
    }
  }
};

}  // namespace crenel::backend::cuda
