// A context whose client has a fixed, printed seed, and exact differences of decryptions.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

#include "ckks/noise.h"
#include "ckks/objects.h"
#include "rns/compose.h"
#include "support/ckks_world.h"

namespace crenel::test::noise {

using namespace ckks::noise;  // the library's own formulas

/// The outcome is a function of this number; another one must pass as well (CRENEL_NOISE_SEED).
inline u64 noise_seed() {
  static const u64 seed = [] {
    const char* wanted = std::getenv("CRENEL_NOISE_SEED");
    const u64 value = wanted ? std::strtoull(wanted, nullptr, 0) : 20260401;
    std::printf("CRENEL_NOISE_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

inline random::Seed seed_bytes(u64 salt) {
  Rng rng(noise_seed() * 1000003 + salt);
  random::Seed seed;
  for (auto& b : seed) b = static_cast<u8>(rng());
  return seed;
}

struct NoiseWorld {
  explicit NoiseWorld(const ckks::Params& params)
      : context(params, "cpu"),
        state(std::make_shared<ckks::Client::State>(ckks::Client::State{
            context, rlwe::SecretKey(context.state().ring, random::SecretSource(seed_bytes(1)),
                                     params.spec().hamming_weight)})),
        client(state),
        ev(context.evaluator(client.evaluation_keys({{1, 2, -3}, true, true}))),
        rng(noise_seed()) {
    for (i8 c : state->secret.export_coefficients()) h += c != 0;
  }

  const ckks::Params& params() const { return context.params(); }
  double n() const { return static_cast<double>(params().ring_dim()); }
  const rlwe::RingContext& ring() const { return *context.state().ring; }
  device::Stream& stream() const { return context.stream(); }

  /// b + a s (+ c s^2), coefficient form.
  rlwe::Poly decrypt(const ckks::Ciphertext& c) const {
    return state->secret.decrypt(c.data().poly.view());
  }
  rlwe::Poly message(const ckks::Plaintext& p) const { return coefficient_form(p.data().poly); }
  rlwe::Poly coefficient_form(const rlwe::Poly& p) const {
    rlwe::Poly out(stream(), p.shape(), p.limbs(), ring::Domain::coeff);
    ring().kernels().intt(stream(), out.view(), p.view());
    return out;
  }
  /// m1 m2 in the ring, coefficient form.
  rlwe::Poly product(const ckks::Plaintext& a, const ckks::Plaintext& b) const {
    const auto& pa = a.data().poly;
    rlwe::Poly out(stream(), pa.shape(), pa.limbs(), ring::Domain::eval);
    ring().kernels().mul(stream(), out.view(), pa.view(), b.data().poly.view());
    return coefficient_form(out);
  }

  /// The centred integers of a polynomial in coefficient form; exact below 2^53.
  std::vector<double> integers(const rlwe::Poly& p) const {
    std::vector<math::Modulus<rlwe::Word>> moduli;
    for (u32 i = 0; i < p.limbs().size(); ++i) moduli.push_back(ring().modulus(p.limbs()[i]));
    const rns::CrtComposer composer(moduli);
    std::vector<rlwe::Word> words(p.words());
    p.stream().copy_out(words.data(), p.data(), p.bytes());
    std::vector<double> out(params().ring_dim());
    for (u64 i = 0; i < out.size(); ++i) out[i] = composer.to_double(&words[i], out.size());
    return out;
  }
  /// Exact even where a and b themselves are large.
  std::vector<double> difference(const rlwe::Poly& a, const rlwe::Poly& b) const {
    rlwe::Poly d(stream(), a.shape(), a.limbs(), ring::Domain::coeff);
    ring().kernels().sub(stream(), d.view(), a.view(), b.view());
    return integers(d);
  }
  std::vector<double> difference(const ckks::Ciphertext& a, const ckks::Ciphertext& b) const {
    return difference(decrypt(a), decrypt(b));
  }

  /// Real parts alone would make conjugate-symmetric, coloured polynomials: full complex slots.
  Values values(double bound = 1.0) { return random_values(rng, params().slots(), bound); }

  ckks::Context context;
  std::shared_ptr<ckks::Client::State> state;
  ckks::Client client;
  ckks::Evaluator ev;
  Rng rng;
  double h = 0.0;  ///< weight of the secret
};

/// N = 2^13 (standard deviations are then known to 0.8 %) on the primes of boot40: alpha = 12. NOT
/// secure.
inline NoiseWorld& noise_world() {
  static auto* world = [] {
    ckks::Spec spec = ckks::Params::preset("toy-boot40", true).spec();
    spec.log_n = 13;
    return new NoiseWorld(ckks::Params::from_spec(spec, true));
  }();
  return *world;
}

inline double norm(const std::vector<double>& v) {
  double sum = 0.0;
  for (double x : v) sum += x * x;
  return sum;
}

/// Measured standard deviation within 10 % of the formula, mean within 5 std / sqrt(N).
inline void expect_noise(const std::vector<double>& errors, double variance) {
  const double n = static_cast<double>(errors.size());
  double mean = 0.0;
  for (double e : errors) mean += e / n;
  const double measured = std::sqrt(norm(errors) / n), expected = std::sqrt(variance);
  EXPECT_NEAR(measured / expected, 1.0, 0.1) << "measured " << measured << ", formula " << expected;
  EXPECT_LT(std::abs(mean), 5.0 * expected / std::sqrt(n)) << "std " << expected;
}

}  // namespace crenel::test::noise
