// Runs the code of CUDA kernels on the host, one warp at a time: 32 fibers that meet at shuffles
// and ballots. For kernels that need of CUDA no more than what is defined here, so that their logic
// is tested on machines without a GPU. Include before the kernels' headers, in one source file.
#pragma once

// glibc's checked longjmp takes a jump to another stack for a mistake.
#undef _FORTIFY_SOURCE
#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>
#include <vector>

#include "crenel/core/types.h"

#define __device__
#define __host__
// Internal: the library has CUDA's own functions of these names, which launch.
#define __global__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __shared__
#define __align__(bytes) __attribute__((aligned(bytes)))

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};
// One of each, since of what is inline below a program has one, too, whatever the file that ran it.
inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace crenel::test {

/// The warp that runs. Every lane runs until the next collective; when all have come, all go on.
class HostWarp {
 public:
  static HostWarp& current() {
    static HostWarp warp;
    return warp;
  }

  /// The lanes first_thread..first_thread + 31 of a block.
  void run(unsigned first_thread, const std::function<void()>& body) {
    body_ = &body;
    for (u32 lane = 0; lane < 32; ++lane) {
      getcontext(&starts_[lane]);
      starts_[lane].uc_stack.ss_sp = stacks_.data() + lane * kStack;
      starts_[lane].uc_stack.ss_size = kStack;
      starts_[lane].uc_link = nullptr;
      makecontext(&starts_[lane], &HostWarp::start, 0);
    }
    starting_ = true;
    running_ = ~u32(0);
    diverged_ = false;
    for (; running_ != 0; starting_ = false)
      for (lane_ = 0; lane_ < 32; ++lane_) {
        if ((running_ >> lane_ & 1) == 0) continue;
        threadIdx.x = first_thread + lane_;
        // Contexts save signal masks by a system call: only for the start of a lane.
        if (_setjmp(scheduler_) != 0) continue;
        if (starting_) setcontext(&starts_[lane_]);
        _longjmp(lanes_[lane_], 1);
      }
    if (diverged_) throw std::logic_error("lanes of a warp came to different collectives");
  }

  /// All lanes write, then all read: read(values of the 32 lanes).
  template <class Read>
  auto meet(int collective, u32 value, const Read& read) {
    values_[lane_] = value;
    collectives_[lane_] = collective;
    pause();
    diverged_ |= running_ != ~u32(0) || std::any_of(collectives_, collectives_ + 32,
                                                    [&](int c) { return c != collective; });
    const auto result = read(static_cast<const u32*>(values_));
    pause();
    return result;
  }

 private:
  static constexpr std::size_t kStack = 256 << 10;

  void pause() {
    if (_setjmp(lanes_[lane_]) == 0) _longjmp(scheduler_, 1);
  }
  static void start() {
    HostWarp& warp = current();
    (*warp.body_)();
    warp.running_ &= ~(u32(1) << warp.lane_);
    warp.pause();
  }

  const std::function<void()>* body_ = nullptr;
  ucontext_t starts_[32];
  jmp_buf scheduler_, lanes_[32];
  std::vector<char> stacks_ = std::vector<char>(32 * kStack);
  u32 lane_ = 0, running_ = 0;
  u32 values_[32] = {};
  int collectives_[32] = {};
  bool diverged_ = false, starting_ = false;
};

/// Every warp of a launch, one after the other.
template <class Kernel, class Args>
void launch_on_host(Kernel kernel, dim3 grid, u32 threads, const Args& args) {
  const std::function<void()> body = [&] { kernel(args); };
  blockDim = {threads, 1, 1};
  for (u32 z = 0; z < grid.z; ++z)
    for (u32 y = 0; y < grid.y; ++y)
      for (u32 x = 0; x < grid.x; ++x)
        for (u32 first = 0; first < threads; first += 32) {
          blockIdx = {x, y, z};
          HostWarp::current().run(first, body);
        }
}

}  // namespace crenel::test

inline unsigned __shfl_sync(unsigned, unsigned value, int lane) {
  return crenel::test::HostWarp::current().meet(
      1, value, [&](const unsigned* values) { return values[lane & 31]; });
}
inline unsigned __ballot_sync(unsigned, bool value) {
  return crenel::test::HostWarp::current().meet(2, value, [](const unsigned* values) {
    unsigned bits = 0;
    for (unsigned i = 0; i < 32; ++i) bits |= (values[i] & 1) << i;
    return bits;
  });
}
inline unsigned __reduce_add_sync(unsigned, unsigned value) {
  return crenel::test::HostWarp::current().meet(3, value, [](const unsigned* values) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 32; ++i) sum += values[i];
    return sum;
  });
}
inline void __syncwarp() {
  crenel::test::HostWarp::current().meet(4, 0, [](const unsigned*) { return 0; });
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline void atomicAdd(unsigned long long* to, unsigned value) { *to += value; }
inline unsigned __viaddmin_u32(unsigned a, unsigned b, unsigned c) { return std::min(a + b, c); }
inline unsigned long __cvta_generic_to_shared(const void* p) {
  return reinterpret_cast<unsigned long>(p);
}

namespace crenel::backend::cuda {
using std::min;
extern u32 shared[];  ///< dynamic shared memory: the test defines as much as its kernels use
}  // namespace crenel::backend::cuda
