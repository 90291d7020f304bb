// Messages computed with: arithmetic, comparisons, selection and sums against plain arithmetic;
// what each costs in noise; kinds.
#include "crenel/tfhe/message.h"

#include "crenel/core/error.h"
#include "support/integer_world.h"

namespace crenel::tfhe {
namespace {

using test::holds;
using test::kComparisons;
using test::Messages;
using test::Rng;
using test::TfheWorld;

class TfheMessage : public test::TfheTest {
 protected:
  // Every pair of messages, or random ones on ref.
  void pairs(Messages& a, Messages& b, Rng& rng, u64 limit) const {
    if (!exhaustive()) {
      a = test::random_messages(rng, 6, limit), b = test::random_messages(rng, 6, limit);
      return;
    }
    for (u64 i = 0; i < limit * limit; ++i) a.push_back(i / limit), b.push_back(i % limit);
  }

  template <class F>
  void expect(TfheWorld& w, const Ciphertext& found, const Messages& a, const Messages& b, F f) {
    const Messages values = w.client.decrypt(found);
    ASSERT_EQ(values.size(), a.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(values[i], u64(f(a[i], b[i]))) << a[i] << ", " << b[i];
  }
};

TEST_P(TfheMessage, OperationsOnEveryPair) {
  auto rng = test::test_rng();
  for (const char* name : {"toy-lut4", "padded"}) {
    TfheWorld& w = world(name);
    const u64 limit = message_bound(w.params());
    Messages x, y;
    pairs(x, y, rng, limit);
    const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(y);
    const MessageEvaluator ev(w.ev);
    const u64 k = rng() % limit;
    const i64 wide = static_cast<i64>(rng() % 1000) - 500, l = static_cast<i64>(limit);
    const u64 shift = static_cast<u64>((wide % l + l) % l);
    expect(w, ev.add(a, b), x, y, [&](u64 m, u64 n) { return (m + n) % limit; });
    expect(w, ev.sub(a, b), x, y, [&](u64 m, u64 n) { return (m + limit - n) % limit; });
    expect(w, ev.add(a, wide), x, y, [&](u64 m, u64) { return (m + shift) % limit; });
    expect(w, ev.sub(a, wide), x, y, [&](u64 m, u64) { return (m + limit - shift) % limit; });
    expect(w, ev.sub(wide, a), x, y, [&](u64 m, u64) { return (shift + limit - m) % limit; });
    expect(w, ev.mul(a, wide), x, y, [&](u64 m, u64) { return m * shift % limit; });
    for (const Comparison c : kComparisons) {
      expect(w, ev.compare(c, a, b), x, y, [&](u64 m, u64 n) { return holds(c, m, n); });
      expect(w, ev.compare(c, a, i64(k)), x, y, [&](u64 m, u64) { return holds(c, m, k); });
      expect(w, ev.compare(c, i64(k), b), x, y, [&](u64, u64 n) { return holds(c, k, n); });
      EXPECT_EQ(ev.compare(c, a, b).bound(), 2u);
    }
    for (u64 bit = 0; bit < 2; ++bit) {
      const Ciphertext condition = w.client.encrypt(Messages(x.size(), bit), 0, 2);
      expect(w, ev.select(condition, a, b), x, y, [&](u64 m, u64 n) { return bit ? m : n; });
      expect(w, ev.select(condition, i64(k), b), x, y, [&](u64, u64 n) { return bit ? k : n; });
      // a comparison of the result reads it as well as of an input
      expect(w, ev.compare(Comparison::equal, ev.select(condition, a, b), a), x, y,
             [&](u64 m, u64 n) { return bit || m == n; });
    }
  }
}

// One rotation a message; the bits of one message are judged as one error.
TEST_P(TfheMessage, OneHot) {
  auto rng = test::test_rng();
  for (const char* name : {"toy-lut4", "padded"}) {
    TfheWorld& w = world(name);
    const u64 limit = message_bound(w.params());
    const MessageEvaluator ev(w.ev);
    Messages x = test::random_messages(rng, 5, limit);
    for (u64 m = 0; exhaustive() && m < limit; ++m) x.push_back(m);
    x[0] = 0, x[1] = limit - 1;
    const Ciphertext a = w.client.encrypt(x);
    const Ciphertext hits = ev.one_hot(a);
    EXPECT_EQ(hits.bound(), 2u);
    EXPECT_DOUBLE_EQ(hits.noise_variance(), w.ev.refresh(a).noise_variance());
    const Messages found = w.client.decrypt(hits);
    ASSERT_EQ(found.size(), x.size() * limit);
    for (u64 i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i], u64(x[i / limit] == i % limit)) << x[i / limit] << ", " << i % limit;
    const Ciphertext first = hits.slice(0, 1), second = hits.slice(limit - 1, 1);
    const Ciphertext elsewhere = hits.slice(limit, 1);
    const Term one[] = {{&first, 1}, {&second, -1}}, two[] = {{&first, 1}, {&elsewhere, 1}};
    EXPECT_DOUBLE_EQ(w.ev.linear(one).noise_variance(), 4 * hits.noise_variance());
    EXPECT_DOUBLE_EQ(w.ev.linear(two).noise_variance(), 2 * hits.noise_variance());
  }
  TfheWorld& unpadded = world("func");
  EXPECT_THROW((void)MessageEvaluator(unpadded.ev).one_hot(unpadded.client.encrypt(Messages{1})),
               UnsupportedError);
}

TEST_P(TfheMessage, BoundsSpareBootstraps) {
  auto rng = test::test_rng();
  TfheWorld& w = world("toy-lut4");
  const MessageEvaluator ev(w.ev);
  const Messages x = test::random_messages(rng, 8, 4), y = test::random_messages(rng, 8, 4);
  const Ciphertext a = w.client.encrypt(x, 0, 4), b = w.client.encrypt(y, 0, 4);
  const Ciphertext sum = ev.add(a, b);
  EXPECT_EQ(sum.bound(), 7u);
  EXPECT_DOUBLE_EQ(sum.noise_variance(), a.noise_variance() + b.noise_variance());
  const Ciphertext unknown = ev.add(w.client.encrypt(x), w.client.encrypt(y));
  EXPECT_EQ(unknown.bound(), 16u);
  EXPECT_GT(unknown.noise_variance(), sum.noise_variance());
  expect(w, ev.mul(sum, 2), x, y, [](u64 m, u64 n) { return 2 * (m + n); });
  EXPECT_EQ(ev.mul(sum, 2).bound(), 13u);
  EXPECT_THROW(w.client.encrypt(Messages{4}, 0, 4), ParameterError);
}

// As many parts as the noise allows are added up before anything is bootstrapped; results of any
// number of parts can be looked up with the promise of the set.
TEST_P(TfheMessage, SumsRefreshWhatTheNoiseDemands) {
  auto rng = test::test_rng();
  TfheWorld& w = world("toy-lut4");
  const Evaluator strict = w.context.evaluator(w.keys);
  const MessageEvaluator ev(strict);
  for (const u64 count : {1u, 2u, 29u, 33u, exhaustive() ? 150u : 40u}) {
    std::vector<Ciphertext> parts;
    std::vector<const Ciphertext*> pointers;
    Messages total(3, 0);
    for (u64 i = 0; i < count; ++i) {
      const Messages m = test::random_messages(rng, 3, 16);
      for (std::size_t j = 0; j < 3; ++j) total[j] = (total[j] + m[j]) % 16;
      parts.push_back(strict.refresh(w.client.encrypt(m)));
    }
    for (const Ciphertext& part : parts) pointers.push_back(&part);
    const Ciphertext sum = ev.sum(pointers);
    EXPECT_EQ(w.client.decrypt(sum), total) << count;
    EXPECT_EQ(w.client.decrypt(strict.refresh(sum)), total) << count;
    // and one after the other
    Ciphertext one = parts[0].clone();
    for (u64 i = 1; i < count; ++i) one = ev.add(one, parts[i]);
    EXPECT_EQ(w.client.decrypt(one), total) << count;
    EXPECT_EQ(w.client.decrypt(strict.refresh(one)), total) << count;
  }
  EXPECT_THROW(ev.sum({}), ParameterError);
}

TEST_P(TfheMessage, CountsOutgrowMessagesAsIntegers) {
  auto rng = test::test_rng();
  TfheWorld& w = world("toy-lut4");
  const IntegerEvaluator ev(w.ev);
  for (const u64 limit : {2u, 16u}) {
    for (const u64 count : {1u, 2u, 17u, exhaustive() ? 60u : 20u}) {
      std::vector<Ciphertext> parts;
      std::vector<const Ciphertext*> pointers;
      Messages total(3, 0);
      for (u64 i = 0; i < count; ++i) {
        const Messages m = test::random_messages(rng, 3, limit);
        for (std::size_t j = 0; j < 3; ++j) total[j] += m[j];
        parts.push_back(w.client.encrypt(m, 0, limit == 2 ? 2 : 0));
      }
      for (const Ciphertext& part : parts) pointers.push_back(&part);
      EXPECT_EQ(decrypt_unsigned(w.client, ev.sum_messages(pointers, 16)), total) << count;
      for (u64& t : total) t %= 4;
      EXPECT_EQ(decrypt_unsigned(w.client, ev.sum_messages(pointers, 2)), total) << count;
    }
  }
  EXPECT_THROW(ev.sum_messages({}, 8), ParameterError);
  const Ciphertext one = w.client.encrypt(Messages{1});
  const Ciphertext* part = &one;
  EXPECT_THROW(ev.sum_messages({&part, 1}, 7), ParameterError);
}

TEST_P(TfheMessage, SumsOfIntegers) {
  auto rng = test::test_rng();
  TfheWorld& w = world("toy-lut4");
  const IntegerEvaluator ev(w.ev);
  std::vector<Integers> parts;
  Messages total(2, 0);
  for (u64 i = 0; i < 7; ++i) {
    const Messages m = test::random_messages(rng, 2, 256);
    for (std::size_t j = 0; j < 2; ++j) total[j] = (total[j] + m[j]) % 256;
    parts.push_back(encrypt_unsigned(w.client, m, 8));
  }
  std::vector<const Integers*> pointers;
  for (const Integers& part : parts) pointers.push_back(&part);
  EXPECT_EQ(decrypt_unsigned(w.client, ev.sum(pointers)), total);
  const Integers narrow = encrypt_unsigned(w.client, Messages{1, 2}, 4);
  pointers.push_back(&narrow);
  EXPECT_THROW(ev.sum(pointers), StateError);
  EXPECT_THROW(ev.sum({}), ParameterError);
}

TEST_P(TfheMessage, TakesInAnyOrder) {
  auto rng = test::test_rng();
  TfheWorld& w = world("toy-lut4");
  const Messages m = test::random_messages(rng, 9, 16);
  const Ciphertext a = w.client.encrypt(m);
  std::vector<u64> index(20);
  for (u64& i : index) i = rng() % m.size();
  index[1] = index[0], index[3] = index[2] = 7;
  const Messages found = w.client.decrypt(a.take(index));
  for (std::size_t i = 0; i < index.size(); ++i) EXPECT_EQ(found[i], m[index[i]]);
  EXPECT_DOUBLE_EQ(a.take(index).noise_variance(), a.noise_variance());
  // the same message twice: its noise adds up as one
  const std::vector<u64> three(9, 3);
  const Ciphertext repeated = a.take(three);
  const Term twice[] = {{&repeated, 1}, {&repeated, 1}};
  EXPECT_DOUBLE_EQ(w.ev.linear(twice).noise_variance(), 4 * a.noise_variance());
  EXPECT_THROW(a.take(std::vector<u64>{9}), ParameterError);
  EXPECT_THROW(a.take({}), ParameterError);
  TfheWorld& packed = world("raising:r3");
  EXPECT_THROW(packed.client.encrypt(Messages{1, 0, 1}).take(index), UnsupportedError);
}

// Gates and conditions take bits: what is known to hold more is refused, naming what it holds.
TEST_P(TfheMessage, GatesRefuseMessages) {
  TfheWorld& w = world("toy-lut4");
  const Ciphertext bit = w.client.encrypt(Messages{1, 0}, 0, 2);
  const Ciphertext other = w.client.encrypt(Messages{1, 1}, 0, 2);
  const Ciphertext message = w.client.encrypt(Messages{1, 0}, 0, 16);
  const auto refused = [](auto call) {
    try {
      call();
      ADD_FAILURE() << "a message passed for a bit";
    } catch (const StateError& error) {
      EXPECT_NE(std::string(error.what()).find("expected bits"), std::string::npos) << error.what();
    }
  };
  refused([&] { (void)w.ev.gate(Gate::and_, bit, message); });
  refused([&] { (void)w.ev.not_(message); });
  refused([&] { (void)w.ev.mux(message, bit, other); });
  refused([&] { (void)w.ev.mux(bit, other, message); });
  refused([&] { (void)MessageEvaluator(w.ev).select(message, bit, other); });
  refused([&] {
    (void)IntegerEvaluator(w.ev).select(message, encrypt_unsigned(w.client, Messages{1, 2}, 4),
                                        u64(3));
  });
  EXPECT_EQ(w.ev.gate(Gate::xor_, bit, other).bound(), 2u);
  EXPECT_EQ(w.ev.not_(bit).bound(), 2u);
  EXPECT_EQ(bit.slice(0, 1).bound(), 2u);
  const Ciphertext* both[] = {&bit, &message};
  EXPECT_EQ(concatenate(both).bound(), 16u);
  Lut table;
  for (u64 m = 0; m < 16; ++m) table.table.push_back(m > 8);
  EXPECT_EQ(w.ev.lut(message, table).bound(), 2u);
  EXPECT_NO_THROW((void)w.ev.gate(Gate::and_, bit, w.ev.lut(message, table)));
}

TEST_P(TfheMessage, SetsWithoutPadding) {
  auto rng = test::test_rng();
  TfheWorld& w = world("func");
  const MessageEvaluator ev(w.ev);
  Messages x, y;
  pairs(x, y, rng, 8);
  const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(y);
  expect(w, ev.add(a, b), x, y, [](u64 m, u64 n) { return (m + n) % 8; });
  expect(w, ev.sub(a, b), x, y, [](u64 m, u64 n) { return (m + 8 - n) % 8; });
  EXPECT_THROW((void)ev.compare(Comparison::less, a, b), UnsupportedError);
  EXPECT_THROW((void)ev.select(a, a, b), UnsupportedError);
}

TEST_P(TfheMessage, WhatDoesNotFit) {
  TfheWorld& w = world("toy-lut4");
  const MessageEvaluator ev(w.ev);
  const Ciphertext a = w.client.encrypt(Messages{1, 2}), b = w.client.encrypt(Messages{1});
  EXPECT_THROW((void)ev.add(a, b), StateError);
  EXPECT_THROW((void)ev.compare(Comparison::less, a, b), StateError);
  EXPECT_THROW((void)ev.add(i64(1), i64(2)), ParameterError);
  EXPECT_THROW((void)ev.compare(Comparison::less, a, i64(16)), ParameterError);
  EXPECT_THROW((void)ev.compare(Comparison::less, i64(-1), a), ParameterError);
  EXPECT_THROW((void)ev.add(a, w.client.encrypt(Messages{1, 2}, 16)), StateError);
}

CRENEL_DEVICE_SUITE(TfheMessage);

}  // namespace
}  // namespace crenel::tfhe
