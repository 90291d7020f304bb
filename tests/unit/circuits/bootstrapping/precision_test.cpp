// The precision model against the tables of docs/theory/precision.md, against figures of another
// library, and against simulated messages.
#include "circuits/bootstrapping/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ckks/encoder.h"
#include "crenel/core/error.h"
#include "support/boot_model.h"

namespace crenel::circuits {
namespace {

using test::boot_model;
using Complex = std::complex<double>;

double bits(const SlotError& e) { return -std::log2(e.max); }
double sine_bits(MessageKind kind, u32 rho, u32 arcsine = 0) {
  return bits(sine_error(boot_model(rho, arcsine), {kind}));
}

TEST(BootstrapPrecision, TableOfSineErrors) {
  struct Row {
    MessageKind kind;
    double rho5, arcsine3, arcsine5, arcsine7;  // 99: below 2^-51, the end of the table's precision
    double tolerance;
  };
  // The periodic row of the table is one draw of 16 numbers, and in another order of the slots;
  // from draw to draw its columns vary by 0.6, 1.3, 1.9 and 2.5 bits (standard deviation).
  const Row rows[] = {{MessageKind::uniform_complex, 20.7, 39.8, 99, 99, 0.5},
                      {MessageKind::uniform_real, 21.8, 42, 99, 99, 0.5},
                      {MessageKind::uniform_unit, 10.3, 18.1, 25.6, 32.8, 0.1},
                      {MessageKind::periodic, 11.9, 21.5, 30.5, 39.2, 1.25},
                      {MessageKind::constant, 7.3, 13.1, 18.6, 23.9, 0.1},
                      {MessageKind::bound, 7.3, 13.1, 18.6, 23.9, 0.1}};
  for (const auto& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.kind));
    for (u32 rho : {5u, 6u, 8u, 10u})
      EXPECT_NEAR(sine_bits(row.kind, rho), row.rho5 + 2 * (rho - 5.0),
                  std::min(0.5, row.tolerance));
    const double expected[] = {row.arcsine3, row.arcsine5, row.arcsine7};
    for (u32 k = 0; k < 3; ++k) {
      const double got = sine_bits(row.kind, 5, 2 * k + 3);
      if (expected[k] == 99)
        EXPECT_GT(got, 51);
      else
        EXPECT_NEAR(got, expected[k], row.tolerance) << 2 * k + 3;
    }
  }
}

// Slots of a message, drawn.
std::vector<Complex> draw(MessageKind kind, u64 slots, std::mt19937_64& rng) {
  std::uniform_real_distribution<double> u(-1, 1);
  std::vector<Complex> z(slots);
  for (u64 j = 0; j < slots; ++j) switch (kind) {
      case MessageKind::uniform_complex:
        z[j] = {u(rng), u(rng)};
        break;
      case MessageKind::uniform_real:
        z[j] = u(rng);
        break;
      case MessageKind::uniform_unit:
        z[j] = 0.5 + 0.5 * u(rng);
        break;
      case MessageKind::periodic:
        z[j] = j < 16 ? Complex(u(rng)) : z[j - 16];
        break;
      case MessageKind::one_hot:
        z[j] = j == 3 ? 1.0 : 0.0;
        break;
      default:
        z[j] = 1.0;
    }
  return z;
}

TEST(BootstrapPrecision, SineErrorsOfSimulatedMessages) {
  std::mt19937_64 rng(7);
  for (u32 log_n : {4u, 6u, 9u, 13u})
    for (u32 arcsine : {0u, 3u})
      for (MessageKind kind :
           {MessageKind::uniform_complex, MessageKind::uniform_real, MessageKind::uniform_unit,
            MessageKind::periodic, MessageKind::one_hot, MessageKind::constant}) {
        if (kind == MessageKind::periodic && (log_n < 6 || log_n > 9)) continue;
        SCOPED_TRACE(testing::Message() << "log_n " << log_n << ", arcsine " << arcsine << ", kind "
                                        << static_cast<int>(kind));
        BootstrapModel m = boot_model(5, arcsine);
        m.log_n = log_n;
        m.slots = u64{1} << (log_n - 1);
        const ckks::Encoder encoder(log_n);
        // Errors of few coefficients vary by bits from draw to draw, those of many hardly.
        const u32 draws = log_n <= 6 ? 4000 : log_n == 9 ? 500 : 2;
        double rms = 0, max = 0;
        for (u32 i = 0; i < draws; ++i) {
          auto c = encoder.to_coefficients(draw(kind, m.slots, rng));
          for (auto& x : c) x = 32 * modular_error(x / 32, arcsine);
          double square = 0, worst = 0;
          for (const auto& e : encoder.to_slots(c, m.slots)) {
            square += std::norm(e) / static_cast<double>(m.slots);
            worst = std::max(worst, std::abs(e));
          }
          rms += square / draws;
          max += worst / draws;
        }
        const SlotError model = sine_error(m, {kind});
        // With the arcsine the mean square is made of rare draws when coefficients are few.
        if (arcsine == 0 || log_n > 9) {
          EXPECT_NEAR(0.5 * std::log2(rms), std::log2(model.rms), 0.3);
        }
        EXPECT_NEAR(std::log2(max), std::log2(model.max), 0.5);
      }
}

TEST(BootstrapPrecision, BoundIsTheWorstMessage) {
  for (u32 arcsine : {0u, 3u, 7u})
    for (MessageKind kind : {MessageKind::uniform_real, MessageKind::uniform_unit,
                             MessageKind::one_hot, MessageKind::periodic, MessageKind::constant})
      EXPECT_LE(sine_bits(MessageKind::bound, 5, arcsine), sine_bits(kind, 5, arcsine));
  EXPECT_NEAR(bits(sine_error(boot_model(6), {MessageKind::bound, 2.0})),
              sine_bits(MessageKind::bound, 5) - 1, 1e-9);
}

TEST(BootstrapPrecision, ModularErrorIsAccurate) {
  EXPECT_EQ(modular_error(0, 0), 0);
  for (u32 degree : {0u, 3u, 5u, 7u})
    for (long double x : {0.25L, 0.13L, 0.124L, 0.03L, -0.03L}) {
      const long double t = 2 * std::acos(-1.0L), y = std::sin(t * x) / t;
      const auto s = arcsine_series(degree);
      long double f = 0, power = y;
      for (double c : s) {
        f += c * power;
        power *= y * y;
      }
      EXPECT_NEAR(modular_error(static_cast<double>(x), degree), static_cast<double>(f - x), 1e-15)
          << degree;
    }
  const double t = 39.47841760435743;
  EXPECT_NEAR(modular_error(0x1p-30, 0) / (t / 6 * 0x1p-90), -1, 1e-12);
  EXPECT_NEAR(modular_error(0x1p-30, 3) / (3 * t * t / 40 * 0x1p-150), -1, 1e-12);
}

TEST(BootstrapPrecision, TableOfOperations) {
  // docs/theory/precision.md, "Operations", N = 2^16, dense h = 2^15: slot maxima at 2^40 and 2^35.
  const auto max = [](double variance, double log_scale) {
    return std::log2(slot_error(variance, 16, 1 << 15, log_scale).max);
  };
  const double h = 1 << 15;
  EXPECT_NEAR(max(1.0 / 12, 40), -32.1, 0.1);
  EXPECT_NEAR(max(rescale_variance(h), 40), -24.6, 0.1);
  EXPECT_NEAR(max(rescale_variance(h), 35), -19.6, 0.1);
  EXPECT_NEAR(std::sqrt(rescale_variance(h)), 52, 0.5);
  EXPECT_DOUBLE_EQ(maximum_factor(1), 1.0);
}

TEST(BootstrapPrecision, NoiseGainOfEvalMod) {
  // y enters with the slope w, half the interval, and the slope by T_2 = 2 y^2 - 1 is w / 4y =
  // (w^2 / 4) / (I - 1/4): -w^2 at I = 0. Rounding T_2 is most of all that EvalMod adds.
  const auto p = integer_distribution(32, 16);
  for (const double width : {16.0, 12.0, Mod1Params().width}) {
    Mod1Params params;
    params.width = width;
    double by_t2 = 0;
    for (int i = -15; i <= 15; ++i)
      by_t2 += p[static_cast<u64>(i + 16)] * std::pow(width * width / 4 / (i - 0.25), 2);
    const double gain = mod1_noise_gain(params);
    EXPECT_GT(gain, by_t2) << width;
    EXPECT_LT(gain, 1.25 * by_t2) << width;
  }
  // Narrower still, the integers outside would make more than they save.
  Mod1Params narrow;
  narrow.width = 9.0;
  EXPECT_GT(mod1_noise_gain(narrow), mod1_noise_gain({}));
}

TEST(BootstrapPrecision, PublishedPrecisionOfAnotherLibrary) {
  // Mean precision that Lattigo states for its sets (the mean of |error| over real and imaginary
  // parts), with one 64-bit prime per rescale and exact ModDown. The model of the noise
  // has no free parameter here.
  struct Set {
    double h, log_q0;
    u32 rho, arcsine;
    double mod1, scale, cts, stc, bits, tolerance;
  };
  const double dense = 65536 * 2 / 3.0;
  const Set sets[] = {{dense, 60, 8, 0, 60, 40, 56, 39, 23.8, 0.3},
                      {dense, 60, 2, 7, 60, 45, 58, 42, 29.8, 0.3},
                      {192, 60, 8, 0, 60, 40, 56, 39, 26.6, 1.0},
                      {192, 60, 2, 7, 60, 45, 58, 42, 32.1, 0.5}};
  for (const auto& s : sets) {
    BootstrapModel m = boot_model(s.rho, s.arcsine);
    m.log_q0 = s.log_q0;
    m.log_mod1_scale = s.mod1;
    m.log_scale = s.scale;
    m.dense_weight = static_cast<u32>(s.h);
    m.mod1.width = 16;
    m.log_arcsine_scale = s.mod1;
    m.cts = {{4, s.cts}, {4, s.cts}, {4, s.cts}, {3, s.cts}};
    m.stc = {{5, s.stc}, {5, s.stc}, {5, s.stc}};
    // |real part| of a complex Gaussian of rms 1: sqrt(1 / pi).
    const double mean = estimate_precision(m, {}).total.rms * std::sqrt(1 / 3.14159265358979);
    EXPECT_NEAR(-std::log2(mean), s.bits, s.tolerance);
  }
}

TEST(BootstrapPrecision, PartsScaleAsTheyShould) {
  const auto at = [](const BootstrapModel& m) { return estimate_precision(m, {}); };
  const auto p5 = at(boot_model(5)), p6 = at(boot_model(6));
  EXPECT_NEAR(bits(p6.sine) - bits(p5.sine), 2, 0.01);
  for (auto part : {&PrecisionEstimate::fit, &PrecisionEstimate::raise, &PrecisionEstimate::cts,
                    &PrecisionEstimate::eval_mod})
    EXPECT_NEAR(bits(p6.*part) - bits(p5.*part), -1, 0.01);
  EXPECT_EQ(p5.output.max, p6.output.max);
  // The last division, at the output scale.
  EXPECT_NEAR(p5.output.rms, slot_error(rescale_variance(1 << 15), 16, 1 << 15, 40).rms, 1e-15);
  double square = 0;
  for (auto part : {p5.sine, p5.fit, p5.raise, p5.cts, p5.eval_mod, p5.stc, p5.output}) {
    EXPECT_LT(part.rms, part.max);
    square += part.rms * part.rms;
  }
  EXPECT_NEAR(p5.total.rms, std::sqrt(square), 1e-12 * p5.total.rms);

  // Variants: a ModDown per rotation adds some; a conjugation before the rescale is one of three
  // roundings less at its end, where those of the diagonals stay.
  BootstrapModel variant = boot_model(5);
  variant.hoisted = false;
  EXPECT_LT(bits(at(variant).cts), bits(p5.cts) - 0.1);
  variant.hoisted = variant.conjugate_before_rescale = true;
  EXPECT_GT(bits(at(variant).cts), bits(p5.cts) + 0.05);
  EXPECT_LT(bits(at(variant).cts), bits(p5.cts) + 0.5 * std::log2(1.5));
  // Fewer slots: the message is denser in fewer coefficients (sine), noise sums over fewer.
  BootstrapModel sparse = boot_model(5);
  sparse.slots = 1 << 11;
  sparse.cts = {{6, 55.0}, {5, 60.0}};
  sparse.stc = {{6, 40.0}, {5, 40.0}};
  EXPECT_NEAR(bits(at(sparse).sine), bits(p5.sine) - 4, 0.5);
  EXPECT_NEAR(std::log2(at(sparse).eval_mod.rms / p5.eval_mod.rms), -2, 0.01);
  EXPECT_NEAR(log2_failure_probability(sparse), -132.66 - 4, 0.01);
  EXPECT_NEAR(log2_failure_probability({}), -132.66, 0.01);
  // Gains: shares that are given are kept, the others split the rest.
  BootstrapModel gains = boot_model(5);
  for (auto& level : gains.stc) level.log_gain = (5 + 40.0 - 58.0) / 3;
  EXPECT_NEAR(at(gains).stc.rms, p5.stc.rms, 1e-12 * p5.stc.rms);
}

TEST(BootstrapPrecision, BoundsOfTheTestPlan) {
  // docs/theory/precision.md: what the tests of boot40 will demand must follow from the model.
  const auto total = [](MessageKind kind, u32 rho) {
    return bits(estimate_precision(boot_model(rho), {kind}).total);
  };
  EXPECT_GT(total(MessageKind::uniform_complex, 5), 19);
  EXPECT_GT(total(MessageKind::uniform_real, 5), 20);
  EXPECT_GT(total(MessageKind::constant, 5), 6.5);
  EXPECT_GT(total(MessageKind::constant, 8), 12);
  EXPECT_GT(total(MessageKind::uniform_complex, 6), 22);
  EXPECT_GT(total(MessageKind::constant, 10), 16.5);
}

TEST(BootstrapPrecision, RecommendedRatio) {
  const auto constant = recommended_message_ratio({MessageKind::bound}, 12);
  EXPECT_EQ(constant.message_ratio, 8u);
  EXPECT_TRUE(constant.reached);
  const auto random = recommended_message_ratio({MessageKind::uniform_complex}, 18);
  EXPECT_EQ(random.message_ratio, 4u);
  const auto never = recommended_message_ratio({MessageKind::uniform_complex}, 30);
  EXPECT_FALSE(never.reached);
  EXPECT_EQ(never.message_ratio, 6u);
  for (u32 rho : {5u, 7u})
    EXPECT_LT(bits(estimate_precision(boot_model(rho), {}).total), never.bits) << rho;
  const auto arcsine =
      recommended_message_ratio({MessageKind::uniform_complex}, 30, boot_model(5, 3));
  EXPECT_GT(arcsine.bits, never.bits + 1);
  EXPECT_EQ(arcsine.message_ratio, 2u);
}

TEST(BootstrapPrecision, RefusesInconsistentModels) {
  const auto rejected = [](BootstrapModel m, Message message, const std::string& field) {
    try {
      estimate_precision(m, message);
      ADD_FAILURE() << field;
    } catch (const ParameterError& e) {
      EXPECT_NE(e.field(field), "") << e.what();
    }
  };
  BootstrapModel m;
  m.slots = 1000;
  rejected(m, {}, "slots");
  m.slots = 1 << 14;
  rejected(m, {}, "stages");
  rejected(boot_model(5), {MessageKind::bound, 32.0}, "message_ratio");
  rejected(boot_model(5), {MessageKind::bound, 0.0}, "bound");
  rejected(boot_model(5), {MessageKind::periodic, 1.0, 12}, "period");
  rejected(boot_model(5, 4), {}, "arcsine_degree");
}

}  // namespace
}  // namespace crenel::circuits
