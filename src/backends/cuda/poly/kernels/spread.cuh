// Limbs to the memory of several GPUs: read once, stored to each.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "backends/cuda/poly/tuning/elementwise.h"
#include "backends/cuda/ptx.cuh"

namespace crenel::backend::cuda {

inline constexpr u32 kSpreadTargets = 16;
inline constexpr u8 kNoPlace = 0xff;  ///< of a limb that does not go
/// How long a part is waited for: far longer than a host is held up between two launches.
inline constexpr u64 kMeetingNanoseconds = u64(120) * 1000 * 1000 * 1000;

// A test that runs kernels on the host brings its own.
#if defined(__CUDACC__)
// What GPUs of one host tell one another. A fence orders what this thread stored, and what it has
// seen others store, for all of them.
__device__ __forceinline__ void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
__device__ __forceinline__ void store_release_system(u32* p, u32 v) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
__device__ __forceinline__ u32 load_acquire_system(const u32* p) {
  u32 v;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
// Copies in the background that come after this see what this thread has seen others store.
__device__ __forceinline__ void fence_background() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.global;" ::: "memory");
#endif
}
__device__ __forceinline__ u64 global_nanoseconds() {
  u64 t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
#endif

// Words of a part that its kernel and those of the others meet with; the other parts write the
// first ones only.
inline constexpr u32 kTurnWord = 32;  ///< turns that are over
inline constexpr u32 kDoneWord = 33;  ///< blocks of this turn that have stored all

struct SpreadArgs {
  Poly<const u32> from;
  Poly<u32> to[kSpreadTargets];  ///< its own memory, or another GPU's that it may write
  u32 targets;
  u32 log_n;
  u32 components;
  u32 limbs;
  LimbBytes position;          ///< of each limb in the targets, or kNoPlace
  u32* words[kSpreadTargets];  ///< of each part
  u32 parts;                   ///< 0: nobody waits here
  u32 part;                    ///< this one
};

// For all threads of the block. The last block of the grid tells the other parts that all that this
// one stores is there, and waits until all have said so: the kernel ends when every part's limbs
// have come.
__device__ __forceinline__ void meet(const SpreadArgs& args) {
  __shared__ bool last;
  __shared__ u32 turn;
  u32* const own = args.words[args.part];
  __syncthreads();
  if (threadIdx.x == 0) {
    fence_system();
    last = atomicAdd(own + kDoneWord, 1u) == gridDim.x * gridDim.y * gridDim.z - 1;
    if (last) {
      fence_system();
      turn = load_acquire_system(own + kTurnWord) + 1;
    }
  }
  __syncthreads();
  if (!last) return;
  const bool tells = threadIdx.x < args.parts && threadIdx.x != args.part;
  if (tells) store_release_system(args.words[threadIdx.x] + args.part, turn);
  if (threadIdx.x == args.part) {
    own[kTurnWord] = turn;
    own[kDoneWord] = 0;
  }
  __syncthreads();  // all are told before anybody waits
  if (!tells) return;
  const u64 began = global_nanoseconds();
  while (static_cast<int>(load_acquire_system(own + threadIdx.x) - turn) < 0)
    if (global_nanoseconds() - began > kMeetingNanoseconds) __trap();
  fence_background();
}

/// Four values a thread.
__global__ void __launch_bounds__(kElementThreads)
    spread_limbs(const __grid_constant__ SpreadArgs args) {
  begin_kernel();
  const u32 limb = blockIdx.y, poly = blockIdx.z;
  const u32 b = poly / args.components, c = poly % args.components;
  const u32 at = 4 * (threadIdx.x + blockIdx.x * kElementThreads);
  if (limb < args.limbs && args.position.at[limb] != kNoPlace && at < 1u << args.log_n) {
    const uint4 words = load4(args.from.limb(b, c, limb, args.log_n) + at);
    for (u32 t = 0; t < args.targets; ++t)
      store4(args.to[t].limb(b, c, args.position.at[limb], args.log_n) + at, words);
  }
  if (args.parts != 0) meet(args);
}

}  // namespace crenel::backend::cuda
