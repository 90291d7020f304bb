#include <cstdlib>
#include <cstring>

#include "backends/host/fhecore/kernels.h"
#include "backends/ref/poly/kernels.h"
#include "backends/ref/torus/kernels.h"
#include "core/host_memory.h"
#include "crenel/core/error.h"

namespace crenel::backend::ref {
namespace {

constexpr std::size_t kAlignment = 256;

// Host memory, every operation done when the call returns.
class RefStream final : public Stream {
 public:
  using Stream::Stream;
  ~RefStream() override { release_pool(); }

  void synchronize() override {}
  void copy_in(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                 std::size_t row_bytes, std::size_t rows) override {
    for (std::size_t r = 0; r < rows; ++r)
      copy(static_cast<char*>(to) + r * to_pitch, static_cast<const char*>(from) + r * from_pitch,
           row_bytes);
  }
  void fill_zero(void* data, std::size_t bytes) override {
    if (bytes != 0) std::memset(data, 0, bytes);
  }
  using Stream::wait_for;
  void wait_for(Stream&) override {}
};

class RefBackend final : public device::Backend {
 public:
  RefBackend() {
    info_.kind = device::Kind::ref;
    info_.name = "ref";
    info_.description = "reference: slow, single-threaded specification";
  }
  const device::DeviceInfo& info() const override { return info_; }
  std::shared_ptr<Stream> make_stream() override {
    return std::make_shared<RefStream>(shared_from_this());
  }
  void* allocate(std::size_t bytes) override {
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
    if (memory == nullptr)
      throw core::out_of_memory({.what = "a block of memory", .bytes = bytes}, left().bytes,
                                left().limit, info().name);
    return memory;
  }
  void deallocate(void* memory) noexcept override { std::free(memory); }
  bool in_host_memory() const override { return true; }
  std::unique_ptr<device::PolyKernels> make_poly_kernels(
      std::shared_ptr<const ring::Ring> ring) override {
    return std::make_unique<RefPolyKernels>(std::move(ring));
  }
#if !defined(CRENEL_CLIENT_ONLY)  // a client of CKKS (web/) needs neither
  std::unique_ptr<device::TorusKernels> make_torus_kernels(device::TorusPlan plan) override {
    return std::make_unique<RefTorusKernels>(std::move(plan));
  }
  std::unique_ptr<device::FhecoreKernels> make_fhecore_kernels() override {
    return std::make_unique<host::HostFhecoreKernels>(
        [](u64 count, const std::function<void(u64)>& task) {
          for (u64 i = 0; i < count; ++i) task(i);
        });
  }
#endif

 private:
  device::DeviceInfo info_;
};

}  // namespace
}  // namespace crenel::backend::ref

namespace crenel::device {

std::shared_ptr<Backend> make_ref_device() {
  return std::make_shared<crenel::backend::ref::RefBackend>();
}

}  // namespace crenel::device
