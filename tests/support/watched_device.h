// A device of host memory that watches its streams: what is copied from and to the host, waited for
// and allocated, with all of it refused while a graph is recorded, as a GPU would. Marks of streams
// are told apart, and copies from the host fail when they are told to.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crenel/core/error.h"
#include "device/backend.h"

namespace crenel::test {

/// The kernels of `ref` or `cpu` behind watched streams.
class WatchedDevice final : public device::Backend {
 public:
  explicit WatchedDevice(const std::string& name) : inner_(device::open(name)) {}

  const device::DeviceInfo& info() const override { return inner_->info(); }
  std::shared_ptr<device::Stream> make_stream() override;
  void* allocate(std::size_t bytes) override {
    refuse("allocation");
    ++allocations;
    return inner_->allocate(bytes);
  }
  void deallocate(void* memory) noexcept override { inner_->deallocate(memory); }
  device::MemoryLeft left() const override {
    return room ? device::MemoryLeft{*room, "the test's room"} : Backend::left();
  }
  std::unique_ptr<device::PolyKernels> make_poly_kernels(
      std::shared_ptr<const ring::Ring> ring) override {
    refuse("making of kernels");
    return device::backend_of(*inner_).make_poly_kernels(std::move(ring));
  }
  std::unique_ptr<device::TorusKernels> make_torus_kernels(device::TorusPlan plan) override {
    refuse("making of kernels");
    return device::backend_of(*inner_).make_torus_kernels(std::move(plan));
  }

  /// Throws while a graph is recorded.
  void refuse(const char* what) const {
    if (recording) throw StateError(cat(what, " while a graph is recorded"), {{"what", what}});
  }

  bool recording = false;
  u64 uploads = 0;                  ///< copies from the host
  std::optional<u64> uploads_left;  ///< before they fail
  u64 allocations = 0;
  std::optional<u64> room;  ///< what it says is left; it gives more all the same
  /// Whose marks streams waited for.
  std::vector<const device::Stream*> waits;

 private:
  std::shared_ptr<device::Device> inner_;
};

class WatchedStream final : public device::Stream {
 public:
  explicit WatchedStream(std::shared_ptr<WatchedDevice> device)
      : Stream(device), watched_(*device) {}
  ~WatchedStream() override { release_pool(); }

  void synchronize() override { watched_.refuse("wait"); }
  void copy_in(void* to, const void* from, std::size_t bytes) override {
    watched_.refuse("copy from the host");
    if (watched_.uploads_left && (*watched_.uploads_left)-- == 0)
      throw DeviceError("copy from the host", {{"device", "watched"}});
    ++watched_.uploads;
    copy(to, from, bytes);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override {
    watched_.refuse("copy to the host");
    copy(to, from, bytes);
  }
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
  void wait_for(Stream&) override {}
  std::shared_ptr<device::Event> mark() override { return std::make_shared<Mark>(this); }
  void wait_for(const std::shared_ptr<device::Event>& event) override {
    if (event) watched_.waits.push_back(static_cast<const Mark&>(*event).stream);
  }

 protected:
  std::unique_ptr<device::GraphExec> record(const std::function<void()>& work) override {
    struct Recording {
      bool& on;
      explicit Recording(bool& flag) : on(flag) { on = true; }
      ~Recording() { on = false; }
    } const recording(watched_.recording);
    work();
    return Stream::record(work);
  }

 private:
  struct Mark final : device::Event {
    explicit Mark(const Stream* s) : stream(s) {}
    void synchronize() override {}
    const Stream* stream;
  };
  WatchedDevice& watched_;
};

inline std::shared_ptr<device::Stream> WatchedDevice::make_stream() {
  return std::make_shared<WatchedStream>(
      std::static_pointer_cast<WatchedDevice>(shared_from_this()));
}

}  // namespace crenel::test
