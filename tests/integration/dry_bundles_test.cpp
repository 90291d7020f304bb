// What launches of blind rotations by groups state to an account, on the dry device.
#include <algorithm>

#include "crenel/device/account.h"
#include "device/backend.h"
#include "device/torus/tuner.h"
#include "support/devices.h"
#include "tfhe/params/plan.h"

namespace crenel::device {
namespace {

constexpr const char* kDry = "cuda:dry";

#define CRENEL_NEEDS_DRY()                                                     \
  if (std::string reason; test::open_or_reason(kDry, reason), !reason.empty()) \
  GTEST_SKIP() << reason

struct Launches {
  Launches(const char* set, u32 step, u32 slots = 1, const char* gpu = kDry)
      : device(open(gpu)),
        stream(device->make_stream()),
        kernels(backend_of(*device).make_torus_kernels(tfhe::plan_of(
            tfhe::Params::preset(set).with_slots(tfhe::SlotCount(slots)).with_step(step)))),
        tuner(dynamic_cast<RotationTuner*>(kernels.get())) {}

  std::vector<LaunchRecord> of(const std::function<void()>& work) const {
    const auto account = std::make_shared<Account>();
    stream->account(account);
    work();
    stream->account(nullptr);
    return account->records();
  }
  // Addresses are made up, and read by nobody.
  std::vector<LaunchRecord> rotation(u32 batch) const {
    u64 memory = 0;
    return of([&] {
      kernels->blind_rotate(*stream,
                            {&memory, kernels->extracted(batch), kernels->extracted_word_bytes()},
                            {reinterpret_cast<const u32*>(&memory), kernels->read(batch)}, &memory,
                            {&memory, &memory, 1, nullptr});
    });
  }

  std::shared_ptr<Device> device;
  std::shared_ptr<Stream> stream;
  std::unique_ptr<TorusKernels> kernels;
  RotationTuner* tuner;
};

Traffic sum(const std::vector<LaunchRecord>& records) {
  Traffic t;
  for (const auto& r : records) t += r;
  return t;
}

// Cards before compute capability 9.0 have no clusters of blocks.
TEST(DryBundles, AnA100HasFormsOfOneBlockOnly) {
  CRENEL_NEEDS_DRY();
  for (const char* set : {"lut4-128", "bool128"})
    for (const u32 step : {1u, 2u, 4u}) {
      const Launches hopper(set, step), ampere(set, step, 1, "cuda:dry-a100");
      for (const u32 batch : {1u, 16u, 528u}) {
        SCOPED_TRACE(testing::Message() << set << ", steps of " << step << ", batch " << batch);
        const auto clusters = [](const std::vector<LaunchRecord>& records) {
          return std::count_if(records.begin(), records.end(),
                               [](const auto& r) { return r.kernel == "cluster_rotate"; });
        };
        const auto here = hopper.rotation(batch), there = ampere.rotation(batch);
        EXPECT_EQ(clusters(here) > 0, batch <= 16);
        EXPECT_EQ(clusters(there), 0);
        EXPECT_EQ(sum(here).multiply_adds, sum(there).multiply_adds);
      }
      EXPECT_LT(ampere.tuner->shapes().size(), hopper.tuner->shapes().size());
    }
}

TEST(DryBundles, EveryFormStatesTheSameProducts) {
  CRENEL_NEEDS_DRY();
  for (const char* set : {"lut4-128", "bool128"})
    for (const u32 step : {1u, 2u, 4u}) {
      const Launches launches(set, step);
      const TorusPlan& plan = launches.kernels->plan();
      const u64 points = plan.ring_dim() / 2, square = u64(plan.polys()) * plan.polys();
      const u64 key = plan.steps() * (square << step) * points * 16;
      EXPECT_EQ(launches.kernels->bootstrap_key_bytes(), key);
      for (const u32 batch : {1u, 33u, 530u}) {
        const u64 butterflies =
            u64(batch) * plan.steps() * 2 * plan.polys() * points / 2 * (plan.log_n - 1);
        const u64 products =
            butterflies + batch * plan.steps() * (square + (square << step)) * points;
        const auto shapes = launches.tuner->shapes();
        for (u32 shape = 0; shape < shapes.size(); ++shape) {
          launches.tuner->use_shape(shape, 0);
          const Traffic t = sum(launches.rotation(batch));
          SCOPED_TRACE(cat(set, ", step ", step, ", batch ", batch, ", ", shapes[shape].name));
          EXPECT_EQ(t.butterflies, butterflies);
          EXPECT_EQ(t.multiply_adds, products);
          const bool ahead = shapes[shape].name.rfind("ahead", 0) == 0;
          // Words of a key serve the rows of a block, or four rows whose bundles are made ahead.
          const u32 rows = ahead ? (batch == 1 ? 1 : 4) : shapes[shape].rows;
          EXPECT_EQ(t.streamed_bytes, (batch + rows - 1) / rows * key);
          if (!ahead) {
            EXPECT_EQ(t.launches, 2u);
          }
        }
      }
    }
}

// By differences a step has no key of the empty set, and no products with a bundle.
TEST(DryBundles, DifferencesOfSeveralMessages) {
  CRENEL_NEEDS_DRY();
  for (const u32 slots : {1u, 4u, 5u, 6u}) {
    const Launches launches("bool128-packed", 1, slots);
    const TorusPlan& plan = launches.kernels->plan();
    const u64 points = plan.ring_dim() / 2, products = plan.steps() * plan.key_polys() * points;
    EXPECT_EQ(plan.key_polys(), u64(plan.polys()) * plan.polys());
    EXPECT_EQ(launches.kernels->bootstrap_key_bytes(), products * 16);
    const auto shapes = launches.tuner->shapes();
    EXPECT_EQ(shapes.size(), slots == 5 ? 4u : slots == 6 ? 1u : 2u);
    for (u32 shape = 0; shape < shapes.size(); ++shape)
      for (const u32 batch : {1u, 133u}) {
        SCOPED_TRACE(cat(slots, " messages, batch ", batch, ", ", shapes[shape].name));
        launches.tuner->use_shape(shape, 0);
        const auto records = launches.rotation(batch);
        const Traffic t = sum(records);
        EXPECT_EQ(t.multiply_adds, t.butterflies + batch * products);
        EXPECT_EQ(t.streamed_bytes,
                  (batch + shapes[shape].rows - 1) / shapes[shape].rows * products * 16);
        EXPECT_EQ(records.back().written_bytes, u64(batch) * plan.words() * sizeof(u32));
        EXPECT_EQ(records.back().kernel == "difference_rotate",
                  shapes[shape].name.starts_with("differences"));
      }
  }
}

// Bundles are written by one launch and read by the next, accumulators go through memory.
TEST(DryBundles, OneRowAhead) {
  CRENEL_NEEDS_DRY();
  const Launches launches("lut4-128", 4);
  const TorusPlan& plan = launches.kernels->plan();
  const auto shapes = launches.tuner->shapes();
  for (u32 shape = 0; shape < shapes.size(); ++shape) {
    if (shapes[shape].name.rfind("ahead", 0) != 0) continue;
    launches.tuner->use_shape(shape, 0);
    const auto records = launches.rotation(1);
    const u64 bundles = u64(plan.steps()) * 4 * 1024 * 16, exponents = 2 * (1 + 16 * plan.steps());
    const u64 state = 2 * 2048 * 4, parts = records.size() - 2;
    EXPECT_EQ(records.front().kernel, "cut_exponents");
    EXPECT_EQ(records.front().written_bytes, exponents);
    const Traffic t = sum(records);
    EXPECT_EQ(t.written_bytes, exponents + bundles + (parts - 1) * state + 4 * 2049);
    const u64 read = launches.kernels->bootstrap_key_bytes() + bundles + (parts - 1) * state;
    EXPECT_EQ(t.read_bytes, 4 * (plan.lwe_dim + 1) + read + (exponents - 2) + 2 * parts);
  }
}

// What the table of forms splits is whole: exponents of every row are cut once, and every row is
// written once.
TEST(DryBundles, EveryBatchIsTakenWhole) {
  CRENEL_NEEDS_DRY();
  struct Case {
    const char* set;
    u32 step, slots;
  };
  for (const auto& [set, step, slots] : {Case{"lut4-128", 1, 1},
                                         {"lut4-128", 2, 1},
                                         {"lut4-128", 4, 1},
                                         {"bool128", 1, 1},
                                         {"bool128", 2, 1},
                                         {"bool128", 4, 1},
                                         {"bool128-packed", 1, 5},
                                         {"bool128-packed", 1, 3},
                                         {"bool128", 2, 5}}) {
    const Launches launches(set, step, slots);
    const TorusPlan& plan = launches.kernels->plan();
    const u64 exponents = 2 * (slots + (u64(plan.steps()) << step));
    for (u32 batch = 1; batch < 150000; batch = batch < 1200 ? batch + 1 : 3 * batch) {
      u64 cut = 0, rows = 0, butterflies = 0;
      for (const auto& record : launches.rotation(batch)) {
        butterflies += record.butterflies;
        if (record.kernel != "cut_exponents") continue;
        cut += record.written_bytes, rows += record.read_bytes / (4 * plan.read_words());
      }
      ASSERT_EQ(rows, batch) << set << ", step " << step;
      ASSERT_EQ(cut, batch * exponents);
      ASSERT_EQ(butterflies, u64(batch) * plan.steps() * 2 * plan.polys() * (plan.ring_dim() / 4) *
                                 (plan.log_n - 1));
    }
  }
}

TEST(DryBundles, SwitchReadsTheKeyOnceATile) {
  CRENEL_NEEDS_DRY();
  const Launches launches("lut4-128", 2);
  const SwitchShape shape = launches.kernels->switch_shape();
  for (const auto& [batch, tiles] : {std::pair{1u, 1u}, {16u, 1u}, {17u, 1u}, {129u, 2u}}) {
    u32 memory = 0;
    const Traffic t = sum(launches.of([&] {
      launches.kernels->key_switch(*launches.stream, shape, {&memory, shape.out(batch)},
                                   {static_cast<const u32*>(&memory), shape.in(batch)},
                                   shape.key<const void>(&memory));
    }));
    EXPECT_EQ(t.streamed_bytes, tiles * shape.key_bytes()) << batch;
  }
}

}  // namespace
}  // namespace crenel::device
