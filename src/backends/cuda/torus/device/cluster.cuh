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
// 4 bytes from global to shared memory, in the background (see copy_async).
__device__ __forceinline__ void copy_word_async(u32* to, const u32* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :
               : "r"(static_cast<u32>(__cvta_generic_to_shared(to))), "l"(from)
               : "memory");
}
__device__ __forceinline__ void close_copies() { commit_copies(); }
__device__ __forceinline__ void await_copies_but_last() { wait_for_copies_but_last(); }
#endif

}  // namespace crenel::backend::cuda
