// The executable specification: every primitive by its definition, with the simplest arithmetic
// (the remainder of a double word), one thread, no tables beyond the primes. Slow on purpose. It
// uses none of the fast reductions of math/, and the default compositions for every fused
// operation.
#pragma once

#include "device/backend.h"

namespace crenel::backend::ref {

using device::LimbScalars;
using device::Prepared;
using device::Stream;
using ring::Domain;
using ring::PolyView;

class RefPolyKernels final : public device::PolyKernels {
 public:
  using PolyKernels::PolyKernels;

 private:
  void do_add(Stream& stream, View out, ConstView a, ConstView b) override;
  void do_sub(Stream& stream, View out, ConstView a, ConstView b) override;
  void do_neg(Stream& stream, View out, ConstView a) override;
  void do_mul(Stream& stream, View out, ConstView a, ConstView b) override;
  void do_mul_add(Stream& stream, View out, ConstView a, ConstView b) override;
  void do_mul_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;
  void do_mul_add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;
  void do_add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;

  void do_ntt(Stream& stream, View out, ConstView in) override;
  void do_intt(Stream& stream, View out, ConstView in) override;
  void do_automorphism(Stream& stream, View out, ConstView in, u64 element) override;

  void do_base_convert(Stream& stream, View out, ConstView in,
                       const Prepared<rns::BaseConversion>& table) override;
  void do_reduce_signed(Stream& stream, View out, const i64* values) override;
  void do_lift_signed(Stream& stream, i64* values, ConstView in) override;

  void do_sample_uniform(Stream& stream, View out, const random::Seed& seed,
                         random::Nonce nonce) override;
  void do_sample_ternary(Stream& stream, View out, const random::Seed& seed,
                         random::Nonce nonce) override;
  void do_sample_error(Stream& stream, View out, const random::Seed& seed,
                       random::Nonce nonce) override;

  u32 prime(const ring::LimbSet& limbs, u32 l) const { return ring().modulus(limbs[l]).q; }
};

/// a b mod q.
inline u32 times(u32 a, u32 b, u32 q) { return static_cast<u32>(static_cast<u64>(a) * b % q); }

/// a + b mod q.
inline u32 plus(u32 a, u32 b, u32 q) { return static_cast<u32>((static_cast<u64>(a) + b) % q); }

/// x mod q in [0, q), x of any sign.
inline u32 residue(i128 x, u32 q) {
  const i128 r = x % static_cast<i128>(q);
  return static_cast<u32>(r < 0 ? r + static_cast<i128>(q) : r);
}

}  // namespace crenel::backend::ref
