#include "backends/cuda/host/stream.h"

namespace crenel::backend::cuda {
namespace {

class CudaGraph final : public device::GraphExec {
 public:
  CudaGraph(int device, cudaGraphExec_t exec) : device_(device), exec_(exec) {}
  ~CudaGraph() override { static_cast<void>(cudaGraphExecDestroy(exec_)); }
  void launch(device::Stream& stream) override {
    const DeviceGuard guard(device_);
    CRENEL_CUDA_TRY(cudaGraphLaunch(exec_, cuda_stream(stream).handle()));
  }

 private:
  int device_;
  cudaGraphExec_t exec_;
};

struct Event {
  cudaEvent_t event = nullptr;
  Event() { CRENEL_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventDisableTiming)); }
  ~Event() { static_cast<void>(cudaEventDestroy(event)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

}  // namespace

CudaStream& cuda_stream(device::Stream& stream) {
  if (stream.device().info().kind != device::Kind::cuda)
    throw StateError(
        cat("stream of device ", stream.device().info().name, ", expected a CUDA one"));
  return static_cast<CudaStream&>(stream);
}

CudaStream::CudaStream(std::shared_ptr<CudaDevice> device)
    : Stream(device),
      index_(device->index()),
      can_overlap_(device->compute_major() >= 9),
      processors_(device->processors()) {
  const DeviceGuard guard(index_);
  CRENEL_CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

CudaStream::~CudaStream() {
  static_cast<void>(cudaStreamSynchronize(stream_));
  release_pool();
  static_cast<void>(cudaStreamDestroy(stream_));
}

void CudaStream::synchronize() { CRENEL_CUDA_TRY(cudaStreamSynchronize(stream_)); }

void CudaStream::copy_in(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
  synchronize();  // `from` may be pinned, or still be read for the last chunk
}

void CudaStream::copy_out(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_));
  synchronize();
}

void CudaStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_));
}

void CudaStream::copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                           std::size_t row_bytes, std::size_t rows) {
  if (row_bytes == 0 || rows == 0) return;
  if (rows == 1) return copy(to, from, row_bytes);
  // cudaMemcpy2D limits pitches to 2 GiB; the rows of one context stay far below.
  CRENEL_CUDA_TRY(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, row_bytes, rows,
                                    cudaMemcpyDeviceToDevice, stream_));
}

void CudaStream::fill_zero(void* data, std::size_t bytes) {
  if (bytes == 0) return;
  CRENEL_CUDA_TRY(cudaMemsetAsync(data, 0, bytes, stream_));
}

void CudaStream::wait_for(device::Stream& other) {
  CudaStream& source = cuda_stream(other);
  Event event;
  CRENEL_CUDA_TRY(cudaEventRecord(event.event, source.stream_));
  CRENEL_CUDA_TRY(cudaStreamWaitEvent(stream_, event.event, 0));
}

std::unique_ptr<device::GraphExec> CudaStream::record(const std::function<void()>& work) {
  const DeviceGuard guard(index_);
  CRENEL_CUDA_TRY(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(stream_, &graph));
    if (graph) static_cast<void>(cudaGraphDestroy(graph));
    static_cast<void>(cudaGetLastError());
    throw;
  }
  CRENEL_CUDA_TRY(cudaStreamEndCapture(stream_, &graph));
  cudaGraphExec_t exec = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&exec, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  if (status != cudaSuccess) fail(status, "cudaGraphInstantiate");
  return std::make_unique<CudaGraph>(index_, exec);
}

}  // namespace crenel::backend::cuda
