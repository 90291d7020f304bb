// Real vectors of all slots, CoeffToSlot first: half of the coefficients goes through EvalMod.
#include <bit>
#include <numbers>

#include "ckks/noise.h"
#include "support/boot_world.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using test::BootWorld;
using test::Complex;
using test::Values;

template <class F>
BootstrapOptions real_options(F set) {
  BootstrapOptions o;
  o.message_ratio = 5;
  o.message = BootstrapMessage::real;
  set(o);
  return o;
}
BootstrapOptions real_options() {
  return real_options([](auto&) {});
}

Values real_parts(const Values& v) {
  return test::map_values(v, [](Complex z) { return Complex(z.real()); });
}

// The matrices alone: the first half of a symmetric polynomial's coefficients, in bit-reversed
// order, and the conjugate of what is made of it.
TEST(RealBootstrap, HalfOfTheCoefficientsIsTheVector) {
  const auto rng_seed = test::run_seed();
  test::Rng rng(rng_seed);
  const ckks::Context context(ckks::Params::preset("toy-boot40", true), "cpu");
  const auto& params = context.params();
  const u64 slots = params.slots();
  for (const std::vector<u32>& stages : {std::vector<u32>{}, std::vector<u32>{10},
                                         std::vector<u32>{0, 4, 6}, std::vector<u32>{1, 9}}) {
    const auto o = real_options([&](auto& x) { x.slot_to_coeff_stages = stages; });
    const auto plan = plan_bootstrap(params, o);
    ASSERT_TRUE(plan.symmetric);
    // A mean of any size is the coefficient that is its own mirror image.
    Values x = test::draw({MessageKind::uniform_real}, rng, slots);
    const double mean = std::uniform_real_distribution<>(-9.0, 9.0)(rng);
    for (auto& v : x) v += mean;
    const auto coefficients = context.state().encoder.to_coefficients(x);
    Values half(slots);
    const int log_slots = std::countr_zero(slots);
    for (u64 j = 0; j < slots; ++j) {
      u64 reversed = 0;
      for (int bit = 0; bit < log_slots; ++bit) reversed |= (j >> bit & 1) << (log_slots - 1 - bit);
      half[reversed] = coefficients[j];
    }
    double gain = 1.0;
    for (const auto& factor : slot_to_coeff_matrices(plan)) {
      half = test::apply(factor, half);
      gain *= plan.slot_to_coeff_factor;
    }
    for (u64 i = 0; i < slots; ++i)
      ASSERT_NEAR(2.0 * half[i].real() / gain, x[i].real(), 1e-9) << "slot " << i;
    // The keys are those of any bootstrap: the same diagonals.
    BootstrapOptions whole = o;
    whole.message = BootstrapMessage::complex;
    EXPECT_EQ(bootstrap_key_request(params, o).rotations,
              bootstrap_key_request(params, whole).rotations);
  }
}

TEST(RealBootstrap, IsWhereHalfIsEnough) {
  const auto params = ckks::Params::preset("toy-boot40", true);
  const auto used = [&](const auto& set) {
    return plan_bootstrap(params, real_options(set)).symmetric;
  };
  EXPECT_TRUE(used([](auto&) {}));
  EXPECT_TRUE(used([](auto& o) { o.iterations = 2; }));
  EXPECT_TRUE(used([](auto& o) { o.arcsine_degree = 3; }));
  EXPECT_TRUE(used([](auto& o) { o.target_level = 4; }));
  EXPECT_TRUE(used([](auto& o) { o.keys = KeyMode::minimal; }));
  EXPECT_TRUE(used([](auto& o) { o.message_ratio = 9; }));
  EXPECT_FALSE(used([](auto& o) { o.message_ratio = 10; })) << "no bit to scale up by";
  EXPECT_FALSE(used([](auto& o) { o.savings.real_symmetry = false; }));
  EXPECT_FALSE(used([](auto& o) { o.slots = 64; }));
  EXPECT_FALSE(used([](auto& o) { o.slots = 64, o.pack = 16; })) << "a pack of all slots";
  EXPECT_FALSE(used([](auto& o) { o.order = BootstrapOrder::slot_to_coeff_first; }));
  EXPECT_FALSE(used([](auto& o) { o.message = BootstrapMessage::complex; }));
  EXPECT_FALSE(used([](auto& o) { o.message = BootstrapMessage::pair; }));
  // Half as many integers, half the working set, and half a bit more of error.
  const auto report = [&](bool on) {
    return report_of(
        params,
        plan_bootstrap(params, real_options([&](auto& o) { o.savings.real_symmetry = on; })));
  };
  const auto on = report(true), off = report(false);
  EXPECT_TRUE(on.real_symmetry && !off.real_symmetry);
  EXPECT_NEAR(on.log2_failure, off.log2_failure - 1.0, 1e-9);
  EXPECT_LE(on.workspace_bytes, off.workspace_bytes);
  EXPECT_NE(on.text().find("symmetric"), std::string::npos) << on.text();
  EXPECT_EQ(off.text().find("symmetric"), std::string::npos) << off.text();
}

// The ratio that is chosen has room for it where that costs no more than half a bit, which it does
// at any ratio; constants at a scale of 40 bits want the largest one, which has none.
TEST(RealBootstrap, RatioThatIsChosen) {
  struct Row {
    const char* params;
    BootstrapValues values;
    u32 ratio;
    bool symmetric;
  };
  for (const Row& row : {Row{"boot40", BootstrapValues::centred, 6, true},
                         Row{"boot40", BootstrapValues::constant, 10, false},
                         Row{"boot35", BootstrapValues::unknown, 11, true},
                         Row{"boot30", BootstrapValues::centred, 9, true}}) {
    BootstrapOptions o;
    o.message = BootstrapMessage::real;
    o.values = row.values;
    const auto plan = plan_bootstrap(ckks::Params::preset(row.params), o);
    EXPECT_EQ(plan.options.message_ratio, row.ratio) << row.params;
    EXPECT_EQ(plan.symmetric, row.symmetric) << row.params;
  }
}

// The largest of real Gaussians on average: known for one and two, and drawn for more.
TEST(RealBootstrap, LargestOfRealErrors) {
  EXPECT_NEAR(real_maximum_factor(1), std::sqrt(2.0 / std::numbers::pi), 1e-4);
  EXPECT_NEAR(real_maximum_factor(2), 2.0 / std::sqrt(std::numbers::pi), 1e-4);
  test::Rng rng(test::run_seed());
  std::normal_distribution<double> normal;
  double sum = 0.0;
  constexpr int kDraws = 400, kSlots = 512;
  for (int i = 0; i < kDraws; ++i) {
    double most = 0.0;
    for (int k = 0; k < kSlots; ++k) most = std::max(most, std::abs(normal(rng)));
    sum += most;
  }
  // A maximum has a standard deviation of 0.4: the mean of 400 has 0.02.
  EXPECT_NEAR(sum / kDraws, real_maximum_factor(kSlots), 0.14);
}

class RealBootstrapping : public test::SchemeTest {
 protected:
  void SetUp() override {
    SchemeTest::SetUp();
    if (!IsSkipped() && GetParam() == "ref") GTEST_SKIP() << "compared with the other devices";
  }
  BootWorld& world() { return test::boot_world(GetParam()); }

  /// Real parts of `x` after the sine, to the noise of the model, and nothing else.
  static void expect_within_model(const BootWorld& w, const Bootstrapper& boot, const Values& found,
                                  const Values& x, MessageKind kind) {
    const auto plan = plan_bootstrap(w.params(), boot.options());
    ASSERT_TRUE(plan.symmetric);
    const SlotError noise = test::noise_of(estimate_precision(model_of(w.params(), plan), {kind}));
    const Values expected = test::after_sine(w.context, plan, real_parts(x));
    // A fresh ciphertext's own, of which the real part is left: not below the rest at small ratios.
    const double fresh = static_cast<double>(w.params().ring_dim()) / 2.0 *
                         (ckks::noise::kErrorVariance + ckks::noise::kRounding) /
                         std::pow(w.params().scale(0), 2);
    const double rms = std::hypot(noise.rms, std::sqrt(fresh));
    // Noise times the secret has heavier tails than a Gaussian (see bootstrapping_test.cpp).
    EXPECT_LT(test::max_error(found, expected), std::max(4.0 * noise.max, 12.0 * rms));
    const double ratio = test::rms_error(found, expected) / rms;
    // A mean has one error, the same in every run, of which the model knows the size alone.
    const bool mean = kind == MessageKind::constant || kind == MessageKind::uniform_unit;
    EXPECT_LT(ratio, mean ? 3.0 : 1.4) << "measured / model";
    EXPECT_TRUE(mean || ratio > 0.6) << ratio << " measured / model";
  }
};

TEST_P(RealBootstrapping, EveryKindAndComplexOnesToo) {
  auto& w = world();
  auto rng = test::test_rng();
  for (u32 rho : {1u, 5u, 9u}) {
    const Bootstrapper boot = w.boot(real_options([&](auto& o) { o.message_ratio = rho; }));
    Values all;
    std::vector<std::pair<MessageKind, Values>> rows;
    const double bound = rho == 1 ? 0.2 : 1.0;
    // With an imaginary part, which is removed before it could do harm; the sine of it is not seen.
    for (MessageKind kind : test::kMessageKinds)
      rows.emplace_back(kind, test::draw({kind, bound}, rng, w.slots()));
    // Real, but for errors.
    Values nearly = test::draw({MessageKind::uniform_real, bound}, rng, w.slots());
    for (auto& x : nearly) x += Complex(0.0, std::normal_distribution<>(0.0, 0x1p-12)(rng));
    rows.emplace_back(MessageKind::uniform_real, nearly);
    Values corners(w.slots());
    for (auto& x : corners) x = {rng() % 2 ? bound : -bound, rng() % 2 ? bound : -bound};
    rows.emplace_back(MessageKind::uniform_real, corners);
    rows.emplace_back(MessageKind::constant, Values(w.slots(), -bound));
    rows.emplace_back(MessageKind::one_hot, Values(w.slots(), 0.0));
    for (const auto& [kind, row] : rows) all.insert(all.end(), row.begin(), row.end());
    const Ciphertext out = boot(w.encrypt(boot, all));
    EXPECT_TRUE(out.metadata().real);
    EXPECT_EQ(out.level(), boot.levels().output);
    EXPECT_EQ(out.scale(), w.params().scale(out.level()));
    const Values found = w.client.decrypt(out);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto& [kind, row] = rows[i];
      SCOPED_TRACE(cat("ratio 2^", rho, ", row ", i, ", ", test::name_of(kind)));
      const auto first = found.begin() + static_cast<i64>(i * w.slots());
      expect_within_model(w, boot, Values(first, first + static_cast<i64>(w.slots())), row, kind);
    }
  }
}

TEST_P(RealBootstrapping, WithEveryOtherOption) {
  auto& w = world();
  auto rng = test::test_rng();
  for (int variant = 0; variant < 4; ++variant) {
    SCOPED_TRACE(variant);
    const auto o = real_options([&](auto& x) {
      if (variant == 0) x.arcsine_degree = 3;
      if (variant == 1) x.target_level = 4;
      if (variant == 2) x.keys = KeyMode::minimal;
      if (variant == 3) x.savings.over_mod_raise = false;
    });
    const Bootstrapper boot(w.context, w.keys_for(o), o);
    const Values x = test::draw({MessageKind::uniform_complex}, rng, w.slots());
    auto& stream = w.context.stream();
    const Ciphertext in = w.encrypt(boot, x);
    const u64 held = stream.bytes_in_use();
    stream.reset_peak();
    const Ciphertext out = boot.eager(in);
    EXPECT_LE(stream.peak_bytes() - held, boot.describe().workspace_bytes + out.bytes());
    expect_within_model(w, boot, w.client.decrypt(out), x, MessageKind::uniform_real);
  }
}

TEST_P(RealBootstrapping, SecondIteration) {
  auto& w = world();
  auto rng = test::test_rng();
  const auto o = real_options([](auto& x) { x.iterations = 2; });
  const Bootstrapper boot = w.boot(o);
  const u32 k = boot.correction_bits();
  const Values x = test::draw({MessageKind::uniform_real}, rng, w.slots());
  const Ciphertext out = boot(w.client.encrypt(x, 1u, 0x1p60));
  const auto plan = plan_bootstrap(w.params(), boot.options());
  const auto model = model_of(w.params(), plan);
  const auto first = estimate_precision(model, {MessageKind::uniform_real});
  const Message error{MessageKind::uniform_real, first.total.max * std::exp2(k)};
  const double left =
      4.0 * test::noise_of(first).max + 2.0 * estimate_precision(model, error).sine.max;
  // The last key switch of the first result errs in imaginary parts, too, which nobody refreshes.
  EXPECT_LT(test::max_error(real_parts(w.client.decrypt(out)), x), left * std::exp2(-double(k)));
}

// A list is its rows, by the graph or not; ref makes the same words of them.
TEST_P(RealBootstrapping, ListsAndRefAreTheSameBits) {
  auto& w = world();
  auto rng = test::test_rng();
  const Bootstrapper boot = w.boot(real_options());
  std::vector<Ciphertext> in;
  for (int i = 0; i < 2; ++i)
    in.push_back(w.encrypt(boot, test::draw({MessageKind::uniform_complex}, rng, w.slots())));
  const Ciphertext* pointers[] = {&in[0], &in[1]};
  const auto together = boot(pointers);
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(test::bits(together[i]), test::bits(boot(in[i])));
    EXPECT_EQ(test::bits(together[i]), test::bits(boot.eager(in[i])));
  }
  const ckks::Context ref(w.params(), "ref");
  const auto keys = ckks::evaluation_keys_from_bytes(ref, ckks::to_bytes(w.context, w.keys()));
  const Bootstrapper again(ref, keys, boot.options());
  const Ciphertext there =
      again.eager(ckks::ciphertext_from_bytes(ref, ckks::to_bytes(w.context, in[0])));
  EXPECT_EQ(test::bits(there), test::bits(together[0]));
}

// The bound of errors holds, of messages that come with errors, too.
TEST_P(RealBootstrapping, ErrorsAreWithinTheBound) {
  auto& w = world();
  auto rng = test::test_rng();
  const Bootstrapper boot = w.boot(real_options());
  const ckks::ErrorModel model(w.params());
  const Values x = test::draw({MessageKind::uniform_real}, rng, w.slots());
  const auto bound =
      boot(model, model.input(1.0, true, boot.levels().input, 0.0, boot.options().slots));
  EXPECT_TRUE(bound.meta.real);
  const double found = test::max_error(w.client.decrypt(boot(w.encrypt(boot, x))), x);
  EXPECT_LT(found, bound.max);
}

CRENEL_DEVICE_SUITE(RealBootstrapping);

}  // namespace
}  // namespace crenel::circuits
