// Round trips of everything that travels.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "fuzz/wire_params.h"
#include "serialize/safetensors.h"
#include "support/ckks_world.h"

namespace crenel::test {
namespace {

using ckks::to_bytes;

class Serialize : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (device_ == nullptr) return;
    context_.emplace(wire_params(), GetParam());
    client_.emplace(context_->keygen());
    Rng rng(7);
    values = random_values(rng, context_->params().slots());
  }

  ckks::Context& context() { return *context_; }
  ckks::Client& client() { return *client_; }

  Values values;

 private:
  std::optional<ckks::Context> context_;
  std::optional<ckks::Client> client_;
};

CRENEL_DEVICE_SUITE(Serialize);

double error(const Values& found, const Values& expected) {
  double worst = found.size() == expected.size() ? 0.0 : 1e9;
  for (std::size_t i = 0; i < expected.size() && i < found.size(); ++i)
    worst = std::max(worst, std::abs(found[i] - expected[i]));
  return worst;
}

void expect_equal(const ckks::Ciphertext& a, const ckks::Ciphertext& b) {
  EXPECT_EQ(a.level(), b.level());
  EXPECT_EQ(a.scale(), b.scale());
  EXPECT_EQ(a.slots(), b.slots());
  EXPECT_EQ(a.metadata().real, b.metadata().real);
  EXPECT_EQ(a.params_id(), b.params_id());
  EXPECT_EQ(a.data().seed, b.data().seed);
  EXPECT_EQ(a.data().poly.shape(), b.data().poly.shape());
  EXPECT_EQ(a.data().poly.limbs(), b.data().poly.limbs());
  EXPECT_EQ(a.data().poly.domain(), b.data().poly.domain());
  EXPECT_EQ(words_of(a.data().poly), words_of(b.data().poly));
}

TEST_P(Serialize, FreshCiphertextTravelsAsHalfAndSeed) {
  const auto fresh = client().encrypt(values);
  const auto bytes = to_bytes(context(), fresh);
  EXPECT_LT(bytes.size(), fresh.bytes() / 2 + 2048);
  const auto loaded = ckks::ciphertext_from_bytes(context(), bytes);
  expect_equal(fresh, loaded);
  EXPECT_LT(error(client().decrypt(loaded), values), 0x1p-12);
  EXPECT_EQ(to_bytes(context(), loaded), bytes);
}

TEST_P(Serialize, ComputedCiphertextsTravelWhole) {
  const auto ev = context().evaluator(client().evaluation_keys());
  const auto a = client().encrypt(values);
  const auto product = ev.multiply_lazy(a, a);
  ASSERT_EQ(product.components(), 3u);
  const auto loaded = ckks::ciphertext_from_bytes(context(), to_bytes(context(), product));
  expect_equal(product, loaded);
  EXPECT_FALSE(loaded.data().seed.has_value());
  const auto rescaled = ev.rescale(ev.relinearise(loaded));
  ASSERT_EQ(rescaled.level(), 0u);
  const auto again = ckks::ciphertext_from_bytes(context(), to_bytes(context(), rescaled));
  expect_equal(rescaled, again);
  Values squares = values;
  for (auto& z : squares) z *= z;
  EXPECT_LT(error(client().decrypt(again), squares), 0x1p-8);
}

TEST_P(Serialize, MetadataSurvivesExactly) {
  for (const u64 slots : {u64{1}, u64{16}, u64{512}})
    for (const u32 level : {0u, 1u})
      for (const double scale : {1.0, 0x1.23456789abcdfp+29, 0x1.fffffffffffffp+20}) {
        const std::vector<double> few(slots, 0.001);
        const auto c = client().encrypt(few, level, scale, slots);
        expect_equal(c, ckks::ciphertext_from_bytes(context(), to_bytes(context(), c)));
      }
}

TEST_P(Serialize, Plaintext) {
  const auto p = context().encode(values);
  const auto bytes = to_bytes(context(), p);
  const auto loaded = ckks::plaintext_from_bytes(context(), bytes);
  EXPECT_EQ(words_of(p.data().poly), words_of(loaded.data().poly));
  EXPECT_EQ(p.scale(), loaded.scale());
  EXPECT_LT(error(context().decode(loaded), values), 0x1p-12);
  EXPECT_EQ(to_bytes(context(), loaded), bytes);
}

TEST_P(Serialize, EvaluationKeys) {
  const auto keys = client().evaluation_keys({{1, -2}, true, true});
  const auto bytes = to_bytes(context(), keys);
  EXPECT_LT(bytes.size(), keys.bytes() / 2 + 4096);
  const auto loaded = ckks::evaluation_keys_from_bytes(context(), bytes);
  EXPECT_EQ(loaded.rotations(), (std::vector<i64>{-2, 1}));
  EXPECT_TRUE(loaded.has_conjugation());
  EXPECT_TRUE(loaded.has_relinearisation());
  const auto &a = keys.data()->set, &b = loaded.data()->set;
  EXPECT_EQ(words_of(a.relinearisation->pairs), words_of(b.relinearisation->pairs));
  ASSERT_EQ(a.galois.size(), b.galois.size());
  for (const auto& [element, key] : a.galois) {
    EXPECT_EQ(words_of(key.pairs), words_of(b.galois.at(element).pairs)) << element;
    EXPECT_EQ(key.seed, b.galois.at(element).seed);
  }
  EXPECT_EQ(to_bytes(context(), loaded), bytes);

  const auto rotated = context().evaluator(loaded).rotate(client().encrypt(values), 1);
  Values expected = values;
  std::rotate(expected.begin(), expected.begin() + 1, expected.end());
  EXPECT_LT(error(client().decrypt(rotated), expected), 0x1p-6);
}

TEST_P(Serialize, SomeKeysAndNoKeys) {
  const auto one = ckks::evaluation_keys_from_bytes(
      context(), to_bytes(context(), client().evaluation_keys({{3}, false, false})));
  EXPECT_FALSE(one.has_relinearisation());
  EXPECT_FALSE(one.has_conjugation());
  EXPECT_EQ(one.rotations(), std::vector<i64>{3});
  const auto none =
      ckks::evaluation_keys_from_bytes(context(), to_bytes(context(), ckks::EvaluationKeys()));
  EXPECT_FALSE(none.has_relinearisation());
  EXPECT_TRUE(none.rotations().empty());
}

TEST_P(Serialize, PublicKey) {
  const auto key = client().public_key();
  const auto bytes = to_bytes(context(), key);
  const auto loaded = ckks::public_key_from_bytes(context(), bytes);
  EXPECT_EQ(words_of(key.data().key.pair), words_of(loaded.data().key.pair));
  EXPECT_EQ(to_bytes(context(), loaded), bytes);
  const auto c = loaded.encrypt(context().encode(values));
  EXPECT_LT(error(client().decrypt(c), values), 0x1p-8);
}

TEST_P(Serialize, ObjectsOfAnotherContextAreNotSaved) {
  const ckks::Context other(ckks::Params::preset("toy-leveled-n13-s30", true), GetParam());
  const auto fails = [&](const auto& object) {
    try {
      to_bytes(other, object);
      return false;
    } catch (const StateError& e) {
      return e.field("found") == context().params().id() &&
             e.field("expected") == other.params().id();
    }
  };
  EXPECT_TRUE(fails(client().encrypt(values)));
  EXPECT_TRUE(fails(context().encode(values)));
  EXPECT_TRUE(fails(client().evaluation_keys()));
  EXPECT_TRUE(fails(client().public_key()));
  try {
    ckks::ciphertext_from_bytes(other, to_bytes(context(), client().encrypt(values)));
    FAIL();
  } catch (const SerializationError& e) {
    EXPECT_EQ(e.field("where"), "params_id");
    EXPECT_NE(e.field("found").find(context().params().id()), std::string::npos);
    EXPECT_NE(e.field("expected").find(other.params().id()), std::string::npos);
  }
}

TEST(SerializeParams, EveryNamedSetSurvives) {
  for (const auto& name : ckks::Params::preset_names()) {
    SCOPED_TRACE(name);
    const auto params = ckks::Params::preset(name, true);
    const auto loaded = ckks::params_from_bytes(to_bytes(params), true);
    EXPECT_EQ(loaded, params);
    EXPECT_EQ(loaded.name(), params.name());
    EXPECT_EQ(loaded.spec().provenance, params.spec().provenance);
    EXPECT_EQ(loaded.spec().levels, params.spec().levels);
    EXPECT_EQ(loaded.primes(), params.primes());
    EXPECT_EQ(to_bytes(loaded), to_bytes(params));
  }
}

TEST(SerializeParams, InsecureSetsNeedConsent) {
  const auto bytes = to_bytes(wire_params());
  try {
    ckks::params_from_bytes(bytes);
    FAIL() << "an insecure set was loaded";
  } catch (const SerializationError& e) {
    EXPECT_NE(e.field("security_below_128"), "");
  }
}

TEST(SerializeParams, TextsTravelEscaped) {
  ckks::Spec spec = wire_params().spec();
  spec.name = "quote\" slash\\ tab\t \u00e9";
  spec.provenance = std::string("a\0b", 3);
  const auto params = ckks::Params::from_spec(spec, true);
  const auto loaded = ckks::params_from_bytes(to_bytes(params), true);
  EXPECT_EQ(loaded.name(), spec.name);
  EXPECT_EQ(loaded.spec().provenance, spec.provenance);
  spec.name = "\xff";
  EXPECT_THROW(to_bytes(ckks::Params::from_spec(spec, true)), SerializationError);
}

TEST(SerializeFile, PayloadIsAlignedAndBytesDependOnTheObjectOnly) {
  const auto& context = wire_context();
  const auto p = context.encode(std::vector<double>{0.5, 0.25});
  const auto bytes = to_bytes(context, p);
  const serialize::SafetensorsFile file(bytes);
  EXPECT_EQ(file.tensors().at("m").begin % 8, 0u);
  EXPECT_EQ(to_bytes(context, context.encode(std::vector<double>{0.5, 0.25})), bytes);
  // Loading needs no alignment of the caller's memory.
  std::vector<u8> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  EXPECT_NO_THROW(ckks::plaintext_from_bytes(context, std::span(shifted).subspan(1)));
}

}  // namespace
}  // namespace crenel::test
