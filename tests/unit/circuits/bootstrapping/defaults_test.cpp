// What is chosen where the options leave it open: the best there is for the values, at every set.
#include "circuits/bootstrapping/defaults.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "support/boot_world.h"

namespace crenel::circuits {
namespace {

using test::BootWorld;
using test::Values;

constexpr BootstrapValues kValues[] = {BootstrapValues::unknown, BootstrapValues::centred,
                                       BootstrapValues::non_negative, BootstrapValues::constant};

TEST(BootstrapDefaults, NoRatioIsBetterByMoreThanATenthOfABit) {
  for (const char* set : {"boot30", "boot40", "toy-boot45"})
    for (const BootstrapValues values : kValues)
      for (const u64 slots : {u64(0), u64(256)}) {
        SCOPED_TRACE(cat(set, " ", int(values), " ", slots));
        const auto params = ckks::Params::preset(set, true);
        BootstrapOptions o;
        o.values = values;
        o.slots = slots;
        const BootstrapPlan plan = plan_bootstrap(params, o);
        EXPECT_TRUE(plan.ratio_chosen);
        const Message message = message_of(values, o.message);
        const double chosen = expected_error_of(params, plan, message);
        const auto highest = std::lround(params.log_q(0)) - params.spec().log_scale;
        for (u32 ratio = 1; ratio <= highest; ++ratio) {
          o.message_ratio = ratio;
          const double other = expected_error_of(params, plan_bootstrap(params, o), message);
          EXPECT_GT(other, chosen * std::exp2(-0.1001)) << ratio;
          if (ratio > plan.options.message_ratio) {
            EXPECT_GT(other, chosen * 0.999) << ratio << ": larger, and as good";
          }
        }
        EXPECT_FALSE(plan_bootstrap(params, o).ratio_chosen);
      }
}

// The page docs/guide/bootstrap_precision.md says what they are.
TEST(BootstrapDefaults, OfBoot40) {
  const auto params = ckks::Params::preset("boot40");
  const auto ratio = [&](BootstrapValues values, auto... more) {
    BootstrapOptions o;
    o.values = values;
    (more(o), ...);
    return plan_bootstrap(params, o).options.message_ratio.value();
  };
  EXPECT_EQ(ratio(BootstrapValues::unknown), 10u);
  EXPECT_EQ(ratio(BootstrapValues::centred), 6u);
  EXPECT_EQ(ratio(BootstrapValues::centred, [](auto& o) { o.message = BootstrapMessage::real; }),
            6u);
  EXPECT_EQ(ratio(BootstrapValues::non_negative), 10u);
  EXPECT_EQ(ratio(BootstrapValues::constant), 10u);
  EXPECT_EQ(ratio(BootstrapValues::unknown, [](auto& o) { o.arcsine_degree = 3; }), 7u);
  const auto report = report_of(params, plan_bootstrap(params, {}));
  EXPECT_LT(report.values_error, 0x1p-16) << "2^-7 with the ratio 2^5";
  EXPECT_NE(report.text().find("2^10, chosen for unknown values"), std::string::npos)
      << report.text();
}

// The rows of the page's tables, as the model has them.
TEST(BootstrapDefaults, ThePageHasTheModelsFigures) {
  std::ifstream file(std::string(CRENEL_SOURCE_DIR) + "/docs/guide/bootstrap_precision.md");
  std::ostringstream page;
  page << file.rdbuf();
  const auto row = [&](auto cell, auto set) {
    std::string text;
    for (const char* name : {"boot40", "boot35", "boot30"}) {
      const auto params = ckks::Params::preset(name);
      BootstrapOptions o;
      set(o);
      text += cell(report_of(params, plan_bootstrap(params, o)));
    }
    EXPECT_NE(page.str().find(text + "\n"), std::string::npos) << "no row ends with " << text;
  };
  const auto bits = [](double error) {
    char text[16];
    std::snprintf(text, sizeof text, "%.1f", -std::log2(error));
    return std::string(text);
  };
  const auto chosen = [&](const BootstrapReport& r) {
    return cat(" ", r.message_ratio, ", ", bits(r.values_error), " |");
  };
  for (const BootstrapValues values : kValues) row(chosen, [&](auto& o) { o.values = values; });
  for (const bool half : {true, false})
    row(chosen, [&](auto& o) {
      o.values = BootstrapValues::centred;
      o.message = BootstrapMessage::real;
      o.savings.real_symmetry = half;
    });
  for (const auto order :
       {BootstrapOrder::coeff_to_slot_first, BootstrapOrder::slot_to_coeff_first})
    for (const u32 arcsine : {0u, 3u})
      row(
          [&](const BootstrapReport& r) {
            return cat(" ", bits(r.values_error), ", ", r.levels.input, " to ", r.levels.output,
                       " |");
          },
          [&](auto& o) { o.order = order, o.arcsine_degree = arcsine; });
}

// Levels and keys are the same whatever the values: only the ratio is chosen.
TEST(BootstrapDefaults, CostNoLevelAndNoKey) {
  const auto params = ckks::Params::preset("toy-boot40", true);
  const BootstrapPlan usual = plan_bootstrap(params, {});
  for (const BootstrapValues values : kValues) {
    BootstrapOptions o;
    o.values = values;
    const BootstrapPlan plan = plan_bootstrap(params, o);
    EXPECT_EQ(plan.levels.output, usual.levels.output);
    EXPECT_EQ(plan.levels.input, usual.levels.input);
    EXPECT_EQ(plan.options.arcsine_degree, 0u);
    EXPECT_EQ(bootstrap_key_request(params, o).rotations,
              bootstrap_key_request(params, {}).rotations);
  }
}

class BootstrapDefault : public test::SchemeTest {};

TEST_P(BootstrapDefault, AnyValuesWithinOneComeBackAsExactlyAsStated) {
  if (GetParam() == "ref") GTEST_SKIP() << "a bootstrap takes it seconds";
  BootWorld& w = test::boot_world(GetParam(), "toy-boot40");
  auto rng = test::test_rng();
  const Bootstrapper boot(w.context, w.keys(), {});
  for (const MessageKind kind : test::kMessageKinds) {
    const Values x = test::draw({kind}, rng, w.slots());
    const double error = test::max_error(w.client.decrypt(boot(w.encrypt(boot, x))), x);
    EXPECT_LT(error, 3.0 * boot.describe().values_error) << test::name_of(kind);
  }
  // Keys made for other slots decide the slots; the ratio is then chosen for these.
  BootstrapOptions few;
  few.slots = 16;
  const Bootstrapper fitted(w.context, w.keys_for(few), {});
  EXPECT_EQ(fitted.options().slots, 16u);
  EXPECT_EQ(fitted.options().message_ratio, best_message_ratio(w.params(), few));
}

CRENEL_DEVICE_SUITE(BootstrapDefault);

}  // namespace
}  // namespace crenel::circuits
