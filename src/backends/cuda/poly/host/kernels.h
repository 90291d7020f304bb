// The kernel interface on CUDA. One .cu file a group of operations.
#pragma once

#include "backends/cuda/memory.h"
#include "backends/cuda/poly/host/tables.h"
#include "device/poly/kernels.h"

namespace crenel::backend::cuda {

using device::Domain;
using device::LimbSet;
using device::Prepared;
using device::Stream;

class CudaPolyKernels final : public device::PolyKernels {
 public:
  CudaPolyKernels(std::shared_ptr<CudaDevice> device, std::shared_ptr<const ring::Ring> ring);
  ~CudaPolyKernels() override;

  /// The two-pass transforms and what is fused with them cover this ring size.
  bool fast() const;
  const RingTables& tables() const { return tables_; }

 private:
  using DeviceTable = device::DeviceTable;
  std::shared_ptr<const DeviceTable> do_prepare(const rns::BaseConversion& table) override;
  std::shared_ptr<const DeviceTable> do_prepare(const rns::ModUp& table) override;
  std::shared_ptr<const DeviceTable> do_prepare(const rns::Divide& table) override;

  void do_add(Stream& stream, View out, ConstView a, ConstView b) override;
  void do_sub(Stream& stream, View out, ConstView a, ConstView b) override;
  void do_neg(Stream& stream, View out, ConstView a) override;
  void do_mul(Stream& stream, View out, ConstView a, ConstView b) override;
  void do_mul_add(Stream& stream, View out, ConstView a, ConstView b) override;
  void do_mul_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;
  void do_mul_add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;
  void do_add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;

  void do_ntt(Stream& stream, View out, ConstView in) override;
  void do_intt(Stream& stream, View out, ConstView in) override;
  void do_automorphism(Stream& stream, View out, ConstView in, u64 element) override;

  void do_base_convert(Stream& stream, View out, ConstView in,
                       const Prepared<rns::BaseConversion>& table) override;
  void do_reduce_signed(Stream& stream, View out, const i64* values) override;
  void do_lift_signed(Stream& stream, i64* values, ConstView in) override;

  void do_sample_uniform(Stream& stream, View out, const random::Seed& seed,
                         random::Nonce nonce) override;
  void do_sample_ternary(Stream& stream, View out, const random::Seed& seed,
                         random::Nonce nonce) override;
  void do_sample_error(Stream& stream, View out, const random::Seed& seed,
                       random::Nonce nonce) override;

  void do_tensor(Stream& stream, View out, ConstView a, ConstView b) override;
  void do_tensor_square(Stream& stream, View out, ConstView a, const Scalars* doubled) override;
  void do_linear_combination(Stream& stream, View out, std::span<const ConstView> in,
                             std::span<const Scalars> scalars, const Scalars* constant) override;
  void do_plain_multiply_sum(Stream& stream, std::span<const View> out,
                             std::span<const ConstView> in, const Grid& plain) override;
  void do_automorphism_add(Stream& stream, View out, ConstView in, u64 element,
                           const ConstView* addend) override;
  void do_mod_up(Stream& stream, View out, ConstView in,
                 const Prepared<rns::ModUp>& table) override;
  void do_key_multiply(Stream& stream, View out, ConstView digits, const Key& key,
                       u32 first_digit) override;
  void do_key_switch_extended(Stream& stream, View out, ConstView in,
                              const Prepared<rns::ModUp>& table, const Key& key, u32 first_digit,
                              const ConstView* addend, const Scalars* factor) override;
  void do_key_switch_rotated(Stream& stream, View out, ConstView in,
                             const Prepared<rns::ModUp>& table, const Key& key, u32 first_digit,
                             u64 element, bool add, const ConstView* addend,
                             const Scalars* factor) override;
  void do_key_switch_product(Stream& stream, View out, ConstView a, ConstView b,
                             const Prepared<rns::ModUp>& table, const Key& key, u32 first_digit,
                             const Scalars& lift, const device::ProductSum& sum) override;
  void do_divide(Stream& stream, View out, ConstView in, const Prepared<rns::Divide>& table,
                 const ConstView* addend) override;
  void do_key_switch_divided(Stream& stream, View out, View sum, const device::SwitchOf& of,
                             const Prepared<rns::ModUp>& raised, const Key& key, u32 first_digit,
                             const Prepared<rns::Divide>& table, const ConstView* addend) override;
  void do_sources(Stream& stream, View out, const device::SourcesOf& of,
                  const Prepared<rns::BaseConversion>& scales) override;
  void do_mod_up_from(Stream& stream, View out, device::SourcesView sources, ConstView own,
                      const Prepared<rns::ModUp>& table) override;
  void do_key_switch_from(Stream& stream, View out, device::SourcesView sources, ConstView own,
                          const Prepared<rns::ModUp>& table, const Key& key, u32 first_digit,
                          const ConstView* addend, const Scalars* factor) override;
  void do_key_switch_rotated_from(Stream& stream, View out, device::SourcesView sources,
                                  ConstView own, const Prepared<rns::ModUp>& table, const Key& key,
                                  u32 first_digit, u64 element, bool add, const ConstView* addend,
                                  const Scalars* factor) override;
  void do_key_switch_product_from(Stream& stream, View out, device::SourcesView sources,
                                  ConstView a, ConstView b, const Prepared<rns::ModUp>& table,
                                  const Key& key, u32 first_digit, const Scalars& lift,
                                  const device::ProductSum& sum) override;
  void do_divide_from(Stream& stream, View out, device::SourcesView sources, ConstView x,
                      const Prepared<rns::Divide>& table, const ConstView* addend) override;
  void do_hoisted_plain_sums(Stream& stream, std::span<const View> out, ConstView digits,
                             ConstView b, ConstView a, std::span<const Key> keys,
                             std::span<const u64> elements, const Grid& plain,
                             const Scalars& special, u32 first_digit) override;

  /// Conversions that run in one launch, uploaded.
  std::shared_ptr<const DeviceTable> upload(const std::vector<ConversionInput>& inputs,
                                            const std::vector<u32>& x_scale = {}) const;
  u32 mont(u32 value, u32 id) const;  ///< value R mod q

  std::shared_ptr<CudaDevice> device_;
  RingTables tables_;
  bool fused_key_switch_ = false;  ///< the device has the shared memory for it
};

}  // namespace crenel::backend::cuda
