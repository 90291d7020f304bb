// The kernels of every device against vectors of the independent Python model (generate.py).
#include <algorithm>

#include "golden/vectors.h"
#include "support/devices.h"

namespace crenel::test {
namespace {

class Golden : public DeviceTest {
 protected:
  Context context(const Case& c, const std::vector<u64>& primes) {
    return make_context(device_, log2_of(number(c, "n")), primes);
  }
  // The cases this device can run: the fast backends start at N = 2^10, the small cases are for
  // ref.
  std::vector<Case> cases(const std::string& name) const {
    auto all = read_cases(name);
    if (device_->info().kind != device::Kind::ref)
      std::erase_if(all, [](const Case& c) { return number(c, "n") < 1024; });
    EXPECT_FALSE(all.empty()) << name;
    return all;
  }
};
CRENEL_DEVICE_SUITE(Golden);

TEST_P(Golden, Ntt) {
  for (const auto& c : cases("ntt")) {
    SCOPED_TRACE(c.at("case")[0]);
    const auto primes = numbers(c, "primes");
    auto ctx = context(c, primes);
    const u32 log_n = ctx.ring->log_n(), count = ctx.ring->prime_count();
    const auto in =
        poly_of(input_of(c, primes), {log_n, 1, 1}, LimbSet::range(0, count), Domain::coeff);
    auto out = in;
    out.view.domain = Domain::eval;
    const auto result = run_on(
        ctx, {out, in}, [](Context& x, const Views& v) { x.kernels->ntt(*x.stream, v[0], v[1]); });
    expect_words(c, "output", result[0]);
    out.words = result[0];
    const auto back = run_on(
        ctx, {in, out}, [](Context& x, const Views& v) { x.kernels->intt(*x.stream, v[0], v[1]); });
    EXPECT_EQ(back[0], in.words);
  }
}

TEST_P(Golden, Automorphism) {
  for (const auto& c : cases("automorphism")) {
    SCOPED_TRACE(c.at("case")[0]);
    const auto primes = numbers(c, "primes");
    auto ctx = context(c, primes);
    const u64 element = number(c, "element");
    const auto in = poly_of(input_of(c, primes), {ctx.ring->log_n(), 1, 1},
                            LimbSet::range(0, ctx.ring->prime_count()), Domain::coeff);
    auto eval = in;
    eval.view.domain = Domain::eval;
    const auto result = run_on(ctx, {in, in, eval, eval}, [&](Context& x, const Views& v) {
      x.kernels->automorphism(*x.stream, v[0], v[1], element);
      x.kernels->ntt(*x.stream, v[2], v[1]);
      x.kernels->automorphism(*x.stream, v[3], v[2], element);
    });
    expect_words(c, "output", result[0]);
    expect_words(c, "eval_output", result[3]);
  }
}

// The primes of both lists, and the limb sets of each.
struct Bases {
  std::vector<u64> primes;
  LimbSet source, destination;

  explicit Bases(const Case& c) : primes(numbers(c, "source")) {
    source = LimbSet::range(0, static_cast<u32>(primes.size()));
    for (const u64 p : numbers(c, "destination")) {
      auto it = std::find(primes.begin(), primes.end(), p);
      if (it == primes.end()) it = primes.insert(primes.end(), p);
      destination.push_back(static_cast<u32>(it - primes.begin()));
    }
  }
};

TEST_P(Golden, BaseConvert) {
  for (const auto& c : cases("base_convert")) {
    SCOPED_TRACE(c.at("case")[0]);
    const Bases bases(c);
    auto ctx = context(c, bases.primes);
    const PolyShape shape{ctx.ring->log_n(), 1, 1};
    const auto table = ctx.kernels->prepare(
        rns::make_base_conversion(moduli_of(*ctx.ring), bases.source, bases.destination));
    const auto result = run_on(
        ctx,
        {empty_poly(shape, bases.destination, Domain::coeff),
         poly_of(input_of(c, numbers(c, "source")), shape, bases.source, Domain::coeff)},
        [&](Context& x, const Views& v) { x.kernels->base_convert(*x.stream, v[0], v[1], table); });
    expect_words(c, "output", result[0]);
  }
}

TEST_P(Golden, Divide) {
  for (const auto& c : cases("divide")) {
    SCOPED_TRACE(c.at("case")[0]);
    const Bases bases(c);
    auto ctx = context(c, bases.primes);
    const PolyShape shape{ctx.ring->log_n(), 1, 1};
    const auto table = ctx.kernels->prepare(
        rns::make_divide(moduli_of(*ctx.ring), bases.source, bases.destination));
    const auto result =
        run_on(ctx,
               {empty_poly(shape, bases.destination, Domain::eval),
                poly_of(input_of(c, numbers(c, "source")), shape, bases.source, Domain::coeff)},
               [&](Context& x, const Views& v) {
                 auto in = v[1];
                 in.domain = Domain::eval;
                 x.kernels->ntt(*x.stream, in, v[1]);
                 x.kernels->divide(*x.stream, v[0], in, table);
               });
    expect_words(c, "output", result[0]);
  }
}

TEST_P(Golden, ModUpAndKeyMultiply) {
  for (const auto& c : cases("key_switch")) {
    SCOPED_TRACE(c.at("case")[0]);
    const auto primes = numbers(c, "primes");
    auto ctx = context(c, primes);
    const u32 log_n = ctx.ring->log_n(), alpha = static_cast<u32>(number(c, "alpha"));
    const u32 begin = static_cast<u32>(number(c, "window_begin")),
              end = static_cast<u32>(number(c, "window_end"));
    const u32 q_count = static_cast<u32>(number(c, "q_count")),
              digits = static_cast<u32>(number(c, "digits"));
    const LimbSet window = LimbSet::range(begin, end),
                  all = LimbSet::range(0, ctx.ring->prime_count());
    const LimbSet special = LimbSet::range(q_count, all.size()), extended = window.concat(special);
    const auto table =
        ctx.kernels->prepare(rns::make_mod_up(moduli_of(*ctx.ring), window, special, alpha));
    const std::vector<u64> window_primes(primes.begin() + begin, primes.begin() + end);
    const u32 key_digits = (q_count + alpha - 1) / alpha;
    const auto key_words =
        random_words(number(c, "key_seed"), primes, number(c, "n"), 2 * key_digits);
    const auto result =
        run_on(ctx,
               {empty_poly({log_n, digits, 1}, extended, Domain::eval),
                empty_poly({log_n, 2, 1}, extended, Domain::eval),
                poly_of(input_of(c, window_primes), {log_n, 1, 1}, window, Domain::coeff),
                poly_of(key_words, {log_n, 2, key_digits}, all, Domain::eval)},
               [&](Context& x, const Views& v) {
                 auto in = v[2];
                 in.domain = Domain::eval;
                 x.kernels->ntt(*x.stream, in, v[2]);
                 x.kernels->mod_up(*x.stream, v[0], in, table);
                 x.kernels->key_multiply(*x.stream, v[1], v[0], v[3], begin / alpha);
               });
    expect_words(c, "mod_up", result[0]);
    expect_words(c, "key_multiply", result[1]);
  }
}

random::Seed key_of(const Case& c) {
  random::Seed seed;
  const std::string digits = c.at("key")[0];
  for (std::size_t i = 0; i < seed.size(); ++i)
    seed[i] = static_cast<u8>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
  return seed;
}

TEST_P(Golden, Samplers) {
  for (const auto& c : cases("samplers")) {
    const std::string name = c.at("case")[0];
    SCOPED_TRACE(name);
    const auto primes = numbers(c, "primes");
    const random::Nonce nonce{static_cast<random::Purpose>(number(c, "purpose")),
                              number(c, "serial")};
    LimbSet limbs;
    for (const u64 id : numbers(c, "ids")) limbs.push_back(static_cast<u32>(id));
    if (limbs.empty()) limbs = LimbSet::range(0, 1);
    auto ctx = context(c, primes);
    const auto result = run_on(ctx, {empty_poly({ctx.ring->log_n(), 1, 1}, limbs, Domain::coeff)},
                               [&](Context& x, const Views& v) {
                                 if (name == "ternary")
                                   x.kernels->sample_ternary(*x.stream, v[0], key_of(c), nonce);
                                 else if (name == "error")
                                   x.kernels->sample_error(*x.stream, v[0], key_of(c), nonce);
                                 else
                                   x.kernels->sample_uniform(*x.stream, v[0], key_of(c), nonce);
                               });
    if (!c.count("values")) {
      expect_words(c, "output", result[0]);
      continue;
    }
    for (std::size_t i = 0; i < result[0].size(); ++i) {
      const i64 value = std::stoll(c.at("values")[i]);
      ASSERT_EQ(result[0][i],
                static_cast<u32>(value < 0 ? primes[0] - static_cast<u64>(-value) : value));
    }
  }
}

}  // namespace
}  // namespace crenel::test
