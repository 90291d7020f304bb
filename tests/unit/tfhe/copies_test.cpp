// Keys and arrays of TFHE on another device: the same bits, and results that are the same bits.
#include "crenel/tfhe/copies.h"

#include "crenel/tfhe/serialize.h"
#include "support/tfhe_world.h"

namespace crenel::tfhe {
namespace {

class TfheCopiesTest : public test::DeviceTest {};
CRENEL_DEVICE_SUITE(TfheCopiesTest);

std::vector<u32> words(const Ciphertext& c) {
  std::vector<u32> out(c.bytes() / sizeof(u32));
  auto& stream = *c.data().payload.stream();
  stream.synchronize();
  stream.copy_out(out.data(), c.data().payload.data(), c.bytes());
  return out;
}

TEST_P(TfheCopiesTest, KeysAndArraysComputeTheSameBits) {
  auto rng = test::test_rng();
  for (const char* name : {"toy-lut4", "toy-gadget2", "toy-raising"}) {
    const Params params = Params::preset(name, true);
    // From a device of the same kind, whose keys are copied, and of another, where they are loaded.
    for (const std::string& origin : {std::string("cpu"), GetParam()}) {
      const Context home(params, origin), there(params, device_), back(params, "cpu");
      Client client = home.keygen();
      const EvaluationKeys keys = client.evaluation_keys();
      const EvaluationKeys copy = copy_to(there, keys);
      EXPECT_EQ(copy.bytes(), keys.bytes());
      EXPECT_EQ(copy.secret_key_id(), keys.secret_key_id());
      EXPECT_EQ(to_bytes(there, copy), to_bytes(home, keys));
      std::vector<u64> x(13), y(13);
      for (u64& bit : x) bit = rng() % 2;
      for (u64& bit : y) bit = rng() % 2;
      const u32 p = bit_modulus(params);
      const Ciphertext a = client.encrypt(x, p, 2), b = client.encrypt(y, p, 2);
      const Ciphertext a2 = copy_to(there, a), b2 = copy_to(there, b);
      EXPECT_EQ(words(a2), words(a));
      EXPECT_EQ(a2.data().seed, a.data().seed);
      EXPECT_EQ(a2.bound(), a.bound());
      EXPECT_EQ(a2.noise_variance(), a.noise_variance());
      const auto expected = home.evaluator(keys, {0.0}).gate(Gate::nand, a, b);
      const auto found = there.evaluator(copy, {0.0}).gate(Gate::nand, a2, b2);
      EXPECT_EQ(words(copy_to(back, found)), words(expected)) << name << " from " << origin;
    }
  }
}

TEST_P(TfheCopiesTest, PackingKeysAndIntegersGoAlong) {
  Params params = Params::preset("toy-gadget", true).with_slots(SlotCount(4));
  const Context home(params, "cpu"), there(params, device_);
  Client client = home.keygen();
  const EvaluationKeys keys = client.evaluation_keys({true});
  const EvaluationKeys copy = copy_to(there, keys);
  EXPECT_TRUE(copy.has_packing());
  EXPECT_EQ(to_bytes(there, copy), to_bytes(home, keys));

  const Context radix(Params::preset("toy-lut4", true), "cpu"),
      radix_there(radix.params(), device_);
  Client owner = radix.keygen();
  const u64 values[] = {0, 200, 255};
  const Integers a = encrypt_words(owner, std::span(values), 8, false);
  const Integers b = copy_to(radix_there, a);
  ASSERT_EQ(b.blocks().size(), a.blocks().size());
  EXPECT_EQ(b.bits(), 8);
  EXPECT_FALSE(b.is_signed());
  for (std::size_t i = 0; i < a.blocks().size(); ++i)
    EXPECT_EQ(words(b.blocks()[i]), words(a.blocks()[i]));
}

TEST_P(TfheCopiesTest, RefusesOtherParameters) {
  const Context home(Params::preset("toy-lut4", true), "cpu"),
      other(Params::preset("toy-gadget", true), device_);
  Client client = home.keygen();
  const u64 message[] = {1};
  EXPECT_THROW(copy_to(other, client.evaluation_keys()), StateError);
  EXPECT_THROW(copy_to(other, client.encrypt(std::span(message))), StateError);
}

}  // namespace
}  // namespace crenel::tfhe
