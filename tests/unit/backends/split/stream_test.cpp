// Memory of devices of several parts: every copy against the same one in host memory, and refusals.
#include "crenel/core/error.h"
#include "crenel/device/link.h"
#include "device/limb_room.h"
#include "support/context.h"
#include "support/devices.h"
#include "support/random.h"

namespace crenel::device {
namespace {

using rns::LimbSet;

// Limbs with their copy in host memory.
struct Mirrored {
  Mirrored(Stream& s, const LimbSet& set, u64 row_count, std::size_t bytes_of_limb, test::Rng& rng)
      : stream(s), limbs(set), rows(row_count), limb_bytes(bytes_of_limb) {
    buffer = s.allocate_limbs(limbs, {.rows = rows, .limb_bytes = limb_bytes});
    host.resize(rows * limbs.size() * limb_bytes);
    for (u8& byte : host) byte = static_cast<u8>(rng());
    s.copy_in(buffer.data(), host.data(), host.size());
  }
  u8* at(u64 offset) { return buffer.as<u8>() + offset; }
  u64 row_bytes() const { return limbs.size() * limb_bytes; }
  void expect_equal(const std::string& after) {
    std::vector<u8> found(host.size());
    stream.copy_out(found.data(), buffer.data(), found.size());
    EXPECT_TRUE(found == host) << after;
  }

  Stream& stream;
  LimbSet limbs;
  u64 rows;
  std::size_t limb_bytes;
  Buffer buffer;
  std::vector<u8> host;
};

// Windows of a chain with special primes behind them, as polynomials have.
LimbSet random_limbs(test::Rng& rng) {
  const u32 begin = static_cast<u32>(rng() % 5), count = static_cast<u32>(1 + rng() % 7);
  LimbSet limbs = LimbSet::range(begin, begin + count);
  return rng() % 2 == 0 ? limbs : limbs.concat(LimbSet::range(20, 20 + u32(1 + rng() % 4)));
}

void copy_both(Mirrored& to, u64 to_at, u64 to_pitch, Mirrored& from, u64 from_at, u64 from_pitch,
               u64 row_bytes, u64 rows) {
  to.stream.copy_rows(to.at(to_at), to_pitch, from.at(from_at), from_pitch, row_bytes, rows);
  for (u64 r = 0; r < rows; ++r)
    std::copy_n(from.host.data() + from_at + r * from_pitch, row_bytes,
                to.host.data() + to_at + r * to_pitch);
  to.expect_equal(
      cat(rows, " rows of ", row_bytes, " bytes; repeat with CRENEL_SEED=", test::run_seed()));
}

class SplitStreams : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<Device> device_ = open(GetParam());
  std::shared_ptr<Stream> stream_ = device_->make_stream();
  test::Rng rng_ = test::test_rng();
  u64 upto(u64 most) { return rng_() % (most + 1); }
};

TEST_P(SplitStreams, CopiesAreThoseOfHostMemory) {
  for (int round = 0; round < 60; ++round) {
    const LimbSet limbs = random_limbs(rng_);
    const u64 rows = 1 + upto(3), bytes = 64;
    Mirrored a(*stream_, limbs, rows, bytes, rng_), b(*stream_, limbs, rows, bytes, rng_);
    // Any stretch of whole polynomials and parts of them, where both have the same limbs.
    const u64 begin = upto(a.host.size() - 1), size = 1 + upto(a.host.size() - begin - 1);
    copy_both(a, begin, size, b, begin, size, size, 1);
    // A window of every row, as a polynomial of its own.
    const u32 first = static_cast<u32>(upto(limbs.size() - 1));
    const u32 count = static_cast<u32>(1 + upto(limbs.size() - first - 1));
    LimbSet window;
    for (u32 i = 0; i < count; ++i) window.push_back(limbs[first + i]);
    Mirrored c(*stream_, window, rows, bytes, rng_);
    copy_both(c, 0, c.row_bytes(), a, first * bytes, a.row_bytes(), c.row_bytes(), rows);
    // One word of every run, to limbs that are shorter, and back.
    Mirrored words(*stream_, limbs, rows, bytes / 4, rng_);
    copy_both(words, 0, 4, a, 0, 16, 4, words.host.size() / 4);
    copy_both(b, 4, 16, words, 0, 4, 4, words.host.size() / 4);
    // In place, a run doubled.
    copy_both(a, 8, 16, a, 0, 16, 8, a.host.size() / 16);
    stream_->fill_zero(a.at(begin), size);
    std::fill_n(a.host.data() + begin, size, u8(0));
    a.expect_equal("fill_zero");
    b.expect_equal("another's copies");
  }
}

TEST_P(SplitStreams, EveryPartHasItsShareAndGivesItBack) {
  const auto parts = device_->parts();
  const LimbSet limbs = LimbSet::range(3, 3 + 4 * static_cast<u32>(parts.size()));
  const u64 bytes = u64(limbs.size()) << 20;
  const auto shared = device_->shared_stream();
  {
    const Buffer keys =
        shared->allocate_limbs(limbs, {.rows = 1, .limb_bytes = 1 << 20, .exact = true});
    EXPECT_EQ(keys.bytes(), bytes);
    EXPECT_EQ(device_->pools().in_use, bytes);
    for (const auto& part : parts) EXPECT_EQ(part->pools().in_use, bytes / parts.size());
    const Buffer all = shared->allocate(1000);
    for (const auto& part : parts) EXPECT_GE(part->pools().in_use, bytes / parts.size() + 1000);
  }
  EXPECT_EQ(device_->pools().in_use, 0u);
  for (const auto& part : parts) EXPECT_EQ(part->pools().in_use, 0u);
  device_->trim();
  for (const auto& part : parts) EXPECT_EQ(part->pools().idle, 0u);
}

// One room, one shape after the other: what is copied in comes out, each part has its share, and
// what a shape does not have is refused.
TEST_P(SplitStreams, RoomsChangeTheirShape) {
  const std::size_t bytes = 64;
  std::vector<LimbShape> shapes;
  for (int k = 0; k < 6; ++k) shapes.push_back({random_limbs(rng_), 1 + upto(3), bytes});
  std::size_t most = 0;
  for (const LimbShape& shape : shapes) most = std::max(most, shape.bytes());
  const Buffer room = allocate_room(*stream_, shapes);
  EXPECT_EQ(room.bytes(), room_bytes(*stream_, shapes));
  EXPECT_GE(room.bytes(), most);
  EXPECT_LE(room.bytes(), device_->parts().size() * most);
  u8 byte = 0;
  EXPECT_THROW(stream_->copy_in(room.data(), &byte, 1), StateError) << "no limbs yet";
  for (int turn = 0; turn < 20; ++turn) {
    const LimbShape& shape = shapes[upto(shapes.size() - 1)];
    SCOPED_TRACE(cat("turn ", turn, "; repeat with CRENEL_SEED=", test::run_seed()));
    reshape(*stream_, room, shape);
    std::vector<u8> in(shape.bytes()), out(in.size());
    for (u8& value : in) value = static_cast<u8>(rng_());
    stream_->copy_in(room.data(), in.data(), in.size());
    stream_->copy_out(out.data(), room.data(), out.size());
    EXPECT_EQ(in, out);
    // A row of it against the same limbs elsewhere: copies see the shape of now.
    Mirrored row(*stream_, shape.limbs, 1, bytes, rng_);
    stream_->copy(row.buffer.data(), room.data(), row.host.size());
    std::copy_n(in.data(), row.host.size(), row.host.data());
    row.expect_equal("a copy of a row");
    EXPECT_THROW(stream_->copy_in(room.data(), out.data(), out.size() + 1), StateError);
  }
  const LimbShape large{LimbSet::range(0, 24), 64, bytes};
  EXPECT_THROW(reshape(*stream_, room, large), StateError);
  const Buffer all = stream_->allocate(large.bytes());
  EXPECT_THROW(reshape(*stream_, all, large), StateError);
}

TEST_P(SplitStreams, CopiesFromAndToOtherDevices) {
  const LimbSet limbs = random_limbs(rng_);
  Mirrored here(*stream_, limbs, 2, 256, rng_);
  const auto ref = open("ref");
  const auto other = ref->make_stream();
  const Buffer there = other->allocate(here.host.size());
  copy_across(*other, there.data(), *stream_, here.buffer.data(), here.host.size());
  EXPECT_EQ(std::vector<u8>(there.as<u8>(), there.as<u8>() + there.bytes()), here.host);
  // Two devices that divide differently.
  const auto pair = open("cpu+cpu");
  const auto two = pair->make_stream();
  Mirrored apart(*two, limbs, 2, 256, rng_);
  copy_across(*two, apart.buffer.data(), *stream_, here.buffer.data(), here.host.size());
  apart.host = here.host;
  apart.expect_equal("a copy between divided devices");
  EXPECT_EQ(road_between(*device_, *ref), Road::within);
  EXPECT_EQ(road_between(*ref, *device_), Road::within);
}

TEST_P(SplitStreams, RefusesWhatCannotBeItsOwn) {
  const Buffer a = stream_->allocate_limbs(LimbSet::range(0, 3), {.rows = 1, .limb_bytes = 64});
  const Buffer b = stream_->allocate_limbs(LimbSet::range(1, 4), {.rows = 1, .limb_bytes = 64});
  const Buffer flat = stream_->allocate(192);
  u8 byte = 0;
  EXPECT_THROW(stream_->copy(a.data(), b.data(), 192), StateError) << "other primes";
  EXPECT_THROW(stream_->copy(a.data(), flat.data(), 192), StateError);
  EXPECT_THROW(stream_->copy_in(a.as<u8>() + 192, &byte, 1), StateError) << "beyond the end";
  EXPECT_THROW(stream_->copy_out(&byte, &byte, 1), StateError) << "memory of the host";
  EXPECT_THROW(device_->allocate(100), StateError);
  EXPECT_THROW(backend_of(*device_).make_torus_kernels({}), UnsupportedError);
}

INSTANTIATE_TEST_SUITE_P(, SplitStreams,
                         testing::Values("cpu+cpu", "ref+ref+ref", "cpu+cpu+cpu+cpu"),
                         test::test_name);

}  // namespace
}  // namespace crenel::device
