// ref's exact blind rotation against schoolbook products of 128-bit integers, and the errors of
// approx and split against exact.
#include "support/torus_schoolbook.h"

#include <cmath>

namespace crenel::test {
namespace {

void expect_schoolbook(const TorusPlan& plan, const RotationInput& in) {
  SCOPED_TRACE(describe(plan));
  const TorusWorld world(device::make_ref_device(), plan);
  ASSERT_EQ(first_difference(world.blind_rotate(in), Schoolbook(plan, in).blind_rotate()), "");
}

TEST(TorusSchoolbook, Exact) {
  Rng rng = test_rng();
  for (const u32 log_n : {3u, 5u, 7u})
    for (TorusPlan plan :
         {raising_plan(6, 1, 1, log_n, 17, 20), raising_plan(6, 2, 3, log_n, 54, 28),
          gadget_plan(6, 1, 1, log_n, 1, 27, 7, 3), gadget_plan(6, 1, 2, log_n, 2, 25, 25, 1),
          gadget_plan(6, 2, 1, log_n, 2, 27, 14, 3), gadget_plan(6, 1, 1, log_n, 1, 27, 1, 5)})
      for (const auto secret : {LweSecret::ternary, LweSecret::binary}) {
        plan.secret = secret;
        expect_schoolbook(plan, rotation_input(plan, 2, 2, true, rng));
      }
}

TEST(TorusSchoolbook, Outputs) {
  Rng rng = test_rng();
  for (const TorusPlan& plan :
       {raising_plan(6, 2, 3, 5, 17, 20), gadget_plan(6, 1, 2, 4, 2, 25, 25, 1)})
    for (u32 outputs = 1; outputs <= plan.ring_dim(); outputs *= 2) {
      auto in = rotation_input(plan, 3, 2, true, rng);
      in.outputs = outputs;
      expect_schoolbook(plan, in);
    }
}

TEST(TorusSchoolbook, CiphertextAndSwitchModuli) {
  Rng rng = test_rng();
  for (const u32 log_q : {1u, 5u, 6u, 7u, 12u, 32u})
    for (const u32 log_switch : {32u, 40u})
      for (TorusPlan plan :
           {raising_plan(9, 1, 1, 5, 17, 20), gadget_plan(9, 1, 1, 5, 1, 27, 7, 3)}) {
        plan.log_lwe_modulus = log_q;
        plan.log_switch_modulus = log_switch, plan.switch_digits = 8;
        expect_schoolbook(plan, rotation_input(plan, 2, 1, false, rng));
      }
}

TEST(TorusSchoolbook, AwkwardInputs) {
  Rng rng = test_rng();
  for (const TorusPlan& plan :
       {raising_plan(6, 1, 1, 5, 17, 20), gadget_plan(6, 1, 1, 5, 1, 27, 7, 3),
        gadget_plan(6, 1, 1, 5, 2, 27, 18, 2)})
    for (const auto key : kTorusFills)
      for (const auto rows : kTorusFills)
        for (const auto tables : kTorusFills) {
          SCOPED_TRACE(cat(name_of(key), " key, ", name_of(rows), " rows, ", name_of(tables)));
          expect_schoolbook(plan, rotation_input(plan, 1, 1, false, rng, key, rows, tables));
          if (testing::Test::HasFatalFailure()) return;
        }
}

// Standard deviation of the plan's result - exact's after one external product, in units of Q's
// integers. All operands but the k masks are random; words of the output stand for coefficients.
double measured_error(TorusPlan plan, Rng& rng) {
  const u32 batch = 8;
  const auto in = rotation_input(plan, batch, 2, true, rng);
  const auto found = TorusWorld(device::make_ref_device(), plan).blind_rotate(in);
  plan.arithmetic = device::Arithmetic::exact;
  const auto exact = TorusWorld(device::make_ref_device(), plan).blind_rotate(in);
  const double unit = static_cast<double>(plan.modulus) /
                      std::ldexp(1.0, static_cast<int>(plan.log_switch_modulus));
  const i128 modulus = i128(1) << plan.log_switch_modulus;
  double squares = 0, size = 0;
  for (u64 i = 0; i < exact.size(); ++i) {
    const double d = static_cast<double>(centre(i128(found[i]) - i128(exact[i]), modulus)) * unit;
    squares += d * d, size += std::abs(d);
  }
  const double count = static_cast<double>(exact.size());
  // Errors far below 1 show as rare differences of +-1, with probability E|error|.
  const double mean = size / count;
  return mean < 0.25 ? mean * std::sqrt(std::acos(-1.0) / 2) : std::sqrt(squares / count);
}

void expect_model(TorusPlan plan, Rng& rng) {
  for (const auto secret : {LweSecret::ternary, LweSecret::binary}) {
    plan.secret = secret;
    SCOPED_TRACE(describe(plan));
    const double measured = measured_error(plan, rng), model = device::transform_error_std(plan);
    EXPECT_GT(measured / model, 0.3) << measured << " against " << model;
    EXPECT_LT(measured / model, 3.0) << measured << " against " << model;
  }
}

// Output words of a gadget plan that show errors of 2^-40 Q.
TorusPlan fine_gadget_plan(u32 slots, u32 log_n, u32 bits, u32 base_log, u32 digits) {
  TorusPlan plan = gadget_plan(1, 1, slots, log_n, 2, bits, base_log, digits);
  plan.log_switch_modulus = 40, plan.switch_digits = 8;
  return plan;
}

TEST(TorusError, ModelMeetsMeasurement) {
  Rng rng = test_rng();
  for (const u32 log_n : {5u, 8u, 10u}) {
    for (const auto& [bits, base_log, digits] :
         {std::tuple{25u, 25u, 1u}, {27u, 18u, 2u}, {27u, 27u, 1u}})
      for (const auto arithmetic : {device::Arithmetic::approx, device::Arithmetic::split}) {
        // 15: as many rows as bodies make; 3 take less time
        const u32 slots = arithmetic == device::Arithmetic::approx ? 15 : 3;
        TorusPlan plan = fine_gadget_plan(slots, log_n, bits, base_log, digits);
        plan.arithmetic = arithmetic;
        expect_model(plan, rng);
      }
    if (log_n == 5) continue;                      // too few words for so rare differences
    const u32 log_modulus = log_n == 8 ? 22 : 21;  // the largest that check() allows
    TorusPlan plan = raising_plan(1, 1, 15, log_n, log_modulus, 26);
    plan.arithmetic = device::Arithmetic::approx;
    plan.log_switch_modulus = log_modulus, plan.switch_digits = 8;
    expect_model(plan, rng);
  }
  TorusPlan g4 = fine_gadget_plan(1, 11, 27, 27, 1);
  g4.arithmetic = device::Arithmetic::split;
  expect_model(g4, rng);
}

TEST(TorusError, TransformIsExactForOnePrime) {
  for (const u32 log_n : {10u, 11u})
    for (const auto& [bits, base_log, digits] : {std::tuple{27u, 7u, 3u},
                                                 {27u, 9u, 2u},
                                                 {27u, 5u, 5u},
                                                 {25u, 4u, 6u},
                                                 {27u, 14u, 1u},
                                                 {28u, 10u, 2u}})
      EXPECT_TRUE(
          device::transform_is_exact(gadget_plan(503, 1, 1, log_n, 1, bits, base_log, digits)));
  EXPECT_FALSE(device::transform_is_exact(gadget_plan(600, 1, 1, 11, 2, 25, 25, 1)));
  EXPECT_FALSE(device::transform_is_exact(gadget_plan(600, 1, 1, 10, 2, 18, 7, 3)));
  EXPECT_FALSE(device::transform_is_exact(raising_plan(656, 3, 1, 9, 17, 20)));
}

}  // namespace
}  // namespace crenel::test
