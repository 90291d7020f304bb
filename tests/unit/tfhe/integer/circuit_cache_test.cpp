// Composed circuits that are kept: by what they depend on, within bounds, from several threads and
// through a fork; and operations that look alike on one context.
#include "tfhe/integer/circuit_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/child.h"
#include "support/integer_world.h"
#include "tfhe/integer/operations.h"
#include "tfhe/objects.h"

namespace crenel::tfhe {
namespace {

using radix::Blocks;
using radix::Circuit;
using radix::CircuitCache;
using radix::Form;
using radix::Program;

// a + b of `blocks` blocks; counts what it composes.
CircuitCache::Make adder(u32 blocks, std::atomic<int>& count) {
  return [=, &count](Form form) {
    ++count;
    return radix::made(form, {88, true}, [=](Circuit& circuit, Form f) {
      const Blocks a = circuit.inputs(blocks), b = circuit.inputs(blocks);
      return radix::add(circuit, a, b, f);
    });
  };
}

ContentKey key_of(u32 blocks) { return ContentKey("adder").add(blocks); }

TEST(TfheCircuitCache, ComposesOnce) {
  CircuitCache cache;
  std::atomic<int> count = 0;
  const auto get = [&](CircuitForm form, u64 size) {
    return cache.get(key_of(16), form, size, 132, adder(16, count));
  };
  const auto fast = get(CircuitForm::automatic, 1);
  EXPECT_EQ(count, 3);  // all forms, to be compared
  EXPECT_EQ(get(CircuitForm::automatic, 1), fast);
  EXPECT_EQ(get(CircuitForm::fast, 7), fast);
  EXPECT_EQ(count, 3);
  const auto lean = get(CircuitForm::automatic, 10000);  // compared by numbers, then composed
  EXPECT_EQ(count, 4);
  EXPECT_EQ(get(CircuitForm::lean, 1), lean);
  EXPECT_EQ(get(CircuitForm::automatic, 20000), lean);
  EXPECT_EQ(count, 4);
  EXPECT_LT(lean->plan.rotations(), fast->plan.rotations());
  EXPECT_GT(lean->plan.depth(), fast->plan.depth());
  cache.get(key_of(15), CircuitForm::lean, 1, 132, adder(15, count));
  EXPECT_EQ(count, 5);  // another key
}

TEST(TfheCircuitCache, StaysBounded) {
  std::atomic<int> count = 0;
  CircuitCache all;
  all.get(key_of(32), CircuitForm::fast, 1, 132, adder(32, count));
  const u64 each = all.bytes();
  EXPECT_GT(each, 10000u);
  CircuitCache cache(5 * each);
  const auto get = [&](u64 i) {
    return cache.get(ContentKey("adder").add(i), CircuitForm::fast, 1, 132, adder(32, count));
  };
  const auto first = get(0);
  for (u64 i = 1; i < 40; ++i) {
    get(i);
    EXPECT_EQ(get(0), first);  // in use all the time
    EXPECT_LE(cache.bytes(), 5 * each);
  }
  EXPECT_GT(cache.bytes(), 3 * each);
  count = 0;
  get(39);
  EXPECT_EQ(count, 0);
  get(1);  // had to go
  EXPECT_EQ(count, 1);
  CircuitCache none(each / 2);  // served, not kept
  EXPECT_EQ(none.get(key_of(32), CircuitForm::fast, 1, 132, adder(32, count))->plan.depth(),
            first->plan.depth());
  EXPECT_EQ(none.bytes(), 0u);
}

class TfheCircuitCacheInUse : public testing::Test {
 protected:
  // Asks for some circuit; was it that one?
  bool check(u64 i) {
    const u32 blocks = 4 + static_cast<u32>(i % 8) * 4;
    const auto program =
        cache_.get(key_of(blocks), i % 3 == 0 ? CircuitForm::automatic : CircuitForm::lean,
                   1 + i % 5 * 1000, 4, adder(blocks, count_));
    return program->outputs.size() == blocks && program->circuit.input_count() == 2 * blocks;
  }
  // While threads do nothing else.
  template <class Work>
  void while_threads_ask(const Work& work) {
    std::atomic<bool> stop = false, right = true;
    std::vector<std::thread> threads;
    for (u64 t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        for (u64 i = 0; !stop; ++i)
          if (!check(t + i)) right = false;
      });
    work();
    stop = true;
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(right);
    EXPECT_LE(cache_.bytes(), kMost);
  }

  static constexpr u64 kMost = 400000;  // room for some of what is asked for
  CircuitCache cache_{kMost};
  std::atomic<int> count_ = 0;
};

TEST_F(TfheCircuitCacheInUse, Threads) {
  while_threads_ask([&] {
    for (u64 i = 0; i < 48; ++i) EXPECT_TRUE(check(i)) << i;
  });
}

TEST_F(TfheCircuitCacheInUse, Forks) {
  while_threads_ask([&] {
    for (int fork = 0; fork < 10; ++fork)
      EXPECT_EQ(test::in_child([&] {
                  for (u64 i = 0; i < 16; ++i)
                    if (!check(i)) return false;
                  return true;
                }),
                "");
  });
}

// Operations with operands of one shape, in turns: none is taken for another.
class TfheKeptCircuits : public test::IntegerTest {
 protected:
  test::TfheWorld& toy() override { return world(name_); }
  const char* name_ = "toy-lut4";
  void tell_apart();
};

void TfheKeptCircuits::tell_apart() {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  constexpr u32 kBits = 4;
  const u64 mask = test::width_mask(kBits);
  Pair in;
  for (int i = 0; i < 3; ++i) in.a.push_back(rng() & mask), in.b.push_back(1 + rng() % mask);
  const Integers a = encrypt(in.a, kBits, false), b = encrypt(in.b, kBits, false);
  const Integers c = encrypt(in.a, kBits, true);
  const auto signed_of = [](u64 x) { return test::as_signed(x, kBits); };
  const u64 known = 1 + rng() % 7;
  std::vector<u64> kept;
  for (int turn = 0; turn < 2; ++turn) {
    expect(ev.add(a, b), in, [](u64 x, u64 y) { return x + y; });
    expect(ev.sub(a, b), in, [](u64 x, u64 y) { return x - y; });
    expect(ev.min(a, b), in, [](u64 x, u64 y) { return std::min(x, y); });
    expect(ev.max(a, b), in, [](u64 x, u64 y) { return std::max(x, y); });
    expect(ev.bit_and(a, b), in, [](u64 x, u64 y) { return x & y; });
    expect(ev.bit_or(a, b), in, [](u64 x, u64 y) { return x | y; });
    expect(ev.bit_xor(a, b), in, [](u64 x, u64 y) { return x ^ y; });
    expect(ev.div(a, b), in, [](u64 x, u64 y) { return x / y; });
    expect(ev.rem(a, b), in, [](u64 x, u64 y) { return x % y; });
    for (const u64 value : {known, known + 1}) {
      expect(ev.add(a, value), in, [=](u64 x, u64) { return x + value; });
      expect(ev.sub(value, a), in, [=](u64 x, u64) { return value - x; });
      expect(ev.mul(a, value), in, [=](u64 x, u64) { return x * value; });
    }
    for (const Comparison comparison : test::kComparisons) {
      expect_flags(ev.compare(comparison, a, b), in,
                   [=](u64 x, u64 y) { return test::holds(comparison, x, y); });
    }
    for (const u32 count : {1u, 2u, 3u}) {
      expect(ev.shift_left(a, count), in, [=](u64 x, u64) { return x << count; });
      expect(ev.shift_right(a, count), in, [=](u64 x, u64) { return x >> count; });
      expect(ev.shift_right(c, count), in,
             [=](u64 x, u64) { return static_cast<u64>(signed_of(x) >> count); });
      expect(ev.rotate_left(a, count), in,
             [=](u64 x, u64) { return x << count | x >> (kBits - count); });
    }
    for (const bool floored : {true, false})
      expect(ev.div(c, 3, floored), in, [=](u64 x, u64) {
        const i64 v = signed_of(x), towards = v / 3;
        return static_cast<u64>(floored && v % 3 < 0 ? towards - 1 : towards);
      });
    for (const u64 more : {0, 1}) {
      const std::vector<u64> table{3 + more, 0, 2, 1, 3, 1, 0, 2, 1, 1, 2, 2, 0, 0, 3, 3};
      expect(ev.look_up(a, table, kBits, false), in, [&](u64 x, u64) { return table[x]; });
    }
    expect(ev.convert(c, 6, true), in, [=](u64 x, u64) { return static_cast<u64>(signed_of(x)); });
    expect(ev.convert(a, 6, false), in, [](u64 x, u64) { return x; });
    kept.push_back(toy().context.state().circuits->bytes());
  }
  EXPECT_EQ(kept[0], kept[1]);  // the second time nothing was composed
}

TEST_P(TfheKeptCircuits, TellOperationsApart) {
  for (const char* name :
       {"toy-lut4", "toy-lut4g4:norm88"}) {  // rounds of several calls, and of one
    name_ = name;
    tell_apart();
  }
}

// A flag that comes from one call with blocks of integers is a bit all the same.
TEST_P(TfheKeptCircuits, FlagsBesideBlocksAreBits) {
  const IntegerEvaluator ev = integers();
  const Pair in{{200, 3, 255}, {100, 4, 1}};
  const Integers a = encrypt(in.a, 8, false), b = encrypt(in.b, 8, false);
  const IntegerEvaluator::Checked checked = ev.add_overflow(a, b);
  EXPECT_EQ(checked.second.bound(), 2u);
  for (const Ciphertext& block : checked.first.blocks()) EXPECT_EQ(block.bound(), 4u);
  expect(ev.select(checked.second, a, checked.first), in,
         [](u64 x, u64 y) { return x + y > 255 ? x : x + y; });
}

CRENEL_SUITE_OVER(TfheKeptCircuits, test::candidate_devices());

}  // namespace
}  // namespace crenel::tfhe
