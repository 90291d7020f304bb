// What key_switch_rows does besides: nothing; an automorphism of the result, which may be added to
// what is there; or the product of two ciphertexts, whose components are never stored.
//
// A form says what the sums begin with besides the addend (begin), and where the result goes
// (store). Sums are R^-1 times the result until the end.
#pragma once

#include "backends/cuda/poly/device/permutation.cuh"
#include "backends/cuda/poly/device/row_source.cuh"
#include "ring/ring.h"

namespace crenel::backend::cuda {

/// Where a block of key_switch_rows works.
struct SwitchPlace {
  const PrimeConstants* prime;
  u32 log_n, batch;
  u32 limb;   ///< of the output
  u32 start;  ///< of the row
};

__device__ __forceinline__ uint4 add4(uint4 x, uint4 y, u32 q) {
  return make_uint4(add_mod(x.x, y.x, q), add_mod(x.y, y.y, q), add_mod(x.z, y.z, q),
                    add_mod(x.w, y.w, q));
}
/// R^-1 x
__device__ __forceinline__ uint4 reduced4(uint4 x, u32 q, u32 q_inv) {
  return make_uint4(mont_reduce(x.x, q, q_inv), mont_reduce(x.y, q, q_inv),
                    mont_reduce(x.z, q, q_inv), mont_reduce(x.w, q, q_inv));
}

struct PlainSwitch {
  static constexpr bool kProduct = false;
  __device__ __forceinline__ void begin(uint4 (&)[2], const Poly<u32>&, const SwitchPlace&, u32,
                                        u32*) const {}
  __device__ __forceinline__ void store(const Poly<u32>& out, const SwitchPlace& place, u32 c,
                                        u32 k, uint4 v) const {
    store4(out.limb(place.batch, c, place.limb, place.log_n) + place.start + k, v);
  }
};

/// Four values of the sums belong to an aligned block of four of the output, and neighbouring
/// threads to neighbouring parts of an aligned block: whole sectors are read and written. A thread
/// reads the words that it writes itself.
struct TurnedSwitch {
  static constexpr bool kProduct = false;
  u32 element;
  u32 inverse;  ///< element^-1 mod 2N
  u32 adds;     ///< to what is there

  __device__ __forceinline__ void begin(uint4 (&acc)[2], const Poly<u32>& out,
                                        const SwitchPlace& place, u32 k, u32*) const {
    if (adds == 0) return;
    const u32 q = place.prime->q, q_inv = place.prime->q_inv;
    const u32 to = ring::galois_eval_source(place.start + k, inverse, place.log_n);
#pragma unroll
    for (u32 c = 0; c < 2; ++c) {
      const uint4 v = load4(out.limb(place.batch, c, place.limb, place.log_n) + (to & ~3u));
      acc[c] = add4(acc[c], reduced4(permuted(v, to, inverse), q, q_inv), q);
    }
  }
  __device__ __forceinline__ void store(const Poly<u32>& out, const SwitchPlace& place, u32 c,
                                        u32 k, uint4 v) const {
    const u32 to = ring::galois_eval_source(place.start + k, inverse, place.log_n) & ~3u;
    const u32 from = ring::galois_eval_source(to, element, place.log_n);
    store4(out.limb(place.batch, c, place.limb, place.log_n) + to, permuted(v, from, element));
  }
};

/// With d = s tensor(x, y) + (constant, 0, 0): P (d_0, d_1) is added, and the digits are those of
/// d_2 + z f (ProductRows), of which a limb's own is made here, in `own`. Square: y is x, and there
/// is no z.
template <bool Square>
struct ProductSwitch {
  static constexpr bool kProduct = true;
  Poly<const u32> x, y;        ///< two components
  Poly<const u32> z;           ///< one component; data null: none
  u32 limbs;                   ///< of x, y and z
  u32 doubled;                 ///< s is 2
  u32 lift[rns::kMaxLimbs];    ///< s P R
  u32 factor[rns::kMaxLimbs];  ///< f R
  u32 low[rns::kMaxLimbs];     ///< P times the constant of the first half of the points
  u32 high[rns::kMaxLimbs];    ///< of the second half

  __device__ __forceinline__ void begin(uint4 (&acc)[2], const Poly<u32>&, const SwitchPlace& place,
                                        u32 k, u32* own) const {
    if (place.limb >= limbs) return;
    const u32 q = place.prime->q, q_inv = place.prime->q_inv, f = lift[place.limb];
    const u32 b = place.batch, l = place.limb, log_n = place.log_n, at = place.start + k;
    const uint4 x0 = load4(x.limb(b, 0, l, log_n) + at), x1 = load4(x.limb(b, 1, l, log_n) + at);
    uint4 y0 = x0, y1 = x1;
    if constexpr (!Square) {
      y0 = load4(y.limb(b, 0, l, log_n) + at);
      y1 = load4(y.limb(b, 1, l, log_n) + at);
    }
    const u32 constant = mont_reduce((at >> (log_n - 1) ? high : low)[l], q, q_inv);
    uint4 d0, d1;
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
    acc[0] = add4(acc[0], d0, q);
    acc[1] = add4(acc[1], d1, q);
    const ProductScale m = {q, q_inv, product_scale(*place.prime, doubled != 0), factor[l]};
    uint4 d2 = product(x1, y1, m);
    if constexpr (!Square)
      if (z.data != nullptr) d2 = add_scaled(d2, load4(z.limb(b, 0, l, log_n) + at), m);
    store4(own, d2);
  }
  __device__ __forceinline__ void store(const Poly<u32>& out, const SwitchPlace& place, u32 c,
                                        u32 k, uint4 v) const {
    store4(out.limb(place.batch, c, place.limb, place.log_n) + place.start + k, v);
  }
};

}  // namespace crenel::backend::cuda
