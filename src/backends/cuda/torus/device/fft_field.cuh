// Complex points of the double-precision transform. The operations are those that
// device/torus/kernels.h fixes: every rounding is an explicit intrinsic, nothing is contracted.
#pragma once

#include "backends/cuda/torus/device/rotate_args.cuh"

namespace crenel::backend::cuda::torus {

__device__ __forceinline__ double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }
inline constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer

/// Exact conversions by bits: the conversion instruction runs at a quarter of the rate.
/// shifted = x + 2^31.
__device__ __forceinline__ double shifted_to_double(u32 shifted) {
  return __dadd_rn(__hiloint2double(0x43300000, static_cast<i32>(shifted)),
                   -4503601774854144.0);  // 2^52 + 2^31
}
__device__ __forceinline__ double to_double(i32 x) {
  return shifted_to_double(static_cast<u32>(x) + 0x80000000u);
}
__device__ __forceinline__ double to_double(i64 x) { return __ll2double_rn(x); }

/// Operand d of accumulator words as a double, what depends on d prepared: bits of the word plus
/// `carry`, all from `shift` on or a residue.
template <class Rules>
struct Cut {
  using Acc = typename Rules::Acc;
  Acc carry;
  u32 shift, mask, bias;

  __device__ __forceinline__ Cut(const RotateArgs& args, u32 d)
      : carry(static_cast<Acc>(args.carry)), shift(args.base_log * args.digits) {
    u32 residue = 0;  // its modulus, a power of two; 0: all bits
    if (Rules::Pieces == 1) {
      if (d + 1 != args.digits) shift = args.base_log * (d + 1), residue = 1u << args.base_log;
    } else {
      carry += Acc(1) << (shift + args.piece_log - 1);
      if (d == 0)
        residue = 1u << args.piece_log;
      else
        shift += args.piece_log;
    }
    mask = residue - 1;
    bias = 0x80000000u - residue / 2;
  }
  __device__ __forceinline__ double operator()(Acc c) const {
    return shifted_to_double((static_cast<u32>((c + carry) >> shift) & mask) + bias);
  }
};

/// Operands that no such cut gives: whole words, wide digits, pieces of several digits.
template <class Rules>
struct WholeCut {
  const Rules& rules;
  u32 d;
  __device__ __forceinline__ double operator()(typename Rules::Acc c) const {
    return to_double(rules.operand(c, d));
  }
};

/// Arithmetic of the transform alone, twiddles in pass order.
struct FftPoints {
  static constexpr bool kEvenOnly = true;  // odd nodes have i times the twiddle of the even ones
  using Element = double2;
  using Twiddle = double2;
  const double2* twiddles;
  const RotateArgs& args;

  /// The twiddle of an odd node from that of its even neighbour.
  static __device__ __forceinline__ double2 turned(double2 w, bool odd) {
    return odd ? make_double2(-w.y, w.x) : w;
  }
  /// The inverse uses the same ones, conjugated in its butterfly.
  template <bool Forward>
  __device__ __forceinline__ double2 twiddle(u32 i) const {
    return twiddles[i];
  }
  template <bool Forward>
  __device__ __forceinline__ double2 first_twiddle(u32 slot) const {
    return args.first[slot];
  }
  __device__ __forceinline__ void forward(double2& lo, double2& hi, double2 w) const {
    const double x = fma_rn(-w.y, hi.y, fma_rn(w.x, hi.x, lo.x));
    const double y = fma_rn(w.y, hi.x, fma_rn(w.x, hi.y, lo.y));
    hi = make_double2(fma_rn(2.0, lo.x, -x), fma_rn(2.0, lo.y, -y));
    lo = make_double2(x, y);
  }
  __device__ __forceinline__ void inverse(double2& lo, double2& hi, double2 w) const {
    const double x = __dsub_rn(lo.x, hi.x), y = __dsub_rn(lo.y, hi.y);
    lo = make_double2(__dadd_rn(lo.x, hi.x), __dadd_rn(lo.y, hi.y));
    hi = make_double2(fma_rn(w.y, y, __dmul_rn(w.x, x)), fma_rn(-w.y, x, __dmul_rn(w.x, y)));
  }
};

/// LP: log2 of the points, 0: of run time.
template <class Rules, u32 LP = 0>
struct FftField : FftPoints {
  static constexpr u32 kHalves = 1;  ///< log2 of the coefficients a point
  using Acc = typename Rules::Acc;
  /// Products with the sum and the difference of the two keys.
  struct Sum {
    double2 a, b;
  };
  using Key = double2;

  Rules rules;
  const double* cosines;

  /// Bytes of the tables in shared memory.
  static u64 table_bytes(u32 log_n, u32 twiddle_count) {
    return u64(twiddle_count) * sizeof(double2) +
           (padded(1u << (log_n - 1), log_n) + 1) * sizeof(double);
  }
  __device__ __forceinline__ FftField(const RotateArgs& args, u8* tables)
      : FftPoints{reinterpret_cast<const double2*>(tables), args}, rules{args} {
    auto* to = reinterpret_cast<double2*>(tables);
    for (u32 i = threadIdx.x; i < args.twiddle_count; i += blockDim.x) to[i] = args.twiddles[i];
    auto* c = reinterpret_cast<double*>(to + args.twiddle_count);
    const u32 quarter = 1u << (args.log_n - 1);
    for (u32 i = threadIdx.x; i <= quarter; i += blockDim.x)
      c[padded(i, args.log_n)] = args.cosines[i];
    cosines = c;
  }

  /// What gives the points of a polynomial of the accumulator, operand d.
  __device__ __forceinline__ auto points_of(const Acc* poly, u32 d) const {
    const auto cut = [&] {
      if constexpr (Rules::Raising || sizeof(typename Rules::Operand) == 8)
        return WholeCut<Rules>{rules, d};
      else
        return Cut<Rules>(rules.args, d);
    }();
    const u32 half = 1u << (log_n() - 1);
    return [=](u32 e) { return make_double2(cut(poly[e]), cut(poly[e + half])); };
  }
  /// Adds points of the inverse transform to a polynomial of the accumulator, or puts them there.
  template <bool Replace = false, u32 Count>
  __device__ __forceinline__ void store(Acc* poly, u32 base, u32 stride,
                                        const double2 (&z)[Count]) const {
    const auto add = [&](auto rounded) {
      const u32 half = 1u << (log_n() - 1);
#pragma unroll
      for (u32 j = 0; j < Count; ++j) {
        Acc* const word = poly + base + j * stride;
        word[0] = rules.add(Replace ? Acc(0) : word[0], rounded(z[j].x));
        word[half] = rules.add(Replace ? Acc(0) : word[half], rounded(z[j].y));
      }
    };
    if (Rules::Raising && !rules.args.reduces)
      add([&](double x) { return integer(fma_rn(x, rules.args.scale, kMagic)); });
    else
      add([&](double x) { return reduced(x); });
  }

  static __device__ __forceinline__ Sum zero() { return {{0.0, 0.0}, {0.0, 0.0}}; }
  template <bool Ternary>
  __device__ __forceinline__ void multiply(Sum& s, double2 in, double2 p, double2 d) const {
    s.a.x = fma_rn(-in.y, p.y, fma_rn(in.x, p.x, s.a.x));
    s.a.y = fma_rn(in.y, p.x, fma_rn(in.x, p.y, s.a.y));
    if constexpr (Ternary) {
      s.b.x = fma_rn(-in.y, d.y, fma_rn(in.x, d.x, s.b.x));
      s.b.y = fma_rn(in.y, d.x, fma_rn(in.x, d.y, s.b.y));
    }
  }
  /// Exponent of the root that point f evaluates at, 1 mod 4.
  __device__ __forceinline__ u32 exponent_of(u32 f) const {
    return (__brev(f) >> (33 - log_n())) * 4 + 1;
  }
  /// X^e at the root with this exponent.
  __device__ __forceinline__ double2 root(u32 e, u32 exponent) const {
    const u32 n = 1u << log_n(), j = e * exponent;
    const u32 f = j & (n - 1), near = min(f, n - f);
    return make_double2(quadrant(near, j + n / 2), quadrant(n / 2 - near, j));
  }
  /// (X^e - 1) and (X^-e - 1) applied to the sums at the root with this exponent.
  template <bool Ternary>
  __device__ __forceinline__ double2 finish(const Sum& s, u32 e, u32 exponent) const {
    const u32 n = 1u << log_n(), j = e * exponent;
    // The angle in the first half turn, from its nearer end.
    const u32 f = j & (n - 1), near = min(f, n - f);
    const double u = __dadd_rn(quadrant(near, j + n / 2), -1.0);
    const double v = quadrant(n / 2 - near, j);  // the sine
    const double2 b = Ternary ? s.b : s.a;
    return make_double2(fma_rn(u, s.a.x, -__dmul_rn(v, b.y)), fma_rn(u, s.a.y, __dmul_rn(v, b.x)));
  }

 private:
  __device__ __forceinline__ u32 log_n() const { return LP != 0 ? LP + 1 : rules.args.log_n; }
  /// Where cosine i lies. Lanes look at multiples of N/16 from each other, as their points are in
  /// bit-reversed order: unpadded, all of these share a bank.
  static __host__ __device__ __forceinline__ u32 padded(u32 i, u32 log_n) {
    return i + (i >> (log_n < 5 ? 0 : log_n - 4));
  }
  /// cos(pi i / N), i <= N/2, negative where bit N of `sign` is set.
  __device__ __forceinline__ double quadrant(u32 i, u32 sign) const {
    const double value = cosines[padded(i, log_n())];
    const u32 flip = sign << (31 - log_n()) & 0x80000000u;
    return __hiloint2double(__double2hiint(value) ^ static_cast<i32>(flip), __double2loint(value));
  }
  /// The integer x, where x + 1.5 * 2^52 = `shifted` was rounded (truncated where halves remain).
  static __device__ __forceinline__ Acc integer(double shifted) {
    if constexpr (Rules::Wide)
      return static_cast<Acc>(__double2ll_rz(__dsub_rn(shifted, kMagic)));
    else if constexpr (sizeof(Acc) == 4)
      return __double2loint(shifted);
    else
      return __double_as_longlong(shifted) - __double_as_longlong(kMagic);
  }
  __device__ __forceinline__ Acc reduced(double z) const {
    const double v = __dmul_rn(z, rules.args.scale);
    const double t = __dsub_rn(fma_rn(v, rules.args.q_inverse, kMagic), kMagic);
    return integer(__dadd_rn(fma_rn(-t, rules.args.q, v), kMagic));
  }
};

}  // namespace crenel::backend::cuda::torus
