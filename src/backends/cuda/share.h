// "cuda:0/1of2": a part of a GPU's multiprocessors as a device of its own.
//
// What moves data in one part and what computes in the other run at the same time, however each of
// their kernels would fill the GPU alone; memory and the second-level cache are everybody's.
#pragma once

#include "backends/cuda/error.h"
#include "backends/cuda/share_sizes.h"

struct CUgreenCtx_st;

namespace crenel::backend::cuda {

/// The driver's green context of a part. Parts of one division are disjoint in this process; those
/// of divisions into other numbers of parts overlap them.
class Share {
 public:
  /// Throws DeviceError where there is no such part, UnsupportedError where the driver divides no
  /// GPU.
  Share(int index, u32 part, u32 parts);
  ~Share();
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  u32 processors() const { return processors_; }
  /// A stream whose kernels run on them, to be destroyed as any other.
  cudaStream_t make_stream() const;

 private:
  CUgreenCtx_st* context_ = nullptr;
  u32 processors_ = 0;
  OwnProcess process_;
};

}  // namespace crenel::backend::cuda
