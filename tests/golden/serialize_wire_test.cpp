// The wire files of tests/golden/wire come from make_wire.py, which shares nothing with the
// library.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "ckks/objects.h"
#include "fuzz/wire_files.h"

namespace crenel::test {
namespace {

std::map<std::string, std::string> expected() {
  const Bytes bytes = read_bytes(wire_folder() / "expected.txt");
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  std::map<std::string, std::string> out;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    out[line.substr(space + 1)] = line.substr(0, space);
  }
  return out;
}

/// SHA-256 of component 1 of every batch entry.
std::string uniform_half(const rlwe::Poly& poly) {
  Bytes bytes(poly.bytes() / poly.shape().components);
  const std::size_t part = bytes.size() / poly.shape().batch;
  for (u32 b = 0; b < poly.shape().batch; ++b)
    poly.stream().copy_out(bytes.data() + b * part, poly.view().limb(b, 1, 0), part);
  return hex(sha256(bytes));
}

Bytes save_again(const std::string& name, const Bytes& bytes) {
  const auto& context = wire_context();
  const std::string kind = kind_of(name);
  if (kind == "ciphertext")
    return ckks::to_bytes(context, ckks::ciphertext_from_bytes(context, bytes));
  if (kind == "plaintext")
    return ckks::to_bytes(context, ckks::plaintext_from_bytes(context, bytes));
  if (kind == "public_key")
    return ckks::to_bytes(context, ckks::public_key_from_bytes(context, bytes));
  if (kind == "evaluation_keys")
    return ckks::to_bytes(context, ckks::evaluation_keys_from_bytes(context, bytes));
  if (kind == "secret_key")
    return ckks::Client::import_secret_key(context, bytes).export_secret_key();
  return ckks::to_bytes(ckks::params_from_bytes(bytes, true));
}

/// Metadata without what names the writing library.
std::map<std::string, std::string> lasting_metadata(const serialize::SafetensorsFile& file) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : file.metadata())
    if (name != "library_version" && name != "header_sha256") out[name] = value.value;
  return out;
}

TEST(SerializeWire, EveryFileLoadsAndIsWrittenAlike) {
  for (const auto& name : wire_names()) {
    SCOPED_TRACE(name);
    const Bytes bytes = wire_file(name);
    const Bytes again = save_again(name, bytes);
    const serialize::SafetensorsFile a(bytes), b(again);
    EXPECT_EQ(lasting_metadata(a), lasting_metadata(b));
    EXPECT_EQ(payload_of(bytes), payload_of(again));
    ASSERT_EQ(a.tensors().size(), b.tensors().size());
    for (const auto& [tensor, t] : a.tensors()) {
      const auto& u = b.tensors().at(tensor);
      EXPECT_EQ(t.dtype, u.dtype) << tensor;
      EXPECT_EQ(t.shape, u.shape) << tensor;
      EXPECT_EQ(bytes.size() - t.begin, again.size() - u.begin) << tensor;
    }
  }
}

TEST(SerializeWire, SeedsExpandToTheBytesOfAnIndependentChaCha20) {
  const auto& context = wire_context();
  auto want = expected();
  const auto ciphertext = ckks::ciphertext_from_bytes(context, wire_file("ciphertext_seeded"));
  EXPECT_EQ(uniform_half(ciphertext.data().poly), want["ciphertext_seeded c1"]);
  const auto key = ckks::public_key_from_bytes(context, wire_file("public_key"));
  EXPECT_EQ(uniform_half(key.data().key.pair), want["public_key a"]);
  const auto keys = ckks::evaluation_keys_from_bytes(context, wire_file("evaluation_keys"));
  const auto& set = keys.data()->set;
  EXPECT_EQ(uniform_half(set.relinearisation->pairs), want["relinearisation a"]);
  EXPECT_EQ(uniform_half(set.galois.at(5).pairs), want["galois/5 a"]);
  EXPECT_EQ(uniform_half(set.galois.at(2047).pairs), want["galois/2047 a"]);
}

TEST(SerializeWire, SecretKeyIsReadExactly) {
  const auto client = ckks::Client::import_secret_key(wire_context(), wire_file("secret_key"));
  const auto coefficients = client.state().secret.export_coefficients();
  const Bytes bytes(coefficients.begin(), coefficients.end());
  EXPECT_EQ(hex(sha256(bytes)), expected()["secret_key coefficients"]);
  EXPECT_EQ(client.secret_key_id().text(), "000102030405060708090a0b0c0d0e0f");
}

TEST(SerializeWire, MetadataIsReadExactly) {
  const auto& context = wire_context();
  const auto c = ckks::ciphertext_from_bytes(context, wire_file("ciphertext"));
  EXPECT_EQ(c.level(), 0u);
  EXPECT_EQ(c.scale(), 1.1 * 0x1p30);
  EXPECT_EQ(c.slots(), 512u);
  EXPECT_EQ(c.components(), 3u);
  EXPECT_FALSE(c.metadata().real);
  EXPECT_EQ(c.secret_key_id().text(), "000102030405060708090a0b0c0d0e0f");
  const auto s = ckks::ciphertext_from_bytes(context, wire_file("ciphertext_seeded"));
  EXPECT_EQ(s.level(), 1u);
  EXPECT_EQ(s.slots(), 16u);
  EXPECT_EQ(s.batch(), 2u);
  EXPECT_TRUE(s.metadata().real);
  EXPECT_TRUE(s.data().seed.has_value());
  const auto p = ckks::params_from_bytes(wire_file("params"), true);
  EXPECT_EQ(p.id(), wire_params().id());
  EXPECT_EQ(p.id(), expected()["params_id"]);
  EXPECT_EQ(p.spec().provenance, wire_params().spec().provenance);
  EXPECT_EQ(p.name(), "wire");
}

}  // namespace
}  // namespace crenel::test
