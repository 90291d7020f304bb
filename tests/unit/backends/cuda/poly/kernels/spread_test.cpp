// The kernel that spreads limbs over GPUs on the host, a process a GPU: all limbs have come when it
// ends, whoever is late. What is left for GPUs to show is that they see one another's stores in
// this order.
#include "support/host_block.h"

//
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace crenel::backend::cuda {
inline void fence_system() { std::atomic_thread_fence(std::memory_order_acq_rel); }
inline void store_release_system(u32* p, u32 v) {
  std::atomic_ref(*p).store(v, std::memory_order_release);
}
inline u32 load_acquire_system(const u32* p) {
  std::this_thread::yield();  // there may be more parts than cores
  return std::atomic_ref(*const_cast<u32*>(p)).load(std::memory_order_acquire);
}
inline void fence_background() {}
inline u64 global_nanoseconds() {
  return static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch().count());
}
}  // namespace crenel::backend::cuda
static void __trap() { std::abort(); }

#include "backends/cuda/poly/kernels/spread.cuh"
#include "support/child.h"
#include "support/random.h"

namespace crenel::test {
namespace {

using namespace backend::cuda;

constexpr u32 kLogN = 11, kLimbs = 7, kPolys = 2, kWords = 64;
constexpr std::size_t kRoom = std::size_t(kPolys * kLimbs) << kLogN;

// What all parts see: of each the words that it meets with, and two rooms.
struct Host {
  u32 words[4][kWords];
  u32 rooms[4][2][kRoom];
};

u32 value(u32 turn, u32 poly, u32 limb, u32 i) {
  return (turn * 31 + poly * 7 + limb) * 0x9e3779b1u + i * 0x85ebca6bu;
}

// Turn after turn of one part, each checked when its kernel has ended.
bool take_part(Host& host, u32 part, u32 parts, u32 turns, u64 seed) {
  std::mt19937_64 rng(seed + part);
  std::vector<u32> own(kRoom);
  for (u32 t = 0; t < turns; ++t) {
    SpreadArgs args = {};
    args.log_n = kLogN, args.components = kPolys, args.targets = args.parts = parts;
    args.part = part;
    for (u32 limb = 0; limb < kLimbs; ++limb)  // of a turn all on one part, others have none
      if ((t % 3 == 0 ? t : limb) % parts == part) args.position.at[args.limbs++] = u8(limb);
    args.from = {own.data(), u64(args.limbs) << kLogN, 0};
    for (u32 p = 0; p < kPolys; ++p)
      for (u32 l = 0; l < args.limbs; ++l)
        for (u32 i = 0; i < 1u << kLogN; ++i)
          own[((p * args.limbs + l) << kLogN) + i] = value(t, p, args.position.at[l], i);
    for (u32 to = 0; to < parts; ++to) {
      args.to[to] = {host.rooms[to][t % 2], u64(kLimbs) << kLogN, 0};
      args.words[to] = host.words[to];
    }
    if (rng() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(rng() % 3000));
    launch_blocks(spread_limbs,
                  {(1u << kLogN) / 4 / kElementThreads, std::max(args.limbs, 1u), kPolys}, 1,
                  kElementThreads, args);
    for (u32 p = 0; p < kPolys; ++p)
      for (u32 l = 0; l < kLimbs; ++l)
        for (u32 i = 0; i < 1u << kLogN; ++i)
          if (host.rooms[part][t % 2][((p * kLimbs + l) << kLogN) + i] != value(t, p, l, i))
            return false;
  }
  return true;
}

TEST(Meeting, AllLimbsHaveComeWhenTheKernelEnds) {
#if defined(CRENEL_TEST_ADDRESS)
  GTEST_SKIP() << "fibers: not under AddressSanitizer";
#endif
  auto rng = test_rng();
  void* memory =
      mmap(nullptr, sizeof(Host), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Host& host = *static_cast<Host*>(memory);
  for (const u32 parts : {2u, 3u, 4u}) {
    // Counts of turns that are about to begin anew at 0.
    const u32 before = static_cast<u32>(-1 - int(rng() % 10));
    for (auto& words : host.words) {
      std::fill_n(words, kWords, before);
      words[kDoneWord] = 0;
    }
    const u64 seed = rng();
    EXPECT_EQ(in_child(
                  [&] {
                    std::vector<pid_t> others;
                    for (u32 part = 1; part < parts; ++part) {
                      const pid_t child = fork();
                      if (child == 0) {
                        alarm(20);
                        _exit(take_part(host, part, parts, 20, seed) ? 0 : 1);
                      }
                      others.push_back(child);
                    }
                    bool right = take_part(host, 0, parts, 20, seed);
                    for (const pid_t child : others) {
                      int status = 0;
                      right &= waitpid(child, &status, 0) == child && status == 0;
                    }
                    return right;
                  },
                  20),
              "")
        << parts << " parts; repeat with CRENEL_SEED=" << run_seed();
  }
  munmap(memory, sizeof(Host));
}

}  // namespace
}  // namespace crenel::test
