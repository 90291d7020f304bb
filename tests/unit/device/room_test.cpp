// Requests against what a device says that it has left.
#include "device/room.h"

#include <gtest/gtest.h>

#include "support/random.h"
#include "support/watched_device.h"

namespace crenel::device {
namespace {

constexpr u64 kMiB = u64(1) << 20;

// Host memory, of which it says how much is left.
class SmallHost final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  std::shared_ptr<Stream> make_stream() override { return nullptr; }
  void* allocate(std::size_t) override { return nullptr; }
  void deallocate(void*) noexcept override {}
  bool in_host_memory() const override { return true; }
  MemoryLeft left() const override { return {room, "the test's room"}; }
  u64 room = 0;

 private:
  DeviceInfo info_{Kind::cpu, "small", "", 0};
};

core::MemoryRequest request() { return {.what = "a test", .advice = "pass"}; }

class Room : public testing::Test {
 protected:
  Room()
      : device_(std::make_shared<test::WatchedDevice>("cpu")), stream_(device_->shared_stream()) {}

  test::Rng rng_ = test::test_rng();
  std::shared_ptr<test::WatchedDevice> device_;
  std::shared_ptr<Stream> stream_;
};

TEST_F(Room, ExactlyWhatIsThereFitsAndAByteMoreDoesNot) {
  const u64 room = 100 * kMiB + rng_() % kMiB;
  device_->room = room;
  EXPECT_EQ(device_->available(), room);
  EXPECT_NO_THROW(expect_room(*device_, {.device = room}, request));
  try {
    expect_room(*device_, {.device = room + 1}, request);
    FAIL() << "a byte too many fits";
  } catch (const OutOfMemoryError& e) {
    EXPECT_EQ(e.field("needed"), cat(room + 1));
    EXPECT_EQ(e.field("available"), cat(room));
    EXPECT_EQ(e.field("device"), "cpu");
    EXPECT_EQ(e.field("limit"), "the test's room");
    EXPECT_NE(std::string(e.what()).find("pass"), std::string::npos);
  }
}

TEST_F(Room, SmallRequestsAreNotCompared) {
  device_->room = 0;
  EXPECT_NO_THROW(expect_room(*device_, {.device = core::kAskedFrom - 1}, request));
  EXPECT_THROW(expect_room(*device_, {.device = core::kAskedFrom}, request), OutOfMemoryError);
}

TEST_F(Room, IdleMemoryOfStreamsCounts) {
  const u64 idle = 70 * kMiB;
  {
    const Buffer b = stream_->allocate_exact(idle);
  }
  device_->room = 10 * kMiB;
  EXPECT_EQ(device_->available(), 80 * kMiB);
  EXPECT_NO_THROW(expect_room(*stream_, {.device = 80 * kMiB}, request));
  device_->trim();
  EXPECT_THROW(expect_room(*stream_, {.device = 80 * kMiB}, request), OutOfMemoryError);
}

TEST_F(Room, RecordingsAreNotAsked) {
  device_->room = 0;
  u32 runs = 0;
  stream_->capture([&] {
    expect_room(*stream_, {.device = 80 * kMiB}, request);
    ++runs;
  });
  EXPECT_EQ(runs, 2u);
}

TEST_F(Room, HostMemoryOfADeviceWithItsOwnIsAskedOfTheHost) {
  device_->room = ~u64(0);
  const u64 host = host_memory().bytes;
  if (host == ~u64(0)) GTEST_SKIP() << "a host without any limit";
  EXPECT_NO_THROW(expect_room(*device_, {.host = 80 * kMiB}, request));
  try {
    expect_room(*device_, {.device = kMiB, .host = ~u64(0) / 2}, request);
    FAIL();
  } catch (const OutOfMemoryError& e) {
    EXPECT_EQ(e.field("device"), "host");
  }
}

TEST(RoomOnTheHost, BothPartsAreOneSum) {
  const auto device = std::make_shared<SmallHost>();
  device->room = 200 * kMiB;
  EXPECT_NO_THROW(expect_room(*device, {.device = 100 * kMiB, .host = 100 * kMiB}, request));
  EXPECT_THROW(expect_room(*device, {.device = 100 * kMiB, .host = 101 * kMiB}, request),
               OutOfMemoryError);
}

TEST(RoomOnTheHost, NoLimitStaysNone) {
  const auto device = std::make_shared<SmallHost>();
  device->room = ~u64(0);
  EXPECT_EQ(device->available(), ~u64(0));
}

}  // namespace
}  // namespace crenel::device
