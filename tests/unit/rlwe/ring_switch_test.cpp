// Ring switching: what decrypts under the small ring's secret, how noisy it is, the same words
// everywhere, and the refusal.
#include "rlwe/ring_switch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "random/samplers.h"
#include "support/encapsulation_world.h"

namespace crenel::test {
namespace {

class RingSwitching : public DeviceTest {};
CRENEL_DEVICE_SUITE(RingSwitching);
class RingSwitchingBits : public DeviceTest {};
CRENEL_CANDIDATE_SUITE(RingSwitchingBits);

struct World : EncapsulationWorld {
  explicit World(const std::string& device, const char* params = "toy-boot40")
      : EncapsulationWorld(device, params), rings(ring) {
    Rng rng(7);
    for (i8& z : small) z = static_cast<i8>(static_cast<int>(rng() % 3) - 1);
    down = secret.make_ring_switch_down(small);
    up = secret.make_ring_switch_up(small);
  }
  /// z(X^D) as a secret of the whole ring.
  rlwe::SecretKey embedded() const {
    std::vector<i8> wide(ring.ring_dim());
    for (u64 i = 0; i < small.size(); ++i) wide[i * (wide.size() / small.size())] = small[i];
    return rlwe::SecretKey(context.state().ring, fixed_source(3), wide);
  }
  double q(u32 i) const { return static_cast<double>(ring.modulus(ring.window(0)[i]).q); }

  std::vector<i8> small = std::vector<i8>(256);
  rlwe::RingSwitch rings;
  rlwe::SwitchKey down, up;
};

std::vector<i64> uniform_message(Rng& rng, i64 q0, u64 count) {
  std::uniform_int_distribution<i64> u(-q0 / 2 + 1, q0 / 2 - 1);
  std::vector<i64> message(count);
  for (auto& m : message) m = u(rng);
  return message;
}

// Deviations from the formula: 1.6 % for 2,048 samples of an error, 3 % for the errors of one key.
TEST_P(RingSwitching, DownKeepsTheMessageUnderTheSmallRingsSecret) {
  World w(GetParam());
  Rng rng = test_rng();
  const auto message = uniform_message(rng, w.base_modulus(), w.ring_dim());
  rlwe::Poly low = w.rings.down(w.stream(), w.encrypt(message).view(), w.down.view());
  ASSERT_EQ(low.domain(), rlwe::Domain::coeff);
  w.ring.kernels().ntt(w.stream(), low.view_as(rlwe::Domain::eval), low.view());
  low.set_domain(rlwe::Domain::eval);
  const std::vector<u32> found = words_of(w.embedded().decrypt(low.view()));
  const double q = w.q(0), p = w.q(1), n = static_cast<double>(w.ring_dim());
  double z = 1;
  for (i8 x : w.small) z += x != 0;
  const double expected = std::sqrt(kErrorVariance / (p * p) + (1 + n / 2) / 12 +
                                    n * kErrorVariance * (q / p) * (q / p) / 12 + z / 12);
  double square = 0;
  for (u64 i = 0; i < message.size(); ++i) {
    const double off = std::remainder(found[i] - static_cast<double>(message[i]) / p, q);
    ASSERT_LT(std::abs(off), 9 * expected);
    square += off * off;
  }
  EXPECT_NEAR(std::sqrt(square / n) / expected, 1.0, 0.25);
}

TEST_P(RingSwitching, UpKeepsTheMessage) {
  World w(GetParam());
  Rng rng = test_rng();
  const i64 q0 = w.base_modulus();
  const auto message = uniform_message(rng, q0, w.ring_dim());
  // Encrypted under z(X^D).
  const device::Buffer staged = w.stream().allocate(message.size() * sizeof(i64));
  w.stream().copy_in(staged.data(), message.data(), message.size() * sizeof(i64));
  rlwe::Poly poly(w.stream(), {w.ring.log_n(), 1, 1}, w.ring.window(0), rlwe::Domain::coeff);
  w.ring.kernels().reduce_signed(w.stream(), poly.view(), staged.as<const i64>());
  random::Seed seed;
  rlwe::SecretKey embedded = w.embedded();
  const rlwe::Poly under = embedded.encrypt(poly.view(), seed);
  const rlwe::Poly back = rlwe::ring_switch_up(w.ring, w.stream(), under.view(), w.up.view());
  const auto found = integers_of(w.ring, w.secret.decrypt(back.view()));
  const double n = static_cast<double>(w.ring_dim());
  const double expected = std::sqrt(kErrorVariance + (1 + n / 2) / 12);
  double square = 0;
  for (u64 i = 0; i < message.size(); ++i) {
    i128 off = (found[i] - message[i]) % q0;
    if (off > q0 / 2) off -= q0;
    if (off < -q0 / 2) off += q0;
    square += static_cast<double>(off) * static_cast<double>(off);
  }
  EXPECT_NEAR(std::sqrt(square / n) / expected, 1.0, 0.25);
}

TEST_P(RingSwitchingBits, WordsAreThoseOfRef) {
  const auto run = [](const std::string& name) {
    World w(name);
    Rng rng(11);
    const rlwe::Poly ct = w.encrypt(uniform_message(rng, w.base_modulus(), w.ring_dim()));
    std::vector<u32> all = words_of(w.rings.down(w.stream(), ct.view(), w.down.view()));
    for (u32 word : words_of(rlwe::ring_switch_up(w.ring, w.stream(), ct.view(), w.up.view())))
      all.push_back(word);
    for (const rlwe::SwitchKey* key : {&w.down, &w.up})
      for (u32 word : words_of(key->pairs)) all.push_back(word);
    return all;
  };
  EXPECT_EQ(run(GetParam()), run("ref"));
}

TEST(RingSwitch, NeedsTwoPrimesAtLevel0) {
  const ckks::Context context(ckks::Params::preset("toy-boot40", true), "ref");
  rlwe::Chain chain = context.state().ring->chain();
  chain.windows[0].end = chain.windows[0].begin + 1;
  const rlwe::RingContext ring(chain, context.device().shared_from_this());
  EXPECT_THROW(rlwe::RingSwitch{ring}, UnsupportedError);
}

}  // namespace
}  // namespace crenel::test
