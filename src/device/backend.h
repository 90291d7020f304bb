// Backend: what a device must additionally offer to the schemes. Implemented in backends/*.
#pragma once

#include <optional>

#include "crenel/device/optimisations.h"
#include "crenel/device/tuning.h"
#include "device/poly/kernels.h"
#include "device/torus/kernels.h"

namespace crenel::device {

class FhecoreKernels;  // device/fhecore/kernels.h
struct DryModel;       // device/dry_models.h

class Backend : public Device {
 public:
  /// The kernels of this device for one ring; tables are uploaded here.
  virtual std::unique_ptr<PolyKernels> make_poly_kernels(
      std::shared_ptr<const ring::Ring> ring) = 0;
  /// TFHE on this device. Throws ParameterError (device::check) and UnsupportedError for a plan
  /// that the device cannot hold.
  virtual std::unique_ptr<TorusKernels> make_torus_kernels(TorusPlan plan);
  /// The FHECore instruction, emulated; UnsupportedError where there is none.
  virtual std::unique_ptr<FhecoreKernels> make_fhecore_kernels();
  Optimisations optimisations() const {
    return Optimisations::of_bits(optimisations_.load(std::memory_order_relaxed));
  }
  /// Whether launches go by numbers that can be set (crenel/device/tuning.h).
  bool has_tuning() const { return defaults_.has_value(); }
  const std::optional<Tuning>& defaults() const { return defaults_; }
  Tuning tuning() const;
  u64 tuned(Tunable tunable) const { return tuning_[u32(tunable)].load(std::memory_order_relaxed); }

 protected:
  /// In the constructor of a device that has_tuning().
  void begin_with(const Tuning& defaults);

 private:
  friend void set_tuning(Device& device, const Tuning& wanted);
  std::optional<Tuning> defaults_;
  std::array<std::atomic<u64>, kTunables> tuning_{};

  friend void set_optimisations(Device& device, Optimisations wanted);
  std::atomic<u32> optimisations_{Optimisations().bits()};
};

/// Factories, each defined by its backend folder and named only in registry.cpp.
std::shared_ptr<Backend> make_ref_device();
std::shared_ptr<Backend> make_cpu_device();
/// Of a GPU's multiprocessors: part `part`, from 1 on, of `parts` equal ones; of 0 all of them.
struct GpuPart {
  u32 part = 0, parts = 0;
  /// As a device's name ends: "/1of2".
  std::string text() const { return parts == 0 ? "" : cat("/", part, "of", parts); }
};
/// Throws DeviceError when there is no such GPU or part, UnsupportedError where its driver has no
/// parts.
std::shared_ptr<Backend> make_cuda_device(int index, GpuPart part = {});
/// Model number `index` of a GPU that executes nothing, with its own memory and a link to each
/// other one; no index for "cuda:dry". Throws DeviceError where there is no such part, and in a
/// build without CUDA.
std::shared_ptr<Backend> make_dry_cuda_device(const DryModel& model, std::optional<int> index,
                                              GpuPart part);
int cuda_device_count() noexcept;
/// "" or why a GPU that there may be is out of reach: a fork took it.
std::string cuda_lost_reason();
/// "" or why there is no CUDA device.
std::string cuda_missing_reason();

/// The backend behind a device; devices of open() always are backends.
Backend& backend_of(Device& device);

}  // namespace crenel::device
