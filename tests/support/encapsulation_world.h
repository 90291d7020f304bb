// A ring of a toy bootstrapping set with a secret and encapsulation keys, all from fixed seeds: the
// same words on every device.
#pragma once

#include "ckks/objects.h"
#include "random/samplers.h"
#include "rlwe/encapsulation.h"
#include "support/ckks_world.h"

namespace crenel::test {

/// Of each coefficient of an encryption's error.
inline constexpr double kErrorVariance = random::kErrorPairs / 2.0;

inline random::SecretSource fixed_source(u8 first) {
  random::Seed seed{};
  seed[0] = first;
  return random::SecretSource(seed);
}

inline const std::vector<const char*>& boot_toys() {
  static const std::vector<const char*> names{"toy-boot30", "toy-boot35", "toy-boot40",
                                              "toy-boot45", "toy-boot50", "toy-boot48dr"};
  return names;
}

struct EncapsulationWorld {
  EncapsulationWorld(const std::string& device, const char* params)
      : context(ckks::Params::preset(params, true), device),
        ring(*context.state().ring),
        secret(context.state().ring, fixed_source(1), 0),
        keys(secret.make_encapsulation_keys(rlwe::kEncapsulationWeight)),
        encapsulation(ring) {}

  device::Stream& stream() { return ring.stream(); }
  u64 ring_dim() const { return ring.ring_dim(); }
  u32 top() const { return ring.top_level(); }

  /// q0 as an integer.
  i64 base_modulus() const {
    i64 q0 = 1;
    for (u32 i = 0; i < ring.window(0).size(); ++i) q0 *= ring.modulus(ring.window(0)[i]).q;
    return q0;
  }
  /// `batch` rows of N integers, encrypted at level 0.
  rlwe::Poly encrypt(const std::vector<i64>& message, u32 batch = 1) {
    const device::Buffer staged = stream().allocate(message.size() * sizeof(i64));
    stream().copy_in(staged.data(), message.data(), message.size() * sizeof(i64));
    rlwe::Poly poly(stream(), {ring.log_n(), 1, batch}, ring.window(0), rlwe::Domain::coeff);
    ring.kernels().reduce_signed(stream(), poly.view(), staged.as<const i64>());
    random::Seed seed;
    return secret.encrypt(poly.view(), seed);
  }

  ckks::Context context;
  const rlwe::RingContext& ring;
  rlwe::SecretKey secret;
  rlwe::EncapsulationKeys keys;
  rlwe::Encapsulation encapsulation;
};

/// Centred integers of one polynomial in coefficient form, each below 2^65 in absolute value: from
/// the first limbs, and compared with all the others. Host arithmetic, no code of the library's
/// lift.
inline std::vector<i128> integers_of(const rlwe::RingContext& ring, const rlwe::Poly& poly) {
  const std::vector<u32> words = words_of(poly);
  const u64 n = ring.ring_dim();
  std::vector<i128> values(n);
  for (u64 i = 0; i < n; ++i) {
    i128 x = 0, product = 1;
    u32 used = 0;
    for (; used < poly.limbs().size() && product < (i128(1) << 66); ++used) {  // Garner
      const auto& m = ring.modulus(poly.limbs()[used]);
      const u32 known = static_cast<u32>(x % m.q), wanted = words[used * n + i];
      const u32 inverse = math::inverse_mod<u32>(static_cast<u32>(product % m.q), m);
      x += product * math::mul_mod<u32>(math::sub_mod<u32>(wanted, known, m.q), inverse, m);
      product *= m.q;
    }
    if (x > product / 2) x -= product;
    values[i] = x;
    for (u32 l = used; l < poly.limbs().size(); ++l) {
      const i128 q = ring.modulus(poly.limbs()[l]).q;
      if (((x % q) + q) % q != words[l * n + i]) {
        ADD_FAILURE() << "coefficient " << i << " is no integer below 2^65: limb " << l;
        return values;
      }
    }
  }
  return values;
}

}  // namespace crenel::test
