// What kernels need of blocks that a host has not: shared memory, their own and that of the blocks
// of their cluster, copies to it in the background, barriers of a cluster. A test that runs kernels
// on the host brings its own.
#pragma once

#include "backends/cuda/ptx.cuh"

namespace crenel::backend::cuda {

// GPUs before compute capability 9.0 have no clusters: kernels of them compile to what nobody
// launches there (host/bundle_forms.cu).
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CRENEL_CLUSTERS 1
#define CRENEL_CLUSTER_OF(blocks) __cluster_dims__(blocks, 1, 1)
#else
#define CRENEL_CLUSTERS 0
#define CRENEL_CLUSTER_OF(blocks)
#endif

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
#endif

}  // namespace crenel::backend::cuda
