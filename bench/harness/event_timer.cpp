#include "harness/event_timer.h"

#include "crenel/core/error.h"

#ifdef CRENEL_BENCH_EVENTS
#include <cuda_runtime_api.h>
#endif

namespace crenel::bench {

bool has_event_timer(device::Stream& stream) {
#ifdef CRENEL_BENCH_EVENTS
  return stream.native_handle() != nullptr;
#else
  static_cast<void>(stream);
  return false;
#endif
}

#ifdef CRENEL_BENCH_EVENTS

namespace {

void must(cudaError_t status) {
  if (status != cudaSuccess)
    throw DeviceError(cat("timing by events: ", cudaGetErrorString(status)),
                      {{"error", cudaGetErrorName(status)}});
}

class EventPair {
 public:
  EventPair() {
    must(cudaEventCreate(&begin_));
    must(cudaEventCreate(&end_));
  }
  ~EventPair() {
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
  }
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;

  void around(const std::function<void()>& call, cudaStream_t stream) {
    must(cudaEventRecord(begin_, stream));
    call();
    must(cudaEventRecord(end_, stream));
  }
  double seconds() const {
    must(cudaEventSynchronize(end_));
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return 1e-3 * milliseconds;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace

Timing measure_each(const std::function<void()>& call, device::Stream& stream,
                    const Budget& budget) {
  constexpr std::size_t kGroup = 20, kLeast = 60, kMost = 2000;
  // A quarter of a millisecond of writing: the host queues a group meanwhile.
  const device::Buffer ahead = stream.allocate(std::size_t(1) << 30);
  const auto handle = static_cast<cudaStream_t>(stream.native_handle());
  std::vector<EventPair> pairs(kGroup);
  std::vector<double> samples;
  const auto group = [&] {
    stream.fill_zero(ahead.data(), ahead.bytes());
    call();  // the writing has emptied the cache: this one fills it again
    for (EventPair& pair : pairs) pair.around(call, handle);
    for (const EventPair& pair : pairs) samples.push_back(pair.seconds());
  };
  group();
  samples.clear();
  double spent = 0;
  while (samples.size() < kMost) {
    group();
    for (std::size_t i = samples.size() - kGroup; i < samples.size(); ++i) spent += samples[i];
    if (samples.size() < kLeast) continue;
    const Timing t = summarise(samples, 1);
    if ((t.q3 - t.q1) / t.median < budget.spread || spent > budget.total_seconds) break;
  }
  return summarise(samples, 1);
}

#else

Timing measure_each(const std::function<void()>&, device::Stream& stream, const Budget&) {
  throw StateError(cat("timing by events on ", stream.device().info().name, ", expected CUDA"),
                   {{"found", stream.device().info().name}, {"expected", "cuda"}});
}

#endif

}  // namespace crenel::bench
