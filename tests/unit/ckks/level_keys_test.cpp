// Keys made for the levels up to one: the words of whole keys and the bits of their results at
// every level that they serve, refusals above, and where keys of several levels meet.
#include <atomic>

#include "ckks/evaluator_state.h"
#include "ckks/key_sizes.h"
#include "support/together.h"
#include "support/twins.h"

namespace crenel::ckks {
namespace {

using test::bits;
using test::Twins;
using test::Values;

KeyRequest all_of(std::vector<i64> rotations) { return {std::move(rotations), true, true}; }

const std::vector<i64> kSteps{1, 2, 3, 4, -5};

class LevelKeys : public test::SchemeTest {
 protected:
  std::vector<const char*> sets() const {
    if (!exhaustive()) return {"s40"};
    return {"toy-boot40", "s30", "s40", "s50"};
  }
  std::vector<u32> some_levels(test::Rng& rng, u32 top) const {
    std::vector<u32> all(top + 1);
    for (u32 l = 0; l <= top; ++l) all[l] = l;
    std::shuffle(all.begin(), all.end(), rng);
    all.resize(std::min<std::size_t>(all.size(), exhaustive() ? 4 : 2));
    all.push_back(0);
    return all;
  }
};
CRENEL_FAST_DEVICE_SUITE(LevelKeys);

// Every operation that reads keys, by name, on a ciphertext of any level above 0.
std::map<std::string, std::vector<u32>> results(const Evaluator& ev, const Ciphertext& a) {
  std::map<std::string, std::vector<u32>> out;
  const auto keep = [&](const char* name, const Ciphertext& c) { out[name] = bits(c); };
  keep("rotate", ev.rotate(a, -5));
  keep("conjugate", ev.conjugate(a));
  keep("rotate_many", ev.rotate_many(a, kSteps)[2]);
  const std::vector<i64> steps{0, 1, 3, -5};
  keep("rotate_sum", ev.rotate_sum(a, steps));
  keep("sum_slots", ev.sum_slots(a, 8));
  if (a.level() == 0) return out;
  keep("multiply", ev.multiply(a, a));
  keep("square", ev.square(a));
  keep("multiply_rescale", ev.multiply_rescale(a, a));
  keep("relinearise", ev.relinearise(ev.multiply_lazy(a, a)));
  keep("relinearise_rescale", ev.relinearise_rescale(ev.square_lazy(a)));
  if (a.level() >= 3) {
    const std::vector<double> c{0.1, 0.2, 0.3, 0.4};
    keep("polynomial", ev.polynomial(a, c));
    keep("mapped polynomial", ev.polynomial(a, c, PolynomialBasis::chebyshev, -2.0, 2.0));
  }
  return out;
}

TEST_P(LevelKeys, AreAPartOfWholeKeys) {
  test::Rng rng = test::test_rng();
  for (const char* name : sets()) {
    Twins twins(test::world_params(name), GetParam(), rng());
    const u32 top = twins.context.params().max_level();
    for (u32 level : some_levels(rng, top)) {
      SCOPED_TRACE(cat(name, ", levels up to ", level));
      KeyRequest request = all_of({1, -3});
      const EvaluationKeys whole = twins.whole.evaluation_keys(request);
      request.max_level = level;
      const EvaluationKeys cut = twins.cut.evaluation_keys(request);
      EXPECT_EQ(cut.bytes(), key_sizes(twins.context.params(), request).bytes);
      EXPECT_LE(cut.bytes(), whole.bytes());
      for (rlwe::KeyId id : whole.data()->ids()) {
        const rlwe::SwitchKey &w = *whole.data()->set.find(id), &c = *cut.data()->set.find(id);
        EXPECT_EQ(c.seed, w.seed);
        const auto &limbs = c.pairs.limbs(), &all = w.pairs.limbs();
        for (u32 l = 0; l <= level; ++l)
          EXPECT_TRUE(limbs.contains_all(twins.ring().extended(l))) << "level " << l;
        const u64 n = twins.ring().ring_dim();
        std::vector<u32> found(n), expected(n);
        auto& stream = twins.ring().stream();
        for (u32 d = 0; d < c.pairs.shape().batch; ++d)
          for (u32 half = 0; half < 2; ++half)
            for (u32 l = 0; l < limbs.size(); ++l) {
              stream.copy_out(found.data(), c.pairs.view().limb(d, half, l), 4 * n);
              const auto at = static_cast<u32>(all.find(limbs[l]));
              stream.copy_out(expected.data(), w.pairs.view().limb(d + c.first_digit, half, at),
                              4 * n);
              ASSERT_EQ(found, expected) << "digit " << d << ", half " << half << ", limb " << l;
            }
      }
    }
  }
}

TEST_P(LevelKeys, ResultsAreThoseOfWholeKeysAtEveryLevelServed) {
  test::Rng rng = test::test_rng();
  for (const char* name : exhaustive() ? std::vector{"toy-boot40", "s50"} : sets()) {
    Twins twins(test::world_params(name), GetParam(), rng());
    const Params& params = twins.context.params();
    const u32 top = params.normal_top_level();
    KeyRequest request = all_of(kSteps);
    const Evaluator whole = twins.context.evaluator(twins.whole.evaluation_keys(request));
    const u32 limit = 1 + static_cast<u32>(rng() % (top - 1));
    // Every key of another limit, at least `limit`.
    request.max_level = limit;
    for (i64 k : kSteps)
      request.rotation_levels[k] = limit + static_cast<u32>(rng() % (params.max_level() - limit));
    request.rotation_levels[kSteps[rng() % kSteps.size()]] = limit;
    request.conjugation_level = params.max_level();
    const EvaluationKeys keys = twins.cut.evaluation_keys(request);
    EXPECT_EQ(keys.relinearisation_level(), limit);
    EXPECT_EQ(keys.conjugation_level(), params.max_level());
    for (i64 k : kSteps) EXPECT_EQ(keys.rotation_level(k), request.rotation_levels[k]);
    EXPECT_FALSE(keys.rotation_level(9));
    const Evaluator cut = twins.context.evaluator(keys);
    const Evaluator staged = twins.context.evaluator(keys.staged(keys.bytes() - 1));
    const auto values = test::random_values(rng, params.slots(), 0.5);
    for (u32 level = 0; level <= limit; ++level) {
      if (level != 0 && level != limit && (!exhaustive() || (limit > 4 && rng() % 2))) continue;
      SCOPED_TRACE(cat(name, ", level ", level, " of ", limit));
      const Ciphertext a = twins.whole.encrypt(values, level);
      const auto expected = results(whole, a);
      EXPECT_EQ(results(cut, a), expected);
      EXPECT_EQ(results(staged, a), expected);
    }
  }
}

TEST_P(LevelKeys, AreRefusedAboveTheirLevelBeforeAnyWork) {
  auto& w = world("s40");
  test::Rng rng = test::test_rng();
  const u32 limit = static_cast<u32>(rng() % w.params().normal_top_level());
  KeyRequest request = all_of(kSteps);
  request.max_level = limit;
  const EvaluationKeys keys = w.client.evaluation_keys(request);
  for (const Evaluator& ev :
       {w.context.evaluator(keys), w.context.evaluator(keys.staged(keys.bytes()))}) {
    const Ciphertext a = w.client.encrypt(Values(4, 0.5), limit + 1);
    const auto refused = [&](const auto& call) {
      const auto e = test::expect_error<KeyMissingError>(call);
      EXPECT_EQ(e.field("level"), cat(limit + 1)) << e.what();
      EXPECT_EQ(e.field("max_level"), cat(limit));
      const std::string said = e.what();
      EXPECT_NE(said.find(cat(" levels up to ", limit, ", the operand is at level ", limit + 1)),
                std::string::npos)
          << said;
      EXPECT_NE(said.find(cat("max_level=", limit + 1, ")")), std::string::npos) << said;
      return e;
    };
    EXPECT_EQ(refused([&] { ev.rotate(a, 3); }).field("rotations"), "3");
    EXPECT_EQ(refused([&] { ev.conjugate(a); }).field("key"), "conjugate");
    refused([&] { ev.rotate_many(a, kSteps); });
    const std::vector<i64> mixed{0, 1, 7};
    const auto both = refused([&] { ev.rotate_sum(a, mixed); });
    EXPECT_EQ(both.field("rotations"), "1, 7");
    EXPECT_NE(std::string(both.what()).find("there is no key for 7"), std::string::npos);
    refused([&] { ev.sum_slots(a, 4); });
    EXPECT_EQ(refused([&] { ev.multiply(a, a); }).field("key"), "relinearisation");
    refused([&] { ev.square(a); });
    refused([&] { ev.multiply_rescale(a, a); });
    refused([&] { ev.relinearise(ev.multiply_lazy(a, a)); });
    refused([&] { ev.relinearise_rescale(ev.multiply_lazy(a, a)); });
    EXPECT_NO_THROW(ev.rotate(ev.adjust_level(a, limit), 3));
  }
}

// The map to [-1, 1] takes a level before the first product: a key of the level below will do.
TEST_P(LevelKeys, PolynomialsAskAtTheLevelOfTheirProducts) {
  auto& w = world("s40");
  KeyRequest request{{}, false, true};
  request.max_level = 3;
  const Evaluator ev = w.context.evaluator(w.client.evaluation_keys(request));
  const Ciphertext a = w.client.encrypt(Values(4, 0.5), 4);
  const std::vector<double> c{0.1, 0.2, 0.3, 0.4};
  test::expect_error<KeyMissingError>([&] { ev.polynomial(a, c); });
  EXPECT_NO_THROW(ev.polynomial(a, c, PolynomialBasis::chebyshev, -2.0, 2.0));
}

TEST_P(LevelKeys, OfFewerSlotsAnyKeyOfTheLevelServes) {
  auto& w = world("s40");
  const i64 n = 8;
  KeyRequest request{{1, 1 + n}, false, false};
  request.rotation_levels = {{1, 1}, {1 + n, 4}};
  const Evaluator ev = w.context.evaluator(w.client.evaluation_keys(request));
  const Values x{1, 2, 3, 4, 5, 6, 7, 8};
  for (u32 level : {1u, 3u}) {
    const auto element = ev.state().find_rotation(1, u64(n), level);
    EXPECT_EQ(element,
              ring::galois_element_for_rotation(level == 1 ? 1 : 1 + n, w.params().log_n()));
    const Ciphertext a = w.client.encrypt(x, level, 0.0, u64(n));
    EXPECT_LT(test::max_error(w.client.decrypt(ev.rotate(a, 1)), test::rolled(x, 1)),
              8.0 * test::tolerance(w.params(), 4.0));
  }
  const auto e = test::expect_error<KeyMissingError>(
      [&] { ev.rotate(w.client.encrypt(x, 5, 0.0, u64(n)), 1); });
  EXPECT_EQ(e.field("max_level"), "4") << "the best of those that would do";
}

TEST_P(LevelKeys, OfARecordingAreThoseOfItsReplay) {
  auto& w = world("s40");
  test::Rng rng = test::test_rng();
  const auto keys = [&](Client& client, u32 level) {
    KeyRequest request{{1, 2}, false, true};
    request.max_level = level;
    return w.context.evaluator(client.evaluation_keys(request));
  };
  Client other = w.context.keygen();
  const Graph::KeyedFunction f = [](const Evaluator& ev, std::span<const Ciphertext> in) {
    const std::vector<i64> steps{0, 1, 2};
    std::vector<Ciphertext> out;
    out.push_back(ev.rotate_sum(ev.multiply_rescale(in[0], in[0]), steps));
    return out;
  };
  const Evaluator ev = keys(w.client, 4);
  std::vector<Ciphertext> in, theirs;
  in.push_back(w.client.encrypt(test::random_values(rng, w.slots(), 0.5), 3));
  theirs.push_back(other.encrypt(test::random_values(rng, w.slots(), 0.5), 3));
  Graph graph(ev, in, f);
  const Evaluator same = keys(other, 4), lower = keys(other, 2), higher = keys(other, 6);
  EXPECT_TRUE(graph.serves(same));
  EXPECT_EQ(bits(graph.replay(same, theirs)[0]), bits(f(same, theirs)[0]));
  EXPECT_FALSE(graph.serves(lower));
  EXPECT_FALSE(graph.serves(higher));
  const auto e = test::expect_error<KeyMissingError>([&] { graph.replay(lower, theirs); });
  EXPECT_EQ(e.field("level"), "4");
  EXPECT_EQ(e.field("max_level"), "2");
  test::expect_error<StateError>([&] { graph.replay(higher, theirs); });
  EXPECT_EQ(bits(graph.replay(ev, in)[0]), bits(f(ev, in)[0])) << "refusals change nothing";
}

TEST_P(LevelKeys, StagedInFramesOfTheirSizes) {
  Twins twins(test::world_params("s40"), GetParam(), test::test_rng()());
  const u32 top = twins.context.params().max_level();
  KeyRequest request{{1, 2, 3, 4, -5}, true, true};
  const Evaluator whole = twins.context.evaluator(twins.whole.evaluation_keys(request));
  request.rotation_levels = {{1, 0}, {2, 3}, {3, 1}, {4, 2}, {-5, 0}};
  const EvaluationKeys keys = twins.cut.evaluation_keys(request);
  std::vector<u64> sizes;
  keys.data()->set.for_each([&](const rlwe::SwitchKey& k) { sizes.push_back(k.pairs.bytes()); });
  std::sort(sizes.rbegin(), sizes.rend());
  EXPECT_GT(sizes.front(), sizes.back());
  const auto few =
      test::expect_error<ParameterError>([&] { keys.staged(sizes[0] + sizes[1] - 1); });
  EXPECT_EQ(few.field("expected"), cat(sizes[0] + sizes[1]));
  test::Rng rng = test::test_rng();
  const auto x = test::random_values(rng, twins.context.params().slots(), 0.5);
  const Ciphertext low = twins.whole.encrypt(x, 0), high = twins.whole.encrypt(x, top);
  // Two frames of the largest size, three, and one for every key.
  for (u64 frames : {2, 3, 7}) {
    u64 bytes = 0;
    for (u64 k = 0; k < frames; ++k) bytes += sizes[k];
    const EvaluationKeys staged = keys.staged(bytes);
    EXPECT_EQ(staged.bytes(), bytes);
    EXPECT_EQ(staged.rotation_level(2), 3u);
    const Evaluator ev = twins.context.evaluator(staged);
    for (int round = 0; round < 12; ++round) {
      const i64 pair[] = {kSteps[rng() % 5], kSteps[rng() % 5]};
      EXPECT_EQ(bits(ev.rotate_sum(low, pair)), bits(whole.rotate_sum(low, pair)));
      if (rng() % 2) {
        EXPECT_EQ(bits(ev.conjugate(high)), bits(whole.conjugate(high)));
      }
      if (rng() % 2) {
        EXPECT_EQ(bits(ev.multiply(high, high)), bits(whole.multiply(high, high)));
      }
    }
    std::atomic<u64> wrong{0};
    test::together(8, [&](u64 t) {
      for (int round = 0; round < (exhaustive() ? 4 : 1); ++round) {
        const i64 pair[] = {kSteps[t % 5], kSteps[(t + 2) % 5]};
        if (bits(ev.rotate_sum(low, pair)) != bits(whole.rotate_sum(low, pair))) ++wrong;
        if (t % 2 && bits(ev.conjugate(high)) != bits(whole.conjugate(high))) ++wrong;
      }
    });
    EXPECT_EQ(wrong.load(), 0u) << frames << " frames";
  }
}

TEST(KeyRequests, LevelsThatAreNotThereAreRefused) {
  const Params& params = test::world_params("s40");
  const u32 top = params.max_level();
  const auto refused = [&](const KeyRequest& r, const char* name) {
    const auto e = test::expect_error<ParameterError>([&] { key_sizes(params, r); });
    EXPECT_EQ(e.field(name), cat(top + 1)) << e.what();
    EXPECT_EQ(e.field("expected"), cat("0..", top));
  };
  KeyRequest r = all_of({1, 2});
  r.max_level = top + 1;
  refused(r, "max_level");
  Client client = Context(params, "cpu").keygen();
  test::expect_error<ParameterError>([&] { client.evaluation_keys(r); });
  r.max_level = top;
  EXPECT_EQ(key_sizes(params, r).bytes, key_sizes(params, all_of({1, 2})).bytes);
  r.rotation_levels[2] = top + 1;
  refused(r, "level");
  r.rotation_levels.clear();
  r.conjugation_level = top + 1;
  refused(r, "conjugation_level");
  r.conjugation_level.reset();
  r.relinearisation_level = top + 1;
  refused(r, "relinearisation_level");
}

TEST(KeyRequests, MergedAreTheHigherLevelsOfBoth) {
  const Params& params = test::world_params("s40");
  KeyRequest a{{1, 2, 3}, true, false}, b{{2, 3, 4}, false, true, true};
  a.max_level = 3;
  a.rotation_levels = {{2, 5}};
  a.conjugation_level = 1;
  b.rotation_levels = {{2, 4}};
  b.relinearisation_level = 2;
  for (const KeyRequest& both : {merge(a, b), merge(b, a)}) {
    EXPECT_EQ(both.rotations, (std::vector<i64>{1, 2, 3, 4}));
    EXPECT_EQ(both.rotation_levels, (std::map<i64, u32>{{1, 3}, {2, 5}}));
    EXPECT_TRUE(both.conjugate && both.relinearisation && both.encapsulation);
    EXPECT_EQ(both.conjugation_level, 1u);
    EXPECT_EQ(both.relinearisation_level, 2u);
  }
  const KeyRequest self = merge(a, a);
  EXPECT_EQ(key_sizes(params, self).bytes, key_sizes(params, a).bytes);
  EXPECT_FALSE(self.relinearisation);
  // One key asked for by two numbers serves the higher level of both.
  const i64 slots = static_cast<i64>(params.slots());
  KeyRequest twice{{1, 1 - slots}, false, false};
  twice.rotation_levels = {{1, 2}, {1 - slots, 4}};
  const auto levels = galois_levels(params, twice);
  ASSERT_EQ(levels.size(), 1u);
  EXPECT_EQ(levels.begin()->second, 4u);
}

}  // namespace
}  // namespace crenel::ckks
