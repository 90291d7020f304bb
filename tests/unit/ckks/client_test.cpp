// Encryption and decryption, the public key, export of the secret key.
#include "crenel/ckks/client.h"

#include "support/ckks_world.h"
#include "support/edited_files.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

class CkksClient : public test::SchemeTest {};

TEST_P(CkksClient, SecretKeyEncryptionRoundTripsAtEveryLevel) {
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  const Values v = test::random_values(rng, w.slots());
  for (u32 level = 0; level <= w.params().max_level(); ++level) {
    const Ciphertext c = w.client.encrypt(v, level);
    EXPECT_EQ(c.level(), level);
    EXPECT_EQ(c.components(), 2u);
    EXPECT_EQ(c.scale(), w.params().scale(level));
    EXPECT_LT(test::max_error(w.client.decrypt(c), v), 0x1p-29) << level;
  }
}

TEST_P(CkksClient, EncryptsRealSparseAndBatched) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto reals = test::random_reals(rng, w.slots());
  const Ciphertext r = w.client.encrypt(reals);
  EXPECT_TRUE(r.metadata().real);
  EXPECT_LT(test::max_error(w.client.decrypt(r), Values(reals.begin(), reals.end())), 0x1p-28);
  const Values v = test::random_values(rng, 3 * 16);
  const Ciphertext batch = w.client.encrypt(v, 3, 0.0, 16, 3);
  EXPECT_EQ(batch.batch(), 3u);
  EXPECT_EQ(batch.slots(), 16u);
  EXPECT_EQ(batch.bytes(), 3 * 2 * 4 * w.params().ring_dim() *
                               (w.params().window_end(3) - w.params().window_begin(3)));
  EXPECT_LT(test::max_error(w.client.decrypt(batch), v), 0x1p-28);
}

TEST_P(CkksClient, DecryptsLargeMessagesFromAllLimbs) {
  // Larger than what the first limbs hold: the shortcut of decrypt() must notice.
  auto& w = world("toy-boot40");
  const Values v(w.slots(), Complex(3.0 * 0x1p20, -0x1p20));
  const double scale = 0x1p40;
  const Ciphertext c = w.client.encrypt(v, 20u, scale);
  EXPECT_LT(test::max_error(w.client.decrypt(c), v), 0x1p-9);
  auto big = w.ev.multiply_integer(w.ev.multiply_integer(c, i64(1) << 40), i64(1) << 40);
  const Values expected = test::map_values(v, [](Complex x) { return x * 0x1p80; });
  EXPECT_LT(test::max_error(w.client.decrypt(big), expected), 0x1p72);
}

TEST_P(CkksClient, EncryptionsOfOneVectorDiffer) {
  auto& w = world("s40");
  const Values v(w.slots(), 0.5);
  const auto a = w.client.decrypt_to_plaintext(w.client.encrypt(v));
  const auto b = w.client.decrypt_to_plaintext(w.client.encrypt(v));
  EXPECT_GT(test::max_error(w.context.decode(a), w.context.decode(b)), 0.0);
}

TEST_P(CkksClient, PublicKeyEncryptionRoundTrips) {
  for (const char* name : {"s40", "toy-boot40"}) {
    auto& w = world(name);
    auto rng = test::test_rng();
    const PublicKey key = w.client.public_key();
    for (u32 level : {0u, 1u, 2u, w.params().normal_top_level(), w.params().max_level()}) {
      const Values v = test::random_values(rng, w.slots());
      const Ciphertext c = key.encrypt(w.context.encode(v, level));
      EXPECT_EQ(c.level(), level);
      EXPECT_LT(test::max_error(w.client.decrypt(c), v), 0x1p-22) << name << " level " << level;
    }
    const Values rows = test::random_values(rng, 2 * w.slots());
    const Ciphertext batch = key.encrypt(w.context.encode(rows, 1, 0.0, 0, 2));
    EXPECT_LT(test::max_error(w.client.decrypt(batch), rows), 0x1p-22);
  }
}

TEST_P(CkksClient, ResultsOfPublicKeyEncryptionEvaluate) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values v = test::random_values(rng, w.slots());
  const Ciphertext c = w.client.public_key().encrypt(w.context.encode(v));
  const auto squared = test::map_values(v, [](Complex x) { return x * x; });
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.rescale(w.ev.square(c))), squared), 0x1p-20);
}

TEST_P(CkksClient, DecryptToPlaintextAgreesWithDecrypt) {
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  const Ciphertext c = w.client.encrypt(test::random_values(rng, w.slots()), 5u);
  const auto plain = w.client.decrypt_to_plaintext(c);
  EXPECT_EQ(plain.level(), 5u);
  EXPECT_EQ(plain.scale(), c.scale());
  EXPECT_LT(test::max_error(w.context.decode(plain), w.client.decrypt(c)), 1e-15);
}

TEST_P(CkksClient, ThreeComponentsDecrypt) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values v = test::random_values(rng, w.slots());
  const auto product = w.ev.square_lazy(w.client.encrypt(v));
  EXPECT_EQ(product.components(), 3u);
  const auto squared = test::map_values(v, [](Complex x) { return x * x; });
  EXPECT_LT(test::max_error(w.client.decrypt(product), squared), test::tolerance(w.params()));
}

TEST_P(CkksClient, SecretKeyExportAndImport) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values v = test::random_values(rng, w.slots());
  const auto file = w.client.export_secret_key();
  const auto bytes = test::exported_coefficients(file);
  ASSERT_EQ(bytes.size(), w.params().ring_dim());
  u64 counts[3] = {};
  for (u8 b : bytes) {
    const int c = static_cast<i8>(b);
    ASSERT_TRUE(c >= -1 && c <= 1);
    ++counts[c + 1];
  }
  const double n = static_cast<double>(bytes.size());  // P(+-1) = 1/4: 6 standard deviations
  EXPECT_NEAR(static_cast<double>(counts[0]), n / 4, 6 * std::sqrt(n * 3 / 16));
  EXPECT_NEAR(static_cast<double>(counts[2]), n / 4, 6 * std::sqrt(n * 3 / 16));
  Client twin = Client::import_secret_key(w.context, file);
  EXPECT_EQ(twin.export_secret_key(), file);
  EXPECT_EQ(twin.secret_key_id(), w.client.secret_key_id());
  EXPECT_LT(test::max_error(twin.decrypt(w.client.encrypt(v)), v), 0x1p-28);
  EXPECT_LT(test::max_error(w.client.decrypt(twin.encrypt(v)), v), 0x1p-28);
  // Keys made by the twin serve ciphertexts of the first.
  const Evaluator ev = w.context.evaluator(twin.evaluation_keys({{1}, true, true}));
  const Ciphertext c = w.client.encrypt(v);
  EXPECT_LT(test::max_error(w.client.decrypt(ev.rotate(c, 1)), test::rolled(v, 1)),
            test::tolerance(w.params()));
}

TEST_P(CkksClient, ImportRefusesBadBytes) {
  auto& w = world("s40");
  const auto bytes = w.client.export_secret_key();
  auto cut = bytes;
  cut.pop_back();
  EXPECT_THROW(Client::import_secret_key(w.context, cut), SerializationError);
  for (u8 bad : {u8(2), u8(0x7f), u8(0x80), u8(0xfe)}) {
    const auto e = test::expect_error<SerializationError>(
        [&] { Client::import_secret_key(w.context, test::with_coefficient(bytes, 7, bad)); });
    EXPECT_EQ(e.field("found"), "other coefficients") << int(bad);
    EXPECT_EQ(e.field("expected"), "-1, 0, 1");
  }
}

TEST_P(CkksClient, SparseSecretHasItsExactWeight) {
  Spec spec = Params::preset("toy-boot40", true).spec();
  spec.hamming_weight = 64;
  const Context context(Params::from_spec(spec, true), GetParam());
  Client client = context.keygen();
  const auto bytes = test::exported_coefficients(client.export_secret_key());
  EXPECT_EQ(std::count_if(bytes.begin(), bytes.end(), [](u8 b) { return b != 0; }), 64);
  const Values v(context.params().slots(), Complex(0.25, -0.5));
  EXPECT_LT(test::max_error(client.decrypt(client.encrypt(v)), v), 0x1p-28);
}

TEST_P(CkksClient, RefusesObjectsOfOtherParameters) {
  auto& w = world("s40");
  auto& other = world("toy-boot40");
  const Ciphertext c = other.client.encrypt(Values{1.0});
  const Plaintext p = other.context.encode(Values{1.0});
  const auto e = test::expect_error<StateError>([&] { w.client.decrypt(c); });
  EXPECT_EQ(e.field("found"), other.params().id());
  EXPECT_EQ(e.field("expected"), w.params().id());
  EXPECT_THROW(w.client.encrypt(p), StateError);
  EXPECT_THROW(w.client.decrypt_to_plaintext(c), StateError);
  EXPECT_THROW(w.client.public_key().encrypt(p), StateError);
}

TEST_P(CkksClient, RefusesObjectsOfOtherDevices) {
  if (GetParam() == "ref") GTEST_SKIP() << "compares with ref";
  auto& w = world("toy-boot40");
  const Context foreign(w.params(), "ref");
  Client stranger = foreign.keygen();
  const Plaintext p = foreign.encode(Values{1.0});
  const Ciphertext c = stranger.encrypt(p);
  const auto e = test::expect_error<StateError>([&] { w.client.decrypt(c); });
  EXPECT_EQ(e.field("found"), "ref");
  EXPECT_EQ(e.field("expected"), w.context.device().info().name);
  EXPECT_THROW(w.client.encrypt(p), StateError);
  EXPECT_THROW(w.client.decrypt_to_plaintext(c), StateError);
  EXPECT_THROW(w.client.public_key().encrypt(p), StateError);
  EXPECT_THROW(w.context.decode(p), StateError);
  EXPECT_THROW(w.ev.negate(c), StateError);
  EXPECT_THROW(w.ev.add(w.client.encrypt(Values{1.0}), p), StateError);
  EXPECT_THROW(w.context.evaluator(stranger.evaluation_keys({{1}, false, false})), StateError);
}

CRENEL_DEVICE_SUITE(CkksClient);

}  // namespace
}  // namespace crenel::ckks
