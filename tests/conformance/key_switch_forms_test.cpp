// Key switches that end in a rotation or begin with a product: overrides and default compositions
// against the same of single operations on ref.
#include "device/poly/compose/workspace.h"
#include "support/chain_case.h"
#include "support/compositions.h"
#include "support/devices.h"
#include "support/same.h"
#include "support/scalars.h"

namespace crenel::test {
namespace {

class KeySwitchForms : public DeviceTest {};
CRENEL_POLY_SUITE(KeySwitchForms);

using Ctx = Context;
using V = Views;
using ConstView = ring::PolyView<const u32>;
using device::LimbScalars;
using device::compose::Temporary;
using Table = device::Prepared<rns::ModUp>;

// Rings of one pass and of two, rows of every length but the longest, digits of 1 to 12 limbs.
std::vector<ChainCase> form_cases() {
  return {{"small ring", 7, toy_chain(2, 5, 2), 0, 5, 2, {}},
          {"cut digits", 10, toy_chain(4, 43, 12), 3, 34, 1, {3, 0, 0, 1}},
          {"later digits", 11, toy_chain(2, 9, 3), 4, 11, 3, {1, 2, 1, 0}},
          {"digits of one limb", 12, toy_chain(1, 6, 1), 0, 6, 2, {0, 0, 0, 1}},
          {"one digit", 13, toy_chain(1, 4, 5), 0, 5, 4, {}},
          {"large ring", 15, toy_chain(2, 3, 2), 1, 4, 1, {}}};
}

TestPoly random_or_top(const ring::Ring& ring, Rng& rng, const ChainCase& s, u32 components,
                       const LimbSet& limbs) {
  auto p = random_poly(ring, rng, s.shape(components), limbs, Domain::eval, s.pad);
  if (s.batch == 1) fill_canonical(p, ring, rng, Fill::top);
  return p;
}
TestPoly output(Rng& rng, const ChainCase& s) {
  return garbage_poly(rng, s.shape(2), s.extended(), Domain::eval, s.pad);
}
Table prepared(const Context& c, const ChainCase& s) {
  return c.kernels->prepare(
      rns::make_mod_up(moduli_of(*c.ring), s.window(), s.special(), s.chain.alpha));
}

struct Rotation {
  u64 element;
  bool add;
  u32 addend = 0;      ///< components
  bool whole = false;  ///< the addend has all limbs
  bool factor = true, real = true;
};

std::vector<Rotation> rotations(Rng& rng, u64 two_n) {
  return {{rng() % two_n | 1, false},
          {two_n - 1, true},
          {rng() % two_n | 1, true, 1, true, false},
          {rng() % two_n | 1, false, 1, false, true},
          {1, true, 2, true, true},
          {5, false, 2, false, false},
          {rng() % two_n | 1, true, 1, false, true, false}};
}

// Of single operations: a switch, what is added to it, its rotation, the sum.
void rotated_apart(Ctx& c, const V& v, const Table& table, const ChainCase& s, const Rotation& r,
                   const ConstView* addend, const LimbScalars* factor) {
  auto& k = *c.kernels;
  auto& stream = *c.stream;
  const Temporary sum(stream, v[0].shape, v[0].limbs, Domain::eval);
  const Temporary turned(stream, v[0].shape, v[0].limbs, Domain::eval);
  k.key_switch_extended(stream, sum.view(), v[1], table, v[2], s.first_digit());
  if (addend != nullptr) {
    const auto to =
        sum.view().components(0, addend->shape.components).limb_window(0, addend->limbs.size());
    if (factor != nullptr)
      k.mul_add_scalar(stream, to, *addend, *factor);
    else
      k.add(stream, to, to, *addend);
  }
  if (!r.add) return k.automorphism(stream, v[0], sum.view(), r.element);
  k.automorphism(stream, turned.view(), sum.view(), r.element);
  k.add(stream, v[0], v[0], turned.view());
}

TEST_P(KeySwitchForms, Rotated) {
  Rng rng = test_rng();
  for (const auto& s : form_cases()) {
    SCOPED_TRACE(s.name);
    auto pair = make_pair(device_, s.log_n, s.chain.primes);
    const Table in_candidate = prepared(pair.candidate, s),
                in_reference = prepared(pair.reference, s);
    for (const Rotation& r : rotations(rng, u64(2) << s.log_n)) {
      SCOPED_TRACE(cat("element ", r.element, r.add ? ", added" : "", ", addend of ", r.addend));
      const LimbSet limbs = r.whole ? s.extended() : s.window();
      const LimbScalars factor = random_scalars(pair.ring(), rng, limbs, r.real);
      const std::vector<TestPoly> polys{
          r.add ? random_or_top(pair.ring(), rng, s, 2, s.extended()) : output(rng, s),
          random_or_top(pair.ring(), rng, s, 1, s.window()), switching_key(pair.ring(), rng, s),
          random_or_top(pair.ring(), rng, s, std::max(r.addend, 1u), limbs)};
      const auto with = [&](const auto& f) {
        return [&, f](Ctx& c, const V& v) {
          const ConstView addend = v[3];
          f(c, v, r.addend == 0 ? nullptr : &addend, r.factor ? &factor : nullptr);
        };
      };
      using A = const ConstView*;
      using F = const LimbScalars*;
      const Operation fused = with([&](Ctx& c, const V& v, A addend, F f) {
        c.kernels->key_switch_rotated(*c.stream, v[0], v[1], in_candidate, v[2], s.first_digit(),
                                      r.element, r.add, addend, f);
      });
      const Operation composed = with([&](Ctx& c, const V& v, A addend, F f) {
        compositions(*c.kernels)
            .key_switch_rotated(*c.stream, v[0], v[1], in_candidate, v[2], s.first_digit(),
                                r.element, r.add, addend, f);
      });
      expect_all_same(pair, polys, 1, {{"override", fused}, {"default composition", composed}},
                      with([&](Ctx& c, const V& v, A addend, F f) {
                        rotated_apart(c, v, in_reference, s, r, addend, f);
                      }));
    }
  }
}

struct Product {
  bool square, doubled = false, constant = false;
  u32 addends = 0, components = 2;
  bool real = true;
};

std::vector<Product> products() {
  return {{true},
          {true, true, true},
          {true, true, false, 1},
          {true, false, true, 1, 3},
          {false},
          {false, true, false, 1},
          {false, false, true, 1},
          {false, true, true, 3},
          {false, true, false, 1, 3},
          {false, false, true, 2, 2, false}};
}

// Of single operations: the tensor product, its multiple, what is added, the switch.
void product_apart(Ctx& c, const V& v, const ConstView& b, const Table& table, const ChainCase& s,
                   const device::ProductSum& sum, const LimbScalars& lift) {
  auto& k = *c.kernels;
  auto& stream = *c.stream;
  const Temporary made(stream, s.shape(3), s.window(), Domain::eval);
  const auto d = made.view(), first = d.components(0, 1);
  k.tensor(stream, d, v[1], b);
  if (sum.doubled) k.add(stream, d, d, d);
  if (sum.constant != nullptr) k.add_scalar(stream, first, first, *sum.constant);
  for (std::size_t i = 0; i < sum.addends.size(); ++i)
    k.mul_add_scalar(stream, d.components(0, sum.addends[i].shape.components), sum.addends[i],
                     sum.factors[i]);
  const ConstView low = d.components(0, 2);
  k.key_switch_extended(stream, v[0], d.components(2, 1), table, v[3], s.first_digit(), &low,
                        &lift);
}

TEST_P(KeySwitchForms, Product) {
  Rng rng = test_rng();
  for (const auto& s : form_cases()) {
    SCOPED_TRACE(s.name);
    auto pair = make_pair(device_, s.log_n, s.chain.primes);
    const Table in_candidate = prepared(pair.candidate, s),
                in_reference = prepared(pair.reference, s);
    const LimbScalars lift = random_scalars(pair.ring(), rng, s.window(), true);
    for (const Product& p : products()) {
      SCOPED_TRACE(cat(p.square ? "square" : "product", p.doubled ? ", doubled" : "",
                       p.constant ? ", constant" : "", ", ", p.addends, " addends of ",
                       p.components));
      const LimbScalars constant = random_scalars(pair.ring(), rng, s.window(), false);
      std::vector<LimbScalars> factors;
      std::vector<TestPoly> polys{output(rng, s), random_or_top(pair.ring(), rng, s, 2, s.window()),
                                  random_or_top(pair.ring(), rng, s, 2, s.window()),
                                  switching_key(pair.ring(), rng, s)};
      for (u32 i = 0; i < p.addends; ++i) {
        factors.push_back(random_scalars(pair.ring(), rng, s.window(), p.real));
        polys.push_back(random_or_top(pair.ring(), rng, s, p.components, s.window()));
      }
      const auto with = [&](const auto& f) {
        return [&, f](Ctx& c, const V& v) {
          const std::vector<ConstView> addends(v.begin() + 4, v.end());
          f(c, v, p.square ? v[1] : v[2],
            device::ProductSum{p.doubled, p.constant ? &constant : nullptr, addends, factors});
        };
      };
      using B = const ConstView&;
      using S = const device::ProductSum&;
      const Operation fused = with([&](Ctx& c, const V& v, B b, S sum) {
        c.kernels->key_switch_product(*c.stream, v[0], v[1], b, in_candidate, v[3], s.first_digit(),
                                      lift, sum);
      });
      const Operation composed = with([&](Ctx& c, const V& v, B b, S sum) {
        compositions(*c.kernels)
            .key_switch_product(*c.stream, v[0], v[1], b, in_candidate, v[3], s.first_digit(), lift,
                                sum);
      });
      expect_all_same(pair, polys, 1, {{"override", fused}, {"default composition", composed}},
                      with([&](Ctx& c, const V& v, B b, S sum) {
                        product_apart(c, v, b, in_reference, s, sum, lift);
                      }));
    }
  }
}

struct Division {
  const char* name;
  u64 element = 1;
  bool product = false, square = false;
  u32 lifted = 0;  ///< components that are added before the division
  u32 addend = 0;  ///< and after it
};

std::vector<Division> divisions(Rng& rng, u64 two_n) {
  return {{"plain", 1, false, false, 0, 2},
          {"plain, lifted", 1, false, false, 2},
          {"turned", rng() % two_n | 1, false, false, 1},
          {"turned, added", two_n - 1, false, false, 1, 2},
          {"square", 1, true, true},
          {"product", 1, true, false, 2}};
}

/// What the case divides, of v: output, two inputs, key, what is lifted, what is added.
template <class F>
void with_switch(const V& v, const Division& d, const LimbScalars& lift,
                 const std::vector<LimbScalars>& factors, const F& f) {
  const ConstView in = v[1], lifted = v[4].components(0, std::max(d.lifted, 1u));
  const ConstView added = v[5].components(0, std::max(d.addend, 1u));
  device::SwitchOf of{d.product ? in : in.components(1, 1)};
  of.factor = &lift;
  if (d.product) {
    of.other = d.square ? in : v[2];
    if (d.lifted != 0) of.sum = {true, nullptr, std::span(&lifted, 1), factors};
  } else {
    of.element = d.element;
    if (d.lifted != 0) of.addend = &lifted;
  }
  f(of, d.addend == 0 ? nullptr : &added);
}

// A key switch, then the division of its result.
void divided_apart(Ctx& c, const V& v, const Table& table,
                   const device::Prepared<rns::Divide>& divide, const ChainCase& s,
                   const device::SwitchOf& of, const ConstView* added) {
  auto& k = *c.kernels;
  const Temporary sum(*c.stream, s.shape(2), s.extended(), Domain::eval);
  if (of.product())
    k.key_switch_product(*c.stream, sum.view(), of.in, of.other, table, v[3], s.first_digit(),
                         *of.factor, of.sum);
  else if (of.element != 1)
    k.key_switch_rotated(*c.stream, sum.view(), of.in, table, v[3], s.first_digit(), of.element,
                         false, of.addend, of.factor);
  else
    k.key_switch_extended(*c.stream, sum.view(), of.in, table, v[3], s.first_digit(), of.addend,
                          of.factor);
  k.divide(*c.stream, v[0], sum.view(), divide, added);
}

TEST_P(KeySwitchForms, Divided) {
  Rng rng = test_rng();
  u32 turn = 0;  // every kind of switch with both divisions, in different rings
  for (const auto& s : form_cases()) {
    SCOPED_TRACE(s.name);
    auto pair = make_pair(device_, s.log_n, s.chain.primes);
    const Table in_candidate = prepared(pair.candidate, s),
                in_reference = prepared(pair.reference, s);
    const LimbScalars lift = random_scalars(pair.ring(), rng, s.window(), true);
    const std::vector<LimbScalars> factors{random_scalars(pair.ring(), rng, s.window(), true)};
    ++turn;
    for (const bool rescales : {false, true}) {
      const LimbSet left = rescales ? LimbSet::range(s.begin + 1, s.end - 1) : s.window();
      const auto divide = [&](const Context& c) {
        return c.kernels->prepare(rns::make_divide(moduli_of(*c.ring), s.extended(), left));
      };
      const auto divide_candidate = divide(pair.candidate),
                 divide_reference = divide(pair.reference);
      const std::vector<TestPoly> polys{garbage_poly(rng, s.shape(2), left, Domain::eval, s.pad),
                                        random_or_top(pair.ring(), rng, s, 2, s.window()),
                                        random_or_top(pair.ring(), rng, s, 2, s.window()),
                                        switching_key(pair.ring(), rng, s),
                                        random_or_top(pair.ring(), rng, s, 2, s.window()),
                                        random_or_top(pair.ring(), rng, s, 2, left)};
      for (const Division& d : divisions(rng, u64(2) << s.log_n)) {
        if ((++turn % 2 == 0) == rescales) continue;
        SCOPED_TRACE(cat(d.name, ", ", left.size(), " limbs left"));
        const Operation fused = [&](Ctx& c, const V& v) {
          with_switch(v, d, lift, factors, [&](const auto& of, const ConstView* added) {
            c.kernels->key_switch_divided(*c.stream, v[0], of, in_candidate, v[3], s.first_digit(),
                                          divide_candidate, added);
          });
        };
        expect_all_same(pair, polys, 1, {{"override", fused}}, [&](Ctx& c, const V& v) {
          with_switch(v, d, lift, factors, [&](const auto& of, const ConstView* added) {
            divided_apart(c, v, in_reference, divide_reference, s, of, added);
          });
        });
      }
    }
  }
}

// The longest rows, and so many digits and limbs that a backend may work in parts: too large for
// ref, so against the default compositions on the candidate itself.
void check_large(const std::shared_ptr<device::Device>& device, Rng& rng, const ChainCase& s) {
  SCOPED_TRACE(s.name);
  auto context = make_context(device, s.log_n, s.chain.primes);
  const Table table = prepared(context, s);
  const u64 element = rng() % (u64(2) << s.log_n) | 1;
  const LimbScalars lift = random_scalars(*context.ring, rng, s.window(), true);
  const std::vector<LimbScalars> factors{random_scalars(*context.ring, rng, s.window(), true)};
  const std::vector<TestPoly> polys{random_or_top(*context.ring, rng, s, 2, s.extended()),
                                    random_or_top(*context.ring, rng, s, 2, s.window()),
                                    random_or_top(*context.ring, rng, s, 2, s.window()),
                                    switching_key(*context.ring, rng, s),
                                    random_or_top(*context.ring, rng, s, 3, s.window())};
  const auto both = [&](const auto& f) {
    const auto run = [&](auto& k, Ctx& c, const V& v) { f(k, c, v); };
    const auto got = run_on(context, polys, [&](Ctx& c, const V& v) { run(*c.kernels, c, v); });
    const auto expected = run_on(context, polys, [&](Ctx& c, const V& v) {
      auto composed = compositions(*c.kernels);
      run(composed, c, v);
    });
    EXPECT_TRUE(same_words(polys[0], got[0], expected[0]));
  };
  const auto divide = context.kernels->prepare(
      rns::make_divide(moduli_of(*context.ring), s.extended(), s.window()));
  for (const Division& d : divisions(rng, u64(2) << s.log_n)) {
    SCOPED_TRACE(d.name);
    const std::vector<TestPoly> with_room{
        garbage_poly(rng, s.shape(2), s.window(), Domain::eval, {}),
        polys[1],
        polys[2],
        polys[3],
        polys[4],
        polys[1]};
    const auto run = [&](bool fused) {
      return run_on(context, with_room, [&](Ctx& c, const V& v) {
        with_switch(v, d, lift, factors, [&](const auto& of, const ConstView* added) {
          if (fused)
            return c.kernels->key_switch_divided(*c.stream, v[0], of, table, v[3], s.first_digit(),
                                                 divide, added);
          divided_apart(c, v, table, divide, s, of, added);
        });
      });
    };
    EXPECT_TRUE(same_words(with_room[0], run(true)[0], run(false)[0]));
  }
  const ConstView* const none = nullptr;
  const LimbScalars* const one = nullptr;
  both([&](auto& k, Ctx& c, const V& v) {
    k.key_switch_rotated(*c.stream, v[0], v[1].components(1, 1), table, v[3], s.first_digit(),
                         element, true, none, one);
  });
  for (const bool square : {true, false})
    both([&](auto& k, Ctx& c, const V& v) {
      const std::vector<ConstView> addends{square ? v[4].components(0, 2) : v[4]};
      const device::ProductSum sum{true, nullptr, addends, factors};
      k.key_switch_product(*c.stream, v[0], v[1], v[square ? 1 : 2], table, v[3], s.first_digit(),
                           lift, sum);
    });
}

TEST_P(KeySwitchForms, Large) {
  Rng rng = test_rng();
  Chain longest;
  longest.primes = largest_primes(17, 6);
  longest.q_count = 4;
  longest.special_count = longest.alpha = 2;
  check_large(device_, rng, {"longest rows", 17, longest, 0, 4, 1, {}});
  check_large(device_, rng, {"parts", 15, toy_chain(4, 43, 12), 3, 47, 2, {}});
}

}  // namespace
}  // namespace crenel::test
