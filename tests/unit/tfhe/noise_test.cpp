// Linear forms of noise against a plain account: for every message, what it has of every error.
#include "tfhe/noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "support/random.h"

namespace crenel::tfhe {
namespace {

TEST(TfheNoiseForms, SumsOfOneThingAddFactorsAndOfTwoSquares) {
  const Noise x(4, 10.5), y(4, 10.5);
  Noise sum = x;
  sum.add(y, 1);
  EXPECT_DOUBLE_EQ(sum.variance(), 21);
  Noise twice = x;
  twice.add(x, 1);
  EXPECT_DOUBLE_EQ(twice.variance(), 42);
  sum.add(x, -1);
  EXPECT_DOUBLE_EQ(sum.variance(), 10.5);
  sum.add(y, -1);
  EXPECT_EQ(sum.variance(), 0);
  EXPECT_DOUBLE_EQ(x.scaled(-3).variance(), 94.5);
  EXPECT_EQ(x.scaled(0).variance(), 0);
  EXPECT_EQ(x.scaled(0).size(), 4u);
  EXPECT_EQ(Noise(7).variance(), 0);
  EXPECT_EQ(Noise(7).size(), 7u);
}

// The same message again is the same noise, another message of the same array is not.
TEST(TfheNoiseForms, SlicesKnowWhichMessagesTheyHold) {
  const Noise x(8, 1);
  Noise same = x.slice(0, 4);
  same.add(x.slice(0, 4), 1);
  EXPECT_DOUBLE_EQ(same.variance(), 4);
  Noise halves = x.slice(0, 4);
  halves.add(x.slice(4, 4), 1);
  EXPECT_DOUBLE_EQ(halves.variance(), 2);
  Noise difference = x.slice(0, 4);
  difference.add(x.slice(4, 4), -1);
  EXPECT_DOUBLE_EQ(difference.variance(), 2) << "different messages do not cancel";
  Noise again = x.slice(0, 3);
  again.append(x.slice(3, 5));
  again.add(x, -1);
  EXPECT_EQ(again.variance(), 0);
}

// Results of one rotation: nothing is known of how their errors go together, so that standard
// deviations add up, also where they are subtracted; results of two rotations are independent.
TEST(TfheNoiseForms, ErrorsOfOneGroupMayDependOnEachOther) {
  const Noise x(12, 2.25, 4);
  EXPECT_DOUBLE_EQ(x.variance(), 2.25);
  const auto of = [&](std::initializer_list<std::pair<u64, double>> parts) {
    Noise sum(1);
    for (const auto& [at, factor] : parts) sum.add(x.slice(at, 1), factor);
    return sum.variance();
  };
  EXPECT_DOUBLE_EQ(of({{0, 1}, {1, 1}}), 9);
  EXPECT_DOUBLE_EQ(of({{0, 1}, {3, -1}}), 9);
  EXPECT_DOUBLE_EQ(of({{0, 1}, {0, -1}}), 0) << "the same error";
  EXPECT_DOUBLE_EQ(of({{1, 1}, {5, 1}, {9, 2}}), 6 * 2.25);
  EXPECT_DOUBLE_EQ(of({{9, 1}, {0, 2}, {8, -1}, {3, 1}}), (4 + 9) * 2.25);
  Noise columns(4), rows(3);  // of [message][output]
  for (u64 i = 0; i < 3; ++i) columns.add(x.slice(4 * i, 4), 1);
  EXPECT_DOUBLE_EQ(columns.variance(), 3 * 2.25);
  Noise other(4, 2.25, 4);
  columns.add(other, 1);
  EXPECT_DOUBLE_EQ(columns.variance(), 4 * 2.25) << "another source";
  // shifted by less than a group: of some messages they are of one group
  Noise shifted = x.slice(0, 8);
  shifted.add(x.slice(3, 8), 1);
  EXPECT_DOUBLE_EQ(shifted.variance(), 9);
}

/// For every message: (source, its message) -> factor. Variances by source.
struct Account {
  std::vector<std::map<std::pair<int, u64>, double>> messages;
  double variance(const std::vector<double>& of) const {
    double most = 0;
    for (const auto& m : messages) {
      double sum = 0;
      for (const auto& [key, f] : m) sum += f * f * of[static_cast<std::size_t>(key.first)];
      most = std::max(most, sum);
    }
    return most;
  }
};

TEST(TfheNoiseForms, AnyHistoryIsTheAccountOfEveryMessage) {
  test::Rng rng = test::test_rng();
  constexpr u64 kSize = 12;
  for (int round = 0; round < 300; ++round) {
    std::vector<Noise> forms;
    std::vector<Account> accounts;
    std::vector<double> variances;
    for (int s = 0; s < 3; ++s) {
      variances.push_back(1 + double(rng() % 50));
      forms.emplace_back(kSize, variances.back());
      Account a;
      for (u64 i = 0; i < kSize; ++i) a.messages.push_back({{{s, i}, 1.0}});
      accounts.push_back(std::move(a));
    }
    for (int step = 0; step < 8; ++step) {
      const std::size_t i = rng() % forms.size(), j = rng() % forms.size();
      Noise form;
      Account account;
      if (rng() % 2) {  // rotated: a slice behind another
        const u64 at = 1 + rng() % (kSize - 1);
        form = forms[i].slice(at, kSize - at);
        form.append(forms[j].slice(0, at));
        const auto &a = accounts[i].messages, &b = accounts[j].messages;
        account.messages.assign(a.begin() + std::ptrdiff_t(at), a.end());
        account.messages.insert(account.messages.end(), b.begin(), b.begin() + std::ptrdiff_t(at));
      } else {
        const double factor = double(rng() % 7) - 3;
        form = forms[i];
        form.add(forms[j], factor);
        account = accounts[i];
        for (u64 m = 0; m < kSize; ++m)
          for (const auto& [key, f] : accounts[j].messages[m])
            account.messages[m][key] += factor * f;
      }
      ASSERT_EQ(form.size(), kSize);
      ASSERT_NEAR(form.variance(), account.variance(variances),
                  1e-9 * (1 + account.variance(variances)))
          << "round " << round << " step " << step;
      forms.push_back(std::move(form));
      accounts.push_back(std::move(account));
    }
  }
}

// Beyond kMaxParts nothing is claimed to be independent any more: never less than the truth.
TEST(TfheNoiseForms, LongSumsAreBoundedFromAbove) {
  std::vector<Noise> all;
  for (std::size_t i = 0; i < 3 * Noise::kMaxParts; ++i) all.emplace_back(2, 1.0);
  Noise sum(2);
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum.add(all[i], 1);
    EXPECT_GE(sum.variance(), double(i + 1) * (1 - 1e-12));
    if (i < Noise::kMaxParts) {
      EXPECT_DOUBLE_EQ(sum.variance(), double(i + 1));
    }
  }
  EXPECT_LT(sum.variance(), 9.0 * double(all.size()));
  const double before = sum.variance();
  sum.add(sum, 1);
  EXPECT_GE(sum.variance(), 4 * before * (1 - 1e-12));
  sum.add(all[0], -1);  // it may have been in the sum or not: no cancelling
  EXPECT_GE(sum.variance(), 4 * before * (1 - 1e-12));
}

}  // namespace
}  // namespace crenel::tfhe
