// Without any one optimisation, and without all of them, operations keep their bits.
#include "crenel/device/optimisations.h"

#include <map>

#include "crenel/circuits/linear_transform.h"
#include "support/ckks_world.h"

namespace crenel::device {
namespace {

using test::Values;

// A context of its own: other tests' contexts keep all optimisations.
class Switches : public test::DeviceTest {
 protected:
  struct Own {
    ckks::Context context;
    ckks::Client client;
    ckks::Evaluator ev;
    ckks::Ciphertext a, b;
    circuits::LinearTransform transform;
  };

  std::unique_ptr<Own> make(test::Rng& rng) {
    const ckks::Params& params = test::world_params("s40");
    ckks::Context context(params, device_);
    ckks::Client client = context.keygen();
    const u64 slots = params.slots();
    circuits::DiagonalMatrix matrix{slots, {}};
    for (u64 k : {0, 1, 2, 3, 5, 8, 9, 13, 21, 22})
      matrix.diagonals[k] = test::random_values(rng, slots, 0.2);
    circuits::LinearTransformOptions options;
    options.level = params.max_level() - 1;
    options.baby_steps = 8;
    circuits::LinearTransform transform(context, matrix, options);
    std::vector<i64> rotations = transform.rotations();
    rotations.insert(rotations.end(), {1, 2, -3});
    auto ev = context.evaluator(client.evaluation_keys({rotations, true, true}));
    const u32 level = *options.level;
    auto a = client.encrypt(test::random_values(rng, 2 * slots, 0.7), level, 0.0, 0, 2);
    auto b = client.encrypt(test::random_values(rng, 2 * slots, 0.7), level, 0.0, 0, 2);
    return std::make_unique<Own>(Own{std::move(context), std::move(client), std::move(ev),
                                     std::move(a), std::move(b), std::move(transform)});
  }

  // Results that use every fused operation.
  static std::vector<ckks::Ciphertext> run(const Own& w) {
    const ckks::Evaluator& ev = w.ev;
    std::vector<ckks::Ciphertext> out;
    out.push_back(ev.multiply(w.a, w.b));
    out.push_back(ev.rescale(out.front()));
    out.push_back(ev.rotate(w.a, -3));
    out.push_back(ev.rotate_sum(w.a, std::vector<i64>{0, 1, 2, -3}));
    for (auto& c : ev.rotate_many(w.a, std::vector<i64>{1, 2})) out.push_back(std::move(c));
    const std::vector<double> coefficients{0.1, -0.2, 0.3, 0.4, 0.0, -0.1, 0.05, 0.02};
    out.push_back(ev.polynomial(w.a, coefficients, ckks::PolynomialBasis::chebyshev, -2.0, 2.0));
    out.push_back(w.transform(ev, w.a));
    return out;
  }
  static std::vector<std::vector<u32>> bits_of(const std::vector<ckks::Ciphertext>& results) {
    std::vector<std::vector<u32>> words;
    for (const auto& c : results) words.push_back(test::bits(c));
    return words;
  }
};
CRENEL_CANDIDATE_SUITE(Switches);

TEST_P(Switches, KeepTheBitsOfEveryOperation) {
  auto rng = test::test_rng();
  const auto w = make(rng);
  const auto expected = bits_of(run(*w));
  for (u32 i = 0; i < kOptimisations; ++i) {
    const auto off = static_cast<Optimisation>(i);
    if (off == Optimisation::merged_rescale) continue;  // the next test
    set_optimisations(*device_, Optimisations().without(off));
    EXPECT_EQ(bits_of(run(*w)), expected) << "without " << name_of(off);
  }
  set_optimisations(*device_, Optimisations::none().with(Optimisation::merged_rescale));
  EXPECT_EQ(bits_of(run(*w)), expected) << "without any";
  set_optimisations(*device_, {});
  EXPECT_EQ(bits_of(run(*w)), expected) << "with all again";
}

TEST_P(Switches, AreOfTheTimeOfTheRecording) {
  auto rng = test::test_rng();
  const auto w = make(rng);
  auto& stream = w->context.stream();
  const auto expected = test::bits(w->ev.multiply(w->a, w->b));
  for (const bool graphs : {true, false}) {
    const Optimisations all;
    set_optimisations(*device_, graphs ? all : all.without(Optimisation::graphs));
    std::optional<ckks::Ciphertext> out;
    const auto graph = stream.capture([&] { out = w->ev.multiply(w->a, w->b); });
    set_optimisations(*device_, {});
    graph->launch(stream);
    EXPECT_EQ(test::bits(*out), expected) << (graphs ? "a graph" : "queued again");
  }
}

// Rounding twice differs from rounding once where what the second division leaves lies next to a
// half: in one coefficient of 2^29 or so. Equal bits are the rule, and nothing to rely on.
TEST_P(Switches, MergedRescaleChangesResultsWithinTheirErrors) {
  auto rng = test::test_rng();
  const auto w = make(rng);
  const double bound = 2 * test::tolerance(w->context.params(), 4.0);  // of either result
  const auto merged = run(*w);
  set_optimisations(*device_, Optimisations().without(Optimisation::merged_rescale));
  const auto apart = run(*w);
  for (std::size_t i = 0; i < merged.size(); ++i) {
    EXPECT_EQ(apart[i].level(), merged[i].level());
    EXPECT_LT(test::max_error(w->client.decrypt(apart[i]), w->client.decrypt(merged[i])), bound);
  }
}

TEST(Optimisations, HaveNamesAndAreASet) {
  std::map<std::string, u32> names;
  for (u32 i = 0; i < kOptimisations; ++i) {
    const auto o = static_cast<Optimisation>(i);
    EXPECT_EQ(optimisation_of(name_of(o)), o);
    EXPECT_TRUE(names.emplace(name_of(o), i).second) << name_of(o);
    EXPECT_FALSE(std::string(meaning_of(o)).empty());
    EXPECT_TRUE(Optimisations().has(o));
    EXPECT_FALSE(Optimisations::none().has(o));
    EXPECT_EQ(Optimisations::only({o}), Optimisations::none().with(o));
    EXPECT_EQ(Optimisations().without(o).with(o), Optimisations());
  }
  const auto error = test::expect_error<ParameterError>([] { optimisation_of("magic"); });
  EXPECT_NE(std::string(error.what()).find("hoisted_sums"), std::string::npos);
  const auto device = open("ref", Optimisations::none());
  EXPECT_EQ(optimisations(*device), Optimisations::none());
  EXPECT_EQ(optimisations(*open("ref")), Optimisations());
}

}  // namespace
}  // namespace crenel::device
