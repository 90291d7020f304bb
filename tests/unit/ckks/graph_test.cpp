// Recorded evaluations replay to the same bits, and refuse inputs of another signature.
#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

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

std::vector<u8> bits(const Ciphertext& c) {
  const auto& poly = c.data().poly;
  std::vector<u8> bytes(poly.bytes());
  poly.stream().synchronize();
  poly.stream().copy_out(bytes.data(), poly.data(), bytes.size());
  return bytes;
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

CRENEL_DEVICE_SUITE(CkksGraph);

}  // namespace
}  // namespace crenel::ckks
