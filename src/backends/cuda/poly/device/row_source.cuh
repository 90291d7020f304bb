// What a pass over rows reads as its input: a polynomial, or the last component of a product of two
// ciphertexts, which is made where it is read and never stored.
#pragma once

#include "backends/cuda/poly/device/transform.cuh"

namespace crenel::backend::cuda {

/// Constants of a limb of s x y + z f.
struct ProductScale {
  u32 q, q_inv;
  u32 scale;   ///< s R^2
  u32 factor;  ///< f R
};

/// s R^2 of a limb, s = 1 or 2.
__device__ __forceinline__ u32 product_scale(const PrimeConstants& m, bool doubled) {
  return doubled ? add_mod(m.r2, m.r2, m.q) : m.r2;
}

/// s x y
__device__ __forceinline__ uint4 product(uint4 x, uint4 y, const ProductScale& m) {
  const auto one = [&](u32 a, u32 b) {
    return mont_mul(mont_mul(a, m.scale, m.q, m.q_inv), b, m.q, m.q_inv);
  };
  return make_uint4(one(x.x, y.x), one(x.y, y.y), one(x.z, y.z), one(x.w, y.w));
}

/// sum + z f
__device__ __forceinline__ uint4 add_scaled(uint4 sum, uint4 z, const ProductScale& m) {
  const auto one = [&](u32 a, u32 b) {
    return add_mod(a, mont_mul(b, m.factor, m.q, m.q_inv), m.q);
  };
  return make_uint4(one(sum.x, z.x), one(sum.y, z.y), one(sum.z, z.z), one(sum.w, z.w));
}

// A source of rows has a Row: load gives a thread's values of it, four each from place.at(k) on.

/// Rows of TransformArgs::in.
struct PlainRows {
  struct Row {
    const u32* from;
    template <u32 Bits>
    __device__ __forceinline__ void load(uint4 (&v)[4], const RowPlace<Bits>& place) const {
#pragma unroll
      for (u32 k = 0; k < 4; ++k) v[k] = load4(from + place.at(k));
    }
  };
  __device__ __forceinline__ Row row(const TransformArgs& args, u32 batch, u32 component, u32 limb,
                                     u32 start) const {
    return {args.in.limb(batch, component, args.in_position.at[limb], args.log_n) + start};
  }
};

/// s in y + z f; all of one component and the same limbs. Square: y is in, read once, and there is
/// no z.
template <bool Square>
struct ProductRows {
  Poly<const u32> y;
  Poly<const u32> z;           ///< data null: none
  u32 doubled;                 ///< s is 2
  u32 factor[rns::kMaxLimbs];  ///< f R, by position in `in`

  struct Row {
    const u32* x;
    const u32* y;
    const u32* z;
    ProductScale m;
    template <u32 Bits>
    __device__ __forceinline__ void load(uint4 (&v)[4], const RowPlace<Bits>& place) const {
      uint4 w[4];
#pragma unroll
      for (u32 k = 0; k < 4; ++k) v[k] = load4(x + place.at(k));
      if constexpr (!Square)
#pragma unroll
        for (u32 k = 0; k < 4; ++k) w[k] = load4(y + place.at(k));
#pragma unroll
      for (u32 k = 0; k < 4; ++k) v[k] = product(v[k], Square ? v[k] : w[k], m);
      if constexpr (!Square)
        if (z != nullptr) {  // all loads, then all sums
#pragma unroll
          for (u32 k = 0; k < 4; ++k) w[k] = load4(z + place.at(k));
#pragma unroll
          for (u32 k = 0; k < 4; ++k) v[k] = add_scaled(v[k], w[k], m);
        }
    }
  };
  __device__ __forceinline__ Row row(const TransformArgs& args, u32 batch, u32, u32 limb,
                                     u32 start) const {
    const PrimeConstants& m = args.primes[args.prime.at[limb]];
    const u32 position = args.in_position.at[limb];
    return {args.in.limb(batch, 0, position, args.log_n) + start,
            y.limb(batch, 0, position, args.log_n) + start,
            z.data == nullptr ? nullptr : z.limb(batch, 0, position, args.log_n) + start,
            {m.q, m.q_inv, product_scale(m, doubled != 0), factor[position]}};
  }
};

}  // namespace crenel::backend::cuda
