// What kernels need of blocks that a host has not: shared memory, their own and that of the blocks
// of their cluster, copies to it in the background, barriers of a cluster. A test that runs kernels
// on the host brings its own.
#pragma once

#include "backends/cuda/ptx.cuh"

namespace crenel::backend::cuda {

#if defined(__CUDACC__)
__device__ __forceinline__ u32 cluster_rank() {
  u32 rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// What all threads wrote before, to any memory of the cluster, is visible after.
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}
// The same place of shared memory of another block.
template <class T>
__device__ __forceinline__ T* cluster_peer(T* here, u32 rank) {
  u64 there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(here), "r"(rank));
  return reinterpret_cast<T*>(there);
}
// Dynamic shared memory.
__device__ __forceinline__ u8* block_memory() {
  extern __shared__ __align__(16) u8 block_shared[];
  return block_shared;
}
#endif

}  // namespace crenel::backend::cuda
