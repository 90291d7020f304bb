// TorusKernels on the CPU. A bootstrap walks rows in small groups through the elements of the key
// in lock-step, so that a group reads the key from memory once; groups are spread over threads.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/dispatch.h"
#include "backends/cpu/torus/table.h"
#include "device/torus/kernels.h"

namespace crenel::backend::cpu {

using device::ConstLweView;
using device::LutView;
using device::LweRowsTerm;
using device::LweSum;
using device::LweTerm;
using device::LweView;
using device::RowSeed;
using device::Stream;
using device::SwitchShape;
using device::TorusPlan;

/// One step of a blind rotation. Accumulators are [polys][N] integers: raising: congruent to the
/// residue modulo Q, any representative; gadget: centred in (-Q/2, Q/2).
class TorusEngine {
 public:
  virtual ~TorusEngine() = default;
  /// Bytes of the key of one step, a multiple of 64.
  virtual u64 element_bytes() const = 0;
  /// Bytes of workspace of each row of a step, and of a step or load in all; multiples of 64.
  virtual u64 row_bytes() const = 0;
  virtual u64 shared_bytes() const = 0;
  /// keys: [key][digit][row][out][N], as load_bootstrap_key takes them.
  virtual void load(void* element, const i64* keys, u8* shared) const = 0;
  /// ACC += (X^e - 1)(ACC (x) K0) + (X^-e - 1)(ACC (x) K1) for `rows` rows; acc, e and work a row.
  /// Of groups ACC = ACC (x) sum_S X^(c_S) K_S, or ACC += sum_S (X^(c_S) - 1) (ACC (x) K_S), e:
  /// [row][S].
  /// next: the element that follows in memory comes next.
  virtual void step(i64* const* acc, const u32* e, u32 rows, const void* element, bool next,
                    u8* const* work, u8* shared) const = 0;
};

/// Products by the double-precision transform: approx and split plans, and exact ones that
/// transform_is_exact.
std::unique_ptr<TorusEngine> make_transform_engine(const TorusPlan& plan, Isa isa);
/// Products by number-theoretic transforms modulo each prime.
std::unique_ptr<TorusEngine> make_exact_engine(const TorusPlan& plan, Isa isa);

class CpuTorusKernels final : public device::TorusKernels {
 public:
  CpuTorusKernels(TorusPlan plan, Isa isa);

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

  u32 exponent(u32 x) const;
  /// Groups: the exponents of all steps, [step][S]; returns the sum of all u of the definition.
  i64 cut_exponents(u32* out, const u32* in) const;
  void start(i64* acc, const u32* bodies, const LutView& luts, const u32* index) const;
  template <class Word>
  void extract(Word* out, const i64* acc, const LutView& luts, const u32* index) const;
  /// Rows [first, first + rows) in lock-step.
  void rotate_group(const LweView& out, const u32* in, u64 first, u32 rows, const void* key,
                    const LutView& luts, u8* work) const;
  /// Rows that one thread takes through the key in lock-step.
  u32 group_rows() const;
  u64 group_bytes() const {
    return group_rows() * (row_bytes() + exponent_bytes()) + engine_->shared_bytes();
  }
  u64 acc_bytes() const { return u64(plan().polys()) * plan().ring_dim() * sizeof(i64); }
  /// What a step touches of a row.
  u64 row_bytes() const { return acc_bytes() + engine_->row_bytes(); }
  /// Groups: the exponents of a row.
  u64 exponent_bytes() const {
    if (plan().group == 0) return 0;
    return (u64(plan().steps()) * plan().sets() * sizeof(u32) + 63) / 64 * 64;
  }

  const TorusTable& table_;
  const SampleTable& sample_;
  std::unique_ptr<TorusEngine> engine_;
};

/// x modulo 2^bits, bits <= 64.
inline u64 low_bits(u64 x, u32 bits) { return bits >= 64 ? x : x & ((u64(1) << bits) - 1); }

}  // namespace crenel::backend::cpu
