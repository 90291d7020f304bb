// The 64-bit instance: equal to the 32-bit one on primes that both hold, and to ref on large
// primes.
#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

class Word : public DeviceTest {};
CRENEL_DEVICE_SUITE(Word);

constexpr u32 kLogN = 10;

// ModUp, key multiplication, ModDown and a rescale of one pseudorandom polynomial.
template <class W>
std::vector<u64> key_switch(Context<W>& context, u32 q_count, u32 special_count) {
  const LimbSet window = LimbSet::range(0, q_count);
  const LimbSet special = LimbSet::range(q_count, q_count + special_count);
  const LimbSet extended = window.concat(special), lower = LimbSet::range(0, q_count - 1);
  const auto moduli = moduli_of(*context.ring);
  auto& k = *context.kernels;
  auto& stream = *context.stream;
  const auto up = k.prepare(rns::make_mod_up<W>(moduli, window, special, special_count));
  const auto down = k.prepare(rns::make_divide<W>(moduli, extended, lower));
  const u32 digits = static_cast<u32>(up->digits.size());
  std::vector<device::Buffer> memory;
  const auto poly = [&](PolyShape shape, const LimbSet& limbs) {
    memory.push_back(stream.allocate((u64(shape.polys()) * limbs.size() << kLogN) * sizeof(W)));
    return PolyView<W>(memory.back().template as<W>(), shape, limbs, Domain::eval);
  };
  const auto in = poly({kLogN, 1, 2}, window), key = poly({kLogN, 2, digits}, extended);
  const auto extended_digits = poly({kLogN, digits, 2}, extended),
             sum = poly({kLogN, 2, 2}, extended);
  const auto out = poly({kLogN, 2, 2}, lower), rotated = poly({kLogN, 2, 2}, lower);
  random::Seed seed{};
  seed[0] = 1;
  k.sample_uniform(stream, in, seed, {random::Purpose::test, 0});
  k.sample_uniform(stream, key, seed, {random::Purpose::test, 100});
  k.mod_up(stream, extended_digits, in, up);
  k.key_multiply(stream, sum, extended_digits, key, 0);
  k.divide(stream, out, sum, down);
  k.automorphism(stream, rotated, out, 5);
  std::vector<W> words(rotated.words());
  stream.synchronize();
  stream.copy_out(words.data(), rotated.data, words.size() * sizeof(W));
  return {words.begin(), words.end()};
}

// A backend without 64-bit kernels says so by a typed error that names it; nothing else may go
// wrong.
template <class F>
void unless_unsupported(const device::Device& device, F f) {
  try {
    f();
  } catch (const UnsupportedError& e) {
    EXPECT_NE(device.info().kind, device::Kind::ref);
    EXPECT_NE(std::string(e.what()).find(device.info().name), std::string::npos) << e.what();
  }
}

TEST_P(Word, SameResultAsNarrowWord) {
  unless_unsupported(*device_, [&] {
    const Chain chain = toy_chain(2, 7, 3);
    auto narrow = make_context<u32>(device_, kLogN, chain.primes);
    auto wide = make_context<u64>(device_, kLogN, chain.primes);
    EXPECT_EQ(key_switch(narrow, 9, 3), key_switch(wide, 9, 3));
  });
}

TEST_P(Word, LargePrimesAgainstReference) {
  unless_unsupported(*device_, [&] {
    const u64 top = (u64(1) << 63) - 1;
    auto primes = math::nearest_ntt_primes(top, 6, u64(1) << 62, top, u64(2) << kLogN);
    auto candidate = make_context<u64>(device_, kLogN, primes);
    auto reference = make_context<u64>(device::make_ref_device(), kLogN, primes);
    EXPECT_EQ(key_switch(candidate, 4, 2), key_switch(reference, 4, 2));
  });
}

}  // namespace
}  // namespace crenel::test
