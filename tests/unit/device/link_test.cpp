// From device to device: what arrives, in which order, and what is stated of it.
#include "crenel/device/link.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "crenel/core/error.h"
#include "crenel/device/account.h"
#include "device/several.h"
#include "support/devices.h"
#include "support/together.h"

namespace crenel::device {
namespace {

class LinkTest : public test::DeviceTest {};
CRENEL_DEVICE_SUITE(LinkTest);

std::vector<u8> numbers(std::size_t bytes, u8 first) {
  std::vector<u8> data(bytes);
  std::iota(data.begin(), data.end(), first);
  return data;
}

std::vector<u8> read(Stream& stream, const Buffer& buffer) {
  std::vector<u8> data(buffer.bytes());
  stream.copy_out(data.data(), buffer.data(), data.size());
  return data;
}

TEST_P(LinkTest, BytesGoThereAndBack) {
  const auto host = open("cpu"), twin = open(GetParam());
  for (const auto& other : {host, twin}) {
    const auto a = device_->make_stream(), b = other->make_stream();
    const auto data = numbers(100'003, 7);
    const Buffer from = a->allocate(data.size()), there = b->allocate(data.size()),
                 back = a->allocate(data.size());
    a->copy_in(from.data(), data.data(), data.size());
    a->fill_zero(back.data(), data.size());
    copy_across(*b, there.data(), *a, from.data(), data.size());
    copy_across(*a, back.data(), *b, there.data(), data.size());
    EXPECT_EQ(read(*b, there), data);
    EXPECT_EQ(read(*a, back), data);
  }
}

// The source may be freed, and its memory taken and written again, when the call returns.
TEST_P(LinkTest, TheSourceIsReadBeforeItsMemoryIsWrittenAgain) {
  const auto twin = open(GetParam());
  const auto a = device_->make_stream(), b = twin->make_stream();
  constexpr std::size_t kBytes = 1 << 20;
  std::vector<Buffer> copies;
  for (u8 round = 0; round < 20; ++round) {
    const auto data = numbers(kBytes, round);
    Buffer from = a->allocate(kBytes);
    a->copy_in(from.data(), data.data(), kBytes);
    copies.push_back(b->allocate(kBytes));
    copy_across(*b, copies.back().data(), *a, from.data(), kBytes);
    from = Buffer();
    const Buffer again = a->allocate(kBytes);
    a->fill_zero(again.data(), kBytes);
  }
  for (u8 round = 0; round < 20; ++round)
    EXPECT_EQ(read(*b, copies[round]), numbers(kBytes, round));
}

TEST_P(LinkTest, BothWaysAtOnceFromSeveralThreads) {
  const auto twin = open(GetParam());
  const auto a = device_->make_stream(), b = twin->make_stream();
  test::together(6, [&](u64 thread) {
    Stream &from = thread % 2 ? *a : *b, &to = thread % 2 ? *b : *a;
    for (u8 round = 0; round < 20; ++round) {
      const auto data = numbers(4096 + 64 * thread, static_cast<u8>(round + thread));
      const Buffer source = from.allocate(data.size()), target = to.allocate(data.size());
      from.copy_in(source.data(), data.data(), data.size());
      copy_across(to, target.data(), from, source.data(), data.size());
      EXPECT_EQ(read(to, target), data);
    }
  });
}

TEST_P(LinkTest, RefusedWhileRecording) {
  const auto twin = open(GetParam());
  const auto a = device_->make_stream(), b = twin->make_stream();
  const Buffer from = a->allocate(64), there = b->allocate(64);
  EXPECT_THROW(a->capture([&] { copy_across(*b, there.data(), *a, from.data(), 64); }), StateError);
  EXPECT_THROW(b->capture([&] { copy_across(*b, there.data(), *a, from.data(), 64); }), StateError);
  copy_across(*b, there.data(), *a, from.data(), 64);
}

TEST(Roads, HostMemoryIsOne) {
  const auto cpu = open("cpu"), ref = open("ref");
  EXPECT_EQ(road_between(*cpu, *ref), Road::within);
  EXPECT_EQ(road_between(*cpu, *cpu), Road::within);
  EXPECT_STREQ(name_of(Road::within), "within");
  EXPECT_STREQ(name_of(Road::peer), "peer");
  EXPECT_STREQ(name_of(Road::host), "host");
}

TEST(ExchangesOfParts, AreChosenByName) {
  for (const auto way : {ExchangeBy::events, ExchangeBy::kernels, ExchangeBy::transforms})
    EXPECT_EQ(exchange_of(name_of(way)), way);
  EXPECT_THROW(exchange_of("flags"), ParameterError);
  EXPECT_NO_THROW(exchange_by(*open("cpu+cpu"), ExchangeBy::events));
  EXPECT_THROW(exchange_by(*open("cpu"), ExchangeBy::events), UnsupportedError);
}

class ModelsOfGpus : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    first_ = test::open_or_reason("cuda:dry:0", reason);
    if (first_ == nullptr) GTEST_SKIP() << reason;
    second_ = open("cuda:dry:1");
  }
  std::shared_ptr<Device> first_, second_;
};

TEST_F(ModelsOfGpus, HaveNamesMemoriesAndAddressesOfTheirOwn) {
  EXPECT_EQ(first_->info().name, "cuda:dry:0");
  EXPECT_EQ(second_->info().name, "cuda:dry:1");
  EXPECT_EQ(first_->info().description, open("cuda:dry")->info().description);
  const auto a = first_->make_stream(), b = second_->make_stream(),
             c = open("cuda:dry")->make_stream();
  const Buffer x = a->allocate(1 << 20), y = b->allocate(1 << 20), z = c->allocate(1 << 20);
  EXPECT_NE(x.data(), y.data());
  EXPECT_NE(x.data(), z.data());
  EXPECT_EQ(first_->memory().used, second_->memory().used);
  const u64 used = second_->memory().used;
  const Buffer more = a->allocate(5 << 20);
  EXPECT_EQ(second_->memory().used, used);
  for (const char* name :
       {"cuda:dry:", "cuda:dry:-1", "cuda:dry:1x", "cuda:dry:1024", "cuda:dryer"})
    EXPECT_THROW(open(name), DeviceError) << name;
  EXPECT_EQ(open("cuda:dry:1023")->info().name, "cuda:dry:1023");
}

TEST_F(ModelsOfGpus, StateWhatCrossesTheirLinks) {
  const auto a = first_->make_stream(), b = second_->make_stream();
  EXPECT_EQ(road_between(*first_, *second_), Road::peer);
  EXPECT_EQ(road_between(*first_, *first_), Road::within);
  const auto sent = std::make_shared<Account>(), received = std::make_shared<Account>();
  a->account(sent);
  b->account(received);
  const Buffer from = a->allocate(4096), there = b->allocate(4096);
  {
    const Stage stage(*b, "keys");
    copy_across(*b, there.data(), *a, from.data(), 4096);
  }
  copy_across(*b, there.data(), *a, from.data(), 0);
  EXPECT_EQ(sent->total().launches, 0);
  ASSERT_EQ(received->records().size(), 1);
  const LaunchRecord record = received->records()[0];
  EXPECT_EQ(record.kernel, "copy_peer");
  EXPECT_EQ(record.stage, "keys");
  EXPECT_EQ(record.work, Work::copy);
  EXPECT_EQ(record.read_bytes, 4096);
  EXPECT_EQ(record.written_bytes, 4096);
}

TEST_F(ModelsOfGpus, GiveNothingToTheHost) {
  const auto host = open("cpu");
  const auto a = first_->make_stream(), b = host->make_stream();
  const Buffer from = a->allocate(64), there = b->allocate(64);
  EXPECT_EQ(road_between(*first_, *host), Road::host);
  try {
    copy_across(*b, there.data(), *a, from.data(), 64);
    FAIL() << "a model has no data";
  } catch (const UnsupportedError& e) {
    EXPECT_EQ(e.field("device"), "cuda:dry:0");
  }
  copy_across(*a, from.data(), *b, there.data(), 64);
}

}  // namespace
}  // namespace crenel::device
