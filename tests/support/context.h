// A device with a ring: what one run of an operation needs. Cached, because tables are the slow
// part.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <tuple>

#include "device/backend.h"

namespace crenel::test {

struct Context {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Stream> stream;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<device::PolyKernels> kernels;
};

inline std::shared_ptr<const ring::Ring> shared_ring(u32 log_n, const std::vector<u64>& primes) {
  static std::map<std::pair<u32, std::vector<u64>>, std::shared_ptr<const ring::Ring>> cache;
  auto& entry = cache[{log_n, primes}];
  if (!entry) entry = std::make_shared<const ring::Ring>(log_n, primes);
  return entry;
}

/// The primes of a ring as rns wants them.
inline rns::Moduli moduli_of(const ring::Ring& ring) {
  rns::Moduli m;
  for (u32 i = 0; i < ring.prime_count(); ++i) m.push_back(ring.modulus(i));
  return m;
}

inline Context make_context(const std::shared_ptr<device::Device>& device, u32 log_n,
                            const std::vector<u64>& primes) {
  auto ring = shared_ring(log_n, primes);
  return {device, device->make_stream(), ring, device::backend_of(*device).make_poly_kernels(ring)};
}

/// A candidate and the reference over the same ring.
struct Pair {
  Context candidate;
  Context reference;
  const ring::Ring& ring() const { return *reference.ring; }
};

inline Pair make_pair(const std::shared_ptr<device::Device>& device, u32 log_n,
                      const std::vector<u64>& primes) {
  return {make_context(device, log_n, primes),
          make_context(device::make_ref_device(), log_n, primes)};
}

}  // namespace crenel::test
