// RingContext: one chain of moduli on one device, with every table that key switching and rescaling
// need.
#pragma once

#include <algorithm>
#include <vector>

#include "device/backend.h"
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

  u32 top_level() const { return static_cast<u32>(windows.size()) - 1; }
  /// The primes that levels up to `level` use: windows slide, and need not hold those below them.
  Window up_to(u32 level) const {
    Window w = windows[0];
    for (u32 l = 1; l <= level; ++l)
      w = {std::min(w.begin, windows[l].begin), std::max(w.end, windows[l].end)};
    return w;
  }
  u32 dnum() const { return (chain_limbs + alpha - 1) / alpha; }
};

/// Immutable after construction, except for the stream's memory pool. Queues on the stream that all
/// contexts of the device share.
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

  const LimbSet& window(u32 level) const { return levels_[level].window; }
  /// Window and special.
  const LimbSet& extended(u32 level) const { return levels_[level].extended; }
  const LimbSet& special() const { return special_; }
  const LimbSet& everything() const { return everything_; }
  /// Gadget digit that the window of `level` starts in.
  u32 first_digit(u32 level) const { return chain_.windows[level].begin / chain_.alpha; }
  u32 digit_count(u32 level) const {
    return static_cast<u32>(levels_[level].mod_up->digits.size());
  }
  /// What a switching key has that serves the levels up to `level`, or any level above the top.
  struct KeyExtent {
    u32 first_digit = 0, digits = 0;
    LimbSet limbs;  ///< the chain primes of those levels, and the special ones
  };
  KeyExtent extent(u32 level) const;

  const device::Prepared<rns::ModUp>& mod_up(u32 level) const { return levels_[level].mod_up; }
  /// Division by P at `level`.
  const device::Prepared<rns::Divide>& mod_down(u32 level) const { return levels_[level].mod_down; }
  /// Rational rescale from `level` (>= 1) to level - 1.
  const device::Prepared<rns::Divide>& rescale(u32 level) const { return levels_[level].rescale; }
  /// Both in one division, from the extended window of `level` (>= 1) to the window of level - 1.
  const device::Prepared<rns::Divide>& mod_down_rescale(u32 level) const {
    return levels_[level].mod_down_rescale;
  }
  /// P mod q for every limb of the window of `level`.
  const Scalars& special_scalars(u32 level) const { return levels_[level].special_scalars; }
  /// P mod the chain prime `prime_id`.
  Word special_mod(u32 prime_id) const { return special_mod_[prime_id]; }
  /// value mod q for every limb of `limbs`, the complex constant (re + im*i) of integers.
  Scalars integer_scalars(const LimbSet& limbs, i128 re, i128 im) const;

 private:
  struct LevelTables {
    LimbSet window, extended;
    device::Prepared<rns::ModUp> mod_up;
    device::Prepared<rns::Divide> mod_down, rescale, mod_down_rescale;
    Scalars special_scalars;
  };

  Chain chain_;
  std::shared_ptr<device::Device> device_;
  std::shared_ptr<const ring::Ring> ring_;
  std::unique_ptr<device::PolyKernels> kernels_;
  std::shared_ptr<device::Stream> stream_;
  LimbSet special_, everything_;
  std::vector<Word> special_mod_;
  std::vector<LevelTables> levels_;
};

}  // namespace crenel::rlwe
