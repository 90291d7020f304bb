#include <cuda.h>

#include <map>
#include <mutex>
#include <vector>

#include "backends/cuda/share.h"

namespace crenel::backend::cuda {
namespace {

// The driver's own interface, of CUDA 12.5 on; asked for at run time, so that nothing links it.
template <class Function>
Function driver(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  CRENEL_CUDA_TRY(
      cudaGetDriverEntryPointByVersion(name, &found, 12050, cudaEnableDefault, &result));
#else
  CRENEL_CUDA_TRY(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result));
#endif
  if (result != cudaDriverEntryPointSuccess || found == nullptr)
    throw UnsupportedError(cat("parts of a GPU: the driver has no ", name, ", expected CUDA 12.5"),
                           {{"call", name}});
  return reinterpret_cast<Function>(found);
}

template <class Function, class... Args>
void call(const char* name, Args... args) {
  const CUresult status = driver<Function>(name)(args...);
  if (status == CUDA_SUCCESS) return;
  const char* text = nullptr;
  static_cast<void>(driver<decltype(&cuGetErrorName)>("cuGetErrorName")(status, &text));
  throw DeviceError(cat("CUDA: ", name, ": ", text != nullptr ? text : "unknown status"),
                    {{"call", name}, {"status", static_cast<int>(status)}});
}
#define CRENEL_DRIVER(name, ...) call<decltype(&name)>(#name, __VA_ARGS__)

// All parts of one division come from one call, which makes them disjoint.
std::vector<CUdevResource> divided(int index, u32 parts) {
  static std::mutex mutex;
  static std::map<std::pair<int, u32>, std::vector<CUdevResource>> divisions;
  const std::lock_guard lock(mutex);
  std::vector<CUdevResource>& found = divisions[{index, parts}];
  if (!found.empty()) return found;
  CUdevResource all = {};
  CRENEL_DRIVER(cuDeviceGetDevResource, CUdevice(index), &all, CU_DEV_RESOURCE_TYPE_SM);
  int major = 0;
  CRENEL_CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index));
  const u32 each = share_processors(all.sm.smCount, major, 1, parts);
  if (each == 0)
    throw DeviceError(
        cat("cuda:", index, ": ", parts, " parts of ", all.sm.smCount,
            " multiprocessors, expected at most ", all.sm.smCount / share_least(major)),
        {{"device", cat("cuda:", index)}, {"parts", parts}});
  std::vector<CUdevResource> made(parts);
  unsigned groups = parts - 1;
  CRENEL_DRIVER(cuDevSmResourceSplitByCount, made.data(), &groups, &all, &made.back(), 0u, each);
  if (groups != parts - 1)
    throw DeviceError(cat("cuda:", index, ": the driver makes ", groups, " parts of ", each,
                          " multiprocessors, expected ", parts - 1),
                      {{"device", cat("cuda:", index)}, {"parts", parts}});
  return found = std::move(made);
}

}  // namespace

Share::Share(int index, u32 part, u32 parts) {
  const DeviceGuard guard(index);
  CRENEL_CUDA_TRY(cudaFree(nullptr));  // the GPU's own context, beside which parts are made
  CUdevResource resource = divided(index, parts)[part - 1];
  processors_ = resource.sm.smCount;
  CUdevResourceDesc description = nullptr;
  CRENEL_DRIVER(cuDevResourceGenerateDesc, &description, &resource, 1u);
  CRENEL_DRIVER(cuGreenCtxCreate, &context_, description, CUdevice(index),
                static_cast<unsigned>(CU_GREEN_CTX_DEFAULT_STREAM));
}

// Nothing leaves it: of a GPU that failed, and at the process's end, CUDA does not even look up a
// call.
Share::~Share() {
  if (!process_.here() || context_ == nullptr) return;
  try {
    CRENEL_DRIVER(cuGreenCtxDestroy, context_);
  } catch (...) {
    static_cast<void>(cudaGetLastError());
  }
}

cudaStream_t Share::make_stream() const {
  CUstream stream = nullptr;
  CRENEL_DRIVER(cuGreenCtxStreamCreate, &stream, context_,
                static_cast<unsigned>(CU_STREAM_NON_BLOCKING), 0);
  return stream;
}

}  // namespace crenel::backend::cuda
