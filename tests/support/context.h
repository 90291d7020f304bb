// A device with a ring: what one run of an operation needs. Cached, because tables are the slow
// part.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <tuple>

#include "device/backend.h"

namespace crenel::test {

template <class W>
struct Context {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Stream> stream;
  std::shared_ptr<const ring::Ring<W>> ring;
  std::shared_ptr<device::Kernels<W>> kernels;
};

template <class W>
std::shared_ptr<const ring::Ring<W>> shared_ring(u32 log_n, const std::vector<u64>& primes) {
  static std::map<std::pair<u32, std::vector<u64>>, std::shared_ptr<const ring::Ring<W>>> cache;
  auto& entry = cache[{log_n, primes}];
  if (!entry) entry = std::make_shared<const ring::Ring<W>>(log_n, primes);
  return entry;
}

/// The primes of a ring as rns wants them.
template <class W>
rns::Moduli<W> moduli_of(const ring::Ring<W>& ring) {
  rns::Moduli<W> m;
  for (u32 i = 0; i < ring.prime_count(); ++i) m.push_back(ring.modulus(i));
  return m;
}

template <class W>
Context<W> make_context(const std::shared_ptr<device::Device>& device, u32 log_n,
                        const std::vector<u64>& primes) {
  auto ring = shared_ring<W>(log_n, primes);
  return {device, device->make_stream(), ring, device::backend_of(*device).make_kernels(ring)};
}

/// A candidate and the reference over the same ring.
template <class W>
struct Pair {
  Context<W> candidate;
  Context<W> reference;
  const ring::Ring<W>& ring() const { return *reference.ring; }
};

template <class W>
Pair<W> make_pair(const std::shared_ptr<device::Device>& device, u32 log_n,
                  const std::vector<u64>& primes) {
  return {make_context<W>(device, log_n, primes),
          make_context<W>(device::make_ref_device(), log_n, primes)};
}

}  // namespace crenel::test
