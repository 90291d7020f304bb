// Fused operations: every override, and the default composition over the candidate's own
// primitives, against ref.
#include "support/chain_case.h"
#include "support/compositions.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

class Fused : public DeviceTest {};
CRENEL_POLY_SUITE(Fused);

using K = device::PolyKernels;
using Ctx = Context;
using V = Views;

// Windows that start inside the first or a later digit, cut the last one, hold a single limb;
// digits of 1 to 12 limbs.
std::vector<ChainCase> fused_cases() {
  return {{"full chain", 10, toy_chain(4, 43, 12), 0, 47, 1, {}},
          {"cut digits", 10, toy_chain(4, 43, 12), 3, 34, 1, {3, 0, 0, 1}},
          {"one limb", 11, toy_chain(2, 7, 2), 1, 2, 3, {}},
          {"later digits", 11, toy_chain(2, 9, 3), 4, 11, 3, {1, 2, 1, 0}},
          {"digits of one limb", 12, toy_chain(1, 6, 1), 0, 6, 2, {0, 0, 0, 1}},
          {"one digit", 13, toy_chain(1, 4, 5), 0, 5, 1, {}},
          {"large ring", 15, toy_chain(2, 5, 3), 3, 7, 2, {}},
          // the sources of a GPU's conversions are brought for two blocks at a time
          {"sources for two", 14, toy_chain(2, 9, 3), 0, 11, 1, {}},
          {"sources for two, batch", 14, toy_chain(2, 9, 3), 0, 11, 2, {1, 0, 0, 1}}};
}

TestPoly input(const ring::Ring& ring, Rng& rng, const ChainCase& s, u32 components,
               const LimbSet& limbs) {
  return random_poly(ring, rng, s.shape(components), limbs, Domain::eval, s.pad);
}
TestPoly output(Rng& rng, const ChainCase& s, u32 components, const LimbSet& limbs) {
  return garbage_poly(rng, s.shape(components), limbs, Domain::eval, s.pad);
}

template <class F>
void for_each_case(const std::shared_ptr<device::Device>& device, F f) {
  for (const auto& s : fused_cases()) {
    SCOPED_TRACE(s.name);
    auto pair = make_pair(device, s.log_n, s.chain.primes);
    f(pair, s);
  }
}

// `fused` and its default composition on the candidate, `specification` on ref.
void expect_both(Pair& pair, const std::vector<TestPoly>& polys, const Operation& fused,
                 const Operation& composed, const Operation& specification) {
  expect_all_same(pair, polys, 1, {{"override", fused}, {"default composition", composed}},
                  specification);
}
void expect_both(Pair& pair, const std::vector<TestPoly>& polys, const Operation& fused,
                 const Operation& composed) {
  expect_both(pair, polys, fused, composed, fused);
}

TEST_P(Fused, Tensor) {
  Rng rng = test_rng();
  for_each_case(device_, [&](Pair& pair, const ChainCase& s) {
    const auto out = output(rng, s, 3, s.window());
    const auto a = input(pair.ring(), rng, s, 2, s.window());
    auto b = input(pair.ring(), rng, s, 2, s.window());
    if (s.batch == 1) fill_canonical(b, pair.ring(), rng, Fill::top);
    expect_both(
        pair, {out, a, b},
        [](Ctx& c, const V& v) { c.kernels->tensor(*c.stream, v[0], v[1], v[2]); },
        [](Ctx& c, const V& v) { compositions(*c.kernels).tensor(*c.stream, v[0], v[1], v[2]); });
    expect_both(
        pair, {out, a, b},
        [](Ctx& c, const V& v) { c.kernels->tensor_square(*c.stream, v[0], v[2]); },
        [](Ctx& c, const V& v) { compositions(*c.kernels).tensor(*c.stream, v[0], v[2], v[2]); });
    // Doubled, with other constants in the two halves; q - 1 everywhere when the batch is 1.
    device::LimbScalars doubled;
    for (u32 l = 0; l < s.window().size(); ++l) {
      const u32 q = pair.ring().modulus(s.window()[l]).q;
      doubled.low[l] = s.batch == 1 ? q - 1 : static_cast<u32>(rng() % q);
      doubled.high[l] = static_cast<u32>(rng() % q);
    }
    expect_both(
        pair, {out, a, b},
        [&](Ctx& c, const V& v) { c.kernels->tensor_square(*c.stream, v[0], v[2], &doubled); },
        [&](Ctx& c, const V& v) {
          compositions(*c.kernels).tensor_square(*c.stream, v[0], v[2], &doubled);
        });
  });
}

TEST_P(Fused, AutomorphismAdd) {
  Rng rng = test_rng();
  for_each_case(device_, [&](Pair& pair, const ChainCase& s) {
    const u64 two_n = u64(2) << s.log_n;
    for (const Domain d : {Domain::eval, Domain::coeff})
      for (const u64 element : {u64(1), two_n - 1, rng() % two_n | 1}) {
        SCOPED_TRACE(cat("element ", element));
        auto out = input(pair.ring(), rng, s, 2, s.extended());
        auto in = input(pair.ring(), rng, s, 2, s.extended());
        out.view.domain = in.view.domain = d;
        expect_both(
            pair, {out, in},
            [&](Ctx& c, const V& v) {
              c.kernels->automorphism_add(*c.stream, v[0], v[1], element);
            },
            [&](Ctx& c, const V& v) {
              compositions(*c.kernels).automorphism_add(*c.stream, v[0], v[1], element);
            });
      }
  });
}

TEST_P(Fused, ModUp) {
  Rng rng = test_rng();
  for_each_case(device_, [&](Pair& pair, const ChainCase& s) {
    const auto table =
        rns::make_mod_up(moduli_of(pair.ring()), s.window(), s.special(), s.chain.alpha);
    ASSERT_EQ(table.digits.size(), s.digits());
    const auto in_candidate = pair.candidate.kernels->prepare(table);
    const auto in_reference = pair.reference.kernels->prepare(table);
    const std::vector<TestPoly> polys{output(rng, s, s.digits(), s.extended()),
                                      input(pair.ring(), rng, s, 1, s.window())};
    expect_both(
        pair, polys,
        [&](Ctx& c, const V& v) { c.kernels->mod_up(*c.stream, v[0], v[1], in_candidate); },
        [&](Ctx& c, const V& v) {
          compositions(*c.kernels).mod_up(*c.stream, v[0], v[1], in_candidate);
        },
        [&](Ctx& c, const V& v) { c.kernels->mod_up(*c.stream, v[0], v[1], in_reference); });
  });
}

TEST_P(Fused, KeyMultiply) {
  Rng rng = test_rng();
  for_each_case(device_, [&](Pair& pair, const ChainCase& s) {
    auto digits = input(pair.ring(), rng, s, s.digits(), s.extended());
    auto key = switching_key(pair.ring(), rng, s);
    const auto out = output(rng, s, 2, s.extended());
    const u32 first = s.first_digit();
    for (const Fill fill : {Fill::random, Fill::top}) {
      SCOPED_TRACE(name_of(fill));
      fill_canonical(digits, pair.ring(), rng, fill);
      fill_canonical(key, pair.ring(), rng, fill);
      expect_both(
          pair, {out, digits, key},
          [&](Ctx& c, const V& v) { c.kernels->key_multiply(*c.stream, v[0], v[1], v[2], first); },
          [&](Ctx& c, const V& v) {
            compositions(*c.kernels).key_multiply(*c.stream, v[0], v[1], v[2], first);
          });
    }
  });
}

// So many digits and limbs that a backend may work in parts; too large for ref, so against the
// default composition on the candidate itself.
TEST_P(Fused, KeySwitchLarge) {
  Rng rng = test_rng();
  const ChainCase s{"large", 15, toy_chain(4, 43, 12), 3, 47, 3, {}};
  auto context = make_context(device_, s.log_n, s.chain.primes);
  const auto table = context.kernels->prepare(
      rns::make_mod_up(moduli_of(*context.ring), s.window(), s.special(), s.chain.alpha));
  const std::vector<TestPoly> polys{output(rng, s, 2, s.extended()),
                                    input(*context.ring, rng, s, 1, s.window()),
                                    switching_key(*context.ring, rng, s)};
  const auto fused = run_on(context, polys, [&](Ctx& c, const V& v) {
    c.kernels->key_switch_extended(*c.stream, v[0], v[1], table, v[2], s.first_digit());
  });
  const auto composed = run_on(context, polys, [&](Ctx& c, const V& v) {
    compositions(*c.kernels)
        .key_switch_extended(*c.stream, v[0], v[1], table, v[2], s.first_digit());
  });
  EXPECT_TRUE(same_words(polys[0], fused[0], composed[0]));
}

void check_divide(Pair& pair, Rng& rng, const ChainCase& s, u32 components, const LimbSet& from,
                  const LimbSet& to, u32 addend_components) {
  SCOPED_TRACE(cat(from.size(), " to ", to.size(), " limbs, ", components,
                   " components, addend of ", addend_components));
  const auto table = rns::make_divide(moduli_of(pair.ring()), from, to);
  const auto in_candidate = pair.candidate.kernels->prepare(table);
  const auto in_reference = pair.reference.kernels->prepare(table);
  const std::vector<TestPoly> polys{
      output(rng, s, components, to), input(pair.ring(), rng, s, components, from),
      input(pair.ring(), rng, s, std::max(addend_components, 1u), to)};
  const auto divide = [&](const auto& prepared, bool composed) {
    return [&prepared, composed, addend_components](Ctx& c, const V& v) {
      const PolyView<const u32> addend = v[2];
      const auto* given = addend_components == 0 ? nullptr : &addend;
      if (composed)
        compositions(*c.kernels).divide(*c.stream, v[0], v[1], prepared, given);
      else
        c.kernels->divide(*c.stream, v[0], v[1], prepared, given);
    };
  };
  expect_both(pair, polys, divide(in_candidate, false), divide(in_candidate, true),
              divide(in_reference, false));
}

TEST_P(Fused, KeySwitch) {
  Rng rng = test_rng();
  for_each_case(device_, [&](Pair& pair, const ChainCase& s) {
    const auto table =
        rns::make_mod_up(moduli_of(pair.ring()), s.window(), s.special(), s.chain.alpha);
    const auto in_candidate = pair.candidate.kernels->prepare(table);
    const auto in_reference = pair.reference.kernels->prepare(table);
    const u32 first = s.first_digit();
    const std::vector<TestPoly> polys{output(rng, s, 2, s.extended()),
                                      input(pair.ring(), rng, s, 1, s.window()),
                                      switching_key(pair.ring(), rng, s)};
    const auto with = [first](const auto& prepared) {
      return [&prepared, first](Ctx& c, const V& v) {
        c.kernels->key_switch_extended(*c.stream, v[0], v[1], prepared, v[2], first);
      };
    };
    expect_both(
        pair, polys, with(in_candidate),
        [&](Ctx& c, const V& v) {
          compositions(*c.kernels)
              .key_switch_extended(*c.stream, v[0], v[1], in_candidate, v[2], first);
        },
        with(in_reference));
    // With one and two components to add, times real and complex factors.
    for (const u32 components : {1u, 2u}) {
      device::LimbScalars factor;
      for (u32 l = 0; l < s.window().size(); ++l) {
        const u32 q = pair.ring().modulus(s.window()[l]).q;
        factor.low[l] = s.batch == 1 ? q - 1 : static_cast<u32>(rng() % q);
        factor.high[l] = components == 1 ? factor.low[l] : static_cast<u32>(rng() % q);
      }
      auto more = polys;
      more.push_back(input(pair.ring(), rng, s, components, s.window()));
      const auto adding = [first, &factor](const auto& prepared) {
        return [&prepared, &factor, first](Ctx& c, const V& v) {
          const ring::PolyView<const u32> addend = v[3];
          c.kernels->key_switch_extended(*c.stream, v[0], v[1], prepared, v[2], first, &addend,
                                         &factor);
        };
      };
      expect_both(
          pair, more, adding(in_candidate),
          [&](Ctx& c, const V& v) {
            const ring::PolyView<const u32> addend = v[3];
            compositions(*c.kernels)
                .key_switch_extended(*c.stream, v[0], v[1], in_candidate, v[2], first, &addend,
                                     &factor);
          },
          adding(in_reference));
    }
  });
}

TEST_P(Fused, Divide) {
  Rng rng = test_rng();
  for_each_case(device_, [&](Pair& pair, const ChainCase& s) {
    // ModDown, with and without something to add.
    check_divide(pair, rng, s, 2, s.extended(), s.window(), 0);
    check_divide(pair, rng, s, 2, s.extended(), s.window(), 1);
    check_divide(pair, rng, s, 1, s.extended(), s.window(), 1);
    check_divide(pair, rng, s, 3, s.extended(), s.window(), 3);
    if (s.end - s.begin < 3) return;
    // Plain rescale, rescale with added primes in front, and both merged with ModDown.
    const LimbSet shorter = LimbSet::range(s.begin, s.end - 2);
    const LimbSet shifted = LimbSet::range(s.begin == 0 ? 0 : s.begin - 1, s.end - 1);
    check_divide(pair, rng, s, 2, s.window(), shorter, 0);
    check_divide(pair, rng, s, 2, s.window(), shifted, 2);
    check_divide(pair, rng, s, 2, s.extended(), shifted, 2);
    check_divide(pair, rng, s, 3, s.extended(), shorter, 0);
    // Dropping primes at the front: the kept limbs start inside the input.
    check_divide(pair, rng, s, 2, s.window(), LimbSet::range(s.begin + 1, s.end), 0);
  });
}

// Rings whose conversions a backend may fuse with the first transform pass, with 1 to 13 sources
// (12 and a rounded quotient) and digits that do not end with the window. The largest only where
// they are quick.
TEST_P(Fused, ConversionsOfLargeRings) {
  Rng rng = test_rng();
  std::vector<ChainCase> cases{{"eleven sources", 14, toy_chain(2, 16, 11), 3, 17, 2, {1, 2, 1, 0}},
                               {"seven sources", 14, toy_chain(2, 14, 7), 1, 16, 1, {}},
                               {"one source", 15, toy_chain(1, 3, 1), 0, 4, 1, {}}};
  if (device_->info().kind == device::Kind::cuda) {
    cases.push_back({"twelve sources", 16, toy_chain(4, 20, 12), 0, 24, 1, {}});
    cases.push_back({"cut digits", 16, toy_chain(2, 20, 8), 3, 20, 2, {}});
    const Chain largest{mixed_primes(17, 18), 13, 5, 5};
    cases.push_back({"largest ring", 17, largest, 2, 12, 1, {}});
  }
  for (const auto& s : cases) {
    SCOPED_TRACE(s.name);
    auto pair = make_pair(device_, s.log_n, s.chain.primes);
    const auto table =
        rns::make_mod_up(moduli_of(pair.ring()), s.window(), s.special(), s.chain.alpha);
    const auto in_candidate = pair.candidate.kernels->prepare(table);
    const auto in_reference = pair.reference.kernels->prepare(table);
    auto in = input(pair.ring(), rng, s, 1, s.window());
    for (const Fill fill : {Fill::random, Fill::top}) {
      SCOPED_TRACE(name_of(fill));
      fill_canonical(in, pair.ring(), rng, fill);
      expect_same(
          pair, {output(rng, s, s.digits(), s.extended()), in}, 1,
          [&](Ctx& c, const V& v) { c.kernels->mod_up(*c.stream, v[0], v[1], in_candidate); },
          [&](Ctx& c, const V& v) { c.kernels->mod_up(*c.stream, v[0], v[1], in_reference); });
    }
    check_divide(pair, rng, s, 2, s.extended(), s.window(), 1);
    if (s.end - s.begin > 3)
      check_divide(pair, rng, s, 2, s.window(), LimbSet::range(s.begin, s.end - 2), 0);
  }
}

TEST_P(Fused, HoistedRotateSum) {
  Rng rng = test_rng();
  for_each_case(device_, [&](Pair& pair, const ChainCase& s) {
    const u64 two_n = u64(2) << s.log_n;
    device::LimbScalars special;
    for (u32 i = 0; i < s.end - s.begin; ++i)
      special.low[i] = special.high[i] =
          static_cast<u32>(rng() % pair.ring().modulus(s.begin + i).q);
    const std::vector<TestPoly> polys{output(rng, s, 2, s.extended()),
                                      input(pair.ring(), rng, s, s.digits(), s.extended()),
                                      input(pair.ring(), rng, s, 1, s.window()),
                                      input(pair.ring(), rng, s, 1, s.window()),
                                      switching_key(pair.ring(), rng, s),
                                      switching_key(pair.ring(), rng, s)};
    const std::vector<std::vector<u64>> lists{
        {5}, {1}, {1, 25}, {rng() % two_n | 1, two_n - 1}, {3, 1, 7, 1, 125}, {}};
    for (const auto& elements : lists) {
      SCOPED_TRACE(cat(elements.size(), " elements"));
      const auto call = [&](bool composed) {
        return [&, composed](Ctx& c, const V& v) {
          std::vector<device::KeyView> keys;
          for (std::size_t r = 0; r < elements.size(); ++r)
            keys.push_back(elements[r] == 1 ? device::KeyView() : v[4 + r % 2]);
          const std::span<const device::KeyView> key_span(keys);
          if (composed)
            compositions(*c.kernels)
                .hoisted_rotate_sum(*c.stream, v[0], v[1], v[2], v[3], key_span, elements, special,
                                    s.first_digit());
          else
            c.kernels->hoisted_rotate_sum(*c.stream, v[0], v[1], v[2], v[3], key_span, elements,
                                          special, s.first_digit());
        };
      };
      expect_both(pair, polys, call(false), call(true));
    }
  });
}

}  // namespace
}  // namespace crenel::test
