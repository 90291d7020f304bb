// Matrices of blocks against the product in the clear: absent blocks, strides, batches, keys, and
// the refusals.
#include "crenel/circuits/block_transform.h"

#include "circuits/linear_transform/block_plan.h"
#include "support/circuits.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using ckks::Evaluator;
using test::expect_error;
using test::Values;
using test::with;

/// Random blocks of which about every third is absent, no output empty, some diagonals zero.
BlockMatrix random_blocks(test::Rng& rng, u32 outputs, u32 inputs, u64 slots) {
  const auto draw = [&](u64 below) {
    return std::uniform_int_distribution<u64>(0, below - 1)(rng);
  };
  BlockMatrix blocks(outputs);
  for (u32 o = 0; o < outputs; ++o) {
    const u32 kept = static_cast<u32>(draw(inputs));
    for (u32 i = 0; i < inputs; ++i) {
      if (i != kept && draw(3) == 0) {
        blocks[o].emplace_back();
        continue;
      }
      std::vector<u64> offsets;
      for (u64 count = 1 + draw(5); count > 0; --count) offsets.push_back(draw(slots));
      auto& block = blocks[o].emplace_back(test::random_diagonals(rng, slots, offsets));
      if (draw(4) == 0) block->diagonals.begin()->second.assign(slots, 0.0);
    }
  }
  return blocks;
}

std::vector<Values> products_of(const BlockMatrix& blocks, const std::vector<Values>& in) {
  std::vector<Values> out(blocks.size(), Values(in[0].size()));
  for (std::size_t o = 0; o < blocks.size(); ++o)
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!blocks[o][i]) continue;
      const Values part = test::apply(*blocks[o][i], in[i]);
      for (std::size_t k = 0; k < part.size(); ++k) out[o][k] += part[k];
    }
  return out;
}

/// What the model bounds of each output, for inputs of at most 1.
std::vector<double> model_errors(test::World& w, const BlockTransform& t) {
  const ckks::ErrorModel model(w.params());
  const std::vector<ckks::ErrorBound> in(
      t.inputs(), model.input(std::sqrt(2.0), false, t.level(), 0.0, t.slots()));
  std::vector<double> errors;
  for (const auto& bound : t(model, in)) errors.push_back(bound.max);
  return errors;
}

class BlockTransforms : public test::SchemeTest {
 protected:
  void expect_products(test::World& w, const BlockMatrix& blocks,
                       const LinearTransformOptions& options, test::Rng& rng, u32 batch = 1) {
    const BlockTransform t(w.context, blocks, options);
    ASSERT_EQ(t.outputs(), blocks.size());
    ASSERT_EQ(t.inputs(), blocks[0].size());
    const Evaluator ev = test::evaluator_with(w, t.rotations());
    std::vector<Values> values;
    std::vector<Ciphertext> in;
    for (u32 i = 0; i < t.inputs(); ++i) {
      values.push_back(test::random_values(rng, batch * t.slots()));
      in.push_back(w.client.encrypt(values.back(), t.level(), 0.0, t.slots(), batch));
    }
    const auto before = test::bits(in[0]);
    const auto out = t(ev, in);
    ASSERT_EQ(out.size(), blocks.size());
    const auto expected = products_of(blocks, values);
    const auto errors = model_errors(w, t);
    for (std::size_t o = 0; o < out.size(); ++o) {
      EXPECT_EQ(out[o].level() + 1, t.level());
      EXPECT_EQ(out[o].scale(), w.params().scale(out[o].level()));
      EXPECT_EQ(out[o].slots(), t.slots());
      EXPECT_EQ(out[o].batch(), batch);
      EXPECT_LT(test::max_error(w.client.decrypt(out[o]), expected[o]), errors[o])
          << "output " << o;
      EXPECT_LT(errors[o], 0.01) << "a bound that says nothing";
    }
    EXPECT_EQ(test::bits(in[0]), before) << "an input has changed";
  }
};

TEST_P(BlockTransforms, RandomBlocksWithAbsentOnes) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const std::pair<u32, u32> shapes[] = {{1, 1}, {3, 1}, {1, 3}, {2, 2}, {3, 4}};
  for (const auto& [outputs, inputs] : shapes)
    for (u64 slots : {u64(16), w.slots()}) {
      if (!exhaustive() && slots != 16 && outputs != 3) continue;
      SCOPED_TRACE(cat(outputs, " x ", inputs, " blocks of ", slots, " slots"));
      expect_products(w, random_blocks(rng, outputs, inputs, slots), {}, rng);
    }
}

TEST_P(BlockTransforms, DenseBlocksAndMinimalKeysAndBatches) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  BlockMatrix dense(2);
  for (auto& row : dense)
    for (int i = 0; i < 2; ++i) row.emplace_back(test::random_dense(rng, 8, 8, 8));
  expect_products(w, dense, {}, rng, 3);
  expect_products(w, dense, with(KeyMode::minimal, 3), rng, 2);
  expect_products(w, random_blocks(rng, 2, 3, 8), with(KeyMode::minimal), rng);
  for (u64 baby_steps : {1u, 2u, 16u})
    expect_products(w, dense, with(KeyMode::hoisted, 2, baby_steps), rng);
}

TEST_P(BlockTransforms, OutputsThatNeedTheirOwnGiantSteps) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto block = [&](std::vector<u64> offsets) {
    return std::optional(test::random_diagonals(rng, 64, offsets));
  };
  // No giant step 0 in either; in one; an input that nobody takes; outputs 0 and 2 share a step
  // that output 1 has not.
  expect_products(w, {{block({8}), {}}, {{}, block({16})}}, with(KeyMode::hoisted, {}, 4), rng);
  expect_products(w, {{block({0}), {}}, {{}, block({16})}}, with(KeyMode::hoisted, {}, 4), rng);
  expect_products(w, {{{}, block({3, 9}), {}}, {{}, block({1}), {}}}, {}, rng);
  expect_products(w, {{block({1, 9})}, {block({2, 17})}, {block({3, 9})}},
                  with(KeyMode::hoisted, {}, 8), rng);
}

TEST_P(BlockTransforms, OneBlockIsALinearTransformBitForBit) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
    const DiagonalMatrix m = test::random_dense(rng, 7, 12, 16);
    const LinearTransform one(w.context, m, with(keys));
    const BlockTransform block(w.context, {{m}}, with(keys));
    EXPECT_EQ(one.rotations(), block.rotations());
    EXPECT_EQ(one.plaintext_bytes(), block.plaintext_bytes());
    const Evaluator ev = test::evaluator_with(w, one.rotations());
    std::vector<Ciphertext> in;
    in.push_back(w.client.encrypt(test::random_values(rng, 16), {}, 0.0, 16));
    EXPECT_EQ(test::bits(one(ev, in[0])), test::bits(block(ev, in)[0]));
    const ckks::ErrorModel model(w.params());
    const ckks::ErrorBound bound = model.input(1.0, false, {}, 0.0, 16);
    EXPECT_EQ(one(model, bound).max, block(model, std::span(&bound, 1))[0].max);
    EXPECT_EQ(one(model, bound).rms,
              block_transform_bounds(model, {{m}}, std::span(&bound, 1), with(keys))[0].rms);
  }
}

TEST(BlockPlans, InputsMeetOnlyWhatTheyUse) {
  auto rng = test::test_rng();
  const u64 few[] = {0, 1}, many[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const DiagonalMatrix a = test::random_diagonals(rng, 16, few),
                       b = test::random_diagonals(rng, 16, many);
  const BlockPlan plan = plan_blocks({{&a, nullptr}, {nullptr, &b}}, many, 16, 4, KeyMode::hoisted);
  ASSERT_EQ(plan.steps.babies.size(), 4u);
  EXPECT_EQ(plan.columns[0].babies, (std::vector<u64>{0, 1}));
  EXPECT_EQ(plan.columns[0].rows, (std::vector<u32>{0}));
  EXPECT_EQ(plan.columns[1].babies.size(), 4u);
  EXPECT_EQ(plan.rows.size(), 2u + 3u);
  EXPECT_EQ(plan.sums_of(0), 1u);
  EXPECT_EQ(plan.sums_of(1), 4u);
  EXPECT_EQ(plan.diagonals, 18u);
}

// Every place of a column is in one part, and in no more than one.
void expect_parts(const BlockPlan::Column& column) {
  std::vector<u32> rows;
  for (const auto& part : column.parts) {
    rows.insert(rows.end(), part.rows.begin(), part.rows.end());
    EXPECT_FALSE(part.babies.empty());
    EXPECT_TRUE(std::ranges::is_sorted(part.babies));
    EXPECT_LT(part.babies.back(), column.babies.size());
  }
  std::vector<u32> all(column.rows.size());
  for (u32 r = 0; r < all.size(); ++r) all[r] = r;
  EXPECT_EQ(rows, all);
}

TEST(BlockPlans, SumsOfTheirOwnStepsHavePartsOfTheirOwn) {
  auto rng = test::test_rng();
  for (u32 outputs : {1u, 8u, 9u, 24u, 30u}) {
    std::vector<u64> offsets;
    std::vector<DiagonalMatrix> blocks;
    for (u64 k = 0; k < outputs; ++k) {
      const u64 own[] = {2 * k, 2 * k + 1};
      offsets.insert(offsets.end(), own, own + 2);
      blocks.push_back(test::random_diagonals(rng, 64, own));
    }
    BlockPointers pointers;
    for (const auto& block : blocks) pointers.push_back({&block});
    const BlockPlan plan = plan_blocks(pointers, offsets, 64, 64, KeyMode::hoisted);
    const auto& parts = plan.columns[0].parts;
    expect_parts(plan.columns[0]);
    EXPECT_EQ(parts.size(), outputs < 16 ? 1u : (outputs + 7) / 8);
    u64 places = 0;
    for (const auto& part : parts) places += part.rows.size() * part.babies.size();
    if (outputs > 16) {
      EXPECT_LE(places, 8 * plan.diagonals);
    }
  }
}

TEST(BlockPlans, StepsThatManySumsNeedStayTogether) {
  auto rng = test::test_rng();
  const u64 offsets[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const DiagonalMatrix dense = test::random_diagonals(rng, 64, offsets);
  const u64 far[] = {0, 40};
  const DiagonalMatrix shared = test::random_diagonals(rng, 64, far);
  for (const DiagonalMatrix* block : {&dense, &shared}) {
    std::vector<u64> used;
    for (const auto& [offset, values] : block->diagonals) used.push_back(offset);
    const BlockPlan plan = plan_blocks(BlockPointers(32, {block}), used, 64, 64, KeyMode::hoisted);
    EXPECT_EQ(plan.columns[0].parts.size(), 1u);
    expect_parts(plan.columns[0]);
  }
}

// A transpose of 128 x 128 values in 2^14 slots has 255 diagonals at multiples of 127, some of
// which wrap around: steps of powers of two need hundreds of rotations.
TEST(BlockPlans, AnyCommonStrideHasFewSteps) {
  for (u64 d : {u64(16), u64(32), u64(128)})
    for (u64 slots : {d * d, 2 * d * d}) {
      std::vector<u64> offsets;
      for (i64 j = 1 - i64(d); j < i64(d); ++j)
        offsets.push_back(static_cast<u64>(j * (i64(d) - 1)) & (slots - 1));
      const Bsgs plan = plan_bsgs(offsets, slots, 0, KeyMode::hoisted);
      EXPECT_LE(static_cast<double>(plan.rotations.size()), 3.0 * std::sqrt(2.0 * double(d))) << d;
      // Every offset is a baby step and a giant step.
      for (u64 k : offsets) {
        bool found = false;
        for (u64 g : plan.giants)
          for (u64 b : plan.babies) found = found || (g + b) % slots == k;
        EXPECT_TRUE(found) << k;
      }
      EXPECT_EQ(plan.giants[0], 0u);
      EXPECT_LE(linear_transform_rotations(offsets, slots, 0, KeyMode::minimal).size(), 2u);
    }
}

TEST_P(BlockTransforms, TransposesOfMatrices) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const u64 d = 16, slots = d * d;
  DiagonalMatrix transpose{slots, {}};
  for (u64 i = 0; i < d; ++i)
    for (u64 j = 0; j < d; ++j) {
      auto& diagonal = transpose.diagonals[(j * d + i + slots - (i * d + j)) % slots];
      diagonal.resize(slots);
      diagonal[i * d + j] = 1.0;
    }
  for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
    const LinearTransform t(w.context, transpose, with(keys));
    EXPECT_LE(t.rotations().size(), keys == KeyMode::hoisted ? 16u : 2u);
    const Values v = test::random_values(rng, slots);
    const Ciphertext in = w.client.encrypt(v, {}, 0.0, slots);
    EXPECT_LT(test::max_error(w.client.decrypt(t(test::evaluator_with(w, t.rotations()), in)),
                              test::apply(transpose, v)),
              test::tolerance(w.params(), 2.0));
  }
}

TEST_P(BlockTransforms, BoundsOfTheInputsGiveThoseOfTheOutputs) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const BlockMatrix blocks = {{test::random_dense(rng, 8, 8, 8), test::random_dense(rng, 8, 8, 8)},
                              {test::random_dense(rng, 8, 8, 8), {}}};
  const BlockTransform t(w.context, blocks, with(KeyMode::hoisted, 1));
  const Evaluator ev = test::evaluator_with(w, t.rotations());
  const auto encrypt = [&](double bound) {
    return w.client.encrypt(test::random_values(rng, 8, 0.5), 1, 0.0, 8, 1, bound);
  };
  const double a = test::row_norm(*blocks[0][0]), b = test::row_norm(*blocks[0][1]);
  std::vector<Ciphertext> in;
  in.push_back(encrypt(1.0)), in.push_back(encrypt(2.0));
  const auto out = t(ev, in);
  EXPECT_NEAR(out[0].bound() / (a + 2.0 * b), 1.0, 1e-12);
  EXPECT_NEAR(out[1].bound() / test::row_norm(*blocks[1][0]), 1.0, 1e-12);
  in[1] = w.client.encrypt(test::random_values(rng, 8, 0.5), 1, 0.0, 8);
  const auto unknown = t(ev, in);
  EXPECT_EQ(unknown[0].bound(), ckks::kUnknownBound);
  EXPECT_NEAR(unknown[1].bound() / test::row_norm(*blocks[1][0]), 1.0, 1e-12);
  // Each would fit alone.
  const double most = w.params().max_value(0), part = 0.6 * most;
  in[0] = encrypt(part / a), in[1] = encrypt(part / b);
  const auto e = expect_error<StateError>([&] { t(ev, in); });
  EXPECT_EQ(e.field("operation"), "block_transform");
}

TEST_P(BlockTransforms, MissingKeysAllAtOnce) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const u64 some[] = {1, 9}, others[] = {2, 18};
  const BlockTransform t(
      w.context,
      {{test::random_diagonals(rng, 32, some)}, {test::random_diagonals(rng, 32, others)}},
      with(KeyMode::hoisted, 2, 8));
  std::vector<Ciphertext> in;
  in.push_back(w.client.encrypt(Values(32, 1.0), 2u, 0.0, 32));
  std::multiset<std::string> all;
  for (i64 step : t.rotations()) all.insert(cat(step));
  EXPECT_GE(all.size(), 4u);
  const auto e = expect_error<KeyMissingError>([&] { t(w.context.evaluator({}), in); });
  EXPECT_EQ(test::names_in(e), all) << e.what();
  const u64 both[] = {1, 2, 9, 18};
  EXPECT_EQ(t.rotations(), linear_transform_rotations(both, 32, 8, KeyMode::hoisted, 1, 2));
}

TEST_P(BlockTransforms, RefusesInputsThatDoNotFit) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const BlockTransform t(w.context,
                         {{test::random_dense(rng, 4, 4, 8), test::random_dense(rng, 4, 4, 8)}},
                         with(KeyMode::hoisted, 4));
  const Evaluator ev = test::evaluator_with(w, t.rotations());
  const auto encrypt = [&](u32 level, u64 slots, double scale = 0.0, u32 batch = 1) {
    return w.client.encrypt(Values(slots * batch, 0.5), level, scale, slots, batch);
  };
  const auto refused = [&](Ciphertext second) {
    std::vector<Ciphertext> in;
    in.push_back(encrypt(4, 8)), in.push_back(std::move(second));
    return expect_error<StateError>([&] { t(ev, in); });
  };
  EXPECT_EQ(refused(encrypt(3, 8)).field("level"), "3");
  EXPECT_EQ(refused(encrypt(5, 8)).field("expected"), "4");
  EXPECT_EQ(refused(encrypt(4, 16)).field("slots"), "16");
  refused(encrypt(4, 8, 2.0 * w.params().scale(4)));
  refused(encrypt(4, 8, 0.0, 2));
  auto stranger = w.context.keygen();
  refused(stranger.encrypt(Values(8, 0.5), 4u, 0.0, 8));
  std::vector<Ciphertext> one;
  one.push_back(encrypt(4, 8));
  const auto e = expect_error<StateError>([&] { t(ev, one); });
  EXPECT_EQ(e.field("inputs"), "1");
  EXPECT_EQ(e.field("expected"), "2");
  const ckks::ErrorModel model(w.params());
  const ckks::ErrorBound bound = model.input(1.0, false, 4, 0.0, 8);
  EXPECT_THROW(t(model, std::span(&bound, 1)), StateError);
}

TEST_P(BlockTransforms, RefusesBlocksThatAreNone) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const std::optional<DiagonalMatrix> m = test::random_dense(rng, 4, 4, 8), none,
                                      other = test::random_dense(rng, 4, 4, 16),
                                      empty = DiagonalMatrix{8, {}};
  const auto refused = [&](const BlockMatrix& blocks) {
    return expect_error<ParameterError>([&] { BlockTransform(w.context, blocks); });
  };
  EXPECT_EQ(refused({}).field("outputs"), "0");
  EXPECT_EQ(refused({{}}).field("outputs"), "1");
  EXPECT_EQ(refused({{m, m}, {m}}).field("output"), "1");
  EXPECT_EQ(refused({{m, m}, {none, none}}).field("output"), "1");
  EXPECT_EQ(refused({{m, other}}).field("input"), "1");
  EXPECT_EQ(refused({{m}, {other}}).field("expected"), "8");
  EXPECT_EQ(refused({{m, empty}}).field("input"), "1");
  DiagonalMatrix infinite = *m;
  infinite.diagonals.begin()->second[3] = {0.0, std::numeric_limits<double>::infinity()};
  EXPECT_NE(std::string(refused({{m}, {infinite}}).what()).find("block (1, 0)"), std::string::npos);
  const u64 offsets[] = {1};
  for (u64 count : {u64(0), u64(1) << 40}) {
    const auto e = expect_error<ParameterError>(
        [&] { linear_transform_rotations(offsets, 8, 0, KeyMode::hoisted, 1, count); });
    EXPECT_EQ(e.field("outputs"), cat(count));
  }
}

TEST_P(BlockTransforms, ACheckedEvaluatorKnowsTheProducts) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const BlockMatrix blocks = random_blocks(rng, 2, 2, 16);
  const BlockTransform t(w.context, blocks, with(KeyMode::hoisted, 1));
  const Evaluator ev = test::evaluator_with(w, t.rotations()), checked = ev.checked(w.client);
  std::vector<Ciphertext> in;
  for (int i = 0; i < 2; ++i)
    in.push_back(w.client.encrypt(test::random_values(rng, 32), 1, 0.0, 16, 2));
  const auto plain = t(ev, in), watched = t(checked, in);
  for (int o = 0; o < 2; ++o) EXPECT_EQ(test::bits(plain[o]), test::bits(watched[o]));
  // A result that leaves the range of its level is found.
  const DiagonalMatrix half{16, {{0, Values(16, 0.6)}}};
  const BlockTransform sum(w.context, {{half, half}}, with(KeyMode::hoisted, 1));
  std::vector<Ciphertext> large;
  for (int i = 0; i < 2; ++i)
    large.push_back(w.client.encrypt(Values(16, 0.95 * w.params().max_value(0)), 1, 0.0, 16));
  const auto e = expect_error<StateError>([&] { sum(checked, large); });
  EXPECT_EQ(e.field("operation"), "block_transform");
}

TEST_P(BlockTransforms, AbsentBlocksTakeNoMemory) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const DiagonalMatrix m = test::random_dense(rng, 16, 16, 16);
  const BlockMatrix diagonal = {{m, {}}, {{}, m}}, full = {{m, m}, {m, m}};
  const auto bytes = [&](const BlockMatrix& blocks) {
    const BlockTransform t(w.context, blocks, with(KeyMode::hoisted, 2, 4));
    EXPECT_EQ(t.plaintext_bytes(),
              plaintext_bytes_of(w.context, blocks, with(KeyMode::hoisted, 2, 4)));
    return t.plaintext_bytes();
  };
  EXPECT_EQ(2 * bytes(diagonal), bytes(full));
}

// Outputs of which each has steps of its own: their zeros are not stored, and change no bit.
TEST_P(BlockTransforms, OutputsOfTheirOwnStepsHaveTheBitsThatTheyHaveAlone) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  constexpr u32 kOutputs = 20;
  BlockMatrix blocks;
  for (u64 k = 0; k < kOutputs; ++k) {
    const u64 own[] = {2 * k, 2 * k + 1};
    blocks.emplace_back().emplace_back(test::random_diagonals(rng, 64, own));
  }
  for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
    const auto options = with(keys, 2, 64);
    const BlockTransform t(w.context, blocks, options);
    EXPECT_EQ(t.plaintext_bytes(), plaintext_bytes_of(w.context, blocks, options));
    const Evaluator ev =
        w.context.evaluator(w.client.evaluation_keys({t.rotations(), false, false}));
    std::vector<Ciphertext> in;
    in.push_back(w.client.encrypt(test::random_values(rng, 128), 2u, 0.0, 64, 2));
    const auto out = t(ev, in);
    u64 apart = 0;
    for (u32 o = 0; o < kOutputs; ++o) {
      const BlockTransform one(w.context, {blocks[o]}, options);
      apart += one.plaintext_bytes();
      if (keys == KeyMode::hoisted) {
        EXPECT_EQ(test::bits(one(ev, in)[0]), test::bits(out[o])) << "output " << o;
      }
    }
    if (keys == KeyMode::hoisted) {
      EXPECT_LE(t.plaintext_bytes(), 8 * apart);
    }
  }
}

TEST_P(BlockTransforms, SameBitsOnEveryDeviceAndRun) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const BlockMatrix blocks = random_blocks(rng, 2, 3, 32);
  for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
    const BlockTransform t(w.context, blocks, with(keys, 2));
    const auto rotation_keys = w.client.evaluation_keys({t.rotations(), false, false});
    std::vector<Ciphertext> in, copies;
    const ckks::Context ref(w.params(), "ref");
    for (int i = 0; i < 3; ++i) {
      in.push_back(w.client.encrypt(test::random_values(rng, 64), 2u, 0.0, 32, 2));
      copies.push_back(ckks::ciphertext_from_bytes(ref, ckks::to_bytes(w.context, in.back())));
    }
    const Evaluator ev = w.context.evaluator(rotation_keys);
    const Evaluator on_ref = ref.evaluator(
        ckks::evaluation_keys_from_bytes(ref, ckks::to_bytes(w.context, rotation_keys)));
    const auto out = t(ev, in), again = t(ev, in);
    const auto expected = BlockTransform(ref, blocks, with(keys, 2))(on_ref, copies);
    for (std::size_t o = 0; o < out.size(); ++o) {
      EXPECT_EQ(test::bits(again[o]), test::bits(out[o])) << "output " << o;
      EXPECT_EQ(test::bits(expected[o]), test::bits(out[o])) << "output " << o;
    }
  }
}

CRENEL_FAST_DEVICE_SUITE(BlockTransforms);

}  // namespace
}  // namespace crenel::circuits
