// TFHE on CUDA: chooses the instance of the blind rotation and launches.
#pragma once

#include "backends/cuda/torus/host/tables.h"
#include "device/torus/kernels.h"
#include "device/torus/tuner.h"

namespace crenel::backend::cuda::torus {
struct BundleArgs;  // device/bundle.cuh
struct BundleForm;  // host/bundle_forms.h
}  // namespace crenel::backend::cuda::torus

namespace crenel::backend::cuda {

using device::ConstLweView;
using device::LutView;
using device::LweRowsTerm;
using device::LweSum;
using device::LweTerm;
using device::LweView;
using device::RowSeed;
using device::Stream;
using device::SwitchShape;

class CudaTorusKernels final : public device::TorusKernels, public device::RotationTuner {
 public:
  CudaTorusKernels(std::shared_ptr<CudaDevice> device, device::TorusPlan plan);

  u64 bootstrap_key_bytes() const override;
  std::vector<device::RotationShape> shapes() const override;
  void use_shape(std::size_t index, u32 rows) override;

 private:
  void do_load_bootstrap_key(Stream& stream, void* key, u32 first, u32 count,
                             const i64* polys) override;
  void do_blind_rotate(Stream& stream, const LweView& out, const ConstLweView& in, const void* key,
                       const LutView& luts) override;
  void do_key_switch(Stream& stream, const SwitchShape& shape, const LweView& out,
                     const ConstLweView& in, const ConstLweView& key) override;
  void do_linear(Stream& stream, const LweView& out, std::span<const LweTerm> terms,
                 u32 constant) override;
  void do_sums(Stream& stream, const LweView& out, std::span<const LweSum> sums) override;
  void do_mod_switch(Stream& stream, const LweView& out, const ConstLweView& in) override;
  void do_extract(Stream& stream, const LweView& out, const device::RingView& in,
                  const u32* positions) override;
  void do_embed(Stream& stream, i64* out, u32 log_degree, u32 count, const ConstLweView& in,
                const u32* rows) override;
  void do_sample_lwe(Stream& stream, const LweView& out, const RowSeed& masks,
                     const RowSeed& errors, const i8* secrets, const u64* messages) override;
  void do_expand_lwe(Stream& stream, const LweView& out, const RowSeed& masks,
                     const u64* bodies) override;
  void do_phase(Stream& stream, u32* out, const ConstLweView& in, const i8* secrets) override;

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
  void allow_products() const;     ///< of that by products
  void rotate(Stream& stream, const Choice& choice, torus::RotateArgs args);

  /// What every call of a rotation fills in, for a prepared `rmax`.
  torus::RotateArgs rotation_arguments(u32 rmax, const ConstLweView& in, const void* key,
                                       const LutView& luts) const;

  // ---- plans with groups (host/bundle.cu, host/product_switch.cu)
  void prepare_bundles();  ///< tables of all forms, all of the shared memory
  void load_bundle_keys(Stream& stream, void* key, u32 first, u32 count, const i64* polys);
  void rotate_bundles(Stream& stream, const LweView& out, const ConstLweView& in, const void* key,
                      const LutView& luts);
  void rotate_at_once(Stream& stream, const torus::BundleForm& form, torus::BundleArgs& args) const;
  /// By parts of the steps: a launch rotates by a part and makes the bundles of the next one.
  void rotate_ahead(Stream& stream, const torus::BundleForm& form, torus::BundleArgs& args) const;
  std::vector<device::RotationShape> bundle_shapes() const;
  static void switch_by_products(Stream& stream, const SwitchShape& shape, const LweView& out,
                                 const ConstLweView& in, const ConstLweView& key);

  std::shared_ptr<CudaDevice> device_;
  bool by_fft_;
  torus::TorusTables tables_;
  std::vector<const torus::BundleForm*> forms_;  ///< with groups
  std::vector<Choice> choices_;                  ///< in order of preference; none with groups
  Choice forced_;                                ///< by use_shape
  const torus::BundleForm* forced_form_ = nullptr;
};

}  // namespace crenel::backend::cuda
