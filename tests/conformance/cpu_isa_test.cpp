// Every instruction-set path of the CPU device gives the same bits as the portable one (which the
// conformance suites compare with ref where it is the best path, and this file on every machine).
#include "backends/cpu/cpu_backend.h"
#include "support/chains.h"
#include "support/same.h"
#include "support/scalars.h"

namespace crenel::test {
namespace {

using backend::cpu::Isa;
using Ctx = Context;
using V = Views;

class CpuIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!backend::cpu::isa_available(GetParam()))
      GTEST_SKIP() << "no " << backend::cpu::isa_name(GetParam()) << " on this machine";
  }
  // The candidate path and the portable one over the same ring.
  Pair pair(u32 log_n, const std::vector<u64>& primes) const {
    return {make_context(backend::cpu::make_cpu_device(GetParam()), log_n, primes),
            make_context(backend::cpu::make_cpu_device(Isa::scalar), log_n, primes)};
  }
};

INSTANTIATE_TEST_SUITE_P(, CpuIsa, testing::Values(Isa::avx2, Isa::avx512),
                         [](const testing::TestParamInfo<Isa>& info) {
                           return info.param == Isa::avx2 ? "avx2" : "avx512";
                         });

void expect_same_bits(Pair& pair, const std::vector<TestPoly>& polys, const Operation& operation) {
  expect_same(pair, polys, 1, operation);
}

device::LimbScalars scalars_of_chain(const ring::Ring& ring, Rng& rng) {
  return test::random_scalars(ring, rng, LimbSet::range(0, ring.prime_count()), false);
}

TEST_P(CpuIsa, ScalarPathIsRef) {
  Rng rng = test_rng();
  const auto primes = mixed_primes(8, 4);
  Pair p{make_context(backend::cpu::make_cpu_device(Isa::scalar), 8, primes),
         make_context(device::make_ref_device(), 8, primes)};
  const auto all = LimbSet::range(0, p.ring().prime_count());
  const auto in = random_poly(p.ring(), rng, {8, 1, 1}, all, Domain::coeff);
  const auto out = garbage_poly(rng, {8, 1, 1}, all, Domain::eval);
  expect_same_bits(p, {out, in}, [](Ctx& c, const V& v) { c.kernels->ntt(*c.stream, v[0], v[1]); });
}

TEST_P(CpuIsa, Transforms) {
  Rng rng = test_rng();
  for (u32 log_n = 1; log_n <= 17; ++log_n) {
    SCOPED_TRACE(cat("log_n ", log_n));
    auto p = pair(log_n, mixed_primes(log_n, log_n < 12 ? 8 : 3));
    const auto all = LimbSet::range(0, p.ring().prime_count());
    for (const Fill fill : {Fill::random, Fill::top}) {
      auto in = random_poly(p.ring(), rng, {log_n, 1, 1}, all, Domain::coeff, {}, fill);
      auto out = garbage_poly(rng, {log_n, 1, 1}, all, Domain::eval);
      expect_same_bits(p, {out, in},
                       [](Ctx& c, const V& v) { c.kernels->ntt(*c.stream, v[0], v[1]); });
      std::swap(in.view.domain, out.view.domain);
      expect_same_bits(p, {out, in},
                       [](Ctx& c, const V& v) { c.kernels->intt(*c.stream, v[0], v[1]); });
      const u64 element = (rng() % (u64(2) << log_n)) | 1;
      for (const Domain d : {Domain::coeff, Domain::eval}) {
        in.view.domain = out.view.domain = d;
        expect_same_bits(p, {out, in}, [&](Ctx& c, const V& v) {
          c.kernels->automorphism(*c.stream, v[0], v[1], element);
        });
      }
    }
  }
}

TEST_P(CpuIsa, ElementWise) {
  Rng rng = test_rng();
  auto p = pair(10, mixed_primes(10, 12));
  const auto all = LimbSet::range(0, p.ring().prime_count());
  const auto scalars = scalars_of_chain(p.ring(), rng);
  const std::vector<Operation> operations = {
      [](Ctx& c, const V& v) { c.kernels->add(*c.stream, v[0], v[1], v[2]); },
      [](Ctx& c, const V& v) { c.kernels->sub(*c.stream, v[0], v[1], v[2]); },
      [](Ctx& c, const V& v) { c.kernels->neg(*c.stream, v[0], v[1]); },
      [](Ctx& c, const V& v) { c.kernels->mul(*c.stream, v[0], v[1], v[2]); },
      [](Ctx& c, const V& v) { c.kernels->mul_add(*c.stream, v[0], v[1], v[2]); },
      [&](Ctx& c, const V& v) { c.kernels->mul_scalar(*c.stream, v[0], v[1], scalars); },
      [&](Ctx& c, const V& v) { c.kernels->mul_add_scalar(*c.stream, v[0], v[1], scalars); },
      [&](Ctx& c, const V& v) { c.kernels->add_scalar(*c.stream, v[0], v[1], scalars); }};
  for (const Fill fill : kEveryFill)
    for (std::size_t i = 0; i < operations.size(); ++i) {
      SCOPED_TRACE(cat("operation ", i, ", ", name_of(fill)));
      const PolyShape shape{10, 2, 1};
      const auto out = random_poly(p.ring(), rng, shape, all, Domain::eval, {}, fill);
      const auto a = random_poly(p.ring(), rng, shape, all, Domain::eval, {}, fill);
      const auto b = random_poly(p.ring(), rng, shape, all, Domain::eval);
      expect_same_bits(p, {out, a, b}, operations[i]);
    }
}

TEST_P(CpuIsa, Combination) {
  Rng rng = test_rng();
  for (const u32 log_n : {3u, 6u, 10u})
    for (const auto& primes : {mixed_primes(10, 6), largest_primes(10, 6)}) {
      auto p = pair(log_n, primes);
      const auto all = LimbSet::range(0, 6);
      std::vector<device::LimbScalars> scalars;
      std::vector<TestPoly> polys;
      for (u32 k = 0; k < 20; ++k) {
        scalars.push_back(scalars_of_chain(p.ring(), rng));
        polys.push_back(random_poly(p.ring(), rng, {log_n, 2, 1}, all, Domain::eval, {},
                                    k % 2 ? Fill::top : Fill::random));
      }
      expect_same_bits(p, polys, [&](Ctx& c, const V& v) {
        const std::vector<ring::PolyView<const u32>> in(v.begin(), v.end());
        c.kernels->linear_combination(*c.stream, v[0], in, scalars, &scalars[0]);
      });
    }
}

// Baby steps, and plaintexts with a word for one value, a few lanes and whole vectors.
TEST_P(CpuIsa, PlainSums) {
  Rng rng = test_rng();
  Chain chain = toy_chain(2, 9, 3);
  const std::vector<u8> present{1, 1, 0, 1, 1, 0, 1, 1, 1};
  for (const u32 log_n : {4u, 6u, 10u, 13u}) {
    auto p = pair(log_n, chain.primes);
    const auto window = LimbSet::range(4, 11), extended = LimbSet::range(4, 14);
    const auto scalars = scalars_of_chain(p.ring(), rng);
    const std::vector<u64> elements = {5, 1, (u64(2) << log_n) - 1};
    for (u32 log_words = 0; log_words <= log_n; ++log_words) {
      SCOPED_TRACE(cat("N = 2^", log_n, ", 2^", log_words, " words"));
      const Fill fill = log_words % 2 ? Fill::top : Fill::random;
      const auto poly = [&](u32 components, u32 entries, const LimbSet& limbs) {
        return random_poly(p.ring(), rng, {log_n, components, entries}, limbs, Domain::eval, {},
                           fill);
      };
      auto words = random_poly(p.ring(), rng, {log_words, 3, 3}, extended, Domain::eval, {}, fill);
      const std::vector<TestPoly> polys{poly(2, 1, extended),
                                        poly(2, 1, extended),
                                        poly(2, 1, extended),
                                        poly(3, 1, extended),
                                        poly(1, 1, window),
                                        poly(1, 1, window),
                                        poly(2, chain.digits(), LimbSet::range(0, 14)),
                                        words};
      expect_same(p, polys, 3, [&](Ctx& c, const V& v) {
        const device::PlainGrid plain{v[7].data, extended, log_words, 3, 3, present.data()};
        const std::vector<ring::PolyView<u32>> out(v.begin(), v.begin() + 3);
        const std::vector<device::KeyView> keys(3, v[6]);
        c.kernels->hoisted_plain_sums(*c.stream, out, v[3], v[4], v[5], keys, elements, plain,
                                      scalars, 1);
      });
    }
  }
}

TEST_P(CpuIsa, Samplers) {
  Rng rng = test_rng();
  random::Seed seed;
  for (auto& byte : seed) byte = static_cast<u8>(rng());
  const random::Nonce nonce{random::Purpose::test, 0xfffffffeu};  // the serial's low word overflows
  for (const u32 log_n : {1u, 2u, 5u, 6u, 9u, 13u}) {
    SCOPED_TRACE(cat("log_n ", log_n));
    auto p = pair(log_n, mixed_primes(log_n < 6 ? 6 : log_n, 4));
    const auto all = LimbSet::range(0, p.ring().prime_count());
    auto out = garbage_poly(rng, {log_n, 2, 2}, all, Domain::coeff);
    expect_same_bits(p, {out}, [&](Ctx& c, const V& v) {
      c.kernels->sample_uniform(*c.stream, v[0], seed, nonce);
    });
    expect_same_bits(p, {out}, [&](Ctx& c, const V& v) {
      c.kernels->sample_ternary(*c.stream, v[0], seed, nonce);
    });
    expect_same_bits(p, {out}, [&](Ctx& c, const V& v) {
      c.kernels->sample_error(*c.stream, v[0], seed, nonce);
    });
    std::vector<i64> values(out.view.ring_dim() * 4);
    for (auto& x : values) x = static_cast<i64>(rng());
    values[0] = INT64_MIN, values[1] = INT64_MAX, values[2] = -1, values[3] = 0;
    expect_same_bits(p, {out}, [&](Ctx& c, const V& v) {
      c.kernels->reduce_signed(*c.stream, v[0], values.data());
    });
  }
}

// All of key switching; `chain` decides whether the sums of base conversion need folding.
void key_switching(Pair& p, Rng& rng, const Chain& chain, u32 begin, u32 end, Fill fill) {
  const u32 log_n = p.ring().log_n(), batch = 2;
  const auto moduli = moduli_of(p.ring());
  const auto window = LimbSet::range(begin, end);
  const auto special = LimbSet::range(chain.q_count, chain.q_count + chain.special_count);
  const auto extended = window.concat(special);
  const auto poly = [&](u32 components, u32 entries, const LimbSet& limbs) {
    return random_poly(p.ring(), rng, {log_n, components, entries}, limbs, Domain::eval, {}, fill);
  };
  const auto up = rns::make_mod_up(moduli, window, special, chain.alpha);
  const auto down = rns::make_divide(moduli, extended, LimbSet::range(begin / 2, end - 1));
  const u32 digits = static_cast<u32>(up.digits.size()), first = begin / chain.alpha;
  const auto up_c = p.candidate.kernels->prepare(up), up_r = p.reference.kernels->prepare(up);
  const auto down_c = p.candidate.kernels->prepare(down),
             down_r = p.reference.kernels->prepare(down);
  expect_same(
      p, {poly(digits, batch, extended), poly(1, batch, window)}, 1,
      [&](Ctx& c, const V& v) { c.kernels->mod_up(*c.stream, v[0], v[1], up_c); },
      [&](Ctx& c, const V& v) { c.kernels->mod_up(*c.stream, v[0], v[1], up_r); });
  expect_same(
      p, {poly(2, batch, down.output), poly(2, batch, extended)}, 1,
      [&](Ctx& c, const V& v) { c.kernels->divide(*c.stream, v[0], v[1], down_c); },
      [&](Ctx& c, const V& v) { c.kernels->divide(*c.stream, v[0], v[1], down_r); });
  const auto key = poly(2, chain.digits(), LimbSet::range(0, p.ring().prime_count()));
  expect_same_bits(
      p, {poly(2, batch, extended), poly(digits, batch, extended), key},
      [&](Ctx& c, const V& v) { c.kernels->key_multiply(*c.stream, v[0], v[1], v[2], first); });
  expect_same_bits(p, {poly(3, batch, window), poly(2, batch, window), poly(2, batch, window)},
                   [](Ctx& c, const V& v) { c.kernels->tensor(*c.stream, v[0], v[1], v[2]); });
  expect_same_bits(p, {poly(3, batch, window), poly(2, batch, window)},
                   [](Ctx& c, const V& v) { c.kernels->tensor_square(*c.stream, v[0], v[1]); });
  const auto scalars = scalars_of_chain(p.ring(), rng);
  const std::vector<u64> elements = {5, 1, (u64(2) << log_n) - 1};
  expect_same_bits(p,
                   {poly(2, batch, extended), poly(digits, batch, extended), poly(1, batch, window),
                    poly(1, batch, window), key},
                   [&](Ctx& c, const V& v) {
                     const std::vector<device::KeyView> keys(elements.size(), v[4]);
                     c.kernels->hoisted_rotate_sum(*c.stream, v[0], v[1], v[2], v[3], keys,
                                                   elements, scalars, first);
                   });
}

TEST_P(CpuIsa, KeySwitching) {
  Rng rng = test_rng();
  const Chain chain = toy_chain(4, 20, 6);
  for (const u32 log_n : {4u, 6u, 10u}) {
    auto p = pair(log_n, chain.primes);
    for (const Fill fill : {Fill::random, Fill::top}) key_switching(p, rng, chain, 3, 22, fill);
  }
}

TEST_P(CpuIsa, KeySwitchingWithoutLazySums) {
  Rng rng = test_rng();
  Chain chain;
  chain.primes = largest_primes(10, 40);
  chain.q_count = 30, chain.special_count = 10, chain.alpha = 10;
  auto p = pair(10, chain.primes);
  for (const Fill fill : {Fill::random, Fill::top}) key_switching(p, rng, chain, 2, 29, fill);
}

}  // namespace
}  // namespace crenel::test
