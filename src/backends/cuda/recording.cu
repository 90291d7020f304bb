// Recordings of a GPU's streams as graphs.
#include <utility>

#include "backends/cuda/gpu.h"
#include "device/several.h"

namespace crenel::backend::cuda {
namespace {

class CudaGraph final : public device::GraphExec {
 public:
  CudaGraph(int device, cudaGraphExec_t exec) : device_(device), exec_(exec) {}
  ~CudaGraph() override {
    if (process_.here()) static_cast<void>(cudaGraphExecDestroy(exec_));
  }
  void launch(device::Stream& stream) override {
    CudaStream& queue = cuda_stream(stream);
    const DeviceGuard guard(device_);
    CRENEL_CUDA_TRY(cudaGraphLaunch(exec_, queue.handle()));
  }

 private:
  int device_;
  cudaGraphExec_t exec_;
  OwnProcess process_;
};

}  // namespace

/// Records what the calling thread queues on a stream, on one of the recording's own: other threads
/// go on queueing on that.
class GpuStream::Recording {
 public:
  explicit Recording(GpuStream& stream) : stream_(stream) {
    const DeviceGuard guard(stream.device_index());
    stream.recorded_ = static_cast<const GpuDevice&>(stream.device()).make_native_stream();
    stream.joined_ = false;
  }
  ~Recording() {
    if (capturing_) static_cast<void>(take_graph());
    if (graph_) static_cast<void>(cudaGraphDestroy(graph_));
    static_cast<void>(cudaGetLastError());
    static_cast<void>(cudaStreamDestroy(std::exchange(stream_.recorded_, nullptr)));
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  void begin() {
    const DeviceGuard guard(stream_.device_index());
    CRENEL_CUDA_TRY(cudaStreamBeginCapture(stream_.recorded_, cudaStreamCaptureModeRelaxed));
    capturing_ = true;
  }
  std::unique_ptr<device::GraphExec> end() {
    const DeviceGuard guard(stream_.device_index());
    if (const cudaError_t ended = take_graph(); ended != cudaSuccess)
      fail(ended, "cudaStreamEndCapture");
    cudaGraphExec_t exec = nullptr;
    cudaError_t status = cudaSuccess;
    {
      // It may load kernels and wait for a GPU, whose kernels may wait for those of another thread.
      const auto order = device::meeting_order();
      status = cudaGraphInstantiate(&exec, graph_, 0);
    }
    if (status != cudaSuccess) fail(status, "cudaGraphInstantiate");
    return std::make_unique<CudaGraph>(stream_.device_index(), exec);
  }

 private:
  cudaError_t take_graph() {
    capturing_ = false;
    return cudaStreamEndCapture(stream_.recorded_, &graph_);
  }

  GpuStream& stream_;
  cudaGraph_t graph_ = nullptr;
  bool capturing_ = false;
};

std::unique_ptr<device::GraphExec> GpuStream::record(const std::function<void()>& work) {
  device().expect_own_process();
  GpuStream* const self[] = {this};
  return std::move(record_all(self, true, work)[0]);
}

std::vector<std::unique_ptr<device::GraphExec>> GpuStream::record_all(
    std::span<GpuStream* const> streams, bool each, const std::function<void()>& work) {
  std::vector<std::unique_ptr<Recording>> all;
  for (GpuStream* stream : streams) all.push_back(std::make_unique<Recording>(*stream));
  const std::size_t graphs = each ? all.size() : 1;
  for (std::size_t g = 0; g < graphs; ++g) all[g]->begin();
  for (std::size_t s = graphs; s < streams.size(); ++s) streams[s]->wait_for(*streams[0]);
  work();
  for (std::size_t s = graphs; s < streams.size(); ++s) streams[0]->wait_for(*streams[s]);
  std::vector<std::unique_ptr<device::GraphExec>> made;
  for (std::size_t g = 0; g < graphs; ++g) made.push_back(all[g]->end());
  return made;
}

}  // namespace crenel::backend::cuda

namespace crenel::device {

std::vector<std::unique_ptr<GraphExec>> cuda_record_together(
    std::span<const std::shared_ptr<Stream>> streams, bool each,
    const std::function<void()>& work) {
  using namespace crenel::backend::cuda;
  struct Nothing final : GraphExec {
    void launch(Stream&) override {}
  };
  std::vector<std::unique_ptr<GraphExec>> graphs;
  if (cuda_stream(*streams[0]).dry()) {
    work();
    for (std::size_t g = 0; g < (each ? streams.size() : 1); ++g)
      graphs.push_back(std::make_unique<Nothing>());
    return graphs;
  }
  std::vector<GpuStream*> parts;
  for (const auto& stream : streams)
    parts.push_back(static_cast<GpuStream*>(&cuda_stream(*stream)));
  return GpuStream::record_all(parts, each, work);
}

}  // namespace crenel::device
