// "cuda:0/1of2": how the multiprocessors of a GPU are divided, and which names say so.
#include "backends/cuda/share_sizes.h"
#include "crenel/core/error.h"
#include "crenel/device/device.h"
#include "support/devices.h"

namespace crenel::device {
namespace {

using backend::cuda::share_granule;
using backend::cuda::share_least;
using backend::cuda::share_processors;

DeviceError refusal(const std::string& name) {
  try {
    open(name);
  } catch (const DeviceError& error) {
    return error;
  }
  ADD_FAILURE() << name << " was opened";
  return DeviceError("");
}

TEST(Share, PartsAreAllMultiprocessors) {
  for (const u32 processors : {16u, 108u, 132u, 148u, 170u})
    for (const int major : {8, 9, 12})
      for (u32 parts = 1; parts <= processors / share_least(major); ++parts) {
        u32 sum = 0;
        const u32 first = share_processors(processors, major, 1, parts);
        for (u32 part = 1; part <= parts; ++part) {
          const u32 here = share_processors(processors, major, part, parts);
          EXPECT_EQ(here % share_granule(major), part < parts ? 0u : here % share_granule(major));
          EXPECT_GE(here, first) << "the last takes the rest";
          sum += here;
        }
        EXPECT_EQ(sum, processors) << parts << " parts";
      }
  EXPECT_EQ(share_processors(132, 9, 1, 2), 64u);
  EXPECT_EQ(share_processors(132, 9, 2, 2), 68u);
  EXPECT_EQ(share_processors(132, 9, 1, 17), 0u);
  EXPECT_EQ(share_processors(108, 8, 1, 27), 4u);
  EXPECT_EQ(share_processors(108, 8, 1, 28), 0u) << "the driver rounds two or three up to four";
}

TEST(Share, NamesSayWhichPart) {
  std::string reason;
  test::open_or_reason("cuda:dry", reason);
  if (!reason.empty()) GTEST_SKIP() << reason;
  const DeviceInfo whole = open("cuda:dry")->info();
  const DeviceInfo first = open("cuda:dry/1of2")->info(), second = open("cuda:dry/2of2")->info();
  EXPECT_EQ(first.name, "cuda:dry/1of2");
  EXPECT_EQ(first.processors + second.processors, whole.processors);
  EXPECT_LT(first.processors, whole.processors);
  EXPECT_NE(first.description.find(cat(first.processors, " of its ", whole.processors)),
            std::string::npos);
  EXPECT_EQ(open("cuda:dry/1of1")->info().processors, whole.processors);
  EXPECT_EQ(refusal("cuda:dry/1of1000").field("parts"), "1000");
  EXPECT_NE(std::string(refusal("cuda:dry-a100/1of54").what()).find("at most 27"),
            std::string::npos);
}

TEST(Share, OtherNamesAreRefused) {
  for (const std::string name :
       {"cuda:0/0of2", "cuda:0/3of2", "cuda:0/1", "cuda:0/1of", "cuda:0/of2", "cuda:0/1of2of3",
        "cuda:0/-1of2", "cuda:0/1of2 ", "cuda:0/1of99999999999", "cuda:0/", "cpu/1of2", "/1of2",
        "cuda:dry/0of1", "cuda:0/1of2/1of2"}) {
    const DeviceError e = refusal(name);
    EXPECT_EQ(e.field("device"), name);
    EXPECT_NE(std::string(e.what()).find("1of2"), std::string::npos) << e.what();
  }
  for (const std::string name : {"cuda:dry/1of2+cuda:dry/2of2", "cpu+cuda:dry/1of2"}) {
    const DeviceError e = refusal(name);
    EXPECT_NE(std::string(e.what()).find("expected whole GPUs"), std::string::npos) << e.what();
  }
}

// Of a GPU: its parts open, have all of its multiprocessors together, and streams of theirs copy.
// What they compute, at the same time and by graphs, python/tests/test_pool.py tests.
TEST(Share, PartsOfAGpuAreDevices) {
  std::string reason;
  test::open_or_reason("cuda:0", reason);
  if (!reason.empty()) GTEST_SKIP() << reason;
  const u32 all = open("cuda:0")->info().processors;
  for (const u32 parts : {1u, 2u, 3u}) {
    u32 sum = 0;
    for (u32 part = 1; part <= parts; ++part) {
      const auto device = open(cat("cuda:0/", part, "of", parts));
      sum += device->info().processors;
      const auto stream = device->make_stream();
      const std::vector<u64> in = {1, 2, 3};
      std::vector<u64> out(3);
      const Buffer memory = stream->allocate(24);
      stream->copy_in(memory.data(), in.data(), 24);
      stream->copy_out(out.data(), memory.data(), 24);
      EXPECT_EQ(in, out);
    }
    EXPECT_EQ(sum, all);
  }
}

}  // namespace
}  // namespace crenel::device
