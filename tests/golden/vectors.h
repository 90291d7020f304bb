// Reading the vectors that generate.py writes.
#pragma once

#include <bit>
#include <fstream>
#include <map>
#include <sstream>

#include "core/sha256.h"
#include "support/same.h"

namespace crenel::test {

using Case = std::map<std::string, std::vector<std::string>>;

inline std::vector<Case> read_cases(const std::string& name) {
  std::ifstream in(std::string(CRENEL_TEST_DATA) + "/golden/" + name + ".txt");
  EXPECT_TRUE(in.good()) << name;
  std::vector<Case> cases;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string key, word;
    if (!(words >> key) || key[0] == '#') continue;
    if (key == "case") cases.emplace_back();
    if (key == "end") continue;
    auto& values = cases.back()[key];
    while (words >> word) values.push_back(word);
  }
  EXPECT_FALSE(cases.empty()) << name;
  return cases;
}

inline std::vector<u64> numbers(const Case& c, const std::string& key) {
  std::vector<u64> out;
  if (const auto it = c.find(key); it != c.end())
    for (const auto& word : it->second) out.push_back(std::stoull(word));
  return out;
}
inline u64 number(const Case& c, const std::string& key) { return numbers(c, key).at(0); }
inline u32 log2_of(u64 n) { return static_cast<u32>(std::bit_width(n) - 1); }

struct SplitMix {
  u64 state;
  u64 next() {
    state += 0x9e3779b97f4a7c15u;
    u64 z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
};

// Word vectors in the order of the files: [batch][component][limb][N].
inline TestPoly poly_of(const std::vector<u64>& words, PolyShape shape, const LimbSet& limbs,
                        Domain domain) {
  auto p = empty_poly(shape, limbs, domain);
  EXPECT_EQ(p.words.size(), words.size());
  std::copy(words.begin(), words.end(), p.words.begin());
  return p;
}
inline std::vector<u64> random_words(u64 seed, const std::vector<u64>& primes, u64 n,
                                     u32 polys = 1) {
  SplitMix source{seed};
  std::vector<u64> out;
  for (u32 p = 0; p < polys; ++p)
    for (const u64 q : primes)
      for (u64 i = 0; i < n; ++i) out.push_back(source.next() % q);
  return out;
}
inline std::vector<u64> input_of(const Case& c, const std::vector<u64>& primes) {
  return c.count("input") ? numbers(c, "input")
                          : random_words(number(c, "seed"), primes, number(c, "n"));
}

inline void expect_words(const Case& c, const std::string& key, const std::vector<u32>& words) {
  const auto full = numbers(c, key);
  if (!full.empty()) {
    EXPECT_EQ(std::vector<u64>(words.begin(), words.end()), full);
  }
  if (const auto it = c.find(key + "_sha256"); it != c.end()) {
    const std::span<const u8> bytes(reinterpret_cast<const u8*>(words.data()),
                                    words.size() * sizeof(u32));
    EXPECT_EQ(hex(sha256(bytes)), it->second.at(0)) << key;
  }
  EXPECT_TRUE(!full.empty() || c.count(key + "_sha256")) << "the file has no " << key;
}

}  // namespace crenel::test
