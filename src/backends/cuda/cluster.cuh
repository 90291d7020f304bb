// What kernels need of blocks that a host has not: shared memory, their own and that of the blocks
// of their cluster, copies to it in the background, barriers of a cluster. A test that runs kernels
// on the host brings its own.
#pragma once

#include "backends/cuda/ptx.cuh"

namespace crenel::backend::cuda {

// GPUs before compute capability 9.0 have no clusters: kernels of them compile to what nobody
// launches there (torus/host/bundle_forms.cu), or without what those have.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CRENEL_CLUSTERS 1
#define CRENEL_CLUSTER_OF(blocks) __cluster_dims__(blocks, 1, 1)
#else
#define CRENEL_CLUSTERS 0
#define CRENEL_CLUSTER_OF(blocks)
#endif

/// Compute capability from which blocks may form clusters.
inline constexpr int kClusterMajor = 9;

/// What has come of copies of many bytes, counted in shared memory. One thread begins it, before a
/// barrier of all blocks that copy; one says, once, how many bytes are expected.
using Arrivals = u64;

#if defined(__CUDACC__)
__device__ __forceinline__ u32 cluster_rank() {
  u32 rank = 0;
#if CRENEL_CLUSTERS
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}
// What all threads wrote before, to any memory of the cluster, is visible after.
__device__ __forceinline__ void cluster_sync() {
#if CRENEL_CLUSTERS
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}
// The same place of shared memory of another block.
template <class T>
__device__ __forceinline__ T* cluster_peer(T* here, u32 rank) {
#if CRENEL_CLUSTERS
  u64 there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(here), "r"(rank));
  return reinterpret_cast<T*>(there);
#else
  return here;
#endif
}
// Dynamic shared memory.
__device__ __forceinline__ u8* block_memory() {
  extern __shared__ __align__(16) u8 block_shared[];
  return block_shared;
}

#if CRENEL_CLUSTERS
__device__ __forceinline__ u32 shared_address(const void* p) {
  return static_cast<u32>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void begin_arrivals(Arrivals& arrivals) {
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(
          shared_address(&arrivals))
      : "memory");
}
__device__ __forceinline__ void expect_bytes(Arrivals& arrivals, u32 bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&arrivals)),
      "r"(bytes)
      : "memory");
}
// In the background, for one thread: multiples of 16 bytes, from and to multiples of 16.
__device__ __forceinline__ void copy_whole(void* to, const void* from, u32 bytes,
                                           Arrivals& arrivals) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&arrivals))
      : "memory");
}
// The same to the same place in both blocks of a cluster of two, counted in both.
__device__ __forceinline__ void copy_to_both(void* to, const void* from, u32 bytes,
                                             Arrivals& arrivals) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1], %2, [%3], %4;" ::"r"(shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(&arrivals)),
      "h"(static_cast<u16>(3))
      : "memory");
}
__device__ __forceinline__ void wait_for_bytes(Arrivals& arrivals) {
  asm volatile(
      "{\n\t.reg .pred there;\n\tagain:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], 0;\n\t@!there bra again;\n\t}" ::"r"(
          shared_address(&arrivals))
      : "memory");
}
#endif
#endif

}  // namespace crenel::backend::cuda
