// Results for others. The attack first: one exact decryption of a fresh ciphertext is the secret
// key; a share is not.
#include "ckks/share.h"

#include "ckks/norms.h"
#include "ckks/objects.h"
#include "crenel/ckks/error_model.h"
#include "crenel/ckks/serialize.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::expect_error;
using test::Values;

/// Toys of N = 2^11 at scale 2^50: there is room for the noise.
constexpr Sharing kOnce{30, 1};

class CkksShare : public test::SchemeTest {
 protected:
  test::World& w() { return world("s50"); }
  ErrorModel model() { return ErrorModel(w().params()); }
};

/// Li and Micciancio (LM21): c0 + c1 s is the decryption, so its encoding gives s by division,
/// modulo a prime where c1 has no zero. -1, 0, 1 of the key, other numbers where it is none.
std::vector<i64> recover_key(const Context& context, const Ciphertext& c, const Values& decrypted) {
  const auto& ring = *context.state().ring;
  auto& stream = context.stream();
  const Plaintext m = context.encode(decrypted, c.level(), c.scale(), c.slots());
  const rlwe::Poly &mp = m.data().poly, &cp = c.data().poly;
  const u64 n = ring.ring_dim();
  std::vector<u32> message(mp.words()), pair(cp.words());
  stream.copy_out(message.data(), mp.data(), mp.bytes());
  stream.copy_out(pair.data(), cp.data(), cp.bytes());
  const u32 limbs = mp.limbs().size();
  std::vector<u32> s(mp.words(), 0);
  for (u32 limb = 0; limb < limbs; ++limb) {
    const u64 q = ring.modulus(mp.limbs()[limb]).q;
    const auto power = [&](u64 x, u64 e) {
      u64 r = 1;
      for (; e; e >>= 1, x = x * x % q)
        if (e & 1) r = r * x % q;
      return r;
    };
    for (u64 i = 0; i < n; ++i) {
      const u64 c0 = pair[limb * n + i], c1 = pair[(limbs + limb) * n + i];
      s[limb * n + i] =
          static_cast<u32>((message[limb * n + i] + q - c0) % q * power(c1, q - 2) % q);
    }
  }
  rlwe::Poly key(stream, mp.shape(), mp.limbs(), ring::Domain::eval);
  stream.copy_in(key.data(), s.data(), key.bytes());
  ring.kernels().intt(stream, key.view_as(ring::Domain::coeff), key.view());
  stream.copy_out(s.data(), key.data(), key.bytes());
  std::vector<i64> out(n);
  const u64 q = ring.modulus(mp.limbs()[0]).q;
  for (u64 i = 0; i < n; ++i)
    out[i] = s[i] > q / 2 ? static_cast<i64>(s[i]) - static_cast<i64>(q) : s[i];
  return out;
}

u64 agreements(const Client& client, const std::vector<i64>& found) {
  const auto key = client.state().secret.export_coefficients();
  u64 count = 0;
  for (u64 i = 0; i < key.size(); ++i) count += found[i] == key[i];
  return count;
}

TEST_P(CkksShare, OneExactDecryptionIsTheKeyAndAShareIsNot) {
  // At scale 2^40 doubles hold the integers m + e exactly; 16 bits of 2^40 remain of the share
  // below.
  auto& toy = world("s40");
  const Context& context = toy.context;
  Client victim = context.keygen();
  auto rng = test::test_rng();
  const Values v = test::random_values(rng, toy.slots());
  const Ciphertext c = victim.encrypt(v, 0u);
  const u64 n = toy.params().ring_dim();
  EXPECT_EQ(agreements(victim, recover_key(context, c, victim.decrypt(c))), n)
      << "the attack is the test: it must work on exact decryptions";
  const ErrorModel model(toy.params());
  const Share share = victim.decrypt_to_share(c, model.input(std::sqrt(2.0), false, 0u), kOnce);
  const auto found = recover_key(context, c, share.values);
  EXPECT_LE(agreements(victim, found), n / 50);
  u64 ternary = 0;
  for (i64 x : found) ternary += x >= -1 && x <= 1;
  EXPECT_LE(ternary, n / 50);
}

TEST_P(CkksShare, AttacksThatAverageFindNothing) {
  // As many shares of one result as the client allows, and their mean. Each has noise of its own:
  // were they merely rounded, they would agree, and the mean would not matter.
  auto& toy = world("s40");
  Client victim = toy.context.keygen();
  const u64 n = toy.params().ring_dim();
  auto rng = test::test_rng();
  const Values v = test::random_values(rng, toy.slots());
  const Ciphertext c = victim.encrypt(v, 0u);
  const ErrorBound bound = ErrorModel(toy.params()).input(std::sqrt(2.0), false, 0u);
  const Sharing sharing{30, 8};
  Values mean(toy.slots()), last;
  for (u64 i = 0; i < sharing.queries; ++i) {
    const Share share = victim.decrypt_to_share(c, bound, sharing);
    u64 equal = 0;
    for (u64 k = 0; k < last.size(); ++k) equal += share.values[k] == last[k];
    EXPECT_LE(equal, mean.size() / 20);
    for (u64 k = 0; k < mean.size(); ++k) mean[k] += share.values[k] / 8.0;
    last = share.values;
  }
  EXPECT_LE(agreements(victim, recover_key(toy.context, c, mean)), n / 50);
}

TEST_P(CkksShare, NoiseIsWhatTheFormulaSays) {
  auto rng = test::test_rng();
  for (u64 slots : {w().slots(), u64(16)}) {
    for (u64 queries : {u64(1), u64(100)}) {
      Client client = w().context.keygen();
      const Ciphertext c = client.encrypt(test::random_values(rng, slots), {}, 0.0, slots);
      const auto exact = client.decrypt(c);
      const ErrorBound bound = model().input(std::sqrt(2.0), false, {}, 0.0, slots);
      double sum = 0.0;
      const int runs = slots > 16 ? 1 : 64;
      for (int i = 0; i < runs; ++i) {
        const Share s = client.decrypt_to_share(c, bound, {30, std::max<u64>(queries, 64)});
        for (u64 k = 0; k < slots; ++k) sum += std::norm(s.values[k] - exact[k]);
        EXPECT_EQ(s.given, static_cast<u64>(i) + 1);
      }
      const double found = std::sqrt(sum / static_cast<double>(runs) / double(slots));
      const double expected = std::sqrt(12.0 * double(std::max<u64>(queries, 64))) * 0x1p15 *
                              bound.rms * std::sqrt(2.0 * double(slots));
      // 1024 complex samples: 6 standard deviations are 9 %; the grid adds 0.3 %.
      EXPECT_NEAR(found / expected, 1.0, 0.13) << slots << " slots, " << queries << " queries";
    }
  }
}

TEST_P(CkksShare, NoiseDoesNotKnowTheError) {
  // Shares of two ciphertexts of one message, of different errors: the distance of their noise from
  // the error itself is that of any other.
  Client client = w().context.keygen();
  auto rng = test::test_rng();
  const Values v = test::random_values(rng, w().slots());
  const Ciphertext c = client.encrypt(v);
  const auto exact = client.decrypt(c);
  const Share s = client.decrypt_to_share(c, model().input(std::sqrt(2.0)), kOnce);
  double cross = 0.0, error = 0.0, noise = 0.0;
  for (u64 k = 0; k < v.size(); ++k) {
    const Complex e = exact[k] - v[k], g = s.values[k] - v[k];
    cross += std::real(std::conj(e) * g), error += std::norm(e), noise += std::norm(g);
  }
  EXPECT_LT(std::abs(cross) / std::sqrt(error * noise), 6.0 / std::sqrt(2.0 * double(v.size())));
  EXPECT_LT(std::sqrt(error / noise), 0x1p-19);  // 2^-15 / sqrt(12 N), and the bound's slack
}

TEST_P(CkksShare, SaysWhatRemains) {
  Client client = w().context.keygen();
  const ErrorBound bound = model().input(1.0, true, 1u);
  const Ciphertext c = client.encrypt(std::vector<double>{0.5, -0.25}, 1u);
  const Share s = client.decrypt_to_share(c, bound, {32, 10});
  EXPECT_TRUE(s.real);
  EXPECT_EQ(s.sharing.statistical_bits, 32u);
  EXPECT_EQ(s.sharing.queries, 10u);
  EXPECT_DOUBLE_EQ(s.error_rms, bound.rms);
  EXPECT_NEAR(s.precision_bits, -std::log2(s.noise_std), 1e-9);
  EXPECT_NEAR(s.bits_lost, 16 + 0.5 * std::log2(120.0) + 0.5 * (w().params().log_n()), 1e-9);
  EXPECT_LE(s.grid, s.noise_std / 4);
  EXPECT_GT(s.grid, s.noise_std / 16);
  for (const Complex& x : s.values) {
    EXPECT_EQ(std::fmod(x.real(), s.grid), 0.0);
    EXPECT_EQ(x.imag(), 0.0);
  }
  EXPECT_NEAR(s.values[0].real(), 0.5, 8 * s.noise_std);
}

TEST_P(CkksShare, RefusesWhereNothingRemains) {
  Client client = w().context.keygen();
  const Ciphertext c = client.encrypt(Values{0.5}, 1u, 0x1p30);
  const ErrorBound bound = model().input(1.0, false, 1u, 0x1p30);
  const auto e = expect_error<ParameterError>([&] { client.decrypt_to_share(c, bound, {64, 1}); });
  for (const char* field : {"message", "error_rms", "noise_std", "precision_bits"})
    EXPECT_NE(e.field(field), "") << field;
  EXPECT_LT(std::stod(e.field("precision_bits")), 1.0);
  EXPECT_EQ(client.share_account().shares, 0u);  // nothing was decrypted
  // Noise that the modulus does not hold: level 0 at nearly all of it, few slots.
  const double scale = std::exp2(w().params().log_q(0) - 2.5);
  const ErrorBound tight = model().input(1.0, false, 0u, scale, 2);
  const Ciphertext full = client.encrypt(Values{0.5}, 0u, scale, 2);
  EXPECT_NO_THROW(client.decrypt_to_share(full, tight, {30, 1}));
  ErrorBound uncertain = model().input(1.0, false, 1u);
  uncertain.failure = 0x1p-29;
  const auto f = expect_error<ParameterError>(
      [&] { client.decrypt_to_share(client.encrypt(Values{0.5}, 1u), uncertain, kOnce); });
  EXPECT_NE(f.field("failure"), "");
}

TEST_P(CkksShare, RefusesSharingOutOfRange) {
  Client client = w().context.keygen();
  const ErrorBound bound = model().input(1.0);
  const Ciphertext c = client.encrypt(Values{0.5});
  const auto refused = [&](Sharing s, const char* field) {
    const auto e = expect_error<ParameterError>([&] { client.decrypt_to_share(c, bound, s); });
    EXPECT_NE(e.field(field), "");
  };
  refused({29, 1}, "statistical_bits");
  refused({65, 1}, "statistical_bits");
  refused({0, 1}, "statistical_bits");
  refused({30, 0}, "queries");
  for (double rms : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    ErrorBound none = bound;  // no error would be no noise
    none.rms = rms;
    const auto e = expect_error<ParameterError>([&] { client.decrypt_to_share(c, none, kOnce); });
    EXPECT_NE(e.field("rms"), "");
  }
}

TEST_P(CkksShare, RefusesWhatTheModelDoesNotPredict) {
  Client client = w().context.keygen();
  const ErrorModel m = model();
  const ErrorBound bound = m.rescale(m.multiply(m.input(1.0, false, 2u), Complex(0.5)));
  const auto refused = [&](const Ciphertext& c, const char* field) {
    const auto e = expect_error<StateError>([&] { client.decrypt_to_share(c, bound, kOnce); });
    EXPECT_NE(e.field(field), "") << e.what();
    EXPECT_NE(e.field("expected"), "");
  };
  refused(client.encrypt(Values{0.5}, 2u), "level");
  refused(client.encrypt(Values{0.5}, 1u, w().params().scale(1) * (1 + 1e-9)), "scale");
  refused(client.encrypt(Values{0.5}, 1u, 0.0, 4), "slots");
  EXPECT_NO_THROW(client.decrypt_to_share(client.encrypt(Values{0.5}, 1u), bound, kOnce));
  auto& other = world("s40");
  Client elsewhere = other.context.keygen();
  const Ciphertext foreign = elsewhere.encrypt(Values{0.5}, 1u);
  EXPECT_THROW(elsewhere.decrypt_to_share(foreign, bound, kOnce), StateError);
}

TEST_P(CkksShare, RefusesMessagesBeyondTheBoundAfterTheNoise) {
  Client client = w().context.keygen();
  const ErrorBound bound = model().input(1.0);
  const Ciphertext c = client.encrypt(Values(w().slots(), 3.0));
  const auto e = expect_error<StateError>([&] { client.decrypt_to_share(c, bound, {30, 2}); });
  EXPECT_NE(e.field("expected"), "");
  EXPECT_EQ(client.share_account().shares, 1u);  // whoever learns of the refusal learned something
  // Under another key: uniform modulo Q.
  Client other = w().context.keygen();
  EXPECT_THROW(other.decrypt_to_share(c, bound, kOnce), StateError);
}

TEST_P(CkksShare, CountsTheSharesOfAKey) {
  Client client = w().context.keygen();
  const ErrorBound bound = model().input(1.0);
  auto rng = test::test_rng();
  const auto rows = test::random_reals(rng, 3 * w().slots());
  const Ciphertext batch = client.encrypt(rows, {}, 0.0, 0, 3);  // a vector is a query
  const Sharing four{30, 4};
  EXPECT_EQ(client.decrypt_to_share(batch, bound, four).given, 3u);
  EXPECT_EQ(client.decrypt_to_share(batch.slice(0, 1), bound, four).given, 4u);
  const auto e =
      expect_error<StateError>([&] { client.decrypt_to_share(batch.slice(0, 1), bound, four); });
  EXPECT_EQ(e.field("shares"), "4");
  EXPECT_EQ(e.field("queries"), "4");
  EXPECT_EQ(client.share_account().shares, 4u);
  // Other numbers later do not stretch the first promise, nor make a stronger one.
  EXPECT_THROW(client.decrypt_to_share(batch, bound, {30, 1000}), StateError);
  EXPECT_THROW(client.decrypt_to_share(batch, bound, {40, 1000}), StateError);
  // The account goes where the key goes.
  Client again = Client::import_secret_key(w().context, client.export_secret_key());
  EXPECT_EQ(again.share_account().shares, 0u);
  again.add_to_share_account(client.share_account());
  EXPECT_THROW(again.decrypt_to_share(batch, bound, four), StateError);
  EXPECT_THROW(again.add_to_share_account({1, -1.0}), ParameterError);
}

TEST_P(CkksShare, ADecryptedPlaintextStaysWithTheKeyHolder) {
  Client& client = w().client;
  const Ciphertext c = client.encrypt(Values{0.5});
  const Plaintext m = client.decrypt_to_plaintext(c);
  const PublicKey key = client.public_key();
  EXPECT_THROW(to_bytes(w().context, m), StateError);
  EXPECT_THROW(client.encrypt(m), StateError);
  EXPECT_THROW(key.encrypt(m), StateError);
  EXPECT_THROW(w().ev.add(c, m), StateError);  // the difference would be the plaintext
  EXPECT_THROW(w().ev.multiply(c, m), StateError);
  EXPECT_NEAR(w().context.decode(m)[0].real(), 0.5, 1e-6);
  const auto bytes = to_bytes(w().context, m, true);
  EXPECT_NEAR(w().context.decode(plaintext_from_bytes(w().context, bytes))[0].real(), 0.5, 1e-6);
}

CRENEL_DEVICE_SUITE(CkksShare);

}  // namespace
}  // namespace crenel::ckks
