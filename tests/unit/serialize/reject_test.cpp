// Bad files one by one: each is refused, naming the place. Checksums are right wherever the
// container still parses, so that the checks behind them are reached.
#include <gtest/gtest.h>

#include "fuzz/wire_files.h"

namespace crenel::test {
namespace {

struct Edit {
  const char* file;
  const char* from;
  const char* to;
  const char* where;
};

void expect_refused(const std::string& kind, const Bytes& bytes, const std::string& where,
                    const std::string& what) {
  const LoadOutcome outcome = load_kind(kind, bytes);
  EXPECT_FALSE(outcome.loaded) << what;
  EXPECT_NE(outcome.where.find(where), std::string::npos)
      << what << "\n  " << outcome.message << "\n  expected at: " << where;
}

void run(const std::vector<Edit>& edits) {
  for (const auto& e : edits)
    expect_refused(kind_of(e.file), edit(wire_file(e.file), e.from, e.to), e.where,
                   std::string(e.file) + ": " + e.from + " -> " + e.to);
}

TEST(SerializeReject, IdentityEditsLoad) {
  for (const auto& name : wire_names())
    EXPECT_TRUE(load_kind(kind_of(name), edit(wire_file(name), "{", "{")).loaded) << name;
  EXPECT_TRUE(load_kind("ciphertext", edit(wire_file("ciphertext"), "\"slots\":\"512\"",
                                           "\n \"\\u0073lots\" : \"256\"\t"))
                  .loaded);
  EXPECT_TRUE(load_kind("ciphertext", edit(wire_file("ciphertext"), "\"library_version\":\"0.1.0\"",
                                           "\"library_version\":\"9.9\""))
                  .loaded);
}

TEST(SerializeReject, FormatVersionAndKind) {
  run({{"ciphertext", "\"crenel\"", "\"pt\"", "'format'"},
       {"ciphertext", "\"format\":\"crenel\",", "", "'format'"},
       {"ciphertext", "\"format_version\":\"2\"", "\"format_version\":\"3\"", "format_version"},
       {"ciphertext", "\"format_version\":\"2\"", "\"format_version\":\"0\"", "format_version"},
       {"ciphertext", "\"format_version\":\"2\"", "\"format_version\":\"01\"", "format_version"},
       {"ciphertext", "\"format_version\":\"2\"", "\"format_version\":\"99999999999999999999\"",
        "format_version"},
       {"ciphertext", "\"format_version\":\"2\"", "\"format_version\":\"1\"", "format_version"},
       {"ciphertext", "\"kind\":\"ciphertext\"", "\"kind\":\"secret_key\"", "kind"},
       {"ciphertext", "\"kind\":\"ciphertext\",", "", "kind"},
       {"params", "\"kind\":\"params\"", "\"kind\":\"PARAMS\"", "kind"},
       {"ciphertext", "740238a5", "740238a6", "params_id"},
       {"params", "740238a5", "740238a6", "params_id"},
       {"ciphertext", "\"library_version\":\"0.1.0\",", "", "library_version"}});
  const auto future = load_kind(
      "params", edit(wire_file("params"), "\"format_version\":\"2\"", "\"format_version\":\"7\""));
  EXPECT_NE(future.message.find("7 (a newer library wrote this file)"), std::string::npos)
      << future.message;
  const auto past = load_kind(
      "params", edit(wire_file("params"), "\"format_version\":\"2\"", "\"format_version\":\"1\""));
  EXPECT_NE(past.message.find("1 (an older library wrote this file"), std::string::npos)
      << past.message;
}

TEST(SerializeReject, SecretKeyIds) {
  const std::string id = "000102030405060708090a0b0c0d0e0f", entry = "\"secret_key_id\":\"" + id;
  const std::string upper = "000102030405060708090A0B0C0D0E0F", zero(32, '0');
  for (const char* file :
       {"ciphertext", "ciphertext_seeded", "public_key", "evaluation_keys", "secret_key"}) {
    for (const std::string& to : {std::string(), zero, std::string("none"), upper, id.substr(1),
                                  id + "0", "g" + id.substr(1), std::string(" ") + id.substr(1)})
      expect_refused(kind_of(file), edit(wire_file(file), entry, "\"secret_key_id\":\"" + to),
                     "'secret_key_id'", std::string(file) + " of " + to);
    expect_refused(kind_of(file), edit(wire_file(file), entry + "\",", ""), "'secret_key_id'",
                   std::string(file) + " of nobody");
  }
  // A file without keys may be anybody's; one of objects that need no secret key names none.
  EXPECT_TRUE(load_kind("evaluation_keys",
                        edit(wire_file("evaluation_keys_none"), "\"none\"", "\"" + id + "\""))
                  .loaded);
  for (const char* file : {"plaintext", "params"})
    expect_refused(kind_of(file), edit(wire_file(file), "\"kind\"", entry + "\",\"kind\""),
                   "'secret_key_id'", file);
}

TEST(SerializeReject, EveryLoaderRefusesEveryOtherKind) {
  for (const auto& name : wire_names())
    for (const auto& kind : wire_kinds())
      if (kind != kind_of(name))
        expect_refused(kind, wire_file(name), "kind", name + " as " + kind);
}

TEST(SerializeReject, Metadata) {
  run({{"ciphertext", "\"level\":\"0\"", "\"level\":\"2\"", "'level'"},
       {"ciphertext", "\"level\":\"0\"", "\"level\":\"-1\"", "'level'"},
       {"ciphertext", "\"level\":\"0\"", "\"level\":\"4294967296\"", "'level'"},
       {"ciphertext", "\"level\":\"0\"", "\"level\":\"1\"", "tensor 'c0'"},
       {"ciphertext", "\"level\":\"0\"", "\"level\":0", "header"},
       {"ciphertext", "\"scale\":\"0x1.", "\"scale\":\"1", "'scale'"},
       {"ciphertext", "p+30\"", "p+71\"", "'scale'"},
       {"ciphertext", "p+30\"", "p+1023\"", "'scale'"},
       {"ciphertext", "p+30\"", "p+1024\"", "'scale'"},
       {"ciphertext", "\"scale\":\"0x", "\"scale\":\"-0x", "'scale'"},
       {"ciphertext", "\"slots\":\"512\"", "\"slots\":\"0\"", "'slots'"},
       {"ciphertext", "\"slots\":\"512\"", "\"slots\":\"3\"", "'slots'"},
       {"ciphertext", "\"slots\":\"512\"", "\"slots\":\"1024\"", "'slots'"},
       {"ciphertext", "\"real\":\"false\"", "\"real\":\"no\"", "'real'"},
       {"ciphertext", "\"batch\":\"1\"", "\"batch\":\"0\"", "'batch'"},
       {"ciphertext", "\"batch\":\"1\"", "\"batch\":\"2\"", "tensor 'c0'"},
       {"ciphertext", "\"batch\":\"1\"", "\"batch\":\"4294967297\"", "'batch'"},
       {"ciphertext", "\"components\":\"3\"", "\"components\":\"1\"", "'components'"},
       {"ciphertext", "\"components\":\"3\"", "\"components\":\"4\"", "'components'"},
       {"ciphertext", "\"components\":\"3\"", "\"components\":\"2\"", "tensor 'c2'"},
       {"ciphertext", "\"seeded\":\"false\"", "\"seeded\":\"true\"", "'seeded'"},
       {"ciphertext_seeded", "\"seeded\":\"true\"", "\"seeded\":\"false\"", "tensor 'c1'"},
       {"ciphertext_seeded", "\"components\":\"2\"", "\"components\":\"3\"", "'seeded'"},
       {"ciphertext", "\"evaluation\"", "\"coefficient\"", "'domain'"},
       {"ciphertext", "\"slots\":\"512\"", "\"slots\":\"512\",\"more\":\"\"", "'more'"},
       {"ciphertext", "\"slots\":\"512\"", "\"slots\":\"512\",\"slots\":\"512\"", "'slots'"},
       {"ciphertext", "\"slots\":\"512\"", "\"slots\":\"512\",\"\\u0073lots\":\"1\"", "'slots'"},
       {"evaluation_keys", "\"digits\":\"3\"", "\"digits\":\"2\"", "'digits'"},
       {"evaluation_keys_none", "\"digits\":\"3\"", "\"digits\":\"4294967299\"", "'digits'"}});
}

TEST(SerializeReject, Tensors) {
  run({{"ciphertext", "\"c1\"", "\"c3\"", "tensor 'c1'"},
       {"ciphertext", "\"c1\":", "\"c0\":", "tensor 'c0'"},
       {"ciphertext", "\"dtype\":\"U32\"", "\"dtype\":\"F32\"", "tensor 'c0' dtype"},
       {"ciphertext", "\"dtype\":\"U32\",\"shape\":[1,2,1024]",
        "\"dtype\":\"U64\",\"shape\":[1,1,1024]", "tensor 'c0'"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":[2,1,1024]", "tensor 'c0'"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":[2048]", "tensor 'c0'"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":[1,2,1025]", "tensor 'c0' data_offsets"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":[4294967296,4294967296,1024]",
        "tensor 'c0' data_offsets"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":[9223372036854775808,2,1024]",
        "tensor 'c0' data_offsets"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":[1,1,1,1,1,1,1,2,1024]", "tensor 'c0'"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":[-1,2,1024]", "header"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":[1.0,2,1024]", "header"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":[[[[[[1]]]]]]", "header"},
       {"ciphertext", "\"shape\":[1,2,1024]", "\"shape\":null", "header"},
       {"ciphertext", "\"dtype\":\"U32\",", "", "tensor 'c0'"},
       {"ciphertext", "\"dtype\":\"U32\",", "\"dtype\":\"U32\",\"dtype\":\"U32\",", "tensor 'c0'"},
       {"ciphertext", "\"dtype\":\"U32\",", "\"dtype\":\"U32\",\"extra\":1,", "tensor 'c0'"},
       {"ciphertext", "\"data_offsets\":[0,8192]", "\"data_offsets\":[0,8192,8192]", "tensor 'c0'"},
       {"ciphertext", "\"data_offsets\":[0,8192]", "\"data_offsets\":[8192]", "tensor 'c0'"},
       {"ciphertext", "\"data_offsets\":[0,8192]", "\"data_offsets\":[8192,0]", "data_offsets"},
       {"ciphertext", "\"data_offsets\":[0,8192]", "\"data_offsets\":[-8,8192]", "header"},
       {"ciphertext", "\"data_offsets\":[8192,16384]", "\"data_offsets\":[8184,16376]",
        "tensor 'c1' data_offsets"},
       {"ciphertext", "\"data_offsets\":[8192,16384]", "\"data_offsets\":[8200,16392]",
        "tensor 'c1' data_offsets"},
       {"ciphertext", "\"data_offsets\":[8192,16384]", "\"data_offsets\":[0,8192]", "data_offsets"},
       {"ciphertext", "\"data_offsets\":[0,8192]",
        "\"data_offsets\":[18446744073709543424,18446744073709551615]", "tensor 'c0' data_offsets"},
       {"ciphertext", "\"data_offsets\":[0,8192]", "\"data_offsets\":[0,18446744073709551616]",
        "header"},
       {"plaintext", "\"shape\":[1,2,1024]}",
        "\"shape\":[1,2,1024]},\"z\":{\"data_offsets\":[8192,8192],"
        "\"dtype\":\"U8\",\"shape\":[0]}",
        "tensor 'z'"}});
}

TEST(SerializeReject, Keys) {
  run({{"evaluation_keys", "\"galois/5/b\"", "\"galois/4/b\"", "galois/4/b"},
       {"evaluation_keys", "\"galois/5/b\"", "\"galois/1/b\"", "galois/1/b"},
       {"evaluation_keys", "\"galois/5/b\"", "\"galois/7/b\"", "galois/7/b"},
       {"evaluation_keys", "\"galois/5/b\"", "\"galois/2053/b\"", "galois/2053/b"},
       {"evaluation_keys", "\"galois/5/b\"", "\"galois/05/b\"", "galois/05/b"},
       {"evaluation_keys", "\"galois/5/b\"", "\"galois//b\"", "galois//b"},
       {"evaluation_keys", "\"galois/5/b\"", "\"galois/b\"", "galois/b"},
       {"evaluation_keys", "\"galois/5/b\"", "\"galois/9/b\"", "galois/9/seed"},
       {"evaluation_keys", "\"galois/5/b\"", "\"galois/2047/b\"", "galois/2047/b"},
       {"evaluation_keys", "\"galois/5/seed\"", "\"galois/9/seed\"", "galois/5/seed"},
       {"evaluation_keys", "\"relinearisation/b\"", "\"relinearization/b\"", "relin"},
       {"evaluation_keys", "\"shape\":[3,4,1024]", "\"shape\":[4,3,1024]", "tensor"},
       {"public_key", "\"shape\":[3,1024]", "\"shape\":[1024,3]", "tensor 'b'"},
       {"public_key", "\"shape\":[32]", "\"shape\":[4,8]", "tensor 'seed'"}});
}

TEST(SerializeReject, Params) {
  run({{"params", "\"log_n\":\"10\"", "\"log_n\":\"9\"", "'log_n'"},
       {"params", "\"log_n\":\"10\"", "\"log_n\":\"18\"", "'log_n'"},
       {"params", "\"log_n\":\"10\"", "\"log_n\":\"11\"", "params"},
       {"params", "\"log_scale\":\"30\"", "\"log_scale\":\"4294967295\"", "params"},
       {"params", "\"log_scale\":\"30\"", "\"log_scale\":\"31\"", "params"},
       {"params", "\"normal_top_level\":\"1\"", "\"normal_top_level\":\"2\"", "params"},
       {"params", "\"normal_top_level\":\"1\"", "\"normal_top_level\":\"4294967295\"", "params"},
       {"params", "\"hamming_weight\":\"0\"", "\"hamming_weight\":\"1025\"", "params"},
       {"params", "\"hamming_weight\":\"0\"", "\"hamming_weight\":\"192\"", "params_id"},
       {"params", "\"shape\":[2,2]", "\"shape\":[4]", "tensor 'levels'"},
       {"params", "\"shape\":[2,2]", "\"shape\":[1,4]", "tensor 'levels'"},
       {"params", "\"name\":\"wire\",", "", "'name'"}});
}

TEST(SerializeReject, ParamsNumbers) {
  const Bytes good = wire_file("params");
  const serialize::SafetensorsFile file(good);
  for (const char* name : {"main", "auxiliary", "levels"}) {
    const auto& tensor = file.tensors().at(name);
    for (u64 at = tensor.begin; at < tensor.end; ++at)
      for (const u8 change : {0x01, 0x80, 0xff}) {
        Bytes bad = good;
        bad[at] ^= change;
        expect_refused("params", reseal(bad), "",
                       std::string(name) + " byte " + std::to_string(at));
      }
  }
}

TEST(SerializeReject, ResiduesBelowTheirPrime) {
  const std::vector<u32> primes{786433, 1146881, 1073750017, 2147473409};
  for (const std::string name : {"ciphertext", "plaintext", "public_key", "evaluation_keys"}) {
    const Bytes good = wire_file(name);
    const serialize::SafetensorsFile file(good);
    for (const auto& [tensor, t] : file.tensors()) {
      if (t.dtype != serialize::DType::u32) continue;
      const u64 limbs = t.shape[t.shape.size() - 2], words = (t.end - t.begin) / 4;
      for (u64 word = 0; word < words; word += word % 1024 == 0 ? 511 : 512 + word % 2) {
        Bytes bad = good;
        const u32 prime = primes[word / 1024 % limbs];
        std::memcpy(bad.data() + t.begin + 4 * word, &prime, 4);
        const auto outcome = load_kind(kind_of(name), reseal(bad));
        EXPECT_FALSE(outcome.loaded) << tensor << " word " << word;
        EXPECT_NE(outcome.message.find("(byte " + std::to_string(t.begin + 4 * word) + ")"),
                  std::string::npos)
            << outcome.message;
      }
    }
  }
}

TEST(SerializeReject, Checksums) {
  const Bytes good = wire_file("plaintext");
  Bytes bad = good;
  bad.back() ^= 1;
  expect_refused("plaintext", bad, "tensor 'm' checksum", "payload");
  const std::string header = header_of(good);
  bad = assemble(header, payload_of(good));
  bad[8 + header.find("\"slots\":\"1\"") + 9] = '2';
  expect_refused("plaintext", bad, "header checksum", "slots 1 -> 2");
  bad = good;
  bad[8 + header.size() - 1] = header.back() == ' ' ? '\t' : ' ';
  expect_refused("plaintext", bad, "header", "padding");
  run({{"plaintext", "\"sha256:m\":", "\"sha256:n\":", "sha256:m"},
       {"plaintext", "\"header_sha256\":\"", "\"header_sha256\":\"0", "header_sha256"},
       {"plaintext", "\"header_sha256\":\"", "\"header_sha256\":\"\\u0030", "header_sha256"},
       {"plaintext", "\"header_sha256\"", "\"header_sha255\"", "header_sha256"}});
}

TEST(SerializeReject, Containers) {
  const Bytes good = wire_file("plaintext");
  const Bytes payload = payload_of(good);
  const auto with_length = [&](u64 length) {
    Bytes bytes = good;
    std::memcpy(bytes.data(), &length, 8);
    return bytes;
  };
  for (const u64 length :
       {u64{0}, u64{1}, header_length(good) - 1, header_length(good) + 1, u64{good.size()},
        u64{16} << 20, (u64{16} << 20) + 8, u64{1} << 63, ~u64{0}, ~u64{7}, ~u64{0} - 8})
    expect_refused("plaintext", with_length(length), "header", std::to_string(length));
  expect_refused("plaintext", with_length(header_length(good) - 8), "header", "8 less");
  expect_refused("plaintext", with_length(header_length(good) + 8), "", "8 more");
  expect_refused("plaintext", {}, "header length", "empty");
  expect_refused("plaintext", Bytes(7), "header length", "7 bytes");
  expect_refused("plaintext", Bytes(8), "header", "zeros");
  const std::string deep(1 << 20, '['), objects = "{\"a\":{\"shape\":" + std::string(4096, '[');
  for (const std::string& text :
       {std::string("{}"), std::string("[]"), std::string(" {}"), std::string("null"), deep,
        objects, std::string("{\"__metadata__\":{}}"), std::string("{\"__metadata__\":[]}"),
        std::string("{\"__metadata__\":{},\"__metadata__\":{}}"),
        std::string("{\"__metadata__\":{\"a\":1}}"),
        std::string("{\"__metadata__\":{\"\xff\":\"\"}}"), std::string("{\"a\":1}"),
        std::string("{\"a\":{}}")})
    expect_refused("plaintext", assemble(text, payload), "", text.substr(0, 40));
}

TEST(SerializeReject, ManyTinyEntriesStayBounded) {
  std::string header = "{\"__metadata__\":{";
  for (u32 i = 0; header.size() < (std::size_t{16} << 20) - 64; ++i)
    header += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  expect_refused("plaintext", assemble(header + "}}", {}), "header", "metadata");
}

}  // namespace
}  // namespace crenel::test
