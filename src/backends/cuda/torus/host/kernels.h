// TFHE on CUDA: chooses the instance of the blind rotation and launches.
#pragma once

#include "backends/cuda/torus/host/tables.h"
#include "device/torus/kernels.h"

namespace crenel::backend::cuda {

using device::Stream;

class CudaTorusKernels final : public device::TorusKernels {
 public:
  CudaTorusKernels(std::shared_ptr<CudaDevice> device, device::TorusPlan plan);

  u64 bootstrap_key_bytes() const override;
  void load_bootstrap_key(Stream& stream, void* key, u32 first, u32 count,
                          const i64* polys) override;
  void blind_rotate(Stream& stream, u64* out, const u32* in, u32 batch, const void* key,
                    const device::LutView& luts) override;
  void key_switch(Stream& stream, const device::SwitchShape& shape, u32* out, const u64* in,
                  u32 batch, const void* key) override;
  void linear(Stream& stream, u32* out, std::span<const device::LweTerm> terms, u32 constant,
              u32 batch, u32 log_modulus) override;
  void mod_switch(Stream& stream, u32* out, u32 log_to, const u32* in, u32 log_from,
                  u32 batch) override;
  void sample_lwe(Stream& stream, void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
                  const random::Seed& mask_seed, u64 mask_serial, const random::Seed& secret_seed,
                  u64 error_serial, const i8* secrets, const u64* messages) override;
  void expand_lwe(Stream& stream, void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
                  const random::Seed& mask_seed, u64 mask_serial, const u64* bodies) override;
  void phase(Stream& stream, u32* out, const u32* in, u64 rows, u32 dim, u32 slots, u32 log_modulus,
             const i8* secrets) override;

  std::vector<device::RotationShape> shapes() const override;
  void use_shape(std::size_t index, u32 rows) override;

 private:
  /// An instance and its rows a block (in choices_: the most that fit).
  struct Choice {
    const torus::RotateInstance* instance = nullptr;
    u32 group = 0;
    bool spilled = false;  ///< the points lie in global memory
  };
  static std::vector<Choice> choices_for(const device::TorusPlan& plan, bool by_fft,
                                         std::size_t shared_bytes);
  Choice choose(u32 batch) const;
  void allow_large_tiles() const;  ///< of the key switch, in shared memory
  void rotate(Stream& stream, const Choice& choice, torus::RotateArgs args);

  std::shared_ptr<CudaDevice> device_;
  bool by_fft_;
  torus::TorusTables tables_;
  std::vector<Choice> choices_;  ///< in order of preference
  Choice forced_;                ///< by use_shape
};

}  // namespace crenel::backend::cuda
