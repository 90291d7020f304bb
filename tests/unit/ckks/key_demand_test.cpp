#include "ckks/key_demand.h"

#include <gtest/gtest.h>

#include "ring/ring.h"

namespace crenel::ckks {
namespace {

TEST(KeyDemand, NamesWhatIsMissingAndTheCallThatMakesAll) {
  constexpr u32 kLogN = 11;
  KeyDemand demand(kLogN);
  demand.rotation(4, true);
  EXPECT_NO_THROW(demand.expect("rotate_many"));
  demand.rotation(-3, false);
  demand.key(ring::galois_element_for_rotation(7, kLogN), false);
  demand.key(ring::galois_element_for_conjugation(kLogN), true);
  demand.key(rlwe::kRelinearisation, false);
  try {
    demand.expect("graph");
    FAIL() << "refuses nothing";
  } catch (const KeyMissingError& e) {
    ASSERT_NE(e.find_field("rotations"), nullptr);
    EXPECT_EQ(std::get<FieldValue::List>(e.find_field("rotations")->value()),
              (FieldValue::List{-3, 7}));
    EXPECT_EQ(e.field("key"), "relinearisation");
    EXPECT_EQ(e.field("operation"), "graph");
    EXPECT_TRUE(std::string(e.what()).ends_with(
        ": client.evaluation_keys(rotations=[-3, 4, 7], conjugate=True, relinearisation=True)"))
        << e.what();
  }
  try {
    demand.expect("bootstrap", "client.evaluation_keys(bootstrap=True)");
    FAIL() << "refuses nothing";
  } catch (const KeyMissingError& e) {
    EXPECT_TRUE(std::string(e.what()).ends_with(": client.evaluation_keys(bootstrap=True)"));
  }
}

}  // namespace
}  // namespace crenel::ckks
