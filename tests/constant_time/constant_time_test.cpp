// No branch and no address of a client's work depends on a secret: valgrind says so (probe.cpp).
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>

namespace crenel::test {
namespace {

constexpr int kReported = 99;
constexpr int kNoPath = 3;

struct Outcome {
  int code = -1;
  std::string text;
};

Outcome run(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char piece[4096];
  while (std::fgets(piece, sizeof piece, pipe) != nullptr) outcome.text += piece;
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

class ConstantTime : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
#if !defined(CRENEL_CONSTANT_TIME_PROBE)
    GTEST_SKIP() << "valgrind/memcheck.h was not found when this was built, or a sanitizer is on: "
                    "apt-get install valgrind";
#else
    if (run("valgrind --version").code != 0)
      GTEST_SKIP() << "valgrind was not found: apt-get install valgrind";
#endif
  }
  static Outcome watched() {
#if defined(CRENEL_CONSTANT_TIME_PROBE)
    return run("OMP_NUM_THREADS=1 valgrind --quiet --error-exitcode=" + std::to_string(kReported) +
               " \"" CRENEL_CONSTANT_TIME_PROBE "\" " + std::get<0>(GetParam()) + " " +
               std::get<1>(GetParam()));
#else
    return {};
#endif
  }
};

std::string name_of(const testing::TestParamInfo<std::tuple<const char*, const char*>>& info) {
  std::string name = std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(, ConstantTime,
                         testing::Combine(testing::Values("ckks-dense", "ckks-sparse",
                                                          "tfhe-gadget", "tfhe-raising",
                                                          "tfhe-packed", "sparse-sampler"),
                                          testing::Values("portable", "avx2")),
                         name_of);

TEST_P(ConstantTime, NothingDependsOnSecrets) {
  const Outcome outcome = watched();
  if (outcome.code == kNoPath) GTEST_SKIP() << "no such path here: " << std::get<1>(GetParam());
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(outcome.text.find("wrong"), std::string::npos) << outcome.text;
}

class ConstantTimeControl : public ConstantTime {};
INSTANTIATE_TEST_SUITE_P(, ConstantTimeControl,
                         testing::Combine(testing::Values("leaky-branch", "leaky-address"),
                                          testing::Values("portable")),
                         name_of);

TEST_P(ConstantTimeControl, WhatLeaksIsReported) {
  const Outcome outcome = watched();
  EXPECT_EQ(outcome.code, kReported) << outcome.text;
  EXPECT_NE(outcome.text.find("uninitialised"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace crenel::test
