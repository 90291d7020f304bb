// Arrays and keys of two clients of one context: every place where they could meet refuses them.
#include <gtest/gtest.h>

#include <functional>

#include "crenel/tfhe/integer.h"
#include "crenel/tfhe/serialize.h"
#include "support/edited_files.h"
#include "support/tfhe_world.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

const Messages kX{0, 1, 1, 0}, kY{0, 0, 1, 1};

void expect_mixed(const std::function<void()>& f, const SecretKeyId& found,
                  const SecretKeyId& expected) {
  try {
    f();
    ADD_FAILURE() << "no error";
  } catch (const StateError& e) {
    EXPECT_EQ(e.field("found"), found.text()) << e.what();
    EXPECT_EQ(e.field("expected"), expected.text()) << e.what();
  }
}

class TfheSecretKeyId : public test::TfheTest {};

TEST_P(TfheSecretKeyId, TravelsWithAllThatAClientMakes) {
  auto& w = world("gadget:r3");
  const Context& c = w.context;
  const SecretKeyId& id = w.client.secret_key_id();
  EXPECT_FALSE(id.is_none());
  EXPECT_NE(c.keygen().secret_key_id(), id);
  const Ciphertext a = w.client.encrypt(kX), b = w.client.encrypt(kY);
  EXPECT_EQ(a.secret_key_id(), id);
  EXPECT_EQ(w.keys.secret_key_id(), id);
  EXPECT_EQ(ciphertext_from_bytes(c, to_bytes(c, a)).secret_key_id(), id);
  EXPECT_EQ(evaluation_keys_from_bytes(c, to_bytes(c, w.keys)).secret_key_id(), id);
  EXPECT_EQ(Client::import_secret_key(c, w.client.export_secret_key()).secret_key_id(), id);
  const Term term{&a, 1};
  EXPECT_EQ(w.ev.linear({&term, 1}).secret_key_id(), id);
  EXPECT_EQ(w.ev.not_(a).secret_key_id(), id);
  EXPECT_EQ(w.ev.gate(Gate::and_, a, b).secret_key_id(), id);
  EXPECT_EQ(w.ev.refresh(a).secret_key_id(), id);
  EXPECT_EQ(a.clone().secret_key_id(), id);
  EXPECT_EQ(a.slice(0, 3).secret_key_id(), id);
  const Ciphertext bare = c.evaluator(EvaluationKeys(nullptr)).not_(a);
  EXPECT_EQ(bare.secret_key_id(), id);
}

TEST_P(TfheSecretKeyId, TheirArraysAreRefusedUnderOurKeys) {
  auto& w = world("gadget:r3");
  Client other = w.context.keygen();
  const SecretKeyId &ours = w.client.secret_key_id(), &theirs = other.secret_key_id();
  const Ciphertext a = w.client.encrypt(kX), b = other.encrypt(kY);
  const auto three = [](Client& client) { return client.encrypt(Messages{1, 0, 1}); };
  const Ciphertext first = three(w.client), second = three(other);
  const Lut table{Messages{1, 0, 1, 0}, 0};
  const Term terms[] = {{&a, 1}, {&b, 1}};
  const Evaluator keyless = w.context.evaluator(EvaluationKeys(nullptr));
  const Ciphertext* parts[] = {&first, &second};
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"gate", [&] { w.ev.gate(Gate::nand, a, b); }},
      {"gate of theirs", [&] { w.ev.gate(Gate::nand, b, a); }},
      {"not", [&] { w.ev.not_(b); }},
      {"mux", [&] { w.ev.mux(a, a.clone(), b); }},
      {"refresh", [&] { w.ev.refresh(b); }},
      {"lut", [&] { w.ev.lut(b, table); }},
      {"prepared lut", [&] { w.ev.lut(b, w.context.prepare({&table, 1})); }},
      {"linear", [&] { w.ev.linear(terms); }},
      {"linear without keys", [&] { keyless.linear(terms); }},
      {"floor", [&] { w.ev.floor(b, 1); }},
      {"sign", [&] { w.ev.sign(b); }},
      {"decompose", [&] { w.ev.decompose(b, 1); }},
      {"concatenate", [&] { concatenate(parts); }},
      {"decrypt", [&] { w.client.decrypt(b); }},
      {"phase_errors", [&] { w.client.phase_errors(b, kY); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    expect_mixed(call, theirs, ours);
  }
  EXPECT_EQ(w.client.decrypt(w.ev.gate(Gate::nand, a, w.client.encrypt(kY))),
            (Messages{1, 1, 0, 1}));
  EXPECT_EQ(other.decrypt(b), kY);
}

TEST_P(TfheSecretKeyId, KnownMessagesAreEverybodys) {
  auto& w = world("gadget:r3");
  Client other = w.context.keygen();
  const Ciphertext known = w.ev.trivial(kY), a = w.client.encrypt(kX), b = other.encrypt(kX);
  EXPECT_TRUE(known.secret_key_id().is_none());
  EXPECT_EQ(w.client.decrypt(known), kY);
  EXPECT_EQ(other.decrypt(known), kY);
  EXPECT_EQ(w.client.decrypt(w.ev.gate(Gate::and_, a, known)), (Messages{0, 0, 1, 0}));
  EXPECT_EQ(w.ev.gate(Gate::and_, known, w.ev.trivial(kX)).secret_key_id(),
            w.client.secret_key_id());
  const Evaluator keyless = w.context.evaluator(EvaluationKeys(nullptr));
  const Term terms[] = {{&known, 1}, {&b, 1}}, alone{&known, 1};
  EXPECT_EQ(keyless.linear(terms).secret_key_id(), other.secret_key_id());
  EXPECT_TRUE(w.ev.linear({&alone, 1}).secret_key_id().is_none());
  EXPECT_TRUE(w.ev.not_(known).secret_key_id().is_none());
  const Ciphertext three = w.ev.trivial(Messages{1, 0, 1});
  const Ciphertext* parts[] = {&three, &b};
  const Ciphertext joined = concatenate(parts);
  EXPECT_EQ(joined.secret_key_id(), other.secret_key_id());
  EXPECT_THROW(w.client.decrypt(joined), StateError);
  // Through a file, where nothing else may say that it needs no key.
  const Context& c = w.context;
  const Ciphertext again = ciphertext_from_bytes(c, to_bytes(c, known));
  EXPECT_TRUE(again.secret_key_id().is_none());
  EXPECT_EQ(other.decrypt(again), kY);
  for (const Ciphertext* encrypted : {&a, static_cast<const Ciphertext*>(nullptr)}) {
    const Ciphertext result = w.ev.not_(a);
    const auto bytes = to_bytes(c, encrypted ? *encrypted : result);
    const auto forged = test::with_secret_key_id(bytes, w.client.secret_key_id(), "none");
    EXPECT_THROW(ciphertext_from_bytes(c, forged), SerializationError);
  }
}

TEST_P(TfheSecretKeyId, PackingTakesSlotZeroOfItsOwnClient) {
  auto& w = world("gadget:r3");
  Client other = w.context.keygen();
  Client single = w.client.single(), second = w.client.single(1), again = w.client.single(1);
  EXPECT_EQ(single.secret_key_id(), w.client.secret_key_id());
  EXPECT_NE(second.secret_key_id(), w.client.secret_key_id());
  EXPECT_EQ(second.secret_key_id(), again.secret_key_id());
  const Evaluator ev = w.context.evaluator(w.client.evaluation_keys({true}));
  const Ciphertext packed = ev.pack(single.encrypt(kX));
  EXPECT_EQ(packed.secret_key_id(), w.client.secret_key_id());
  EXPECT_EQ(w.client.decrypt(packed), kX);
  expect_mixed([&] { ev.pack(second.encrypt(kX)); }, second.secret_key_id(),
               w.client.secret_key_id());
  Client stranger = other.single();
  expect_mixed([&] { ev.pack(stranger.encrypt(kX)); }, other.secret_key_id(),
               w.client.secret_key_id());
}

TEST_P(TfheSecretKeyId, IntegersHaveOne) {
  const Context c(Params::preset("toy-lut4", true), GetParam());
  Client mine = c.keygen(), other = c.keygen();
  const u64 values[] = {3, 250};
  const Integers a = encrypt_unsigned(mine, values, 8), b = encrypt_unsigned(other, values, 8);
  EXPECT_EQ(a.secret_key_id(), mine.secret_key_id());
  EXPECT_EQ(a.clone().secret_key_id(), mine.secret_key_id());
  EXPECT_EQ(integers_from_bytes(c, to_bytes(c, a)).secret_key_id(), mine.secret_key_id());
  expect_mixed([&] { decrypt_unsigned(mine, b); }, other.secret_key_id(), mine.secret_key_id());
  std::vector<Ciphertext> blocks;
  for (const Integers* part : {&a, &a, &a, &b}) blocks.push_back(part->blocks()[0].clone());
  expect_mixed([&] { Integers(std::move(blocks), 8, false); }, other.secret_key_id(),
               mine.secret_key_id());
  const Integers* parts[] = {&a, &b};
  expect_mixed([&] { concatenate(parts); }, other.secret_key_id(), mine.secret_key_id());
  const IntegerEvaluator ev(c.evaluator(mine.evaluation_keys()));
  expect_mixed([&] { ev.add(a, b); }, other.secret_key_id(), mine.secret_key_id());
  expect_mixed([&] { ev.select(b.blocks()[0], a, a); }, other.secret_key_id(),
               mine.secret_key_id());
  const Integers known = ev.trivial(values, 8, false);
  EXPECT_TRUE(known.secret_key_id().is_none());
  EXPECT_EQ(decrypt_unsigned(other, known), (std::vector<u64>{3, 250}));
  EXPECT_TRUE(integers_from_bytes(c, to_bytes(c, known)).secret_key_id().is_none());
  EXPECT_THROW(integers_from_bytes(
                   c, test::with_secret_key_id(to_bytes(c, a), mine.secret_key_id(), "none")),
               SerializationError);
}

CRENEL_DEVICE_SUITE(TfheSecretKeyId);

}  // namespace
}  // namespace crenel::tfhe
