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

template <class W>
class RefKernels final : public device::Kernels<W> {
 public:
  using Base = device::Kernels<W>;
  using View = typename Base::View;
  using ConstView = typename Base::ConstView;
  using Scalars = typename Base::Scalars;
  using Base::Base;

  void add(Stream& stream, View out, ConstView a, ConstView b) override;
  void sub(Stream& stream, View out, ConstView a, ConstView b) override;
  void neg(Stream& stream, View out, ConstView a) override;
  void mul(Stream& stream, View out, ConstView a, ConstView b) override;
  void mul_add(Stream& stream, View out, ConstView a, ConstView b) override;
  void mul_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;
  void mul_add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;
  void add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;

  void ntt(Stream& stream, View out, ConstView in) override;
  void intt(Stream& stream, View out, ConstView in) override;
  void automorphism(Stream& stream, View out, ConstView in, u64 element) override;

  void base_convert(Stream& stream, View out, ConstView in,
                    const Prepared<rns::BaseConversion<W>>& table) override;
  void reduce_signed(Stream& stream, View out, const i64* values) override;
  void lift_signed(Stream& stream, i64* values, ConstView in) override;

  void sample_uniform(Stream& stream, View out, const random::Seed& seed,
                      random::Nonce nonce) override;
  void sample_ternary(Stream& stream, View out, const random::Seed& seed,
                      random::Nonce nonce) override;
  void sample_error(Stream& stream, View out, const random::Seed& seed,
                    random::Nonce nonce) override;

 private:
  W prime(const ring::LimbSet& limbs, u32 l) const { return this->ring().modulus(limbs[l]).q; }
};

/// a b mod q.
template <class W>
W times(W a, W b, W q) {
  return static_cast<W>(static_cast<math::Wide<W>>(a) * b % q);
}

/// a + b mod q.
template <class W>
W plus(W a, W b, W q) {
  return static_cast<W>((static_cast<math::Wide<W>>(a) + b) % q);
}

/// x mod q in [0, q), x of any sign.
template <class W>
W residue(i128 x, W q) {
  const i128 r = x % static_cast<i128>(q);
  return static_cast<W>(r < 0 ? r + static_cast<i128>(q) : r);
}

}  // namespace crenel::backend::ref
