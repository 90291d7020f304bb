// Scalars of the operations that multiply by a constant.
#pragma once

#include "device/poly/kernels.h"
#include "ring/ring.h"
#include "support/random.h"

namespace crenel::test {

/// Of every limb; `real`: with one value for both halves.
inline device::LimbScalars random_scalars(const ring::Ring& ring, Rng& rng,
                                          const rns::LimbSet& limbs, bool real) {
  device::LimbScalars f;
  for (u32 l = 0; l < limbs.size(); ++l) {
    const u32 q = ring.modulus(limbs[l]).q;
    f.low[l] = static_cast<u32>(rng() % q);
    f.high[l] = real ? f.low[l] : static_cast<u32>(rng() % q);
  }
  return f;
}

}  // namespace crenel::test
