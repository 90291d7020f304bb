// One seed a test run, printed, overridable by CRENEL_SEED; generators of residues.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "crenel/core/types.h"

namespace crenel::test {

using Rng = std::mt19937_64;

inline u64 run_seed() {
  static const u64 seed = [] {
    const char* wanted = std::getenv("CRENEL_SEED");
    const u64 value = wanted ? std::strtoull(wanted, nullptr, 0)
                             : (u64(std::random_device{}()) << 32 | std::random_device{}());
    std::printf("CRENEL_SEED=%llu\n", static_cast<unsigned long long>(value));
    std::fflush(stdout);
    return value;
  }();
  return seed;
}

/// A generator that depends on the run's seed and the running test's name, not on the tests before
/// it.
inline Rng test_rng() {
  u64 hash = 0xcbf29ce484222325u ^ run_seed();
  if (const auto* info = testing::UnitTest::GetInstance()->current_test_info()) {
    // The parameter (device) is left out: every device sees the same numbers.
    std::string name = std::string(info->test_suite_name()) + "." + info->name();
    for (const char c : name.substr(0, name.rfind('/'))) hash = (hash ^ u8(c)) * 0x100000001b3u;
  }
  return Rng(hash);
}

/// How to fill a limb.
enum class Fill { random, zero, top, alternating, periodic };

inline const char* name_of(Fill f) {
  switch (f) {
    case Fill::random:
      return "random";
    case Fill::zero:
      return "zero";
    case Fill::top:
      return "all q-1";
    case Fill::alternating:
      return "alternating 0, q-1";
    case Fill::periodic:
      return "period 3";
  }
  return "";
}
inline constexpr Fill kEveryFill[] = {Fill::random, Fill::zero, Fill::top, Fill::alternating,
                                      Fill::periodic};

template <class W>
void fill_limb(W* data, u64 n, W q, Fill fill, Rng& rng) {
  const W cycle[3] = {static_cast<W>(rng() % q), static_cast<W>(q / 2), static_cast<W>(q - 1)};
  for (u64 i = 0; i < n; ++i) {
    switch (fill) {
      case Fill::random:
        data[i] = static_cast<W>(rng() % q);
        break;
      case Fill::zero:
        data[i] = 0;
        break;
      case Fill::top:
        data[i] = q - 1;
        break;
      case Fill::alternating:
        data[i] = i % 2 ? static_cast<W>(q - 1) : W(0);
        break;
      case Fill::periodic:
        data[i] = cycle[i % 3];
        break;
    }
  }
}

}  // namespace crenel::test
