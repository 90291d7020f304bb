// What a GPU states is what the dry device states, launch by launch: also through a graph.
#include "crenel/device/account.h"
#include "support/ckks_world.h"

namespace crenel::device {
namespace {

class AccountOnGpu : public test::SchemeTest {};
INSTANTIATE_TEST_SUITE_P(Devices, AccountOnGpu, testing::Values("cuda:0"), test::test_name);

struct Recorded {
  std::vector<LaunchRecord> hmult, hrot, rescale, replay;
};

Recorded run(const std::string& device) {
  auto& w = test::world(device, "toy-boot40");
  auto& stream = w.context.stream();
  const u32 top = w.params().max_level();
  const std::vector<double> values{0.5, -0.25};
  const auto a = w.client.encrypt(values, top), b = w.client.encrypt(values, top);
  const auto account = std::make_shared<Account>();
  const auto record = [&](const auto& work) {
    account->clear();
    stream.account(account);
    work();
    stream.account(nullptr);
    return account->records();
  };
  Recorded r;
  r.hmult = record([&] { w.ev.multiply(a, b); });
  r.hrot = record([&] { w.ev.rotate(a, 1); });
  const auto product = w.ev.multiply(a, b);
  r.rescale = record([&] { w.ev.rescale(product); });
  const auto graph = stream.capture([&] { w.ev.multiply(a, b); });
  r.replay = record([&] { graph->launch(stream); });
  return r;
}

// The only launch whose traffic depends on the number of multiprocessors is base conversion.
void expect_same(const std::vector<LaunchRecord>& found, std::vector<LaunchRecord> expected,
                 bool same_model) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!same_model && found[i].work == Work::base_conversion)
      expected[i].read_bytes = found[i].read_bytes;
    EXPECT_EQ(found[i], expected[i]) << i << ": " << found[i].kernel;
  }
}

TEST_P(AccountOnGpu, StatesWhatTheDryDeviceStates) {
  const std::string description = device_->info().description;
  const bool same_model = description.find("H200") != std::string::npos ||
                          description.find("H100") != std::string::npos;
  const Recorded gpu = run(GetParam()), dry = run("cuda:dry");
  expect_same(gpu.hmult, dry.hmult, same_model);
  expect_same(gpu.hrot, dry.hrot, same_model);
  expect_same(gpu.rescale, dry.rescale, same_model);
  expect_same(gpu.replay, dry.replay, same_model);
  std::vector<LaunchRecord> replayed = gpu.hmult;
  for (LaunchRecord& r : replayed) r.replayed = true;
  EXPECT_EQ(gpu.replay, replayed);
}

}  // namespace
}  // namespace crenel::device
