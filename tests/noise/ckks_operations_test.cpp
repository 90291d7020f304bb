// Every operation's error against its formula.
#include "noise/noise_world.h"

namespace crenel::ckks {
namespace {

using namespace test::noise;  // the formulas
using test::Values;

std::vector<double> minus(std::vector<double> a, const std::vector<double>& b,
                          double factor = 1.0) {
  for (u64 i = 0; i < a.size(); ++i) a[i] -= factor * b[i];
  return a;
}

TEST(Noise, EncodeRounds) {
  auto& w = noise_world();
  const auto v = w.values();
  const auto exact = w.context.state().encoder.to_coefficients(v);
  const Plaintext p = w.context.encode(v, 3u);
  expect_noise(minus(w.integers(w.message(p)), exact, p.scale()), kRounding);
}

TEST(Noise, SecretKeyEncryption) {
  auto& w = noise_world();
  for (u32 level : {0u, 7u, w.params().max_level()}) {
    const Plaintext p = w.context.encode(w.values(), level);
    const Ciphertext c = w.client.encrypt(p);
    expect_noise(w.difference(w.decrypt(c), w.message(p)), kErrorVariance);
  }
}

TEST(Noise, PublicKeyEncryption) {
  auto& w = noise_world();
  const auto key = w.state->secret.make_public_key();
  random::SecretSource source(seed_bytes(2));
  const Plaintext p = w.context.encode(w.values(), 5u);
  const auto message = w.message(p);
  const auto pair = rlwe::encrypt_with_public_key(w.ring(), key, message.view(), source);
  expect_noise(w.difference(w.state->secret.decrypt(pair.view()), message), public_key(w.n(), w.h));
}

TEST(Noise, SumsAndConstants) {
  auto& w = noise_world();
  const Plaintext p = w.context.encode(w.values(), 4u), q = w.context.encode(w.values(), 4u);
  const Ciphertext a = w.client.encrypt(p), b = w.client.encrypt(q);
  const auto m = w.integers(w.message(p)), n = w.integers(w.message(q));
  const auto sum = minus(minus(w.integers(w.decrypt(w.ev.add(a, b))), m), n);
  expect_noise(sum, 2 * kErrorVariance);
  const auto scaled = minus(w.integers(w.decrypt(w.ev.multiply_integer(a, 100))), m, 100.0);
  expect_noise(scaled, 1e4 * kErrorVariance);
  // An added plaintext and a turn by i bring nothing.
  expect_noise(minus(minus(w.integers(w.decrypt(w.ev.add(a, q))), m), n), kErrorVariance);
  const Ciphertext turned = w.ev.multiply_integer(w.ev.multiply_integer(a, 0, 1), 0, -1);
  EXPECT_EQ(norm(w.difference(turned, a)), 0.0);
}

TEST(Noise, RescaleAtEveryLevel) {
  auto& w = noise_world();
  const auto& p = w.params();
  for (u32 level = 1; level <= p.max_level(); ++level) {
    SCOPED_TRACE(level);
    // As large a scale as fits 62 bits, so that something of the message is left.
    const double scale = std::exp2(std::min(60.0, p.log_q(level) - 4));
    const Ciphertext c = w.client.encrypt(w.values(), level, scale);
    const auto before = w.integers(w.decrypt(c)), after = w.integers(w.decrypt(w.ev.rescale(c)));
    // of one to five primes
    expect_noise(minus(after, before, 1.0 / p.rescale_ratio(level)), division(w.h));
  }
}

TEST(Noise, RescaleByOnePrimeIsTheSame) {
  // Scale 2^30: one prime a level, the centred conversion is the rounding without a quotient.
  NoiseWorld w(Params::preset("leveled-n13-s30", true));
  for (u32 level = 1; level <= w.params().max_level(); ++level) {
    const Ciphertext c = w.client.encrypt(w.values(), level, 0x1p50);
    const auto before = w.integers(w.decrypt(c)), after = w.integers(w.decrypt(w.ev.rescale(c)));
    expect_noise(minus(after, before, 1.0 / w.params().rescale_ratio(level)), division(w.h));
  }
}

TEST(Noise, KeySwitchAtEveryLevel) {
  auto& w = noise_world();
  for (u32 level = 0; level <= w.params().max_level(); level += level < 3 ? 1 : 5) {
    SCOPED_TRACE(level);
    const Ciphertext a = w.client.encrypt(w.values(), level, 0x1p20);
    const Ciphertext three = w.ev.square_lazy(a);
    expect_noise(w.difference(w.ev.relinearise(three), three), key_switch(w.params(), level, w.h));
    // Rotation by 1 and back by two switches: the sum of both.
    const i64 back[] = {-3};
    const Ciphertext there = w.ev.rotate(w.ev.rotate(a, 1), 2);
    expect_noise(w.difference(w.ev.rotate_sum(there, back), a),
                 3 * key_switch(w.params(), level, w.h));
  }
}

TEST(Noise, KeySwitchWithFewSpecialPrimes) {
  // A set whose digits come close to P would show the gadget term; alpha is not 12 here.
  NoiseWorld w(Params::preset("leveled-n14-s40"));
  const u32 level = w.params().max_level();
  const Ciphertext a = w.client.encrypt(w.values(), level, 0x1p30);
  const Ciphertext three = w.ev.square_lazy(a);
  expect_noise(w.difference(w.ev.relinearise(three), three), key_switch(w.params(), level, w.h));
}

TEST(Noise, HoistedSumsDivideOnce) {
  auto& w = noise_world();
  const u32 level = 9;
  const Ciphertext a = w.client.encrypt(w.values(), level);
  const std::vector<i64> steps{1, 2, -3};
  const auto parts = w.ev.rotate_many(a, steps);
  const Ciphertext separate = w.ev.add(w.ev.add(parts[0], parts[1]), parts[2]);
  // One ModDown against three: four independent divisions and twice the gadget terms apart... the
  // gadget terms are the same products, so they cancel up to rounding.
  expect_noise(w.difference(separate, w.ev.rotate_sum(a, steps)), 4 * division(w.h));
}

TEST(Noise, PlaintextProduct) {
  auto& w = noise_world();
  const Plaintext p = w.context.encode(w.values(), 6u),
                  q = w.context.encode(w.values(), 6u, 0x1p25);
  const Ciphertext c = w.ev.multiply(w.client.encrypt(p), q);
  const double variance = norm(w.integers(w.message(q))) * kErrorVariance;
  expect_noise(w.difference(w.decrypt(c), w.product(p, q)), variance);
}

TEST(Noise, Product) {
  auto& w = noise_world();
  for (u32 level : {3u, 10u, 16u}) {
    SCOPED_TRACE(level);
    const Plaintext p = w.context.encode(w.values(), level),
                    q = w.context.encode(w.values(), level);
    const Ciphertext a = w.client.encrypt(p), b = w.client.encrypt(q);
    const double tensor = product(norm(w.integers(w.message(p))), norm(w.integers(w.message(q))),
                                  kErrorVariance, kErrorVariance, w.n());
    const Ciphertext c = w.ev.multiply(a, b);
    expect_noise(w.difference(w.decrypt(c), w.product(p, q)),
                 tensor + key_switch(w.params(), level, w.h));
    const double ratio = w.params().rescale_ratio(level);
    const auto exact = w.integers(w.product(p, q));
    expect_noise(minus(w.integers(w.decrypt(w.ev.rescale(c))), exact, 1.0 / ratio),
                 (tensor + key_switch(w.params(), level, w.h)) / (ratio * ratio) + division(w.h));
    expect_noise(minus(w.integers(w.decrypt(w.ev.multiply_rescale(a, b))), exact, 1.0 / ratio),
                 tensor / (ratio * ratio) + merged(w.params(), level, w.h));
  }
}

TEST(Noise, LevelAdjustmentIsOneRescaleOrTwo) {
  // The terminal primes of the 40-bit cycle go 0, 4, 2 as the level falls: where the target has no
  // more of them than the level after one rescale, one is enough; the rest is dropping limbs.
  auto& w = noise_world();
  struct Case {
    u32 from, to;
    std::vector<u32> rescales;
  };
  for (const Case& t :
       {Case{13, 12, {13}}, {13, 4, {7}}, {13, 5, {7, 6}}, {8, 7, {8}}, {14, 1, {2}}}) {
    SCOPED_TRACE(testing::Message() << t.from << " -> " << t.to);
    const Ciphertext c = w.client.encrypt(w.values(), t.from), r = w.ev.adjust_level(c, t.to);
    double variance = 0.0;
    for (u64 i = 0; i < t.rescales.size(); ++i) variance += division(w.h);
    expect_noise(minus(w.integers(w.decrypt(r)), w.integers(w.decrypt(c)), r.scale() / c.scale()),
                 variance);
  }
}

}  // namespace
}  // namespace crenel::ckks
