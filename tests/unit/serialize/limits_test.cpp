// What a file would take is refused before it is taken; what was checked is what is used.
#include "crenel/core/limits.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz/targets.h"
#include "fuzz/wire_files.h"
#include "random/seed.h"
#include "serialize/input_file.h"
#include "support/random.h"

namespace crenel::test {
namespace {

using serialize::InputFile;
using serialize::SafetensorsFile;

TEST(LoadLimits, Bounds) {
  EXPECT_EQ(LoadLimits{}.bound(100, 10), 100u);
  EXPECT_EQ(LoadLimits{}.bound(100, 26), 104u);
  EXPECT_EQ(LoadLimits{}.bound(100, ~u64{0}), ~u64{0});
  EXPECT_EQ(LoadLimits{7}.bound(100, 1000), 7u);
}

/// {"__metadata__":{}} with so many short entries.
Bytes many_entries(u64 count) {
  std::string header = "{\"__metadata__\":{";
  for (u64 i = 0; i < count; ++i) header += cat(i ? "," : "", "\"", i, "\":\"\"");
  return assemble(header + "}}", {});
}

TEST(LoadLimits, HeadersAreRefusedByTheirLength) {
  const Bytes file = many_entries(20000);  // tables of more than kReadHeader
  const u64 needed = serialize::kHeaderFactor * header_length(file);
  EXPECT_NO_THROW(SafetensorsFile(file, needed));
  try {
    const SafetensorsFile refused(file, needed - 1);
    ADD_FAILURE() << "loaded";
  } catch (const SerializationError& error) {
    EXPECT_EQ(error.field("where"), "header");
    EXPECT_EQ(error.field("needed"), cat(needed));
  }
}

/// The smallest limit that a loader takes for these bytes, as its first refusal says.
template <class Load>
u64 least(const Load& load) {
  u64 refusals = 0;
  for (u64 limit = 0;;) try {
      load(LoadLimits{limit});
      EXPECT_EQ(refusals, 1u);
      if (limit > 0) {
        EXPECT_THROW(load(LoadLimits{limit - 1}), SerializationError);
      }
      return limit;
    } catch (const SerializationError& error) {
      ++refusals;
      const std::string needed = error.field("needed");
      if (needed.empty() || std::stoull(needed) <= limit) throw;
      // All of it in the sentence, too: fields were once moved away before it was made.
      for (const char* field : {"where", "found", "expected"}) {
        EXPECT_FALSE(error.field(field).empty());
        EXPECT_NE(std::string(error.what()).find(error.field(field)), std::string::npos);
      }
      limit = std::stoull(needed);
    }
}

TEST(LoadLimits, CkksObjectsNeedTheirResidues) {
  const ckks::Context& context = wire_context();
  const auto bytes = [](const std::string& name) { return wire_file(name); };
  const auto header = [&](const std::string& name) {
    return serialize::kHeaderFactor * header_length(bytes(name));
  };
  const Bytes seeded = bytes("ciphertext_seeded"), plain = bytes("plaintext"),
              key = bytes("public_key"), keys = bytes("evaluation_keys");
  const u64 residues =
      ckks::ciphertext_from_bytes(context, seeded).bytes() + header("ciphertext_seeded");
  EXPECT_EQ(least([&](LoadLimits l) { ckks::ciphertext_from_bytes(context, seeded, l); }),
            residues);
  EXPECT_EQ(least([&](LoadLimits l) { ckks::evaluation_keys_from_bytes(context, keys, l); }),
            ckks::evaluation_keys_from_bytes(context, keys).bytes() + header("evaluation_keys"));
  EXPECT_EQ(least([&](LoadLimits l) { ckks::plaintext_from_bytes(context, plain, l); }),
            payload_of(plain).size() + header("plaintext"));
  EXPECT_EQ(least([&](LoadLimits l) { ckks::public_key_from_bytes(context, key, l); }),
            2 * (payload_of(key).size() - sizeof(random::Seed)) + header("public_key"));
}

TEST(LoadLimits, ParametersNeedTheTablesOfAContext) {
  const Bytes params = wire_file("params");
  EXPECT_EQ(least([&](LoadLimits l) { ckks::params_from_bytes(params, true, l); }),
            4 * 1024 * 16 + serialize::kHeaderFactor * header_length(params));
}

TEST(LoadLimits, TfheArraysNeedTheirMasks) {
  const tfhe::Context& context = tiny_tfhe();
  tfhe::Client client = context.keygen();
  Rng rng = test_rng();
  const u64 size = 1 + rng() % 50;
  const auto array = client.encrypt(std::vector<u64>(size, 1));
  const Bytes file = tfhe::to_bytes(context, array);
  EXPECT_EQ(least([&](LoadLimits l) { tfhe::ciphertext_from_bytes(context, file, nullptr, l); }),
            array.bytes() + 16 * size + serialize::kHeaderFactor * header_length(file));
  const auto keys = client.evaluation_keys({true});
  const Bytes key_file = tfhe::to_bytes(context, keys);
  const u64 needed =
      least([&](LoadLimits l) { tfhe::evaluation_keys_from_bytes(context, key_file, l); });
  EXPECT_GT(needed, keys.bytes());
  EXPECT_LT(needed, keys.bytes() + 8 * key_file.size() +
                        serialize::kHeaderFactor * header_length(key_file));
}

TEST(SafetensorsHeader, IsACopy) {
  Bytes bytes = wire_file("params");
  const SafetensorsFile file(bytes);
  const Bytes header(file.header().begin(), file.header().end());
  std::fill(bytes.begin(), bytes.end(), u8{0});
  EXPECT_TRUE(std::equal(header.begin(), header.end(), file.header().begin(), file.header().end()));
  EXPECT_EQ(header[0], '{');
}

class InputFiles : public testing::Test {
 protected:
  InputFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "crenel-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder " + pattern);
    folder = pattern;
    path = (folder / "file").string();
  }
  ~InputFiles() override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
  std::string path;
};

TEST_F(InputFiles, AShortenedFileIsAnError) {
  std::ofstream(path) << std::string(10000, 'x');
  const InputFile file(path);
  Bytes part(5000);
  EXPECT_NO_THROW(file.read(5000, part));
  std::filesystem::resize_file(path, 6000);
  try {
    file.read(5000, part);
    ADD_FAILURE() << "read what is not there";
  } catch (const SerializationError& error) {
    EXPECT_EQ(error.field("found"), "its end at byte 6000");
  }
  EXPECT_EQ(file.size(), 10000u);
}

TEST_F(InputFiles, OnlyRegularFilesAreRead) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(InputFile{path}, SerializationError);
  EXPECT_THROW(InputFile{folder.string()}, SerializationError);
  EXPECT_THROW(InputFile{"/dev/zero"}, SerializationError);
  EXPECT_THROW(InputFile{(folder / "none").string()}, SerializationError);
}

}  // namespace
}  // namespace crenel::test
