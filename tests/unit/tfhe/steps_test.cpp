// Keys of several steps: which batch takes which, and what is no table.
#include "crenel/tfhe/steps.h"

#include <cmath>
#include <thread>

#include "crenel/device/account.h"
#include "crenel/tfhe/serialize.h"
#include "support/tfhe_world.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {
namespace {

TEST(StepTable, ABatchTakesTheFirstRuleThatHasRoom) {
  const StepTable table{{4, 4}, {9, 2}, {20, 1}};
  for (const auto& [rotations, step] :
       {std::pair<u64, u32>{1, 4}, {4, 4}, {5, 2}, {9, 2}, {10, 1}, {20, 1}, {1 << 30, 1}})
    EXPECT_EQ(step_of(table, rotations), step) << rotations;
}

TEST(StepTable, MeasuredOnHostsIsOneStep) {
  const Context context(Params::preset("toy-lut4g4", true), "cpu");
  const u32 both[] = {4, 1}, one[] = {4};
  EXPECT_EQ(measured_step_table(context, both).size(), 1u);
  EXPECT_EQ(measured_step_table(context, one)[0].step, 4u);
  EXPECT_THROW(measured_step_table(context, {}), ParameterError);
  const u32 bad[] = {3};
  EXPECT_THROW(measured_step_table(context, bad), ParameterError);
}

// Both steps of lut4-128 where each is the faster one, by times of bench/results.
TEST(StepTable, MeasuredOnAGpu) {
  try {
    const Context context(Params::preset("lut4-128"), "cuda:dry");
    const u32 both[] = {2, 4};
    const StepTable table = measured_step_table(context, both);
    ASSERT_GE(table.size(), 2u);
    EXPECT_EQ(table.front().step, 4u);
    EXPECT_EQ(step_of(table, 1), 4u);
    EXPECT_EQ(step_of(table, 264), 2u);
    for (std::size_t i = 1; i < table.size(); ++i)
      EXPECT_GT(table[i].rotations, table[i - 1].rotations);
    const Context gates(Params::preset("bool128"), "cuda:dry");
    EXPECT_THROW(measured_step_table(gates, both), UnsupportedError);
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
}

// Batches of one evaluator, each by the step of the table, as the account's stages say.
TEST(StepTable, TheAccountNamesTheStep) {
  std::string reason;
  const auto device = test::open_or_reason("cuda:dry", reason);
  if (!device) GTEST_SKIP() << reason;
  const Params params = Params::preset("toy-lut4g4", true);
  const Context context(params, device), home(params, "cpu");
  Client client = home.keygen();  // a dry device has no data to make keys of
  const auto keys = to_bytes(home, client.evaluation_keys());
  EvaluatorOptions options;
  options.max_p_fail_log2 = 0.0;
  options.steps = {4};
  options.step_table = {{5, 4}, {64, 2}};
  const Evaluator ev = context.evaluator(evaluation_keys_from_bytes(context, keys), options);
  Lut identity;
  for (u64 m = 0; m < 16; ++m) identity.table.push_back(m);
  const PreparedLut prepared = context.prepare({&identity, 1});
  for (const auto& [count, step] : {std::pair<u64, u32>{5, 4}, {6, 2}, {1, 4}}) {
    const auto file = to_bytes(home, client.encrypt(test::Messages(count, 3)));
    const Ciphertext x = ciphertext_from_bytes(context, file);
    const auto account = std::make_shared<device::Account>();
    context.stream().account(account);
    ev.lut(x, prepared);
    context.stream().account(nullptr);
    u64 named = 0;
    for (const auto& record : account->records())
      if (record.stage.find("blind_rotate") != std::string::npos) {
        EXPECT_NE(record.stage.find(cat("blind_rotate/steps of ", step)), std::string::npos)
            << record.stage;
        ++named;
      }
    EXPECT_GT(named, 0u) << count;
  }
}

// Whoever makes keys may call somebody else, who asks for their bytes.
TEST(StepKeys, AreToldWhileOthersAreMade) {
  StepKeys keys;
  const u32 steps[] = {4};
  bool told = false;
  const auto make = [&](u32) {
    std::thread other([&] { told = keys.bytes() == 0 && keys.steps().empty(); });
    other.join();
    return std::make_shared<const device::Buffer>();
  };
  const auto found = keys.get(steps, [](std::span<const u32>) {}, make);
  EXPECT_TRUE(told);
  EXPECT_EQ(keys.steps(), std::vector<u32>{4});
  EXPECT_EQ(keys.get(
                steps, [](std::span<const u32> missing) { EXPECT_TRUE(missing.empty()); }, make),
            found);
}

// Term by term the most of all steps, so that no step is judged by another's noise.
TEST(Steps, NoiseIsTheMost) {
  const Params params = Params::preset("toy-lut4g4", true);
  const Context context(params, "cpu");
  EvaluatorOptions options;
  options.max_p_fail_log2 = 0.0;
  options.steps = {1, 4};
  options.step_table = {{1, 4}, {2, 1}};
  const Evaluator ev = context.evaluator(context.keygen().evaluation_keys(), options);
  for (const u32 step : {1u, 2u, 4u}) {
    const NoiseBudget one =
        noise_budget(plan_of(params.with_step(step)), std::sqrt(kErrorVariance));
    const NoiseBudget& all = ev.state().budget;
    EXPECT_GE(all.blind_rotation, one.blind_rotation);
    EXPECT_GE(all.transform, one.transform);
    EXPECT_GE(all.rotation_rounding, one.rotation_rounding);
    EXPECT_GE(all.key_switch, one.key_switch);
  }
  EXPECT_EQ(ev.state().form_of(1).step, 4u);
  EXPECT_EQ(ev.state().form_of(100).step, 1u);
}

}  // namespace
}  // namespace crenel::tfhe
