// A program as one recording: transforms, plaintexts of every call and bootstraps in it.
#include "ckks/objects.h"
#include "crenel/circuits/block_transform.h"
#include "support/boot_world.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using ckks::Evaluator;
using ckks::Graph;
using ckks::Plaintext;
using test::Values;

constexpr u64 kSlots = 64;

class ProgramGraphs : public test::SchemeTest {};

TEST_P(ProgramGraphs, ReplayEqualsEagerThroughABootstrap) {
  if (GetParam() == "ref") GTEST_SKIP() << "a bootstrap takes it seconds";
  auto& w = test::boot_world(GetParam());
  auto rng = test::test_rng();
  BootstrapOptions options;
  options.slots = kSlots;
  const u32 level = 2;
  const DiagonalMatrix m = test::random_dense(rng, 4, 4, kSlots);
  LinearTransformOptions at;
  at.level = level;
  const BlockTransform blocks(w.context, {{m, {}}, {m, m}}, at);
  ckks::KeyRequest request = bootstrap_key_request(w.params(), options);
  request.rotations.insert(request.rotations.end(), blocks.rotations().begin(),
                           blocks.rotations().end());
  const Evaluator ev = w.context.evaluator(w.client.evaluation_keys(request));
  const Bootstrapper boot(w.context, options);
  // Level 2: blocks, a plaintext product, a bootstrap at level 0, and a product after it.
  const Graph::KeyedPlainFunction program = [&](const Evaluator& on, auto in, auto plain) {
    const std::vector<Ciphertext> sums = blocks(on, in);
    const Ciphertext product = on.rescale(on.multiply(sums[1], plain[0]));
    const Ciphertext fresh = boot(on, product);
    std::vector<Ciphertext> out;
    out.push_back(on.multiply_rescale(fresh, fresh));
    out.push_back(on.adjust_level(sums[0], 0));
    return out;
  };
  const auto fresh = [&] {
    std::vector<Ciphertext> in;
    for (int i = 0; i < 2; ++i)
      in.push_back(w.client.encrypt(test::random_values(rng, kSlots, 0.2), level, 0.0, kSlots));
    return in;
  };
  const auto encoded = [&] {
    return w.context.encode(test::random_values(rng, kSlots, 0.5), level - 1, 0.0, kSlots);
  };
  const auto first = fresh();
  const Plaintext plain = encoded();
  const Plaintext* const recorded[] = {&plain};
  Graph keyed(ev, first, recorded, program);
  Graph fixed(ev, first, recorded,
              Graph::PlainFunction([&](auto in, auto given) { return program(ev, in, given); }));
  const auto in = fresh();
  const Plaintext given = encoded();
  const Ciphertext* const inputs[] = {&in[0], &in[1]};
  const Plaintext* const plaintexts[] = {&given};
  const std::span<const Plaintext> array(&given, 1);
  const auto eager = program(ev, in, array);
  const auto by_keys = keyed.replay(ev, inputs, plaintexts),
             by_own = fixed.replay(inputs, plaintexts);
  for (std::size_t o = 0; o < eager.size(); ++o) {
    EXPECT_EQ(by_keys[o].level(), eager[o].level());
    EXPECT_EQ(test::bits(by_keys[o]), test::bits(eager[o])) << "output " << o;
    EXPECT_EQ(test::bits(by_own[o]), test::bits(eager[o])) << "output " << o;
  }
  // And it is the program that was meant.
  const Values a = w.client.decrypt(in[0]), b = w.client.decrypt(in[1]),
               p = w.context.decode(given), ma = test::apply(m, a), mb = test::apply(m, b);
  const Values found = w.client.decrypt(by_keys[0]);
  double error = 0.0;
  for (u64 i = 0; i < kSlots; ++i) {
    const auto x = (ma[i] + mb[i]) * p[i];
    error = std::max(error, std::abs(found[i] - x * x));
  }
  EXPECT_LT(error, 0x1p-8);
}

CRENEL_DEVICE_SUITE(ProgramGraphs);

}  // namespace
}  // namespace crenel::circuits
