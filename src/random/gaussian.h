// Rounded Gaussians of a large standard deviation, for noise flooding. Host only. Its timing tells
// of the noise at most, never of the secret key.
#pragma once

#include "random/chacha20.h"

namespace crenel::random {

/// Largest standard deviation: here the doubles behind a sample still lie closer than integers do.
inline constexpr double kMaxGaussianStd = 0x1p48;

/// Integers round(x), x Gaussian of mean 0 and the given standard deviation, from the keystream of
/// (seed, nonce): Box-Muller. The uniform variable behind the radius has 53 significant bits
/// wherever it lies in (0, 1], down to 2^-129, so that the tail is there up to 13 standard
/// deviations. One generator serves at most 2^32 - 1 blocks, that is 2^30 samples.
class GaussianSource {
 public:
  /// std in (0, kMaxGaussianStd]: the caller checks.
  GaussianSource(const Seed& seed, Nonce nonce, double std);
  GaussianSource(const GaussianSource&) = delete;
  GaussianSource& operator=(const GaussianSource&) = delete;
  ~GaussianSource();
  i64 operator()();

 private:
  u64 word();        ///< 64 bits of the keystream
  double uniform();  ///< in (0, 1]

  ChaChaState state_;
  double std_;
  ChaChaBlock block_{};
  u32 next_ = 16;
  u32 counter_ = 0;
};

}  // namespace crenel::random
