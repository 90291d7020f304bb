#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "backends/cuda/gpu.h"
#include "crenel/core/watch.h"
#include "random/seed.h"

namespace crenel::backend::cuda {
namespace {

// Waits, with points, until `query` finds work done: a host thread under cudaStreamSynchronize
// cannot be stopped. It spins as that does, and makes room for other threads after a millisecond.
template <class Query>
void wait_until_done(const char* what, const Query& query) {
  const auto began = std::chrono::steady_clock::now();
  for (;;) {
    const cudaError_t status = query();
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) fail(status, what);
    static_cast<void>(cudaGetLastError());  // "not ready" is no failure of what comes next
    watch::point();
    if (std::chrono::steady_clock::now() - began > std::chrono::milliseconds(1))
      std::this_thread::yield();
  }
}

class CudaEvent final : public device::Event {
 public:
  explicit CudaEvent(cudaStream_t stream) {
    CRENEL_CUDA_TRY(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    const cudaError_t status = cudaEventRecord(event_, stream);
    if (status == cudaSuccess) return;
    static_cast<void>(cudaEventDestroy(event_));
    fail(status, "cudaEventRecord");
  }
  ~CudaEvent() override {
    if (process_.here()) static_cast<void>(cudaEventDestroy(event_));
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  void synchronize() override {
    if (!process_.here()) throw StateError("an event of the process that this one was forked from");
    if (watch::active()) wait_until_done("cudaEventQuery", [&] { return cudaEventQuery(event_); });
    CRENEL_CUDA_TRY(cudaEventSynchronize(event_));
  }
  cudaEvent_t handle() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
  OwnProcess process_;
};

}  // namespace

CudaStream& cuda_stream(device::Stream& stream) {
  if (stream.device().info().kind != device::Kind::cuda)
    throw StateError(
        cat("stream of device ", stream.device().info().name, ", expected a CUDA one"));
  stream.device().expect_own_process();
  return static_cast<CudaStream&>(stream);
}

void CudaStream::state(device::Account& account, device::LaunchRecord record) const {
  record.stage = stage();
  record.replayed = recording();
  record.overlapped = record.work != device::Work::copy && can_overlap();
  account.add(std::move(record));
}

void CudaStream::state_copy(const char* name, std::size_t read, std::size_t written) const {
  device().expect_own_process();
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
  handle_ = static_cast<const GpuDevice&>(*device).make_native_stream();
}

GpuStream::~GpuStream() {
  if (!device().in_own_process()) return;
  const watch::Shield shield;
  static_cast<void>(cudaStreamSynchronize(handle_));
  release_pool();
  static_cast<void>(cudaStreamDestroy(handle_));
}

void GpuStream::synchronize() {
  device().expect_own_process();
  expect_no_recording("synchronize");
  await();
  CRENEL_CUDA_TRY(cudaStreamSynchronize(handle_));
}

void GpuStream::await() {
  if (watch::active()) wait_until_done("cudaStreamQuery", [&] { return cudaStreamQuery(handle_); });
}

// A copy whose host memory is the caller's is waited for to its end: stopped half way, it would go
// on reading or writing what is given back. What was queued before it is waited for first.
void GpuStream::finish_copy() { CRENEL_CUDA_TRY(cudaStreamSynchronize(handle_)); }

void GpuStream::copy_in(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  expect_no_recording("copy_in");
  state_copy("copy_in", 0, bytes);
  device().expect_own_process();
  await();
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, handle_));
  finish_copy();  // `from` may be pinned, or still be read for the last chunk
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
  device().expect_own_process();
  await();
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, handle_));
  finish_copy();
}

// The driver stages copies of ordinary memory in buffers of its own, which nobody wipes.
// Page-locked memory is read and written by the device itself.
void GpuStream::staged(void* device, void* host, std::size_t bytes, bool in) {
  constexpr std::size_t kPiece = std::size_t(1) << 20;
  this->device().expect_own_process();
  expect_no_recording("a copy of secrets");
  await();  // before the lock, under which nothing stops
  const std::lock_guard lock(staging_mutex_);
  if (staging_.data() == nullptr) staging_ = this->device().allocate_host(kPiece);
  const random::WipeOnExit wipe(staging_.data(), std::min(bytes, kPiece));
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const std::size_t size = std::min(kPiece, bytes - at);
    u8* const there = static_cast<u8*>(device) + at;
    u8* const here = static_cast<u8*>(host) + at;
    if (in) std::memcpy(staging_.data(), here, size);
    CRENEL_CUDA_TRY(cudaMemcpyAsync(in ? there : staging_.data(), in ? staging_.data() : there,
                                    size, in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                                    handle_));
    finish_copy();
    if (!in) std::memcpy(here, staging_.data(), size);
  }
}

void GpuStream::copy_in_secret(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  state_copy("copy_in", 0, bytes);
  staged(to, const_cast<void*>(from), bytes, true);
}

void GpuStream::copy_out_secret(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  state_copy("copy_out", bytes, 0);
  staged(const_cast<void*>(from), to, bytes, false);
}

void GpuStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  state_copy("copy", bytes, bytes);
  const DeviceGuard guard(device_index());
  CRENEL_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, handle()));
}

void GpuStream::copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                          std::size_t row_bytes, std::size_t rows) {
  if (row_bytes == 0 || rows == 0) return;
  if (rows == 1) return copy(to, from, row_bytes);
  state_copy("copy", row_bytes * rows, row_bytes * rows);
  const DeviceGuard guard(device_index());
  // cudaMemcpy2D limits pitches to 2 GiB; the rows of one context stay far below.
  CRENEL_CUDA_TRY(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, row_bytes, rows,
                                    cudaMemcpyDeviceToDevice, handle()));
}

void GpuStream::fill_zero(void* data, std::size_t bytes) {
  if (bytes == 0) return;
  state_copy("fill_zero", 0, bytes);
  const DeviceGuard guard(device_index());
  CRENEL_CUDA_TRY(cudaMemsetAsync(data, 0, bytes, handle()));
}

void GpuStream::wait_for(device::Stream& other) {
  device().expect_own_process();
  CudaStream& source = cuda_stream(other);
  if (source.dry()) throw StateError("a GPU cannot wait for a dry stream");
  const DeviceGuard guard(source.device_index());  // an event is its stream's device's
  const CudaEvent event(source.handle());
  CRENEL_CUDA_TRY(cudaStreamWaitEvent(handle(), event.handle(), 0));
  if (recording()) joined_ = true;
}

std::shared_ptr<device::Event> GpuStream::mark() {
  device().expect_own_process();
  const DeviceGuard guard(device_index());
  return std::make_shared<CudaEvent>(handle());
}

void GpuStream::wait_for(const std::shared_ptr<device::Event>& event) {
  if (!event) return;
  device().expect_own_process();
  CRENEL_CUDA_TRY(cudaStreamWaitEvent(handle(), static_cast<const CudaEvent&>(*event).handle(), 0));
  if (recording()) joined_ = true;
}

}  // namespace crenel::backend::cuda
