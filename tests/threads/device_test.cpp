// Streams of many threads: profiles that come and go, recordings among others' work, memory.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "crenel/core/error.h"
#include "crenel/device/account.h"
#include "support/together.h"

namespace crenel::device {
namespace {

using test::kThreads;
using test::together;

/// A device of host memory whose streams record, as a GPU's do: what the recording thread queues
/// runs at a launch, and is stated to accounts.
class TapeDevice final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  std::shared_ptr<Stream> make_stream() override;
  void* allocate(std::size_t bytes) override { return std::malloc(bytes); }
  void deallocate(void* memory) noexcept override { std::free(memory); }

 private:
  DeviceInfo info_{Kind::cpu, "tape", "", 0};
};

class TapeStream final : public Stream {
 public:
  using Stream::Stream;
  ~TapeStream() override { release_pool(); }
  void synchronize() override { expect_no_recording("synchronize"); }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    expect_no_recording("copy_in");
    std::memcpy(to, from, bytes);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    copy_in(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    state("copy", bytes);
    queue([=] { std::memmove(to, from, bytes); });
  }
  void copy_rows(void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t) override {}
  void fill_zero(void* data, std::size_t bytes) override {
    state("fill_zero", bytes);
    queue([=] { std::memset(data, 0, bytes); });
  }
  void wait_for(Stream&) override {}

 protected:
  std::unique_ptr<GraphExec> record(const std::function<void()>& work) override {
    struct Tape final : GraphExec {
      std::vector<std::function<void()>> steps;
      void launch(Stream&) override {
        for (const auto& step : steps) step();
      }
    };
    auto tape = std::make_unique<Tape>();
    tape_ = &tape->steps;
    work();
    return tape;
  }

 private:
  void queue(std::function<void()> step) {
    if (recording())
      tape_->push_back(std::move(step));
    else
      step();
  }
  void state(std::string_view kernel, std::size_t bytes) {
    const auto attached = account();
    if (!attached) return;
    LaunchRecord r;
    r.kernel = kernel;
    r.stage = stage();
    r.read_bytes = bytes;
    attached->add(std::move(r));
  }

  std::vector<std::function<void()>>* tape_ = nullptr;  ///< of the recording thread
};

std::shared_ptr<Stream> TapeDevice::make_stream() {
  return std::make_shared<TapeStream>(shared_from_this());
}

class ThreadsStream : public testing::Test {
 protected:
  std::shared_ptr<TapeDevice> device_ = std::make_shared<TapeDevice>();
  std::shared_ptr<Stream> stream_ = device_->make_stream();
};

// Thread t copies t bytes in stages "t" and "t/t".
void staged_copies(Stream& stream, u64 t, u64 count) {
  const std::string label = std::to_string(t);
  u8 from[kThreads + 1] = {}, to[kThreads + 1];
  for (u64 k = 0; k < count; ++k) {
    const Stage outer(stream, label);
    stream.copy(to, from, t);
    const Stage inner(stream, label);
    stream.copy(to, from, t);
  }
}

// A stage that began before the account was attached is unknown to it.
bool labelled(const LaunchRecord& r, bool known) {
  const std::string t = std::to_string(r.read_bytes);
  return r.stage == t || r.stage == cat(t, "/", t) || (!known && r.stage.empty());
}

TEST_F(ThreadsStream, StagesAreThoseOfTheirThread) {
  const auto account = std::make_shared<Account>();
  stream_->account(account);
  together(kThreads, [&](u64 t) { staged_copies(*stream_, t + 1, 3000); });
  std::map<u64, u64> launches;
  for (const LaunchRecord& r : account->records()) {
    ++launches[r.read_bytes];
    ASSERT_TRUE(labelled(r, true)) << r.read_bytes << " bytes in stage " << r.stage;
  }
  for (u64 t = 1; t <= kThreads; ++t) EXPECT_EQ(launches[t], 6000u) << t;
  EXPECT_EQ(stream_->stage(), "");
}

// Accounts are attached, taken off and destroyed while others launch.
TEST_F(ThreadsStream, ProfilesComeAndGo) {
  std::atomic<u64> seen{0}, wrong{0};
  std::atomic<bool> stop{false};
  together(kThreads, [&](u64 t) {
    if (t >= 2) {
      while (!stop) staged_copies(*stream_, t, 10);
      return;
    }
    // The first one goes on until it saw something: on busy cores nobody may launch meanwhile.
    for (int k = 0; k < 60 || (t == 0 && seen == 0 && k < 100000); ++k) {
      const auto account = std::make_shared<Account>();
      if (!stream_->replace_account(nullptr, account)) continue;  // the other profiler's turn
      std::this_thread::yield();
      EXPECT_TRUE(stream_->replace_account(account.get(), nullptr));
      for (const LaunchRecord& r : account->records()) ++(labelled(r, false) ? seen : wrong);
    }
    if (t == 0) stop = true;
  });
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(seen, 0u);
  EXPECT_EQ(stream_->account(), nullptr);
}

TEST_F(ThreadsStream, OthersWorkIsNotRecorded) {
  Buffer mine = stream_->allocate(4096), source = stream_->allocate(4096);
  std::memset(source.data(), 1, 4096);
  const auto account = std::make_shared<Account>();
  stream_->account(account);
  void* scratch = nullptr;
  std::vector<Buffer> theirs;  // what another thread takes while the recording runs
  int runs = 0;
  const auto graph = stream_->capture([&] {
    {
      const Buffer temporary = stream_->allocate(4096);
      scratch = temporary.data();
      stream_->copy(scratch, source.data(), 4096);
      stream_->copy(mine.data(), scratch, 4096);
    }
    if (++runs == 1) return;
    std::thread([&] {
      EXPECT_FALSE(stream_->capturing());
      for (int k = 0; k < 4; ++k) {
        theirs.push_back(stream_->allocate(4096));
        stream_->fill_zero(theirs.back().data(), 4096);
        EXPECT_EQ(*theirs.back().as<u8>(), 0) << "it runs at once";
      }
    }).join();
  });
  for (const Buffer& b : theirs) EXPECT_NE(b.data(), scratch);
  EXPECT_EQ(account->total().launches, 2u + 4u) << "the warm-up, and the other thread";
  for (const Buffer& b : theirs) std::memset(b.data(), 5, 4096);
  std::memset(source.data(), 7, 4096);
  account->clear();
  graph->launch(*stream_);
  EXPECT_EQ(*mine.as<u8>(), 7);
  EXPECT_EQ(account->total().launches, 2u) << "a replay states what was recorded";
  for (const Buffer& b : theirs) EXPECT_EQ(*b.as<u8>(), 5) << "a replay wrote to it";
}

TEST_F(ThreadsStream, RecordingsOfSeveralThreadsWaitForEachOther) {
  std::atomic<u64> inside{0}, wrong{0};
  together(kThreads, [&](u64 t) {
    for (int round = 0; round < 50; ++round) {
      Buffer out = stream_->allocate(256), in = stream_->allocate(256);
      const auto graph = stream_->capture([&] {
        if (++inside != 1) ++wrong;
        const Buffer temporary = stream_->allocate(256);
        stream_->copy(temporary.data(), in.data(), 256);
        stream_->copy(out.data(), temporary.data(), 256);
        --inside;
      });
      std::memset(in.data(), static_cast<int>(t + 1), 256);
      graph->launch(*stream_);
      if (*out.as<u8>() != t + 1) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0u);
}

TEST_F(ThreadsStream, ARecordingRefusesWhatWaits) {
  u8 byte = 0;
  const Buffer buffer = stream_->allocate(256);
  for (const std::function<void()>& wait : std::initializer_list<std::function<void()>>{
           [&] { stream_->synchronize(); }, [&] { stream_->copy_in(buffer.data(), &byte, 1); },
           [&] { stream_->trim(); }, [&] { stream_->capture([] {}); }}) {
    int runs = 0;
    EXPECT_THROW(stream_->capture([&] {
      if (++runs == 2) wait();
    }),
                 StateError);
    EXPECT_FALSE(stream_->capturing());
  }
  EXPECT_NO_THROW(stream_->capture([&] { stream_->fill_zero(buffer.data(), 256); }));
}

// Buffers of all sizes come, go and change threads while memory is given back.
TEST_F(ThreadsStream, MemoryIsNobodyElses) {
  std::atomic<u64> wrong{0};
  std::mutex mutex;
  std::vector<Buffer> passed;
  together(kThreads, [&](u64 t) {
    for (u64 k = 0; k < 2000; ++k) {
      Buffer b = stream_->allocate(256 + 977 * ((k * 7 + t) % 23));
      std::memset(b.data(), static_cast<int>(t), b.bytes());
      if (k % 50 == 49) t % 2 ? stream_->trim() : device_->set_idle_limit(k % 100 * 1000);
      for (std::size_t i = 0; i < b.bytes(); i += 64)
        if (b.as<u8>()[i] != t) ++wrong;
      const std::lock_guard lock(mutex);
      passed.push_back(std::move(b));
      if (passed.size() > 40) passed.erase(passed.begin(), passed.begin() + 20);
    }
  });
  EXPECT_EQ(wrong, 0u);
  passed.clear();
  device_->trim();
  EXPECT_EQ(device_->pools().held(), 0u);
}

}  // namespace
}  // namespace crenel::device
