#include <utility>

#include "backends/cuda/gpu.h"

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

class CudaEvent final : public device::Event {
 public:
  explicit CudaEvent(cudaStream_t stream) {
    CRENEL_CUDA_TRY(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    const cudaError_t status = cudaEventRecord(event_, stream);
    if (status == cudaSuccess) return;
    static_cast<void>(cudaEventDestroy(event_));
    fail(status, "cudaEventRecord");
  }
  ~CudaEvent() override { static_cast<void>(cudaEventDestroy(event_)); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  void synchronize() override { CRENEL_CUDA_TRY(cudaEventSynchronize(event_)); }
  cudaEvent_t handle() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

CudaStream& cuda_stream(device::Stream& stream) {
  if (stream.device().info().kind != device::Kind::cuda)
    throw StateError(
        cat("stream of device ", stream.device().info().name, ", expected a CUDA one"));
  return static_cast<CudaStream&>(stream);
}

void CudaStream::state(device::Account& account, device::LaunchRecord record) const {
  record.stage = stage();
  account.add(std::move(record));
}

void CudaStream::state_copy(const char* name, std::size_t read, std::size_t written) const {
  const auto attached = account();
  if (!attached) return;
  device::LaunchRecord record;
  record.kernel = name;
  record.read_bytes = read;
  record.written_bytes = written;
  state(*attached, std::move(record));
}

GpuStream::GpuStream(const std::shared_ptr<CudaDevice>& device) : CudaStream(device) {
  const DeviceGuard guard(device_index());
  CRENEL_CUDA_TRY(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking));
}

GpuStream::~GpuStream() {
  static_cast<void>(cudaStreamSynchronize(handle_));
  release_pool();
  static_cast<void>(cudaStreamDestroy(handle_));
}

void GpuStream::synchronize() {
  expect_no_recording("synchronize");
  CRENEL_CUDA_TRY(cudaStreamSynchronize(handle_));
}

void GpuStream::copy_in(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  expect_no_recording("copy_in");
  state_copy("copy_in", 0, bytes);
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, handle_));
  synchronize();  // `from` may be pinned, or still be read for the last chunk
}

void GpuStream::upload(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  expect_no_recording("upload");
  state_copy("upload", 0, bytes);
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, handle_));
}

void GpuStream::copy_out(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  expect_no_recording("copy_out");
  state_copy("copy_out", bytes, 0);
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, handle_));
  synchronize();
}

void GpuStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  state_copy("copy", bytes, bytes);
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, handle()));
}

void GpuStream::copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                          std::size_t row_bytes, std::size_t rows) {
  if (row_bytes == 0 || rows == 0) return;
  if (rows == 1) return copy(to, from, row_bytes);
  state_copy("copy", row_bytes * rows, row_bytes * rows);
  // cudaMemcpy2D limits pitches to 2 GiB; the rows of one context stay far below.
  CRENEL_CUDA_TRY(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, row_bytes, rows,
                                    cudaMemcpyDeviceToDevice, handle()));
}

void GpuStream::fill_zero(void* data, std::size_t bytes) {
  if (bytes == 0) return;
  state_copy("fill_zero", 0, bytes);
  CRENEL_CUDA_TRY(cudaMemsetAsync(data, 0, bytes, handle()));
}

void GpuStream::wait_for(device::Stream& other) {
  CudaStream& source = cuda_stream(other);
  if (source.dry()) throw StateError("a GPU cannot wait for a dry stream");
  const DeviceGuard guard(source.device_index());  // an event is its stream's device's
  const CudaEvent event(source.handle());
  CRENEL_CUDA_TRY(cudaStreamWaitEvent(handle(), event.handle(), 0));
}

std::shared_ptr<device::Event> GpuStream::mark() {
  const DeviceGuard guard(device_index());
  return std::make_shared<CudaEvent>(handle());
}

void GpuStream::wait_for(const std::shared_ptr<device::Event>& event) {
  if (!event) return;
  CRENEL_CUDA_TRY(cudaStreamWaitEvent(handle(), static_cast<const CudaEvent&>(*event).handle(), 0));
}

std::unique_ptr<device::GraphExec> GpuStream::record(const std::function<void()>& work) {
  const DeviceGuard guard(device_index());
  // Recorded on a stream of its own: other threads go on queueing on this one.
  struct Scratch {
    cudaStream_t& handle;
    explicit Scratch(cudaStream_t& h) : handle(h) {
      CRENEL_CUDA_TRY(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
    }
    ~Scratch() { static_cast<void>(cudaStreamDestroy(std::exchange(handle, nullptr))); }
  } const scratch(recorded_);
  CRENEL_CUDA_TRY(cudaStreamBeginCapture(recorded_, cudaStreamCaptureModeRelaxed));
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    static_cast<void>(cudaStreamEndCapture(recorded_, &graph));
    if (graph) static_cast<void>(cudaGraphDestroy(graph));
    static_cast<void>(cudaGetLastError());
    throw;
  }
  CRENEL_CUDA_TRY(cudaStreamEndCapture(recorded_, &graph));
  cudaGraphExec_t exec = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&exec, graph, 0);
  static_cast<void>(cudaGraphDestroy(graph));
  if (status != cudaSuccess) fail(status, "cudaGraphInstantiate");
  return std::make_unique<CudaGraph>(device_index(), exec);
}

}  // namespace crenel::backend::cuda
