// Operands that do not fit together: which error, which fields, and inputs unharmed.
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

class CkksErrors : public test::SchemeTest {
 protected:
  using Pair = std::function<void(const Ciphertext&, const Ciphertext&)>;
  using PlainPair = std::function<void(const Ciphertext&, const Plaintext&)>;

  static std::vector<Pair> sums(test::World& w) {
    return {[&w](auto& a, auto& b) { w.ev.add(a, b); }, [&w](auto& a, auto& b) { w.ev.sub(a, b); }};
  }
  static std::vector<Pair> products(test::World& w) {
    return {[&w](auto& a, auto& b) { w.ev.multiply(a, b); },
            [&w](auto& a, auto& b) { w.ev.multiply_lazy(a, b); },
            [&w](auto& a, auto& b) { w.ev.multiply_rescale(a, b); }};
  }
  static std::vector<Pair> all(test::World& w) {
    auto calls = sums(w);
    for (auto& call : products(w)) calls.push_back(call);
    return calls;
  }
  static std::vector<PlainPair> plain_sums(test::World& w) {
    return {[&w](auto& a, auto& b) { w.ev.add(a, b); }, [&w](auto& a, auto& b) { w.ev.sub(a, b); }};
  }
  static std::vector<PlainPair> plain_all(test::World& w) {
    auto calls = plain_sums(w);
    calls.push_back([&w](auto& a, auto& b) { w.ev.multiply(a, b); });
    return calls;
  }
};

TEST_P(CkksErrors, LevelsDiffer) {
  auto& w = world("s40");
  const Ciphertext a = w.client.encrypt(Values{0.5}, 4u), b = w.client.encrypt(Values{0.25}, 2u);
  const auto before_a = w.client.decrypt(a), before_b = w.client.decrypt(b);
  for (const auto& call : all(w)) {
    const auto e = test::expect_error<StateError>([&] { call(a, b); });
    EXPECT_EQ(e.field("level_a"), "4");
    EXPECT_EQ(e.field("level_b"), "2");
  }
  for (const auto& call : plain_all(w)) {
    const auto e =
        test::expect_error<StateError>([&] { call(a, w.context.encode(Values{1.0}, 3u)); });
    EXPECT_EQ(e.field("level_a"), "4");
    EXPECT_EQ(e.field("level_b"), "3");
  }
  EXPECT_EQ(w.client.decrypt(a), before_a);
  EXPECT_EQ(w.client.decrypt(b), before_b);
}

TEST_P(CkksErrors, ScalesDiffer) {
  auto& w = world("s40");
  const double s = w.params().scale(3);
  const Ciphertext a = w.client.encrypt(Values{0.5}, 3u);
  const Ciphertext b = w.client.encrypt(Values{0.5}, 3u, s * (1 + 1e-11));
  const Ciphertext close = w.client.encrypt(Values{0.5}, 3u, s * (1 + 1e-13));
  for (const auto& call : sums(w)) {
    const auto e = test::expect_error<StateError>([&] { call(a, b); });
    EXPECT_EQ(std::stod(e.field("scale_a")), a.scale());
    EXPECT_EQ(std::stod(e.field("scale_b")), b.scale());
    EXPECT_NO_THROW(call(a, close));
  }
  for (const auto& call : plain_sums(w))
    EXPECT_THROW(call(a, w.context.encode(Values{0.5}, 3u, 2 * s)), StateError);
  for (const auto& call : products(w)) EXPECT_NO_THROW(call(a, b));  // products take any scales
}

TEST_P(CkksErrors, SlotCountsDiffer) {
  auto& w = world("s40");
  const Ciphertext a = w.client.encrypt(Values{0.5}, 3u, 0.0, 16);
  const Ciphertext b = w.client.encrypt(Values{0.5}, 3u, 0.0, 8);
  for (const auto& call : all(w)) {
    const auto e = test::expect_error<StateError>([&] { call(a, b); });
    EXPECT_EQ(e.field("slots_a"), "16");
    EXPECT_EQ(e.field("slots_b"), "8");
  }
  for (const auto& call : plain_all(w)) {
    const auto e =
        test::expect_error<StateError>([&] { call(a, w.context.encode(Values{0.5}, 3u)); });
    EXPECT_EQ(e.field("slots_b"), std::to_string(w.slots()));
  }
}

TEST_P(CkksErrors, BatchSizesDiffer) {
  auto& w = world("s40");
  const Ciphertext a = w.client.encrypt(Values(4), 3u, 0.0, 2, 2);
  const Ciphertext b = w.client.encrypt(Values(6), 3u, 0.0, 2, 3);
  for (const auto& call : all(w)) {
    const auto e = test::expect_error<StateError>([&] { call(a, b); });
    EXPECT_EQ(e.field("batch_a"), "2");
    EXPECT_EQ(e.field("batch_b"), "3");
    const auto f = test::expect_error<StateError>([&] { call(b, a); });
    EXPECT_EQ(f.field("batch_a"), "3");
  }
  const Plaintext p = w.context.encode(Values(6), 3u, 0.0, 2, 3);
  for (const auto& call : plain_all(w)) {
    const auto e = test::expect_error<StateError>([&] { call(a, p); });
    EXPECT_EQ(e.field("batch_a"), "2");
    EXPECT_EQ(e.field("batch_b"), "3");
  }
}

TEST_P(CkksErrors, ParametersDiffer) {
  auto& w = world("s40");
  auto& other = world("toy-boot40");
  const Ciphertext a = w.client.encrypt(Values{0.5}, 3u), b = other.client.encrypt(Values{0.5}, 3u);
  const auto expect_foreign = [&](const std::function<void()>& f) {
    const auto e = test::expect_error<StateError>(f);
    EXPECT_EQ(e.field("found"), other.params().id());
    EXPECT_EQ(e.field("expected"), w.params().id());
  };
  for (const auto& call : all(w)) {
    expect_foreign([&] { call(a, b); });
    expect_foreign([&] { call(b, a); });
  }
  for (const auto& call : plain_all(w))
    expect_foreign([&] { call(a, other.context.encode(Values{0.5}, 3u)); });
  expect_foreign([&] { w.ev.negate(b); });
  expect_foreign([&] { w.ev.add(b, Complex(1.0)); });
  expect_foreign([&] { w.ev.multiply(b, Complex(1.0)); });
  expect_foreign([&] { w.ev.multiply_integer(b, 2); });
  expect_foreign([&] { w.ev.multiply_monomial(b, 2); });
  expect_foreign([&] { w.ev.rescale(b); });
  expect_foreign([&] { w.ev.adjust_level(b, 1); });
  expect_foreign([&] { w.ev.rotate(b, 1); });
  expect_foreign([&] { w.ev.conjugate(b); });
  expect_foreign([&] { w.ev.square(b); });
  expect_foreign([&] { w.ev.relinearise(other.ev.square_lazy(b)); });
  expect_foreign([&] { w.ev.rotate_many(b, std::vector<i64>{1}); });
  expect_foreign([&] { w.ev.rotate_sum(b, std::vector<i64>{1}); });
  expect_foreign([&] { w.ev.sum_slots(b, 2); });
  expect_foreign([&] { w.ev.polynomial(b, std::vector<double>{0.0, 1.0}); });
}

TEST_P(CkksErrors, ComponentsAreWrong) {
  auto& w = world("s40");
  const Ciphertext two = w.client.encrypt(Values{0.5}, 3u), three = w.ev.square_lazy(two);
  for (const auto& call : products(w)) {
    auto e = test::expect_error<StateError>([&] { call(three, three); });
    EXPECT_EQ(e.field("components"), "3");
    EXPECT_EQ(e.field("expected"), "2");
  }
  const std::vector<std::function<void()>> need_two{
      [&] { w.ev.square(three); },
      [&] { w.ev.rotate(three, 1); },
      [&] { w.ev.conjugate(three); },
      [&] { w.ev.rotate_many(three, std::vector<i64>{1}); },
      [&] { w.ev.rotate_sum(three, std::vector<i64>{1}); },
      [&] { w.ev.sum_slots(three, 2); }};
  for (const auto& call : need_two)
    EXPECT_EQ(test::expect_error<StateError>(call).field("components"), "3");
  for (const auto& call : {std::function<void()>([&] { w.ev.relinearise(two); }),
                           std::function<void()>([&] { w.ev.relinearise_rescale(two); })}) {
    const auto e = test::expect_error<StateError>(call);
    EXPECT_EQ(e.field("components"), "2");
    EXPECT_EQ(e.field("expected"), "3");
  }
}

TEST_P(CkksErrors, EveryClassIsAnError) {
  // Programs that catch the base class get code and fields.
  auto& w = world("s40");
  try {
    w.ev.rescale(w.client.encrypt(Values{0.5}, 0u));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "StateError");
    EXPECT_FALSE(e.fields().empty());
    EXPECT_EQ(e.field("no such field"), "");
  }
}

CRENEL_DEVICE_SUITE(CkksErrors);

}  // namespace
}  // namespace crenel::ckks
