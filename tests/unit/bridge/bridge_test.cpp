// The bridge: packing against the clear and the model, both ways together, refusals. Toy sets: NOT
// secure.
#include "crenel/bridge/bridge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "bridge/keys.h"
#include "bridge/objects.h"
#include "support/encapsulation_world.h"

namespace crenel::test {
namespace {

class Bridging : public DeviceTest {};
CRENEL_CANDIDATE_SUITE(Bridging);  // ref takes part in python/tests/test_bridge.py

struct World {
  explicit World(const std::string& name, u64 slots)
      : ckks(ckks::Params::preset("toy-boot40", true), name),
        tfhe(tfhe::Params::preset("toy-lut4g4", true), ckks.device().shared_from_this()),
        client(ckks.keygen()),
        holder(tfhe.keygen()),
        bridge(ckks, tfhe, slots),
        keys(bridge::make_keys(client, holder)),
        ev(ckks.evaluator(client.evaluation_keys(bridge.key_request()))),
        tables(tfhe.evaluator(holder.evaluation_keys())) {}

  ckks::Context ckks;
  tfhe::Context tfhe;
  ckks::Client client;
  tfhe::Client holder;
  bridge::Bridge bridge;
  bridge::Keys keys;
  ckks::Evaluator ev;
  tfhe::Evaluator tables;
};

TEST(BridgePacking, PlacesAreReversedBits) {
  EXPECT_EQ(bridge::place_of(0, 1), 0u);
  EXPECT_EQ(bridge::place_of(1, 8), 4u);
  EXPECT_EQ(bridge::place_of(6, 8), 3u);
  std::set<u64> all;
  for (u64 j = 0; j < 64; ++j) all.insert(bridge::place_of(j, 64));
  EXPECT_EQ(all.size(), 64u);
}

// Phases of fresh encryptions, which are known to an error of a few units, in coefficients.
TEST_P(Bridging, RowsArePackedIntoCoefficients) {
  for (const u32 count : {1u, 4u, 32u}) {  // fewer than a group's 8 rows, and more
    World w(GetParam(), count);
    Rng rng = test_rng();
    const auto& home = w.tfhe.state();
    const u32 p = w.tfhe.params().spec().plain_modulus, log_q = home.plan.log_lwe_modulus;
    std::vector<u64> messages(count);
    for (u64& m : messages) m = rng() % (p / 2);
    const tfhe::Ciphertext rows = w.holder.encrypt(messages);
    const auto errors = w.holder.phase_errors(rows, messages);
    const auto& ring = *w.ckks.state().ring;
    const bridge::Packing packing(ring, count, home.plan.rest_dim(), log_q);
    const rlwe::RingSwitch rings(ring);
    const rlwe::Poly packed = packing(w.ev, *home.torus, rings, w.keys.data().keys.up.view(),
                                      rows.data().payload.as<const u32>());
    const auto found = integers_of(ring, w.client.state().secret.decrypt(packed.view()));
    double q0 = 1;
    for (u32 i = 0; i < 2; ++i) q0 *= static_cast<double>(ring.modulus(ring.window(0)[i]).q);
    const double allowed = 9 * w.bridge.noise(bridge::Grid{}).packed;
    for (u64 j = 0; j < count; ++j) {
      const u64 at = bridge::place_of(j, count) * ring.ring_dim() / (2 * count);
      const double turns = static_cast<double>(found[at]) / q0;
      const double wanted = static_cast<double>(messages[j]) / p +
                            static_cast<double>(errors[j]) * std::exp2(-double(log_q));
      EXPECT_LT(std::abs(std::remainder(turns - wanted, 1.0)), allowed) << "row " << j;
    }
  }
}

TEST_P(Bridging, SlotsGoThereAndBack) {
  World w(GetParam(), 4);
  Rng rng = test_rng();
  std::vector<double> numbers(4), values(w.bridge.messages());
  std::vector<u64> chosen(4);
  for (u32 j = 0; j < 4; ++j) chosen[j] = rng() % 16, numbers[j] = -1 + 0.125 * double(chosen[j]);
  for (double& v : values) v = static_cast<double>(rng() % 1000) / 500 - 1;
  const auto a = w.client.encrypt(numbers, w.bridge.level(), 0.0, 4);
  const bridge::Grid grid{-1, 0.125};
  const auto crossed = w.bridge.to_messages(w.ev, w.keys, a, grid);
  EXPECT_EQ(w.holder.decrypt(crossed), chosen);
  const auto back = w.client.decrypt(w.bridge.to_slots(w.ev, w.tables, w.keys, crossed, values));
  for (u32 j = 0; j < 4; ++j) EXPECT_NEAR(back[j].real(), values[chosen[j]], 0x1p-9);
  const std::vector<double> both{-2.0, 3.0};
  const auto signs =
      w.client.decrypt(w.bridge.compare(w.ev, w.tables, w.keys, a, 0.0625, 1.25, both));
  for (u32 j = 0; j < 4; ++j) EXPECT_NEAR(signs[j].real(), numbers[j] > 0.0625 ? 3 : -2, 0x1p-13);
}

TEST(Bridge, RefusesWhatDoesNotFit) {
  const ckks::Context ckks(ckks::Params::preset("toy-boot40", true), "cpu");
  const auto device = ckks.device().shared_from_this();
  const tfhe::Context small(tfhe::Params::preset("toy-lut4g4", true), device);
  EXPECT_THROW(bridge::Bridge(ckks, tfhe::Context(tfhe::Params::preset("toy-lut4", true), device)),
               UnsupportedError);
  EXPECT_THROW(bridge::Bridge(ckks, small, 3), ParameterError);
  const ckks::Context wide(ckks::Params::preset("toy-boot45", true), device);
  EXPECT_THROW(bridge::Bridge(wide, small), UnsupportedError);  // 53 bits of level 0 against 50
  const bridge::Bridge good(ckks, small, 8);
  EXPECT_EQ(good.rotations(), (std::vector<i64>{1, 2, 4}));
  EXPECT_THROW(good.noise(bridge::Grid{0.0, 0.0}), ParameterError);
  EXPECT_THROW(good.noise(-1.0), ParameterError);
}

}  // namespace
}  // namespace crenel::test
