// Every device refuses shapes, limbs, domains and overlaps that the contracts exclude.
#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

class Refusal : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (device_ == nullptr) return;
    context_ = make_context(device_, 10, toy_chain(1, 4, 2).primes);
    memory_ = context_.stream->allocate(8 * 16 * 1024 * sizeof(u32));
  }
  void TearDown() override {
    if (context_.stream) context_.stream->synchronize();
  }
  // Number `slot` of equally shaped polynomials that do not overlap.
  PolyView<u32> poly(u32 slot, u32 components, u32 limbs, Domain domain, u32 batch = 1) {
    return {memory_.as<u32>() + slot * 16 * 1024,
            {10, components, batch},
            LimbSet::range(0, limbs),
            domain};
  }
  device::PolyKernels& kernels() { return *context_.kernels; }
  device::Stream& stream() { return *context_.stream; }

  Context context_;
  device::Buffer memory_;
};
CRENEL_DEVICE_SUITE(Refusal);

TEST_P(Refusal, ShapesNameBothValues) {
  const auto out = poly(0, 2, 3, Domain::eval), a = poly(1, 2, 3, Domain::eval);
  try {
    kernels().add(stream(), out, a, poly(2, 2, 2, Domain::eval));
    FAIL() << "limbs differ";
  } catch (const StateError& e) {
    EXPECT_EQ(e.field("got"), "{0,1}");
    EXPECT_EQ(e.field("expected"), "{0,1,2}");
  }
  EXPECT_THROW(kernels().add(stream(), out, poly(1, 1, 3, Domain::eval), a), StateError);
  EXPECT_THROW(kernels().mul(stream(), out, a, poly(2, 3, 3, Domain::eval)), StateError);
  EXPECT_THROW(kernels().sub(stream(), out, a, poly(2, 2, 3, Domain::coeff)), StateError);
  auto small = a;
  small.shape.log_n = 9;
  EXPECT_THROW(kernels().neg(stream(), out, small), StateError);
  auto foreign = a;
  foreign.limbs = LimbSet::range(6, 9);
  EXPECT_THROW(kernels().neg(stream(), foreign, foreign), StateError);
}

TEST_P(Refusal, Domains) {
  const auto coeff = poly(0, 1, 2, Domain::coeff), eval = poly(1, 1, 2, Domain::eval);
  EXPECT_THROW(kernels().ntt(stream(), coeff, eval), StateError);
  EXPECT_THROW(kernels().intt(stream(), eval, coeff), StateError);
  EXPECT_THROW(kernels().automorphism(stream(), eval, coeff, 5), StateError);
  EXPECT_THROW(kernels().sample_error(stream(), eval, {}, {}), StateError);
  EXPECT_THROW(kernels().sample_ternary(stream(), eval, {}, {}), StateError);
}

TEST_P(Refusal, GaloisElements) {
  const auto out = poly(0, 1, 2, Domain::eval), in = poly(1, 1, 2, Domain::eval);
  EXPECT_THROW(kernels().automorphism(stream(), out, in, 2), StateError);
  EXPECT_THROW(kernels().automorphism(stream(), out, in, 2049), StateError);
  EXPECT_THROW(kernels().automorphism_add(stream(), out, in, 0), StateError);
}

TEST_P(Refusal, Overlap) {
  const auto p = poly(0, 2, 3, Domain::eval);
  EXPECT_THROW(kernels().automorphism(stream(), p, p, 5), StateError);
  auto shifted = p;
  shifted.data += 1024;
  EXPECT_THROW(kernels().add(stream(), p, shifted, p), StateError);
  EXPECT_THROW(kernels().tensor(stream(), poly(0, 3, 3, Domain::eval), p, p), StateError);
  // Two windows of one polynomial interleave without sharing a word.
  EXPECT_NO_THROW(kernels().ntt(stream(), p.limb_window(0, 1), [&] {
    auto v = p.limb_window(0, 1);
    v.domain = Domain::coeff;
    return v;
  }()));
}

TEST_P(Refusal, Tables) {
  const auto moduli = moduli_of(*context_.ring);
  const auto conversion = kernels().prepare(
      rns::make_base_conversion(moduli, LimbSet::range(0, 2), LimbSet::range(2, 4)));
  auto in = poly(0, 1, 3, Domain::coeff), out = poly(1, 1, 2, Domain::coeff);
  EXPECT_THROW(kernels().base_convert(stream(), out, in, conversion), StateError);
  const auto divide =
      kernels().prepare(rns::make_divide(moduli, LimbSet::range(0, 3), LimbSet::range(0, 2)));
  in.domain = out.domain = Domain::eval;
  const PolyView<const u32> wide = poly(2, 2, 2, Domain::eval);
  EXPECT_THROW(kernels().divide(stream(), out, in, divide, &wide), StateError);
  EXPECT_THROW(kernels().divide(stream(), in, out, divide), StateError);
  const auto mod_up =
      kernels().prepare(rns::make_mod_up(moduli, LimbSet::range(0, 5), LimbSet::range(5, 7), 2));
  EXPECT_THROW(
      kernels().mod_up(stream(), poly(0, 2, 7, Domain::eval), poly(1, 1, 5, Domain::eval), mod_up),
      StateError);
}

TEST_P(Refusal, KeysThatAreTooShort) {
  const auto digits = poly(0, 2, 7, Domain::eval), out = poly(1, 2, 7, Domain::eval);
  const auto key = poly(2, 2, 7, Domain::eval);
  EXPECT_THROW(kernels().key_multiply(stream(), out, digits, key, 0), StateError);
  EXPECT_THROW(kernels().key_multiply(stream(), out, poly(0, 1, 7, Domain::eval),
                                      poly(2, 2, 6, Domain::eval), 0),
               StateError);
}

TEST_P(Refusal, FormsOfKeySwitches) {
  using Addends = std::vector<PolyView<const u32>>;
  const auto table = kernels().prepare(
      rns::make_mod_up(moduli_of(*context_.ring), LimbSet::range(0, 5), LimbSet::range(5, 7), 2));
  const auto out = poly(0, 2, 7, Domain::eval), key = poly(1, 2, 7, Domain::eval, 3);
  const auto two = poly(4, 2, 5, Domain::eval), three = poly(5, 3, 5, Domain::eval);
  const auto rotated = [&](u64 element, const PolyView<const u32>& addend) {
    kernels().key_switch_rotated(stream(), out, two.components(1, 1), table, key, 0, element, true,
                                 &addend);
  };
  EXPECT_THROW(rotated(2, poly(6, 1, 5, Domain::eval)), StateError);
  EXPECT_THROW(rotated(5, three), StateError);
  EXPECT_THROW(rotated(5, two.limb_window(1, 3)), StateError);
  EXPECT_THROW(rotated(5, poly(6, 1, 5, Domain::eval, 2)), StateError);
  EXPECT_THROW(rotated(5, out), StateError);
  const auto product = [&](const PolyView<const u32>& b, const Addends& addends, u32 factors) {
    const std::vector<device::LimbScalars> scalars(factors);
    kernels().key_switch_product(stream(), out, two, b, table, key, 0, {},
                                 {.addends = addends, .factors = scalars});
  };
  EXPECT_THROW(product(three, {}, 0), StateError);
  EXPECT_THROW(product(two.components(0, 1), {}, 0), StateError);
  EXPECT_THROW(product(two, {two}, 0), StateError);
  EXPECT_THROW(product(two, {two, three}, 2), StateError);
  EXPECT_THROW(product(two, {two.components(0, 1)}, 1), StateError);
  EXPECT_THROW(product(two, {poly(6, 2, 4, Domain::eval)}, 1), StateError);
  EXPECT_THROW(product(two, {out.limb_window(0, 5)}, 1), StateError);

  // With the division of the result: what the switch refuses, what the division does.
  const auto moduli = moduli_of(*context_.ring);
  const auto divide = kernels().prepare(rns::make_divide(moduli, table->output, table->input));
  const device::LimbScalars lift;
  const auto divided = [&](const PolyView<const u32>& in, const PolyView<const u32>& other,
                           u64 element, const device::LimbScalars* factor, const auto& by) {
    kernels().key_switch_divided(stream(), poly(6, 2, 5, Domain::eval),
                                 {.in = in, .other = other, .element = element, .factor = factor},
                                 table, key, 0, by);
  };
  EXPECT_THROW(divided(two, {}, 1, &lift, divide), StateError);
  EXPECT_THROW(divided(two.components(1, 1), {}, 2, &lift, divide), StateError);
  EXPECT_THROW(divided(two, two, 1, nullptr, divide), StateError);
  EXPECT_THROW(divided(two, three, 1, &lift, divide), StateError);
  const auto less = kernels().prepare(rns::make_divide(moduli, table->input, LimbSet::range(0, 3)));
  EXPECT_THROW(divided(two.components(1, 1), {}, 1, &lift, less), StateError);
  // In the caller's room for the sum, which is not the addend of the division, either.
  const auto in_room = [&](const PolyView<u32>& sum, const PolyView<const u32>* addend) {
    kernels().key_switch_divided(stream(), poly(6, 2, 5, Domain::eval), sum,
                                 {.in = two.components(1, 1)}, table, key, 0, divide, addend);
  };
  EXPECT_THROW(in_room(poly(0, 1, 7, Domain::eval), nullptr), StateError);
  EXPECT_THROW(in_room(poly(0, 2, 5, Domain::eval), nullptr), StateError);
  const PolyView<const u32> inside = out.limb_window(0, 5);
  try {
    in_room(out, &inside);
    ADD_FAILURE() << "a sum that is the addend";
  } catch (const StateError& error) {
    EXPECT_NE(std::string(error.what()).find("overlap"), std::string::npos) << error.what();
  }

  // The same from sources on, and the sources of a product.
  const auto sources = poly(7, 1, 5, Domain::coeff);
  const auto rotated_from = [&](u64 element, const PolyView<const u32>& own,
                                const PolyView<const u32>& addend) {
    kernels().key_switch_rotated_from(stream(), out, sources, own, table, key, 0, element, true,
                                      &addend);
  };
  const auto one = two.components(1, 1);
  EXPECT_THROW(rotated_from(2, one, two), StateError);
  EXPECT_THROW(rotated_from(5, two, two), StateError);
  EXPECT_THROW(rotated_from(5, one, three), StateError);
  EXPECT_THROW(rotated_from(5, one, two.limb_window(1, 3)), StateError);
  const auto product_from = [&](const PolyView<const u32>& a, const PolyView<const u32>& b,
                                const Addends& addends) {
    const std::vector<device::LimbScalars> scalars(addends.size());
    kernels().key_switch_product_from(stream(), out, sources, a, b, table, key, 0, {},
                                      {.addends = addends, .factors = scalars});
  };
  EXPECT_THROW(product_from(one, one, {}), StateError);
  EXPECT_THROW(product_from(two, two.limb_window(0, 4), {}), StateError);
  EXPECT_THROW(product_from(two.limb_window(1, 4), two.limb_window(1, 4), {}), StateError);
  EXPECT_THROW(product_from(two, two, {one}), StateError);
  const auto& scales = table.conversions->at(0);
  const auto made = poly(6, 1, scales->source.size(), Domain::coeff);
  const auto sources_of = [&](const device::SourcesOf& of) {
    kernels().sources(stream(), made, of, scales);
  };
  EXPECT_THROW(sources_of(two), StateError);
  EXPECT_THROW(sources_of({two, two.limb_window(0, 4), {}}), StateError);
  EXPECT_THROW(sources_of({three, three, {}}), StateError);
  EXPECT_THROW(kernels().product_sum(stream(), two, two, two, {}), StateError);
}

// A table comes from prepare() of the same kind of kernels; only ref works from the host's.
TEST_P(Refusal, TablesOfOthers) {
  const auto in = poly(0, 1, 2, Domain::coeff);
  auto out = poly(1, 1, 2, Domain::coeff);
  out.limbs = LimbSet::range(2, 4);
  const auto convert = [&](const device::Prepared<rns::BaseConversion>& table) {
    kernels().base_convert(stream(), out, in, table);
  };
  const auto table = rns::make_base_conversion(moduli_of(*context_.ring), in.limbs, out.limbs);
  EXPECT_NO_THROW(convert(kernels().prepare(table)));
  EXPECT_THROW(convert({}), StateError);
  if (device_->info().kind == device::Kind::ref) return;
  const auto reference = make_context(device::make_ref_device(), 10, toy_chain(1, 4, 2).primes);
  EXPECT_THROW(convert(reference.kernels->prepare(table)), StateError);
}

}  // namespace
}  // namespace crenel::test
