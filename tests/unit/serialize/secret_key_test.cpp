// Files of secret keys: what is no export is refused, and no refusal tells of the key.
#include <gtest/gtest.h>

#include "fuzz/tfhe_entry.h"
#include "fuzz/wire_files.h"
#include "support/edited_files.h"
#include "support/random.h"
#include "support/tfhe_world.h"

namespace crenel::test {
namespace {

/// The refusal of `f`; fails where there is none.
template <class F>
SerializationError refusal(const F& f) {
  try {
    f();
  } catch (const SerializationError& e) {
    EXPECT_FALSE(e.field("where").empty() || e.field("found").empty() ||
                 e.field("expected").empty())
        << e.what();
    return e;
  }
  ADD_FAILURE() << "no error";
  return SerializationError("none");
}

ckks::Client load(const Bytes& bytes) {
  return ckks::Client::import_secret_key(wire_context(), bytes);
}

TEST(SecretKeyFile, EveryFlippedBitIsRefusedWithoutTellingADigest) {
  const Bytes good = wire_context().keygen().export_secret_key();
  const std::string digest = hex(sha256(payload_of(good)));
  ASSERT_NE(header_of(good).find(digest), std::string::npos);
  const std::size_t payload = 8 + header_of(good).size();
  for (u64 bit = 0; bit < 8 * good.size(); bit += bit < 8 * 1200 ? 1 : 7) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<u8>(1u << bit % 8);
    const auto e = refusal([&] { load(bad); });
    std::string text = e.what();
    for (const auto& f : e.fields()) text += f.value.text();
    EXPECT_EQ(text.find(digest.substr(0, 16)), std::string::npos) << text;
    const std::string found = hex(sha256(std::span<const u8>(bad).subspan(payload)));
    EXPECT_EQ(text.find(found.substr(0, 16)), std::string::npos) << text;
  }
}

TEST(SecretKeyFile, BareCoefficientsAreRefusedByName) {
  const Bytes bare = exported_coefficients(wire_context().keygen().export_secret_key());
  auto e = refusal([&] { load(bare); });
  EXPECT_NE(std::string(e.what()).find("bare coefficients"), std::string::npos) << e.what();
  EXPECT_NE(e.field("expected").find("'secret_key'"), std::string::npos);
  const tfhe::Context& context = tfhe_wire_context();
  const Bytes lwe = exported_coefficients(context.keygen().export_secret_key());
  e = refusal([&] { tfhe::Client::import_secret_key(context, lwe); });
  EXPECT_NE(std::string(e.what()).find("bare coefficients"), std::string::npos) << e.what();
}

TEST(SecretKeyFile, OtherParametersSchemesAndNobody) {
  const Bytes good = wire_context().keygen().export_secret_key();
  const ckks::Context other(ckks::Params::preset("toy-boot40", true), "ref");
  EXPECT_EQ(refusal([&] { ckks::Client::import_secret_key(other, good); }).field("where"),
            "params_id");
  EXPECT_EQ(
      refusal([&] { tfhe::Client::import_secret_key(tfhe_wire_context(), good); }).field("where"),
      "kind");
  EXPECT_EQ(refusal([&] { load(tfhe_wire_context().keygen().export_secret_key()); }).field("where"),
            "kind");
  for (const char* id : {"none", "", "00000000000000000000000000000000"})
    EXPECT_NE(refusal([&] { load(with_secret_key_id(good, load(good).secret_key_id(), id)); })
                  .field("where")
                  .find("secret_key_id"),
              std::string::npos);
}

TEST(SecretKeyFile, CoefficientsThatNobodyDraws) {
  const Bytes good = wire_context().keygen().export_secret_key();
  const std::size_t n = wire_context().params().ring_dim();
  Rng rng = test_rng();
  const auto drawn = [&](auto pick) {
    Bytes c(n);
    for (u8& x : c) x = static_cast<u8>(pick(rng()));
    return with_coefficients(good, c);
  };
  EXPECT_NO_THROW(load(drawn([](u64 r) { return r % 4 == 0 ? -1 : r % 4 == 1 ? 1 : 0; })));
  for (const Bytes& bad :
       {drawn([](u64) { return 0; }), drawn([](u64) { return 1; }), drawn([](u64) { return -1; }),
        drawn([](u64 r) { return r & 1 ? 1 : 0; }),   // no -1
        drawn([](u64 r) { return r & 1 ? 1 : -1; }),  // no 0
        drawn([](u64 r) { return r % 16 == 0   ? 1
                                 : r % 16 == 1 ? -1
                                               : 0; })})
    EXPECT_NE(std::string(refusal([&] { load(bad); }).what()).find("chance"), std::string::npos);
}

// A set with the dimensions of real LWE secrets: n = 500, two polynomials of degree 64 for each of
// two slots.
TEST(SecretKeyFile, EveryPartOfATfheSecretIsAskedFor) {
  const tfhe::Context context(tfhe_params("many:r2"), "ref");
  tfhe::Client client = context.keygen();
  const Bytes good = client.export_secret_key();
  const auto& plan = context.state().plan;
  ASSERT_EQ(plan.lwe_dim, 500u);
  const u64 slot = tfhe::SecretKeys::slot_words(plan);
  const auto filled = [&](u64 first, u64 count, u8 value) {
    Bytes c = exported_coefficients(good);
    std::fill_n(c.begin() + static_cast<std::ptrdiff_t>(first), count, value);
    return with_coefficients(good, c);
  };
  // 1 and -1 in turns: each as often as chance may give, 0 never.
  Bytes no_zeros = exported_coefficients(good);
  for (u64 i = 0; i < plan.lwe_dim; ++i) no_zeros[i] = i % 2 ? 1 : 255;
  EXPECT_THROW(tfhe::Client::import_secret_key(context, with_coefficients(good, no_zeros)),
               SerializationError);
  EXPECT_NO_THROW(tfhe::Client::import_secret_key(context, filled(0, 8, 0)));
  for (u32 s = 0; s < 2; ++s) {
    for (const u8 value : {u8(0), u8(1), u8(0xff)}) {
      const auto e = refusal(
          [&] { tfhe::Client::import_secret_key(context, filled(s * slot, plan.lwe_dim, value)); });
      EXPECT_EQ(e.field("where"), "an LWE secret") << s;
    }
    for (u64 at = s * slot + plan.lwe_dim; at < (s + 1) * slot; at += plan.ring_dim()) {
      const auto e = refusal(
          [&] { tfhe::Client::import_secret_key(context, filled(at, plan.ring_dim(), 1)); });
      EXPECT_EQ(e.field("where"), "a GLWE polynomial") << at;
    }
  }
  // Polynomials of real degree may not be zero either.
  const tfhe::Context large(tfhe_params("gadget:r2"), "ref");
  const Bytes key = large.keygen().export_secret_key();
  const auto& shape = large.state().plan;
  for (u32 s = 0; s < 2; ++s) {
    Bytes c = exported_coefficients(key);
    std::fill_n(c.begin() + static_cast<std::ptrdiff_t>(s * tfhe::SecretKeys::slot_words(shape) +
                                                        shape.lwe_dim),
                shape.ring_dim(), u8(0));
    EXPECT_THROW(tfhe::Client::import_secret_key(large, with_coefficients(key, c)),
                 SerializationError);
  }
}

}  // namespace
}  // namespace crenel::test
