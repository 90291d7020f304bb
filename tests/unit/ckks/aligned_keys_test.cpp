// Keys for aligned levels: where they save a digit, results with them, alone and beside the others,
// and their files.
#include "ckks/evaluator_state.h"
#include "ckks/key_sizes.h"
#include "ckks/params/chain.h"
#include "crenel/ckks/serialize.h"
#include "ring/ring.h"
#include "support/edited_files.h"
#include "support/twins.h"

namespace crenel::ckks {
namespace {

using test::bits;
using test::Twins;
using test::Values;

// By the windows alone: the digits of a level, of blocks that begin `lead` before the first prime.
u32 digits_of(const Params& p, u32 level, u32 lead) {
  std::set<u32> blocks;
  for (u32 at = p.window_begin(level); at < p.window_end(level); ++at)
    blocks.insert((at + lead) / p.alpha());
  return static_cast<u32>(blocks.size());
}

TEST(AlignedLevels, AreThoseWithADigitLess) {
  for (const std::string& name : Params::preset_names()) {
    const Params p = Params::preset(name, true);
    if (p.alpha() == 0) continue;
    const u32 begin = p.window_begin(p.normal_top_level());
    const u32 lead = (p.alpha() - begin % p.alpha()) % p.alpha();
    // Or none at all: digits of some chains would be larger there, or overflow.
    const bool any = p.highest_aligned(p.max_level()).has_value();
    std::optional<u32> highest;
    for (u32 l = 0; any && l <= p.max_level(); ++l) {
      if (p.window_begin(l) == begin && digits_of(p, l, lead) < digits_of(p, l, 0)) highest = l;
      EXPECT_EQ(p.highest_aligned(l), highest) << name << ", level " << l;
    }
    EXPECT_EQ(p.highest_aligned(~u32{0}), highest) << name;
  }
  for (const char* name : {"boot35", "boot45", "boot50"})
    EXPECT_TRUE(Params::preset(name).highest_aligned(Params::preset(name).normal_top_level()));
  const Params p = Params::preset("boot40");
  EXPECT_EQ(p.highest_aligned(p.max_level()), 22u);
  EXPECT_EQ(p.highest_aligned(p.normal_top_level()), 16u);
  EXPECT_EQ(p.highest_aligned(6), std::nullopt);
  EXPECT_EQ(Params::preset("boot30").highest_aligned(33), std::nullopt);
}

TEST(AlignedLevels, AreNumbersOfTheirOwn) {
  using namespace rlwe;
  for (u32 level : {0u, 16u, 255u}) {
    const u32 n = aligned_level(level);
    EXPECT_TRUE(is_aligned(n) && !is_short(n));
    EXPECT_EQ(ordinary(n), level);
    EXPECT_EQ(highest_ordinary(n), level);
    EXPECT_FALSE(is_aligned(level) || is_aligned(short_level(7, level)));
    EXPECT_FALSE(serves(SwitchKey::kAny, n) || serves(n, level) || serves(level, n));
    EXPECT_TRUE(serves(n, n) && serves(aligned_level(level + 1), n));
    EXPECT_FALSE(serves(n, aligned_level(level + 1)));
  }
  EXPECT_FALSE(is_aligned(SwitchKey::kAny));
  for (KeyId id : {kRelinearisation, KeyId{5}, (KeyId{1} << 18) - 1}) {
    EXPECT_TRUE(is_aligned_key(aligned_key(id)) && !is_turned(aligned_key(id)));
    EXPECT_FALSE(is_aligned_key(id));
    EXPECT_EQ(plain_key(aligned_key(id)), id);
  }
}

class AlignedKeys : public test::SchemeTest {
 protected:
  static constexpr u32 kTop = 16, kLow = 7;  // of toy-boot40, whose levels are those of boot40

  // Rotations by 1 to 4 and the others, ordinary ones up to `plain`, aligned up to `aligned`.
  static KeyRequest request(std::optional<u32> plain, std::optional<u32> aligned) {
    KeyRequest r{{}, false, false};
    if (plain) r = {{1, 2, 3, 4}, true, true}, r.max_level = *plain;
    if (aligned) {
      for (i64 k : {1, 2, 3, 4}) r.aligned_rotations[k] = *aligned;
      r.aligned_conjugation = r.aligned_relinearisation = *aligned;
    }
    return r;
  }
  // Every operation that reads keys.
  static std::vector<Ciphertext> results(const Evaluator& ev, const Ciphertext& a) {
    const i64 steps[] = {0, 1, 3};
    std::vector<Ciphertext> out;
    out.push_back(ev.rotate(a, 4));
    out.push_back(ev.conjugate(a));
    out.push_back(std::move(ev.rotate_many(a, steps)[1]));
    out.push_back(ev.rotate_sum(a, steps));
    out.push_back(ev.multiply(a, a));
    out.push_back(ev.multiply_rescale(a, a));
    out.push_back(ev.relinearise(ev.square_lazy(a)));
    out.push_back(ev.relinearise_rescale(ev.square_lazy(a)));
    return out;
  }
};
CRENEL_FAST_DEVICE_SUITE(AlignedKeys);

TEST_P(AlignedKeys, GiveWhatTheOthersGiveUpToNoise) {
  test::Rng rng = test::test_rng();
  Twins twins(test::world_params("toy-boot40"), GetParam(), rng());
  const Params& params = twins.context.params();
  const Evaluator plain =
      twins.context.evaluator(twins.whole.evaluation_keys(request(kTop, std::nullopt)));
  const EvaluationKeys keys = twins.whole.evaluation_keys(request(std::nullopt, kTop));
  EXPECT_EQ(keys.aligned_rotations(), (std::vector<i64>{1, 2, 3, 4}));
  EXPECT_EQ(keys.aligned_rotation(3), kTop);
  EXPECT_EQ(keys.aligned_rotation(5), std::nullopt);
  EXPECT_EQ(keys.aligned_conjugation(), kTop);
  EXPECT_EQ(keys.aligned_relinearisation(), kTop);
  EXPECT_TRUE(keys.rotations().empty() && !keys.has_relinearisation() && !keys.has_conjugation());
  const Evaluator only = twins.context.evaluator(keys);
  const Evaluator staged = twins.context.evaluator(keys.staged(keys.bytes() - 1));
  for (u32 level : exhaustive() ? std::vector{kTop, kLow} : std::vector{kLow}) {
    SCOPED_TRACE(cat("level ", level));
    const Ciphertext a = twins.whole.encrypt(test::random_values(rng, params.slots(), 0.5), level);
    const auto with = results(only, a), without = results(plain, a), apart = results(staged, a);
    for (std::size_t i = 0; i < with.size(); ++i) {
      EXPECT_EQ(with[i].level(), without[i].level());
      EXPECT_EQ(with[i].scale(), without[i].scale());
      EXPECT_EQ(bits(apart[i]), bits(with[i])) << "staged, result " << i;
      EXPECT_NE(bits(with[i]), bits(without[i])) << "the same keys, result " << i;
      EXPECT_LT(test::max_error(twins.whole.decrypt(with[i]), twins.whole.decrypt(without[i])),
                0x1p-20)
          << "result " << i;
    }
  }
  // At other levels there is no key.
  for (u32 level : {kTop - 1, kLow + 1}) {
    const Ciphertext a = twins.whole.encrypt(Values(4, 0.5), level);
    test::expect_error<KeyMissingError>([&] { only.rotate(a, 1); });
    test::expect_error<KeyMissingError>([&] { only.multiply(a, a); });
    test::expect_error<KeyMissingError>([&] { only.conjugate(a); });
  }
}

TEST_P(AlignedKeys, GiveTheBitsOfRef) {
  if (GetParam() == "ref") GTEST_SKIP() << "ref is what the others are compared with";
  test::Rng rng = test::test_rng();
  const u64 seed = rng();
  const Params& params = test::world_params("toy-boot40");
  Twins own(params, GetParam(), seed), ref(params, "ref", seed);
  const auto values = test::random_values(rng, params.slots(), 0.5);
  const auto of = [&](Twins& t) {
    const Evaluator ev = t.context.evaluator(t.whole.evaluation_keys(request(std::nullopt, kLow)));
    std::vector<std::vector<u32>> words;
    const Ciphertext a = t.whole.encrypt(values, kLow);
    for (const Ciphertext& c : results(ev, a)) words.push_back(bits(c));
    return words;
  };
  EXPECT_EQ(of(own), of(ref));
}

// The kinds together: aligned where the level is, the others elsewhere, and both in one sum.
TEST_P(AlignedKeys, StandBesideTheOthers) {
  test::Rng rng = test::test_rng();
  Twins twins(test::world_params("toy-boot40"), GetParam(), rng());
  const Params& params = twins.context.params();
  const auto values = test::random_values(rng, params.slots(), 0.5);
  const Evaluator both = twins.context.evaluator(twins.whole.evaluation_keys(request(kTop, kLow)));
  const Evaluator plain =
      twins.context.evaluator(twins.cut.evaluation_keys(request(kTop, std::nullopt)));
  const u32 elsewhere = kLow + 1;
  const Ciphertext a = twins.whole.encrypt(values, elsewhere);
  EXPECT_EQ(bits(both.rotate(a, 4)), bits(plain.rotate(a, 4)));
  EXPECT_EQ(bits(both.multiply(a, a)), bits(plain.multiply(a, a)));

  KeyRequest some{{1, 4}, false, false};
  some.aligned_rotations = {{2, kLow}, {3, kLow}};
  const Evaluator mixed = twins.context.evaluator(twins.cut.evaluation_keys(some));
  const Ciphertext low = twins.whole.encrypt(values, kLow);
  const auto near = [&](const Ciphertext& x, const Ciphertext& y) {
    EXPECT_EQ(x.bound(), y.bound());
    return test::max_error(twins.whole.decrypt(x), twins.whole.decrypt(y)) < 0x1p-20;
  };
  const i64 all[] = {0, 1, 2, 3}, two[] = {1, 3}, twice[] = {2, 2, 1};
  for (std::span<const i64> steps :
       {std::span<const i64>(all), std::span<const i64>(two), std::span<const i64>(twice)}) {
    EXPECT_TRUE(near(mixed.rotate_sum(low, steps), both.rotate_sum(low, steps)));
    const auto x = mixed.rotate_many(low, steps), y = both.rotate_many(low, steps);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(near(x[i], y[i])) << steps[i];
  }
  // What is there of either kind is not missing.
  const i64 beyond[] = {1, 2, 5};
  const auto e = test::expect_error<KeyMissingError>([&] { mixed.rotate_many(low, beyond); });
  EXPECT_EQ(e.field("rotations"), "5") << e.what();
  const auto higher = test::expect_error<KeyMissingError>([&] { mixed.rotate_many(a, beyond); });
  EXPECT_EQ(higher.field("rotations"), "2, 5") << higher.what();
}

TEST_P(AlignedKeys, AreRecordedAndBoundLikeTheOthers) {
  test::Rng rng = test::test_rng();
  Twins twins(test::world_params("toy-boot40"), GetParam(), rng());
  const Evaluator ev = twins.context.evaluator(twins.whole.evaluation_keys(request(kTop, kLow)));
  std::vector<Ciphertext> in;
  in.push_back(twins.whole.encrypt(Values(4, 0.5), kLow));
  const auto circuit = [](const Evaluator& on, std::span<const Ciphertext> x) {
    std::vector<Ciphertext> out;
    out.push_back(on.rotate(on.multiply(x[0], x[0]), 2));
    return out;
  };
  const auto eager = bits(circuit(ev, in)[0]);
  Graph graph(ev, in, [&](std::span<const Ciphertext> x) { return circuit(ev, x); });
  EXPECT_EQ(bits(graph.replay(in)[0]), eager);

  // As an argument: of other keys where a recording with them would read the same ones.
  const auto with = [&](std::optional<u32> plain, std::optional<u32> aligned) {
    return twins.context.evaluator(twins.whole.evaluation_keys(request(plain, aligned)));
  };
  const Evaluator plain = with(kTop, std::nullopt);
  const Graph::KeyedFunction keyed = circuit;
  Graph of_both(ev, in, keyed), of_plain(plain, in, keyed);
  const Evaluator others = with(kTop, kLow);
  EXPECT_TRUE(of_both.serves(others));
  EXPECT_EQ(bits(of_both.replay(others, in)[0]), bits(circuit(others, in)[0]));
  EXPECT_TRUE(of_plain.serves(plain));
  EXPECT_FALSE(of_plain.serves(others)) << "bits of a recording would not be those of eager work";
  EXPECT_FALSE(of_both.serves(plain));
  const auto e = test::expect_error<KeyMissingError>([&] { of_both.replay(plain, in); });
  EXPECT_NE(std::string(e.what()).find("aligned=True"), std::string::npos) << e.what();
}

TEST_P(AlignedKeys, RequestsThatHaveNoneAreRefused) {
  auto& w = world("toy-boot40");
  const auto refused = [&](test::World& on, const KeyRequest& r, const char* name) {
    const auto e = test::expect_error<ParameterError>([&] { on.client.evaluation_keys(r); });
    EXPECT_NE(e.find_field(name), nullptr) << e.what();
    test::expect_error<ParameterError>([&] { key_sizes(on.params(), r); });
  };
  KeyRequest r{{}, false, false};
  r.aligned_rotations = {{1, 6}};
  refused(w, r, "aligned_rotations");
  r.aligned_rotations = {{1, w.params().max_level() + 1}};
  refused(w, r, "aligned_rotations");
  r.aligned_rotations.clear(), r.aligned_relinearisation = 0;
  refused(w, r, "aligned_relinearisation");
  r.aligned_relinearisation.reset(), r.aligned_conjugation = 3;
  refused(w, r, "aligned_conjugation");
  r.aligned_conjugation = 5;
  refused(world("s40"), r, "aligned_conjugation");
  // The identity needs no key, and the level is that of the next aligned one below.
  KeyRequest usable{{}, false, false};
  usable.aligned_rotations = {{0, kTop}, {1, kTop - 1}};
  const EvaluationKeys keys = w.client.evaluation_keys(usable);
  EXPECT_EQ(keys.count(), 1u);
  EXPECT_EQ(keys.aligned_rotation(1), kLow);
  EXPECT_EQ(key_sizes(w.params(), usable).bytes, keys.bytes());
}

// Of two requests one has a kind of keys that the other lacks.
TEST(AlignedKeyRequests, MergedAreTheHigherLevelsOfBoth) {
  KeyRequest a{{1}, false, false}, b{{2}, false, true};
  a.aligned_rotations = {{1, 7}, {2, 16}}, a.aligned_relinearisation = 7;
  b.aligned_rotations = {{1, 16}, {3, 7}}, b.aligned_conjugation = 16;
  for (const KeyRequest& both : {merge(a, b), merge(b, a)}) {
    EXPECT_EQ(both.aligned_rotations, (std::map<i64, u32>{{1, 16}, {2, 16}, {3, 7}}));
    EXPECT_EQ(both.aligned_relinearisation, 7u);
    EXPECT_EQ(both.aligned_conjugation, 16u);
  }
}

TEST_P(AlignedKeys, TravelInFiles) {
  auto& w = world("toy-boot40");
  KeyRequest r = request(kLow, kTop);
  r.aligned_rotations[9] = kLow;  // of no other kind
  const EvaluationKeys keys = w.client.evaluation_keys(r);
  const auto bytes = to_bytes(w.context, keys);
  const EvaluationKeys loaded = evaluation_keys_from_bytes(w.context, bytes);
  EXPECT_EQ(to_bytes(w.context, loaded), bytes);
  EXPECT_EQ(loaded.count(), keys.count());
  EXPECT_EQ(loaded.aligned_rotations(), keys.aligned_rotations());
  EXPECT_EQ(loaded.aligned_rotation(9), kLow);
  EXPECT_EQ(loaded.aligned_relinearisation(), kTop);
  const Ciphertext a = w.client.encrypt(Values(4, 0.5), kLow);
  EXPECT_EQ(bits(w.context.evaluator(loaded).rotate(a, 9)),
            bits(w.context.evaluator(keys).rotate(a, 9)));

  const u64 element = ring::galois_element_for_rotation(9, w.params().log_n());
  const std::string relinearisation = "max_level:aligned/relinearisation",
                    rotation = cat("aligned/galois/", element);
  const auto quoted = [](const auto&... words) { return cat("\"", words..., "\""); };
  const auto forged = [&](const std::string& from, const std::string& to,
                          const std::string& where) {
    const auto e = test::expect_error<SerializationError>(
        [&] { evaluation_keys_from_bytes(w.context, test::edited_file(bytes, from, to)); });
    EXPECT_NE(e.field("where").find(where), std::string::npos) << to << ": " << e.what();
  };
  const std::string stated = quoted(relinearisation) + ":\"16\"";
  for (const char* level : {"15", "23", "99", "-1", "131088"})  // none of them aligned
    forged(stated, quoted(relinearisation) + ":" + quoted(level), relinearisation);
  forged(stated, quoted(relinearisation) + ":\"21\"", "aligned/relinearisation/b");  // a larger key
  forged(stated + ",", "", relinearisation);
  forged(quoted("max_level:", rotation) + ":\"7\",", "", "max_level:" + rotation);
  forged(quoted("aligned/relinearisation/b"), quoted("aligned/relinearizasion/b"),
         "aligned/relinearizasion/b");
  for (const std::string& name : {cat("aligned/galois/0", element), std::string("aligned/galois/2"),
                                  std::string("aligned/galois/"), std::string("aligned/")})
    forged(quoted(rotation, "/b"), quoted(name, "/b"), name);
  // A plain key that says an aligned level.
  forged("\"max_level:relinearisation\":\"7\"",
         cat("\"max_level:relinearisation\":\"", rlwe::aligned_level(7), "\""),
         "max_level:relinearisation");
}

}  // namespace
}  // namespace crenel::ckks
