// "cuda:dry": a model of an H200 that executes nothing. What is queued on it is only stated to the
// account, so that any machine can say what a GPU would have to do. "cuda:dry:0", "cuda:dry:1", ...
// are GPUs of one host, "cuda:dry/1of2" is a part of one, "cuda:dry-a100" and others are models of
// other GPUs (device/dry_models.h).
#include <map>
#include <mutex>

#include "backends/cuda/share_sizes.h"
#include "backends/cuda/stream.h"
#include "core/host_memory.h"
#include "device/dry_models.h"

namespace crenel::backend::cuda {
namespace {

using device::DryModel;

constexpr const char* kLimit = "free by the model";

// Throws DeviceError for a part that a GPU has no multiprocessors for.
GpuModel gpu_model(const DryModel& dry, device::GpuPart part) {
  const auto major = static_cast<int>(dry.major);
  GpuModel model = {kDry, major, dry.processors, dry.shared_bytes, dry.l2_bytes};
  if (part.parts == 0) return model;
  model.processors = share_processors(dry.processors, major, part.part, part.parts);
  const std::string name = device::dry_name(dry, std::nullopt) + part.text();
  if (model.processors == 0)
    throw DeviceError(
        cat(name, ": ", part.parts, " parts of ", dry.processors,
            " multiprocessors, expected at most ", dry.processors / share_least(major)),
        {{"device", name}, {"parts", part.parts}});
  return model;
}

device::DeviceInfo dry_info(const DryModel& dry, const std::string& name, u32 processors) {
  std::string description =
      cat("model of an ", dry.card, " that executes nothing, compute capability ", dry.major, ".",
          dry.minor, ", ", dry.memory_bytes >> 30, " GiB");
  if (processors != dry.processors)
    description += cat(", ", processors, " of its ", dry.processors, " multiprocessors");
  return {device::Kind::cuda, name, std::move(description), dry.memory_bytes, processors};
}

// Which of all models of all GPUs of a host, for addresses that are told apart.
u64 number_of(const DryModel& dry, std::optional<int> index) {
  const auto model = static_cast<u64>(&dry - device::kDryModels);
  return model * (device::kDryGpus + 1) + (index ? static_cast<u64>(*index) + 1 : 0);
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
  DryDevice(const DryModel& dry, std::optional<int> index, device::GpuPart part)
      : DryDevice(dry, device::dry_name(dry, index) + part.text(), number_of(dry, index),
                  gpu_model(dry, part)) {}
  std::shared_ptr<device::Stream> make_stream() override {
    return std::make_shared<DryStream>(std::static_pointer_cast<CudaDevice>(shared_from_this()));
  }
  void* allocate(std::size_t bytes) override {
    expect_own_process();
    std::lock_guard lock(mutex_);
    const u64 free = info().memory_bytes - in_use_;
    if (bytes > free)
      throw core::out_of_memory({.what = "a block of memory", .bytes = bytes}, free, kLimit,
                                info().name);
    void* memory = reinterpret_cast<void*>(next_);
    next_ += (bytes / kAlignment + 1) * kAlignment;
    in_use_ += bytes;
    sizes_.emplace(memory, bytes);
    return memory;
  }
  device::MemoryLeft left() const override {
    std::lock_guard lock(mutex_);
    return {info().memory_bytes - in_use_, kLimit};
  }
  device::MemoryUse memory() const override {
    std::lock_guard lock(mutex_);
    return {in_use_, info().memory_bytes};
  }
  void deallocate(void* memory) noexcept override {
    std::lock_guard lock(mutex_);
    const auto it = sizes_.find(memory);
    if (it == sizes_.end()) return;
    in_use_ -= it->second;
    sizes_.erase(it);
  }

 private:
  DryDevice(const DryModel& dry, const std::string& name, u64 number, const GpuModel& model)
      : CudaDevice(model, dry_info(dry, name, model.processors)),
        next_((u64(0xb) << 56) + (number << 44)) {}

  static constexpr u64 kAlignment = 256;
  mutable std::mutex mutex_;
  std::map<void*, u64> sizes_;
  u64 next_;
  u64 in_use_ = 0;
};

}  // namespace
}  // namespace crenel::backend::cuda

namespace crenel::device {

std::shared_ptr<Backend> make_dry_cuda_device(const DryModel& model, std::optional<int> index,
                                              GpuPart part) {
  return std::make_shared<crenel::backend::cuda::DryDevice>(model, index, part);
}

}  // namespace crenel::device
