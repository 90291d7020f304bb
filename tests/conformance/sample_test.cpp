// Samplers against ref.
#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"
#include "support/seeds.h"

namespace crenel::test {
namespace {

class Sample : public DeviceTest {};
CRENEL_POLY_SUITE(Sample);

using Ctx = Context;
using V = Views;

const ShapeCase kSampleShapes[] = {
    {"one limb", 10, 1, 1, 0, 1, {}},    {"window", 11, 2, 3, 3, 5, {2, 1, 0, 1}},
    {"many limbs", 10, 1, 1, 0, 25, {}}, {"components", 12, 3, 1, 1, 3, {}},
    {"largest", 17, 1, 1, 1, 2, {}},
};

using Sampler = void (device::PolyKernels::*)(device::Stream&, const PolyView<u32>&,
                                              const random::Seed&, random::Nonce);

void check(const std::shared_ptr<device::Device>& device, Sampler sampler, Domain domain) {
  Rng rng = test_rng();
  for (const auto& s : kSampleShapes) {
    auto pair = make_pair(device, s.log_n, mixed_primes(s.log_n, 25));
    const random::Seed seed = random_seed(rng);
    // The serial's low word overflows between two polynomials.
    for (const u64 serial : {u64(0), rng(), (rng() << 32 | 0xffffffffu) - 1}) {
      SCOPED_TRACE(cat(s.name, ", serial ", serial));
      const random::Nonce nonce{random::Purpose::test, serial};
      expect_same(
          pair, {garbage_poly(rng, s.shape(), s.limbs(), domain, s.pad)}, 1,
          [&](Ctx& c, const V& v) { (c.kernels.get()->*sampler)(*c.stream, v[0], seed, nonce); });
    }
  }
}

TEST_P(Sample, Uniform) { check(device_, &device::PolyKernels::sample_uniform, Domain::eval); }
TEST_P(Sample, UniformCoefficients) {
  check(device_, &device::PolyKernels::sample_uniform, Domain::coeff);
}
TEST_P(Sample, Ternary) { check(device_, &device::PolyKernels::sample_ternary, Domain::coeff); }
TEST_P(Sample, Error) { check(device_, &device::PolyKernels::sample_error, Domain::coeff); }

// A window's uniform limbs are those of the whole polynomial: blocks follow prime ids.
TEST_P(Sample, WindowOfWhole) {
  Rng rng = test_rng();
  auto context = make_context(device_, 11, mixed_primes(11, 9));
  const random::Seed seed = random_seed(rng);
  const random::Nonce nonce{random::Purpose::uniform, rng()};
  const auto sample = [&](Ctx& c, const V& v) {
    c.kernels->sample_uniform(*c.stream, v[0], seed, nonce);
  };
  const auto whole = garbage_poly(rng, {11, 1, 1}, LimbSet::range(0, 9), Domain::eval);
  const auto part = garbage_poly(rng, {11, 1, 1}, LimbSet::range(4, 7), Domain::eval);
  const auto all = run_on(context, {whole}, sample)[0];
  const auto some = run_on(context, {part}, sample)[0];
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + (4 << 11)));
}

}  // namespace
}  // namespace crenel::test
