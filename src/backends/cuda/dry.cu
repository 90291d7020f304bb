// "cuda:dry": a model of an H200 that executes nothing. What is queued on it is only stated to the
// account, so that any machine can say what a GPU would have to do. "cuda:dry:0", "cuda:dry:1", ...
// are GPUs of one host, "cuda:dry/1of2" is a part of one.
#include <map>
#include <mutex>

#include "backends/cuda/share_sizes.h"
#include "backends/cuda/stream.h"
#include "core/host_memory.h"
#include "device/several.h"

namespace crenel::backend::cuda {
namespace {

constexpr GpuModel kModel = {kDry, 9, 132, 227 << 10, 50 << 20};
constexpr u64 kMemory = u64(139) << 30;
constexpr const char* kLimit = "free by the model";

// Throws DeviceError for a part that a GPU has no multiprocessors for.
GpuModel model_of(device::GpuPart part) {
  if (part.parts == 0) return kModel;
  GpuModel model = kModel;
  model.processors =
      share_processors(kModel.processors, kModel.compute_major, part.part, part.parts);
  if (model.processors == 0)
    throw DeviceError(cat("cuda:dry", part.text(), ": ", part.parts, " parts of ",
                          kModel.processors, " multiprocessors, expected at most ",
                          kModel.processors / share_granule(kModel.compute_major)),
                      {{"device", cat("cuda:dry", part.text())}, {"parts", part.parts}});
  return model;
}

device::DeviceInfo dry_info(const std::string& name, const GpuModel& model) {
  std::string description =
      "model of an NVIDIA H200 that executes nothing, compute capability 9.0, 139 GiB";
  if (model.processors != kModel.processors)
    description += cat(", ", model.processors, " of its ", kModel.processors, " multiprocessors");
  return {device::Kind::cuda, name, std::move(description), kMemory, model.processors};
}

class DryStream final : public CudaStream {
 public:
  explicit DryStream(const std::shared_ptr<CudaDevice>& device) : CudaStream(device) {}
  ~DryStream() override { release_pool(); }

  void synchronize() override { device().expect_own_process(); }
  void copy_in(void*, const void*, std::size_t bytes) override {
    if (bytes != 0) state_copy("copy_in", 0, bytes);
  }
  void copy_out(void*, const void*, std::size_t) override {
    const std::string& name = device().info().name;
    throw UnsupportedError(cat(name, " computes nothing: there is no data to read from it"),
                           {{"device", name}});
  }
  void copy(void*, const void*, std::size_t bytes) override {
    if (bytes != 0) state_copy("copy", bytes, bytes);
  }
  void copy_rows(void*, std::size_t, const void*, std::size_t, std::size_t row_bytes,
                 std::size_t rows) override {
    if (row_bytes * rows != 0) state_copy("copy", row_bytes * rows, row_bytes * rows);
  }
  void fill_zero(void*, std::size_t bytes) override {
    if (bytes != 0) state_copy("fill_zero", 0, bytes);
  }
  using CudaStream::wait_for;
  void wait_for(device::Stream& other) override { static_cast<void>(cuda_stream(other)); }

 protected:
  // What is stated meanwhile is what replays state, on whatever stream (Stream::capture).
  std::unique_ptr<device::GraphExec> record(const std::function<void()>& work) override {
    struct Nothing final : device::GraphExec {
      void launch(device::Stream&) override {}
    };
    work();
    return std::make_unique<Nothing>();
  }
};

// Addresses are unique, aligned, and never those of real memory (not canonical on x86-64).
class DryDevice final : public CudaDevice {
 public:
  /// `number` keeps the addresses of several models apart.
  DryDevice(const std::string& name, u64 number, const GpuModel& model = kModel)
      : CudaDevice(model, dry_info(name, model)), next_((u64(0xd) << 56) + (number << 44)) {}
  std::shared_ptr<device::Stream> make_stream() override {
    return std::make_shared<DryStream>(std::static_pointer_cast<CudaDevice>(shared_from_this()));
  }
  void* allocate(std::size_t bytes) override {
    expect_own_process();
    std::lock_guard lock(mutex_);
    if (bytes > kMemory - in_use_)
      throw core::out_of_memory({.what = "a block of memory", .bytes = bytes}, kMemory - in_use_,
                                kLimit, info().name);
    void* memory = reinterpret_cast<void*>(next_);
    next_ += (bytes / kAlignment + 1) * kAlignment;
    in_use_ += bytes;
    sizes_.emplace(memory, bytes);
    return memory;
  }
  device::MemoryLeft left() const override {
    std::lock_guard lock(mutex_);
    return {kMemory - in_use_, kLimit};
  }
  device::MemoryUse memory() const override {
    std::lock_guard lock(mutex_);
    return {in_use_, kMemory};
  }
  void deallocate(void* memory) noexcept override {
    std::lock_guard lock(mutex_);
    const auto it = sizes_.find(memory);
    if (it == sizes_.end()) return;
    in_use_ -= it->second;
    sizes_.erase(it);
  }

 private:
  static constexpr u64 kAlignment = 256;
  mutable std::mutex mutex_;
  std::map<void*, u64> sizes_;
  u64 next_;
  u64 in_use_ = 0;
};

}  // namespace
}  // namespace crenel::backend::cuda

namespace crenel::device {

std::shared_ptr<Backend> make_dry_cuda_device(GpuPart part) {
  using namespace crenel::backend::cuda;
  return std::make_shared<DryDevice>("cuda:dry" + part.text(), 0, model_of(part));
}

std::shared_ptr<Backend> make_dry_cuda_device(int index) {
  return std::make_shared<crenel::backend::cuda::DryDevice>(cat("cuda:dry:", index),
                                                            static_cast<u64>(index) + 1);
}

}  // namespace crenel::device
