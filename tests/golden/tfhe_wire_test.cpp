// The TFHE wire files of tests/golden/wire come from make_tfhe_wire.py: a client that shares
// nothing with the library made the secret, the ciphertexts and the evaluation keys.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "crenel/tfhe/serialize.h"
#include "fuzz/wire_files.h"
#include "support/devices.h"
#include "tfhe/encoding.h"
#include "tfhe/objects.h"

namespace crenel::test {
namespace {

using tfhe::Gate;
using Numbers = std::vector<i64>;

/// Secrets and messages of the files, by name.
std::map<std::string, Numbers> expected_numbers() {
  const Bytes bytes = read_bytes(wire_folder() / "tfhe_expected.txt");
  std::istringstream lines(std::string(bytes.begin(), bytes.end()));
  std::map<std::string, Numbers> out;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (i64 value; words >> value;) out[name].push_back(value);
  }
  return out;
}

/// Decryption as the format's page defines it: phase j = b_j - <a, s_j>.
Numbers decrypted(const tfhe::Ciphertext& c, const std::vector<Numbers>& secrets) {
  std::vector<u32> words(c.bytes() / sizeof(u32));
  c.data().payload.stream()->copy_out(words.data(), c.data().payload.data(), c.bytes());
  const u64 n = secrets[0].size(), row = n + secrets.size();
  Numbers out;
  for (u64 i = 0; i < c.size(); ++i) {
    const u32* at = words.data() + i / secrets.size() * row;
    const u64 slot = i % secrets.size();
    u64 phase = at[n + slot];
    for (u64 j = 0; j < n; ++j) phase -= at[j] * static_cast<u64>(secrets[slot][j]);
    phase &= (u64(1) << c.data().log_modulus) - 1;
    out.push_back(static_cast<i64>(
        tfhe::decode_phase(static_cast<u32>(phase), c.plain_modulus(), c.data().log_modulus)));
  }
  return out;
}

class TfheWire : public DeviceTest {
 protected:
  tfhe::Context context(u32 slots) const {
    const tfhe::Params set = tfhe::Params::preset("toy-raising", true);
    return tfhe::Context(set.with_slots(tfhe::SlotCount(slots)), GetParam());
  }
};

TEST_P(TfheWire, CiphertextsOfAnotherClientDecrypt) {
  auto want = expected_numbers();
  const auto one = context(1), two = context(2);
  const auto left = tfhe::ciphertext_from_bytes(one, wire_file("tfhe_left"));
  EXPECT_EQ(decrypted(left, {want["lwe"]}), want["left"]);
  const auto right = tfhe::ciphertext_from_bytes(one, wire_file("tfhe_right_seeded"));
  EXPECT_EQ(decrypted(right, {want["lwe"]}), want["right"]);
  const auto packed = tfhe::ciphertext_from_bytes(two, wire_file("tfhe_packed_seeded"));
  EXPECT_EQ(decrypted(packed, {want["lwe"], want["other"]}), want["packed"]);
}

TEST_P(TfheWire, TheSecretKeyOfAnotherClientDecrypts) {
  auto want = expected_numbers();
  const auto one = context(1);
  const auto client = tfhe::Client::import_secret_key(one, wire_file("tfhe_secret_key"));
  const auto left = tfhe::ciphertext_from_bytes(one, wire_file("tfhe_left"));
  EXPECT_EQ(left.secret_key_id(), client.secret_key_id());
  const auto bits = client.decrypt(left);
  EXPECT_EQ(Numbers(bits.begin(), bits.end()), want["left"]);
  // Known messages are of no secret key: every client reads them.
  const auto known = tfhe::ciphertext_from_bytes(one, wire_file("tfhe_known"));
  EXPECT_TRUE(known.secret_key_id().is_none());
  EXPECT_EQ(client.decrypt(known), (std::vector<u64>{1, 0}));
  EXPECT_EQ(one.keygen().decrypt(known), (std::vector<u64>{1, 0}));
  EXPECT_THROW(tfhe::ciphertext_from_bytes(
                   one, edit(wire_file("tfhe_left"), left.secret_key_id().text(), "none")),
               SerializationError);
  EXPECT_EQ(payload_of(client.export_secret_key()), payload_of(wire_file("tfhe_secret_key")));
}

TEST_P(TfheWire, GatesUnderTheKeysOfAnotherClient) {
  auto want = expected_numbers();
  const auto one = context(1);
  const auto keys = tfhe::evaluation_keys_from_bytes(one, wire_file("tfhe_evaluation_keys"));
  const auto ev = one.evaluator(keys);
  const auto left = tfhe::ciphertext_from_bytes(one, wire_file("tfhe_left"));
  const auto right = tfhe::ciphertext_from_bytes(one, wire_file("tfhe_right_seeded"));
  Numbers nand, either;
  for (u64 i = 0; i < left.size(); ++i) {
    nand.push_back(1 - (want["left"][i] & want["right"][i]));
    either.push_back(want["left"][i] ^ want["right"][i]);
  }
  EXPECT_EQ(decrypted(ev.gate(Gate::nand, left, right), {want["lwe"]}), nand);
  EXPECT_EQ(decrypted(ev.gate(Gate::xor_, left, right), {want["lwe"]}), either);
}

TEST_P(TfheWire, FilesAreWrittenAlike) {
  const auto one = context(1), two = context(2);
  const auto again = [](const tfhe::Context& home, const std::string& name) {
    tfhe::ArrayInfo info;
    const auto c = tfhe::ciphertext_from_bytes(home, wire_file(name), &info);
    return tfhe::to_bytes(home, c, info);
  };
  for (const char* name : {"tfhe_left", "tfhe_right_seeded", "tfhe_known"})
    EXPECT_EQ(payload_of(again(one, name)), payload_of(wire_file(name))) << name;
  EXPECT_EQ(payload_of(again(two, "tfhe_packed_seeded")),
            payload_of(wire_file("tfhe_packed_seeded")));
  const Bytes file = wire_file("tfhe_evaluation_keys");
  const auto keys = tfhe::evaluation_keys_from_bytes(one, file);
  EXPECT_EQ(payload_of(tfhe::to_bytes(one, keys)), payload_of(file));
  // Files of before, with words of 32 bits, are the same keys.
  const auto words = tfhe::evaluation_keys_from_bytes(one, wire_file("tfhe_evaluation_keys_words"));
  EXPECT_EQ(payload_of(tfhe::to_bytes(one, words)), payload_of(file));
}

CRENEL_DEVICE_SUITE(TfheWire);

}  // namespace
}  // namespace crenel::test
