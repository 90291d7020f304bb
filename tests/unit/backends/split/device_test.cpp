// Which devices may be parts of one, and what is said of those that may not.
#include "crenel/core/error.h"
#include "support/chains.h"
#include "support/context.h"
#include "support/devices.h"

namespace crenel::device {
namespace {

TEST(SplitDevice, IsOpenedByName) {
  const auto device = open("cpu+cpu+cpu");
  EXPECT_EQ(device->info().kind, Kind::split);
  EXPECT_EQ(device->info().name, "cpu+cpu+cpu");
  ASSERT_EQ(device->parts().size(), 3u);
  for (const auto& part : device->parts()) EXPECT_EQ(part->info().kind, Kind::cpu);
  EXPECT_FALSE(device->in_host_memory());
  EXPECT_GT(device->available(), 0u);
  EXPECT_TRUE(open("cpu")->parts().empty());
  for (const auto& info : available()) EXPECT_NE(info.kind, Kind::split);
}

TEST(SplitDevice, NamesOfPartsContinue) {
  std::string reason;
  const auto device = test::open_or_reason("cuda:dry:4+1+cuda:dry:2", reason);
  if (device == nullptr) GTEST_SKIP() << reason;
  std::vector<std::string> names;
  for (const auto& part : device->parts()) names.push_back(part->info().name);
  EXPECT_EQ(names, (std::vector<std::string>{"cuda:dry:4", "cuda:dry:1", "cuda:dry:2"}));
  EXPECT_EQ(device->info().memory_bytes, 3 * device->parts()[0]->info().memory_bytes);
  EXPECT_THROW(open("cuda:dry:1+1"), DeviceError) << "the same GPU twice";
  for (const char* name : {"cuda:dry+cuda:dry:0", "cuda:dry:0+cuda:dry", "cuda:dry:1+0+cuda:dry"})
    EXPECT_THROW(open(name), DeviceError) << name << ": the first one has two names";
}

TEST(SplitDevice, RefusesWithTheName) {
  for (const char* name : {"cpu+", "+cpu", "cpu++cpu", "cpu+1", "0+1", "cpu+auto", "cpu+nothing",
                           "cpu+ref", "auto+auto", "+"}) {
    SCOPED_TRACE(name);
    try {
      open(name);
      ADD_FAILURE() << "was opened";
    } catch (const DeviceError& e) {
      EXPECT_FALSE(e.field("device").empty());
    }
  }
  std::string many = "ref";
  for (int i = 0; i < 16; ++i) many += "+ref";
  EXPECT_THROW(open(many), DeviceError);
}

TEST(SplitDevice, NeedsAPrimeAPart) {
  const auto device = open("ref+ref+ref+ref");
  const auto chain = test::toy_chain(0, 2, 1);
  const auto ring = test::shared_ring(6, chain.primes);
  ASSERT_EQ(ring->prime_count(), 3u);
  try {
    backend_of(*device).make_poly_kernels(ring);
    ADD_FAILURE() << "was made";
  } catch (const ParameterError& e) {
    EXPECT_EQ(e.field("parts"), "4");
    EXPECT_EQ(e.field("primes"), "3");
  }
}

TEST(SplitDevice, OptimisationsAreThoseOfItsParts) {
  const auto device = open("cpu+cpu", Optimisations::none());
  for (const auto& part : device->parts()) EXPECT_EQ(optimisations(*part), Optimisations::none());
}

}  // namespace
}  // namespace crenel::device
