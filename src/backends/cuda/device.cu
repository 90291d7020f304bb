#include <algorithm>

#include "backends/cuda/gpu.h"
#include "backends/cuda/poly/host/kernels.h"
#include "core/host_memory.h"
#include "device/several.h"

namespace crenel::backend::cuda {
namespace {

__global__ void probe() {}

// "" when device `index` can run the kernels of this build.
std::string unusable_reason(int index) {
  int count = 0;
  const std::string missing = device::cuda_missing_reason();
  if (!missing.empty()) return missing;
  CRENEL_CUDA_TRY(cudaGetDeviceCount(&count));
  if (index >= count) return cat("there are only ", count, " GPUs");
  cudaFuncAttributes attributes;
  const DeviceGuard guard(index);
  if (const cudaError_t status = cudaFuncGetAttributes(&attributes, probe); status != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return cat("this build has no code for the GPU (CRENEL_CUDA_ARCHITECTURES): ",
               cudaGetErrorString(status));
  }
  return {};
}

u32 processors_of(const cudaDeviceProp& properties, const Share* share) {
  return share != nullptr ? share->processors() : static_cast<u32>(properties.multiProcessorCount);
}

GpuModel model_of(int index, const cudaDeviceProp& properties, const Share* share) {
  return {index, properties.major, processors_of(properties, share),
          properties.sharedMemPerBlockOptin, static_cast<std::size_t>(properties.l2CacheSize)};
}

device::DeviceInfo info_of(const std::string& name, const cudaDeviceProp& properties,
                           const Share* share) {
  device::DeviceInfo info;
  info.kind = device::Kind::cuda;
  info.name = name;
  info.description = cat(properties.name, ", compute capability ", properties.major, ".",
                         properties.minor, ", ", properties.totalGlobalMem >> 30, " GiB");
  info.memory_bytes = properties.totalGlobalMem;
  info.processors = processors_of(properties, share);
  if (share != nullptr)
    info.description +=
        cat(", ", info.processors, " of its ", properties.multiProcessorCount, " multiprocessors");
  return info;
}

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties;
  CRENEL_CUDA_TRY(cudaGetDeviceProperties(&properties, index));
  return properties;
}

}  // namespace

GpuDevice::GpuDevice(int index, const std::string& name, std::unique_ptr<const Share> share)
    : CudaDevice(model_of(index, properties_of(index), share.get()),
                 info_of(name, properties_of(index), share.get())),
      share_(std::move(share)) {}

cudaStream_t GpuDevice::make_native_stream() const {
  if (share_) return share_->make_stream();
  cudaStream_t stream = nullptr;
  CRENEL_CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

std::shared_ptr<device::Stream> GpuDevice::make_stream() {
  expect_own_process();
  return std::make_shared<GpuStream>(std::static_pointer_cast<CudaDevice>(shared_from_this()));
}

void* GpuDevice::allocate(std::size_t bytes) {
  expect_own_process();
  const DeviceGuard guard(index());
  void* memory = nullptr;
  const cudaError_t status = [&] {
    const auto order = device::meeting_order();  // may wait for work of every GPU that reaches it
    return cudaMalloc(&memory, bytes == 0 ? 1 : bytes);
  }();
  if (status == cudaSuccess) return memory;
  static_cast<void>(cudaGetLastError());
  if (status != cudaErrorMemoryAllocation) fail(status, "cudaMalloc");
  const device::MemoryLeft there = left();
  throw core::out_of_memory({.what = "a block of memory", .bytes = bytes}, there.bytes, there.limit,
                            info().name);
}

void GpuDevice::deallocate(void* memory) noexcept {
  if (!in_own_process()) return;
  const auto order = device::meeting_order();
  static_cast<void>(cudaFree(memory));
}

device::MemoryUse GpuDevice::memory() const {
  expect_own_process();
  const DeviceGuard guard(index());
  std::size_t free = 0, total = 0;
  CRENEL_CUDA_TRY(cudaMemGetInfo(&free, &total));
  return {total - free, total};
}

device::MemoryLeft GpuDevice::left() const {
  const device::MemoryUse use = memory();
  return {use.total - use.used, "free by the driver"};
}

void* GpuDevice::allocate_host_bytes(std::size_t bytes) {
  expect_own_process();
  const DeviceGuard guard(index());
  void* memory = nullptr;
  const cudaError_t status = [&] {
    const auto order = device::meeting_order();  // likewise
    return cudaMallocHost(&memory, std::max<std::size_t>(bytes, 1));
  }();
  if (status == cudaSuccess) return memory;
  static_cast<void>(cudaGetLastError());
  if (status != cudaErrorMemoryAllocation) fail(status, "cudaMallocHost");
  throw core::out_of_host_memory({.what = "page-locked host memory", .bytes = bytes});
}

void GpuDevice::deallocate_host_bytes(void* memory) noexcept {
  if (!in_own_process()) return;
  const auto order = device::meeting_order();
  static_cast<void>(cudaFreeHost(memory));
}

std::unique_ptr<device::PolyKernels> CudaDevice::make_poly_kernels(
    std::shared_ptr<const ring::Ring> ring) {
  return std::make_unique<CudaPolyKernels>(std::static_pointer_cast<CudaDevice>(shared_from_this()),
                                           std::move(ring));
}

}  // namespace crenel::backend::cuda

namespace crenel::device {

std::string cuda_lost_reason() {
  if (crenel::core::forks() == 0) return "";
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  if (status != cudaErrorInitializationError) return "";
  return "CUDA was in use when this process was forked, and does not survive that: start workers "
         "with spawn (or forkserver)";
}

std::string cuda_missing_reason() {
  if (const std::string lost = cuda_lost_reason(); !lost.empty()) return lost;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count > 0 ? "" : "no GPU";
  static_cast<void>(cudaGetLastError());
  if (status == cudaErrorNoDevice) return "no GPU";
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no NVIDIA driver";
  return cat("the NVIDIA driver (CUDA ", driver / 1000, ".", driver % 1000 / 10,
             ") cannot be used: ", cudaGetErrorString(status));
}

int cuda_device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}

std::shared_ptr<Backend> make_cuda_device(int index, GpuPart part) {
  using namespace crenel::backend::cuda;
  const std::string whole = cat("cuda:", index);
  if (const std::string reason = unusable_reason(index); !reason.empty())
    throw DeviceError(cat(whole, ": ", reason), {{"device", whole}});
  if (part.parts <= 1) return std::make_shared<GpuDevice>(index, whole + part.text());
  return std::make_shared<GpuDevice>(index, whole + part.text(),
                                     std::make_unique<const Share>(index, part.part, part.parts));
}

}  // namespace crenel::device
