// Several devices as one: every polynomial's limbs are divided among them.
#include <algorithm>
#include <set>

#include "backends/split/poly/kernels.h"
#include "crenel/core/error.h"

namespace crenel::backend::split {
namespace {

using device::Device;

class SplitDevice final : public device::DividedDevice {
 public:
  SplitDevice(device::DeviceInfo info, std::vector<std::shared_ptr<Device>> parts)
      : info_(std::move(info)),
        parts_(std::move(parts)),
        blocks_(std::make_shared<Blocks>(static_cast<u32>(parts_.size()))) {}

  const device::DeviceInfo& info() const override { return info_; }
  std::vector<std::shared_ptr<Device>> parts() const override { return parts_; }

  std::shared_ptr<device::Stream> make_stream() override {
    expect_own_process();
    std::vector<std::shared_ptr<device::Stream>> streams;
    for (const auto& part : parts_) streams.push_back(part->make_stream());
    return std::make_shared<SplitStream>(shared_from_this(), blocks_, std::move(streams));
  }

  // Memory is a stream's (SplitStream), which knows what limbs it is for.
  void* allocate(std::size_t) override {
    throw StateError(cat("memory of device ", info_.name, " without a stream"));
  }
  void deallocate(void*) noexcept override {}

  device::MemoryUse memory() const override {
    device::MemoryUse sum;
    for (const auto& part : parts_) {
      const device::MemoryUse use = part->memory();
      sum.used += use.used;
      sum.total += use.total;
    }
    return sum;
  }
  // What is divided equally ends where the part with the least does; parts of host memory share it.
  device::MemoryLeft left() const override {
    device::MemoryLeft least = left_of(*parts_[0]);
    for (const auto& part : parts_)
      if (device::MemoryLeft there = left_of(*part); there.bytes < least.bytes)
        least = std::move(there);
    if (!parts_[0]->in_host_memory()) least.bytes *= parts_.size();
    return least;
  }
  void set_idle_limit(std::size_t bytes) override {
    Backend::set_idle_limit(bytes);
    const bool none = bytes == std::numeric_limits<std::size_t>::max();
    for (const auto& part : parts_) part->set_idle_limit(none ? bytes : bytes / parts_.size());
  }

  std::unique_ptr<device::PolyKernels> make_poly_kernels(
      std::shared_ptr<const ring::Ring> ring) override {
    if (ring->prime_count() < parts_.size())
      throw ParameterError(
          cat("device ", info_.name, " of ", parts_.size(), " parts for a chain of ",
              ring->prime_count(), " primes, expected at least a prime a part"),
          {{"parts", parts_.size()}, {"primes", ring->prime_count()}});
    return std::make_unique<SplitPolyKernels>(std::move(ring), parts_);
  }

 protected:
  bool survives_fork() const noexcept override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [](const auto& part) { return part->in_host_memory(); });
  }
  void* allocate_host_bytes(std::size_t bytes) override {
    device::HostBuffer memory = parts_[0]->allocate_host(bytes);
    void* data = memory.data();
    const std::lock_guard lock(mutex_);
    host_.emplace(data, std::move(memory));
    return data;
  }
  void deallocate_host_bytes(void* memory) noexcept override {
    const std::lock_guard lock(mutex_);
    host_.erase(memory);
  }

 private:
  // Idle memory of the streams' pools is to be had, too.
  static device::MemoryLeft left_of(const Device& part) {
    device::MemoryLeft left = part.left();
    left.bytes = std::max(left.bytes, part.available());
    return left;
  }

  device::DeviceInfo info_;
  std::vector<std::shared_ptr<Device>> parts_;
  std::shared_ptr<Blocks> blocks_;
  ForkMutex mutex_;
  std::map<void*, device::HostBuffer> host_;
};

device::DeviceInfo split_info(const std::string& name,
                              const std::vector<std::shared_ptr<Device>>& parts) {
  device::DeviceInfo info = parts[0]->info();
  info.kind = device::Kind::split;
  info.name = name;
  info.description =
      cat(parts.size(),
          " parts that share the limbs of every polynomial, each: ", parts[0]->info().description);
  info.memory_bytes *= parts.size();
  return info;
}

// A GPU without an index is the first one.
std::string indexed(const std::string& name) {
  const bool number =
      name.find_first_not_of("0123456789", name.rfind(':') + 1) == std::string::npos;
  return number ? name : name + ":0";
}

void expect_alike(const std::string& name, const std::vector<std::shared_ptr<Device>>& parts) {
  std::set<std::string> seen;
  for (const auto& part : parts) {
    const device::DeviceInfo &found = part->info(), &first = parts[0]->info();
    if (found.kind != first.kind || found.description != first.description)
      throw DeviceError(
          cat("device ", name, ": ", found.name, " is ", found.description, ", ", first.name,
              " is ", first.description, ", expected parts that are alike"),
          {{"device", name}, {"found", found.description}, {"expected", first.description}});
    if (!part->in_host_memory() && !seen.insert(indexed(found.name)).second)
      throw DeviceError(cat("device ", name, ": ", found.name, " twice, expected different GPUs"),
                        {{"device", name}, {"found", found.name}});
  }
}

}  // namespace
}  // namespace crenel::backend::split

namespace crenel::device {

std::shared_ptr<Backend> make_split_device(const std::string& name,
                                           std::vector<std::shared_ptr<Device>> parts) {
  using namespace crenel::backend::split;
  constexpr std::size_t kMost = 16;
  if (parts.size() < 2 || parts.size() > kMost)
    throw DeviceError(cat("device ", name, " of ", parts.size(), " parts, expected 2 to ", kMost),
                      {{"device", name}, {"parts", parts.size()}});
  expect_alike(name, parts);
  DeviceInfo info = split_info(name, parts);
  return std::make_shared<SplitDevice>(std::move(info), std::move(parts));
}

}  // namespace crenel::device
