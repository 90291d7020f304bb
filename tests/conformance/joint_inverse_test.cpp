// The inverse transform in one launch has the bits of the one in two: for every number of limbs, on
// several streams at once, replayed. (With ref the suite of transforms compares it.)
#include <cstring>

#include "crenel/device/optimisations.h"
#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"
#include "support/together.h"

namespace crenel::test {
namespace {

using device::Optimisation;
using device::Optimisations;

std::vector<u64> primes_of(u32 log_n, u32 count) {
  return math::nearest_ntt_primes(u64(1) << 30, count, u64(1) << 29, (u64(1) << 31) - 1,
                                  u64(2) << log_n);
}

class JointInverse : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (device_ == nullptr) return;
    if (device_->info().kind != device::Kind::cuda)
      GTEST_SKIP() << "only CUDA has a transform in one launch";
    opened_ = true;
  }
  void TearDown() override {
    if (opened_) set_optimisations(*device_, {});
  }
  void in_one_launch(bool one) {
    set_optimisations(*device_,
                      one ? Optimisations() : Optimisations().without(Optimisation::joint_inverse));
  }

 private:
  bool opened_ = false;
};
CRENEL_CANDIDATE_SUITE(JointInverse);

// An input on the device and what its transform is written to.
struct Job {
  Job(Context& context, Rng& rng, PolyShape shape, u32 limbs) : context_(context) {
    const u32 primes = context.ring->prime_count();
    const u32 first = static_cast<u32>(rng() % (primes - limbs + 1));
    const LimbSet window = LimbSet::range(first, first + limbs);
    words_ = (u64(shape.polys()) * limbs) << shape.log_n;
    for (auto& memory : memory_) memory = context.stream->allocate(words_ * sizeof(u32));
    in_ = {memory_[0].as<u32>(), shape, window, Domain::eval};
    out_ = {memory_[1].as<u32>(), shape, window, Domain::coeff};
    random::Seed seed;
    for (u8& byte : seed) byte = static_cast<u8>(rng());
    context.kernels->sample_uniform(*context.stream, in_, seed, {random::Purpose::test, 0});
  }
  void transform() { context_.kernels->intt(*context_.stream, out_, in_); }
  void clear() { context_.stream->fill_zero(out_.data, words_ * sizeof(u32)); }
  std::vector<u32> result() {
    std::vector<u32> words(words_);
    context_.stream->synchronize();
    context_.stream->copy_out(words.data(), out_.data, words_ * sizeof(u32));
    return words;
  }

 private:
  Context& context_;
  device::Buffer memory_[2];
  PolyView<u32> in_, out_;
  u64 words_ = 0;
};

bool same(const std::vector<u32>& a, const std::vector<u32>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(u32)) == 0;
}

TEST_P(JointInverse, EveryNumberOfLimbs) {
  Rng rng = test_rng();
  const std::pair<u32, u32> polys[] = {{1, 1}, {2, 1}, {3, 1}, {2, 2}, {1, 5}, {2, 4}};
  for (const u32 log_n : {14u, 15u, 16u}) {
    const u32 most = log_n == 14 || log_n == 16 ? 60 : 9;
    Context context = make_context(device_, log_n, primes_of(log_n, most));
    const u32 step = log_n == 16 ? 3 : 1;
    for (u32 limbs = 1; limbs <= most; limbs += step) {
      const auto [components, batch] = polys[rng() % (limbs > 16 ? 3 : std::size(polys))];
      SCOPED_TRACE(
          cat("2^", log_n, ", ", limbs, " limbs, ", components, " components, batch ", batch));
      Job job(context, rng, {log_n, components, batch}, limbs);
      in_one_launch(false);
      job.transform();
      const auto expected = job.result();
      job.clear();
      in_one_launch(true);
      job.transform();
      ASSERT_TRUE(same(job.result(), expected)) << "repeat with CRENEL_SEED=" << run_seed();
    }
  }
}

// As the sources of conversions: scaled and shifted.
TEST_P(JointInverse, InModUpAndDivisions) {
  Rng rng = test_rng();
  for (const u32 log_n : {14u, 15u, 16u}) {
    SCOPED_TRACE(cat("2^", log_n));
    Context context = make_context(device_, log_n, primes_of(log_n, 10));
    const auto moduli = moduli_of(*context.ring);
    const LimbSet window = LimbSet::range(0, 7), special = LimbSet::range(7, 10);
    const LimbSet extended = window.concat(special);
    const auto up = context.kernels->prepare(rns::make_mod_up(moduli, window, special, 3));
    const auto down = context.kernels->prepare(rns::make_divide(moduli, extended, window));
    const u32 digits = static_cast<u32>(up->digits.size());
    const auto in = random_poly(*context.ring, rng, {log_n, 1, 2}, window, Domain::eval);
    const auto sums = random_poly(*context.ring, rng, {log_n, 2, 2}, extended, Domain::eval);
    const std::vector<TestPoly> polys = {
        garbage_poly(rng, {log_n, digits, 2}, extended, Domain::eval),
        garbage_poly(rng, {log_n, 2, 2}, window, Domain::eval), in, sums};
    const Operation both = [&](Context& c, const Views& v) {
      c.kernels->mod_up(*c.stream, v[0], v[2], up);
      c.kernels->divide(*c.stream, v[1], v[3], down);
    };
    in_one_launch(false);
    const auto expected = run_on(context, polys, both);
    in_one_launch(true);
    const auto got = run_on(context, polys, both);
    for (u32 i = 0; i < polys.size(); ++i) EXPECT_TRUE(same_words(polys[i], got[i], expected[i]));
  }
}

// Launches that fill the GPU several times over.
TEST_P(JointInverse, SeveralStreamsAtOnce) {
  Rng rng = test_rng();
  constexpr u32 kStreams = 4;
  std::vector<Context> contexts;
  for (u32 s = 0; s < kStreams; ++s)
    contexts.push_back(make_context(device_, 16, primes_of(16, 60)));
  std::vector<Job> jobs;
  std::vector<std::vector<u32>> expected;
  in_one_launch(false);
  for (u32 s = 0; s < kStreams; ++s) {
    jobs.emplace_back(contexts[s], rng, PolyShape{16, 1, 1}, 60 - 17 * s);
    jobs.back().transform();
    expected.push_back(jobs.back().result());
    jobs.back().clear();
  }
  in_one_launch(true);
  together(kStreams, [&](u64 s) {
    for (u32 i = 0; i < 200; ++i) jobs[s].transform();
  });
  for (u32 s = 0; s < kStreams; ++s)
    EXPECT_TRUE(same(jobs[s].result(), expected[s]))
        << "stream " << s << "; repeat with CRENEL_SEED=" << run_seed();
}

// Replays beside launches of the stream they were recorded on, and on another stream.
TEST_P(JointInverse, ReplaysBesideLaunches) {
  Rng rng = test_rng();
  Context context = make_context(device_, 16, primes_of(16, 60));
  std::vector<Job> jobs;
  std::vector<std::vector<u32>> expected;
  in_one_launch(false);
  for (const u32 limbs : {12u, 47u, 1u, 33u}) {
    jobs.emplace_back(context, rng, PolyShape{16, 1, 1}, limbs);
    jobs.back().transform();
    expected.push_back(jobs.back().result());
    jobs.back().clear();
  }
  in_one_launch(true);
  const auto graph = context.stream->capture([&] {
    for (u32 j = 0; j < 3; ++j) jobs[j].transform();
  });
  for (auto& job : jobs) job.clear();
  context.stream->synchronize();
  const auto other = device_->make_stream();
  together(2, [&](u64 thread) {
    for (u32 i = 0; i < 100; ++i) {
      if (thread == 0)
        jobs[3].transform();
      else
        graph->launch(i % 8 < 4 ? *context.stream : *other);
    }
  });
  other->synchronize();
  for (u32 j = 0; j < jobs.size(); ++j)
    EXPECT_TRUE(same(jobs[j].result(), expected[j]))
        << "job " << j << "; repeat with CRENEL_SEED=" << run_seed();
}

}  // namespace
}  // namespace crenel::test
