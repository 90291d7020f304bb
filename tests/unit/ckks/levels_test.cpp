// Rescaling and level alignment with exact bookkeeping of scales.
#include "ckks/levels.h"

#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

class CkksLevels : public test::SchemeTest {};

TEST_P(CkksLevels, CanonicalScalesSurviveAFullChainOfSquares) {
  auto names = every_scale();
  if (exhaustive()) names.push_back("toy-boot40");
  for (const char* name : names) {
    auto& w = world(name);
    const auto& p = w.params();
    auto rng = test::test_rng();
    Values x = test::random_values(rng, w.slots(), 0.7);
    Ciphertext c = w.client.encrypt(x);
    double error = 0.0;
    for (u32 level = p.normal_top_level(); level-- > 0;) {
      c = w.ev.multiply_rescale(c, c);
      EXPECT_EQ(c.level(), level);
      EXPECT_EQ(c.scale(), p.scale(level)) << "exactly canonical: " << name << " " << level;
      for (auto& v : x) v *= v;
      error = 2.0 * error + test::tolerance(p);
    }
    EXPECT_LT(test::max_error(w.client.decrypt(c), x), error) << name;
  }
}

TEST_P(CkksLevels, RescaleDividesTheScaleByTheRatio) {
  auto& w = world("toy-boot40");
  const auto& p = w.params();
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  for (u32 level = 1; level <= p.max_level(); ++level) {
    const double scale = 0x1p22 * p.rescale_ratio(level);  // far from canonical afterwards
    if (std::log2(scale) > std::min(61.0, p.log_q(level) - 2)) continue;
    const Ciphertext c = w.client.encrypt(x, level, scale), r = w.ev.rescale(c);
    EXPECT_EQ(r.level(), level - 1);
    EXPECT_EQ(r.scale(), scale / p.rescale_ratio(level));
    EXPECT_LT(test::max_error(w.client.decrypt(r), x), 0x1p-8) << level;
  }
}

TEST_P(CkksLevels, RescaleRefusesLevelZero) {
  auto& w = world("s40");
  const Ciphertext c = w.client.encrypt(Values{0.5}, 0u);
  const Ciphertext small = w.client.encrypt(Values{0.5}, 0u, 0x1p20);  // its square fits level 0
  const auto before = w.client.decrypt(c);
  for (const auto& call :
       {std::function<void()>([&] { w.ev.rescale(c); }),
        std::function<void()>([&] { w.ev.multiply_rescale(c, c); }),
        std::function<void()>([&] { w.ev.relinearise_rescale(w.ev.square_lazy(small)); })}) {
    const auto e = test::expect_error<StateError>(call);
    EXPECT_EQ(e.field("level"), "0");
    EXPECT_EQ(e.field("needed"), "1");
    EXPECT_NE(e.field("operation"), "");
    EXPECT_NE(std::string(e.what()).find("bootstrap"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find(cat("depth=", w.params().max_level() + 1)),
              std::string::npos)
        << e.what();
  }
  EXPECT_EQ(w.client.decrypt(c), before);
}

TEST_P(CkksLevels, AdjustsEveryPairOfNormalLevels) {
  auto names = every_scale();
  if (exhaustive()) names.push_back("toy-boot40");
  for (const char* name : names) {
    auto& w = world(name);
    const auto& p = w.params();
    auto rng = test::test_rng();
    const Values x = test::random_values(rng, w.slots());
    for (u32 from = 0; from <= p.normal_top_level(); ++from) {
      const Ciphertext a = w.client.encrypt(x, from);
      for (u32 to = 0; to <= from; ++to) {
        SCOPED_TRACE(testing::Message() << name << " " << from << " -> " << to);
        const Ciphertext r = w.ev.adjust_level(a, to);
        EXPECT_EQ(r.level(), to);
        EXPECT_EQ(r.scale(), p.scale(to));
        EXPECT_LT(test::max_error(w.client.decrypt(r), x), test::tolerance(p, 4.0));
      }
    }
  }
}

TEST_P(CkksLevels, AdjustsFromBootstrappingLevels) {
  auto& w = world("toy-boot40");
  const auto& p = w.params();
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  for (u32 from = p.normal_top_level() + 1; from <= p.max_level(); from += exhaustive() ? 1 : 5) {
    const Ciphertext a = w.client.encrypt(x, from);
    for (u32 to : {0u, 1u, 7u, p.normal_top_level(), from - 1, from}) {
      SCOPED_TRACE(testing::Message() << from << " -> " << to);
      const Ciphertext r = w.ev.adjust_level(a, to);
      EXPECT_EQ(r.level(), to);
      EXPECT_EQ(r.scale(), p.scale(to));
      EXPECT_LT(test::max_error(w.client.decrypt(r), x), test::tolerance(p, 4.0));
    }
  }
}

TEST_P(CkksLevels, AdjustsToAGivenScale) {
  auto& w = world("s40");
  const auto& p = w.params();
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const Ciphertext a = w.client.encrypt(x, 6u);
  for (u32 to : {5u, 3u, 1u})
    for (double scale : {0x1p38, p.scale(to) * 1.5}) {
      const Ciphertext r = w.ev.adjust_level(a, to, scale);
      EXPECT_EQ(r.level(), to);
      EXPECT_EQ(r.scale(), scale);
      EXPECT_LT(test::max_error(w.client.decrypt(r), x), test::tolerance(p, 16.0)) << to;
    }
  // The product of an adjusted and a fresh ciphertext is canonical again.
  const Ciphertext b = w.client.encrypt(x, 3u);
  const Ciphertext product = w.ev.multiply_rescale(w.ev.adjust_level(a, 3), b);
  EXPECT_EQ(product.scale(), p.scale(2));
  const auto xx = test::map_values(x, [](Complex v) { return v * v; });
  EXPECT_LT(test::max_error(w.client.decrypt(product), xx), test::tolerance(p, 4.0));
}

TEST_P(CkksLevels, ProductsOfUnequalHistoryAdjust) {
  // A ciphertext that left the canonical scales returns to them with one adjustment.
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const Ciphertext odd = w.client.encrypt(x, 6u, 0x1p41 + 12345.0);
  const Ciphertext r = w.ev.adjust_level(odd, 4);
  EXPECT_EQ(r.scale(), w.params().scale(4));
  EXPECT_LT(test::max_error(w.client.decrypt(r), x), test::tolerance(w.params(), 4.0));
}

TEST_P(CkksLevels, AdjustRefusesWhatItCannotDo) {
  auto& w = world("s40");
  const auto& p = w.params();
  const Ciphertext a = w.client.encrypt(Values{0.5}, 3u);
  auto e = test::expect_error<StateError>([&] { w.ev.adjust_level(a, 4); });
  EXPECT_EQ(e.field("level"), "3");
  EXPECT_EQ(e.field("target"), "4");
  EXPECT_EQ(e.field("needed"), "4");
  e = test::expect_error<StateError>([&] { w.ev.adjust_level(a, 3, p.scale(3) * 2); });
  EXPECT_EQ(std::stod(e.field("scale_a")), p.scale(3));
  EXPECT_EQ(std::stod(e.field("scale_b")), p.scale(3) * 2);
  const Ciphertext product = w.ev.square(a);  // scale 2^80 does not fit a product
  e = test::expect_error<StateError>([&] { w.ev.adjust_level(product, 2); });
  EXPECT_EQ(std::stod(e.field("scale_a")), product.scale());
  EXPECT_EQ(std::stod(e.field("scale_b")), p.scale(2));
  EXPECT_NEAR(w.client.decrypt(w.ev.adjust_level(a, 3))[0].real(), 0.5, 1e-6);
}

TEST_P(CkksLevels, DroppingLimbsKeepsTheBits) {
  auto& w = world("toy-boot40");
  const auto& p = w.params();
  auto rng = test::test_rng();
  const Ciphertext a = w.client.encrypt(test::random_values(rng, w.slots()), p.max_level());
  u32 dropped = 0;
  for (u32 to = 0; to < p.max_level(); ++to) {
    if (!can_drop_to(p, p.max_level(), to)) continue;
    ++dropped;
    const Ciphertext r = drop_limbs(w.ev.state(), a, to);
    EXPECT_EQ(r.scale(), a.scale());
    EXPECT_EQ(w.client.decrypt(r), w.client.decrypt(a)) << to;
  }
  EXPECT_EQ(dropped, p.max_level());  // the top level holds every prime
}

CRENEL_DEVICE_SUITE(CkksLevels);

}  // namespace
}  // namespace crenel::ckks
