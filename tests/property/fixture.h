// Random polynomials on a device for property tests: rapidcheck chooses seeds, elements and shapes.
#pragma once

#include <rapidcheck.h>

#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {

/// Device suites over a small ring. ref runs at N = 2^4, the fast backends at their smallest N.
class PropertyTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (device_ == nullptr) return;
    log_n_ = device_->info().kind == device::Kind::ref ? 4 : 10;
    // 2^31, 2^30, 2^25 and 2^20 neighbours, and two special primes.
    context_ = make_context(device_, log_n_,
                            {kSpecialPrimes[0], kMainPrimes[0], kTerminalPrimes[0], kTinyPrime,
                             kMainPrimes[1], kSpecialPrimes[1], kSpecialPrimes[2]});
  }

  using Words = std::vector<u32>;
  PolyShape shape(u32 components = 1) const { return {log_n_, components, 1}; }
  u64 two_n() const { return u64(2) << log_n_; }
  const ring::Ring& ring() const { return *context_.ring; }

  TestPoly random(u64 seed, const LimbSet& limbs, Domain domain) const {
    Rng rng(seed);
    const Fill fill = kEveryFill[seed % 5 == 0 ? rng() % 5 : 0];
    return random_poly(ring(), rng, shape(), limbs, domain, {}, fill);
  }
  TestPoly blank(const LimbSet& limbs, Domain domain) const {
    return empty_poly(shape(), limbs, domain);
  }
  /// Runs and returns polynomial 0.
  Words run(const std::vector<TestPoly>& polys, const Operation& operation) {
    return run_on(context_, polys, operation)[0];
  }

  u32 log_n_ = 0;
  Context context_;
  const LimbSet limbs_ = LimbSet::range(0, 4);
};

}  // namespace crenel::test
