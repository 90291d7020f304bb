// The fuzzer's entry on its corpus, and systematic mutations of the wire files.
#include <gtest/gtest.h>

#include "fuzz/targets.h"
#include "fuzz/wire_files.h"

namespace crenel::test {
namespace {

/// Refused as it is; and resealed it may load, but then cleanly.
void expect_refused(const std::string& name, const Bytes& bytes, const char* how, u64 at) {
  EXPECT_FALSE(load_kind(kind_of(name), bytes).loaded) << name << ": " << how << " " << at;
}

TEST(SerializeCorpus, EveryTargetRunsOnEveryFile) {
  std::size_t files = 0;
  for (const auto& folder :
       {wire_folder(), std::filesystem::path(CRENEL_TEST_DATA) / "fuzz" / "corpus"})
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const Bytes bytes = read_bytes(entry.path());
      for (const auto& target : fuzz_targets()) {
        SCOPED_TRACE(target.name + " on " + entry.path().string());
        EXPECT_NO_THROW(target.run(bytes));
      }
      ++files;
    }
  EXPECT_GE(files, wire_names().size());
}

TEST(SerializeCorpus, EveryTargetTakesItsSeeds) {
  for (const auto& target : fuzz_targets()) {
    const auto seeds = target.seeds();
    EXPECT_FALSE(seeds.empty()) << target.name;
    for (const auto& [name, bytes] : seeds) {
      SCOPED_TRACE(target.name + " on its " + name);
      const u64 before = accepted_loads();
      EXPECT_NO_THROW(target.run(bytes));
      EXPECT_GT(accepted_loads(), before);
    }
  }
}

TEST(SerializeCorpus, TruncationEverywhereInTheHeaderAndInThePayload) {
  for (const auto& name : wire_names()) {
    const Bytes good = wire_file(name);
    const u64 payload = 8 + header_length(good);
    for (u64 size = 0; size < good.size(); size += size < payload + 64 ? 1 : 61)
      expect_refused(name, Bytes(good.begin(), good.begin() + static_cast<long>(size)), "cut to",
                     size);
    expect_refused(name, Bytes(good.begin(), good.end() - 1), "cut by", 1);
  }
}

TEST(SerializeCorpus, TrailingBytes) {
  for (const auto& name : wire_names())
    for (u64 extra = 1; extra <= 64; ++extra) {
      Bytes bad = wire_file(name);
      bad.resize(bad.size() + extra, static_cast<u8>(extra % 3 ? 0 : 0x20));
      expect_refused(name, bad, "extended by", extra);
    }
}

TEST(SerializeCorpus, EveryBitOfLengthAndHeader) {
  for (const auto& name : wire_names()) {
    Bytes bytes = wire_file(name);
    const u64 bits = 8 * (8 + header_length(bytes));
    for (u64 bit = 0; bit < bits; ++bit) {
      bytes[bit / 8] ^= static_cast<u8>(1u << bit % 8);
      expect_refused(name, bytes, "flipped bit", bit);
      bytes[bit / 8] ^= static_cast<u8>(1u << bit % 8);
    }
  }
}

TEST(SerializeCorpus, BitsOfThePayload) {
  for (const auto& name : wire_names()) {
    Bytes bytes = wire_file(name);
    for (u64 at = 8 + header_length(bytes); at < bytes.size();
         at += bytes.size() > 100000 ? 1021 : 61) {
      const u8 mask = static_cast<u8>(1u << at % 8);
      bytes[at] ^= mask;
      const auto outcome = load_kind(kind_of(name), bytes);
      EXPECT_NE(outcome.where.find("checksum"), std::string::npos) << name << " byte " << at;
      bytes[at] ^= mask;
    }
  }
}

TEST(SerializeCorpus, ResealedMutationsNeverMisbehave) {
  u64 runs = 0, accepted = 0;
  u64 state = 1;  // xorshift64: the same mutations on every host
  const auto next = [&state] {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  };
  for (const auto& name : wire_names()) {
    const Bytes good = wire_file(name);
    const u64 header = 8 + header_length(good);
    const u64 rounds = good.size() > 100000 ? 200 : 2000;
    for (u64 round = 0; round < rounds; ++round, ++runs) {
      Bytes bytes = good;
      for (u64 change = next() % 3 + 1; change-- > 0;) {
        const u64 at = next() % 4 ? 8 + next() % (header - 8) : next() % bytes.size();
        switch (next() % 4) {
          case 0:
            bytes[at] ^= static_cast<u8>(1u << next() % 8);
            break;
          case 1:
            bytes[at] = static_cast<u8>("0123456789\"\\{}[],:-. "[next() % 21]);
            break;
          case 2:
            std::swap(bytes[at], bytes[8 + next() % (header - 8)]);
            break;
          default:
            bytes[at] = static_cast<u8>(next());
        }
      }
      SCOPED_TRACE(name + " round " + std::to_string(round));
      const Bytes sealed = reseal(bytes);
      if (!sealed.empty()) accepted += load_kind(kind_of(name), sealed).loaded;
    }
  }
  EXPECT_GT(accepted, 0u) << "no mutation passed the checksums: resealing does not work";
  EXPECT_LT(accepted, runs);
}

}  // namespace
}  // namespace crenel::test
