// Key switches with a rotation or a product inside them on devices that share the limbs of
// polynomials, against ref: any number of parts, parts without a limb of the window, keys that hold
// the digits and limbs of a level only.
#include "crenel/device/optimisations.h"
#include "support/chain_level.h"
#include "support/compositions.h"
#include "support/devices.h"

namespace crenel::test {
namespace {

using ConstView = ring::PolyView<const u32>;
using device::LimbScalars;
using Table = device::Prepared<rns::ModUp>;

class SplitForms : public DeviceTest {};
// Of more parts than there are digits, and than a window has limbs.
CRENEL_SUITE_OVER(SplitForms, divided_devices({"ref+ref", "ref+ref+ref", "cpu+cpu", "cpu+cpu+cpu",
                                               "cpu+cpu+cpu+cpu+cpu+cpu+cpu"}));

struct Level : ChainLevel {
  using ChainLevel::ChainLevel;
  const Table& table(const Context& c) const { return tables(c).up; }
  void expect_same(const std::vector<TestPoly>& polys, const Operation& operation) {
    expect_all_same(pair, polys, 1, {{"divided", operation}}, operation);
  }
};

TEST_P(SplitForms, Rotated) {
  Rng rng = test_rng();
  for (int turn = 0; turn < 24; ++turn) {
    Level level(device_, rng, drawn_case(rng));
    const ChainCase& s = level.s;
    SCOPED_TRACE(level.name());
    const u64 element = rng() % (u64(2) << s.log_n) | 1;
    const bool add = rng() % 2 == 0, whole = rng() % 2 == 0, factored = rng() % 2 == 0;
    const u32 components = u32(rng() % 3);
    const LimbSet limbs = whole ? s.extended() : s.window();
    const LimbScalars factor = level.scalars(limbs);
    level.expect_same({level.poly(2, s.extended()), level.poly(1, s.window()), level.key(),
                       level.poly(std::max(components, 1u), limbs)},
                      [&](Context& c, const Views& v) {
                        const ConstView addend = v[3];
                        c.kernels->key_switch_rotated(*c.stream, v[0], v[1], level.table(c),
                                                      level.view(v[2]), s.first_digit(), element,
                                                      add, components == 0 ? nullptr : &addend,
                                                      factored ? &factor : nullptr);
                      });
  }
}

TEST_P(SplitForms, Product) {
  Rng rng = test_rng();
  for (int turn = 0; turn < 24; ++turn) {
    Level level(device_, rng, drawn_case(rng));
    const ChainCase& s = level.s;
    SCOPED_TRACE(level.name());
    const bool square = rng() % 2 == 0, doubled = rng() % 2 == 0, constant = rng() % 2 == 0;
    const u32 addends = u32(rng() % 3), components = 2 + u32(rng() % 2);
    const LimbScalars lift = level.scalars(s.window());
    const LimbScalars added = random_scalars(level.pair.ring(), rng, s.window(), false);
    std::vector<TestPoly> polys{level.poly(2, s.extended()), level.poly(2, s.window()),
                                level.poly(2, s.window()), level.key()};
    std::vector<LimbScalars> factors;
    for (u32 i = 0; i < addends; ++i) {
      factors.push_back(level.scalars(s.window()));
      polys.push_back(level.poly(components, s.window()));
    }
    level.expect_same(polys, [&](Context& c, const Views& v) {
      const std::vector<ConstView> terms(v.begin() + 4, v.end());
      c.kernels->key_switch_product(*c.stream, v[0], v[1], v[square ? 1 : 2], level.table(c),
                                    level.view(v[3]), s.first_digit(), lift,
                                    {doubled, constant ? &added : nullptr, terms, factors});
    });
  }
}

// Of both forms, twice each and in any order: rooms and meetings of a recording are its own, also
// behind one that was given up half way.
void expect_recorded(Level& level, Rng& rng) {
  const ChainCase& s = level.s;
  SCOPED_TRACE(level.name());
  const u64 element = rng() % (u64(2) << s.log_n) | 1;
  const LimbScalars lift = random_scalars(level.pair.ring(), rng, s.window(), true);
  const std::vector<TestPoly> polys{level.poly(2, s.extended()), level.poly(2, s.window()),
                                    level.key(), level.poly(2, s.extended())};
  const auto work = [&](Context& c, const Views& v) {
    const device::KeyView key = level.view(v[2]);
    c.kernels->key_switch_product(*c.stream, v[3], v[1], v[1], level.table(c), key, s.first_digit(),
                                  lift);
    c.kernels->key_switch_rotated(*c.stream, v[0], v[1].components(1, 1), level.table(c), key,
                                  s.first_digit(), element, false);
    c.kernels->add(*c.stream, v[0], v[0], v[3]);
  };
  const auto expected = run_on(level.pair.reference, polys, work);
  const auto got = run_on(level.pair.candidate, polys, [&](Context& c, const Views& v) {
    const auto gives_up = [&] {
      work(c, v);
      throw StateError("given up");
    };
    const auto in_use = [&] {
      u64 sum = 0;
      for (const auto& part : c.device->parts()) sum += part->pools().in_use;
      return sum;
    };
    work(c, v);
    c.stream->synchronize();
    const u64 before = in_use();
    EXPECT_THROW(c.stream->capture(gives_up), StateError);
    EXPECT_EQ(in_use(), before);
    const auto graph = c.stream->capture([&] { work(c, v); });
    for (int i = 0; i < 2; ++i) {
      c.stream->fill_zero(v[0].data, v[0].words() * sizeof(u32));
      graph->launch(*c.stream);
    }
  });
  EXPECT_TRUE(same_words(polys[0], got[0], expected[0]));
  EXPECT_TRUE(same_words(polys[3], got[3], expected[3]));
}

TEST_P(SplitForms, Recorded) {
  Rng rng = test_rng();
  for (int turn = 0; turn < 4; ++turn) {
    Level level(device_, rng, drawn_case(rng));
    expect_recorded(level, rng);
  }
}

// Rings whose sources GPUs exchange as tiles, and where one part's conversions take none.
TEST_P(SplitForms, OfLargeRings) {
  Rng rng = test_rng();
  const auto parts = device_->parts();
  const auto all = device::optimisations(*parts.back());
  const auto none = all.without(device::Optimisation::convert_columns);
  const u32 largest = device_->has_graphs() ? 15 : 14;  // all others have one form
  for (u32 log_n = 14; log_n <= largest; ++log_n)
    for (const auto& last : {all, none}) {
      device::set_optimisations(*parts.back(), last);
      ChainCase s{"large", log_n, toy_chain(1, 5, 2), 0, 0, 1 + u32(rng() % 2), {}};
      s.begin = u32(rng() % 2), s.end = 4 + u32(rng() % 3);
      Level level(device_, rng, s);
      expect_recorded(level, rng);
    }
  device::set_optimisations(*parts.back(), all);
}

}  // namespace
}  // namespace crenel::test
