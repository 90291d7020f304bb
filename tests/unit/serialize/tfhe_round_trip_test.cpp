// TFHE objects to bytes and back.
#include <gtest/gtest.h>

#include <functional>

#include "crenel/tfhe/serialize.h"
#include "support/devices.h"
#include "support/random.h"
#include "tfhe/objects.h"

namespace crenel::test {
namespace {

using tfhe::ArrayInfo;
using tfhe::to_bytes;

const char* const kSets[] = {"toy-raising", "toy-raising-binary", "toy-gadget", "toy-gadget2",
                             "toy-lut4"};

std::vector<u64> random_messages(Rng& rng, u64 count, u64 limit) {
  std::vector<u64> m(count);
  for (u64& x : m) x = rng() % limit;
  return m;
}

std::vector<u32> words_of(const tfhe::Ciphertext& c) {
  std::vector<u32> words(c.bytes() / sizeof(u32));
  c.data().payload.stream()->copy_out(words.data(), c.data().payload.data(), c.bytes());
  return words;
}

void expect_equal(const tfhe::Ciphertext& a, const tfhe::Ciphertext& b) {
  EXPECT_EQ(a.size(), b.size());
  EXPECT_EQ(a.plain_modulus(), b.plain_modulus());
  EXPECT_EQ(a.params_id(), b.params_id());
  EXPECT_EQ(a.data().log_modulus, b.data().log_modulus);
  EXPECT_EQ(a.data().slots, b.data().slots);
  EXPECT_EQ(a.data().seed, b.data().seed);
  EXPECT_EQ(words_of(a), words_of(b));
}

tfhe::Params packed(const std::string& name, u32 slots) {
  return tfhe::Params::preset(name, true).with_slots(tfhe::SlotCount(slots));
}

class TfheSerialize : public DeviceTest {
 protected:
  tfhe::Context context(const std::string& name, u32 slots = 1) const {
    return tfhe::Context(packed(name, slots), GetParam());
  }
};

CRENEL_DEVICE_SUITE(TfheSerialize);

TEST_P(TfheSerialize, FreshCiphertextsTravelAsBodiesAndSeed) {
  Rng rng = test_rng();
  for (const u32 slots : {1u, 3u}) {
    const auto home = context("toy-raising", slots);
    auto client = home.keygen();
    for (const u64 size : {u64(1), u64(2), u64(7), u64(300)}) {
      const auto m = random_messages(rng, size, 2);
      // Modulo 2 a fresh error, 21 at most, stays below q / 4 = 32; modulo 4 it exceeds q / 8 = 16
      // in one bit of 2^22.
      const auto fresh = client.encrypt(m, 2);
      const auto bytes = to_bytes(home, fresh);
      EXPECT_LT(bytes.size(), (size + slots) * sizeof(u32) + 1600);
      const auto loaded = tfhe::ciphertext_from_bytes(home, bytes);
      expect_equal(fresh, loaded);
      EXPECT_EQ(client.decrypt(loaded), m);
      EXPECT_EQ(to_bytes(home, loaded), bytes);
    }
  }
}

TEST_P(TfheSerialize, ComputedCiphertextsTravelWhole) {
  Rng rng = test_rng();
  for (const u32 slots : {1u, 2u}) {
    const auto home = context("toy-gadget", slots);
    auto client = home.keygen();
    const auto ev = home.evaluator(client.evaluation_keys(), {0.0});
    const auto x = random_messages(rng, 9, 2), y = random_messages(rng, 9, 2);
    const auto sum = ev.gate(tfhe::Gate::nand, client.encrypt(x), client.encrypt(y));
    const auto loaded = tfhe::ciphertext_from_bytes(home, to_bytes(home, sum));
    expect_equal(sum, loaded);
    EXPECT_FALSE(loaded.data().seed.has_value());
    const auto result = client.decrypt(ev.not_(loaded));
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(result[i], x[i] & y[i]) << i;
  }
}

TEST_P(TfheSerialize, ShapesAndElementTypesTravel) {
  const auto home = context("toy-raising");
  auto client = home.keygen();
  const auto c = client.encrypt(std::vector<u64>(12, 1));
  for (const ArrayInfo& info :
       {ArrayInfo{{12}, "bool"}, ArrayInfo{{3, 1, 4}, "uint8"}, ArrayInfo{{2, 2, 3}, ""}}) {
    ArrayInfo found;
    tfhe::ciphertext_from_bytes(home, to_bytes(home, c, info), &found);
    EXPECT_EQ(found.shape, info.shape);
    EXPECT_EQ(found.element, info.element);
  }
  ArrayInfo found;
  tfhe::ciphertext_from_bytes(home, to_bytes(home, c), &found);
  EXPECT_EQ(found.shape, std::vector<u64>{12});
  const auto one = client.encrypt(std::vector<u64>{1});
  tfhe::ciphertext_from_bytes(home, to_bytes(home, one, {{}, "bool"}), &found);
  EXPECT_TRUE(found.shape.empty());
  for (const ArrayInfo& info :
       {ArrayInfo{{11}, "bool"}, ArrayInfo{{0, 12}, "bool"}, ArrayInfo{{}, "bool"},
        ArrayInfo{{u64(1) << 63, 2, 12}, "bool"}, ArrayInfo{{1, 1, 1, 1, 1, 1, 1, 1, 12}, ""},
        ArrayInfo{{12}, "Bool"}, ArrayInfo{{12}, "seventeenletters17"}})
    EXPECT_THROW(to_bytes(home, c, info), ParameterError);
}

TEST_P(TfheSerialize, EvaluationKeys) {
  Rng rng = test_rng();
  for (const char* set : kSets)
    for (const u32 slots : {1u, 2u}) {
      const auto home = context(set, slots);
      auto client = home.keygen();
      const auto keys = client.evaluation_keys({slots != 1});
      const auto bytes = to_bytes(home, keys);
      EXPECT_LT(bytes.size(), keys.wire_bytes() + 4096) << set;
      EXPECT_GE(bytes.size(), keys.wire_bytes()) << set;
      const auto loaded = tfhe::evaluation_keys_from_bytes(home, bytes);
      EXPECT_EQ(loaded.has_packing(), slots != 1);
      EXPECT_EQ(loaded.bytes(), keys.bytes());
      EXPECT_EQ(to_bytes(home, loaded), bytes) << set;
      // They compute the same: bootstraps have no randomness of their own.
      const auto before = home.evaluator(keys, {0.0}), after = home.evaluator(loaded, {0.0});
      const auto a = client.encrypt(random_messages(rng, 5, 2), 4);
      const auto b = client.encrypt(random_messages(rng, 5, 2), 4);
      EXPECT_EQ(words_of(before.gate(tfhe::Gate::xor_, a, b)),
                words_of(after.gate(tfhe::Gate::xor_, a, b)))
          << set;
    }
}

TEST_P(TfheSerialize, PackingKeys) {
  Rng rng = test_rng();
  const auto home = context("toy-gadget", 3);
  auto client = home.keygen();
  auto single = client.single();
  const auto keys =
      tfhe::evaluation_keys_from_bytes(home, to_bytes(home, client.evaluation_keys({true})));
  const auto m = random_messages(rng, 8, 2);
  const auto sent =
      tfhe::ciphertext_from_bytes(single.context(), to_bytes(single.context(), single.encrypt(m)));
  EXPECT_EQ(client.decrypt(home.evaluator(keys, {0.0}).pack(sent)), m);
}

TEST_P(TfheSerialize, Integers) {
  Rng rng = test_rng();
  const auto home = context("toy-lut4");
  auto client = home.keygen();
  const auto server = home.evaluator(client.evaluation_keys(), {0.0});
  const tfhe::IntegerEvaluator ev(server);
  for (const u32 bits : {2u, 8u, 62u, 64u}) {
    std::vector<u64> x(5);
    for (u64& v : x) v = rng() >> (64 - bits);
    const auto fresh = tfhe::encrypt_unsigned(client, x, bits);
    const auto bytes = to_bytes(home, fresh, {{5, 1}, "uint64"});
    ArrayInfo info;
    const auto loaded = tfhe::integers_from_bytes(home, bytes, &info);
    EXPECT_EQ(info.shape, (std::vector<u64>{5, 1}));
    EXPECT_EQ(tfhe::decrypt_unsigned(client, loaded), x);
    EXPECT_EQ(to_bytes(home, loaded, info), bytes);
    std::vector<i64> y(5);
    for (i64& v : y) v = static_cast<i64>(rng()) >> (64 - bits);
    const auto negative = tfhe::encrypt_signed(client, y, bits);
    const auto computed = ev.bit_not(negative);
    const auto again = tfhe::integers_from_bytes(home, to_bytes(home, computed));
    EXPECT_TRUE(again.is_signed());
    EXPECT_EQ(again.bits(), bits);
    const auto found = tfhe::decrypt_signed(client, again);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(found[i], ~y[i]) << bits;
  }
}

TEST_P(TfheSerialize, AnotherContextIsRefused) {
  const auto home = context("toy-raising"), other = context("toy-gadget");
  auto client = home.keygen();
  const auto c = client.encrypt(std::vector<u64>{1, 0, 1});
  const auto keys = client.evaluation_keys();
  EXPECT_THROW(to_bytes(other, c), StateError);
  EXPECT_THROW(to_bytes(other, keys), StateError);
  for (const auto& load : std::vector<std::function<void()>>{
           [&] { tfhe::ciphertext_from_bytes(other, to_bytes(home, c)); },
           [&] { tfhe::evaluation_keys_from_bytes(other, to_bytes(home, keys)); }}) {
    try {
      load();
      FAIL() << "a file of another context was loaded";
    } catch (const SerializationError& error) {
      EXPECT_EQ(error.field("where"), "params_id");
      EXPECT_EQ(error.field("expected"), "'" + other.params().id() + "', of 'toy-gadget'");
    }
  }
}

TEST(TfheSerializeParams, EverySetTravels) {
  for (const std::string& name : tfhe::Params::preset_names())
    for (const u32 slots : {1u, 4u}) {
      auto params = tfhe::Params::preset(name, true);
      const bool groups = params.spec().group != 0;
      if (groups && slots != 1 && name.starts_with("lut4")) continue;  // as below, without exact
      if (groups) params = params.with_step(params.spec().made_group());
      // The transform is not safe for every set with many messages a mask.
      if (slots != 1 && !groups) params = params.with_arithmetic(tfhe::Arithmetic::exact);
      params = params.with_slots(tfhe::SlotCount(slots));
      const auto bytes = to_bytes(params);
      const auto loaded = tfhe::params_from_bytes(bytes, true);
      EXPECT_EQ(loaded, params) << name;
      EXPECT_EQ(loaded.name(), name);
      EXPECT_EQ(loaded.slots(), params.slots());
      EXPECT_EQ(loaded.spec().step, params.spec().step);
      EXPECT_EQ(loaded.arithmetic(), params.arithmetic());
      EXPECT_EQ(loaded.p_fail_log2(), params.p_fail_log2());
      EXPECT_EQ(loaded.security_bits(), params.security_bits());
      EXPECT_EQ(loaded.warning(), params.warning());
      EXPECT_EQ(loaded.spec().provenance, params.spec().provenance);
      EXPECT_EQ(to_bytes(loaded), bytes);
    }
}

TEST(TfheSerializeParams, ArithmeticTravels) {
  const auto params = tfhe::Params::preset("G2");
  for (const auto arithmetic :
       {tfhe::Arithmetic::exact, tfhe::Arithmetic::approx, tfhe::Arithmetic::split}) {
    const auto loaded = tfhe::params_from_bytes(to_bytes(params.with_arithmetic(arithmetic)));
    EXPECT_EQ(loaded.arithmetic(), arithmetic);
  }
}

}  // namespace
}  // namespace crenel::test
