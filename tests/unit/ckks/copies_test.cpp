// Keys and ciphertexts on another device: the same bits, and results that are the same bits.
#include "crenel/ckks/copies.h"

#include "core/host_memory.h"
#include "support/ckks_world.h"
#include "support/watched_device.h"

namespace crenel::ckks {
namespace {

class CopiesTest : public test::DeviceTest {
 protected:
  test::Rng rng_ = test::test_rng();
  std::vector<double> values(u64 count) {
    std::vector<double> v(count);
    std::uniform_real_distribution<double> in(-1.0, 1.0);
    for (double& x : v) x = in(rng_);
    return v;
  }
};
CRENEL_SUITE_OVER(CopiesTest, test::with_split(test::test_devices()));

void expect_same_keys(const EvaluationKeys& found, const EvaluationKeys& expected) {
  ASSERT_EQ(found.data()->ids(), expected.data()->ids());
  EXPECT_EQ(found.secret_key_id(), expected.secret_key_id());
  EXPECT_EQ(found.bytes(), expected.bytes());
  for (const rlwe::KeyId id : expected.data()->ids()) {
    const auto *a = found.data()->set.find(id), *b = expected.data()->set.find(id);
    EXPECT_EQ(test::words_of(a->pairs), test::words_of(b->pairs)) << id;
    EXPECT_EQ(a->seed, b->seed);
    EXPECT_EQ(a->first_digit, b->first_digit);
    EXPECT_EQ(a->max_level, b->max_level);
  }
}

TEST_P(CopiesTest, KeysAndCiphertextsComputeTheSameBits) {
  const auto params = test::world_params("toy-boot40");
  const Context home(params, "cpu"), there(params, device_), back(params, "cpu");
  Client client = home.keygen();
  const EvaluationKeys keys = client.evaluation_keys({.rotations = {1, -3},
                                                      .conjugate = true,
                                                      .encapsulation = true,
                                                      .rotation_levels = {{1, 2}}});
  const EvaluationKeys copy = copy_to(there, keys);
  expect_same_keys(copy, keys);
  expect_same_keys(copy_to(back, copy), keys);
  EXPECT_TRUE(copy.has_encapsulation());
  EXPECT_EQ(copy.rotation_level(1), keys.rotation_level(1));

  const auto x = values(2 * home.params().slots());
  const Ciphertext a = client.encrypt(x, 2, 0.0, 0, 2, 1.5);
  const Ciphertext b = copy_to(there, a);
  EXPECT_EQ(test::bits(b), test::bits(a));
  EXPECT_EQ(b.metadata().bound, 1.5);
  EXPECT_EQ(b.batch(), 2);
  EXPECT_EQ(b.data().seed, a.data().seed);
  const Evaluator here = home.evaluator(keys), ev = there.evaluator(copy);
  const Plaintext half = home.encode_constant(0.5, 2);
  const Plaintext half_there = copy_to(there, half);
  const auto run = [](const Evaluator& e, const Ciphertext& c, const Plaintext& p) {
    return e.conjugate(e.rotate(e.multiply_rescale(c, e.multiply(c, p)), -3));
  };
  const Ciphertext expected = run(here, a, half), found = run(ev, b, half_there);
  EXPECT_EQ(test::bits(copy_to(back, found)), test::bits(expected));
}

TEST_P(CopiesTest, RefusesWhatIsNotOfTheContext) {
  const auto params = test::world_params("toy-boot40");
  const Context home(params, "cpu"), other(test::world_params("toy-boot45"), device_);
  Client client = home.keygen();
  const EvaluationKeys keys = client.evaluation_keys({.rotations = {1}});
  const Ciphertext a = client.encrypt(values(4));
  for (const auto& copy :
       std::vector<std::function<void()>>{[&] { copy_to(other, keys); }, [&] { copy_to(other, a); },
                                          [&] { copy_to(other, home.encode_constant(1.0)); }})
    try {
      copy();
      FAIL() << "other parameters";
    } catch (const StateError& e) {
      EXPECT_EQ(e.field("found"), params.id());
      EXPECT_EQ(e.field("expected"), other.params().id());
    }
  const Context same(params, device_);
  EXPECT_THROW(copy_to(same, keys.staged(keys.bytes())), StateError);
  EXPECT_THROW(copy_to(same, client.decrypt_to_plaintext(a)), StateError);
  EXPECT_EQ(copy_to(same, EvaluationKeys()).data(), nullptr);
}

// Before a key is copied: nothing was taken.
TEST(Copies, KeysThatDoNotFitAreRefusedWhole) {
  const auto params = test::world_params("toy-boot40");
  const Context home(params, "cpu");
  Client client = home.keygen();
  std::vector<i64> steps;
  for (i64 s = 1; s <= 60; ++s) steps.push_back(s);
  const EvaluationKeys keys = client.evaluation_keys({.rotations = steps});
  ASSERT_GT(keys.bytes(), core::kAskedFrom);
  const auto device = std::make_shared<test::WatchedDevice>("cpu");
  const Context there(params, device);
  device->room = keys.bytes() - 1;
  const u64 before = device->allocations;
  try {
    copy_to(there, keys);
    FAIL() << "there is no room";
  } catch (const OutOfMemoryError& e) {
    EXPECT_EQ(e.field("needed"), cat(keys.bytes()));
    EXPECT_EQ(e.field("available"), cat(keys.bytes() - 1));
  }
  EXPECT_EQ(device->allocations, before);
  device->room = keys.bytes();
  expect_same_keys(copy_to(there, keys), keys);
}

}  // namespace
}  // namespace crenel::ckks
