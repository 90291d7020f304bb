// Sets with groups of secret bits, from keys to integers: all steps of one set, files, devices.
#include "crenel/tfhe/integer.h"
#include "crenel/tfhe/serialize.h"
#include "support/tfhe_world.h"

namespace crenel::test {
namespace {

using tfhe::Context;
using tfhe::EvaluationKeys;
using tfhe::Evaluator;
using tfhe::Params;

class TfheGroups : public TfheTest {
 protected:
  Context context(u32 step) const {
    return Context(Params::preset("toy-lut4g4", true).with_step(step), device_);
  }
};
CRENEL_DEVICE_SUITE(TfheGroups);

tfhe::Lut random_lut(Rng& rng) { return {random_messages(rng, 16, 16), 0}; }

// One client's keys serve every step, made here or loaded from a file.
TEST_P(TfheGroups, KeysOfTheWholeGroupServeItsDivisors) {
  Rng rng = test_rng();
  const Context home = context(4);
  tfhe::Client client = home.keygen();
  const EvaluationKeys keys = client.evaluation_keys();
  const auto file = tfhe::to_bytes(home, keys);
  const Messages m = random_messages(rng, exhaustive() ? 40 : 6, 16);
  const tfhe::Lut f = random_lut(rng);
  const Messages expected = map_messages(m, [&](u64 x) { return f.table[x]; });
  const auto input = client.encrypt(m);
  const auto bytes = tfhe::to_bytes(home, input);
  for (const u32 step : {1u, 2u, 4u}) {
    SCOPED_TRACE(cat("steps of ", step));
    const Context server = context(step);
    const auto a = tfhe::ciphertext_from_bytes(server, bytes);
    const EvaluationKeys loaded = tfhe::evaluation_keys_from_bytes(server, file);
    const auto by_file = server.evaluator(loaded, {0.0}).lut(a, f);
    const auto by_keys = server.evaluator(keys, {0.0}).lut(a, f);
    EXPECT_EQ(client.decrypt(by_file), expected);
    EXPECT_EQ(words_of(by_file), words_of(by_keys));
    EXPECT_EQ(tfhe::to_bytes(server, loaded), file);
  }
}

TEST_P(TfheGroups, EveryDeviceGivesTheBitsOfRef) {
  if (GetParam() == "ref") GTEST_SKIP() << "what the others are compared with";
  Rng rng = test_rng();
  const Context first = context(4);
  tfhe::Client client = first.keygen();
  const auto keys = tfhe::to_bytes(first, client.evaluation_keys());
  const auto input = tfhe::to_bytes(first, client.encrypt(random_messages(rng, 5, 16)));
  const tfhe::Lut f = random_lut(rng);
  for (const u32 step : {1u, 2u, 4u}) {
    std::vector<std::vector<u32>> words;
    for (const std::string& device : {GetParam(), std::string("ref")}) {
      const Context c(Params::preset("toy-lut4g4", true).with_step(step), device);
      const Evaluator ev = c.evaluator(tfhe::evaluation_keys_from_bytes(c, keys), {0.0});
      words.push_back(words_of(ev.lut(tfhe::ciphertext_from_bytes(c, input), f)));
    }
    EXPECT_EQ(words[0], words[1]) << step;
  }
}

TEST_P(TfheGroups, GatesSumsAndIntegers) {
  Rng rng = test_rng();
  TfheWorld& w = world("toy-lut4g4");
  const u64 count = exhaustive() ? 24 : 4;
  const Messages x = random_messages(rng, count, 2), y = random_messages(rng, count, 2);
  const auto a = w.client.encrypt(x, 0, 2), b = w.client.encrypt(y, 0, 2);
  Messages xor_, nand, either;
  for (u64 i = 0; i < count; ++i) {
    xor_.push_back(x[i] ^ y[i]), nand.push_back(1 - (x[i] & y[i]));
    either.push_back(x[i] ? y[i] : 1 - y[i]);
  }
  EXPECT_EQ(w.client.decrypt(w.ev.gate(tfhe::Gate::xor_, a, b)), xor_);
  EXPECT_EQ(w.client.decrypt(w.ev.gate(tfhe::Gate::nand, a, b)), nand);
  EXPECT_EQ(w.client.decrypt(w.ev.mux(a, b, w.ev.not_(b))), either);
  // known messages have no mask
  const auto known = w.ev.trivial(y);
  EXPECT_EQ(w.client.decrypt(known), y);
  const tfhe::Term terms[] = {{&a, 3}, {&known, 2}};
  EXPECT_EQ(w.client.decrypt(w.ev.linear(terms)), [&] {
    Messages sum;
    for (u64 i = 0; i < count; ++i) sum.push_back(3 * x[i] + 2 * y[i]);
    return sum;
  }());
}

// Gates on several messages a mask as on one: sums, negations, selections, arrays that do not fill
// their last row; keys and arrays by their files, and the bits of ref, with steps of 1 and of 2.
TEST_P(TfheGroups, SeveralMessagesAMask) {
  Rng rng = test_rng();
  for (const u32 slots : {1u, 4u, 5u})
    for (const u32 step : {1u, 2u}) {
      SCOPED_TRACE(cat(slots, " messages, steps of ", step));
      const Params params =
          Params::preset("toy-packed", true).with_slots(tfhe::SlotCount(slots)).with_step(step);
      const Context home(params, device_);
      tfhe::Client client = home.keygen();
      const EvaluationKeys keys = client.evaluation_keys();
      const Evaluator ev = home.evaluator(keys, {0.0});
      const u64 count = exhaustive() ? 23 : 7;
      const Messages x = random_messages(rng, count, 2), y = random_messages(rng, count, 2);
      const auto a = client.encrypt(x), b = client.encrypt(y);
      Messages nand, xor_, either;
      for (u64 i = 0; i < count; ++i) {
        nand.push_back(1 - (x[i] & y[i])), xor_.push_back(x[i] ^ y[i]);
        either.push_back(x[i] ? y[i] : 1 - y[i]);
      }
      const auto result = ev.gate(tfhe::Gate::nand, a, b);
      EXPECT_EQ(client.decrypt(result), nand);
      EXPECT_EQ(client.decrypt(ev.gate(tfhe::Gate::xor_, result, ev.refresh(result))),
                Messages(count, 0));
      EXPECT_EQ(client.decrypt(ev.gate(tfhe::Gate::xor_, a, b)), xor_);
      EXPECT_EQ(client.decrypt(ev.mux(a, b, ev.not_(b))), either);
      EXPECT_EQ(client.decrypt(ev.decompress(ev.compress(result, tfhe::StoredForm::switched))),
                nand);
      const Context other(params, "ref");
      const auto file = tfhe::to_bytes(home, keys);
      const auto theirs = other.evaluator(tfhe::evaluation_keys_from_bytes(other, file), {0.0});
      const auto moved = [&](const tfhe::Ciphertext& c) {
        return tfhe::ciphertext_from_bytes(other, tfhe::to_bytes(home, c));
      };
      EXPECT_EQ(words_of(theirs.gate(tfhe::Gate::nand, moved(a), moved(b))), words_of(result));
      EXPECT_EQ(keys.bytes(), tfhe::key_bytes(home));
    }
}

TEST_P(TfheGroups, OneSwitchServesAllOutputs) {
  Rng rng = test_rng();
  TfheWorld& w = world("toy-lut4g4");
  const Messages m = random_messages(rng, exhaustive() ? 16 : 3, 4);
  // tables of 16 entries read at f + 4 s for output s
  const tfhe::Lut f = random_lut(rng);
  const auto out = w.ev.lut(w.client.encrypt(m), std::span(&f, 1), {}, 4);
  Messages expected;
  for (const u64 x : m)
    for (u64 s = 0; s < 4; ++s) expected.push_back(f.table[x + 4 * s]);
  EXPECT_EQ(w.client.decrypt(out), expected);
}

// Kernels that serve any degree are those of all contexts: one that needs less is made in between.
TEST_P(TfheGroups, ContextsOfSmallerSetsChangeNothing) {
  Rng rng = test_rng();
  TfheWorld& w = world("toy-lut4g4");
  const Messages m = random_messages(rng, 3, 4);
  const tfhe::Lut f = random_lut(rng);
  Messages expected;
  for (const u64 x : m) expected.push_back(f.table[x]);
  const auto a = w.client.encrypt(m);
  const Context smaller(Params::preset("toy-packed", true).with_slots(tfhe::SlotCount(1)), device_);
  EXPECT_EQ(w.client.decrypt(w.ev.lut(a, f)), expected);
}

TEST_P(TfheGroups, WhatTheyLackIsRefused) {
  TfheWorld& w = world("toy-lut4g4");
  EXPECT_THROW(w.client.evaluation_keys({.packing = true}), UnsupportedError);
  EXPECT_THROW(tfhe::key_bytes(w.context, {.packing = true}), UnsupportedError);
  EXPECT_THROW(w.client.encrypt(Messages{1}, 64), ParameterError);  // more than q holds
  const auto old = tfhe_world(GetParam(), "toy-lut4").client.encrypt(Messages{1});
  EXPECT_THROW(w.client.decrypt(old), StateError);
  EXPECT_THROW(tfhe::ciphertext_from_bytes(
                   w.context, tfhe::to_bytes(tfhe_world(GetParam(), "toy-lut4").context, old)),
               SerializationError);
}

}  // namespace
}  // namespace crenel::test
