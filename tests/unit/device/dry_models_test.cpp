// Models of GPUs: their names, and what of a GPU the numbers of launches are derived from.
#include "device/dry_models.h"

#include <gtest/gtest.h>

#include <set>

#include "crenel/core/error.h"
#include "crenel/device/tuning.h"
#include "support/devices.h"

namespace crenel::device {
namespace {

class DryModels : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    if (test::open_or_reason("cuda:dry", reason) == nullptr) GTEST_SKIP() << reason;
  }
};

TEST(DryModelNames, AreSaidWhereThereIsNoSuchOne) {
  for (const char* name : {"cuda:dry-v100", "cuda:dry-", "cuda:dry-A100", "cuda:dry-a100:",
                           "cuda:dry-a100:-1", "cuda:dry-a100:1024", "cuda:drya100"}) {
    SCOPED_TRACE(name);
    try {
      open(name);
      ADD_FAILURE() << "was opened";
    } catch (const DeviceError& e) {
      EXPECT_EQ(e.field("device"), name);
      for (const DryModel& model : kDryModels)
        EXPECT_NE(std::string(e.what()).find(model.name), std::string::npos) << e.what();
    }
  }
}

TEST(DryModelNames, OfABuildWithoutCudaSayWhy) {
  std::string reason;
  if (test::open_or_reason("cuda:dry-a100:1", reason) != nullptr)
    GTEST_SKIP() << "this build can open them";
  EXPECT_NE(reason.find("cuda:dry-a100:1: built without CUDA"), std::string::npos) << reason;
}

TEST_F(DryModels, HaveWhatTheirCardHas) {
  for (const DryModel& model : kDryModels) {
    SCOPED_TRACE(model.name);
    const auto device = open(cat("cuda:dry-", model.name));
    const DeviceInfo& info = device->info();
    EXPECT_EQ(info.name, dry_name(model, std::nullopt));
    EXPECT_EQ(info.kind, Kind::cuda);
    EXPECT_NE(info.description.find(model.card), std::string::npos) << info.description;
    EXPECT_EQ(info.processors, model.processors);
    EXPECT_EQ(info.memory_bytes, model.memory_bytes);
    EXPECT_EQ(device->memory().total, model.memory_bytes);
    const Tuning numbers = default_tuning(*device);
    EXPECT_EQ(numbers[u32(Tunable::part_bytes)], model.l2_bytes / 4 * 5);
    EXPECT_EQ(numbers[u32(Tunable::row_blocks)], 16 * model.processors);
    for (const Tunable early : {Tunable::conversion_early, Tunable::passes_early})
      EXPECT_EQ(numbers[u32(early)], model.major >= 9 ? 1u : 0u) << info_of(early).name;
    EXPECT_EQ(numbers[u32(Tunable::conversion_pairs)], model.major == 9 ? 1u : 0u);
    EXPECT_THROW(device->allocate(model.memory_bytes + 1), OutOfMemoryError);
    EXPECT_EQ(open(cat("cuda:dry-", model.name, ":7"))->info().name, dry_name(model, 7));
  }
  EXPECT_EQ(open("cuda:dry-h200")->info().name, "cuda:dry");
}

TEST_F(DryModels, HaveMemoriesOfTheirOwn) {
  std::set<const void*> addresses;
  std::vector<std::shared_ptr<Device>> devices;
  for (const DryModel& model : kDryModels)
    for (const char* index : {"", ":0", ":1023"}) {
      devices.push_back(open(cat("cuda:dry-", model.name, index)));
      void* const memory = devices.back()->allocate(1000);
      EXPECT_TRUE(addresses.insert(memory).second) << devices.back()->info().name;
      const u64 top = reinterpret_cast<std::uintptr_t>(memory) >> 56;
      EXPECT_TRUE(top != 0 && top != 0xff) << "an address that there may be";
      EXPECT_LT(top, 0xe) << "those of several devices as one (backends/split/blocks.h)";
    }
}

TEST_F(DryModels, AreJoinedWithTheirLikeOnly) {
  const auto device = open("cuda:dry-a100:0+1");
  ASSERT_EQ(device->parts().size(), 2u);
  EXPECT_EQ(device->parts()[1]->info().name, "cuda:dry-a100:1");
  for (const char* name : {"cuda:dry-a100:0+cuda:dry:1", "cuda:dry-h200:0+cuda:dry:0",
                           "cuda:dry-a100+cuda:dry-a100:0", "cuda:dry-h100+cuda:dry-h100"})
    EXPECT_THROW(open(name), DeviceError) << name;
}

}  // namespace
}  // namespace crenel::device
