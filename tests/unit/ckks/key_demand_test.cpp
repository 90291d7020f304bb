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

TEST(KeyDemand, SaysWhichLevelsKeysServe) {
  KeyDemand demand(11);
  demand.rotation(4, KeyLevel{9, 7});
  demand.rotation(5, KeyLevel{9, 9});
  demand.rotation(6, KeyLevel{9, std::nullopt});
  demand.key(rlwe::kRelinearisation, KeyLevel{8, 3});
  try {
    demand.expect("program");
    FAIL() << "refuses nothing";
  } catch (const KeyMissingError& e) {
    const std::string said = e.what();
    EXPECT_EQ(e.field("rotations"), "4, 6");
    EXPECT_EQ(e.field("key"), "relinearisation");
    EXPECT_EQ(e.field("level"), "9");
    EXPECT_EQ(e.field("max_level"), "3");
    EXPECT_NE(said.find("there is no key for 6"), std::string::npos) << said;
    EXPECT_NE(said.find("the key for 4 serves levels up to 7, the operand is at level 9"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("the key for relinearisation serves levels up to 3"), std::string::npos);
    EXPECT_TRUE(said.ends_with("rotations=[4, 5, 6], relinearisation=True, max_level=9)")) << said;
  }
}

}  // namespace
}  // namespace crenel::ckks
