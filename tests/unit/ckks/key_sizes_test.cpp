// What keys take, said before they are made; refusals of everything that a device has no room for.
#include "ckks/key_sizes.h"

#include "crenel/ckks/serialize.h"
#include "support/ckks_world.h"
#include "support/watched_device.h"

namespace crenel::ckks {
namespace {

class CkksKeySizes : public test::SchemeTest {};

TEST_P(CkksKeySizes, AreWhatTheKeysTake) {
  auto rng = test::test_rng();
  for (const char* name : {"toy-boot40", "s35", "s50"}) {
    const Params& params = test::world_params(name);
    const Context context(params, GetParam());
    Client client = context.keygen();
    for (u32 trial = 0; trial < 4; ++trial) {
      KeyRequest request;
      const i64 slots = static_cast<i64>(params.slots());
      for (u32 k = 0; k < trial; ++k)
        request.rotations.push_back(static_cast<i64>(rng() % u64(4 * slots)) - 2 * slots);
      if (trial == 3) request.rotations.insert(request.rotations.end(), {0, 1, 1 + slots, 1});
      request.conjugate = rng() % 2;
      request.relinearisation = rng() % 2;
      request.encapsulation = std::string(name) == "toy-boot40" && trial % 2;
      if (request.encapsulation && trial % 4 == 1) request.encapsulation_rotations = {3, 0, 3};
      const auto level = [&] { return static_cast<u32>(rng() % (params.max_level() + 1)); };
      if (trial > 1) {
        request.max_level = level();
        request.relinearisation_level = level();
        for (i64 k : request.rotations)
          if (rng() % 2) request.rotation_levels[k] = level();
      }
      const KeySizes sizes = key_sizes(params, request);
      const u64 before = context.stream().bytes_in_use();
      const EvaluationKeys keys = client.evaluation_keys(request);
      EXPECT_EQ(sizes.count, keys.count());
      EXPECT_EQ(sizes.bytes, keys.bytes());
      EXPECT_EQ(sizes.bytes, context.stream().bytes_in_use() - before) << name;
    }
    const EvaluationKeys one = client.evaluation_keys();
    EXPECT_EQ(key_sizes(params).each, one.bytes());
  }
}

TEST_P(CkksKeySizes, EncapsulationIsRefusedAsByTheClient) {
  auto& w = world("s30");
  KeyRequest request;
  request.encapsulation = true;
  std::string here, there;
  try {
    key_sizes(w.params(), request);
  } catch (const Error& e) {
    here = e.what();
  }
  try {
    w.client.evaluation_keys(request);
  } catch (const Error& e) {
    there = e.what();
  }
  EXPECT_EQ(here, there);
}

CRENEL_DEVICE_SUITE(CkksKeySizes);

// On a device that says that it has little left: nothing is taken, and less works.
class CkksRoom : public testing::Test {
 protected:
  static constexpr u64 kMiB = u64(1) << 20;
  CkksRoom()
      : device_(std::make_shared<test::WatchedDevice>("cpu")),
        context_(test::world_params("s40"), device_),
        client_(context_.keygen()) {}

  // `request` is refused without an allocation and without a byte more in use.
  template <class F>
  OutOfMemoryError refused(u64 room, F request) {
    device_->trim();
    device_->room = room;
    const u64 allocations = device_->allocations, in_use = context_.stream().bytes_in_use();
    std::optional<OutOfMemoryError> error;
    try {
      request();
      ADD_FAILURE() << "not refused";
      error.emplace("not refused");
    } catch (const OutOfMemoryError& e) {
      error = e;
      EXPECT_GT(std::stoull(e.field("needed")), room);
      EXPECT_EQ(e.field("available"), cat(room));
      EXPECT_EQ(e.field("device"), "cpu");
    }
    EXPECT_EQ(device_->allocations, allocations) << error->what();
    EXPECT_EQ(context_.stream().bytes_in_use(), in_use);
    device_->room.reset();
    return *error;
  }
  void expect_works() {
    const std::vector<double> v(context_.params().slots(), 0.25);
    EXPECT_NEAR(client_.decrypt(client_.encrypt(v))[3].real(), 0.25, 1e-6);
  }

  test::Rng rng_ = test::test_rng();
  std::shared_ptr<test::WatchedDevice> device_;
  Context context_;
  Client client_;
};

TEST_F(CkksRoom, OfKeysAndAsManyAsFitAreMade) {
  KeyRequest request;
  for (i64 k = 1; k < 500; ++k) request.rotations.push_back(k);
  const KeySizes sizes = key_sizes(context_.params(), request);
  ASSERT_GT(sizes.bytes, 100 * kMiB);
  const auto e = refused(sizes.bytes - 1, [&] { client_.evaluation_keys(request); });
  EXPECT_EQ(e.field("needed"), cat(sizes.bytes + sizes.each / 2));
  const u64 few = 3 + rng_() % 20;
  const u64 room = few * sizes.each + sizes.each / 2 + rng_() % sizes.each;
  const auto f = refused(room, [&] { client_.evaluation_keys(request); });
  EXPECT_EQ(f.field("fits"), cat(few));
  EXPECT_NE(std::string(f.what()).find(cat(few, " of these keys fit")), std::string::npos);
  device_->room = room;
  request.rotations.resize(few - 1);  // and the relinearisation key
  EXPECT_EQ(client_.evaluation_keys(request).bytes(), few * sizes.each);
  expect_works();
}

TEST_F(CkksRoom, OfBatches) {
  const u32 batch = 4000;
  const std::vector<double> v(batch, 0.5);  // a value a row
  const auto e = refused(50 * kMiB, [&] { context_.encode(v, {}, 0.0, 0, batch); });
  EXPECT_LT(std::stoull(e.field("fits")), batch);
  refused(50 * kMiB, [&] { client_.encrypt(v, {}, 0.0, 0, batch); });
  const Plaintext plaintext = context_.encode(std::span(v).first(400), {}, 0.0, 0, 400);
  refused(50 * kMiB, [&] { client_.encrypt(plaintext); });
  const PublicKey key = client_.public_key();
  refused(50 * kMiB, [&] { key.encrypt(plaintext); });
  const Ciphertext c = client_.encrypt(plaintext);
  EXPECT_EQ(c.batch(), 400u);
  expect_works();
}

TEST_F(CkksRoom, OfManyRotations) {
  const Evaluator ev = context_.evaluator(client_.evaluation_keys({{1}, false, false}));
  const Ciphertext a = client_.encrypt(std::vector<double>(3, 1.0));
  const std::vector<i64> steps(1 + 80 * kMiB / a.bytes(), 1);
  const auto e = refused(70 * kMiB, [&] { ev.rotate_many(a, steps); });
  EXPECT_EQ(e.field("fits"), cat(70 * kMiB / a.bytes()));
  EXPECT_EQ(ev.rotate_many(a, std::span(steps).first(3)).size(), 3u);
  expect_works();
}

TEST_F(CkksRoom, OfStagingAndLoading) {
  KeyRequest request;
  const u64 each = key_sizes(context_.params()).each;
  for (i64 k = 1; u64(k) < 2 + 140 * kMiB / each; ++k) request.rotations.push_back(k);
  const EvaluationKeys keys = client_.evaluation_keys(request);
  refused(60 * kMiB, [&] { keys.staged(keys.bytes()); });
  EXPECT_EQ(keys.staged(4 * each).bytes(), 4 * each);
  const std::vector<u8> bytes = to_bytes(context_, keys);
  refused(keys.bytes() - 1, [&] { evaluation_keys_from_bytes(context_, bytes); });
  device_->room = keys.bytes();
  EXPECT_EQ(evaluation_keys_from_bytes(context_, bytes).bytes(), keys.bytes());
  expect_works();
}

TEST_F(CkksRoom, OfAContextsTables) {
  device_->room = 60 * kMiB;
  const u64 allocations = device_->allocations;
  const Params large = Params::generate(17, 40, 24);
  EXPECT_THROW(Context(large, device_), OutOfMemoryError);
  EXPECT_EQ(device_->allocations, allocations);
}

}  // namespace
}  // namespace crenel::ckks
