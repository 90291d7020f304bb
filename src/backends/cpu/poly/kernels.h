// PolyKernels on the CPU: loops over rows here, rows in the per-ISA functions of isa_table.h.
#pragma once

#include <vector>

#include "backends/cpu/dispatch.h"
#include "device/poly/kernels.h"

namespace crenel::backend::cpu {

using device::Prepared;
using device::Stream;
using ring::Domain;
using ring::LimbSet;

/// A base conversion as BasisTable::convert wants it; target.matrix points into `matrix`.
struct ConvertTable final : device::DeviceTable {
  std::vector<u64> matrix;
  std::vector<ConvertTarget> targets;
  std::vector<Shoup> intt_scale;  ///< per source: source_scale / N, for a fused inverse transform
  std::vector<Shoup> intt_scale_root;  ///< the same times the last twiddle
  u32 folds = 0;
  bool lazy = true;
  std::vector<u64> reciprocal;  ///< empty where the quotient is kept
  u64 reciprocal_start = 0;
  u32 reciprocal_unit = 0;

  /// Rows of z: the sources, and the quotient that convert_piece puts behind them.
  u32 rows() const { return static_cast<u32>(intt_scale.size()) + !reciprocal.empty(); }
};

class CpuPolyKernels final : public device::PolyKernels {
 public:
  CpuPolyKernels(std::shared_ptr<const ring::Ring> ring, Isa isa);

 private:
  using DeviceTable = device::DeviceTable;
  using PolyKernels::do_prepare;
  std::shared_ptr<const DeviceTable> do_prepare(const rns::BaseConversion& table) override;
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
  void do_divide(Stream& stream, View out, ConstView in, const Prepared<rns::Divide>& table,
                 const ConstView* addend) override;
  void do_hoisted_rotate_sum(Stream& stream, View out, ConstView digits, ConstView b, ConstView a,
                             std::span<const Key> keys, std::span<const u64> elements,
                             const Scalars& special, u32 first_digit) override;
  void do_hoisted_plain_sums(Stream& stream, std::span<const View> out, ConstView digits,
                             ConstView b, ConstView a, std::span<const Key> keys,
                             std::span<const u64> elements, const Grid& plain,
                             const Scalars& special, u32 first_digit) override;

  struct Permutation;  // a BlockPermutation with its storage
  struct Raise;        // a ModUp with its tables

  const Prime& prime(u32 id) const { return primes_[id]; }
  Shoup shoup(u32 value, u32 id) const { return math::make_shoup<u32>(value, primes_[id].q); }
  Permutation permutation(Stream& stream, u64 element, bool inverse) const;
  /// addend: added to the leading components of in, may be null
  void permute_rows(Stream& stream, View out, ConstView in, u64 element, bool add_to,
                    const ConstView* addend = nullptr) const;
  /// scale: includes 1/N; shift is added at the end
  void inverse_row(u32* out, const u32* in, u32 id, Shoup scale, Shoup scale_root, u32 shift) const;
  void forward_row(u32* out, const u32* in, u32 id, const u32* tail = nullptr,
                   Shoup tail_scale = {}, const u32* addend = nullptr) const;
  /// Conversion in pieces of coefficients; z rows are z_stride() apart.
  u64 convert_pieces() const;
  void convert_piece(const ConvertTable& table, u32* z, u32* const* out, u64 piece) const;
  /// The digits of `in` in coefficient form, without their own limbs.
  void raise_digits(Stream& stream, const Raise& raise, View out, ConstView in) const;
  /// out_c += factor * addend_c on limb l, for the components that addend has
  void add_scaled(View out, ConstView addend, const Scalars& factor, u32 b, u32 l) const;
  std::shared_ptr<const ConvertTable> convert_table(const rns::BaseConversion& table,
                                                    const std::vector<u32>* factors) const;
  /// Rows of a power-of-two distance would fall into the same cache sets.
  u64 z_stride() const { return ring().ring_dim() + 17 * kMaxLanes; }

  const IsaTable& isa_;
  std::vector<Prime> primes_;
};

}  // namespace crenel::backend::cpu
