// Sparse-secret encapsulation: what decrypts, how noisy it is, the same words everywhere, and the
// refusals.
#include "rlwe/encapsulation.h"

#include <gtest/gtest.h>

#include "crenel/ckks/client.h"
#include "fuzz/wire_params.h"
#include "random/samplers.h"
#include "support/encapsulation_world.h"

namespace crenel::test {
namespace {

/// Exceeded by one of 2^13 normal numbers with probability 2^-40.
constexpr double kSigmas = 8.5;

class Encapsulation : public DeviceTest {};
CRENEL_DEVICE_SUITE(Encapsulation);
class EncapsulationBits : public DeviceTest {};
CRENEL_CANDIDATE_SUITE(EncapsulationBits);

/// Uniform below q0 / 64: a message ratio of 6 bits.
std::vector<i64> random_message(Rng& rng, i64 q0, u64 count) {
  std::uniform_int_distribution<i64> u(-q0 / 64, q0 / 64);
  std::vector<i64> message(count);
  for (auto& m : message) m = u(rng);
  return message;
}

/// The ephemeral secret, out of the key that carries P s_sparse under s.
std::vector<i8> sparse_secret(const EncapsulationWorld& w) {
  const rlwe::Poly carried = w.secret.decrypt(w.keys.sparse_to_dense.pairs.view());
  const std::vector<u32> words = words_of(carried);
  const u64 p = w.ring.special_mod(0), q = w.ring.modulus(0).q;
  std::vector<i8> coefficients(w.ring_dim());
  const auto near = [q](u64 a, u64 b) { return std::min((a + q - b) % q, (b + q - a) % q) <= 21; };
  for (u64 i = 0; i < w.ring_dim(); ++i) {
    coefficients[i] = near(words[i], p) ? 1 : near(words[i], q - p) ? -1 : 0;
    EXPECT_TRUE(coefficients[i] != 0 || near(words[i], 0)) << i;
  }
  return coefficients;
}

/// Error of to_sparse: the ciphertext's own, the digit's and the division's.
double sparse_std(const EncapsulationWorld& w) {
  const auto small = rlwe::encapsulation_limbs(w.ring);
  const u32 base = w.ring.window(0).size();
  double log_ratio = 0;  // log2(q0 / P')
  for (u32 i = 0; i < small.size(); ++i)
    log_ratio += (i < base ? 1 : -1) * std::log2(w.ring.modulus(small[i]).q);
  const double digit = static_cast<double>(w.ring_dim()) * kErrorVariance * base / 12.0;
  return std::sqrt(kErrorVariance + digit * std::exp2(2 * log_ratio) + (1 + w.keys.weight) / 12.0);
}

/// Error that raise adds: rounding of a division under a dense secret of h = N/2.
double raised_std(const EncapsulationWorld& w) {
  const double rounding = (1.0 + static_cast<double>(w.ring_dim()) / 2) / 12.0;
  return std::sqrt(sparse_std(w) * sparse_std(w) + rounding);
}

TEST_P(Encapsulation, ToSparseKeepsTheMessageUnderASecretOfWeight32) {
  for (const char* name : boot_toys()) {
    SCOPED_TRACE(name);
    EncapsulationWorld w(GetParam(), name);
    const auto coefficients = sparse_secret(w);
    u32 weight = 0;
    for (i8 c : coefficients) weight += c != 0;
    EXPECT_EQ(weight, 32u);
    const rlwe::SecretKey sparse(w.context.state().ring, fixed_source(2), coefficients);
    Rng rng = test_rng();
    const auto message = random_message(rng, w.base_modulus(), w.ring_dim());
    const rlwe::Poly ct = w.encapsulation.to_sparse(w.stream(), w.encrypt(message).view(),
                                                    w.keys.dense_to_sparse.view());
    EXPECT_EQ(ct.limbs(), w.ring.window(0));
    const std::vector<u32> found = words_of(sparse.decrypt(ct.view()));
    const i64 bound = static_cast<i64>(kSigmas * sparse_std(w));
    i64 largest = 0;
    double square = 0;
    for (u64 i = 0; i < message.size(); ++i) {
      const i64 q = w.ring.modulus(w.ring.window(0)[0]).q;  // errors are far below one prime
      i64 e = ((static_cast<i64>(found[i]) - message[i]) % q + q) % q;
      if (e > q / 2) e -= q;
      largest = std::max(largest, std::abs(e));
      square += static_cast<double>(e * e);
    }
    EXPECT_LE(largest, bound);
    const double std = std::sqrt(square / static_cast<double>(message.size()));
    EXPECT_NEAR(std / sparse_std(w), 1.0, 0.1) << "the noise formula is off";
  }
}

TEST_P(Encapsulation, RaisedMessageIsTheMessageAndFewMultiplesOfTheBase) {
  for (const char* name : boot_toys()) {
    EncapsulationWorld w(GetParam(), name);
    const i64 q0 = w.base_modulus();
    Rng rng = test_rng();
    const auto message = random_message(rng, q0, w.ring_dim());
    const rlwe::Poly sparse = w.encapsulation.to_sparse(w.stream(), w.encrypt(message).view(),
                                                        w.keys.dense_to_sparse.view());
    // The top; a level whose window ends before the chain does; one of few limbs.
    for (const u32 level : {w.top(), w.context.params().normal_top_level(), 3u}) {
      SCOPED_TRACE(cat(name, " level ", level));
      const rlwe::Poly raised =
          w.encapsulation.raise(w.stream(), sparse.view(), w.keys.sparse_to_dense.view(), level);
      EXPECT_EQ(raised.limbs(), w.ring.window(level));
      const auto t = integers_of(w.ring, w.secret.decrypt(raised.view()));
      i64 most = 0, largest = 0;
      u64 nonzero = 0;
      for (u64 i = 0; i < message.size(); ++i) {
        const i128 rest = t[i] - message[i];
        const i64 multiple = static_cast<i64>((rest + (rest < 0 ? -q0 / 2 : q0 / 2)) / q0);
        most = std::max(most, std::abs(multiple));
        nonzero += multiple != 0;
        largest = std::max(largest, std::abs(static_cast<i64>(rest - i128(multiple) * q0)));
      }
      EXPECT_LT(most, 16);
      EXPECT_GT(nonzero, w.ring_dim() / 2) << "a standard deviation of 1.6 was expected";
      EXPECT_LE(static_cast<double>(largest), kSigmas * raised_std(w));
    }
  }
}

TEST_P(Encapsulation, BatchEntriesAreIndependent) {
  EncapsulationWorld w(GetParam(), "toy-boot40");
  Rng rng = test_rng();
  const rlwe::Poly both = w.encrypt(random_message(rng, w.base_modulus(), 2 * w.ring_dim()), 2);
  const rlwe::Poly sparse =
      w.encapsulation.to_sparse(w.stream(), both.view(), w.keys.dense_to_sparse.view());
  const rlwe::Poly raised =
      w.encapsulation.raise(w.stream(), sparse.view(), w.keys.sparse_to_dense.view(), w.top());
  const auto entry = [](const rlwe::Poly& poly, u32 b) {
    rlwe::ConstView v = poly.view();
    v.data += b * v.batch_stride;
    v.shape.batch = 1;
    return v;
  };
  const auto sparse_words = words_of(sparse), raised_words = words_of(raised);
  for (u32 b = 0; b < 2; ++b) {
    const rlwe::Poly one =
        w.encapsulation.to_sparse(w.stream(), entry(both, b), w.keys.dense_to_sparse.view());
    const rlwe::Poly up =
        w.encapsulation.raise(w.stream(), entry(sparse, b), w.keys.sparse_to_dense.view(), w.top());
    const auto s = words_of(one), r = words_of(up);
    EXPECT_TRUE(
        std::equal(s.begin(), s.end(), sparse_words.begin() + static_cast<i64>(b * s.size())));
    EXPECT_TRUE(
        std::equal(r.begin(), r.end(), raised_words.begin() + static_cast<i64>(b * r.size())));
  }
}

TEST_P(EncapsulationBits, EqualRefInKeysAndResults) {
  for (const char* name : boot_toys()) {
    SCOPED_TRACE(name);
    EncapsulationWorld candidate(GetParam(), name), ref("ref", name);
    EXPECT_EQ(words_of(candidate.keys.dense_to_sparse.pairs),
              words_of(ref.keys.dense_to_sparse.pairs));
    EXPECT_EQ(words_of(candidate.keys.sparse_to_dense.pairs),
              words_of(ref.keys.sparse_to_dense.pairs));
    Rng rng = test_rng();
    const auto message = random_message(rng, ref.base_modulus(), ref.ring_dim());
    const auto run = [&](EncapsulationWorld& w) {
      const rlwe::Poly sparse = w.encapsulation.to_sparse(w.stream(), w.encrypt(message).view(),
                                                          w.keys.dense_to_sparse.view());
      auto words = words_of(sparse);
      for (const u32 level : {w.top(), w.context.params().normal_top_level()}) {
        const auto more = words_of(
            w.encapsulation.raise(w.stream(), sparse.view(), w.keys.sparse_to_dense.view(), level));
        words.insert(words.end(), more.begin(), more.end());
      }
      return words;
    };
    EXPECT_EQ(run(candidate), run(ref));
  }
}

TEST(EncapsulationKeys, BothAreSamplesWithTheWholeError) {
  EncapsulationWorld w("cpu", "toy-boot40");
  const rlwe::SecretKey sparse(w.context.state().ring, fixed_source(2), sparse_secret(w));
  const auto& [to_sparse, to_dense, turned, weight] = w.keys;
  // P' and P are zero modulo their own primes: there the error is all that is left.
  const auto errors = [&](const rlwe::SecretKey& under, const rlwe::SwitchKey& key) {
    const auto special = key.pairs.limbs().minus(rns::LimbSet::range(0, w.ring.special()[0]));
    return integers_of(w.ring, under.decrypt(key.pairs.view().restrict_to(special)));
  };
  for (const auto& e : {errors(sparse, to_sparse), errors(w.secret, to_dense)}) {
    double square = 0;
    for (const i128 x : e) {
      EXPECT_LE(std::abs(static_cast<i64>(x)), i64(random::kErrorPairs));
      square += static_cast<double>(x * x);
    }
    EXPECT_NEAR(square / static_cast<double>(e.size()) / kErrorVariance, 1.0, 0.2);
  }
}

TEST(EncapsulationKeys, EachKeyHasItsOwnSecretAndSeeds) {
  EncapsulationWorld w("cpu", "toy-boot40");
  const auto first = sparse_secret(w);
  const auto seed = w.keys.dense_to_sparse.seed;
  EXPECT_NE(seed, w.keys.sparse_to_dense.seed);
  w.keys = w.secret.make_encapsulation_keys(rlwe::kEncapsulationWeight);
  EXPECT_NE(sparse_secret(w), first);
  EXPECT_NE(w.keys.dense_to_sparse.seed, seed);
  // The key under the sparse secret has q0 P' and nothing more.
  EXPECT_EQ(w.keys.dense_to_sparse.pairs.limbs().size(), 4u);
}

ckks::KeyRequest encapsulation_only() {
  ckks::KeyRequest request;
  request.relinearisation = false;
  request.encapsulation = true;
  return request;
}

TEST(EncapsulationKeys, ClientMakesThemOnRequest) {
  const auto params = ckks::Params::preset("toy-boot40", true);
  const ckks::Context context(params, "cpu");
  auto client = context.keygen();
  const auto without = client.evaluation_keys();
  EXPECT_FALSE(without.has_encapsulation());
  const auto keys = client.evaluation_keys(encapsulation_only());
  EXPECT_TRUE(keys.has_encapsulation());
  EXPECT_FALSE(keys.has_relinearisation());
  EXPECT_FALSE(ckks::EvaluationKeys().has_encapsulation());
  const u64 limbs = 4 + params.primes().size();
  EXPECT_EQ(keys.bytes(), 2 * limbs * params.ring_dim() * sizeof(u32));
  EXPECT_EQ(keys.wire_bytes(), keys.bytes() / 2 + 2 * sizeof(random::Seed));
}

TEST(EncapsulationKeys, TooLargeAModulusUnderTheSparseSecretIsRefused) {
  // Secure under its dense secret; but q0 P' of 112 bits is more than weight 32 bears at N = 2^14.
  const auto params = ckks::Params::preset("leveled-n14-s40");
  ASSERT_FALSE(params.insecure());
  auto client = ckks::Context(params, "cpu").keygen();
  const auto error =
      expect_error<ParameterError>([&] { client.evaluation_keys(encapsulation_only()); });
  const double bound = *ckks::max_log_pq(14, 128, 32);
  EXPECT_EQ(error.field("bound"), cat(bound));
  EXPECT_GT(std::stod(error.field("log_modulus")), bound);
  EXPECT_NE(std::string(error.what()).find(error.field("log_modulus")), std::string::npos);
  EXPECT_NE(std::string(error.what()).find(cat("at most ", bound)), std::string::npos);
  EXPECT_EQ(error.field("hamming_weight"), "32");
  // One ring larger the bound is 164 bits.
  auto larger = ckks::Context(ckks::Params::preset("leveled-n15-s40"), "cpu").keygen();
  EXPECT_TRUE(larger.evaluation_keys(encapsulation_only()).has_encapsulation());
}

TEST(EncapsulationKeys, EveryBootstrappingSetIsWithinTheBound) {
  for (const auto& name : ckks::Params::preset_names()) {
    if (!name.starts_with("boot")) continue;
    SCOPED_TRACE(name);
    const auto params = ckks::Params::preset(name);
    double log_modulus = params.log_q(0);
    for (u32 k = 0; k < 2; ++k)
      log_modulus += std::log2(static_cast<double>(params.primes()[params.chain_limbs() + k]));
    EXPECT_LT(log_modulus, *ckks::max_log_pq(params.log_n(), 128, rlwe::kEncapsulationWeight) / 2);
  }
}

TEST(EncapsulationKeys, ParametersWithoutTwoSpecialPrimesAreRefused) {
  auto client = wire_context().keygen();
  const auto error =
      expect_error<UnsupportedError>([&] { client.evaluation_keys(encapsulation_only()); });
  EXPECT_EQ(error.field("special_primes"), "1");
  EXPECT_FALSE(rlwe::supports_encapsulation(*wire_context().state().ring));
}

}  // namespace
}  // namespace crenel::test
