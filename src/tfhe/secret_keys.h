// Everything that touches the secret keys. Rules here: no branch and no address depends on a
// secret, secret memory is allocated as such (wiped on release), nothing is printed.
#pragma once

#include <span>

#include "device/poly/kernels.h"
#include "device/torus/kernels.h"
#include "random/seed.h"

namespace crenel::tfhe {

/// `count` values, uniform in {-1, 0, 1} or, binary, in {0, 1}: floor(3 x / 2^64) - 1 of a 64-bit
/// word x of the source (bias below 2^-63), or its top bit. Takes one nonce of Purpose::secret_key.
core::SecretVector<i8> sample_secret(random::SecretSource& source, u64 count, bool binary);

/// The keys of r slots: LWE secrets s_1..s_r of n entries and GLWE secrets S_1..S_r of k
/// polynomials. Host layout [slot][n + kN]: what is exported.
class SecretKeys {
 public:
  /// Fresh keys from `source`, which also gives all randomness of this key's samples.
  SecretKeys(const device::TorusPlan& plan, device::Stream& stream, device::PolyKernels& poly,
             random::SecretSource source);
  /// From `coefficients`, checked: as many as slot_words() times slots, entries -1, 0, 1 (LWE
  /// entries 0, 1 for binary secrets), and in each LWE secret and each polynomial as many of 1 and
  /// -1 as chance gives (random/plausible.h; toys of a few entries may be all 0 by chance). Throws
  /// SerializationError, which states no number of them.
  SecretKeys(const device::TorusPlan& plan, device::Stream& stream, device::PolyKernels& poly,
             random::SecretSource source, std::span<const i8> coefficients);
  SecretKeys(SecretKeys&&) noexcept = default;

  static u64 slot_words(const device::TorusPlan& plan) {
    return u64(plan.lwe_dim) + plan.extracted_dim();
  }
  std::span<const i8> coefficients() const { return host_; }
  i8 lwe(u32 slot, u32 i) const { return host_[slot * slot_words(plan_) + i]; }
  /// Word i of the extracted secret: coefficient i mod N of polynomial i / N.
  i8 extracted(u32 slot, u32 i) const {
    return host_[slot * slot_words(plan_) + plan_.lwe_dim + i];
  }
  /// Device memory, [slot][n].
  const i8* lwe_device() const { return lwe_.as<const i8>(); }
  /// What ciphertexts at rest are under: device memory, [slot][rest_dim].
  const i8* rest_device() const { return (plan_.rests_extracted() ? rest_ : lwe_).as<const i8>(); }
  /// S, evaluation form, batch = slots, components = k; and its negation.
  ring::PolyView<const u32> glwe() const { return view(glwe_); }
  ring::PolyView<const u32> glwe_negated() const { return view(negated_); }
  random::SecretSource& source() { return source_; }

 private:
  void upload(device::Stream& stream, device::PolyKernels& poly);
  ring::PolyView<const u32> view(const device::Buffer& buffer) const;

  device::TorusPlan plan_;
  random::SecretSource source_;
  core::SecretVector<i8> host_;
  device::Buffer lwe_, rest_, glwe_, negated_;
};

}  // namespace crenel::tfhe
