// The executable specification of TFHE's kernels: every operation by its definition, with integers
// of 128 bits or the double operations that device/torus/kernels.h fixes, one thread.
#pragma once

#include <span>
#include <vector>

#include "backends/ref/poly/kernels.h"
#include "device/torus/kernels.h"
#include "ring/fft.h"

namespace crenel::backend::ref {

using device::ConstLweView;
using device::LutView;
using device::LweRowsTerm;
using device::LweSum;
using device::LweTerm;
using device::LweView;
using device::RowSeed;
using device::SwitchShape;
using device::TorusPlan;
using ring::Complex;

/// Sums of products of small polynomials with keys, in one of two evaluation forms. Coefficients of
/// polynomials are contiguous.
class TorusProduct {
 public:
  virtual ~TorusProduct() = default;
  /// Bytes of the stored keys (all of them) of one step.
  virtual u64 element_bytes() const = 0;
  /// keys: [key][digit][row][out][N] centred integers.
  virtual void load(void* element, const i64* keys) const = 0;
  /// increment[out][N] = the rounded sum; operands [operand][row][N]. Integers to be added to the
  /// accumulator modulo Q. e: the exponent; of groups c_S for every S, and without differences the
  /// integers are the new accumulator.
  virtual void multiply(std::vector<i128>& increment, const std::vector<i64>& operands,
                        const void* element, std::span<const u32> e) const = 0;
};

std::unique_ptr<TorusProduct> make_exact_product(const TorusPlan& plan);
std::unique_ptr<TorusProduct> make_approx_product(const TorusPlan& plan);

class RefTorusKernels final : public device::TorusKernels {
 public:
  explicit RefTorusKernels(TorusPlan plan);

  u64 bootstrap_key_bytes() const override;

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

  /// E(x) of device/torus/kernels.h.
  u32 exponent(u32 x) const;
  /// One row of blind_rotate, from row `row` of `in` to those of its outputs.
  void bootstrap_row(const LweView& out, const ConstLweView& in, u64 row, const u8* key,
                     const LutView& luts) const;
  /// Exponents of the monomials of every step, and that of each slot's body.
  struct Exponents {
    std::vector<std::vector<u32>> steps;
    std::vector<u32> bodies;
  };
  Exponents exponents(const u32* in) const;
  Exponents cut_exponents(const u32* in) const;  ///< of groups
  std::vector<u64> rotated(const Exponents& exponents, const u8* key, const LutView& luts,
                           const u32* index) const;  ///< the accumulator
  void product_switch(const SwitchShape& shape, const LweView& out, const ConstLweView& in,
                      const ConstLweView& key) const;
  /// Digits of the accumulator, or their pieces: [digit][piece][row][N].
  std::vector<i64> operands(const std::vector<u64>& acc) const;

  std::unique_ptr<TorusProduct> product_;
};

/// x modulo 2^bits.
inline u64 low_bits(u64 x, u32 bits) { return bits >= 64 ? x : x & ((u64(1) << bits) - 1); }

}  // namespace crenel::backend::ref
