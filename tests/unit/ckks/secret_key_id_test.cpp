// Objects of two clients of one context: every place where they could meet refuses them by name.
#include <gtest/gtest.h>

#include <functional>

#include "crenel/ckks/operand.h"
#include "crenel/ckks/serialize.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;
using Outputs = std::vector<Ciphertext>;

class CkksSecretKeyId : public test::SchemeTest {
 protected:
  test::World& w() { return world("toy-boot40"); }
  Client& other() {
    static auto* clients = new std::map<std::string, Client>();
    const auto it = clients->find(GetParam());
    return it != clients->end() ? it->second
                                : clients->emplace(GetParam(), w().context.keygen()).first->second;
  }
  Ciphertext ours(std::optional<u32> level = {}) { return w().client.encrypt(values_, level); }
  Ciphertext theirs(std::optional<u32> level = {}) { return other().encrypt(values_, level); }

  /// `f` refuses `found` where `expected` was.
  static void expect_mixed(const std::function<void()>& f, const SecretKeyId& found,
                           const SecretKeyId& expected) {
    const auto e = test::expect_error<StateError>(f);
    EXPECT_EQ(e.field("found"), found.text()) << e.what();
    EXPECT_EQ(e.field("expected"), expected.text()) << e.what();
    EXPECT_NE(std::string(e.what()).find(found.text()), std::string::npos);
    EXPECT_NE(std::string(e.what()).find(expected.text()), std::string::npos);
  }
  void expect_theirs_refused(const std::function<void()>& f) {
    expect_mixed(f, other().secret_key_id(), w().client.secret_key_id());
  }

  const std::vector<double> values_{0.5, -0.25};
};

TEST_P(CkksSecretKeyId, TravelsWithAllThatAClientMakes) {
  auto& client = w().client;
  const SecretKeyId& id = client.secret_key_id();
  EXPECT_FALSE(id.is_none());
  EXPECT_NE(id, other().secret_key_id());
  EXPECT_EQ(w().keys.secret_key_id(), id);
  EXPECT_EQ(ours().secret_key_id(), id);
  EXPECT_EQ(client.public_key().secret_key_id(), id);
  const Plaintext p = w().context.encode(values_);
  EXPECT_EQ(client.public_key().encrypt(p).secret_key_id(), id);
  EXPECT_TRUE(p.metadata().secret_key.is_none());
  EXPECT_TRUE(client.decrypt_to_plaintext(ours()).metadata().secret_key.is_none());
  EXPECT_TRUE(EvaluationKeys().secret_key_id().is_none());
  // Through files.
  const Context& c = w().context;
  EXPECT_EQ(ciphertext_from_bytes(c, to_bytes(c, ours())).secret_key_id(), id);
  EXPECT_EQ(evaluation_keys_from_bytes(c, to_bytes(c, w().keys)).secret_key_id(), id);
  EXPECT_EQ(public_key_from_bytes(c, to_bytes(c, client.public_key())).secret_key_id(), id);
  EXPECT_EQ(Client::import_secret_key(c, client.export_secret_key()).secret_key_id(), id);
  const auto none = evaluation_keys_from_bytes(c, to_bytes(c, EvaluationKeys()));
  EXPECT_TRUE(none.secret_key_id().is_none());
  // Results.
  const Evaluator& ev = w().ev;
  const Ciphertext a = ours(), b = ours();
  const i64 steps[] = {0, 1};
  Outputs results;
  results.push_back(ev.add(a, b));
  results.push_back(ev.sub(a, p));
  results.push_back(ev.add(a, Complex(0.5)));
  results.push_back(ev.negate(a));
  results.push_back(ev.multiply_integer(a, 0));
  results.push_back(ev.multiply_monomial(a, 3));
  results.push_back(ev.multiply_rescale(a, b));
  results.push_back(ev.square_lazy(a));
  results.push_back(ev.multiply(a, p));
  results.push_back(ev.adjust_level(a, 0));
  results.push_back(ev.rotate(a, 1));
  results.push_back(ev.rotate(a, 0));
  results.push_back(ev.conjugate(a));
  results.push_back(ev.rotate_sum(a, steps));
  results.push_back(ev.polynomial(a, values_));
  for (auto& r : ev.rotate_many(a, steps)) results.push_back(std::move(r));
  results.push_back(a.clone());
  results.push_back(a.slice(0, 1));
  const Ciphertext* parts[] = {&a, &b};
  results.push_back(concatenate(parts));
  results.push_back(w().context.evaluator(none).add(a, b));
  for (std::size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i].secret_key_id(), id) << "result " << i;
}

TEST_P(CkksSecretKeyId, EveryOperationRefusesTheirCiphertextUnderOurKeys) {
  const Evaluator& ev = w().ev;
  const Plaintext p = w().context.encode(values_);
  const Ciphertext a = ours(), b = theirs();
  const Ciphertext lazy = w().context.evaluator(other().evaluation_keys()).square_lazy(b);
  const i64 steps[] = {0, 1};
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"add", [&] { ev.add(a, b); }},
      {"add theirs", [&] { ev.add(b, b); }},
      {"sub", [&] { ev.sub(a, b); }},
      {"negate", [&] { ev.negate(b); }},
      {"add plaintext", [&] { ev.add(b, p); }},
      {"sub plaintext", [&] { ev.sub(b, p); }},
      {"add constant", [&] { ev.add(b, Complex(1.0)); }},
      {"multiply_integer", [&] { ev.multiply_integer(b, 2); }},
      {"multiply_monomial", [&] { ev.multiply_monomial(b, 2); }},
      {"multiply plaintext", [&] { ev.multiply(b, p); }},
      {"multiply constant", [&] { ev.multiply(b, Complex(0.5)); }},
      {"multiply", [&] { ev.multiply(a, b); }},
      {"square", [&] { ev.square(b); }},
      {"multiply_lazy", [&] { ev.multiply_lazy(a, b); }},
      {"square_lazy", [&] { ev.square_lazy(b); }},
      {"relinearise", [&] { ev.relinearise(lazy); }},
      {"multiply_rescale", [&] { ev.multiply_rescale(a, b); }},
      {"relinearise_rescale", [&] { ev.relinearise_rescale(lazy); }},
      {"rescale", [&] { ev.rescale(b); }},
      {"adjust_level", [&] { ev.adjust_level(b, 0); }},
      {"rotate", [&] { ev.rotate(b, 1); }},
      {"rotate by 0", [&] { ev.rotate(b, 0); }},
      {"conjugate", [&] { ev.conjugate(b); }},
      {"rotate_many", [&] { ev.rotate_many(b, steps); }},
      {"rotate_sum", [&] { ev.rotate_sum(b, steps); }},
      {"sum_slots", [&] { ev.sum_slots(b, 2); }},
      {"polynomial", [&] { ev.polynomial(b, values_); }},
      {"operand +", [&] { Operand(ev, a.clone()).add(b); }},
      {"operand *", [&] { Operand(ev, a.clone()).multiply(b); }},
      {"staged", [&] { w().context.evaluator(w().keys.staged(u64(1) << 30)).rotate(b, 1); }},
      {"decrypt", [&] { w().client.decrypt(b); }},
      {"decrypt_to_plaintext", [&] { w().client.decrypt_to_plaintext(b); }},
  };
  for (const auto& [name, call] : calls) {
    SCOPED_TRACE(name);
    expect_theirs_refused(call);
  }
  // Nothing was harmed.
  EXPECT_LT(std::abs(w().client.decrypt(ev.add(a, a))[0] - 1.0), 1e-4);
  EXPECT_LT(std::abs(other().decrypt(b)[0] - 0.5), 1e-4);
}

TEST_P(CkksSecretKeyId, WithoutKeysTwoClientsDoNotMixEither) {
  const Evaluator ev = w().context.evaluator({});
  const Ciphertext a = ours(), b = theirs();
  EXPECT_EQ(ev.add(b, b).secret_key_id(), other().secret_key_id());
  for (const auto& call : {std::function<void()>([&] { ev.add(a, b); }),
                           {[&] { ev.sub(a, b); }},
                           {[&] { ev.multiply_lazy(a, b); }}})
    expect_theirs_refused(call);
  const Ciphertext* parts[] = {&a, &b};
  const auto e = test::expect_error<StateError>([&] { concatenate(parts); });
  EXPECT_EQ(e.field("found"), other().secret_key_id().text());
  EXPECT_EQ(e.field("expected"), w().client.secret_key_id().text());
  EXPECT_EQ(e.field("part"), "1");
  // A missing key is still the error where one is missing.
  EXPECT_THROW(ev.rotate(b, 1), KeyMissingError);
}

TEST_P(CkksSecretKeyId, AForgedFileDecryptsForNobodyElse) {
  const Context& c = w().context;
  const Ciphertext b = ciphertext_from_bytes(c, to_bytes(c, theirs()));
  expect_theirs_refused([&] { w().client.decrypt(b); });
  const Evaluator ev =
      c.evaluator(evaluation_keys_from_bytes(c, to_bytes(c, other().evaluation_keys({{1}}))));
  expect_mixed([&] { ev.rotate(ours(), 1); }, w().client.secret_key_id(), other().secret_key_id());
  const auto key = public_key_from_bytes(c, to_bytes(c, other().public_key()));
  expect_theirs_refused([&] { w().client.decrypt(key.encrypt(c.encode(values_))); });
}

TEST_P(CkksSecretKeyId, RecordingsBelongToTheirClient) {
  const Evaluator& ev = w().ev;
  const auto twice = [&](std::span<const Ciphertext> in) {
    Outputs out;
    out.push_back(ev.add(in[0], in[0]));
    return out;
  };
  Outputs a, b;
  a.push_back(ours()), b.push_back(theirs());
  Graph graph(ev, a, twice);
  expect_theirs_refused([&] { graph.replay(b); });
  EXPECT_EQ(graph.replay(a)[0].secret_key_id(), w().client.secret_key_id());
  expect_theirs_refused([&] { Graph(ev, b, twice); });
  // Also where no keys are used.
  const Evaluator bare = w().context.evaluator({});
  Graph keyless(bare, a, [&](std::span<const Ciphertext> in) {
    Outputs out;
    out.push_back(bare.negate(in[0]));
    return out;
  });
  expect_theirs_refused([&] { keyless.replay(b); });
}

TEST_P(CkksSecretKeyId, KeyedReplaysServeEveryClientAlone) {
  const Evaluator theirs_ev =
      w().context.evaluator(other().evaluation_keys({{1}, false, true, false}));
  const Graph::KeyedFunction body = [](const Evaluator& ev, std::span<const Ciphertext> in) {
    Outputs out;
    out.push_back(ev.rotate(ev.multiply_rescale(in[0], in[1]), 1));
    return out;
  };
  Outputs a, b, mixed;
  a.push_back(ours()), a.push_back(ours());
  b.push_back(theirs()), b.push_back(theirs());
  mixed.push_back(ours()), mixed.push_back(theirs());
  expect_theirs_refused([&] { Graph(w().ev, mixed, body); });
  Graph graph(w().ev, a, body);
  for (int round = 0; round < 2; ++round) {
    const Outputs mine = graph.replay(w().ev, a), others = graph.replay(theirs_ev, b);
    EXPECT_EQ(mine[0].secret_key_id(), w().client.secret_key_id());
    EXPECT_EQ(others[0].secret_key_id(), other().secret_key_id());
    EXPECT_LT(std::abs(w().client.decrypt(mine[0])[0] - 0.0625), 1e-4);
    EXPECT_LT(std::abs(other().decrypt(others[0])[0] - 0.0625), 1e-4);
  }
  expect_theirs_refused([&] { graph.replay(w().ev, b); });
  expect_mixed([&] { graph.replay(theirs_ev, a); }, w().client.secret_key_id(),
               other().secret_key_id());
  EXPECT_THROW(graph.replay(w().ev, mixed), StateError);
  // What is no argument would be of whoever recorded: it cannot be recorded.
  const Ciphertext constant = ours();
  EXPECT_THROW(Graph(w().ev, a,
                     Graph::KeyedFunction([&](const Evaluator& ev, std::span<const Ciphertext> in) {
                       Outputs out;
                       out.push_back(ev.add(in[0], constant));
                       return out;
                     })),
               StateError);
  EXPECT_THROW(
      Graph(w().ev, a, Graph::KeyedFunction([&](const Evaluator&, std::span<const Ciphertext>) {
              Outputs out;
              out.push_back(constant.clone());
              return out;
            })),
      StateError);
}

CRENEL_DEVICE_SUITE(CkksSecretKeyId);

}  // namespace
}  // namespace crenel::ckks
