// Noise of linear transforms, of the stages of a bootstrap one by one, and of the whole, against
// the formulas.
#include "circuits/linear_transform/plaintexts.h"
#include "circuits/mod1/eval_mod.h"
#include "noise/noise_world.h"
#include "support/boot_world.h"
#include "support/edited_files.h"
#include "support/encapsulation_world.h"

namespace crenel::circuits {
namespace {

using namespace test::noise;  // the formulas
using ckks::Ciphertext;
using test::BootWorld;
using test::Complex;
using test::Values;

BootWorld& boot_world(const char* params) {
  static auto* worlds = new std::map<std::string, std::unique_ptr<BootWorld>>();
  auto& slot = (*worlds)[params];
  if (!slot) slot = std::make_unique<BootWorld>(params, "cpu", noise_seed());
  return *slot;
}

double weight(const BootWorld& w) {
  const auto key = test::exported_coefficients(w.client.export_secret_key());
  return static_cast<double>(key.size()) -
         static_cast<double>(std::count(key.begin(), key.end(), 0));
}

double rms_of(const Values& v) { return test::rms_error(v, Values(v.size())); }

// Hoisted, all roundings but those of the final division are divided by the rescale ratio: one
// transform costs what one merged product costs, however many rotations it makes.
TEST(CircuitNoise, HoistedTransformRoundsOnce) {
  auto& w = noise_world();
  for (u64 size : {u64(4), u64(64)})
    for (u32 level : {13u, 5u, 1u}) {
      SCOPED_TRACE(cat(size, " diagonals at level ", level));
      std::vector<u64> offsets(size);
      for (u64 k = 0; k < size; ++k) offsets[k] = k;
      DiagonalMatrix m = test::random_diagonals(w.rng, w.params().slots(), offsets);
      for (auto& [k, diagonal] : m.diagonals)
        for (auto& x : diagonal) x /= std::sqrt(static_cast<double>(size));
      LinearTransformOptions o;
      o.level = level;
      const LinearTransform t(w.context, m, o);
      const auto ev = w.context.evaluator(w.client.evaluation_keys({t.rotations(), false, false}));
      const Ciphertext in = w.client.encrypt(w.values(), level);
      const Ciphertext out = t(ev, in);
      // The input's own error goes through the matrix like the message.
      const Values expected = test::apply(m, w.client.decrypt(in));
      const double measured = test::rms_error(w.client.decrypt(out), expected);
      const double variance = slot_variance(merged(w.params(), level, w.h), w.n(), out.scale());
      EXPECT_NEAR(measured / std::sqrt(variance), 1.0, 0.1);
    }
}

TEST(CircuitNoise, MinimalTransformAddsAKeySwitchARotation) {
  auto& w = noise_world();
  const u32 level = 13;
  const std::vector<u64> offsets{0, 1, 2, 3, 4, 5, 6, 7};
  const DiagonalMatrix m = test::random_diagonals(w.rng, w.params().slots(), offsets);
  LinearTransformOptions o;
  o.level = level, o.keys = KeyMode::minimal;
  const LinearTransform t(w.context, m, o);
  const auto ev = w.context.evaluator(w.client.evaluation_keys({t.rotations(), false, false}));
  const Ciphertext in = w.client.encrypt(w.values(), level), out = t(ev, in);
  const double measured =
      test::rms_error(w.client.decrypt(out), test::apply(m, w.client.decrypt(in)));
  // Entries have mean square 2/3. Baby step b carries b key switches, giant steps one at the larger
  // scale, which the rescale divides away.
  double switches = 0.0;
  for (u64 k : offsets) switches += static_cast<double>(k % t.baby_steps()) * 2.0 / 3.0;
  const double variance = switches * key_switch(w.params(), level, w.h) + division(w.h);
  EXPECT_NEAR(measured / std::sqrt(slot_variance(variance, w.n(), out.scale())), 1.0, 0.15);
}

// Q_0 I + m: how large I is, and how often.
TEST(BootstrapStages, IntegersOfModRaiseAreFew) {
  constexpr u32 kRange = 16;
  const auto probability = integer_distribution(rlwe::kEncapsulationWeight, kRange);
  std::vector<double> count(2 * kRange + 1);
  double total = 0.0, square = 0.0;
  for (const char* name : {"toy-boot40", "toy-boot45"}) {
    test::EncapsulationWorld w("cpu", name);
    const i64 q0 = w.base_modulus();
    test::Rng rng(noise_seed());
    std::uniform_int_distribution<i64> u(-q0 / 64, q0 / 64);
    for (int i = 0; i < 4; ++i) {
      std::vector<i64> message(w.ring_dim());
      for (auto& x : message) x = u(rng);
      const auto sparse = w.encapsulation.to_sparse(w.stream(), w.encrypt(message).view(),
                                                    w.keys.dense_to_sparse.view());
      const auto raised =
          w.encapsulation.raise(w.stream(), sparse.view(), w.keys.sparse_to_dense.view(), w.top());
      const auto t = test::integers_of(w.ring, w.secret.decrypt(raised.view()));
      for (u64 k = 0; k < t.size(); ++k) {
        const auto rest = static_cast<double>(t[k] - message[k]);
        const i64 integer = std::llround(rest / static_cast<double>(q0));
        ASSERT_LT(std::abs(integer), kRange);
        count[static_cast<u64>(integer + kRange)] += 1.0;
        square += static_cast<double>(integer * integer), total += 1.0;
      }
    }
  }
  double expected = 0.0;
  for (i64 i = -15; i <= 15; ++i)
    expected += static_cast<double>(i * i) * probability[static_cast<u64>(i + kRange)];
  EXPECT_NEAR(square / total / expected, 1.0, 0.08);
  for (i64 i = -4; i <= 4; ++i) {
    const double p = probability[static_cast<u64>(i + kRange)];
    EXPECT_NEAR(count[static_cast<u64>(i + kRange)], p * total, 6.0 * std::sqrt(p * total)) << i;
  }
}

// The factors of one direction, applied as the bootstrap applies them; returns measured over
// expected noise, in slots.
double transform_noise(BootWorld& w, const std::vector<DiagonalMatrix>& matrices, u32 top,
                       double scale, u64 slots) {
  const auto& p = w.params();
  const double n = static_cast<double>(p.ring_dim()), h = weight(w);
  double log_scale = 0.0;
  for (u32 f = 0; f < matrices.size(); ++f) log_scale += std::log2(p.rescale_ratio(top - f));
  std::vector<LinearTransform> factors;
  std::set<i64> steps;
  for (u32 f = 0; f < matrices.size(); ++f) {
    LinearTransformOptions o;
    o.level = top - f;
    o.plain_scale = std::exp2(log_scale / static_cast<double>(matrices.size()));
    factors.emplace_back(w.context, matrices[f], o);
    for (i64 k : factors.back().rotations()) steps.insert(k);
  }
  const auto ev =
      w.context.evaluator(w.client.evaluation_keys({{steps.begin(), steps.end()}, false, false}));
  test::Rng rng(noise_seed());
  Ciphertext c = w.client.encrypt(test::random_values(rng, slots), top, scale, slots);
  Values z = w.client.decrypt(c);
  double noise = 0.0;  // mean square of the slots, in units of the message
  for (u32 f = 0; f < matrices.size(); ++f) {
    const double before = rms_of(z);
    z = test::apply(matrices[f], z);
    const double gain = rms_of(z) / before;
    c = factors[f](ev, c);
    // Diagonals are rounded at their scale: a period of p values is 2 p coefficients.
    double rounding = 0.0;
    for (const auto& [k, diagonal] : matrices[f].diagonals)
      rounding += 2.0 * static_cast<double>(period_of(diagonal)) / 12.0;
    rounding *=
        before * before * std::exp2(-2.0 * log_scale / static_cast<double>(matrices.size()));
    noise = noise * gain * gain + slot_variance(merged(p, top - f, h), n, c.scale()) + rounding;
  }
  return test::rms_error(w.client.decrypt(c), z) / std::sqrt(noise);
}

TEST(BootstrapStages, CoeffToSlotAndSlotToCoeff) {
  for (const char* name : {"toy-boot40", "toy-boot50"}) {
    SCOPED_TRACE(name);
    auto& w = boot_world(name);
    const auto plan = plan_bootstrap(w.params(), {});
    EXPECT_NEAR(
        transform_noise(w, coeff_to_slot_matrices(plan), plan.levels.raised, 0x1p55, w.slots()),
        1.0, 0.2);
    EXPECT_NEAR(transform_noise(w, slot_to_coeff_matrices(plan), plan.levels.slot_to_coeff,
                                plan.reduced.scale, w.slots()),
                1.0, 0.2);
  }
}

// EvalMod of I + f against sin(2 pi f) / 2 pi, I as often as ModRaise makes it, and each equally
// often.
TEST(BootstrapStages, EvalModAlone) {
  for (const char* name : {"toy-boot40", "toy-boot45"}) {
    SCOPED_TRACE(name);
    auto& w = boot_world(name);
    const auto plan = plan_bootstrap(w.params(), {});
    const auto model = model_of(w.params(), plan);
    const auto ev = w.context.evaluator(w.client.evaluation_keys());
    const auto coefficients = fit_mod1(plan.mod1);
    const double k = plan.mod1.width, tau = 2.0 * std::numbers::pi;
    test::Rng rng(noise_seed());
    const auto gains = mod1_noise_gains(plan.mod1);
    const FitError fit = fit_error(plan.mod1, coefficients);
    const double n = static_cast<double>(w.params().ring_dim());
    const double rounding = slot_variance(division(weight(w)), n, plan.eval_scale);
    const double fresh = k * k * slot_variance(kErrorVariance + kRounding, n, plan.eval_scale);
    const auto run = [&](const std::vector<double>& integers, double radius, double& error,
                         double& worst) {
      const auto f = test::random_reals(rng, w.slots(), -radius, radius);
      std::vector<double> y(w.slots());
      for (u64 i = 0; i < y.size(); ++i) y[i] = (integers[i] + f[i]) / k;
      const Ciphertext out = eval_mod(
          ev, w.client.encrypt(y, plan.levels.eval_mod, plan.eval_scale), plan.mod1, coefficients);
      EXPECT_EQ(out.level(), plan.levels.eval_mod_end);
      EXPECT_NEAR(out.scale() / plan.reduced.scale, 1.0, 1e-9);
      EXPECT_NEAR(std::log2(out.scale()), std::log2(plan.eval_scale), 0.1);
      const auto plain = w.context.decode(w.client.decrypt_to_plaintext(out));
      error = worst = 0.0;
      for (u64 i = 0; i < y.size(); ++i) {
        const double e = std::abs(plain[i] - std::sin(tau * f[i]) / tau);
        // Each integer has its own noise; the secret is larger in some slots than in others, which
        // makes 12 standard deviations of what 6 would be. Outside the interval of the basis all
        // grows with its last element: measured at up to 2^-50 of it.
        if (radius > plan.mod1.fit_radius) continue;
        const auto index = static_cast<std::size_t>(integers[i] + plan.mod1.range);
        const auto size = static_cast<std::size_t>(std::abs(integers[i]));
        const double outside = std::max(1.0, (std::abs(integers[i]) + 0.25) / k);
        const double last = outside > 1.0 ? std::cosh(plan.mod1.degree * std::acosh(outside)) : 0.0;
        EXPECT_LT(e, fit.by_integer[size] + 12.0 * std::sqrt(rounding * gains[index] + fresh) +
                         0x1p-48 * last)
            << integers[i];
        error += e * e / static_cast<double>(y.size());
        worst = std::max(worst, e);
      }
      error = std::sqrt(error);
    };
    std::vector<double> often(w.slots()), each(w.slots());
    const auto p = integer_distribution(plan.mod1.secret_weight, plan.mod1.range);
    std::discrete_distribution<int> draw(p.begin(), p.end());
    for (u64 i = 0; i < often.size(); ++i) {
      often[i] = draw(rng) - static_cast<double>(plan.mod1.range);
      each[i] = static_cast<double>(i % 31) - 15.0;
    }
    double rms = 0.0, worst = 0.0;
    run(often, plan.mod1.fit_radius, rms, worst);
    // The model's two parts, back from message slots; the input's encryption enters with slope K.
    const auto e = estimate_precision(model, {});
    const double to_message =
        2.0 * static_cast<double>(w.slots()) * std::exp2(2.0 * model.message_ratio);
    const double variance =
        e.eval_mod.rms * e.eval_mod.rms / to_message + e.fit.rms * e.fit.rms / to_message + fresh;
    EXPECT_NEAR(rms / std::sqrt(variance), 1.0, 0.25) << "2^" << std::log2(rms);
    // Rare integers are fitted with little weight, and lie outside the basis's interval.
    run(each, plan.mod1.fit_radius, rms, worst);
    // Beyond the radius of the fit it degrades slowly: constants of ratio 2^3.
    run(often, 0.125, rms, worst);
    EXPECT_LT(worst, 0x1p-30);
  }
}

// The whole: what is left after the sine has been taken away, for every kind of message.
TEST(BootstrapNoise, EveryKindOnEverySet) {
  for (const char* name :
       {"toy-boot30", "toy-boot35", "toy-boot40", "toy-boot45", "toy-boot50", "toy-boot48dr"}) {
    BootWorld w(name, "cpu", noise_seed());  // not kept: keys are large
    test::Rng rng(noise_seed());
    struct Case {
      u32 rho;
      bool real;  // half of the coefficients stand for all
    };
    for (const auto& [rho, real] : {Case{5, false}, Case{8, false}, Case{7, true}}) {
      BootstrapOptions o;
      o.message_ratio = rho;
      if (real) o.message = BootstrapMessage::real;
      Bootstrapper boot = w.boot(o);
      const auto plan = plan_bootstrap(w.params(), o);
      EXPECT_EQ(plan.symmetric, real);
      const auto model = model_of(w.params(), plan);
      Values all;
      std::vector<Values> rows;
      for (MessageKind kind : test::kMessageKinds) {
        rows.push_back(test::draw({kind}, rng, w.slots()));
        all.insert(all.end(), rows.back().begin(), rows.back().end());
      }
      const Values out = w.client.decrypt(boot(w.encrypt(boot, all)));
      double product = 1.0;
      u32 count = 0;
      bool plain = false;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        SCOPED_TRACE(cat(name, ", ratio 2^", rho, real ? ", real, " : ", ",
                         test::name_of(test::kMessageKinds[i])));
        const auto first = out.begin() + static_cast<i64>(i * w.slots());
        const Values found(first, first + static_cast<i64>(w.slots()));
        if (real)  // imaginary parts are gone before the sine
          for (Complex& z : rows[i]) z = z.real();
        const Values expected = test::after_sine(w.context, plan, rows[i]);
        const auto e = estimate_precision(model, {test::kMessageKinds[i]});
        const SlotError noise = test::noise_of(e);
        // On rings this small a fresh ciphertext's own error is not far below a rounding.
        const double fresh =
            slot_variance(kErrorVariance + kRounding, static_cast<double>(w.params().ring_dim()),
                          w.params().scale(0)) *
            (real ? 0.5 : 1.0);
        const double expected_rms = std::hypot(noise.rms, std::sqrt(fresh));
        const double ratio = test::rms_error(found, expected) / expected_rms;
        // Roundings of SlotToCoeff's diagonals are taken for independent ones, which is low by up
        // to a third where they are most of the noise: at a scale of 30 bits.
        plain = e.stc.rms > 0.7 * noise.rms;
        // A real vector's mean has one error, the plaintexts', which the model knows the size of.
        const bool mean = real && (test::kMessageKinds[i] == MessageKind::constant ||
                                   test::kMessageKinds[i] == MessageKind::uniform_unit);
        if (mean) {
          EXPECT_LT(ratio, 3.0);
          continue;
        }
        EXPECT_NEAR(ratio, 1.0, plain ? 0.5 : 0.25);
        EXPECT_LT(test::max_error(found, expected), 4.0 * noise.max);
        product *= ratio, ++count;
      }
      EXPECT_NEAR(std::pow(product, 1.0 / static_cast<double>(count)), 1.0, plain ? 0.3 : 0.15)
          << name << ", ratio 2^" << rho;
    }
  }
}

// The sine's part needs no model: it is what the message's coefficients say, to the noise.
TEST(BootstrapNoise, SineErrorIsExact) {
  auto& w = boot_world("toy-boot45");
  test::Rng rng(noise_seed());
  for (MessageKind kind : test::kMessageKinds) {
    if (kind == MessageKind::one_hot) continue;  // below the noise
    SCOPED_TRACE(test::name_of(kind));
    BootstrapOptions o;
    o.message_ratio = 3;
    Bootstrapper boot = w.boot(o);
    const auto plan = plan_bootstrap(w.params(), o);
    const Values x = test::draw({kind}, rng, w.slots());
    const Values expected = test::after_sine(w.context, plan, x);
    const Values found = w.client.decrypt(boot(w.encrypt(boot, x)));
    EXPECT_LT(test::rms_error(found, expected), 0x1p-12 * test::rms_error(expected, x));
    // ... and as large as the model says of its kind; 16 numbers vary too much from draw to draw.
    if (kind == MessageKind::periodic) continue;
    const auto model = sine_error(model_of(w.params(), plan), {kind});
    EXPECT_NEAR(test::rms_error(expected, x) / model.rms, 1.0, 0.25);
  }
}

}  // namespace
}  // namespace crenel::circuits
