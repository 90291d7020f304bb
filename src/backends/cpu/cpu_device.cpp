// The device and its streams: host memory, every operation done when the call returns.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "backends/cpu/parallel.h"
#include "backends/cpu/poly/kernels.h"
#include "backends/cpu/torus/kernels.h"
#include "backends/host/fhecore/kernels.h"
#include "core/host_memory.h"
#include "crenel/core/error.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace crenel::backend::cpu {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kHugePage = std::size_t(2) << 20;

class CpuStream final : public device::Stream {
 public:
  using Stream::Stream;
  ~CpuStream() override { release_pool(); }

  void synchronize() override {}
  void copy_in(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { copy(to, from, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override {
    pieces(bytes, [=](std::size_t at, std::size_t size) {
      std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, size);
    });
  }
  void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                 std::size_t row_bytes, std::size_t rows) override {
    if (row_bytes == 0) return;
    constexpr std::size_t kPiece = std::size_t(1) << 14;
    const std::size_t together = std::max<std::size_t>(kPiece / row_bytes, 1);
    parallel_for((rows + together - 1) / together, rows * row_bytes / 4, [=](u64 piece) {
      const std::size_t begin = piece * together, end = std::min(begin + together, rows);
      // Rows of one word are common, and a copy whose size is known is a move.
      if (row_bytes == sizeof(u32))
        return copy_each<sizeof(u32)>(to, to_pitch, from, from_pitch, begin, end);
      for (std::size_t r = begin; r < end; ++r)
        std::memcpy(static_cast<char*>(to) + r * to_pitch,
                    static_cast<const char*>(from) + r * from_pitch, row_bytes);
    });
  }
  void fill_zero(void* data, std::size_t bytes) override {
    pieces(bytes, [=](std::size_t at, std::size_t size) {
      std::memset(static_cast<char*>(data) + at, 0, size);
    });
  }
  using Stream::wait_for;
  void wait_for(Stream&) override {}

 private:
  template <std::size_t size>
  static void copy_each(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                        std::size_t begin, std::size_t end) {
    for (std::size_t r = begin; r < end; ++r)
      std::memcpy(static_cast<char*>(to) + r * to_pitch,
                  static_cast<const char*>(from) + r * from_pitch, size);
  }
  template <class F>
  static void pieces(std::size_t bytes, const F& f) {
    constexpr std::size_t kPiece = std::size_t(1) << 20;
    parallel_for((bytes + kPiece - 1) / kPiece, bytes / 4, [&](u64 i) {
      const std::size_t at = i * kPiece;
      f(at, std::min(kPiece, bytes - at));
    });
  }
};

std::string processor_model() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.rfind("model name", 0) == 0)
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown processor";
}

class CpuBackend final : public device::Backend {
 public:
  explicit CpuBackend(Isa isa) : isa_(isa) {
    info_.kind = device::Kind::cpu;
    info_.name = "cpu";
    info_.processors = thread_count();
    info_.description = cat(processor_model(), ", ", isa_name(isa), ", ", thread_count(),
                            thread_count() == 1 ? " thread" : " threads");
  }
  const device::DeviceInfo& info() const override { return info_; }
  std::shared_ptr<device::Stream> make_stream() override {
    return std::make_shared<CpuStream>(shared_from_this());
  }
  void* allocate(std::size_t bytes) override {
    // Limbs are walked with large power-of-two strides: without huge pages every stride is a TLB
    // miss.
#if defined(__EMSCRIPTEN__)
    const bool huge = false;  // none there, and alignment costs memory of which there is little
#else
    const bool huge = bytes >= kHugePage;
#endif
    const std::size_t alignment = huge ? kHugePage : kAlignment;
    const std::size_t rounded =
        (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    void* memory = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
    if (memory == nullptr)
      throw core::out_of_memory({.what = "a block of memory", .bytes = bytes}, left().bytes,
                                left().limit, info().name);
#if defined(__linux__)
    if (huge) madvise(memory, rounded, MADV_HUGEPAGE);
#endif
    return memory;
  }
  void deallocate(void* memory) noexcept override { std::free(memory); }
  bool in_host_memory() const override { return true; }
  std::unique_ptr<device::PolyKernels> make_poly_kernels(
      std::shared_ptr<const ring::Ring> ring) override {
    return std::make_unique<CpuPolyKernels>(std::move(ring), isa_);
  }
#if !defined(CRENEL_CLIENT_ONLY)  // a client of CKKS (web/) needs neither
  std::unique_ptr<device::TorusKernels> make_torus_kernels(device::TorusPlan plan) override {
    return std::make_unique<CpuTorusKernels>(std::move(plan), isa_);
  }
  std::unique_ptr<device::FhecoreKernels> make_fhecore_kernels() override {
    return std::make_unique<host::HostFhecoreKernels>(
        [](u64 count, const std::function<void(u64)>& task) {
          constexpr u64 kAnyThreads = ~u64(0);  // an emulated tile is worth waking them
          parallel_for(count, kAnyThreads, task);
        });
  }
#endif

 private:
  Isa isa_;
  device::DeviceInfo info_;
};

}  // namespace

std::shared_ptr<device::Backend> make_cpu_device(Isa isa) {
  if (!isa_available(isa))
    throw DeviceError(cat("cpu: this processor or build has no ", isa_name(isa), " path"),
                      {{"isa", isa_name(isa)}});
  return std::make_shared<CpuBackend>(isa);
}

}  // namespace crenel::backend::cpu

namespace crenel::device {

std::shared_ptr<Backend> make_cpu_device() {
  return backend::cpu::make_cpu_device(backend::cpu::best_isa());
}

}  // namespace crenel::device
