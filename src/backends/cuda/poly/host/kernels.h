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

class CudaKernels final : public device::Kernels<u32> {
 public:
  using Base = device::Kernels<u32>;

  CudaKernels(std::shared_ptr<CudaDevice> device, std::shared_ptr<const ring::Ring<u32>> ring);
  ~CudaKernels() override;

  Prepared<rns::BaseConversion<u32>> prepare(rns::BaseConversion<u32> table) override;
  Prepared<rns::ModUp<u32>> prepare(rns::ModUp<u32> table) override;
  Prepared<rns::Divide<u32>> prepare(rns::Divide<u32> table) override;

  void add(Stream& stream, View out, ConstView a, ConstView b) override;
  void sub(Stream& stream, View out, ConstView a, ConstView b) override;
  void neg(Stream& stream, View out, ConstView a) override;
  void mul(Stream& stream, View out, ConstView a, ConstView b) override;
  void mul_add(Stream& stream, View out, ConstView a, ConstView b) override;
  void mul_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;
  void mul_add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;
  void add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) override;

  void ntt(Stream& stream, View out, ConstView in) override;
  void intt(Stream& stream, View out, ConstView in) override;
  void automorphism(Stream& stream, View out, ConstView in, u64 element) override;

  void base_convert(Stream& stream, View out, ConstView in,
                    const Prepared<rns::BaseConversion<u32>>& table) override;
  void reduce_signed(Stream& stream, View out, const i64* values) override;
  void lift_signed(Stream& stream, i64* values, ConstView in) override;

  void sample_uniform(Stream& stream, View out, const random::Seed& seed,
                      random::Nonce nonce) override;
  void sample_ternary(Stream& stream, View out, const random::Seed& seed,
                      random::Nonce nonce) override;
  void sample_error(Stream& stream, View out, const random::Seed& seed,
                    random::Nonce nonce) override;

  void tensor(Stream& stream, View out, ConstView a, ConstView b) override;
  void tensor_square(Stream& stream, View out, ConstView a, const Scalars* doubled) override;
  void linear_combination(Stream& stream, View out, std::span<const ConstView> in,
                          std::span<const Scalars> scalars, const Scalars* constant) override;
  void plain_multiply_sum(Stream& stream, std::span<const View> out, std::span<const ConstView> in,
                          const Grid& plain) override;
  void automorphism_add(Stream& stream, View out, ConstView in, u64 element,
                        const ConstView* addend = nullptr) override;
  void mod_up(Stream& stream, View out, ConstView in,
              const Prepared<rns::ModUp<u32>>& table) override;
  void key_multiply(Stream& stream, View out, ConstView digits, const Key& key,
                    u32 first_digit) override;
  void key_switch(Stream& stream, View out, ConstView in, const Prepared<rns::ModUp<u32>>& table,
                  const Key& key, u32 first_digit, const ConstView* addend,
                  const Scalars* factor) override;
  void divide(Stream& stream, View out, ConstView in, const Prepared<rns::Divide<u32>>& table,
              const ConstView* addend = nullptr) override;
  void hoisted_plain_sums(Stream& stream, std::span<const View> out, ConstView digits, ConstView b,
                          ConstView a, std::span<const Key> keys, std::span<const u64> elements,
                          const Grid& plain, const Scalars& special, u32 first_digit) override;

 private:
  bool fast() const;  ///< the two-pass transforms and what is fused with them cover this ring size
  u32 mont(u32 value, u32 id) const;  ///< value R mod q

  std::shared_ptr<CudaDevice> device_;
  RingTables tables_;
  bool fused_key_switch_ = false;  ///< the device has the shared memory for it
};

}  // namespace crenel::backend::cuda
