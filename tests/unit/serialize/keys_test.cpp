// Evaluation keys with encapsulation, and key files: some keys of many, by memory map.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fuzz/wire_files.h"
#include "support/encapsulation_world.h"

namespace crenel::test {
namespace {

using ckks::KeySelection;
using ckks::load_evaluation_keys;
using ckks::save_evaluation_keys;
using ckks::to_bytes;

const char* const kSparseHalf = "encapsulation/dense_to_sparse/b";

/// A folder of its own that goes with the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "crenel-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder " + pattern);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return (path_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

void write(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

void expect_equal(const rlwe::SwitchKey& a, const rlwe::SwitchKey& b) {
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.pairs.shape(), b.pairs.shape());
  EXPECT_EQ(a.pairs.limbs(), b.pairs.limbs());
  EXPECT_EQ(a.pairs.domain(), b.pairs.domain());
  EXPECT_EQ(words_of(a.pairs), words_of(b.pairs));
}

class KeyFiles : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (device_ == nullptr) return;
    context_.emplace(ckks::Params::preset("toy-boot40", true), GetParam());
    ckks::KeyRequest request;
    request.rotations = {1, -3, 7};
    request.conjugate = request.encapsulation = true;
    request.encapsulation_rotations = {0, 5};
    keys = context_->keygen().evaluation_keys(request);
    path = folder.file("keys");
  }
  const ckks::Context& context() const { return *context_; }
  const rlwe::EvaluationKeySet& set(const ckks::EvaluationKeys& k) const { return k.data()->set; }
  ckks::EvaluationKeys load(const KeySelection& selection = {}) const {
    return load_evaluation_keys(context(), path, selection);
  }
  void refused(const Bytes& bytes, const std::string& where) const {
    write(path, bytes);
    const auto from_file = expect_error<SerializationError>([&] { load(); });
    EXPECT_NE(from_file.field("where").find(where), std::string::npos) << from_file.what();
    const auto from_bytes = expect_error<SerializationError>(
        [&] { ckks::evaluation_keys_from_bytes(context(), bytes); });
    EXPECT_EQ(from_bytes.field("where"), from_file.field("where")) << from_bytes.what();
  }

  ckks::EvaluationKeys keys;
  Folder folder;
  std::string path;

 private:
  std::optional<ckks::Context> context_;
};
CRENEL_FAST_DEVICE_SUITE(KeyFiles);

TEST_P(KeyFiles, EncapsulationKeysTravel) {
  const auto bytes = to_bytes(context(), keys);
  EXPECT_LT(bytes.size(), keys.wire_bytes() + 8192);
  const auto loaded = ckks::evaluation_keys_from_bytes(context(), bytes);
  EXPECT_TRUE(loaded.has_encapsulation());
  EXPECT_EQ(loaded.bytes(), keys.bytes());
  EXPECT_EQ(loaded.wire_bytes(), keys.wire_bytes());
  const auto &a = *set(keys).encapsulation, &b = *set(loaded).encapsulation;
  EXPECT_EQ(a.weight, b.weight);
  expect_equal(a.dense_to_sparse, b.dense_to_sparse);
  expect_equal(a.sparse_to_dense, b.sparse_to_dense);
  ASSERT_EQ(a.turned.size(), 2u);
  ASSERT_EQ(b.turned.size(), 2u);
  for (const auto& [element, key] : a.turned) expect_equal(key, b.turned.at(element));
  EXPECT_EQ(to_bytes(context(), loaded), bytes);
}

TEST_P(KeyFiles, AStreamedFileHasTheBytesOfToBytes) {
  save_evaluation_keys(context(), keys, path);
  EXPECT_EQ(read_bytes(path), to_bytes(context(), keys));
  save_evaluation_keys(context(), ckks::EvaluationKeys(), path);  // replaces it
  EXPECT_EQ(read_bytes(path), to_bytes(context(), ckks::EvaluationKeys()));
  EXPECT_TRUE(load().rotations().empty());
  EXPECT_EQ(folder.files(), 1u) << "a partial file stayed behind";
}

TEST_P(KeyFiles, EverythingByDefault) {
  save_evaluation_keys(context(), keys, path);
  const auto loaded = load();
  EXPECT_EQ(to_bytes(context(), loaded), to_bytes(context(), keys));
  for (const auto& [element, key] : set(keys).galois)
    expect_equal(key, set(loaded).galois.at(element));
}

TEST_P(KeyFiles, OnlyWhatIsSelected) {
  save_evaluation_keys(context(), keys, path);
  const auto some = load({{{7, 0, 1, 7}}, false, false, false});
  EXPECT_EQ(some.rotations(), (std::vector<i64>{1, 7}));
  EXPECT_FALSE(some.has_relinearisation());
  EXPECT_FALSE(some.has_conjugation());
  EXPECT_FALSE(some.has_encapsulation());
  for (const auto& [element, key] : set(some).galois)
    expect_equal(key, set(keys).galois.at(element));
  const i64 order = static_cast<i64>(context().params().slots());
  EXPECT_EQ(load({{{order - 3}}}).rotations(), std::vector<i64>{-3});
  const auto rest = load({std::vector<i64>{}, true, true, true});
  EXPECT_TRUE(rest.rotations().empty());
  EXPECT_TRUE(rest.has_relinearisation());
  EXPECT_TRUE(rest.has_conjugation());
  EXPECT_TRUE(rest.has_encapsulation());
  EXPECT_FALSE(load({std::nullopt, true, false, true}).has_conjugation());
  EXPECT_EQ(load({std::nullopt, true, false, true}).rotations(), keys.rotations());
}

TEST_P(KeyFiles, MissingRotationsAreNamedTogether) {
  save_evaluation_keys(context(), keys, path);
  const auto error = expect_error<KeyMissingError>([&] { load({{{1, 5, -3, -9}}}); });
  EXPECT_EQ(error.field("rotations"), "-9, 5");
}

TEST_P(KeyFiles, OtherKeysAreNotRead) {
  Bytes bytes = to_bytes(context(), keys);
  const serialize::SafetensorsFile file(bytes);
  const u64 element = ring::galois_element_for_rotation(7, context().params().log_n());
  const auto& tensor = file.tensors().at(cat("galois/", element, "/b"));
  bytes[tensor.begin + 12345] ^= 1;
  write(path, bytes);
  EXPECT_EQ(load({{{1}}}).rotations(), std::vector<i64>{1});
  const auto error = expect_error<SerializationError>([&] { load({{{7}}}); });
  EXPECT_EQ(error.field("where"), "tensor '" + tensor.name + "' checksum");
  expect_error<SerializationError>([&] { load(); });
}

TEST_P(KeyFiles, BadFilesAreRefused) {
  const Bytes good = to_bytes(context(), keys);
  const auto seal = [&](const char* from, const std::string& to) { return edit(good, from, to); };
  refused(Bytes(good.begin(), good.end() - 1), "data_offsets");
  refused(Bytes(good.begin(), good.begin() + 1000), "header");
  refused({}, "header");
  refused(seal("\"encapsulation_weight\":\"32\"", "\"encapsulation_weight\":\"64\""),
          "encapsulation_weight");
  refused(seal("\"encapsulation_weight\":\"32\"", "\"encapsulation_weight\":\"0\""),
          "encapsulation_weight");
  refused(seal("\"encapsulation_weight\":\"32\",", ""), "encapsulation_weight");
  refused(seal("\"encapsulation/dense_to_sparse/b\"", "\"encapsulation/dense/b\""), "");
  refused(seal("\"encapsulation/sparse_to_dense/b\"", "\"encapsulation/sparse/b\""),
          "encapsulation/sparse_to_dense/b");
  refused(seal("\"encapsulation/sparse_to_dense/seed\"", "\"encapsulation/seed\""),
          "encapsulation/sparse_to_dense/seed");
  for (const char* element : {"2", "4097", "x", "01"})
    refused(seal("\"encapsulation/turned/1/b\"", cat("\"encapsulation/turned/", element, "/b\"")),
            cat("encapsulation/turned/", element, "/b"));
  refused(seal("\"shape\":[1, 4, 2048]", "\"shape\":[4, 1, 2048]"), kSparseHalf);
  // A residue of the first auxiliary prime where the limbs are q0's two, then P's first two.
  Bytes bad = good;
  const auto begin = serialize::SafetensorsFile(good).tensors().at(kSparseHalf).begin;
  const u32 prime = static_cast<u32>(context().params().primes()[context().params().chain_limbs()]);
  std::memcpy(bad.data() + begin + 4 * (2 * 2048 + 17), &prime, 4);
  refused(reseal(bad), kSparseHalf);
}

// Keys of some levels: what was saved comes back, by every way of loading; other levels than those
// of the words are refused.
TEST_P(KeyFiles, LevelsTravel) {
  Rng rng = test_rng();
  const u32 top = context().params().max_level();
  const u64 element = ring::galois_element_for_rotation(7, context().params().log_n());
  ckks::KeyRequest request{{1, -3, 7}, true, true, true};
  request.max_level = 1 + static_cast<u32>(rng() % (top - 2));
  request.rotation_levels = {{1, top}, {7, 0}};
  request.relinearisation_level = static_cast<u32>(rng() % top);
  ckks::Client client = context().keygen();
  keys = client.evaluation_keys(request);
  const Bytes bytes = to_bytes(context(), keys);
  save_evaluation_keys(context(), keys, path);
  EXPECT_EQ(read_bytes(path), bytes);
  const auto staged = load_evaluation_keys(context(), path, {}, keys.bytes());
  for (const auto& loaded : {load(), ckks::evaluation_keys_from_bytes(context(), bytes), staged}) {
    for (i64 k : {1, -3, 7, 2}) EXPECT_EQ(loaded.rotation_level(k), keys.rotation_level(k)) << k;
    EXPECT_EQ(loaded.rotation_level(7), 0u);
    EXPECT_EQ(loaded.rotation_level(1), top);
    EXPECT_EQ(loaded.conjugation_level(), *request.max_level);
    EXPECT_EQ(loaded.relinearisation_level(), *request.relinearisation_level);
    EXPECT_EQ(loaded.wire_bytes(), keys.wire_bytes());
    const auto a = client.encrypt(Values(4, 0.5), 0);
    const auto rotated = [&](const ckks::EvaluationKeys& k) {
      return words_of(context().evaluator(k).rotate(a, 7).data().poly);
    };
    EXPECT_EQ(rotated(loaded), rotated(keys));
    expect_error<KeyMissingError>(
        [&] { context().evaluator(loaded).rotate(client.encrypt(Values(4, 0.5), 1), 7); });
  }
  const auto some = load({{{7}}, false, false, false});
  expect_equal(set(some).galois.at(element), set(keys).galois.at(element));
  EXPECT_EQ(set(some).galois.at(element).first_digit, set(keys).galois.at(element).first_digit);

  const std::string name = cat("max_level:galois/", element), stated = cat("\"", name, "\":\"0\"");
  const auto forged = [&](const std::string& text, const std::string& where) {
    refused(edit(bytes, stated, text), where);
  };
  forged(cat("\"", name, "\":\"", top - 1, "\""), cat("galois/", element));  // a larger key
  forged(cat("\"", name, "\":\"", top, "\""), name);  // every level is not said
  forged(cat("\"", name, "\":\"4294967296\""), name);
  forged(cat("\"", name, "\":\"-1\""), name);
  forged("\"max_level:galois/25\":\"0\"", "");  // of no key in the file, and none of this one
  write(path, edit(bytes, stated + ",", ""));   // a whole key has another shape
  EXPECT_NE(expect_error<SerializationError>([&] { load(); }).field("where").find("galois/"),
            std::string::npos);
}

TEST_P(KeyFiles, WrongContextsAndKinds) {
  save_evaluation_keys(context(), keys, path);
  const ckks::Context other(ckks::Params::preset("toy-boot45", true), GetParam());
  const auto error =
      expect_error<SerializationError>([&] { load_evaluation_keys(other, path, {}); });
  EXPECT_EQ(error.field("where"), "params_id");
  expect_error<StateError>([&] { save_evaluation_keys(other, keys, folder.file("other")); });
  EXPECT_EQ(folder.files(), 1u);
  write(path, to_bytes(context().params()));
  EXPECT_EQ(expect_error<SerializationError>([&] { load(); }).field("where"), "kind");
}

TEST_P(KeyFiles, FilesThatCannotBeHad) {
  const std::string missing = folder.file("missing"), below = folder.file("missing/keys");
  for (const std::string& bad : {missing, folder.file("."), std::string("/dev/null")}) {
    const auto error =
        expect_error<SerializationError>([&] { load_evaluation_keys(context(), bad, {}); });
    EXPECT_EQ(error.field("where"), "file '" + bad + "'");
  }
  const auto error =
      expect_error<SerializationError>([&] { save_evaluation_keys(context(), keys, below); });
  EXPECT_EQ(error.field("where"), "file '" + below + "'");
  EXPECT_EQ(error.field("found"), "No such file or directory");
  std::filesystem::create_directory(path);
  std::filesystem::create_directory(path + "/full");
  expect_error<SerializationError>([&] { save_evaluation_keys(context(), keys, path); });
  EXPECT_EQ(folder.files(), 1u) << "a partial file stayed behind";
}

TEST(KeyFilesOfOldVersions, LoadByMapToo) {
  const auto path = (wire_folder() / "evaluation_keys.safetensors").string();
  const auto keys = load_evaluation_keys(wire_context(), path);
  EXPECT_FALSE(keys.has_encapsulation());
  EXPECT_EQ(to_bytes(wire_context(), keys),
            to_bytes(wire_context(), ckks::evaluation_keys_from_bytes(
                                         wire_context(), wire_file("evaluation_keys"))));
}

TEST(KeyFilesOfOldVersions, EncapsulationNeedsParametersThatHaveIt) {
  const Bytes bad = edit(wire_file("evaluation_keys"), "\"relinearisation/b\"",
                         "\"encapsulation/dense_to_sparse/b\"");
  const auto outcome = load_kind("evaluation_keys", bad);
  EXPECT_FALSE(outcome.loaded);
  EXPECT_NE(outcome.where.find(kSparseHalf), std::string::npos) << outcome.message;
}

}  // namespace
}  // namespace crenel::test
