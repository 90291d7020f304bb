// Products that are made by their relinearisation: the bits of making them first, whatever is added
// to them, and in whatever order.
#include "ckks/pending_product.h"

#include "ckks/polynomial.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

class PendingProducts : public test::SchemeTest {
 protected:
  void SetUp() override {
    SchemeTest::SetUp();
    if (IsSkipped()) return;
    world_ = &world("s40");
    const Params& params = world_->params();
    u32 higher = kLevel + 1;
    while (higher < params.max_level() && !can_drop_to(params, higher, kLevel)) ++higher;
    ASSERT_TRUE(can_drop_to(params, higher, kLevel));
    auto rng = test::test_rng();
    for (const u32 level : {kLevel, higher, kLevel, kLevel})
      x_.push_back(world_->client.encrypt(test::random_values(rng, 2 * world_->slots(), 0.7), level,
                                          0.0, 0, 2));
  }
  const Evaluator& ev() { return world_->ev; }
  const Evaluator::State& s() { return world_->ev.state(); }
  CiphertextOps ops() { return CiphertextOps{world_->ev}; }
  /// x_1, at a higher level than the others, at theirs.
  Ciphertext dropped() { return drop_limbs(s(), x_[1], kLevel); }

  /// By the evaluator's operations alone: sum + c_2 x_2 + c_3 x_3 + constant.
  Ciphertext plus_terms(const Ciphertext& sum, std::span<const double> c, double constant) {
    const Ciphertext* const terms[] = {&x_[2], &x_[3]};
    return ev().add(
        sum, linear_combination(s(), std::span(terms).first(c.size()), c, constant, sum.scale()));
  }
  void add_terms(UnrescaledSum& sum, std::span<const double> c, double constant) {
    const Ciphertext* const terms[] = {&x_[2], &x_[3]};
    ops().add_combination(sum, std::span(terms).first(c.size()), c, constant);
  }
  void expect_same(const UnrescaledSum& sum, const Ciphertext& made_first) {
    EXPECT_EQ(test::bits(ops().finish(sum)), test::bits(ev().relinearise_rescale(made_first)));
  }

  static constexpr u32 kLevel = 3;
  test::World* world_ = nullptr;
  std::vector<Ciphertext> x_;
};
CRENEL_DEVICE_SUITE(PendingProducts);

TEST_P(PendingProducts, AreMadeByTheirRelinearisation) {
  const Ciphertext lazy = ev().multiply_lazy(x_[0], x_[2]), square = ev().square_lazy(x_[0]);
  const auto same = [&](const PendingProduct& p, const Ciphertext& made_first) {
    EXPECT_EQ(test::bits(made(s(), p)), test::bits(made_first));
    EXPECT_EQ(test::bits(relinearised(s(), p)), test::bits(ev().relinearise(made_first)));
    const Ciphertext found = relinearised_rescaled(s(), p);
    const Ciphertext expected = ev().relinearise_rescale(made_first);
    EXPECT_EQ(test::bits(found), test::bits(expected));
    EXPECT_EQ(found.level(), expected.level());
    EXPECT_EQ(found.scale(), expected.scale());
    EXPECT_EQ(found.bound(), expected.bound());
  };
  same(pending_product(s(), x_[0], x_[2]), lazy);
  same(pending_square(s(), x_[0]), square);
  same(pending_product(s(), x_[0], x_[0]), square);
  same(pending_double_square(s(), x_[0], -1.0), double_square(s(), x_[0], -1.0));
  EXPECT_EQ(test::bits(double_square(s(), x_[0], -1.0)),
            test::bits(ev().add(ev().add(square, square), std::complex<double>(-1.0))));
  EXPECT_EQ(test::bits(ev().multiply(x_[0], x_[2])), test::bits(ev().relinearise(lazy)));
}

TEST_P(PendingProducts, TakeSumsOfConstantsAndTerms) {
  const Ciphertext lower = dropped(), lazy = ev().multiply_lazy(x_[0], lower);
  const std::vector<double> one{-0.75}, two{0.5, 1.25}, none{0.0};
  for (const auto& [c, constant] : {std::pair(one, 0.0), std::pair(one, 0.3), std::pair(two, 0.0),
                                    std::pair(two, -0.2), std::pair(none, 0.4)}) {
    SCOPED_TRACE(cat(c.size(), " terms, constant ", constant));
    auto sum = ops().product(x_[0], x_[1], kLevel);
    add_terms(sum, c, constant);
    const Ciphertext expected = plus_terms(lazy, c, constant);
    expect_same(sum, expected);
    add_terms(sum, two, 0.1);  // a second sum: what is there is made first
    expect_same(sum, plus_terms(expected, two, 0.1));
  }
  const auto twice = ev().add(lazy, lazy);
  const Ciphertext* const less[] = {&x_[2]};
  const double minus[] = {-1.0};
  expect_same(ops().chebyshev_product(x_[0], x_[1], x_[2], kLevel),
              ev().add(twice, linear_combination(s(), less, minus, 0.0, twice.scale())));
}

TEST_P(PendingProducts, TakeOtherProducts) {
  const std::vector<double> two{0.5, 1.25};
  const Ciphertext lazy = ev().multiply_lazy(x_[0], x_[2]), other = ev().square_lazy(x_[3]);
  const Ciphertext both = ev().add(lazy, other), sum_of_terms = plus_terms(other, two, 0.1);
  auto kept = ops().product(s().copy(x_[0]), x_[2], kLevel);  // nobody else has that copy
  ops().add_to(kept, ops().square(x_[3]));
  expect_same(kept, both);
  auto terms = ops().square(x_[3]);
  add_terms(terms, two, 0.1);
  auto square = ops().square(x_[0]);  // with three components added it is none for the kernels
  ops().add_to(square, ops().square(x_[3]));
  expect_same(square, ev().add(ev().square_lazy(x_[0]), other));
  ops().add_to(terms, ops().product(x_[0], x_[2], kLevel));
  expect_same(terms, ev().add(sum_of_terms, lazy));
}

TEST_P(PendingProducts, RefuseWhatProductsRefuse) {
  const Ciphertext lazy = ev().multiply_lazy(x_[0], x_[2]);
  EXPECT_THROW(pending_product(s(), lazy, x_[0]), StateError);
  EXPECT_THROW(pending_square(s(), lazy), StateError);
  EXPECT_THROW(pending_product(s(), x_[0], x_[1]), StateError);  // levels differ
  auto sum = ops().product(x_[0], x_[2], kLevel);
  EXPECT_THROW(ops().add_to(sum, s().copy(x_[3])), StateError);  // another scale
  const auto keyless =
      world_->context.evaluator(world_->client.evaluation_keys({{}, false, false}));
  EXPECT_THROW(keyless.multiply(x_[0], x_[2]), KeyMissingError);
}

}  // namespace
}  // namespace crenel::ckks
