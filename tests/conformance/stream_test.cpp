// Graph replay, determinism across threads and streams, and the memory pool, on every device.
#if defined(_OPENMP)
#include <omp.h>
#endif

#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

class Streams : public DeviceTest {};
CRENEL_SUITE_OVER(Streams, with_split(test_devices()));

using V = Views;

// A relinearised, rescaled product: every kind of operation in one sequence.
class Composite {
 public:
  Composite(const std::shared_ptr<device::Device>& device, Rng& rng)
      : chain_(toy_chain(2, 9, 4)), context_(make_context(device, 12, chain_.primes)) {
    const auto moduli = moduli_of(*context_.ring);
    window_ = LimbSet::range(1, 11);
    extended_ = window_.concat(LimbSet::range(11, 15));
    const LimbSet lower = LimbSet::range(0, 9);
    mod_up_ =
        context_.kernels->prepare(rns::make_mod_up(moduli, window_, LimbSet::range(11, 15), 4));
    divide_ = context_.kernels->prepare(rns::make_divide(moduli, extended_, lower));
    digits_ = static_cast<u32>(mod_up_->digits.size());
    const auto poly = [&](u32 components, const LimbSet& limbs, u32 batch = 1) {
      return random_poly(*context_.ring, rng, {12, components, batch}, limbs, Domain::eval);
    };
    polys_ = {garbage_poly(rng, {12, 2, 1}, lower, Domain::eval), poly(2, window_),
              poly(2, window_), poly(2, LimbSet::range(0, 15), 3)};
    for (const auto& p : polys_) {
      buffers_.push_back(memory_for(*context_.stream, p));
      views_.push_back(p.at(buffers_.back().as<u32>()));
    }
    upload();
  }

  void upload() {
    for (std::size_t i = 0; i < polys_.size(); ++i)
      context_.stream->copy_in(buffers_[i].data(), polys_[i].words.data(), buffers_[i].bytes());
  }
  // New inputs in the same memory.
  void change_inputs(Rng& rng) {
    for (std::size_t i = 1; i < polys_.size(); ++i) fill_canonical(polys_[i], *context_.ring, rng);
    upload();
  }

  // Queues the work on `stream`.
  void queue(device::Stream& stream) {
    auto& k = *context_.kernels;
    const auto temporary = [&](u32 components, const LimbSet& limbs, device::Buffer& memory) {
      memory = stream.allocate_limbs(limbs, {.rows = components, .limb_bytes = sizeof(u32) << 12});
      return PolyView<u32>(memory.as<u32>(), {12, components, 1}, limbs, Domain::eval);
    };
    device::Buffer m0, m1, m2, m3;
    const auto product = temporary(3, window_, m0);
    k.tensor(stream, product, views_[1], views_[2]);
    const auto digits = temporary(digits_, extended_, m1);
    k.mod_up(stream, digits, product.components(2, 1), mod_up_);
    const auto switched = temporary(2, extended_, m2);
    k.key_multiply(stream, switched, digits, views_[3], 0);
    const auto rotated = temporary(2, extended_, m3);
    k.automorphism(stream, rotated, switched, 25);
    k.automorphism_add(stream, rotated, switched, 8191);
    k.divide(stream, views_[0], rotated, divide_);
    // An error on top, sampled on the device.
    device::Buffer m4;
    auto error = temporary(2, views_[0].limbs, m4);
    auto coefficients = error;
    coefficients.domain = Domain::coeff;
    k.sample_error(stream, coefficients, {}, {random::Purpose::test, 7});
    k.ntt(stream, error, coefficients);
    k.add(stream, views_[0], views_[0], error);
  }

  std::vector<u32> result(device::Stream& stream) {
    stream.synchronize();
    std::vector<u32> words(polys_[0].words.size());
    stream.copy_out(words.data(), buffers_[0].data(), words.size() * sizeof(u32));
    return words;
  }
  void spoil_output() {
    context_.stream->copy_in(buffers_[0].data(), polys_[0].words.data(), buffers_[0].bytes());
  }
  device::Stream& stream() { return *context_.stream; }

 private:
  Chain chain_;
  Context context_;
  LimbSet window_, extended_;
  device::Prepared<rns::ModUp> mod_up_;
  device::Prepared<rns::Divide> divide_;
  u32 digits_ = 0;
  std::vector<TestPoly> polys_;
  std::vector<device::Buffer> buffers_;
  V views_;
};

std::vector<u32> eager(Composite& c) {
  c.queue(c.stream());
  return c.result(c.stream());
}

TEST_P(Streams, MatchesReference) {
  Rng rng = test_rng(), same_rng = test_rng();
  Composite candidate(device_, rng), reference(device::make_ref_device(), same_rng);
  EXPECT_TRUE(eager(candidate) == eager(reference));
}

TEST_P(Streams, GraphReplayEqualsEager) {
  Rng rng = test_rng();
  Composite c(device_, rng);
  const auto expected = eager(c);
  c.spoil_output();
  auto graph = c.stream().capture([&] { c.queue(c.stream()); });
  for (int round = 0; round < 2; ++round) {
    c.spoil_output();
    graph->launch(c.stream());
    EXPECT_TRUE(c.result(c.stream()) == expected) << "replay " << round;
  }
  c.change_inputs(rng);
  const auto changed = eager(c);
  EXPECT_FALSE(changed == expected);
  c.spoil_output();
  graph->launch(c.stream());
  EXPECT_TRUE(c.result(c.stream()) == changed) << "replay on new inputs";
}

// Memory that a graph uses must not be handed out to others between replays.
TEST_P(Streams, GraphKeepsItsMemory) {
  Rng rng = test_rng();
  Composite c(device_, rng);
  auto graph = c.stream().capture([&] { c.queue(c.stream()); });
  const auto expected = eager(c);
  std::vector<device::Buffer> others;
  const std::vector<u32> pattern(1 << 16, 0xa5a5a5a5u);
  for (int i = 0; i < 24; ++i) {
    others.push_back(c.stream().allocate(pattern.size() * sizeof(u32)));
    c.stream().copy_in(others.back().data(), pattern.data(), pattern.size() * sizeof(u32));
  }
  graph->launch(c.stream());
  EXPECT_TRUE(c.result(c.stream()) == expected);
  std::vector<u32> back(pattern.size());
  for (const auto& other : others) {
    c.stream().copy_out(back.data(), other.data(), back.size() * sizeof(u32));
    EXPECT_TRUE(back == pattern) << "a replay wrote into memory of another buffer";
  }
}

TEST_P(Streams, ThreadCountDoesNotMatter) {
#if defined(_OPENMP)
  Rng rng = test_rng();
  Composite c(device_, rng);
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const auto one = eager(c);
  for (const int threads : {2, 3, 8}) {
    c.spoil_output();
    omp_set_num_threads(threads);
    EXPECT_TRUE(eager(c) == one) << threads << " threads";
  }
  omp_set_num_threads(before);
#else
  GTEST_SKIP() << "built without OpenMP";
#endif
}

TEST_P(Streams, TwoStreamsAgree) {
  Rng rng = test_rng(), same_rng = test_rng();
  Composite first(device_, rng), second(device_, same_rng);
  for (int round = 0; round < 3; ++round) {  // interleaved, without waiting in between
    first.queue(first.stream());
    second.queue(second.stream());
  }
  EXPECT_TRUE(first.result(first.stream()) == second.result(second.stream()));
}

TEST_P(Streams, WaitForOrdersWork) {
  Rng rng = test_rng();
  Composite c(device_, rng);
  const auto expected = eager(c);
  auto other = device_->make_stream();
  for (int round = 0; round < 4; ++round) {
    c.spoil_output();
    other->wait_for(c.stream());
    c.queue(*other);
    c.stream().wait_for(*other);
    EXPECT_TRUE(c.result(c.stream()) == expected);
    other->synchronize();
  }
}

TEST_P(Streams, PoolStopsGrowing) {
  Rng rng = test_rng();
  Composite c(device_, rng);
  const std::size_t base = c.stream().bytes_in_use();
  c.queue(c.stream());
  const std::size_t peak = c.stream().peak_bytes();
  EXPECT_GT(peak, base);
  EXPECT_EQ(c.stream().bytes_in_use(), base);
  for (int round = 0; round < 3; ++round) c.queue(c.stream());
  EXPECT_EQ(c.stream().peak_bytes(), peak);
  EXPECT_EQ(c.stream().bytes_in_use(), base);
  c.stream().trim();
  EXPECT_EQ(c.stream().bytes_in_use(), base);
}

TEST_P(Streams, CopiesAndZeros) {
  auto stream = device_->make_stream();
  std::vector<u8> bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<u8>(i * 7 + 1);
  auto a = stream->allocate(1000), b = stream->allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.data()) % 256, 0u);
  stream->copy_in(a.data(), bytes.data(), 1000);
  stream->fill_zero(b.data(), 1000);
  // Rows of 20 bytes, 50 apart, to rows 100 apart.
  stream->copy_rows(b.data(), 100, a.data(), 50, 20, 10);
  std::vector<u8> got(1000), expected(1000);
  for (std::size_t r = 0; r < 10; ++r)
    for (std::size_t i = 0; i < 20; ++i) expected[r * 100 + i] = bytes[r * 50 + i];
  stream->copy_out(got.data(), b.data(), 1000);
  EXPECT_EQ(got, expected);
  stream->copy(b.data(), a.data(), 1000);
  stream->copy_out(got.data(), b.data(), 1000);
  EXPECT_EQ(got, bytes);
}

// Rows of one word, of a few and of many bytes, more of them than a thread takes at a time; what
// lies between them stays as it was.
TEST_P(Streams, CopiesManyRows) {
  auto stream = device_->make_stream();
  auto rng = test_rng();
  for (const std::size_t row : {4u, 12u, 20000u})
    for (const std::size_t rows : {1u, 4095u, 9001u}) {
      if (row * rows > (std::size_t(1) << 23)) continue;
      const std::size_t from_pitch = 2 * row, to_pitch = row + 4;
      std::vector<u8> given(rows * from_pitch), expected(rows * to_pitch, 0xa5),
          got(rows * to_pitch);
      for (u8& b : given) b = static_cast<u8>(rng());
      auto a = stream->allocate(given.size()), b = stream->allocate(got.size());
      stream->copy_in(a.data(), given.data(), given.size());
      stream->copy_in(b.data(), expected.data(), expected.size());
      stream->copy_rows(b.data(), to_pitch, a.data(), from_pitch, row, rows);
      stream->copy_out(got.data(), b.data(), got.size());
      for (std::size_t r = 0; r < rows; ++r)
        std::copy_n(given.begin() + static_cast<long>(r * from_pitch), row,
                    expected.begin() + static_cast<long>(r * to_pitch));
      EXPECT_EQ(got, expected) << row << " bytes, " << rows << " rows";
    }
}

// Staged piece by piece on a GPU: sizes around the pieces, and what lies behind stays as it was.
TEST_P(Streams, SecretCopiesRoundTrip) {
  auto stream = device_->make_stream();
  auto rng = test_rng();
  constexpr std::size_t kMiB = std::size_t(1) << 20;
  for (const std::size_t bytes : {std::size_t(0), std::size_t(1), std::size_t(4095), kMiB - 1, kMiB,
                                  kMiB + 1, 5 * kMiB + 3}) {
    std::vector<u8> secret(bytes), got(bytes + 1, 0xa5);
    for (u8& b : secret) b = static_cast<u8>(rng());
    auto buffer = stream->allocate(bytes + 1, true);
    stream->fill_zero(buffer.data(), bytes + 1);
    stream->copy_in_secret(buffer.data(), secret.data(), bytes);
    stream->copy_out_secret(got.data(), buffer.data(), bytes);
    EXPECT_EQ(got.back(), 0xa5);
    stream->copy_out(got.data(), buffer.data(), bytes + 1);
    EXPECT_EQ(got.back(), 0);
    got.pop_back();
    EXPECT_EQ(got, secret) << bytes << " bytes";
  }
}

TEST_P(Streams, SecretBuffersAreWiped) {
  auto stream = device_->make_stream();
  // Of this test on this device alone: freed memory of the process may hold what others wrote.
  Rng rng(test_rng()() ^ std::hash<std::string>{}(GetParam()));
  std::vector<u8> secret(4096);
  for (u8& b : secret) b = static_cast<u8>(rng());
  {
    auto buffer = stream->allocate(secret.size(), true);
    stream->copy_in(buffer.data(), secret.data(), secret.size());
  }
  auto again = stream->allocate(secret.size());
  std::vector<u8> seen(secret.size());
  stream->copy_out(seen.data(), again.data(), seen.size());
  for (auto part = secret.begin(); part != secret.end(); part += 16)
    ASSERT_EQ(std::search(seen.begin(), seen.end(), part, part + 16), seen.end())
        << "byte " << part - secret.begin() << " of the secret and 15 more are still there";
}

}  // namespace
}  // namespace crenel::test
