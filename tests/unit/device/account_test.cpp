// The traffic account itself: what is collected, how stages nest, what a graph states.
#include "crenel/device/account.h"

#include <gtest/gtest.h>

#include "crenel/core/error.h"

namespace crenel::device {
namespace {

LaunchRecord record(Work work, u64 read, u64 written, const std::string& stage = "") {
  LaunchRecord r;
  r.kernel = "test";
  r.work = work;
  r.stage = stage;
  r.read_bytes = read;
  r.written_bytes = written;
  r.streamed_bytes = read / 2;
  r.multiply_adds = 3;
  r.butterflies = 2;
  return r;
}

TEST(Account, SumsAndClears) {
  const auto account = std::make_shared<Account>();
  EXPECT_EQ(account->total(), Traffic{});
  account->add(record(Work::ntt, 100, 10));
  account->add(std::vector{record(Work::copy, 20, 5), record(Work::ntt, 4, 2)});
  EXPECT_EQ(account->total(), (Traffic{3, 124, 17, 62, 9, 6}));
  ASSERT_EQ(account->records().size(), 3u);
  EXPECT_EQ(account->records()[1].work, Work::copy);
  account->clear();
  EXPECT_TRUE(account->records().empty());
}

TEST(Account, EveryKindOfWorkHasItsName) {
  std::vector<std::string> names;
  for (u32 i = 0; i < kWorks; ++i) names.emplace_back(name_of(static_cast<Work>(i)));
  EXPECT_EQ(names.front(), "ntt");
  EXPECT_EQ(names[static_cast<u32>(Work::key_multiply)], "key_multiply");
  EXPECT_EQ(names.back(), "copy");
}

TEST(Stage, NestsAndEndsInOrder) {
  const auto stream = open("ref")->make_stream();
  const auto account = std::make_shared<Account>();
  stream->account(account);
  EXPECT_EQ(stream->stage(), "");
  {
    const Stage outer(*stream, "bootstrap");
    EXPECT_EQ(stream->stage(), "bootstrap");
    {
      const Stage inner(*stream, "coeff_to_slot");
      EXPECT_EQ(stream->stage(), "bootstrap/coeff_to_slot");
    }
    EXPECT_EQ(stream->stage(), "bootstrap");
    const Stage next(*stream, "mod1");
    EXPECT_EQ(stream->stage(), "bootstrap/mod1");
  }
  EXPECT_EQ(stream->stage(), "");
  stream->account(nullptr);
}

TEST(Stage, IsNothingWithoutAnAccount) {
  const auto stream = open("ref")->make_stream();
  const Stage outer(*stream, "a");
  EXPECT_EQ(stream->stage(), "");
  const auto account = std::make_shared<Account>();
  stream->account(account);  // in the middle: the outer stage stays unknown
  {
    const Stage inner(*stream, "b");
    EXPECT_EQ(stream->stage(), "b");
    stream->account(nullptr);
  }
  EXPECT_EQ(stream->stage(), "");
}

// Backends that state nothing: a replay runs the callable and adds nothing of its own.
TEST(Account, StaysEmptyOnBackendsThatStateNothing) {
  const auto stream = open("ref")->make_stream();
  const Buffer a = stream->allocate(64), b = stream->allocate(64);
  const auto account = std::make_shared<Account>();
  stream->account(account);
  const auto graph = stream->capture([&] { stream->copy(b.data(), a.data(), 64); });
  graph->launch(*stream);
  EXPECT_TRUE(account->records().empty());
  EXPECT_EQ(stream->account(), account);
  stream->account(nullptr);
}

TEST(Account, ComesBackAfterAFailedCapture) {
  const auto stream = open("ref")->make_stream();
  const auto account = std::make_shared<Account>();
  stream->account(account);
  EXPECT_THROW(stream->capture([] { throw StateError("no"); }), StateError);
  EXPECT_EQ(stream->account(), account);
  stream->account(nullptr);
}

}  // namespace
}  // namespace crenel::device
