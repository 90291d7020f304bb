// What ciphertexts say of their noise and what evaluators say of failures, against measurement:
// variances of fresh ciphertexts and of sums, and failures on sets so small that they are frequent.
#include <cmath>

#include "support/tfhe_world.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/gate_table.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

Spec changed(const std::string& shape, u32 lwe_dim, u32 log_rest, u32 poly_size) {
  Spec spec = test::tfhe_toy_spec(shape);
  spec.lwe_dim = LweDim(lwe_dim), spec.log_lwe_modulus = log_rest;
  spec.poly_size = PolySize(poly_size);
  return spec;
}

struct World {
  explicit World(const Params& params, const std::string& device)
      : context(params, device),
        client(context.keygen()),
        ev(context.evaluator(client.evaluation_keys(), {0.0})) {}
  Context context;
  Client client;
  Evaluator ev;
};

class TfheFailure : public test::DeviceTest {
 protected:
  static double mean_square(const std::vector<i64>& errors) {
    double sum = 0;
    for (const i64 e : errors) sum += double(e) * double(e);
    return sum / double(errors.size());
  }
};

TEST_P(TfheFailure, FreshCiphertextsErrAsTheySay) {
  auto rng = test::test_rng();
  constexpr u64 kCount = 20000;
  for (const char* name : {"gadget", "raising:r3", "padded", "large"}) {
    auto& w = test::tfhe_world(GetParam(), name);
    for (const u32 p : {4u, 64u}) {
      if (w.params().spec().padded && p != 4) continue;
      const Messages x = test::random_messages(rng, kCount, 2);
      const Ciphertext c = w.client.encrypt(x, p);
      const double ratio = mean_square(w.client.phase_errors(c, x)) / c.noise_variance();
      std::printf("%-12s p = %2u: ratio of variances %.3f\n", name, p, ratio);
      EXPECT_NEAR(ratio, 1.0, 6 * std::sqrt(2.0 / kCount)) << "CRENEL_SEED=" << test::run_seed();
    }
  }
}

// Sums of encryptions, of results, of copies and of both; ratios over several keys.
TEST_P(TfheFailure, SumsErrAsTheySay) {
  const Params params = Params::from_spec(changed("raising", 96, 12, 128), true);
  constexpr u64 kCount = 500;
  constexpr int kKeys = 4;
  std::map<std::string, double> ratios;
  const Messages zero(kCount, 0), one(kCount, 1);
  for (int key = 0; key < kKeys; ++key) {
    World w(params, GetParam());
    const Ciphertext x = w.client.encrypt(zero, 4), y = w.client.encrypt(zero, 4);
    const Ciphertext a = w.ev.gate(Gate::and_, x, y), b = w.ev.gate(Gate::xor_, x, y);
    const Ciphertext copy = a.clone();
    const auto measured = [&](const char* what, const Ciphertext& c) {
      ratios[what] += mean_square(w.client.phase_errors(c, zero)) / c.noise_variance() / kKeys;
    };
    const auto sum = [&](const Ciphertext& u, i64 f, const Ciphertext& v, i64 g) {
      const Term terms[] = {{&u, f}, {&v, g}};
      return w.ev.linear(terms);
    };
    measured("a result", a);
    measured("3 a - 2 b", sum(a, 3, b, -2));
    measured("a + its copy", sum(a, 1, copy, 1));
    measured("2 a - its copy", sum(a, 2, copy, -1));
    measured("a + 9 x", sum(a, 1, x, 9));
    const Ciphertext s = sum(a, 4, b, 4), t = sum(a, 4, b, -4);
    measured("(a + b) + (a - b)", sum(s, 1, t, 1));
    measured("digit", w.ev.decompose(w.client.encrypt(zero, 16), 2)[0]);
    measured("floor", w.ev.floor(w.client.encrypt(zero, 16), 2));
  }
  for (const auto& [what, ratio] : ratios) {
    std::printf("%-20s ratio of variances %.3f\n", what.c_str(), ratio);
    // 6 sqrt(2 / 2000) = 0.19 of the sample, and as much of the keys' weights and mean errors
    EXPECT_NEAR(ratio, 1.0, 0.3) << what << "; repeat with CRENEL_SEED=" << test::run_seed();
  }
}

// A phase in the middle of its window on one side fails with the upper tail of a Gaussian; the
// bound is 2 exp(-z^2 / 2), above twice that tail. They agree within a factor of two: phases are
// integers, so that a margin of 8 is 7.5 or 8.5, and keys have weights.
struct Frequency {
  double failures = 0, count = 0, expected = 0, bound = 0;
};

void check(const char* what, const Frequency& f, double factor = 2) {
  const double measured = f.failures / f.count, expected = f.expected / f.count;
  std::printf("%-20s measured %.5f, Gaussian tail %.5f, bound %.5f\n", what, measured, expected,
              f.bound / f.count);
  EXPECT_GT(f.failures, 30) << what << ": too few to compare";
  EXPECT_LT(measured, 2 * expected) << what << "; CRENEL_SEED=" << test::run_seed();
  EXPECT_GT(measured, expected / factor) << what << "; CRENEL_SEED=" << test::run_seed();
  EXPECT_LT(measured, f.bound / f.count) << what;
}

double deviations(double p_fail_log2) { return std::sqrt(2 * std::log(2.0) * (1 - p_fail_log2)); }

// Gates of ones, whose sum stands a margin from an end of the window, from fresh inputs and from
// results.
TEST_P(TfheFailure, GatesFailAsOftenAsStated) {
  struct Case {
    Gate gate;
    u32 log_rest;
    /// Of the window that are a margin away: of XOR, whose sum is 0, both.
    double ends;
  };
  constexpr u64 kCount = 1000;
  constexpr int kKeys = 3;
  for (const Case& c : {Case{Gate::and_, 6, 1},
                        {Gate::xor_, 6, 2},
                        {Gate::majority, 6, 1},
                        {Gate::and3, 7, 1},
                        {Gate::and4, 7, 1}}) {
    const Params params = Params::from_spec(changed("raising", 192, c.log_rest, 64), true);
    const GateConstants& g = constants(c.gate);
    Frequency fresh, chained;
    for (int key = 0; key < kKeys; ++key) {
      World w(params, GetParam());
      const auto& s = w.ev.state();
      const Messages ones(kCount, 1);
      const auto run = [&](const std::vector<Ciphertext>& in, Frequency& f) {
        std::vector<const Ciphertext*> inputs;
        std::vector<Messages> bits;
        Noise sum(kCount);
        for (const Ciphertext& x : in) {
          inputs.push_back(&x);
          bits.push_back(w.client.decrypt(x));
          sum.add(x.data().noise, g.factor);
        }
        const Ciphertext out = w.ev.gate(c.gate, inputs);
        const Messages found = w.client.decrypt(out);
        const double p = s.failure(sum, s.log_q(), gate_margin(s.plan(), g));
        for (u64 i = 0; i < kCount; ++i) {
          bool right = true;  // what failed before is not this gate's failure
          for (std::size_t j = 0; j < in.size(); ++j) right = right && bits[j][i] == 1;
          if (!right && &f == &chained) continue;
          f.count += 1;
          f.failures += found[i] != (g.counts >> g.inputs & 1);
          f.expected += 0.5 * c.ends * std::erfc(deviations(p) / std::sqrt(2.0));
          f.bound += std::exp2(p);
        }
      };
      std::vector<Ciphertext> first, second;
      for (u32 i = 0; i < g.inputs; ++i) first.push_back(w.client.encrypt(ones, g.plain_modulus));
      run(first, fresh);
      // results that are 1: of gates that a sum of knowns cannot fail
      const Gate maker = g.inputs == 4                           ? Gate::or4
                         : g.inputs == 3 && g.plain_modulus == 6 ? Gate::or3
                                                                 : Gate::or_;
      for (u32 i = 0; i < g.inputs; ++i) {
        std::vector<Ciphertext> from;
        from.push_back(w.client.encrypt(ones, g.plain_modulus));
        const Messages other(kCount, fan_in(maker) == 2 ? 0 : 1);
        while (from.size() < fan_in(maker))
          from.push_back(
              w.ev.trivial(from.size() == 1 ? other : Messages(kCount, 0), g.plain_modulus));
        std::vector<const Ciphertext*> inputs;
        for (const Ciphertext& x : from) inputs.push_back(&x);
        second.push_back(w.ev.gate(maker, inputs));
      }
      run(second, chained);
    }
    // results stand at q / 6 itself, not at the integer beside it that the margin is for
    const double factor = g.plain_modulus == 6 ? 4 : 2;
    check(cat(g.name, ", fresh").c_str(), fresh, factor);
    check(cat(g.name, ", results").c_str(), chained, factor);
  }
}

// Messages of a table have neighbours on both sides.
TEST_P(TfheFailure, TablesFailAsOftenAsStated) {
  Spec spec = changed("padded", 128, 14, 256);
  spec.plain_modulus = 64;
  const Params params = Params::from_spec(spec, true);
  constexpr u64 kCount = 500;
  Frequency f;
  auto rng = test::test_rng();
  for (int key = 0; key < 4; ++key) {
    World w(params, GetParam());
    Messages x = test::random_messages(rng, kCount, 30);
    for (u64& m : x) m += 1;  // of 32, the ends read themselves beyond
    Lut identity;
    for (u64 m = 0; m < 32; ++m) identity.table.push_back(m);
    const Ciphertext in = w.client.encrypt(x);
    const Messages found = w.client.decrypt(w.ev.lut(in, identity));
    const double p =
        w.ev.state().failure(in.data().noise, 14, table_margin(w.ev.state().plan(), 64));
    for (u64 i = 0; i < kCount; ++i) f.failures += found[i] != x[i];
    f.count += kCount;
    f.expected += kCount * std::erfc(deviations(p) / std::sqrt(2.0));
    f.bound += kCount * std::exp2(p);
  }
  check("table", f);
}

CRENEL_CANDIDATE_SUITE(TfheFailure);

}  // namespace
}  // namespace crenel::tfhe
