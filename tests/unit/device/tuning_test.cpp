// Numbers that launches go by. What they do is counted on the model of a GPU; that they change no
// bit is a matter of the GPU (python/tests/test_tuning.py).
#include "crenel/device/tuning.h"

#include <gtest/gtest.h>

#include <thread>

#include "crenel/core/error.h"
#include "device/backend.h"
#include "support/devices.h"
#include "support/random.h"

namespace crenel::device {
namespace {

// Null, with the reason, in a build without CUDA.
std::shared_ptr<Device> dry(std::string& reason) {
  return test::open_or_reason("cuda:dry", reason);
}

TEST(Tuning, NamesAreTheirOwn) {
  for (u32 i = 0; i < kTunables; ++i) {
    const auto tunable = static_cast<Tunable>(i);
    EXPECT_EQ(tunable_of(info_of(tunable).name), tunable);
    EXPECT_LT(info_of(tunable).least, info_of(tunable).most);
  }
  EXPECT_THROW(tunable_of("part_byte"), ParameterError);
  EXPECT_THROW(tunable_of(""), ParameterError);
}

TEST(Tuning, OtherDevicesHaveNone) {
  for (const char* name : {"ref", "cpu"}) {
    const auto device = open(name);
    EXPECT_THROW(tuning(*device), UnsupportedError);
    EXPECT_THROW(default_tuning(*device), UnsupportedError);
    EXPECT_THROW(set_tuning(*device, Tuning{}), UnsupportedError);
    EXPECT_FALSE(backend_of(*device).has_tuning());
  }
}

TEST(Tuning, WhatIsOutOfRangeChangesNothing) {
  std::string reason;
  const auto device = dry(reason);
  if (!device) GTEST_SKIP() << reason;
  auto rng = test::test_rng();
  const Tuning defaults = default_tuning(*device);
  EXPECT_EQ(tuning(*device), defaults);
  for (u32 i = 0; i < kTunables; ++i) {
    const TunableInfo& info = info_of(static_cast<Tunable>(i));
    EXPECT_LE(info.least, defaults[i]);
    EXPECT_GE(info.most, defaults[i]);
    Tuning wanted = defaults;
    wanted[(i + 1) % kTunables] = info_of(static_cast<Tunable>((i + 1) % kTunables)).least;
    for (const u64 wrong : {info.least - 1, info.most + 1, info.most + 1 + (rng() >> 32)}) {
      if (wrong >= info.least && wrong <= info.most) continue;
      wanted[i] = wrong;
      EXPECT_THROW(set_tuning(*device, wanted), ParameterError) << info.name << " " << wrong;
      EXPECT_EQ(tuning(*device), defaults);
    }
    wanted[i] = info.least + rng() % (info.most - info.least + 1);
    set_tuning(*device, wanted);
    EXPECT_EQ(tuning(*device), wanted);
    set_tuning(*device, defaults);
  }
}

TEST(Tuning, PartsHaveTheSame) {
  std::string reason;
  if (!dry(reason)) GTEST_SKIP() << reason;
  const auto device = open("cuda:dry:0+1");
  const auto parts = device->parts();
  const Tuning defaults = default_tuning(*parts[0]);
  EXPECT_EQ(default_tuning(*device), defaults);
  Tuning wanted = defaults;
  wanted[u32(Tunable::row_polys)] += 1;
  set_tuning(*device, wanted);
  for (const auto& part : parts) EXPECT_EQ(tuning(*part), wanted);
  EXPECT_EQ(tuning(*device), wanted);
  EXPECT_EQ(default_tuning(*device), defaults);

  set_tuning(*parts[1], defaults);
  EXPECT_THROW(tuning(*device), StateError);
  auto wrong = wanted;
  wrong[u32(Tunable::part_bytes)] = 1;
  EXPECT_THROW(set_tuning(*device, wrong), ParameterError);
  EXPECT_EQ(tuning(*parts[0]), wanted);
  EXPECT_EQ(tuning(*parts[1]), defaults);

  set_tuning(*device, defaults);
  EXPECT_EQ(tuning(*device), defaults);
  EXPECT_THROW(tuning(*open("cpu+cpu")), UnsupportedError);
  EXPECT_THROW(set_tuning(*open("cpu+cpu"), defaults), UnsupportedError);
}

TEST(Tuning, ThreadsMaySetAndReadIt) {
  std::string reason;
  if (!dry(reason)) GTEST_SKIP() << reason;
  for (const char* name : {"cuda:dry", "cuda:dry:0+1+2"}) {
    const auto device = open(name);
    const Tuning defaults = default_tuning(*device);
    Tuning other = defaults;
    other[0] = info_of(Tunable::part_bytes).least;
    const auto write = [&](const Tuning& first, const Tuning& second) {
      for (int i = 0; i < 1000; ++i) set_tuning(*device, i % 2 ? first : second);
    };
    std::thread one([&] { write(defaults, other); }), two([&] { write(other, defaults); });
    for (int i = 0; i < 1000; ++i) {
      const Tuning now = tuning(*device);  // parts that differed would throw
      EXPECT_TRUE(now == defaults || now == other);
    }
    one.join(), two.join();
    EXPECT_NO_THROW(tuning(*device));
  }
}

}  // namespace
}  // namespace crenel::device
