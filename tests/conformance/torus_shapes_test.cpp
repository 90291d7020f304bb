// Every compiled way to run a blind rotation gives the bits of ref: the ones that a device prefers
// for large batches too, which the small batches of the other tests do not reach.
#include "device/torus/tuner.h"
#include "support/devices.h"
#include "support/torus_world.h"

namespace crenel::test {
namespace {

class TorusShapes : public DeviceTest {
 protected:
  // All shapes of the plan, with all numbers of rows a block; 7 rows leave the last block unfilled.
  void expect_same(const TorusPlan& plan, Rng& rng) const {
    for (const u32 outputs : {1u, 4u}) expect_same(plan, outputs, rng);
  }
  void expect_same(const TorusPlan& plan, u32 outputs, Rng& rng) const {
    SCOPED_TRACE(cat(describe(plan), ", ", outputs, " outputs"));
    auto in = rotation_input(plan, 7, 2, true, rng);
    in.outputs = outputs;
    const auto expected = TorusWorld(device::make_ref_device(), plan).blind_rotate(in);
    const TorusWorld world(device_, plan);
    const auto key = world.load_key(in.key);
    ASSERT_EQ(first_difference(world.blind_rotate(in, key), expected), "");
    auto* const tuner = dynamic_cast<device::RotationTuner*>(world.kernels.get());
    if (tuner == nullptr) return;  // one way only
    const auto shapes = tuner->shapes();
    EXPECT_THROW(tuner->use_shape(shapes.size(), 0), UnsupportedError);
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      u32 tried = 0;
      for (u32 rows = 1; rows <= shapes[i].rows; ++rows) {
        try {
          tuner->use_shape(i, rows);
        } catch (const UnsupportedError&) {
          continue;  // not a multiple of what a thread takes
        }
        ++tried;
        ASSERT_EQ(first_difference(world.blind_rotate(in, key), expected), "")
            << shapes[i].name << ", " << rows << " rows a block";
      }
      EXPECT_GT(tried, 0u) << shapes[i].name;
    }
  }
};
CRENEL_CANDIDATE_SUITE(TorusShapes);

// Accumulators of the sets: polynomials, degree, and sums that are or are not reduced before
// rounding.
TEST_P(TorusShapes, Raising) {
  Rng rng = test_rng();
  for (const auto& [glwe_dim, slots, log_n] : {std::tuple{3u, 1u, 9u},
                                               {3u, 5u, 9u},
                                               {2u, 1u, 9u},
                                               {1u, 1u, 10u},
                                               {1u, 2u, 10u},
                                               {1u, 3u, 10u},
                                               {2u, 4u, 10u},
                                               {3u, 5u, 10u},
                                               {1u, 1u, 11u},
                                               {1u, 2u, 11u},
                                               {1u, 1u, 12u}})
    for (const auto& [log_modulus, bits] : {std::pair{17u, 20u}, {22u, 26u}})
      for (const auto arithmetic : {device::Arithmetic::approx, device::Arithmetic::exact}) {
        if (arithmetic == device::Arithmetic::exact && (log_n != 9 || log_modulus != 17)) continue;
        TorusPlan plan = raising_plan(3, glwe_dim, slots, log_n, log_modulus, bits);
        plan.arithmetic = arithmetic;
        plan.log_switch_modulus = log_modulus, plan.switch_digits = 4;
        expect_same(plan, rng);
      }
}

TEST_P(TorusShapes, Gadget) {
  Rng rng = test_rng();
  for (const auto& [log_n, primes, bits, base_log, digits] : {std::tuple{10u, 1u, 27u, 7u, 3u},
                                                              {10u, 1u, 27u, 9u, 2u},
                                                              {11u, 2u, 25u, 25u, 1u},
                                                              {11u, 2u, 25u, 17u, 2u},
                                                              {11u, 2u, 27u, 27u, 1u}})
    for (const u32 slots : {1u, 3u}) {
      TorusPlan plan = gadget_plan(3, 1, slots, log_n, primes, bits, base_log, digits);
      plan.log_switch_modulus = 40, plan.switch_digits = 8;
      for (const auto arithmetic : kinds_of_arithmetic(plan)) {
        plan.arithmetic = arithmetic;
        expect_same(plan, rng);
      }
    }
}

}  // namespace
}  // namespace crenel::test
