// Recorded evaluations replay to the same bits, and refuse inputs of another signature.
#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::bits;
using test::Complex;
using test::Values;

class CkksGraph : public test::SchemeTest {};

// A bit of everything.
std::vector<Ciphertext> circuit(const Evaluator& ev, std::span<const Ciphertext> in) {
  const Ciphertext product = ev.multiply_rescale(in[0], in[1]);
  const i64 steps[] = {0, 1, -2};
  const Ciphertext sum = ev.rotate_sum(product, steps);
  const Ciphertext lowered = ev.adjust_level(in[0], product.level());
  std::vector<Ciphertext> out;
  out.push_back(ev.add(ev.conjugate(sum), ev.rotate(lowered, 3)));
  out.push_back(ev.polynomial(product, std::vector<double>{0.5, 0.25, 0.0, -0.125}));
  return out;
}

TEST_P(CkksGraph, ReplayEqualsEager) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto fresh = [&] {
    std::vector<Ciphertext> in;
    for (int k = 0; k < 2; ++k) in.push_back(w.client.encrypt(test::random_values(rng, w.slots())));
    return in;
  };
  const auto first = fresh();
  Graph graph(w.ev, first, [&](std::span<const Ciphertext> in) { return circuit(w.ev, in); });
  for (int round = 0; round < 3; ++round) {
    const auto inputs = fresh();
    const auto before = bits(inputs[0]);
    const auto eager = circuit(w.ev, inputs);
    const auto& replayed = graph.replay(inputs);
    ASSERT_EQ(replayed.size(), eager.size());
    for (u64 i = 0; i < eager.size(); ++i) {
      EXPECT_EQ(replayed[i].level(), eager[i].level());
      EXPECT_EQ(replayed[i].scale(), eager[i].scale());
      EXPECT_EQ(bits(replayed[i]), bits(eager[i])) << "output " << i << " round " << round;
    }
    EXPECT_EQ(bits(inputs[0]), before);
  }
}

TEST_P(CkksGraph, EagerWorkBetweenReplaysDoesNotDisturb) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  std::vector<Ciphertext> in;
  for (int k = 0; k < 2; ++k) in.push_back(w.client.encrypt(test::random_values(rng, w.slots())));
  const auto eager = circuit(w.ev, in);
  Graph graph(w.ev, in, [&](std::span<const Ciphertext> x) { return circuit(w.ev, x); });
  for (int round = 0; round < 3; ++round) {
    std::vector<Ciphertext> others;  // takes and frees blocks of every size the graph uses
    for (int k = 0; k < 4; ++k) others.push_back(w.ev.multiply(in[0], in[1]));
    const auto& out = graph.replay(in);
    const Ciphertext kept = out[1].clone();
    others.clear();
    others = circuit(w.ev, in);
    EXPECT_EQ(bits(out[0]), bits(eager[0]));
    EXPECT_EQ(bits(kept), bits(eager[1]));
  }
}

TEST_P(CkksGraph, SeveralGraphsAndMoves) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  std::vector<Ciphertext> in;
  in.push_back(w.client.encrypt(test::random_values(rng, w.slots())));
  const auto add = [&](std::span<const Ciphertext> x) {
    std::vector<Ciphertext> out;
    out.push_back(w.ev.add(x[0], x[0]));
    return out;
  };
  const auto square = [&](std::span<const Ciphertext> x) {
    std::vector<Ciphertext> out;
    out.push_back(w.ev.square(x[0]));
    return out;
  };
  Graph a(w.ev, in, add), b(w.ev, in, square);
  Graph moved(std::move(b));
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(bits(moved.replay(in)[0]), bits(w.ev.square(in[0])));
    EXPECT_EQ(bits(a.replay(in)[0]), bits(w.ev.add(in[0], in[0])));
  }
}

TEST_P(CkksGraph, EncryptionInsideIsRefused) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Plaintext message = w.context.encode(test::random_values(rng, w.slots()));
  std::vector<Ciphertext> in;
  in.push_back(w.client.encrypt(message));
  const PublicKey anyone = w.client.public_key();
  const auto recorded = [&](auto&& encrypt) {
    return [&w, &in, encrypt] {
      Graph(w.ev, in, [&](std::span<const Ciphertext> x) {
        std::vector<Ciphertext> out;
        out.push_back(w.ev.add(x[0], encrypt()));
        return out;
      });
    };
  };
  for (const auto& record :
       {std::function<void()>(recorded([&] { return w.client.encrypt(message); })),
        std::function<void()>(recorded([&] { return anyone.encrypt(message); }))})
    EXPECT_EQ(test::expect_error<StateError>(record).field("operation"), "encryption");
}

TEST_P(CkksGraph, OutputsThatAreInputsCarryTheNewData) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  std::vector<Ciphertext> first, second;
  first.push_back(w.client.encrypt(test::random_values(rng, w.slots())));
  second.push_back(w.client.encrypt(test::random_values(rng, w.slots())));
  Graph graph(w.ev, first, [](std::span<const Ciphertext> x) {
    std::vector<Ciphertext> out;
    out.push_back(x[0].clone());
    return out;
  });
  const Ciphertext out = graph.replay(second)[0].clone();
  EXPECT_EQ(w.client.decrypt(out), w.client.decrypt(second[0]));
  // Its bytes must not claim the seed of the recorded ciphertext.
  const auto back = ciphertext_from_bytes(w.context, to_bytes(w.context, out));
  EXPECT_EQ(w.client.decrypt(back), w.client.decrypt(second[0]));
}

TEST_P(CkksGraph, RefusesAnotherSignature) {
  auto& w = world("s40");
  auto& other = world("toy-boot40");
  const auto& p = w.params();
  std::vector<Ciphertext> in;
  in.push_back(w.client.encrypt(Values{0.5}, 3u));
  Graph graph(w.ev, in, [&](std::span<const Ciphertext> x) {
    std::vector<Ciphertext> out;
    out.push_back(w.ev.add(x[0], x[0]));
    return out;
  });
  const auto replay = [&](Ciphertext c) {
    std::vector<Ciphertext> one;
    one.push_back(std::move(c));
    return test::expect_error<StateError>([&] { graph.replay(one); });
  };
  auto e = replay(w.client.encrypt(Values{0.5}, 2u));
  EXPECT_EQ(e.field("level"), "2");
  EXPECT_EQ(e.field("expected"), "3");
  EXPECT_EQ(e.field("input"), "0");
  e = replay(w.client.encrypt(Values{0.5}, 3u, p.scale(3) * 2));
  EXPECT_EQ(std::stod(e.field("scale")), p.scale(3) * 2);
  e = replay(w.client.encrypt(Values{0.5}, 3u, 0.0, 16));
  EXPECT_EQ(e.field("slots"), "16");
  e = replay(w.client.encrypt(Values{0.5, 0.5}, 3u, 0.0, 0, 2));
  EXPECT_EQ(e.field("batch"), "2");
  e = replay(w.ev.multiply_lazy(w.client.encrypt(Values{0.5}, 3u, 0x1p20),
                                w.client.encrypt(Values{0.5}, 3u, p.scale(3) / 0x1p20)));
  EXPECT_EQ(e.field("components"), "3");
  e = replay(other.client.encrypt(Values{0.5}, 3u));
  EXPECT_EQ(e.field("found"), other.params().id());
  std::vector<Ciphertext> two;
  for (int k = 0; k < 2; ++k) two.push_back(w.client.encrypt(Values{0.5}, 3u));
  e = test::expect_error<StateError>([&] { graph.replay(two); });
  EXPECT_EQ(e.field("inputs"), "2");
  EXPECT_EQ(e.field("expected"), "1");
  // And still works.
  EXPECT_NEAR(w.client.decrypt(graph.replay(in)[0])[0].real(), 1.0, 1e-6);
}

TEST_P(CkksGraph, AFailingRecordingLeavesTheStreamUsable) {
  auto& w = world("s40");
  std::vector<Ciphertext> in;
  in.push_back(w.client.encrypt(Values{0.5}, 1u));
  const auto fails = [&](std::span<const Ciphertext> x) {
    std::vector<Ciphertext> out;
    out.push_back(w.ev.rescale(w.ev.rescale(x[0])));
    return out;
  };
  EXPECT_THROW(Graph(w.ev, in, fails), StateError);
  int calls = 0;
  const auto fails_later = [&](std::span<const Ciphertext> x) {
    std::vector<Ciphertext> out;
    out.push_back(++calls > 1 ? w.ev.adjust_level(x[0], 9) : w.ev.add(x[0], x[0]));
    return out;
  };
  EXPECT_THROW(Graph(w.ev, in, fails_later), StateError);
  EXPECT_NEAR(w.client.decrypt(w.ev.add(in[0], in[0]))[0].real(), 1.0, 1e-6);
}

// With plaintexts as arguments: both kinds of factors are new in every replay.
std::vector<Ciphertext> plain_circuit(const Evaluator& ev, std::span<const Ciphertext> in,
                                      std::span<const Plaintext> plain) {
  const Ciphertext product = ev.rescale(ev.multiply(in[0], plain[0]));
  std::vector<Ciphertext> out;
  out.push_back(ev.add(ev.rotate(product, 1), ev.adjust_level(in[1], product.level())));
  out.push_back(ev.sub(in[1], plain[1]));
  return out;
}

TEST_P(CkksGraph, PlaintextsAreArguments) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto fresh = [&] {
    std::vector<Ciphertext> in;
    for (int k = 0; k < 2; ++k)
      in.push_back(w.client.encrypt(test::random_values(rng, 3 * w.slots()), {}, 0.0, 0, 3));
    return in;
  };
  // One of a single row, which serves the whole batch, and one of as many.
  const auto encoded = [&] {
    std::vector<Plaintext> plain;
    plain.push_back(w.context.encode(test::random_values(rng, w.slots())));
    plain.push_back(w.context.encode(test::random_values(rng, 3 * w.slots()), {}, 0.0, 0, 3));
    return plain;
  };
  const auto first = fresh();
  const auto plain = encoded();
  const Plaintext* const recorded[] = {&plain[0], &plain[1]};
  const Graph::PlainFunction f = [&](auto in, auto given) {
    return plain_circuit(w.ev, in, given);
  };
  const Graph::KeyedPlainFunction keyed_f = [](const Evaluator& ev, auto in, auto given) {
    return plain_circuit(ev, in, given);
  };
  Graph graph(w.ev, first, recorded, f), keyed(w.ev, first, recorded, keyed_f);
  for (int round = 0; round < 3; ++round) {
    const auto in = fresh();
    const auto given = encoded();
    const Ciphertext* const inputs[] = {&in[0], &in[1]};
    const Plaintext* const plaintexts[] = {&given[0], &given[1]};
    const auto eager = plain_circuit(w.ev, in, given);
    const auto replayed = graph.replay(inputs, plaintexts);
    const auto with_keys = keyed.replay(w.ev, inputs, plaintexts);
    for (u64 i = 0; i < eager.size(); ++i) {
      EXPECT_EQ(bits(replayed[i]), bits(eager[i])) << "output " << i << " round " << round;
      EXPECT_EQ(bits(with_keys[i]), bits(eager[i])) << "output " << i << " round " << round;
    }
  }
}

TEST_P(CkksGraph, PlaintextsOfAnotherSignatureAreRefused) {
  auto& w = world("s40");
  const auto& p = w.params();
  std::vector<Ciphertext> in;
  in.push_back(w.client.encrypt(Values{0.5}, 3u));
  const Ciphertext* const input[] = {&in[0]};
  const std::vector<double> reals{0.5};
  const Plaintext good = w.context.encode(reals, 3u),
                  bounded = w.context.encode(reals, 3u, 0.0, 0, 1, 2.0);
  const Plaintext* const recorded[] = {&good, &bounded};
  Graph graph(w.ev, in, recorded, Graph::PlainFunction([&](auto x, auto plain) {
                std::vector<Ciphertext> out;
                out.push_back(w.ev.add(w.ev.add(x[0], plain[0]), plain[1]));
                return out;
              }));
  const auto refused = [&](const Plaintext& first, const Plaintext& second) {
    const Plaintext* const given[] = {&first, &second};
    return test::expect_error<StateError>([&] { graph.replay(input, given); });
  };
  auto e = refused(w.context.encode(reals, 2u), bounded);
  EXPECT_EQ(e.field("level"), "2");
  EXPECT_EQ(e.field("expected"), "3");
  EXPECT_EQ(e.field("plaintext"), "0");
  e = refused(w.context.encode(reals, 3u, 2.0 * p.scale(3)), bounded);
  EXPECT_EQ(std::stod(e.field("scale")), 2.0 * p.scale(3));
  EXPECT_EQ(refused(w.context.encode(reals, 3u, 0.0, 16), bounded).field("slots"), "16");
  const std::vector<double> two{0.5, 0.5};
  EXPECT_EQ(refused(good, w.context.encode(two, 3u, 0.0, 0, 2)).field("batch"), "2");
  EXPECT_EQ(refused(w.context.encode(Values{{0.5, 0.5}}, 3u), bounded).field("real"), "false");
  e = refused(good, w.context.encode(reals, 3u, 0.0, 0, 1, 4.0));
  EXPECT_EQ(e.field("plaintext"), "1");
  EXPECT_EQ(e.field("bound"), "4");
  auto& other = world("toy-boot40");
  EXPECT_EQ(refused(other.context.encode(reals, 3u), bounded).field("found"), other.params().id());
  // Without: the number is named.
  e = test::expect_error<StateError>([&] { graph.replay(input); });
  EXPECT_EQ(e.field("plaintexts"), "0");
  EXPECT_EQ(e.field("expected"), "2");
  // One without a stated bound may be larger than the recorded one; nothing is left behind.
  const Plaintext large = w.context.encode(std::vector<double>{2.5}, 3u);
  const Plaintext* const given[] = {&large, &bounded};
  EXPECT_NEAR(w.client.decrypt(graph.replay(input, given)[0])[0].real(), 3.5, 1e-6);
}

// What f computes from a plaintext's largest slot would be wrong of a larger one.
TEST_P(CkksGraph, OnlyStatedBoundsOfPlaintextsAreBelieved) {
  auto& w = world("s40");
  std::vector<Ciphertext> in;
  in.push_back(w.client.encrypt(Values{0.5}, 3u, 0.0, 0, 1, 1.0));
  const Ciphertext* const input[] = {&in[0]};
  for (const double bound : {kUnknownBound, 2.0}) {
    const Plaintext plain = w.context.encode(std::vector<double>{0.5}, 3u, 0.0, 0, 1, bound);
    const Plaintext* const given[] = {&plain};
    Graph graph(w.ev, in, given, Graph::PlainFunction([&](auto x, auto p) {
                  std::vector<Ciphertext> out;
                  out.push_back(w.ev.add(x[0], p[0]));
                  return out;
                }));
    EXPECT_EQ(graph.replay(input, given)[0].bound(), 1.0 + bound);
  }
}

CRENEL_FAST_DEVICE_SUITE(CkksGraph);

}  // namespace
}  // namespace crenel::ckks
