// Encoding, encryption, decryption, secret keys and their export.
#include <cmath>

#include "support/edited_files.h"
#include "support/tfhe_world.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

TEST(TfheEncoding, MessagesStandWhereTheFractionSays) {
  auto rng = test::test_rng();
  const auto expected = [](u64 m, u64 p, u32 log) {
    const u128 x = (u128(m) << (log + 1)) + p;
    return static_cast<u64>(x / (2 * p)) & ((u64(1) << log) - 1);
  };
  for (u32 p = 2; p <= 200; p += 2)
    for (u32 log : {8u, 10u, 11u, 20u, 32u})
      for (u64 m = 0; m < p; ++m) ASSERT_EQ(encode_message(m, p, log), expected(m, p, log)) << p;
  for (int i = 0; i < 20000; ++i) {
    const u32 p = 2 * u32(1 + rng() % (u32(1) << 14)), log = 25 + u32(rng() % 8);
    const u64 m = rng() % p;
    ASSERT_EQ(encode_message(m, p, log), expected(m, p, log)) << m << " of " << p;
  }
}

TEST(TfheEncoding, DecodesTheNearestMessage) {
  for (u32 p : {2u, 4u, 6u, 8u, 10u, 48u})
    for (u32 x = 0; x < 1024; ++x)
      ASSERT_EQ(decode_phase(x, p, 10), static_cast<u64>(std::floor(x * p / 1024.0 + 0.5)) % p)
          << x << " " << p;
  EXPECT_EQ(decode_phase(0xffffffff, 256, 32), 0u);
  EXPECT_EQ(decode_phase(0x80000000, 256, 32), 128u);
}

TEST(TfheEncoding, LargePlainModuliStandModuloMore) {
  const auto params = test::tfhe_params("gadget");  // q = 2^10, p = 4: 2 beta = 256
  for (u32 p : {2u, 4u, 6u, 8u}) EXPECT_EQ(log_modulus_for(params, p), 10u);
  EXPECT_EQ(log_modulus_for(params, 10), 12u);
  EXPECT_EQ(log_modulus_for(params, 16), 12u);
  const auto large = test::tfhe_params("large");  // Q_KS = 2^35: words are the bound
  EXPECT_EQ(log_modulus_for(large, 1u << 24), 32u);
  EXPECT_THROW(log_modulus_for(large, 1u << 25), ParameterError);
  EXPECT_THROW(checked_plain_modulus(params, 7), ParameterError);
  EXPECT_THROW(checked_plain_modulus(params, (1u << 15) + 2), ParameterError);
  EXPECT_EQ(checked_plain_modulus(params, 0), 4u);
}

// Fresh errors modulo more than Q_KS would be easier to find than the set's security says.
TEST(TfheEncoding, NoModulusIsLargerThanTheSecurityIsStatedFor) {
  for (const std::string& name : Params::preset_names()) {
    const Params params = Params::preset(name, true);
    const Spec& spec = params.spec();
    const u32 bound =
        spec.group != 0 ? spec.log_lwe_modulus : std::min(spec.log_switch_modulus, 32u);
    EXPECT_EQ(max_log_modulus(params), bound) << name;
    for (u32 log_p = 4; log_p < 32; ++log_p) {
      u32 log_modulus = 0;
      try {
        log_modulus = log_modulus_for(params, 1u << log_p);
        EXPECT_LE(log_modulus, bound) << name << " p 2^" << log_p;
      } catch (const ParameterError& error) {
        if (error.field("bound").empty()) {  // p > q / 4 of the set's own
          EXPECT_GT(log_p + 2, params.spec().log_lwe_modulus) << name;
          continue;
        }
        EXPECT_EQ(error.field("bound"), std::to_string(bound)) << name;
        EXPECT_GT(std::stoul(error.field("log_modulus")), bound) << name << " p 2^" << log_p;
        EXPECT_NE(std::string(error.what()).find("2^" + error.field("log_modulus")),
                  std::string::npos);
      }
    }
  }
  const Params gates = Params::preset("bool128-classic");  // q = 2^10, Q_KS = 2^17, p = 4
  EXPECT_EQ(checked_plain_modulus(gates, 512), 512u);
  EXPECT_THROW(checked_plain_modulus(gates, 514), ParameterError);
  EXPECT_THROW(checked_plain_modulus(gates, 1024), ParameterError);
  // Q_KS = q: nothing beyond the set's own p, and 8
  EXPECT_EQ(log_modulus_for(Params::preset("lut4-128-classic"), 32), 23u);
  EXPECT_THROW(log_modulus_for(Params::preset("lut4-128-classic"), 34), ParameterError);
}

TEST(TfheSecret, IsUniform) {
  random::SecretSource source = random::SecretSource::from_os();
  const u64 count = 300000;
  u64 seen[3] = {}, ones = 0;
  for (i8 s : sample_secret(source, count, false)) {
    ASSERT_TRUE(s >= -1 && s <= 1);
    ++seen[s + 1];
  }
  // 6 standard deviations of a count: sqrt(count 2/9) = 258
  for (u64 n : seen) EXPECT_NEAR(double(n), count / 3.0, 1550);
  for (i8 s : sample_secret(source, count, true)) {
    ASSERT_TRUE(s == 0 || s == 1);
    ones += static_cast<u64>(s);
  }
  EXPECT_NEAR(double(ones), count / 2.0, 1650);
  EXPECT_NE(sample_secret(source, 64, false), sample_secret(source, 64, false));
}

class TfheClient : public test::TfheTest {};

TEST_P(TfheClient, RoundTrips) {
  auto rng = test::test_rng();
  for (const char* name : {"gadget", "gadget:r3", "raising:binary:r5", "rounded", "large"}) {
    auto& w = world(name);
    for (u32 p : {2u, 4u, 6u, 8u, 16u, 100u, 4096u})
      for (u64 size : {1, 2, 5, 64}) {
        const Spec& spec = w.params().spec();
        const u32 room = spec.log_switch_modulus - spec.log_lwe_modulus + floor_log2(4);
        if (p > 8 && ceil_log2(p) > room) continue;
        const Messages x = test::random_messages(rng, size, p);
        const Ciphertext c = w.client.encrypt(x, p);
        EXPECT_EQ(c.plain_modulus(), p);
        EXPECT_EQ(w.client.decrypt(c), x) << name << " p " << p << " size " << size;
      }
    EXPECT_EQ(w.client.decrypt(w.client.encrypt(Messages{3, 0}, 0)), (Messages{3, 0}));
  }
}

TEST_P(TfheClient, EncryptsExtremeMessages) {
  auto& w = world("gadget:r3");
  for (u64 m : {u64(0), u64(1), u64(2), u64(3)}) {
    const Messages x(50, m);
    EXPECT_EQ(w.client.decrypt(w.client.encrypt(x)), x);
  }
  auto& large = world("large");
  const Messages top{(u64(1) << 24) - 1, 0, u64(1) << 23};
  EXPECT_EQ(large.client.decrypt(large.client.encrypt(top, 1u << 24)), top);
}

TEST_P(TfheClient, ErrorsAreCentredWithVarianceTenAndAHalf) {
  auto& w = world("gadget:r3");
  const u64 count = 30000;
  const Messages x(count, 1);
  double sum = 0, squares = 0;
  for (i64 e : w.client.phase_errors(w.client.encrypt(x), x)) {
    ASSERT_LE(std::abs(e), 21);
    sum += double(e), squares += double(e * e);
  }
  // six standard deviations each: sqrt(10.5 / count) and 10.5 sqrt(2 / count)
  EXPECT_NEAR(sum / count, 0.0, 0.112);
  EXPECT_NEAR(squares / count, 10.5, 0.515);
}

TEST_P(TfheClient, PhaseErrorsAreSigned) {
  auto& w = world("gadget:r3");
  const Ciphertext c = test::at_phases(w, {255, 256, 257, 0, 1023, 512}, 4, 10);
  EXPECT_EQ(w.client.phase_errors(c, Messages{1, 1, 1, 0, 0, 0}),
            (std::vector<i64>{-1, 0, 1, 0, -1, -512}));
  EXPECT_THROW(w.client.phase_errors(c, Messages{1}), ParameterError);
  EXPECT_THROW(w.client.phase_errors(c, Messages{1, 1, 1, 0, 0, 4}), ParameterError);
}

TEST_P(TfheClient, EncryptionsDifferAndTravelAsSeeds) {
  auto& w = world("gadget:r3");
  const Messages x{1, 2, 3, 0};
  const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(x);
  const auto words = test::words_of(a);
  EXPECT_NE(words, test::words_of(b));
  EXPECT_NE(a.data().seed, b.data().seed);

  const auto& home = w.context.state();
  const u32 n = home.plan.lwe_dim, r = home.plan.slots;
  std::vector<u64> bodies;
  for (u64 y = 0; y < a.data().rows(); ++y)
    for (u32 j = 0; j < r; ++j) bodies.push_back(words[y * (n + r) + n + j]);
  auto staged = home.stream->allocate(bodies.size() * sizeof(u64));
  home.stream->copy_in(staged.data(), bodies.data(), staged.bytes());
  auto expanded = home.stream->allocate(a.bytes());
  home.torus->expand_lwe(*home.stream, {expanded.as<u32>(), home.torus->at_rest(a.data().rows())},
                         {*a.data().seed}, staged.as<const u64>());
  std::vector<u32> again(words.size());
  home.stream->copy_out(again.data(), expanded.data(), a.bytes());
  EXPECT_EQ(again, words);
}

TEST_P(TfheClient, ExportedKeysDecryptAndEvaluate) {
  for (const char* name : {"gadget:r3", "raising:binary:r2"}) {
    auto& w = world(name);
    const auto bytes = w.client.export_secret_key();
    Client again = Client::import_secret_key(w.context, bytes);
    EXPECT_EQ(again.export_secret_key(), bytes);
    const Messages x{1, 0, 1, 0, 1}, y{1, 1, 0, 0, 1};
    const Ciphertext a = w.client.encrypt(x), b = again.encrypt(y);
    const Evaluator ev = w.context.evaluator(again.evaluation_keys(), {0.0});
    EXPECT_EQ(again.decrypt(a), x);
    EXPECT_EQ(w.client.decrypt(ev.gate(Gate::and_, a, b)), (Messages{1, 0, 0, 0, 1}));
    EXPECT_EQ(again.secret_key_id(), w.client.secret_key_id());
    EXPECT_NE(test::exported_coefficients(w.context.keygen().export_secret_key()),
              test::exported_coefficients(bytes));
  }
}

TEST_P(TfheClient, OneSlotIsAClientOfItsOwn) {
  auto& w = world("gadget:r3");
  const auto all = test::exported_coefficients(w.client.export_secret_key());
  for (u32 slot = 0; slot < 3; ++slot) {
    Client one = w.client.single(slot);
    EXPECT_EQ(one.context().params().slots(), SlotCount(1));
    const auto bytes = test::exported_coefficients(one.export_secret_key());
    ASSERT_EQ(bytes.size() * 3, all.size());
    EXPECT_TRUE(
        std::equal(bytes.begin(), bytes.end(), all.begin() + std::ptrdiff_t(slot * bytes.size())));
    EXPECT_EQ(one.decrypt(one.encrypt(Messages{3, 1, 2})), (Messages{3, 1, 2}));
  }
  EXPECT_THROW(w.client.single(3), ParameterError);
}

TEST_P(TfheClient, ImportRefusesWhatNoExportGives) {
  auto& binary = world("raising:binary:r2");
  auto& w = world("gadget:r3");
  const auto bytes = w.client.export_secret_key();
  const u64 count = test::exported_coefficients(bytes).size();
  auto bad = bytes;
  bad.pop_back();
  EXPECT_THROW(Client::import_secret_key(w.context, bad), SerializationError);
  EXPECT_THROW(Client::import_secret_key(w.context, {}), SerializationError);
  for (u8 value : {u8(2), u8(0xfe), u8(0x80), u8(0x7f)})
    for (std::size_t at : {std::size_t(0), std::size_t(count - 1)}) {
      bad = test::with_coefficient(bytes, at, value);
      EXPECT_THROW(Client::import_secret_key(w.context, bad), SerializationError);
    }
  EXPECT_THROW(Client::import_secret_key(w.context,
                                         test::with_coefficients(bytes, std::vector<u8>(count, 0))),
               SerializationError);
  const auto negative = test::with_coefficient(binary.client.export_secret_key(), 1, 0xff);
  EXPECT_THROW(Client::import_secret_key(binary.context, negative), SerializationError);
  EXPECT_THROW(Client::import_secret_key(binary.context, bytes), SerializationError);
}

CRENEL_DEVICE_SUITE(TfheClient);

}  // namespace
}  // namespace crenel::tfhe
