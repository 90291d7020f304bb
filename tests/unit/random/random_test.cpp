// ChaCha20 against RFC 8439 (and libsodium where installed), sampler distributions, nonces.
#include "support/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>
#include <thread>

#include "crenel/core/error.h"
#include "random/samplers.h"
#include "random/sparse.h"
#include "support/seeds.h"

#if __has_include(<sodium.h>) && defined(CRENEL_HAS_SODIUM)
#include <sodium.h>
#define CRENEL_TEST_SODIUM 1
#endif

namespace crenel::random {
namespace {

using test::random_seed;
using test::Rng;
using test::test_rng;

Seed counting_seed() {
  Seed seed;
  std::iota(seed.begin(), seed.end(), u8(0));
  return seed;
}

// The RFC writes nonces as bytes; ours are three little-endian words.
ChaChaState state_of(const Seed& key, u32 n0, u32 n1, u32 n2) {
  ChaChaState s = chacha20_state(key, {Purpose::test, 0});
  s.nonce[0] = n0, s.nonce[1] = n1, s.nonce[2] = n2;
  return s;
}

void expect_words(const ChaChaBlock& block, const std::array<u32, 16>& expected) {
  for (int i = 0; i < 16; ++i) EXPECT_EQ(block.word[i], expected[i]) << "word " << i;
}

TEST(ChaCha20, QuarterRoundOfRfc8439Section2_1_1) {
  u32 a = 0x11111111, b = 0x01020304, c = 0x9b8d6f43, d = 0x01234567;
  quarter_round(a, b, c, d);
  EXPECT_EQ(a, 0xea2a92f4u);
  EXPECT_EQ(b, 0xcb1cf8ceu);
  EXPECT_EQ(c, 0x4581472eu);
  EXPECT_EQ(d, 0x5881c4bbu);
}

TEST(ChaCha20, BlockOfRfc8439Section2_3_2) {
  expect_words(chacha20_block(state_of(counting_seed(), 0x09000000, 0x4a000000, 0), 1),
               {0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3, 0xc7f4d1c7, 0x0368c033, 0x9aaa2204,
                0x4e6cd4c3, 0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9, 0xd19c12b5, 0xb94e16de,
                0xe883d0cb, 0x4e3c50a2});
}

// RFC 8439 appendix A.1, test vectors 1 to 5.
TEST(ChaCha20, BlocksOfRfc8439AppendixA1) {
  const Seed zero{};
  expect_words(chacha20_block(state_of(zero, 0, 0, 0), 0),
               {0xade0b876, 0x903df1a0, 0xe56a5d40, 0x28bd8653, 0xb819d2bd, 0x1aed8da0, 0xccef36a8,
                0xc70d778b, 0x7c5941da, 0x8d485751, 0x3fe02477, 0x374ad8b8, 0xf4b8436a, 0x1ca11815,
                0x69b687c3, 0x8665eeb2});
  expect_words(chacha20_block(state_of(zero, 0, 0, 0), 1),
               {0xbee7079f, 0x7a385155, 0x7c97ba98, 0x0d082d73, 0xa0290fcb, 0x6965e348, 0x3e53c612,
                0xed7aee32, 0x7621b729, 0x434ee69c, 0xb03371d5, 0xd539d874, 0x281fed31, 0x45fb0a51,
                0x1f0ae1ac, 0x6f4d794b});
  Seed last_one{};
  last_one[31] = 1;
  expect_words(chacha20_block(state_of(last_one, 0, 0, 0), 1),
               {0x2452eb3a, 0x9249f8ec, 0x8d829d9b, 0xddd4ceb1, 0xe8252083, 0x60818b01, 0xf38422b8,
                0x5aaa49c9, 0xbb00ca8e, 0xda3ba7b4, 0xc4b592d1, 0xfdf2732f, 0x4436274e, 0x2561b3c8,
                0xebdd4aa6, 0xa0136c00});
  Seed second_ff{};
  second_ff[1] = 0xff;
  expect_words(chacha20_block(state_of(second_ff, 0, 0, 0), 2),
               {0xfb4dd572, 0x4bc42ef1, 0xdf922636, 0x327f1394, 0xa78dea8f, 0x5e269039, 0xa1bebbc1,
                0xcaf09aae, 0xa25ab213, 0x48a6b46c, 0x1b9d9bcb, 0x092c5be6, 0x546ca624, 0x1bec45d5,
                0x87f47473, 0x96f0992e});
  expect_words(chacha20_block(state_of(zero, 0, 0, 0x02000000), 0),
               {0x374dc6c2, 0x3736d58c, 0xb904e24a, 0xcd3f93ef, 0x88228b1a, 0x96a4dfb3, 0x5b76ab72,
                0xc727ee54, 0x0e0e978a, 0xf3145c95, 0x1b748ea8, 0xf786c297, 0x99c28f5f, 0x628314e8,
                0x398a19fa, 0x6ded1b53});
}

TEST(ChaCha20, KeystreamOfLibsodium) {
#if defined(CRENEL_TEST_SODIUM)
  Rng rng = test_rng();
  for (int round = 0; round < 20; ++round) {
    const Seed seed = random_seed(rng);
    const Nonce nonce{Purpose::error, rng()};
    const u32 first = static_cast<u32>(rng()) >> 1;
    const ChaChaState state = chacha20_state(seed, nonce);
    std::array<u8, 12> nonce_bytes;
    for (int i = 0; i < 12; ++i)
      nonce_bytes[i] = static_cast<u8>(state.nonce[i / 4] >> (8 * (i % 4)));
    std::vector<u8> stream(64 * 5, 0), zeros(64 * 5, 0);
    crypto_stream_chacha20_ietf_xor_ic(stream.data(), zeros.data(), zeros.size(),
                                       nonce_bytes.data(), first, seed.data());
    for (u32 b = 0; b < 5; ++b) {
      const ChaChaBlock block = chacha20_block(state, first + b);
      for (u32 i = 0; i < 64; ++i)
        ASSERT_EQ(static_cast<u8>(block.word[i / 4] >> (8 * (i % 4))), stream[64 * b + i]);
    }
  }
#else
  GTEST_SKIP() << "libsodium headers not found when this was built";
#endif
}

TEST(Seeds, NonceWords) {
  const auto s = chacha20_state(counting_seed(), {Purpose::flooding, 0x0123456789abcdefull});
  EXPECT_EQ(s.key[0], 0x03020100u);
  EXPECT_EQ(s.key[7], 0x1f1e1d1cu);
  EXPECT_EQ(s.nonce[0], 5u);
  EXPECT_EQ(s.nonce[1], 0x89abcdefu);
  EXPECT_EQ(s.nonce[2], 0x01234567u);
}

TEST(Seeds, OperatingSystem) {
  const Seed a = seed_from_os(), b = seed_from_os();
  EXPECT_NE(a, b);
  EXPECT_NE(a, Seed{});
}

TEST(Seeds, NoncesNeverRepeatAcrossThreads) {
  SecretSource source(counting_seed());
  std::vector<std::vector<u64>> seen(4);
  std::vector<std::thread> threads;
  for (auto& mine : seen)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i)
        mine.push_back(source.next(i % 2 ? Purpose::error : Purpose::uniform).serial);
    });
  for (auto& t : threads) t.join();
  std::set<u64> all;
  for (const auto& mine : seen) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 8000u);
}

TEST(Seeds, DerivedSeeds) {
  SecretSource a(counting_seed()), b(counting_seed());
  const Seed first = a.derive_seed(), second = a.derive_seed();
  EXPECT_NE(first, second);
  EXPECT_NE(first, counting_seed());
  EXPECT_EQ(first, b.derive_seed()) << "a function of the seed and the counter";
}

TEST(Seeds, MovedFromSourceHasNoSeed) {
  SecretSource a(counting_seed());
  a.next(Purpose::error);
  SecretSource b(std::move(a));
  EXPECT_THROW(a.seed(), StateError);  // NOLINT: what is left is the point
  EXPECT_THROW(a.next(Purpose::error), StateError);
  EXPECT_EQ(b.seed(), counting_seed());
  EXPECT_EQ(b.next(Purpose::error).serial, 1u);
}

TEST(Seeds, SecureZero) {
  std::array<u8, 77> bytes;
  bytes.fill(0xee);
  secure_zero(bytes.data() + 1, 75);
  EXPECT_EQ(bytes[0], 0xee);
  EXPECT_EQ(bytes[76], 0xee);
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 0), 75);
}

TEST(Samplers, CountOnes) {
  Rng rng = test_rng();
  for (int i = 0; i < 10000; ++i) {
    const u32 x = static_cast<u32>(rng()) & static_cast<u32>(rng());
    ASSERT_EQ(count_ones(x), static_cast<u32>(__builtin_popcount(x)));
  }
  EXPECT_EQ(count_ones(~0u), 32u);
  EXPECT_EQ(count_ones(0), 0u);
}

TEST(Samplers, SmallResidue) {
  for (i32 x = -21; x <= 21; ++x)
    EXPECT_EQ(small_residue(x, 786433), static_cast<u32>(x < 0 ? 786433 + x : x));
}

TEST(Samplers, UniformAgainstLongDivision) {
  Rng rng = test_rng();
  for (const u32 q : {2147352577u, 1073872897u, 31326209u, 786433u}) {
    const math::Modulus<u32> m(q);
    for (int i = 0; i < 2000; ++i) {
      ChaChaBlock block;
      for (auto& w : block.word) w = i == 0 ? ~0u : static_cast<u32>(rng());
      for (u32 k = 0; k < 4; ++k) {
        u128 x = 0;
        for (u32 w = 4; w-- > 0;) x = x << 32 | block.word[4 * k + w];
        ASSERT_EQ(uniform_residue(block, k, m), static_cast<u32>(x % q));
      }
    }
  }
}

// Mean and second moments within six standard deviations of their estimators: 2^-29 each.
template <class F>
void expect_moments(F value, u32 per_block, double variance, double fourth, i32 bound) {
  Rng rng = test_rng();
  const ChaChaState state = chacha20_state(random_seed(rng), {Purpose::test, 0});
  const u32 count = 1u << 18;
  double sum = 0, squares = 0, neighbours = 0, previous = 0;
  for (u32 i = 0; i < count; ++i) {
    const i32 x = value(chacha20_block(state, i / per_block), i % per_block);
    ASSERT_LE(std::abs(x), bound);
    sum += x;
    squares += double(x) * x;
    neighbours += x * previous;
    previous = x;
  }
  EXPECT_LT(std::abs(sum / count), 6 * std::sqrt(variance / count));
  EXPECT_LT(std::abs(squares / count - variance),
            6 * std::sqrt((fourth - variance * variance) / count));
  EXPECT_LT(std::abs(neighbours / count), 6 * variance / std::sqrt(count))
      << "neighbours correlate";
}

TEST(Samplers, TernaryMoments) { expect_moments(ternary_value, kTernaryPerBlock, 0.5, 0.5, 1); }

TEST(Samplers, ErrorMoments) {
  // Sum of 42 signed coins of variance 1/4: variance v = 10.5, fourth moment 3 v^2 - v/2.
  expect_moments(error_value, kErrorPerBlock, 10.5, 3 * 10.5 * 10.5 - 10.5 / 2, 21);
}

TEST(SparseTernary, WeightAndSigns) {
  Rng rng = test_rng();
  SecretSource source(random_seed(rng));
  for (const auto& [n, weight] :
       {std::pair<u32, u32>{1024, 32}, {4096, 192}, {64, 64}, {16, 0}, {1, 1}, {8192, 5461}}) {
    const auto s = sample_sparse_ternary(source, n, weight);
    ASSERT_EQ(s.size(), n);
    u32 nonzero = 0;
    for (const i8 x : s) {
      ASSERT_LE(std::abs(x), 1);
      nonzero += x != 0;
    }
    EXPECT_EQ(nonzero, weight);
  }
  EXPECT_THROW(sample_sparse_ternary(source, 48, 3), ParameterError);
  EXPECT_THROW(sample_sparse_ternary(source, 16, 17), ParameterError);
}

TEST(SparseTernary, PositionsAndSignsAreUniform) {
  Rng rng = test_rng();
  SecretSource source(random_seed(rng));
  const u32 n = 64, weight = 8, rounds = 20000;
  std::vector<double> hits(n, 0), signs(n, 0);
  double adjacent = 0;
  for (u32 r = 0; r < rounds; ++r) {
    const auto s = sample_sparse_ternary(source, n, weight);
    for (u32 i = 0; i < n; ++i) {
      hits[i] += s[i] != 0;
      signs[i] += s[i];
      adjacent += i > 0 && s[i] != 0 && s[i - 1] != 0;
    }
  }
  // Chi-square over positions, 63 degrees of freedom, and over signs, 64. Its tail is heavier than
  // a Gaussian's: 5 deviations above the mean happen once in 40000 runs, 8 once in 2^29.
  const double p = double(weight) / n, expected = rounds * p;
  double chi = 0, chi_signs = 0;
  for (u32 i = 0; i < n; ++i) {
    chi += (hits[i] - expected) * (hits[i] - expected) / (expected * (1 - p));
    chi_signs += signs[i] * signs[i] / expected;
  }
  chi *= double(n - 1) / n;
  EXPECT_LT(chi, 63 + 8 * std::sqrt(126.0));
  EXPECT_LT(chi_signs, 64 + 8 * std::sqrt(128.0));
  const double pairs = rounds * 63.0 * (p * (weight - 1) / (n - 1));
  EXPECT_LT(std::abs(adjacent - pairs), 6 * std::sqrt(pairs)) << "neighbouring positions";
}

}  // namespace
}  // namespace crenel::random
