// A program of tests that begins no further one after CRENEL_TEST_SECONDS, and names each before it
// runs.
//
// Linked into the tests that ./run test runs under sanitizers because something changed
// (tools/runner/sanitized.py). Tests that time left no room for are skipped with that reason; one
// that does not end is the last that was named when ctest ends the program, which fails.
#include <gtest/gtest.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

using Clock = std::chrono::steady_clock;

class TimeBudget : public testing::EmptyTestEventListener {
 public:
  explicit TimeBudget(int seconds)
      : seconds_(seconds), end_(Clock::now() + std::chrono::seconds(seconds)) {}

 private:
  void OnTestStart(const testing::TestInfo& test) override {
    if (Clock::now() >= end_) {
      GTEST_SKIP() << "the time of " << seconds_
                   << " s for tests of what changed under sanitizers was over";
    }
    std::printf("running %s.%s\n", test.test_suite_name(), test.name());
    std::fflush(stdout);
  }

  int seconds_;
  Clock::time_point end_;
};

bool add_time_budget() {
  const char* wanted = std::getenv("CRENEL_TEST_SECONDS");
  if (wanted == nullptr) return false;
  int seconds = 0;
  const char* const end = wanted + std::strlen(wanted);
  const auto [stop, error] = std::from_chars(wanted, end, seconds);
  if (error != std::errc() || stop != end || seconds < 0) {
    std::fprintf(stderr, "CRENEL_TEST_SECONDS=%s: expected seconds, 0 or more\n", wanted);
    std::exit(2);
  }
  testing::UnitTest::GetInstance()->listeners().Append(new TimeBudget(seconds));
  return true;
}

const bool added = add_time_budget();

}  // namespace
