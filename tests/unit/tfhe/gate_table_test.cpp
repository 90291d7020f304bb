// Every operation is judged by the noise of what it reads, before anything is computed.
#include "tfhe/gate_table.h"

#include <cmath>
#include <functional>
#include <limits>

#include "crenel/core/error.h"
#include "crenel/tfhe/integer.h"
#include "crenel/tfhe/serialize.h"
#include "support/tfhe_world.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

constexpr Gate kAll[] = {Gate::and_, Gate::or_, Gate::nand,     Gate::nor,  Gate::xor_, Gate::xnor,
                         Gate::and3, Gate::or3, Gate::majority, Gate::and4, Gate::or4};

// No keys: nothing is computed.
Evaluator without_keys(const std::string& set, const EvaluatorOptions& options = {}) {
  return Context(Params::preset(set, true), "ref").evaluator(EvaluationKeys(nullptr), options);
}

TEST(TfheFailures, OperationsOfTheDefaultSetsStateTheirOwn) {
  const Evaluator gates = without_keys("bool128-classic");
  EXPECT_EQ(gates.max_p_fail_log2(), -128);
  for (const char* name : {"and", "or", "nand", "nor", "xor", "xnor", "mux"})
    EXPECT_NEAR(gates.p_fail_log2(name), -136.0, 0.05) << name;
  EXPECT_LT(gates.p_fail_log2("refresh"), -250);
  EXPECT_NEAR(gates.p_fail_log2("majority"), -90.4, 0.05);
  EXPECT_NEAR(gates.p_fail_log2("and4"), -16.1, 0.05);
  EXPECT_NEAR(gates.p_fail_log2("or4"), -16.1, 0.05);
  // 2^-39.6 but for q / 6 being no integer
  EXPECT_NEAR(gates.p_fail_log2("and3"), -39.6, 1.5);
  EXPECT_GT(gates.p_fail_log2("and3"), -39.6);
  EXPECT_NEAR(gates.p_fail_log2(Gate::or3), -39.6, 1.5);
  const Evaluator tables = without_keys("lut4-128-classic");
  for (const char* name : {"nand", "majority", "and4", "mux", "refresh", "lut"})
    EXPECT_LT(tables.p_fail_log2(name), -128) << name;
  EXPECT_THROW(gates.p_fail_log2("nandy"), ParameterError);
  // G4's functions take two bootstraps: 2^-161.8 is no bootstrap's of an arbitrary table
  const Evaluator functions = without_keys("G4");
  EXPECT_DOUBLE_EQ(functions.p_fail_log2("lut"), functions.max_p_fail_log2());
  EXPECT_GT(functions.max_p_fail_log2(), -90);
}

TEST(TfheFailures, MarginsAreThoseOfTheWindows) {
  for (const std::string name : {"bool128-classic", "STD128", "M1", "G4"}) {
    const auto plan = plan_of(Params::preset(name));
    const double q = std::exp2(plan.log_lwe_modulus);
    for (const Gate gate : kAll) {
      const GateConstants& g = constants(gate);
      const double ideal = g.factor * q / (2.0 * g.plain_modulus);
      const double margin = gate_margin(plan, g);
      EXPECT_LE(margin, ideal + 1e-9) << name << " " << g.name;
      EXPECT_GE(margin, g.plain_modulus == 6 ? ideal - 2.5 : ideal) << name << " " << g.name;
    }
  }
}

TEST(TfheFailures, OptionsAreLogarithmsOfProbabilities) {
  for (const double bad : {0.5, 1e9, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(without_keys("bool128-classic", {bad}), ParameterError) << bad;
  EXPECT_EQ(without_keys("bool128-classic", {-10.0}).max_p_fail_log2(), -10);
  EXPECT_EQ(without_keys("M1").max_p_fail_log2(), Params::preset("M1").p_fail_log2());
}

class TfheJudge : public test::TfheTest {
 protected:
  static std::string refused(const std::function<void()>& f) {
    try {
      f();
    } catch (const ParameterError& e) {
      EXPECT_NE(e.field("p_fail_log2"), "") << e.what();
      EXPECT_NE(e.field("max_p_fail_log2"), "");
      return std::string(e.field("operation"));
    }
    return "nothing";
  }
};

TEST_P(TfheJudge, GatesBeyondThePromiseAreRefused) {
  auto& w = world("gadget");
  const Evaluator ev = w.context.evaluator(w.keys);
  const Messages x{0, 1, 1, 1, 0};
  for (const Gate gate : kAll) {
    std::vector<Ciphertext> bits;
    std::vector<const Ciphertext*> inputs;
    for (u32 i = 0; i < fan_in(gate); ++i)
      bits.push_back(w.client.encrypt(x, plain_modulus_of(gate)));
    for (const Ciphertext& c : bits) inputs.push_back(&c);
    const bool kept = ev.p_fail_log2(gate) <= ev.max_p_fail_log2();
    EXPECT_EQ(refused([&] { ev.gate(gate, inputs); }), kept ? "nothing" : name_of(gate));
    EXPECT_EQ(kept, fan_in(gate) <= 3 && ev.p_fail_log2(gate) < -100) << name_of(gate);
    EXPECT_EQ(w.client.decrypt(bits[0]), x);  // unharmed
    const double own = ev.p_fail_log2(gate);
    const Evaluator lenient = w.context.evaluator(w.keys, {own});
    EXPECT_EQ(refused([&] { lenient.gate(gate, inputs); }), "nothing") << name_of(gate);
    const Evaluator strict = w.context.evaluator(w.keys, {own - 0.01});
    EXPECT_EQ(refused([&] { strict.gate(gate, inputs); }), name_of(gate));
  }
}

TEST_P(TfheJudge, SumsCarryTheirNoiseIntoEveryOperation) {
  auto& w = world("gadget");
  const Evaluator ev = w.context.evaluator(w.keys);
  const Messages x{0, 1, 1, 0}, y{1, 1, 0, 0};
  const Ciphertext a = w.client.encrypt(x, 4), b = w.client.encrypt(y, 4);
  const Term many{&a, 9};  // 9 = 1 modulo 4: the same bits, 81 times the variance
  const Ciphertext noisy = ev.linear({&many, 1}, 0);
  EXPECT_DOUBLE_EQ(noisy.noise_variance(), 81 * 10.5);
  EXPECT_EQ(w.client.decrypt(noisy), x);
  for (const Gate gate : {Gate::nand, Gate::xor_, Gate::or_})
    EXPECT_EQ(refused([&] { ev.gate(gate, noisy, b); }), name_of(gate));
  EXPECT_EQ(refused([&] { ev.gate(Gate::and_, ev.not_(noisy), b); }), "and");
  EXPECT_EQ(refused([&] { ev.mux(noisy, a, b); }), "mux");
  EXPECT_EQ(refused([&] { ev.mux(a, noisy, b); }), "mux");
  EXPECT_EQ(refused([&] { ev.mux(a, b, noisy); }), "mux");
  EXPECT_EQ(refused([&] { ev.refresh(noisy); }), "refresh");
  EXPECT_EQ(refused([&] { ev.lut(noisy, Lut{{0, 1, 0, 3}}); }), "look-up table");
  EXPECT_EQ(refused([&] { ev.floor(noisy, 1); }), "floor");
  EXPECT_EQ(refused([&] { ev.sign(noisy); }), "sign");
  EXPECT_EQ(refused([&] { ev.decompose(noisy, 1); }), "decompose");
  // through slices, copies and concatenations
  const Ciphertext copy = noisy.clone(), piece = noisy.slice(0, 2), fine = a.slice(2, 2);
  const Ciphertext* both[] = {&fine, &piece};
  const Ciphertext mixed = concatenate(both);
  EXPECT_EQ(refused([&] { ev.refresh(copy); }), "refresh");
  EXPECT_EQ(refused([&] { ev.refresh(piece); }), "refresh");
  EXPECT_EQ(refused([&] { ev.refresh(mixed); }), "refresh");
  EXPECT_EQ(refused([&] { ev.refresh(mixed.slice(2, 2)); }), "refresh");
  EXPECT_EQ(refused([&] { ev.refresh(mixed.slice(0, 2)); }), "nothing");
  EXPECT_GT(w.client.p_fail_log2(noisy), -30);
  EXPECT_LT(w.client.p_fail_log2(a), -500);
}

// Adding a ciphertext to itself doubles its noise, however the copy came about.
TEST_P(TfheJudge, CopiesAreNotIndependent) {
  auto& w = world("gadget");
  const Messages x{0, 1, 1, 0};
  const Ciphertext a = w.client.encrypt(x, 4), b = w.client.encrypt(x, 4), copy = a.clone();
  const Evaluator ev = w.context.evaluator(w.keys, {w.ev.p_fail_log2(Gate::nand)});
  EXPECT_EQ(refused([&] { ev.gate(Gate::nand, a, b); }), "nothing");
  EXPECT_EQ(refused([&] { ev.gate(Gate::nand, a, copy); }), "nand");
  EXPECT_EQ(refused([&] { ev.gate(Gate::xor_, a, ev.not_(copy)); }), "nothing")
      << "a and not a: their errors cancel";
  const Term sum[] = {{&a, 1}, {&copy, 1}, {&b, 1}};
  EXPECT_DOUBLE_EQ(ev.linear(sum).noise_variance(), 5 * 10.5);
  // 2^18 - 1 is -1 modulo q
  const Term wrapped[] = {{&a, 1}, {&copy, (i64(1) << 10) - 1}};
  EXPECT_EQ(ev.linear(wrapped).noise_variance(), 0);
}

TEST_P(TfheJudge, ResultsOfBootstrapsCarryTheModelsNoise) {
  auto& w = world("padded");
  const Messages c{0, 1, 1, 0}, x{0, 0, 1, 1}, y{1, 0, 0, 1};
  const Ciphertext bit = w.client.encrypt(c), a = w.client.encrypt(x), b = w.client.encrypt(y);
  const double fresh = fresh_std(w.params(), std::sqrt(10.5));
  const auto variance = [](const Ciphertext& r) { return r.noise_variance(); };
  EXPECT_NEAR(variance(w.ev.gate(Gate::and_, a, b)), fresh * fresh, 1e-9 * fresh * fresh);
  EXPECT_NEAR(variance(w.ev.refresh(a)), fresh * fresh, 1e-9 * fresh * fresh);
  EXPECT_NEAR(variance(w.ev.lut(a, Lut{Messages(8, 1)})), fresh * fresh, 1e-9 * fresh * fresh);
  EXPECT_NEAR(variance(w.ev.mux(bit, a, b)), 2 * fresh * fresh, 1e-9 * fresh * fresh)
      << "the sum of two look-ups";
  EXPECT_EQ(variance(w.ev.trivial(x)), 0);
  EXPECT_EQ(w.client.p_fail_log2(w.ev.trivial(x)), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(variance(a), 10.5);
  EXPECT_EQ(variance(w.ev.not_(a)), 10.5);
}

TEST_P(TfheJudge, FilesCarryTheNoise) {
  auto& w = world("gadget");
  const Evaluator ev = w.context.evaluator(w.keys);
  const Messages x{0, 1, 1, 0};
  const Ciphertext a = w.client.encrypt(x, 4);
  const Term many{&a, 9};
  const Ciphertext noisy = ev.linear({&many, 1});
  const auto loaded = ciphertext_from_bytes(w.context, to_bytes(w.context, noisy));
  EXPECT_EQ(loaded.noise_variance(), noisy.noise_variance());
  EXPECT_EQ(refused([&] { ev.refresh(loaded); }), "refresh");
  const auto fresh = ciphertext_from_bytes(w.context, to_bytes(w.context, a));
  EXPECT_EQ(fresh.noise_variance(), 10.5);
  const auto known = ciphertext_from_bytes(w.context, to_bytes(w.context, ev.trivial(x, 4)));
  EXPECT_EQ(known.noise_variance(), 0);
}

// Every circuit of integers keeps the promise of its set; `padded` arrays of bits too.
TEST_P(TfheJudge, IntegersKeepThePromise) {
  auto& w = world("toy-lut4");
  const Context& home = w.context;
  const Evaluator plain = home.evaluator(w.keys);
  EXPECT_EQ(plain.max_p_fail_log2(), w.params().p_fail_log2());
  const IntegerEvaluator ev(plain);
  const std::vector<u64> x{200, 7, 255}, y{100, 9, 255};
  const Integers a = encrypt_unsigned(w.client, x, 8), b = encrypt_unsigned(w.client, y, 8);
  const Integers sum = ev.add(a, b), copy = a.clone();
  const Ciphertext greater = ev.compare(Comparison::greater, sum, b),
                   less = ev.compare(Comparison::less, a, b),
                   equal = ev.compare(Comparison::equal, a, sum);
  const Ciphertext bit = plain.mux(greater, less, equal);  // of norm 2
  for (const auto& f : std::vector<std::function<void()>>{
           [&] { ev.mul(sum, copy); }, [&] { ev.mul(a, a); }, [&] { ev.sub(a, sum); },
           [&] { ev.min(a, sum); }, [&] { ev.max(a, a); }, [&] { ev.select(bit, a, sum); },
           [&] { ev.bit_xor(a, a); }, [&] { ev.shift_left(sum, 3); },
           [&] { ev.neg(ev.bit_not(a)); },
           [&] {
             plain.gate(Gate::and4, std::vector<const Ciphertext*>{&bit, &greater, &less, &equal});
           }})
    EXPECT_EQ(refused(f), "nothing");
}

CRENEL_DEVICE_SUITE(TfheJudge);

}  // namespace
}  // namespace crenel::tfhe
