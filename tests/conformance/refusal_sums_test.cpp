// What linear_combination, plaintext sums, automorphism_add and lift_signed refuse, on every
// device.
#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

constexpr u32 kLogN = 8, kLimbs = 5, kWindow = 3;

class RefusalSums : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (device_ == nullptr) return;
    context_ = make_context(device_, kLogN, toy_chain(1, 2, 2).primes);
    memory_ = context_.stream->allocate(16 * kSlot * sizeof(u32));
    // Canonical: accepted calls of these tests compute with it.
    context_.stream->fill_zero(memory_.data(), memory_.bytes());
  }
  void TearDown() override {
    if (context_.stream) context_.stream->synchronize();
  }
  static constexpr u32 kSlot = 8 * kLimbs << kLogN;
  // Polynomials of different slots do not overlap.
  PolyView<u32> poly(u32 slot, u32 components = 2, u32 limbs = kLimbs, Domain domain = Domain::eval,
                     u32 batch = 1) {
    return {memory_.as<u32>() + slot * kSlot,
            {kLogN, components, batch},
            LimbSet::range(0, limbs),
            domain};
  }
  device::PlainGrid grid(u32 giants = 2, u32 babies = 2) {
    return {memory_.as<u32>() + 15 * kSlot, LimbSet::range(0, kLimbs), 4, giants, babies, present_};
  }
  device::PolyKernels& kernels() { return *context_.kernels; }
  device::Stream& stream() { return *context_.stream; }

  Context context_;
  device::Buffer memory_;
  const u8 present_[4] = {1, 1, 1, 1};
  device::LimbScalars one_;
};
CRENEL_DEVICE_SUITE(RefusalSums);

using View = PolyView<u32>;
using ConstView = PolyView<const u32>;

TEST_P(RefusalSums, LinearCombination) {
  const auto call = [&](const View& out, const std::vector<ConstView>& in, std::size_t scalars) {
    const std::vector<device::LimbScalars> s(scalars);
    kernels().linear_combination(stream(), out, in, s, nullptr);
  };
  EXPECT_NO_THROW(call(poly(0), {poly(1), poly(0)}, 2));
  EXPECT_THROW(call(poly(0), {}, 0), StateError);
  EXPECT_THROW(call(poly(0), {poly(1)}, 2), StateError);
  EXPECT_THROW(call(poly(0), {poly(1), poly(2)}, 1), StateError);
  EXPECT_THROW(call(poly(0), {poly(1), poly(2, 1)}, 2), StateError);
  EXPECT_THROW(call(poly(0), {poly(1, 2, kLimbs, Domain::eval, 2)}, 1), StateError);
  EXPECT_THROW(call(poly(0), {poly(1, 2, 4)}, 1), StateError);
  EXPECT_THROW(call(poly(0), {poly(1, 2, kLimbs, Domain::coeff)}, 1), StateError);
  auto shifted = poly(0);
  shifted.data += 1 << kLogN;
  EXPECT_THROW(call(poly(0), {poly(1), shifted}, 2), StateError);
}

TEST_P(RefusalSums, AutomorphismAddend) {
  const auto call = [&](const ConstView& addend) {
    kernels().automorphism_add(stream(), poly(0), poly(1), 5, &addend);
  };
  EXPECT_NO_THROW(call(poly(2, 1)));
  EXPECT_NO_THROW(call(poly(1)));
  EXPECT_THROW(call(poly(2, 3)), StateError);
  EXPECT_THROW(call(poly(2, 1, 4)), StateError);
  EXPECT_THROW(call(poly(2, 1, kLimbs, Domain::coeff)), StateError);
  EXPECT_THROW(call(poly(2, 1, kLimbs, Domain::eval, 2)), StateError);
  EXPECT_THROW(call(poly(0, 1)), StateError);
}

TEST_P(RefusalSums, LiftSigned) {
  const auto values = stream().allocate(u64(2) << kLogN << 3);
  const auto call = [&](const ConstView& in) {
    kernels().lift_signed(stream(), values.as<i64>(), in);
  };
  const auto limbs = [&](u32 first, u32 count) {
    return poly(0, 2, kLimbs, Domain::coeff).limb_window(first, count);
  };
  EXPECT_NO_THROW(call(limbs(0, 1)));
  EXPECT_NO_THROW(call(limbs(0, 2)));
  EXPECT_THROW(call(limbs(0, 3)), StateError);
  EXPECT_THROW(call(limbs(0, 0)), StateError);
  EXPECT_THROW(call(poly(0, 2, 1)), StateError);
  auto twice = limbs(0, 2);
  twice.limbs = LimbSet::range(1, 2).concat(LimbSet::range(1, 2));
  EXPECT_THROW(call(twice), StateError);
  EXPECT_THROW(kernels().lift_signed(stream(), nullptr, limbs(0, 1)), StateError);
  EXPECT_THROW(kernels().lift_signed(stream(), memory_.as<i64>(), limbs(0, 1)), StateError);
  // Two primes of 31 bits: their product is below 2^62, as that of any two of a chain.
  EXPECT_NO_THROW(call(limbs(3, 2)));
}

TEST_P(RefusalSums, PlainMultiplySum) {
  const auto call = [&](const std::vector<View>& out, const std::vector<ConstView>& in,
                        const device::PlainGrid& plain) {
    kernels().plain_multiply_sum(stream(), out, in, plain);
  };
  const std::vector<View> out{poly(0), poly(1)};
  const std::vector<ConstView> in{poly(2), poly(3)};
  EXPECT_NO_THROW(call(out, in, grid()));
  EXPECT_THROW(call({poly(0)}, in, grid()), StateError);
  EXPECT_THROW(call(out, {poly(2)}, grid()), StateError);
  EXPECT_THROW(call(out, {poly(2), poly(3, 1)}, grid()), StateError);
  EXPECT_THROW(call({poly(0), poly(1, 1)}, in, grid()), StateError);
  EXPECT_THROW(call({poly(0), poly(1, 2, 4)}, in, grid()), StateError);
  EXPECT_THROW(call(out, {poly(2), poly(3, 2, kLimbs, Domain::coeff)}, grid()), StateError);
  EXPECT_THROW(call({poly(0), poly(0)}, in, grid()), StateError);
  EXPECT_THROW(call(out, {poly(2), poly(1)}, grid()), StateError);
  auto plain = grid();
  plain.log_words = kLogN + 1;
  EXPECT_THROW(call(out, in, plain), StateError);
  plain = grid();
  plain.limbs = LimbSet::range(0, 4);
  EXPECT_THROW(call(out, in, plain), StateError);
  plain = grid();
  plain.present = nullptr;
  EXPECT_THROW(call(out, in, plain), StateError);
  plain = grid();
  plain.data = memory_.as<u32>() + 1;  // the first output
  EXPECT_THROW(call(out, in, plain), StateError);
}

TEST_P(RefusalSums, HoistedPlainSums) {
  struct Call {
    std::vector<View> out;
    ConstView digits, b, a;
    std::vector<device::KeyView> keys;
    std::vector<u64> elements;
    device::PlainGrid plain;
    u32 first_digit = 0;
  };
  const ConstView key = poly(8, 2, kLimbs, Domain::eval, 2);
  const Call good{{poly(0), poly(1)},
                  poly(2),
                  poly(3, 1, kWindow),
                  poly(4, 1, kWindow),
                  {ConstView(), key},
                  {1, 5},
                  grid()};
  const auto refuses = [&](auto change) {
    Call c = good;
    change(c);
    EXPECT_THROW(kernels().hoisted_plain_sums(stream(), c.out, c.digits, c.b, c.a, c.keys,
                                              c.elements, c.plain, one_, c.first_digit),
                 StateError);
  };
  EXPECT_NO_THROW(kernels().hoisted_plain_sums(stream(), good.out, good.digits, good.b, good.a,
                                               good.keys, good.elements, good.plain, one_, 0));
  refuses([](Call& c) { c.out.pop_back(); });
  refuses([](Call& c) { c.keys.pop_back(); });
  refuses([](Call& c) { c.elements.pop_back(), c.keys.pop_back(); });
  refuses([](Call& c) { c.elements[1] = 6; });
  refuses([](Call& c) { c.elements[1] = 2u << kLogN | 1; });
  refuses([](Call& c) { c.elements[0] = 3; });  // has no key
  refuses([](Call& c) { c.a = ConstView(); });
  refuses([](Call& c) { c.first_digit = 1; });
  refuses([](Call& c) { c.plain.limbs = LimbSet::range(0, 4); });
  refuses([](Call& c) { c.plain.babies = 3; });
  refuses([](Call& c) { c.out[1] = c.out[0]; });
  refuses([&](Call& c) { c.out[1] = poly(1, 3); });
  refuses([&](Call& c) { c.out[1] = poly(2); });
  refuses([&](Call& c) { c.out[1] = poly(8); });
  refuses([&](Call& c) { c.b = poly(3, 1, kLimbs + 1); });
  refuses([&](Call& c) { c.b = poly(3, 2, kWindow); });
  refuses([&](Call& c) { c.digits = poly(2, 2, 4); });
  refuses([&](Call& c) { c.digits = poly(2, 2, kLimbs, Domain::eval, 2); });
  refuses([&](Call& c) { c.keys[1] = poly(8, 2, 4, Domain::eval, 2); });
}

}  // namespace
}  // namespace crenel::test
