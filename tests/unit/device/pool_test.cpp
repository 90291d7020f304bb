// The stream's memory pool, on a device that counts.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>
#include <thread>

#include "crenel/core/error.h"
#include "crenel/core/secret_memory.h"
#include "crenel/device/device.h"
#include "support/child.h"

namespace crenel::device {
namespace {

class CountingDevice final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  std::shared_ptr<Stream> make_stream() override;
  void* allocate(std::size_t bytes) override {
    if (live_bytes_ + bytes > limit_) throw DeviceError("out of memory");
    ++allocations_;
    void* p = std::malloc(bytes);
    sizes_[p] = bytes;
    live_bytes_ += bytes;
    return p;
  }
  void deallocate(void* memory) noexcept override {
    live_bytes_ -= sizes_[memory];
    sizes_.erase(memory);
    std::free(memory);
  }

  bool in_host_memory() const override { return in_host_memory_; }

  std::size_t allocations_ = 0, live_bytes_ = 0, limit_ = ~std::size_t(0);
  bool in_host_memory_ = false, survives_fork_ = true;

 protected:
  bool survives_fork() const noexcept override { return survives_fork_; }

 private:
  DeviceInfo info_;
  std::map<void*, std::size_t> sizes_;
};

class PlainStream final : public Stream {
 public:
  using Stream::Stream;
  ~PlainStream() override { release_pool(); }
  void synchronize() override {}
  void copy_in(void* to, const void* from, std::size_t n) override { std::memcpy(to, from, n); }
  void copy_out(void* to, const void* from, std::size_t n) override { std::memcpy(to, from, n); }
  void copy(void* to, const void* from, std::size_t n) override { std::memcpy(to, from, n); }
  void copy_rows(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t) override {}
  void fill_zero(void* data, std::size_t n) override { std::memset(data, 0, n); }
  void wait_for(Stream&) override {}

 protected:
  // As a real graph: the work runs once while it is recorded, and the memory it got is part of it.
  std::unique_ptr<GraphExec> record(const std::function<void()>& work) override {
    work();
    return Stream::record([] {});
  }
};

std::shared_ptr<Stream> CountingDevice::make_stream() {
  return std::make_shared<PlainStream>(shared_from_this());
}

// As stated in src/device/pool.h.
constexpr std::size_t kFloor = std::size_t(64) << 20;

class Pool : public testing::Test {
 protected:
  std::shared_ptr<CountingDevice> device_ = std::make_shared<CountingDevice>();
  std::shared_ptr<Stream> stream_ = device_->make_stream();
};

TEST_F(Pool, ReusesBlocksOfTheSameSize) {
  void* first;
  {
    const Buffer a = stream_->allocate(5000);
    first = a.data();
    EXPECT_EQ(a.bytes(), 5000u);
  }
  const Buffer b = stream_->allocate(5000);
  EXPECT_EQ(b.data(), first);
  EXPECT_EQ(device_->allocations_, 1u);
}

TEST_F(Pool, NoGrowthAfterWarmUp) {
  const auto work = [&] {
    std::vector<Buffer> held;
    for (const std::size_t bytes : {100u, 70000u, 4096u, 70000u, 1u << 20})
      held.push_back(stream_->allocate(bytes));
    held.erase(held.begin() + 1);
    held.push_back(stream_->allocate(70001));
  };
  work();
  const std::size_t allocations = device_->allocations_;
  for (int i = 0; i < 5; ++i) work();
  EXPECT_EQ(device_->allocations_, allocations);
  EXPECT_EQ(stream_->bytes_in_use(), 0u);
}

TEST_F(Pool, CountsBytes) {
  const Buffer a = stream_->allocate(4096);
  EXPECT_EQ(stream_->bytes_in_use(), 4096u);
  {
    const Buffer b = stream_->allocate(4096);
  }
  EXPECT_EQ(stream_->bytes_in_use(), 4096u);
  EXPECT_EQ(stream_->peak_bytes(), 8192u);
  stream_->reset_peak();
  EXPECT_EQ(stream_->peak_bytes(), 4096u);
}

TEST_F(Pool, WastesAtMostAQuarter) {
  for (std::size_t bytes = 257; bytes < 100000; bytes = bytes * 9 / 8 + 1) {
    const Buffer b = stream_->allocate(bytes);
    EXPECT_GE(stream_->bytes_in_use(), bytes);
    EXPECT_LE(stream_->bytes_in_use(), bytes + bytes / 4 + 1) << bytes;
  }
}

TEST_F(Pool, TrimAndDestructionGiveEverythingBack) {
  {
    const Buffer kept = stream_->allocate(1000);
    {
      const Buffer cached = stream_->allocate(50000);
    }
    stream_->trim();
    EXPECT_LE(device_->live_bytes_, 1024u);
  }
  stream_.reset();
  EXPECT_EQ(device_->live_bytes_, 0u);
}

TEST_F(Pool, BufferOutlivesItsStreamPointer) {
  Buffer buffer = stream_->allocate(1000);
  stream_.reset();
  std::memset(buffer.data(), 1, 1000);
  buffer = Buffer();
  EXPECT_EQ(device_->live_bytes_, 0u);
}

TEST_F(Pool, CachedMemoryIsGivenUpBeforeFailing) {
  device_->limit_ = 100000;
  {
    const Buffer cached = stream_->allocate(60000);
  }
  EXPECT_NO_THROW(stream_->allocate(90000))
      << "the cached block has another size and must make room";
  EXPECT_THROW(stream_->allocate(200000), DeviceError);
}

TEST_F(Pool, SecretMemoryIsWipedOnRelease) {
  u8* memory;
  {
    const Buffer secret = stream_->allocate(4096, true);
    memory = secret.as<u8>();
    std::memset(memory, 0x5a, 4096);
  }
  // Still owned by the pool, so still readable.
  EXPECT_EQ(std::count(memory, memory + 4096, 0), 4096);
}

// What a device lets go of unwritten must not uncover a secret below the zeros.
TEST_F(Pool, BlocksOfSecretsServeSecretsOnly) {
  const auto stream = device_->make_stream();
  const void* secret = stream->allocate(5000, true).data();
  const Buffer ordinary = stream->allocate(5000);
  EXPECT_NE(ordinary.data(), secret);
  EXPECT_EQ(stream->allocate(5000, true).data(), secret);
  const void* plain = stream->allocate(9000).data();
  EXPECT_NE(stream->allocate(9000, true).data(), plain);
  EXPECT_EQ(stream->allocate(9000).data(), plain);
  const std::size_t idle = stream->pool().idle;
  EXPECT_GE(idle, 5000u + 2 * 9000u);
  stream->trim();
  EXPECT_EQ(stream->pool().idle, 0u);
}

TEST_F(Pool, SecretsOfHostDevicesLieInPagesOfTheirOwn) {
  device_->in_host_memory_ = true;
  const u64 before = secret_memory().bytes;
  u8* memory;
  {
    const Buffer secret = stream_->allocate(5000, true);
    memory = secret.as<u8>();
    std::memset(memory, 0x5a, 5000);
    EXPECT_EQ(device_->allocations_, 0u);
    EXPECT_EQ(secret_memory().bytes, before + 8192);
    EXPECT_GE(stream_->bytes_in_use(), 5000u);
  }
  EXPECT_EQ(secret_memory().bytes, before);
  EXPECT_EQ(stream_->bytes_in_use(), 0u);
  EXPECT_EQ(std::count(memory, memory + 5000, 0), 5000) << "idle, and wiped";
  const Buffer ordinary = stream_->allocate(5000);
  EXPECT_NE(ordinary.data(), memory);
  stream_->trim();
  EXPECT_EQ(secret_memory().idle_bytes, 0u);
}

// As a GPU's, whose driver's state a child does not have.
TEST_F(Pool, ADeviceThatDoesNotSurviveForkIsRefusedInTheChild) {
  device_->survives_fork_ = false;
  auto held = std::make_unique<Buffer>(stream_->allocate(3000));
  {
    const Buffer idle = stream_->allocate(50000);
  }
  EXPECT_NO_THROW(device_->expect_own_process());
  EXPECT_EQ(test::in_child([&] {
              int refused = 0;
              for (const bool secret : {false, true}) {
                try {
                  stream_->allocate(50000, secret);
                } catch (const StateError& error) {
                  if (error.field("found") == "a forked process" &&
                      std::string(error.what()).find("spawn") != std::string::npos)
                    ++refused;
                }
              }
              const std::size_t live = device_->live_bytes_;
              held.reset();
              stream_.reset();
              // What the parent's driver gave is not given back to it from here.
              const bool untouched = device_->live_bytes_ == live;
              auto own = std::make_shared<CountingDevice>();
              own->survives_fork_ = false;
              own->make_stream()->allocate(100);  // one that the child opened
              return refused == 2 && untouched;
            }),
            "");
  EXPECT_NO_THROW(stream_->allocate(50000));
}

TEST_F(Pool, ABufferIsGivenBackThoughItsPoolWasInUseAtTheFork) {
  // In the child, whoever holds the pool's lock is not there: nothing waits, nothing throws.
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) stream_->allocate(700);
  });
  for (int i = 0; i < 50; ++i) {
    auto held = std::make_unique<Buffer>();
    *held = stream_->allocate(3000);
    EXPECT_EQ(test::in_child([&] {
                held.reset();
                try {
                  stream_->allocate(3000);
                } catch (const StateError& error) {
                  return error.field("found") == "a lock held across fork()";
                }
                return true;
              }),
              "");
  }
  stop = true;
  other.join();
}

TEST_F(Pool, MovingABufferKeepsOneOwner) {
  Buffer a = stream_->allocate(100);
  void* data = a.data();
  Buffer b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT: what is left is the point
  EXPECT_EQ(b.data(), data);
  b = stream_->allocate(100);
  EXPECT_NE(b.data(), data);
  EXPECT_EQ(stream_->bytes_in_use(), 256u);
}

TEST_F(Pool, CaptureKeepsItsBlocks) {
  void* inside = nullptr;
  auto graph = stream_->capture([&] { inside = stream_->allocate(3000).data(); });
  const Buffer other = stream_->allocate(3000);
  EXPECT_NE(other.data(), inside) << "the recording may run again and write there";
  EXPECT_NO_THROW(graph->launch(*stream_));
  graph.reset();
  stream_->trim();
  EXPECT_EQ(device_->live_bytes_, stream_->bytes_in_use());
}

TEST_F(Pool, FailedCaptureLeavesTheStreamUsable) {
  int runs = 0;
  EXPECT_THROW(stream_->capture([&] {
    if (++runs == 2) throw StateError("second run");
  }),
               StateError);
  EXPECT_NO_THROW(stream_->capture([] {}));
}

// Three runs of a batch; every run is `phases` after each other, each with four buffers of its own
// size.
void run_batch(Stream& stream, std::size_t batch, std::size_t phases) {
  constexpr std::size_t kMiB = std::size_t(1) << 20;
  for (int run = 0; run < 3; ++run)
    for (std::size_t phase = 0; phase < phases; ++phase) {
      std::vector<Buffer> held;
      for (int k = 0; k < 4; ++k) held.push_back(stream.allocate(batch * kMiB * 8 >> phase));
    }
}

TEST_F(Pool, ASweepOfBatchesGivesMemoryBack) {
  std::size_t most = 0;
  // What a limit takes away again and again says nothing about what the sweep needs.
  device_->set_idle_limit(0);
  for (int k = 0; k < 20; ++k) run_batch(*stream_, 4, 1);
  device_->set_idle_limit(std::numeric_limits<std::size_t>::max());
  for (std::size_t batch = 1; batch <= 64; batch = batch * 3 / 2 + 1) {
    run_batch(*stream_, batch, 1);
    most = std::max(most, device_->live_bytes_);
    EXPECT_LE(device_->live_bytes_, std::max(stream_->peak_bytes() / 4 * 5, kFloor))
        << "batch " << batch;
  }
  EXPECT_EQ(device_->live_bytes_, stream_->pool().held());
  EXPECT_GT(most, kFloor) << "nothing was tried";
}

// Work whose sizes do not serve each other holds more than its peak; it must not pay for that.
TEST_F(Pool, WarmWorkTakesNoMemory) {
  run_batch(*stream_, 16, 5);
  const std::size_t allocations = device_->allocations_, held = device_->live_bytes_;
  EXPECT_GT(held, stream_->peak_bytes() / 4 * 5) << "within the bound there is nothing to show";
  run_batch(*stream_, 16, 5);
  EXPECT_EQ(device_->allocations_, allocations);
  EXPECT_EQ(device_->live_bytes_, held);
}

TEST_F(Pool, TheLimitOnIdleMemoryHolds) {
  device_->set_idle_limit(100000);
  {
    const Buffer a = stream_->allocate(65536), b = stream_->allocate(65536);
    EXPECT_EQ(stream_->pool().in_use, 131072u) << "what is used is not limited";
  }
  EXPECT_EQ(stream_->pool().idle, 65536u);
  device_->set_idle_limit(10);
  EXPECT_EQ(device_->live_bytes_, 0u) << "what was idle is given back as well";
  EXPECT_EQ(device_->idle_limit(), 10u);
}

TEST_F(Pool, ADeviceTrimsAndCountsAllItsStreams) {
  const auto other = device_->make_stream();
  const Buffer kept = stream_->allocate(4096);
  {
    const Buffer a = stream_->allocate(65536), b = other->allocate(131072);
  }
  EXPECT_EQ(device_->pools().in_use, 4096u);
  EXPECT_EQ(device_->pools().idle, 65536u + 131072u);
  EXPECT_EQ(device_->pools().held(), device_->live_bytes_);
  device_->trim();
  EXPECT_EQ(device_->pools().idle, 0u);
  EXPECT_EQ(device_->live_bytes_, 4096u);
}

TEST_F(Pool, MemoryOfGraphsIsCountedAndStays) {
  auto graph = stream_->capture([this] { stream_->allocate(65536); });
  EXPECT_EQ(stream_->pool().graphs, 65536u);
  EXPECT_EQ(stream_->pool().held(), device_->live_bytes_);
  device_->set_idle_limit(0);
  device_->trim();
  EXPECT_EQ(device_->live_bytes_, 65536u);
  graph.reset();
  EXPECT_EQ(stream_->pool().graphs, 0u);
  device_->trim();
  EXPECT_EQ(device_->live_bytes_, 0u);
}

// The recording gets what the warm-up sized.
TEST_F(Pool, ARecordingTakesNoMemory) {
  int runs = 0;
  std::size_t before = 0;
  const auto graph = stream_->capture([&] {
    if (++runs == 2) before = device_->allocations_;
    const Buffer a = stream_->allocate(65536);
    const Buffer b = stream_->allocate(4096);
    if (runs == 2) {
      EXPECT_EQ(device_->allocations_, before);
    }
  });
  EXPECT_EQ(runs, 2);
}

TEST_F(Pool, IdleMemoryOfOtherStreamsIsGivenUpBeforeFailing) {
  device_->limit_ = 100000;
  const auto other = device_->make_stream();
  {
    const Buffer cached = other->allocate(60000);
  }
  EXPECT_NO_THROW(stream_->allocate(90000));
  EXPECT_THROW(stream_->allocate(200000), DeviceError);
}

TEST_F(Pool, GraphMayOutliveItsStream) {
  auto graph = stream_->capture([this] { stream_->allocate(3000); });
  stream_.reset();
  graph.reset();
  EXPECT_EQ(device_->live_bytes_, 0u);
}

}  // namespace
}  // namespace crenel::device
