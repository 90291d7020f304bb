// Seeds of the library's generator.
#pragma once

#include "random/seed.h"
#include "support/random.h"

namespace crenel::test {

inline random::Seed random_seed(Rng& rng) {
  random::Seed seed;
  for (auto& byte : seed) byte = static_cast<u8>(rng());
  return seed;
}

}  // namespace crenel::test
