// Runs the code of CUDA kernels on the host, a block or a cluster of blocks at a time: a fiber a
// thread, which runs from barrier to barrier, in another order each time; what it brings by
// copy_async comes early or late. Both orders repeat with CRENEL_SEED. Include before the kernels'
// headers, in one source file.
#pragma once

#include "support/host_warp.h"  // first: see there

//
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <utility>

#include "support/random.h"

#if defined(__SANITIZE_ADDRESS__)  // GCC's
#define CRENEL_TEST_ADDRESS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CRENEL_TEST_ADDRESS 1
#endif
#endif
#if defined(CRENEL_TEST_ADDRESS)
#include <sanitizer/asan_interface.h>
#endif

// Kernels' static variables of a block: one block, or one cluster without any, runs at a time.
#undef __shared__
#define __shared__ thread_local
#define __cluster_dims__(x, y, z)

namespace crenel::test {

class HostBlocks {
 public:
  /// Bytes of dynamic shared memory of a block.
  static constexpr std::size_t kShared = 256 << 10;

  static HostBlocks& current() {
    static HostBlocks blocks;
    return blocks;
  }

  /// `blocks` blocks of `threads` threads, `width` of them with the same y, the first with this
  /// index.
  void run(dim3 first, u32 blocks, u32 threads, u32 width, const std::function<void()>& body) {
    body_ = &body, first_ = first, threads_ = threads, width_ = width;
    clean_stacks();
    fibers_.assign(blocks * threads, {});
    stacks_.resize(fibers_.size() * kStack);
    memory_.assign(blocks * kShared, 0xa5);  // nothing of the blocks before
    all_ = {}, blocks_.assign(blocks, {}), warps_.assign((fibers_.size() + 31) / 32, {});
    all_.live = static_cast<u32>(fibers_.size());
    for (auto& b : blocks_) b.live = threads;
    std::vector<u32> order(fibers_.size());
    for (u32 i = 0; i < order.size(); ++i) {
      order[i] = i, ++warps_[i / 32].live;
      prepare(i);
    }
    while (all_.live != 0) {
      std::shuffle(order.begin(), order.end(), rng_);
      for (const u32 i : order)
        if (!fibers_[i].ended && !fibers_[i].waits()) resume(i);
    }
  }

  u32 rank() const { return at_ / threads_; }
  /// Dynamic shared memory of the block that runs.
  u8* memory() { return memory_.data() + rank() * kShared; }
  void sync_block() { wait(blocks_[rank()]); }
  void sync_warp() { wait(warps_[at_ / 32]); }
  void sync_cluster() { wait(all_); }

  /// A copy in the background: it comes at some time until the thread that runs has waited for it,
  /// here at once or then.
  void copy(void* to, const void* from, u32 bytes) {
    if (rng_() % 2 == 0)
      std::memcpy(to, from, bytes);
    else
      fibers_[at_].open.push_back({to, from, bytes});
  }
  void close_copies() {
    Fiber& fiber = fibers_[at_];
    fiber.closed.push_back(std::exchange(fiber.open, {}));
  }
  /// Those of all closed groups but the last `pending` have come.
  void wait_for_closed(u32 pending) {
    auto& groups = fibers_[at_].closed;
    for (; groups.size() > pending; groups.erase(groups.begin())) come(groups.front());
  }
  void wait_for_all() {
    close_copies();
    wait_for_closed(0);
  }

  /// What every lane of a warp brings, once all have: read(their values).
  template <class Read>
  auto meet(std::array<u32, 6> values, const Read& read) {
    const u32 warp = at_ / 32;
    fibers_[at_].values = values;
    wait(warps_[warp]);
    const auto result = read([&](u32 lane) { return fibers_[warp * 32 + lane].values; });
    wait(warps_[warp]);
    return result;
  }

 private:
  static constexpr std::size_t kStack = 128 << 10;

  struct Barrier {
    u32 live = 0, arrived = 0, passed = 0;
  };
  struct Copy {
    void* to;
    const void* from;
    u32 bytes;
  };
  struct Fiber {
    ucontext_t start;
    jmp_buf here;
    bool begun = false, ended = false;
    const Barrier* barrier = nullptr;
    u32 passed = 0;
    std::array<u32, 6> values;
    std::vector<std::vector<Copy>> closed;
    std::vector<Copy> open;
    bool waits() const { return barrier != nullptr && barrier->passed == passed; }
  };

  // Apart, since getcontext may return twice: its caller's variables would not be safe.
  [[gnu::noinline]] void prepare(u32 i) {
    ucontext_t& start = fibers_[i].start;
    getcontext(&start);
    start.uc_stack.ss_sp = stacks_.data() + i * kStack;
    start.uc_stack.ss_size = kStack;
    start.uc_link = nullptr;
    makecontext(&start, &HostBlocks::begin, 0);
  }
  void resume(u32 i) {
    at_ = i;
    threadIdx = {i % threads_ % width_, i % threads_ / width_, 0};
    blockIdx = {first_.x + i / threads_, first_.y, first_.z};
    if (_setjmp(scheduler_) != 0) return;
    Fiber& fiber = fibers_[i];
    if (!fiber.begun) {
      fiber.begun = true;
      setcontext(&fiber.start);
    }
    _longjmp(fiber.here, 1);
  }
  void pause() {
    if (_setjmp(fibers_[at_].here) == 0) _longjmp(scheduler_, 1);
  }
  // Fibers end in a jump: what AddressSanitizer has marked of their frames would stay marked.
  void clean_stacks() {
#if defined(CRENEL_TEST_ADDRESS)
    __asan_unpoison_memory_region(stacks_.data(), stacks_.size());
#endif
  }
  static void come(const std::vector<Copy>& copies) {
    for (const Copy& c : copies) std::memcpy(c.to, c.from, c.bytes);
  }
  static void open(Barrier& barrier) {
    if (barrier.arrived == barrier.live) barrier.arrived = 0, ++barrier.passed;
  }
  void wait(Barrier& barrier) {
    Fiber& fiber = fibers_[at_];
    fiber.barrier = &barrier, fiber.passed = barrier.passed;
    ++barrier.arrived;
    open(barrier);
    pause();
    fiber.barrier = nullptr;
  }
  static void begin() {
    HostBlocks& b = current();
    (*b.body_)();
    b.fibers_[b.at_].ended = true;
    // threads that have ended are not waited for
    for (Barrier* barrier : {&b.all_, &b.blocks_[b.rank()], &b.warps_[b.at_ / 32]}) {
      --barrier->live;
      if (barrier->live != 0) open(*barrier);
    }
    _longjmp(b.scheduler_, 1);
  }

  const std::function<void()>* body_ = nullptr;
  dim3 first_;
  u32 threads_ = 0, width_ = 0, at_ = 0;
  std::vector<Fiber> fibers_;
  std::vector<char> stacks_;
  std::vector<u8> memory_;
  Barrier all_;
  std::vector<Barrier> blocks_, warps_;
  jmp_buf scheduler_;
  std::mt19937 rng_{static_cast<std::mt19937::result_type>(run_seed())};
};

/// Every block of a launch, a cluster at a time.
template <class Kernel, class Args>
void launch_blocks(Kernel kernel, dim3 grid, u32 cluster, u32 threads, const Args& args,
                   u32 width = 0) {
  const std::function<void()> body = [&] { kernel(args); };
  if (width == 0) width = threads;
  blockDim = {width, threads / width, 1}, gridDim = grid;
  for (u32 z = 0; z < grid.z; ++z)
    for (u32 y = 0; y < grid.y; ++y)
      for (u32 x = 0; x < grid.x; x += cluster)
        HostBlocks::current().run({x, y, z}, cluster, threads, width, body);
}

}  // namespace crenel::test

inline void __syncthreads() { crenel::test::HostBlocks::current().sync_block(); }
inline unsigned atomicAdd(unsigned* to, unsigned value) { return std::exchange(*to, *to + value); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  unsigned bytes = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned from = selector >> (4 * i) & 7;
    bytes |= ((from < 4 ? a : b) >> (8 * (from & 3)) & 255) << (8 * i);
  }
  return bytes;
}

namespace crenel::backend::cuda {
// cluster.cuh, ptx.cuh
inline u32 cluster_rank() { return test::HostBlocks::current().rank(); }
inline void cluster_sync() { test::HostBlocks::current().sync_cluster(); }
inline u8* block_memory() { return test::HostBlocks::current().memory(); }
template <class T>
T* cluster_peer(T* here, u32 rank) {
  return reinterpret_cast<T*>(reinterpret_cast<u8*>(here) +
                              (std::ptrdiff_t(rank) - std::ptrdiff_t(cluster_rank())) *
                                  std::ptrdiff_t(test::HostBlocks::kShared));
}
template <u32 Bytes>
void copy_async(void* to, const void* from) {
  test::HostBlocks::current().copy(to, from, Bytes);
}
// Whoever reads them after reads nobody's words.
inline void discard_line(const u32* p) { std::memset(const_cast<u32*>(p), 0xa5, 128); }
// The bytes that are still to come, above this.
inline constexpr u64 kArrivalsBegun = u64(0x51ed270b) << 32 | u64(1) << 31;
inline void begin_arrivals(u64& arrivals) { arrivals = kArrivalsBegun; }
inline void expect_bytes(u64& arrivals, u32 bytes) { arrivals += bytes; }
inline void copy_whole(void* to, const void* from, u32 bytes, u64& arrivals) {
  EXPECT_EQ(arrivals >> 32, kArrivalsBegun >> 32) << "a copy before its arrivals begin";
  std::memcpy(to, from, bytes);
  arrivals -= bytes;
}
inline void copy_to_both(void* to, const void* from, u32 bytes, u64& arrivals) {
  for (u32 rank = 0; rank < 2; ++rank)
    copy_whole(cluster_peer(static_cast<u8*>(to), rank), from, bytes,
               *cluster_peer(&arrivals, rank));
}
// Of threads that all wait once.
inline void wait_for_bytes(u64& arrivals) {
  cluster_sync();
  EXPECT_EQ(arrivals, kArrivalsBegun) << "more or fewer bytes come than are expected";
}
inline void commit_copies() { test::HostBlocks::current().close_copies(); }
template <u32 Pending>
void wait_for_copies_but() {
  test::HostBlocks::current().wait_for_closed(Pending);
}
inline void wait_for_copies() { test::HostBlocks::current().wait_for_all(); }
// kernels/product_switch.cuh
inline void multiply_digits(u32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  const u32 lane = threadIdx.x & 31;
  const auto sums =
      test::HostBlocks::current().meet({a[0], a[1], a[2], a[3], b0, b1}, [&](const auto& of) {
        std::array<u32, 4> sum = {};
        for (u32 i = 0; i < 4; ++i)
          for (u32 k = 0; k < 32; ++k) {
            const auto rows = of(lane / 4 * 4 + k % 16 / 4);
            const auto columns = of((2 * (lane % 4) + i % 2) * 4 + k % 16 / 4);
            const u32 shift = 8 * (k % 4);
            const i32 x = static_cast<i8>(rows[i / 2 + k / 16 * 2] >> shift);
            sum[i] += static_cast<u32>(x) * (columns[4 + k / 16] >> shift & 255);
          }
        return sum;
      });
  for (u32 i = 0; i < 4; ++i) d[i] += sums[i];
}
}  // namespace crenel::backend::cuda
