// Residues modulo one or two primes below 2^28: the exact transform. Between stages words are lazy,
// forward below 4q, inverse at most 2q. Keys are in Montgomery form: K0 + K1 and K0 - K1, as in the
// double-precision transform.
#pragma once

#include "backends/cuda/torus/device/rotate_args.cuh"

namespace crenel::backend::cuda::torus {

/// x w mod q in [0, 2q), any word x.
__device__ __forceinline__ u32 shoup_lazy(u32 x, Pair w, u32 q) {
  return x * w.value - mul_hi_wide(x, w.quotient) * q;
}
/// [0, 2m) to [0, m).
__device__ __forceinline__ u32 below(u32 x, u32 m) { return __viaddmin_u32(x, 0u - m, x); }

template <u32 L>
struct alignas(4 * L) Residues {
  u32 at[L];
};

/// Arithmetic of the transform alone.
template <u32 L>
struct NttPoints {
  static constexpr bool kEvenOnly = false;
  using Element = Residues<L>;
  struct Twiddle {
    Pair at[L];
  };
  const RotateArgs& args;

  static __device__ __forceinline__ Twiddle turned(const Twiddle& w, bool) { return w; }
  template <bool Forward>
  __device__ __forceinline__ Twiddle twiddle(u32 i) const {
    Twiddle w;
#pragma unroll
    for (u32 l = 0; l < L; ++l) {
      const Pair* const table = Forward ? args.forward[l] : args.inverse[l];
      const uint2 pair = __ldg(reinterpret_cast<const uint2*>(table) + i);
      w.at[l] = {pair.x, pair.y};
    }
    return w;
  }
  template <bool Forward>
  __device__ __forceinline__ Twiddle first_twiddle(u32 slot) const {
    Twiddle w;
#pragma unroll
    for (u32 l = 0; l < L; ++l)
      w.at[l] = Forward ? args.first_forward[l][slot] : args.first_inverse[l][slot];
    return w;
  }
  __device__ __forceinline__ void forward(Element& lo, Element& hi, const Twiddle& w) const {
#pragma unroll
    for (u32 l = 0; l < L; ++l) {
      const u32 q = args.prime[l].q;
      const u32 a = below(lo.at[l], 2 * q), t = shoup_lazy(hi.at[l], w.at[l], q);
      lo.at[l] = a + t;
      hi.at[l] = a - t + 2 * q;
    }
  }
  __device__ __forceinline__ void inverse(Element& lo, Element& hi, const Twiddle& w) const {
#pragma unroll
    for (u32 l = 0; l < L; ++l) {
      const u32 q = args.prime[l].q;
      const u32 d = lo.at[l] - hi.at[l] + 2 * q;
      lo.at[l] = below(lo.at[l] + hi.at[l], 2 * q);
      hi.at[l] = shoup_lazy(d, w.at[l], q);
    }
  }
};

template <class Rules, u32 L>
struct NttField : NttPoints<L> {
  static constexpr u32 kHalves = 0;  ///< log2 of the coefficients a point
  using Base = NttPoints<L>;
  using Base::args;
  using Acc = typename Rules::Acc;
  using Element = Residues<L>;
  using Key = Residues<L>;
  struct Sum {
    u64 a[L], b[L];
  };
  Rules rules;

  static u64 table_bytes(u32, u32) { return 0; }
  __device__ __forceinline__ NttField(const RotateArgs& a, u8*) : Base{a}, rules{a} {}

  /// What gives the points of a polynomial of the accumulator, operand d.
  __device__ __forceinline__ auto points_of(const Acc* poly, u32 d) const {
    return [=, this](u32 e) {
      const auto x = rules.operand(poly[e], d);
      Element v;
#pragma unroll
      for (u32 l = 0; l < L; ++l) {
        const u32 q = args.prime[l].q;
        // Narrow operands are below the primes (host/instances.cu).
        const auto r = sizeof(x) == 8 ? x % static_cast<decltype(x)>(q) : x;
        v.at[l] = static_cast<u32>(r) + (r < 0 ? q : 0u);
      }
      return v;
    };
  }
  /// Adds points of the inverse transform to a polynomial of the accumulator.
  template <u32 Count>
  __device__ __forceinline__ void store(Acc* poly, u32 base, u32 stride,
                                        const Element (&z)[Count]) const {
#pragma unroll
    for (u32 j = 0; j < Count; ++j) add(poly[base + j * stride], z[j]);
  }

  static __device__ __forceinline__ Sum zero() { return {}; }
  template <bool Ternary>
  __device__ __forceinline__ void multiply(Sum& s, const Element& in, const Key& k0,
                                           const Key& k1) const {
#pragma unroll
    for (u32 l = 0; l < L; ++l) {
      const u32 x = below(in.at[l], 2 * args.prime[l].q);
      s.a[l] = mad_wide(x, k0.at[l], s.a[l]);
      if constexpr (Ternary) s.b[l] = mad_wide(x, k1.at[l], s.b[l]);
    }
  }
  __device__ __forceinline__ u32 exponent_of(u32 f) const {
    return (__brev(f) >> (32 - args.log_points)) * 2 + 1;
  }
  /// (psi^j - 1) s0 + (psi^-j - 1) s1 = c (s0 + s1) + s (s0 - s1) - (s0 + s1), at most 2q.
  template <bool Ternary>
  __device__ __forceinline__ Element finish(Sum s, u32 e, u32 exponent) const {
    const u32 n = 1u << args.log_n, j = e * exponent & (2 * n - 1);
    const Residues<2 * L> turn = turn_of(__brev(j & (n - 1)) >> (32 - args.log_n));
    if (args.folds) {
#pragma unroll
      for (u32 l = 0; l < L; ++l) {
        s.a[l] = fold(s.a[l], args.prime[l].r);
        if constexpr (Ternary) s.b[l] = fold(s.b[l], args.prime[l].r);
      }
    }
    Element z;
#pragma unroll
    for (u32 l = 0; l < L; ++l) {
      const u32 q = args.prime[l].q, q_inv = args.prime[l].q_inv;
      const u32 x = mont_reduce(s.a[l], q, q_inv);
      u64 product = u64(x) * turn.at[2 * l];  // both products are below q^2 < q 2^31
      if constexpr (Ternary)
        product = mad_wide(mont_reduce(s.b[l], q, q_inv), turn.at[2 * l + 1], product);
      const u32 t = mont_reduce(product, q, q_inv);
      z.at[l] = (j & n ? q - t : t) + (q - x);  // psi^N = -1
    }
    return z;
  }

 private:
  __device__ __forceinline__ void add(Acc& word, const Element& z) const {
    u32 y[L];
#pragma unroll
    for (u32 l = 0; l < L; ++l) {
      const TorusPrime& p = args.prime[l];
      y[l] = below(shoup_lazy(z.at[l], p.scale, p.q), p.q);
    }
    u64 x = y[0];
    if constexpr (L == 2) {
      x = u64(y[0]) * args.prime[1].q + u64(y[1]) * args.prime[0].q;
      if (x >= args.key_modulus) x -= args.key_modulus;
    }
    word = rules.add(word, delta(x));
  }
  __device__ __forceinline__ Residues<2 * L> turn_of(u32 entry) const {
    if constexpr (L == 1) {
      const uint2 t = __ldg(reinterpret_cast<const uint2*>(args.turns) + entry);
      return {{t.x, t.y}};
    } else {
      const uint4 t = __ldg(reinterpret_cast<const uint4*>(args.turns) + entry);
      return {{t.x, t.y, t.z, t.w}};
    }
  }
  /// What is added to the accumulator, from the sum modulo the key's modulus.
  __device__ __forceinline__ Acc delta(u64 x) const {
    if constexpr (!Rules::Raising) {
      return static_cast<Acc>(x);
    } else {
      // round(Q x / T): the double estimate is off by little, the remainder (modulo 2^64) tells.
      i64 y = __double2ll_rn(static_cast<double>(x) * args.key_ratio);
      const i64 t = static_cast<i64>(args.key_modulus), half = t / 2;
      i64 rest = static_cast<i64>((x << args.log_modulus) - static_cast<u64>(y) * args.key_modulus);
      for (; rest > half; rest -= t) ++y;
      for (; rest < -half; rest += t) --y;
      return static_cast<Acc>(y);
    }
  }
};

}  // namespace crenel::backend::cuda::torus
