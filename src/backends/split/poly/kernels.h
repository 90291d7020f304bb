// The kernel interface on several devices: each computes the limbs that it keeps. What a limb needs
// of others, as a source of base conversions, every part gets from the part that has it.
#pragma once

#include <optional>

#include "backends/split/poly/tables.h"
#include "backends/split/stream.h"
#include "crenel/device/account.h"
#include "device/poly/compose/workspace.h"

namespace crenel::backend::split {

using device::Domain;
using device::Stream;
using ring::PolyShape;

class SplitPolyKernels final : public device::PolyKernels {
 public:
  SplitPolyKernels(const std::shared_ptr<const ring::Ring>& ring,
                   const std::vector<std::shared_ptr<device::Device>>& parts);

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
  void do_hoisted_rotate_sum(Stream& stream, View out, ConstView digits, ConstView b, ConstView a,
                             std::span<const Key> keys, std::span<const u64> elements,
                             const Scalars& special, u32 first_digit) override;
  void do_hoisted_plain_sums(Stream& stream, std::span<const View> out, ConstView digits,
                             ConstView b, ConstView a, std::span<const Key> keys,
                             std::span<const u64> elements, const Grid& plain,
                             const Scalars& special, u32 first_digit) override;

  u32 parts() const { return static_cast<u32>(kernels_.size()); }
  /// Every row is all parts'.
  Layout whole() const { return {parts(), 1}; }
  /// The layout of memory whose rows are all parts'; StateError for others.
  static Layout undealt(const Blocks& at, const ConstView& v);
  /// Those of the limbs' scalars that a part has use for.
  static Scalars own(const Layout& layout, u32 part, const Scalars& scalars, const LimbSet& limbs);
  Key own(const SplitStream& stream, const Layout& layout, u32 part, const Key& key) const;
  Grid own(const SplitStream& stream, u32 part, const Grid& plain) const;
  /// f(part, its kernels, its stream) for the parts that keep some of `limbs`.
  template <class F>
  void each(Stream& stream, const Layout& layout, const LimbSet& limbs, const F& f) {
    SplitStream& split = split_stream(stream);
    for (u32 p = 0; p < parts(); ++p) {
      if (layout.limbs(p, limbs).empty()) continue;
      const device::Stage stage(split.part(p), stream.stage());
      f(p, *kernels_[p], split.part(p));
    }
  }
  /// A kernel that takes each limb of `out` alone, on the parts that keep some.
  template <class Kernel, class... Args>
  void limbwise(Stream& stream, Kernel kernel, const View& out, const Args&... args);
  /// f(an addend and its factor, either or both null), of what a part has of it.
  template <class F>
  static void with_own(const Blocks& at, u32 part, const ConstView* addend, const Scalars* factor,
                       const F& f);
  /// f(what a part has of a product's sum of at most one addend); `limbs`: of the product.
  template <class F>
  static void with_own(const Blocks& at, const Layout& layout, u32 part,
                       const device::ProductSum& sum, const LimbSet& limbs, const F& f);
  /// What each part has of limbs that base conversions read.
  struct Sources {
    std::optional<Exchange> exchange;  ///< none where a part is a group by itself
    std::vector<ConstView> of_part = {};
    bool tiled = false;
    device::SourcesView operator[](u32 part) const { return {of_part[part], tiled}; }
  };
  /// The limbs `order` of `in`, in that order, on every part that keeps some of `users`.
  Sources gathered(Stream& stream, const ConstView& in, const LimbSet& order, const LimbSet& users);
  /// The same of what `of` says, of at most one addend, as sources for `tables`.
  template <class Table>
  Sources gathered_sources(Stream& stream, const device::SourcesOf& of,
                           const SplitShare<Table>& tables, const LimbSet& users);
  /// What an operation has of a table on this layout.
  template <class Table>
  void deal(const Table& table, const Layout& layout, SplitShare<Table>& share);
  template <class Table>
  void deal_whole(const Table& table, SplitShare<Table>& share);
  template <class Table>
  std::shared_ptr<const DeviceTable> dealt(const Table& table);

  std::vector<std::unique_ptr<PolyKernels>> kernels_;
  rns::Moduli moduli_;
};

}  // namespace crenel::backend::split
