// Arguments at the edges of the scheme's interface.
#include "ckks/evaluator_state.h"
#include "support/ckks_world.h"
#include "support/edited_files.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

constexpr i64 kSmallest = std::numeric_limits<i64>::min();
constexpr i64 kLargest = std::numeric_limits<i64>::max();

class CkksReview : public test::SchemeTest {};

TEST_P(CkksReview, HugeRotationsAndStrides) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const Ciphertext a = w.client.encrypt(x);
  const i64 n = static_cast<i64>(w.slots());
  const double error = test::tolerance(w.params(), 4.0);
  // 2^63 is a multiple of every slot count.
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.rotate(a, kSmallest)), x), error);
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.rotate(a, kSmallest + 2)), test::rolled(x, 2)),
            error);
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.rotate(a, kLargest)), test::rolled(x, -1)),
            error);
  const auto expected =
      test::zip_values(x, test::rolled(x, 1), [](Complex s, Complex t) { return s + t; });
  for (i64 stride : {i64(1), n + 1, kSmallest + 1})
    EXPECT_LT(test::max_error(w.client.decrypt(w.ev.sum_slots(a, 2, stride)), expected), error)
        << stride;
  // Every slot of a constant vector: 4 times itself, whatever the stride.
  const Ciphertext ones = w.client.encrypt(Values(w.slots(), 1.0));
  for (i64 stride : {kSmallest, kSmallest + 1, i64(0)})
    EXPECT_LT(
        test::max_error(w.client.decrypt(w.ev.sum_slots(ones, 4, stride)), Values(w.slots(), 4.0)),
        4 * error)
        << stride;
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.sum_slots(a, 1)), x), error);
}

TEST_P(CkksReview, FewSlotsUseTheKeyThatWasAskedFor) {
  auto& w = world("s40");
  const auto keys = w.client.evaluation_keys({{-1}, false, false});
  const Evaluator ev = w.context.evaluator(keys);
  const Values x{1.0, 2.0, 3.0, 4.0};
  const Ciphertext a = w.client.encrypt(x, {}, 0.0, 4);
  EXPECT_EQ(ev.state().rotation_element(-1, 4, 0),
            ring::galois_element_for_rotation(-1, w.params().log_n()));
  for (i64 steps : {i64(-1), i64(3), i64(7)})
    EXPECT_LT(test::max_error(w.client.decrypt(ev.rotate(a, steps)), test::rolled(x, -1)),
              test::tolerance(w.params(), 4.0))
        << steps;
}

TEST_P(CkksReview, BatchesHaveABound) {
  auto& w = world("s40");
  const auto e = test::expect_error<ParameterError>(
      [&] { w.context.encode(Values{}, {}, 0.0, 0, 0xffffffffu); });
  EXPECT_EQ(e.field("batch"), "4294967295");
  EXPECT_EQ(e.field("max_batch"), std::to_string(kMaxBatch));
}

TEST_P(CkksReview, ValuesBeyondDoublePrecisionAreRefused) {
  auto& w = world("s40");
  const double big = std::numeric_limits<double>::max();
  Values v(w.slots());
  for (const u64 period : {1, 2, 4, 8})  // sums inside the transform are infinite, and NaN
    for (const bool imaginary : {false, true}) {
      for (u64 i = 0; i < v.size(); ++i) {
        const double x = (i / period) % 2 ? -big : big;
        v[i] = imaginary ? Complex(x, -x) : Complex(x);
      }
      EXPECT_THROW(w.context.encode(v), ParameterError) << period;
    }
}

TEST_P(CkksReview, ConstantsThatOverflowTheModulusAreRefused) {
  auto& w = world("s40");  // Q_0 is 2^50, the scale 2^40
  const Ciphertext a = w.client.encrypt(Values{0.5}, 0u);
  for (const Complex c : {Complex(1e6), Complex(0.0, -1e6)}) {
    EXPECT_THROW(w.ev.add(a, c), ParameterError);
    EXPECT_THROW(w.ev.multiply(a, c), ParameterError);
  }
  EXPECT_NO_THROW(w.ev.add(a, 100.0));
}

TEST_P(CkksReview, UnrescaledProductsTakeNoConstants) {
  // Their default constant would have the scale 1: 0.25 would be 0.
  auto& w = world("s40");
  const Ciphertext a = w.client.encrypt(Values{0.5});
  const Ciphertext product = w.ev.multiply(a, a);
  const auto e = test::expect_error<StateError>([&] { w.ev.multiply(product, 0.25); });
  EXPECT_EQ(std::stod(e.field("scale")), product.scale());
  EXPECT_THROW(w.ev.polynomial(product, std::vector<double>{0.0, 0.25}), StateError);
  EXPECT_NO_THROW(w.ev.multiply(product, 0.25, 0x1p20));  // an explicit scale is the caller's
  EXPECT_NO_THROW(w.ev.multiply(w.ev.rescale(product), 0.25));
}

TEST_P(CkksReview, SumsWithPlaintextsKeepTheOtherComponents) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, 2 * w.slots()), y = test::random_values(rng, w.slots());
  Values yy = y;
  yy.insert(yy.end(), y.begin(), y.end());
  const Ciphertext a = w.client.encrypt(x, {}, 0.0, 0, 2), three = w.ev.square_lazy(a);
  const auto sum = [](Complex s, Complex t) { return s + t; };
  const auto difference = [](Complex s, Complex t) { return s - t; };
  const auto squares = test::map_values(x, [](Complex v) { return v * v; });
  const double error = test::tolerance(w.params(), 4.0);
  for (const bool lazy : {false, true}) {
    const Ciphertext& c = lazy ? three : a;
    const Values& v = lazy ? squares : x;
    if (!lazy) {  // encode takes no scale as large as that of a product
      const Plaintext p = w.context.encode(y);
      EXPECT_LT(test::max_error(w.client.decrypt(w.ev.add(c, p)), test::zip_values(v, yy, sum)),
                error);
      EXPECT_LT(
          test::max_error(w.client.decrypt(w.ev.sub(c, p)), test::zip_values(v, yy, difference)),
          error);
    }
    const auto shifted = test::map_values(v, [](Complex t) { return t + Complex(0.5, -0.25); });
    EXPECT_LT(test::max_error(w.client.decrypt(w.ev.add(c, Complex(0.5, -0.25))), shifted), error);
  }
  // Three components plus two.
  const Ciphertext two = w.ev.relinearise(three);
  const auto twice = test::map_values(squares, [](Complex v) { return 2.0 * v; });
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.add(two, three)), twice), error);
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.add(three, two)), twice), error);
}

TEST_P(CkksReview, AdjustLevelRefusesImpossibleScales) {
  auto& w = world("s40");
  const Ciphertext a = w.client.encrypt(Values{0.5}, 3u);
  for (double bad :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    EXPECT_THROW(w.ev.adjust_level(a, 2, bad), ParameterError) << bad;
}

TEST_P(CkksReview, PowerBasisHasNoInterval) {
  auto& w = world("s40");
  const Ciphertext a = w.client.encrypt(Values{0.5});
  const auto e = test::expect_error<ParameterError>(
      [&] { w.ev.polynomial(a, std::vector<double>{0, 1}, PolynomialBasis::power, 0.0, 2.0); });
  EXPECT_EQ(e.field("b"), "2");
}

TEST_P(CkksReview, GraphsRecordedOnRealSlotsRefuseComplexOnes) {
  auto& w = world("s40");
  std::vector<Ciphertext> real, complex;
  real.push_back(w.client.encrypt(std::vector<double>{0.5}, 2u));
  complex.push_back(w.client.encrypt(Values{Complex(0.5, 0.5)}, 2u));
  const auto negate = [&](std::span<const Ciphertext> in) {
    std::vector<Ciphertext> out;
    out.push_back(w.ev.negate(in[0]));
    return out;
  };
  Graph of_real(w.ev, real, negate), of_complex(w.ev, complex, negate);
  const auto e = test::expect_error<StateError>([&] { of_real.replay(complex); });
  EXPECT_EQ(e.field("real"), "false");
  EXPECT_FALSE(of_complex.replay(real)[0].metadata().real);
}

TEST_P(CkksReview, ImportRefusesKeysOfAnotherWeight) {
  auto& w = world("s40");
  const auto zero = test::with_coefficients(w.client.export_secret_key(),
                                            std::vector<u8>(w.params().ring_dim(), 0));
  EXPECT_THROW(Client::import_secret_key(w.context, zero), SerializationError);
  Spec spec = Params::preset("toy-boot40", true).spec();
  spec.hamming_weight = 64;
  const Context sparse(Params::from_spec(std::move(spec), true), GetParam());
  const auto file = sparse.keygen().export_secret_key();
  EXPECT_NO_THROW(Client::import_secret_key(sparse, file));
  auto bytes = test::exported_coefficients(file);
  for (u8& b : bytes)
    if (b != 0) {
      b = 0;
      break;
    }
  const auto e = test::expect_error<SerializationError>(
      [&] { Client::import_secret_key(sparse, test::with_coefficients(file, bytes)); });
  EXPECT_EQ(e.field("found"), "another Hamming weight");
  EXPECT_EQ(e.field("expected"), "64 of these parameters");
}

TEST(Review, ChebyshevFitChecksItsArguments) {
  const auto f = [](double x) { return x; };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(chebyshev_coefficients(f, 1.0, 1.0, 3), ParameterError);
  EXPECT_THROW(chebyshev_coefficients(f, nan, 1.0, 3), ParameterError);
  EXPECT_THROW(chebyshev_coefficients(f, -1.0, 1.0, 0xffffffffu), ParameterError);
}

CRENEL_DEVICE_SUITE(CkksReview);

}  // namespace
}  // namespace crenel::ckks
