// Staged keys on a device that tells what streams wait for, and whose copies from the host fail
// when they are told to.
#include "rlwe/staged_keys.h"

#include "ckks/objects.h"
#include "support/circuits.h"
#include "support/watched_device.h"

namespace crenel::rlwe {
namespace {

using test::Values;

class WatchedKeys : public ::testing::Test {
 protected:
  static constexpr i64 kSteps = 4;

  std::shared_ptr<test::WatchedDevice> device_ = std::make_shared<test::WatchedDevice>("cpu");
  ckks::Context context_{test::world_params("s40"), device_};
  ckks::Client client_ = context_.keygen();
  ckks::EvaluationKeys keys_ = client_.evaluation_keys({{1, 2, 3, 4}, false, false});
  ckks::Evaluator direct_ = context_.evaluator(keys_);
  ckks::Ciphertext x_ = client_.encrypt(Values(8, 0.5));

  u64 key_bytes() const { return keys_.bytes() / kSteps; }
  ckks::EvaluationKeys staged(u64 frames) const { return keys_.staged(frames * key_bytes()); }
  /// Copies from the host that one key takes.
  u64 uploads_of_a_key() const { return context_.state().ring->chain().dnum(); }
  bool waited_for(const device::Stream& stream) const {
    const auto& w = device_->waits;
    return std::find(w.begin(), w.end(), &stream) != w.end();
  }
};

// Two streams read one key: neither may still do so when another key takes its place.
TEST_F(WatchedKeys, AFrameIsGivenUpAfterEveryStreamThatReadIt) {
  const ckks::Evaluator here = context_.evaluator(staged(2));
  const ckks::Evaluator there = here.on(device_->make_stream());
  here.rotate(x_, 1);
  there.rotate(x_, 1);
  here.rotate(x_, 2);
  device_->waits.clear();
  here.rotate(x_, 3);  // takes the frame of 1, which was not used for longest
  EXPECT_TRUE(waited_for(here.stream()));
  EXPECT_TRUE(waited_for(there.stream()));
}

TEST_F(WatchedKeys, AKeyThatDoesNotArriveLeavesNothingBehind) {
  ASSERT_GE(uploads_of_a_key(), 2u);
  const ckks::Evaluator ev = context_.evaluator(staged(2));
  const auto rotated = [&](const ckks::Evaluator& by, i64 k) {
    return test::bits(by.rotate(x_, k));
  };
  EXPECT_EQ(rotated(ev, 1), rotated(direct_, 1));
  EXPECT_EQ(rotated(ev, 2), rotated(direct_, 2));
  device_->uploads_left = 1;  // a digit of key 3, in the frame of key 1
  test::expect_error<DeviceError>([&] { ev.rotate(x_, 3); });
  device_->uploads_left.reset();
  for (i64 k = 1; k <= kSteps; ++k) EXPECT_EQ(rotated(ev, k), rotated(direct_, k)) << k;

  // Of two keys at once the second: the lease of the first ends too.
  const ckks::Evaluator fresh = context_.evaluator(staged(2));
  const i64 first[] = {1, 2}, other[] = {3, 4};
  device_->uploads_left = uploads_of_a_key();
  test::expect_error<DeviceError>([&] { fresh.rotate_sum(x_, first); });
  device_->uploads_left.reset();
  EXPECT_EQ(test::bits(fresh.rotate_sum(x_, other)), test::bits(direct_.rotate_sum(x_, other)));
}

// A pass is one thread's, and what does not finish is no order.
TEST_F(WatchedKeys, OperationsBetweenPassesAreNoPartOfOne) {
  const ckks::EvaluationKeys keys = staged(2);
  const ckks::Evaluator ev = context_.evaluator(keys);
  const std::shared_ptr<KeySource> source = keys.data()->staged;
  const int order = 0;
  const auto pass = [&] {
    const KeySource::Pass p(source, &order);
    for (i64 k : {1, 2, 3}) ev.rotate(x_, k);
  };
  pass();
  const auto uploads_of_a_pass = [&] {
    const u64 before = device_->uploads;
    pass();
    return device_->uploads - before;
  };
  const u64 alone = uploads_of_a_pass();
  EXPECT_EQ(uploads_of_a_pass(), alone);
  const u64 between = device_->uploads;
  for (int k = 0; k < 5; ++k) ev.rotate(x_, 1);  // is there: brings nothing, and moves nothing on
  EXPECT_EQ(device_->uploads, between);
  EXPECT_EQ(uploads_of_a_pass(), alone);
  try {
    const KeySource::Pass p(source, &order);
    ev.rotate(x_, 3);
    throw StateError("half way", {});
  } catch (const StateError&) {
  }
  pass();  // from other frames than usual
  EXPECT_EQ(uploads_of_a_pass(), alone);
}

TEST_F(WatchedKeys, BytesThatAreTooFewAreNamed) {
  const auto e = test::expect_error<ParameterError>([&] { keys_.staged(2 * key_bytes() - 1); });
  EXPECT_EQ(e.field("expected"), cat(2 * key_bytes()));
  const ckks::EvaluationKeys single = client_.evaluation_keys({{1}, false, false});
  EXPECT_EQ(single.staged(single.bytes()).bytes(), single.bytes());
  const auto one = test::expect_error<ParameterError>([&] { single.staged(1); });
  EXPECT_EQ(one.field("expected"), cat(single.bytes()));
}

}  // namespace
}  // namespace crenel::rlwe
