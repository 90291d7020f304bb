// The executable specification of TFHE's kernels: every operation by its definition, with integers
// of 128 bits or the double operations that device/torus/kernels.h fixes, one thread.
#pragma once

#include <vector>

#include "backends/ref/poly/kernels.h"
#include "device/torus/kernels.h"
#include "ring/fft.h"

namespace crenel::backend::ref {

using device::LutView;
using device::LweTerm;
using device::SwitchShape;
using device::TorusPlan;
using ring::Complex;

/// Sums of products of small polynomials with keys, in one of two evaluation forms. Coefficients of
/// polynomials are contiguous.
class TorusProduct {
 public:
  virtual ~TorusProduct() = default;
  /// Bytes of the stored keys (all of them) of one LWE element.
  virtual u64 element_bytes() const = 0;
  /// keys: [key][digit][row][out][N] centred integers.
  virtual void load(void* element, const i64* keys) const = 0;
  /// increment[out][N] = the rounded sum for the exponent e; operands [operand][row][N]. Integers
  /// to be added to the accumulator modulo Q.
  virtual void multiply(std::vector<i128>& increment, const std::vector<i64>& operands,
                        const void* element, u32 e) const = 0;
};

std::unique_ptr<TorusProduct> make_exact_product(const TorusPlan& plan);
std::unique_ptr<TorusProduct> make_approx_product(const TorusPlan& plan);

class RefTorusKernels final : public device::TorusKernels {
 public:
  explicit RefTorusKernels(TorusPlan plan);

  u64 bootstrap_key_bytes() const override;
  void load_bootstrap_key(Stream& stream, void* key, u32 first, u32 count,
                          const i64* polys) override;
  void blind_rotate(Stream& stream, u64* out, const u32* in, u32 batch, const void* key,
                    const LutView& luts) override;
  void key_switch(Stream& stream, const SwitchShape& shape, u32* out, const u64* in, u32 batch,
                  const void* key) override;
  void linear(Stream& stream, u32* out, std::span<const LweTerm> terms, u32 constant, u32 batch,
              u32 log_modulus) override;
  void mod_switch(Stream& stream, u32* out, u32 log_to, const u32* in, u32 log_from,
                  u32 batch) override;
  void sample_lwe(Stream& stream, void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
                  const random::Seed& mask_seed, u64 mask_serial, const random::Seed& secret_seed,
                  u64 error_serial, const i8* secrets, const u64* messages) override;
  void expand_lwe(Stream& stream, void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
                  const random::Seed& mask_seed, u64 mask_serial, const u64* bodies) override;
  void phase(Stream& stream, u32* out, const u32* in, u64 rows, u32 dim, u32 slots, u32 log_modulus,
             const i8* secrets) override;

 private:
  /// E(x) of device/torus/kernels.h.
  u32 exponent(u32 x) const;
  /// One row of blind_rotate; index: of the row's slots, may be null.
  void bootstrap_row(u64* out, const u32* in, const u8* key, const LutView& luts,
                     const u32* index) const;
  /// Digits of the accumulator, or their pieces: [digit][piece][row][N].
  std::vector<i64> operands(const std::vector<u64>& acc) const;

  std::unique_ptr<TorusProduct> product_;
};

/// x modulo 2^bits, bits <= 64.
inline u64 low_bits(u64 x, u32 bits) { return bits == 64 ? x : x & ((u64(1) << bits) - 1); }

}  // namespace crenel::backend::ref
