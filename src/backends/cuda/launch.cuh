// The one way kernels are launched: checked, on the stream's device, capturable.
#pragma once

#include <utility>

#include "backends/cuda/stream.h"
#include "backends/cuda/traffic.h"

namespace crenel::backend::cuda {

/// Nothing is launched for an empty grid. `cost` returns the LaunchRecord (traffic.h); it is asked
/// only when an account is attached. `cluster` blocks with the same y and z form a cluster, where
/// the kernel does not say itself how many.
template <class Cost, class... Params, class... Args>
void launch_clusters(device::Stream& stream, const Cost& cost, void (*kernel)(Params...),
                     u32 cluster, dim3 grid, dim3 block, std::size_t shared_bytes, Args&&... args) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  CudaStream& queue = cuda_stream(stream);
  if (const auto account = queue.account()) queue.state(*account, cost());
  if (queue.dry()) return;
  const DeviceGuard guard(queue.device_index());
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = queue.handle();
  // Overlap with the end of the previous kernel; see begin_kernel in device/ptx.cuh.
  cudaLaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if (queue.can_overlap()) {
    cudaLaunchAttribute& overlap = attributes[config.numAttrs++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    cudaLaunchAttribute& blocks = attributes[config.numAttrs++];
    blocks.id = cudaLaunchAttributeClusterDimension;
    blocks.val.clusterDim = {cluster, 1, 1};
  }
  CRENEL_CUDA_TRY(cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...));
  queue.launched();
}

template <class Cost, class... Params, class... Args>
void launch(device::Stream& stream, const Cost& cost, void (*kernel)(Params...), dim3 grid,
            dim3 block, std::size_t shared_bytes, Args&&... args) {
  launch_clusters(stream, cost, kernel, 1, grid, block, shared_bytes, std::forward<Args>(args)...);
}

inline u32 divide_up(u64 a, u32 b) { return static_cast<u32>((a + b - 1) / b); }

}  // namespace crenel::backend::cuda
