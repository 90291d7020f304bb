// Blind rotation: every device gives the bits of ref.
#include "support/devices.h"
#include "support/torus_world.h"

namespace crenel::test {
namespace {

class TorusRotate : public DeviceTest {
 protected:
  void expect_same(const TorusPlan& plan, const RotationInput& in) const {
    SCOPED_TRACE(cat(describe(plan), ", batch ", in.batch, ", ", in.luts, " tables"));
    const TorusWorld candidate(device_, plan), reference(device::make_ref_device(), plan);
    ASSERT_EQ(first_difference(candidate.blind_rotate(in), reference.blind_rotate(in)), "");
  }
  // Both kinds of secrets and every arithmetic that such a plan has.
  void expect_same_variants(TorusPlan plan, u32 batch, Rng& rng) const {
    for (const auto secret : {LweSecret::ternary, LweSecret::binary})
      for (const auto arithmetic : kinds_of_arithmetic(plan)) {
        plan.secret = secret, plan.arithmetic = arithmetic;
        expect_same(plan, rotation_input(plan, batch, 2, true, rng));
      }
  }
};
CRENEL_CANDIDATE_SUITE(TorusRotate);

TEST_P(TorusRotate, GadgetOnePrime) {
  Rng rng = test_rng();
  // every ring degree from 8: paths differ below 32 and 128
  for (u32 log_n = 3; log_n <= 10; ++log_n)
    expect_same_variants(gadget_plan(6, 1, 1, log_n, 1, 27, 7, 3), 2, rng);
}

TEST_P(TorusRotate, GadgetTwoPrimes) {
  Rng rng = test_rng();
  for (const u32 log_n : {5u, 7u, 10u}) {
    expect_same_variants(gadget_plan(7, 1, 1, log_n, 2, 25, 25, 1), 3, rng);
    expect_same_variants(gadget_plan(6, 1, 1, log_n, 2, 27, 14, 3), 1, rng);
  }
}

TEST_P(TorusRotate, Raising) {
  Rng rng = test_rng();
  for (u32 log_n = 3; log_n <= 10; ++log_n)
    expect_same_variants(raising_plan(6, 2, 1, log_n, 17, 20), 2, rng);
}

TEST_P(TorusRotate, SlotsAndMasks) {
  Rng rng = test_rng();
  for (const u32 slots : {1u, 3u, 5u})
    for (u32 glwe_dim = 1; glwe_dim <= 3; ++glwe_dim) {
      expect_same_variants(raising_plan(6, glwe_dim, slots, 6, 17, 20), 2, rng);
      expect_same_variants(gadget_plan(6, glwe_dim, slots, 7, 1, 27, 7, 3), 2, rng);
      expect_same_variants(gadget_plan(5, glwe_dim, slots, 6, 2, 25, 17, 2), 2, rng);
    }
}

TEST_P(TorusRotate, Batches) {
  Rng rng = test_rng();
  for (const u32 batch : {1u, 2u, 7u, 33u}) {
    expect_same_variants(raising_plan(9, 3, 2, 6, 17, 20), batch, rng);
    expect_same_variants(gadget_plan(9, 1, 1, 8, 1, 27, 7, 3), batch, rng);
    expect_same_variants(gadget_plan(6, 1, 1, 6, 2, 25, 25, 1), batch, rng);
  }
}

// Several coefficients of one rotation, from two to all of them; with one, today's results.
TEST_P(TorusRotate, Outputs) {
  Rng rng = test_rng();
  TorusPlan split = gadget_plan(6, 1, 1, 6, 2, 27, 27, 1);
  split.arithmetic = device::Arithmetic::split;
  for (TorusPlan plan : {raising_plan(6, 2, 1, 6, 17, 20), raising_plan(6, 1, 3, 5, 17, 20),
                         gadget_plan(6, 1, 1, 7, 1, 27, 7, 3), gadget_plan(6, 2, 2, 6, 1, 27, 7, 3),
                         gadget_plan(6, 1, 1, 10, 2, 25, 25, 1), split})
    for (const auto arithmetic : kinds_of_arithmetic(plan)) {
      if (plan.arithmetic != device::Arithmetic::split) plan.arithmetic = arithmetic;
      auto in = rotation_input(plan, 3, 2, true, rng);
      for (const u32 outputs : {1u, 2u, 4u, 16u, plan.ring_dim()}) {
        SCOPED_TRACE(cat(outputs, " outputs"));
        in.outputs = outputs;
        expect_same(plan, in);
      }
    }
}

// Exponents: q below, equal to and above 2N.
TEST_P(TorusRotate, CiphertextModuli) {
  Rng rng = test_rng();
  for (const u32 log_q : {1u, 4u, 7u, 8u, 9u, 14u, 32u}) {
    TorusPlan split = gadget_plan(20, 1, 1, 6, 2, 27, 27, 1);
    split.arithmetic = device::Arithmetic::split;
    for (TorusPlan plan :
         {raising_plan(20, 1, 1, 6, 17, 20), gadget_plan(20, 1, 1, 6, 1, 27, 7, 3), split}) {
      plan.log_lwe_modulus = log_q;
      plan.log_switch_modulus = std::max(log_q, 17u), plan.switch_digits = 8;
      expect_same(plan, rotation_input(plan, 3, 1, false, rng));
    }
  }
}

// The modulus of extracted ciphertexts, below and above 2^32.
TEST_P(TorusRotate, SwitchModuli) {
  Rng rng = test_rng();
  for (const u32 log_switch : {9u, 15u, 27u, 32u, 33u, 40u})
    for (TorusPlan plan : {raising_plan(6, 1, 2, 6, 17, 20), gadget_plan(6, 1, 2, 6, 1, 27, 7, 3),
                           gadget_plan(6, 1, 2, 6, 2, 27, 27, 1)}) {
      plan.log_switch_modulus = log_switch, plan.switch_digits = 8;
      for (const auto arithmetic : kinds_of_arithmetic(plan)) {
        plan.arithmetic = arithmetic;
        expect_same(plan, rotation_input(plan, 2, 3, true, rng));
      }
    }
}

// Gadget bases of all sizes, last digits wider than a base, accumulators wide and narrow.
TEST_P(TorusRotate, Decompositions) {
  Rng rng = test_rng();
  for (const auto& [base_log, digits] :
       {std::pair{1u, 1u}, {1u, 26u}, {2u, 13u}, {9u, 2u}, {13u, 2u}, {26u, 1u}, {4u, 3u}})
    for (const auto arithmetic : {device::Arithmetic::exact, device::Arithmetic::approx}) {
      TorusPlan plan = gadget_plan(6, 1, 1, 7, 1, 27, base_log, digits);
      plan.arithmetic = arithmetic;
      expect_same(plan, rotation_input(plan, 2, 1, false, rng));
    }
  for (const auto& [base_log, digits] :
       {std::pair{1u, 1u}, {5u, 10u}, {18u, 2u}, {27u, 1u}, {53u, 1u}})
    for (const auto arithmetic :
         {device::Arithmetic::exact, device::Arithmetic::approx, device::Arithmetic::split}) {
      TorusPlan plan = gadget_plan(6, 1, 1, 7, 2, 27, base_log, digits);
      // wider last digits leave no room for the double-precision quotient
      if (arithmetic == device::Arithmetic::approx && (digits == 1 && base_log != 27)) continue;
      plan.arithmetic = arithmetic;
      expect_same(plan, rotation_input(plan, 2, 1, false, rng));
    }
  for (const auto& [log_modulus, bits] : {std::pair{1u, 14u},
                                          {8u, 28u},
                                          {17u, 18u},
                                          {21u, 28u},
                                          {26u, 28u}}) {  // the last one is reduced before rounding
    expect_same_variants(raising_plan(6, 1, 1, 7, log_modulus, bits), 2, rng);
  }
  for (const u32 log_modulus : {40u, 54u}) {  // beyond the double-precision transform
    TorusPlan plan = raising_plan(6, 1, 1, 7, log_modulus, 28);
    expect_same(plan, rotation_input(plan, 2, 1, false, rng));
  }
}

TEST_P(TorusRotate, AwkwardInputs) {
  Rng rng = test_rng();
  for (TorusPlan plan : {raising_plan(6, 2, 1, 7, 17, 20), gadget_plan(6, 1, 1, 7, 1, 27, 7, 3),
                         gadget_plan(6, 1, 2, 7, 2, 25, 25, 1)})
    for (const auto arithmetic : kinds_of_arithmetic(plan))
      for (const auto key : kTorusFills)
        for (const auto rows : kTorusFills)
          for (const auto tables : {TorusFill::random, TorusFill::top, TorusFill::bottom}) {
            SCOPED_TRACE(
                cat("key ", name_of(key), ", rows ", name_of(rows), ", tables ", name_of(tables)));
            plan.arithmetic = arithmetic;
            expect_same(plan, rotation_input(plan, 2, 2, false, rng, key, rows, tables));
            if (HasFatalFailure()) return;
          }
}

// Keys and operands that add up, at the size of today's sets: the largest sums that an exact plan
// may leave to the double-precision transform.
TEST_P(TorusRotate, AwkwardInputsInLargeRings) {
  Rng rng = test_rng();
  for (const TorusPlan& plan :
       {gadget_plan(3, 1, 1, 10, 1, 27, 7, 3), gadget_plan(3, 1, 1, 11, 1, 27, 9, 2)})
    for (const auto key : kTorusFills)
      for (const auto tables : kTorusFills) {
        SCOPED_TRACE(cat("key ", name_of(key), ", tables ", name_of(tables)));
        expect_same(plan, rotation_input(plan, 1, 1, false, rng, key, TorusFill::random, tables));
        if (HasFatalFailure()) return;
      }
}

TEST_P(TorusRotate, Tables) {
  Rng rng = test_rng();
  const TorusPlan plan = raising_plan(6, 1, 3, 6, 17, 20);
  for (const u32 luts : {1u, 2u, 17u})
    for (const bool indexed : {false, true})
      expect_same(plan, rotation_input(plan, 4, luts, indexed, rng));
}

// The key comes in pieces of any size, in any order; an empty batch is nothing to do.
TEST_P(TorusRotate, KeyInPieces) {
  Rng rng = test_rng();
  TorusPlan split = gadget_plan(7, 1, 1, 7, 2, 27, 27, 1);
  split.arithmetic = device::Arithmetic::split;
  for (const TorusPlan& plan :
       {raising_plan(7, 1, 2, 7, 17, 20), gadget_plan(7, 1, 1, 7, 2, 25, 25, 1), split}) {
    const TorusWorld world(device_, plan);
    auto in = rotation_input(plan, 2, 1, false, rng);
    const auto whole = world.blind_rotate(in, world.load_key(in.key, 7));
    for (const u32 piece : {1u, 2u, 4u})
      EXPECT_EQ(first_difference(world.blind_rotate(in, world.load_key(in.key, piece)), whole), "");
    const auto polys = world.upload(in.key);
    auto key = world.stream->allocate(world.kernels->bootstrap_key_bytes());
    for (u32 i = plan.lwe_dim; i-- > 0;)
      world.kernels->load_bootstrap_key(*world.stream, key.data(), i, 1,
                                        polys.as<i64>() + i * plan.key_polys() * plan.ring_dim());
    EXPECT_EQ(first_difference(world.blind_rotate(in, key), whole), "");
    in.batch = 0;
    in.rows.clear();
    EXPECT_TRUE(world.blind_rotate(in, key).empty());
  }
}

// Sets of today, one bootstrap of few elements each.
TEST_P(TorusRotate, LargeRings) {
  Rng rng = test_rng();
  for (TorusPlan plan :
       {gadget_plan(4, 1, 1, 11, 2, 25, 25, 1), gadget_plan(4, 1, 1, 11, 2, 27, 27, 1),
        gadget_plan(4, 1, 1, 12, 1, 27, 7, 3), raising_plan(4, 1, 1, 11, 19, 22)})
    expect_same_variants(plan, 1, rng);
}

// G4's shape, in every number of rows that a block of today's GPUs may take at once.
TEST_P(TorusRotate, SplitBatches) {
  Rng rng = test_rng();
  TorusPlan plan = gadget_plan(3, 1, 1, 11, 2, 27, 27, 1);
  plan.arithmetic = device::Arithmetic::split;
  for (u32 batch = 1; batch <= 9; ++batch)
    expect_same(plan, rotation_input(plan, batch, 2, true, rng));
}

}  // namespace
}  // namespace crenel::test
