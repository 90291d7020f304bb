// RingContext: one chain of moduli on one device, with every table that key switching and rescaling
// need.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "crenel/core/fork_mutex.h"
#include "device/backend.h"
#include "rlwe/key_levels.h"
#include "rlwe/poly.h"

namespace crenel::rlwe {

/// The moduli of a leveled RLWE scheme: primes in position order and one window a level.
struct Chain {
  struct Window {
    u32 begin = 0;
    u32 end = 0;
  };
  u32 log_n = 0;
  std::vector<u64> primes;  ///< chain primes, then the special ones
  u32 chain_limbs = 0;
  u32 alpha = 0;                ///< special primes = limbs a digit
  std::vector<Window> windows;  ///< by level
  u32 normal_top = 0;           ///< above it: levels that have short ones beside them
  /// Whether keys for aligned levels may be made: their digits convert as the others do.
  bool has_aligned = false;

  /// The chain primes of a level, short ones included.
  LimbSet limbs(u32 level) const;
  /// Whether there is such a level. Of short ones: their digits must be neighbours; of aligned
  /// ones: it has fewer digits than the ordinary one.
  bool has_level(u32 level) const;

  /// Where the windows of aligned levels begin: that of the normal top level does.
  u32 aligned_begin() const { return windows[normal_top].begin; }
  /// What the first block of digits has too few to end where the next begins: none of ordinary
  /// levels.
  u32 lead(u32 level) const {
    return is_aligned(level) ? (alpha - aligned_begin() % alpha) % alpha : 0;
  }
  /// The gadget digit that a position belongs to, of keys for this level.
  u32 digit_of(u32 position, u32 level) const { return (position + lead(level)) / alpha; }
  /// Digits of all levels, of keys for this one.
  u32 dnum(u32 level) const { return digit_of(chain_limbs - 1, level) + 1; }
  /// Whether key switching takes fewer digits at this ordinary level with aligned ones.
  bool aligned(u32 level) const { return has_aligned && has_level(aligned_level(level)); }
  /// The highest such level up to `level`; nothing where there is none.
  std::optional<u32> highest_aligned(u32 level) const;

  u32 top_level() const { return static_cast<u32>(windows.size()) - 1; }
  /// The primes that levels up to `level` use: windows slide, and need not hold those below them.
  Window up_to(u32 level) const {
    Window w = windows[0];
    for (u32 l = 1; l <= level; ++l)
      w = {std::min(w.begin, windows[l].begin), std::max(w.end, windows[l].end)};
    return w;
  }
  /// The same of keys for ordinary levels.
  u32 dnum() const { return dnum(0); }
};

/// What a switching key has of a chain that serves the levels up to one.
struct KeyExtent {
  u32 first_digit = 0, digits = 0;
  LimbSet limbs;
};
/// Its chain primes alone; `level` is not above the top.
KeyExtent key_extent(const Chain& chain, u32 level);

/// Immutable after construction, except for the stream's memory pool and tables of short levels,
/// which are made on request. Queues on the stream that all contexts of the device share.
class RingContext {
 public:
  RingContext(Chain chain, std::shared_ptr<device::Device> device);

  const Chain& chain() const { return chain_; }
  u32 log_n() const { return chain_.log_n; }
  u64 ring_dim() const { return u64(1) << chain_.log_n; }
  u32 top_level() const { return chain_.top_level(); }
  device::Device& device() const { return *device_; }
  const std::shared_ptr<device::Device>& shared_device() const { return device_; }
  device::Stream& stream() const { return *stream_; }
  const std::shared_ptr<device::Stream>& shared_stream() const { return stream_; }
  device::PolyKernels& kernels() const { return *kernels_; }
  const math::Modulus<Word>& modulus(u32 prime_id) const { return ring_->modulus(prime_id); }

  /// Tables of the short levels over the normal level `base`, from its foot up to `level`: nothing
  /// below is asked of short levels before they are there. Once made they stay.
  void make_short_levels(u32 base, u32 level) const;

  const LimbSet& window(u32 level) const { return tables(level).window; }
  /// Window and special.
  const LimbSet& extended(u32 level) const { return tables(level).extended; }
  const LimbSet& special() const { return special_; }
  const LimbSet& everything() const { return everything_; }
  /// Whether there are tables of this aligned level.
  bool aligned(u32 level) const { return !is_short(level) && levels_[level].aligned_mod_up; }
  /// Gadget digit that the window of `level` starts in.
  u32 first_digit(u32 level) const { return chain_.digit_of(window(level)[0], level); }
  u32 digit_count(u32 level) const { return static_cast<u32>(mod_up(level)->digits.size()); }
  /// What a switching key has that serves the levels up to `level`, or any level above the top.
  /// With the special primes.
  KeyExtent extent(u32 level) const;

  const device::Prepared<rns::ModUp>& mod_up(u32 level) const {
    return is_aligned(level) ? tables(level).aligned_mod_up : tables(level).mod_up;
  }
  /// Division by P at `level`.
  const device::Prepared<rns::Divide>& mod_down(u32 level) const { return tables(level).mod_down; }
  /// Rational rescale from `level` (>= 1) to level - 1.
  const device::Prepared<rns::Divide>& rescale(u32 level) const { return tables(level).rescale; }
  /// Both in one division, from the extended window of `level` (>= 1) to the window of level - 1.
  const device::Prepared<rns::Divide>& mod_down_rescale(u32 level) const {
    return tables(level).mod_down_rescale;
  }
  /// P mod q for every limb of the window of `level`.
  const Scalars& special_scalars(u32 level) const { return tables(level).special_scalars; }
  /// P mod the chain prime `prime_id`.
  Word special_mod(u32 prime_id) const { return special_mod_[prime_id]; }
  /// value mod q for every limb of `limbs`, the complex constant (re + im*i) of integers.
  Scalars integer_scalars(const LimbSet& limbs, i128 re, i128 im) const;

 private:
  struct LevelTables {
    LimbSet window, extended;
    device::Prepared<rns::ModUp> mod_up, aligned_mod_up;  ///< the latter of aligned levels
    device::Prepared<rns::Divide> mod_down, rescale, mod_down_rescale;
    Scalars special_scalars;
  };

  const LevelTables& tables(u32 level) const {
    return is_short(level) ? *short_levels_[short_index(level)] : levels_[ordinary(level)];
  }
  u32 short_index(u32 level) const {
    return base_of(level) * (top_level() - chain_.normal_top + 1) + ordinary(level) -
           chain_.normal_top;
  }
  rns::Moduli moduli() const;
  /// Of a window, with the digits of keys for `level`.
  device::Prepared<rns::ModUp> prepare_mod_up(const LimbSet& window, u32 level) const;
  /// `below`: the window that a rescale leads to, or null where there is none.
  void make_tables(LevelTables& t, const LimbSet* below) const;

  Chain chain_;
  std::shared_ptr<device::Device> device_;
  std::shared_ptr<const ring::Ring> ring_;
  std::unique_ptr<device::PolyKernels> kernels_;
  std::shared_ptr<device::Stream> stream_;
  LimbSet special_, everything_;
  std::vector<Word> special_mod_;
  std::vector<LevelTables> levels_;
  mutable ForkMutex short_mutex_;  ///< of what is not there yet
  mutable std::vector<std::unique_ptr<LevelTables>> short_levels_;
};

}  // namespace crenel::rlwe
