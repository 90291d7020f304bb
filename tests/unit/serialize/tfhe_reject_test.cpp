// Bad files of TFHE are refused with their place; no mutation makes a loader misbehave.
#include <gtest/gtest.h>

#include "fuzz/tfhe_entry.h"
#include "fuzz/wire_files.h"
#include "support/random.h"
#include "tfhe/bit_packing.h"

namespace crenel::test {
namespace {

using tfhe::to_bytes;

struct Files {
  tfhe::Context context{tfhe::Params::preset("toy-raising", true), "ref"};
  tfhe::Client client = context.keygen();
  Bytes seeded, whole, keys, params;

  Files() {
    const auto made = client.evaluation_keys();
    const auto c = client.encrypt(std::vector<u64>{1, 0, 1, 1});
    seeded = to_bytes(context, c);
    whole = to_bytes(context, context.evaluator({made}).not_(c));
    keys = to_bytes(context, made);
    params = to_bytes(context.params());
  }

  void load(const std::string& name, std::span<const u8> bytes) const {
    if (name == "keys")
      tfhe::evaluation_keys_from_bytes(context, bytes);
    else if (name == "params")
      tfhe::params_from_bytes(bytes, true);
    else
      tfhe::ciphertext_from_bytes(context, bytes);
  }
  const Bytes& file(const std::string& name) const {
    return name == "keys" ? keys : name == "params" ? params : name == "whole" ? whole : seeded;
  }
};

const Files& files() {
  static const Files made;
  return made;
}

const char* const kNames[] = {"seeded", "whole", "keys", "params"};

void expect_tfhe_refused(const std::string& name, const Bytes& bytes, const std::string& where,
                         const std::string& what) {
  try {
    files().load(name, bytes);
    ADD_FAILURE() << name << ": loaded with " << what;
  } catch (const SerializationError& error) {
    const std::string at = error.field("where");
    // "params" is a part of "params_id", where the hash of anything that changed would be refused
    EXPECT_TRUE(where == "params" ? at == where : at.find(where) != std::string::npos)
        << name << ": " << what << "\n  " << error.what() << "\n  expected at: " << where;
    EXPECT_FALSE(error.field("found").empty() || error.field("expected").empty()) << error.what();
  }
}

TEST(TfheSerializeReject, TruncatedFiles) {
  Rng rng = test_rng();
  for (const char* name : kNames) {
    const Bytes& whole = files().file(name);
    files().load(name, whole);
    std::vector<std::size_t> lengths{0, 7, 8, 9, whole.size() / 2, whole.size() - 1};
    for (int i = 0; i < 20; ++i) lengths.push_back(rng() % whole.size());
    for (const std::size_t length : lengths)
      expect_tfhe_refused(name, Bytes(whole.begin(), whole.begin() + static_cast<long>(length)), "",
                          cat(length, " bytes"));
    Bytes longer = whole;
    longer.push_back(0);
    expect_tfhe_refused(name, longer, "", "a byte more");
  }
}

TEST(TfheSerializeReject, EveryChangedByteIsNoticed) {
  Rng rng = test_rng();
  for (const char* name : kNames)
    for (int i = 0; i < 200; ++i) {
      Bytes bytes = files().file(name);
      const std::size_t at = rng() % bytes.size();
      bytes[at] ^= static_cast<u8>(1 + rng() % 255);
      expect_tfhe_refused(name, bytes, "", cat("byte ", at, " changed"));
    }
}

TEST(TfheSerializeReject, Metadata) {
  struct Edit {
    const char *name, *from, *to, *where;
  };
  for (const Edit& e : std::vector<Edit>{
           {"seeded", "\"kind\":\"tfhe_ciphertext\"", "\"kind\":\"ciphertext\"", "kind"},
           {"seeded", "\"kind\":\"tfhe_ciphertext\"", "\"kind\":\"tfhe_integers\"", "kind"},
           {"keys", "\"kind\":\"tfhe_evaluation_keys\"", "\"kind\":\"evaluation_keys\"", "kind"},
           {"seeded", "\"size\":\"4\"", "\"size\":\"0\"", "'size'"},
           {"seeded", "\"size\":\"4\"", "\"size\":\"5\"", "tensor 'bodies'"},
           {"seeded", "\"size\":\"4\"", "\"size\":\"4294967296\"", "'size'"},
           {"seeded", "\"plain_modulus\":\"4\"", "\"plain_modulus\":\"5\"", "'plain_modulus'"},
           {"seeded", "\"plain_modulus\":\"4\"", "\"plain_modulus\":\"0\"", "'plain_modulus'"},
           {"seeded", "\"plain_modulus\":\"4\"", "\"plain_modulus\":\"64\"", "'plain_modulus'"},
           {"seeded", "\"log_modulus\":\"7\"", "\"log_modulus\":\"6\"", "'log_modulus'"},
           {"seeded", "\"log_modulus\":\"7\"", "\"log_modulus\":\"17\"", "'log_modulus'"},
           {"seeded", "\"log_modulus\":\"7\"", "\"log_modulus\":\"33\"", "'log_modulus'"},
           {"seeded", "\"seeded\":\"true\"", "\"seeded\":\"false\"", "tensor 'rows'"},
           {"whole", "\"seeded\":\"false\"", "\"seeded\":\"true\"", "tensor 'bodies'"},
           {"seeded", "\"element\":\"\"", "\"element\":\"A\"", "'element'"},
           {"seeded", "\"element\":\"\"", "\"element\":\"\",\"more\":\"\"", "'more'"},
           {"whole", "\"shape\":[4, 17]", "\"shape\":[17, 4]", "tensor 'rows'"},
           {"keys", "\"packing\":\"false\"", "\"packing\":\"true\"", "tensor 'packing/b'"},
           {"keys", "\"shape\":[16, 2, 1, 4, 1, 2, 160]", "\"shape\":[16, 2, 4, 1, 1, 2, 160]",
            "bootstrap/packed"},
           {"params", "\"slots\":\"1\"", "\"slots\":\"17\"", "'slots'"},
           {"params", "\"slots\":\"1\"", "\"slots\":\"2\"", "params_id"},
           {"params", "\"path\":\"raising\"", "\"path\":\"rising\"", "'path'"},
           {"params", "\"arithmetic\":\"approx\"", "\"arithmetic\":\"appro\"", "'arithmetic'"},
           {"params", "\"arithmetic\":\"approx\"", "\"arithmetic\":\"split\"", "params"},
           {"params", "\"lwe_dim\":\"16\"", "\"lwe_dim\":\"17\"", "params_id"},
           {"params", "\"lwe_dim\":\"16\"", "\"lwe_dim\":\"0\"", "params"},
           {"params", "\"poly_size\":\"64\"", "\"poly_size\":\"65\"", "params"},
           {"params", "\"poly_size\":\"64\"", "\"poly_size\":\"4294967296\"", "'poly_size'"},
           {"params", "\"max_norm2\":\"0x", "\"max_norm2\":\"-0x", "'max_norm2'"},
           {"params", "\"padded\":\"false\"", "\"padded\":\"0\"", "'padded'"}})
    expect_tfhe_refused(e.name, edit(files().file(e.name), e.from, e.to), e.where,
                        cat(e.from, " -> ", e.to));
}

// log_modulus may reach Q_KS = 2^16, in which p = 4 stands elsewhere but is no less safe.
TEST(TfheSerializeReject, ModuliUpToThatOfTheKeySwitchLoad) {
  files().load("seeded", edit(files().seeded, "\"log_modulus\":\"7\"", "\"log_modulus\":\"16\""));
}

// Slots that the set cannot have are a bad file, not an unsupported request.
TEST(TfheSerializeReject, SlotsThatTheSetDoesNotServe) {
  const Bytes lut = to_bytes(tfhe::Params::preset("lut4-128-classic"));
  expect_tfhe_refused("params", edit(lut, "\"slots\":\"1\"", "\"slots\":\"16\""), "params",
                      "16 slots");
  expect_tfhe_refused("params", edit(lut, "\"slots\":\"1\"", "\"slots\":\"2\""), "params_id",
                      "2 slots");
}

// Blocks stand modulo q with p = 32: anything else is refused before a block is uploaded.
TEST(TfheSerializeReject, IntegersOfAnotherEncoding) {
  const auto where = [](const tfhe::Context& context, const Bytes& bytes) {
    try {
      tfhe::integers_from_bytes(context, bytes);
    } catch (const SerializationError& error) {
      return error.field("where");
    }
    return std::string("loaded");
  };
  const char *kind = "\"kind\":\"tfhe_ciphertext\"", *integers = "\"kind\":\"tfhe_integers\"";
  EXPECT_NE(where(files().context, edit(files().seeded, kind, integers)).find("'plain_modulus'"),
            std::string::npos);

  tfhe::Spec spec = tfhe::Params::preset("toy-lut4", true).spec();
  spec.log_lwe_modulus = 21;  // below Q_KS = 2^22
  const tfhe::Context context(tfhe::Params::from_spec(spec, true), "ref");
  auto client = context.keygen();
  const std::vector<u64> m{3, 0, 15, 7};
  const Bytes good = to_bytes(context, tfhe::encrypt_unsigned(client, m, 8));
  EXPECT_EQ(where(context, good), "loaded");
  EXPECT_NE(where(context, edit(good, "\"log_modulus\":\"21\"", "\"log_modulus\":\"22\""))
                .find("'log_modulus'"),
            std::string::npos);
  EXPECT_NE(where(context, edit(good, "\"plain_modulus\":\"32\"", "\"plain_modulus\":\"16\""))
                .find("'plain_modulus'"),
            std::string::npos);
}

// What a file says of itself makes it no safer: sets below the norm need the flag, and whoever
// edits a claim changes the id.
TEST(TfheSerializeParams, ClaimsAreNoSafety) {
  const auto where = [](const Bytes& bytes, bool allow_insecure) {
    try {
      tfhe::params_from_bytes(bytes, allow_insecure);
    } catch (const SerializationError& error) {
      return std::string(error.field("where"));
    }
    return std::string("loaded");
  };
  tfhe::Spec weak = tfhe::Params::preset("bool128-classic").spec();
  weak.lwe_dim = tfhe::LweDim(500), weak.security_bits = 0;
  EXPECT_EQ(where(to_bytes(tfhe::Params::from_spec(weak, true)), false), "params");
  EXPECT_EQ(where(to_bytes(tfhe::Params::from_spec(weak, true)), true), "loaded");
  EXPECT_EQ(where(to_bytes(tfhe::Params::preset("toy-raising", true)), false), "params");
  const Bytes good = to_bytes(tfhe::Params::preset("M6"));
  EXPECT_EQ(where(good, false), "loaded");  // published: warns
  const auto edited = [&](const char* from, const char* to) {
    return where(edit(good, from, to), true);
  };
  EXPECT_EQ(edited("\"max_norm2\":\"0x1p+1\"", "\"max_norm2\":\"0x1p+0\""), "params_id");
  EXPECT_EQ(edited("\"paper\":\"true\"", "\"paper\":\"false\""), "params_id");
  EXPECT_EQ(edited("\"name\":\"M6\"", "\"name\":\"bool128-classic\""), "params_id");
  // 186 bits to 185.5: no mistake, but another id
  EXPECT_EQ(edited("\"security_bits\":\"0x1.74p+7\"", "\"security_bits\":\"0x1.73p+7\""),
            "params_id");
  const std::string newer = edited("\"params_version\":\"2\"", "\"params_version\":\"4\"");
  EXPECT_NE(newer.find("params_version"), std::string::npos) << newer;
}

// A file of before: without a version, with an id of what determines keys alone.
TEST(TfheSerializeParams, FilesOfVersion1SaySo) {
  const Bytes good = to_bytes(tfhe::Params::preset("bool128-classic"));
  try {
    tfhe::params_from_bytes(edit(good, "\"params_version\":\"2\",", ""));
    ADD_FAILURE();
  } catch (const SerializationError& error) {
    EXPECT_EQ(error.field("where"), "params_version");
    EXPECT_EQ(error.field("found"), "1");
    EXPECT_EQ(error.field("expected"), "2");
  }
}

TEST(TfheSerializeReject, ArraysWithoutTheirNoise) {
  const std::string claim = "\"noise_variance\":\"0x1.5p+3\",";
  expect_tfhe_refused("seeded", edit(files().seeded, claim, ""), "noise_variance", "no noise");
  for (const char* bad : {"-0x1p+0", "nan", "inf", "0x0p+0", "10.5", ""})
    expect_tfhe_refused("seeded",
                        edit(files().seeded, claim, cat("\"noise_variance\":\"", bad, "\",")),
                        "noise_variance", bad);
  files().load("seeded", edit(files().seeded, claim, "\"noise_variance\":\"0x1p+20\","));
}

/// The file with a 32-bit word of the payload replaced, checksums right.
Bytes with_word(const Bytes& bytes, const std::string& tensor, u64 index, u32 value) {
  Bytes changed = bytes;
  const serialize::SafetensorsFile file(bytes);
  std::memcpy(changed.data() + file.tensors().at(tensor).begin + 4 * index, &value, 4);
  return reseal(changed);
}

/// The file with a packed residue replaced, checksums right.
Bytes with_residue(const Bytes& bytes, const std::string& tensor, std::span<const u64> primes,
                   u64 index, u32 value) {
  Bytes changed = bytes;
  const serialize::SafetensorsFile file(bytes);
  const serialize::Tensor& packed = file.tensors().at(tensor);
  const u32 bits = tfhe::residue_bits(primes);
  std::vector<u32> words((packed.end - packed.begin) * 8 / bits);
  tfhe::unpack_bits(bytes.data() + packed.begin, bits, words);
  words[index] = value;
  tfhe::pack_bits(words, bits, changed.data() + packed.begin);
  return reseal(changed);
}

TEST(TfheSerializeReject, WordsOutOfRange) {
  expect_tfhe_refused("seeded", with_word(files().seeded, "bodies", 2, 128), "tensor 'bodies'",
                      "2^7");
  expect_tfhe_refused("whole", with_word(files().whole, "rows", 67, ~u32(0)), "tensor 'rows'",
                      "-1");
  const auto& p = files().context.params();
  const u32 first = static_cast<u32>(p.primes()[0]), second = static_cast<u32>(p.primes()[1]);
  const auto residue = [&](u64 index, u32 value) {
    return with_residue(files().keys, "bootstrap/packed", p.primes(), index, value);
  };
  expect_tfhe_refused("keys", residue(5, first), "bootstrap/packed", "prime");
  expect_tfhe_refused("keys", residue(64 + 5, second), "bootstrap/packed", "prime");
  expect_tfhe_refused("keys", with_word(files().keys, "key_switch/b", 9, 1u << 16), "key_switch/b",
                      "2^16");
  // The largest words that are right.
  files().load("seeded", with_word(files().seeded, "bodies", 2, 127));
  files().load("keys", residue(5, first - 1));
  expect_tfhe_refused("seeded", with_word(files().seeded, "shape", 0, 5), "tensor 'shape'",
                      "shape");
}

struct Lut4Files {
  std::vector<std::pair<std::string, Bytes>> all;
  Lut4Files() {
    const tfhe::Context& context = tfhe_wire_context();
    auto client = context.keygen();
    const auto keys = client.evaluation_keys();
    const std::vector<u64> m{3, 0, 15, 7};
    const auto c = client.encrypt(m);
    const tfhe::Term doubled{&c, 2};
    all.emplace_back("tfhe_ciphertext", to_bytes(context, c, {{2, 2}, "uint8"}));
    all.emplace_back("tfhe_ciphertext",
                     to_bytes(context, context.evaluator(keys).linear({&doubled, 1})));
    all.emplace_back("tfhe_integers",
                     to_bytes(context, tfhe::encrypt_unsigned(client, m, 8), {{4}, "uint8"}));
    all.emplace_back("tfhe_evaluation_keys", to_bytes(context, keys));
    all.emplace_back("tfhe_secret_key", client.export_secret_key());
    all.emplace_back("tfhe_params", to_bytes(context.params()));
  }
};

TEST(TfheSerializeFuzz, EveryLoaderRefusesEveryOtherKind) {
  for (const auto& [name, bytes] : Lut4Files().all) {
    for (const auto& kind : tfhe_wire_kinds())
      EXPECT_EQ(load_tfhe_kind(kind, bytes).loaded, kind == name) << name << " as " << kind;
    for (const auto& kind : wire_kinds())
      EXPECT_EQ(load_kind(kind, bytes).where, "kind") << name << " as " << kind;
    EXPECT_EQ(run_tfhe_entry(bytes), 1u) << name;
  }
  for (const auto& name : wire_names()) EXPECT_EQ(run_tfhe_entry(wire_file(name)), 0u) << name;
}

TEST(TfheSerializeFuzz, ResealedMutationsNeverMisbehave) {
  Rng rng = test_rng();
  u64 runs = 0, accepted = 0;
  for (const auto& [name, good] : Lut4Files().all) {
    const u64 header = 8 + header_length(good);
    const u64 rounds = good.size() > 20000 ? 150 : 1500;
    for (u64 round = 0; round < rounds; ++round, ++runs) {
      Bytes bytes = good;
      for (u64 change = rng() % 3 + 1; change-- > 0;) {
        const u64 at = rng() % 4 ? 8 + rng() % (header - 8) : rng() % bytes.size();
        if (rng() % 2)
          bytes[at] = static_cast<u8>("0123456789\"\\{}[],:-. "[rng() % 21]);
        else
          bytes[at] ^= static_cast<u8>(1u << rng() % 8);
      }
      SCOPED_TRACE(name + " round " + std::to_string(round));
      const Bytes sealed = reseal(bytes);
      if (!sealed.empty()) accepted += load_tfhe_kind(name, sealed).loaded;
    }
  }
  EXPECT_GT(accepted, 0u) << "no mutation passed the checksums: resealing does not work";
  EXPECT_LT(accepted, runs);
}

}  // namespace
}  // namespace crenel::test
