// Every instruction-set path of the CPU device gives TFHE's bits of the portable one, which this
// file compares with ref.
#include "backends/cpu/cpu_backend.h"
#include "support/torus_world.h"

namespace crenel::test {
namespace {

using backend::cpu::Isa;

class TorusIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!backend::cpu::isa_available(GetParam()))
      GTEST_SKIP() << "no " << backend::cpu::isa_name(GetParam()) << " on this machine";
  }
  // The portable path is compared with ref, the others with the portable one.
  std::vector<std::shared_ptr<device::Device>> devices() const {
    return {backend::cpu::make_cpu_device(GetParam()),
            GetParam() == Isa::scalar
                ? std::shared_ptr<device::Device>(device::make_ref_device())
                : std::shared_ptr<device::Device>(backend::cpu::make_cpu_device(Isa::scalar))};
  }
  void expect_same(const TorusPlan& plan, u32 batch, Rng& rng,
                   TorusFill key = TorusFill::random) const {
    SCOPED_TRACE(cat(describe(plan), ", batch ", batch, ", ", name_of(key), " key"));
    const auto in = rotation_input(plan, batch, 2, true, rng, key);
    std::vector<std::vector<u64>> out;
    for (const auto& device : devices()) out.push_back(TorusWorld(device, plan).blind_rotate(in));
    ASSERT_EQ(first_difference(out[0], out[1]), "");
  }
};

INSTANTIATE_TEST_SUITE_P(, TorusIsa, testing::ValuesIn(backend::cpu::kAllIsas),
                         [](const testing::TestParamInfo<Isa>& info) {
                           return info.param == Isa::scalar ? "portable"
                                  : info.param == Isa::avx2 ? "avx2"
                                                            : "avx512";
                         });

TEST_P(TorusIsa, BlindRotate) {
  Rng rng = test_rng();
  for (u32 log_n = 3; log_n <= 12; ++log_n)
    for (TorusPlan plan :
         {raising_plan(5, 1, 1, log_n, 17, 21), gadget_plan(5, 1, 1, log_n, 1, 27, 7, 3),
          gadget_plan(5, 1, 1, log_n, 2, 27, 14, 3)})
      for (const auto secret : {LweSecret::ternary, LweSecret::binary})
        for (const auto arithmetic : kinds_of_arithmetic(plan)) {
          plan.secret = secret, plan.arithmetic = arithmetic;
          expect_same(plan, 1, rng);
          if (HasFatalFailure()) return;
        }
}

// Groups of rows: 1, 2 and 4 at a time, more than one group.
TEST_P(TorusIsa, Batches) {
  Rng rng = test_rng();
  for (u32 batch = 1; batch <= 19; ++batch)
    for (TorusPlan plan : {raising_plan(5, 2, 3, 7, 17, 20), gadget_plan(5, 1, 1, 7, 1, 27, 7, 3)})
      for (const auto secret : {LweSecret::ternary, LweSecret::binary}) {
        plan.arithmetic = device::Arithmetic::approx, plan.secret = secret;
        expect_same(plan, batch, rng);
      }
  for (u32 batch = 1; batch <= 19; ++batch) {
    TorusPlan plan = gadget_plan(5, 1, 2, 7, 2, 27, 27, 1);
    plan.arithmetic = device::Arithmetic::split;
    expect_same(plan, batch, rng);
  }
}

// Conversions between integers and doubles at their limits; many rows, because above Q = 2^52 a
// rounded sum has a fraction only rarely.
TEST_P(TorusIsa, WideNumbers) {
  Rng rng = test_rng();
  for (const auto key : kTorusFills)
    for (const auto& [base_log, digits] :
         {std::pair{27u, 1u}, {28u, 1u}, {26u, 1u}, {13u, 4u}, {18u, 2u}, {1u, 53u}}) {
      TorusPlan plan = gadget_plan(4, 1, 2, 7, 2, 27, base_log, digits);
      for (const auto arithmetic : kinds_of_arithmetic(plan)) {
        if (arithmetic == device::Arithmetic::split && base_log == 1)
          continue;  // digits have one bit
        plan.arithmetic = arithmetic;
        expect_same(plan, 12, rng, key);
      }
    }
  for (const u32 log_modulus : {1u, 2u, 21u, 22u}) {
    TorusPlan plan = raising_plan(4, 1, 2, 7, log_modulus, 28);
    plan.arithmetic = device::Arithmetic::approx;
    expect_same(plan, 3, rng);
  }
}

TEST_P(TorusIsa, Lwe) {
  Rng rng = test_rng();
  const TorusPlan plan = raising_plan(37, 1, 2, 5, 17, 20);
  const random::Seed seed = torus_seed(rng);
  for (const u32 log_modulus : {9u, 32u, 33u, 40u}) {
    const device::SwitchShape shape{33, 37, 2, log_modulus, std::min(log_modulus, 32u), 5, 8};
    const auto secrets = torus_secrets(2 * 37, rng);
    std::vector<u64> in(7 * 35);
    for (auto& x : in) x = rng() & ((u64(1) << log_modulus) - 1);
    std::vector<std::vector<u8>> keys;
    std::vector<std::vector<u32>> out, phases;
    for (const auto& device : devices()) {
      const TorusWorld w(device, plan);
      auto& k = *w.kernels;
      const auto key = w.stream->allocate(shape.key_bytes());
      const auto s = w.upload(secrets);
      const auto rows = w.upload(in);
      const device::LweView key_rows = shape.key(key.data());
      k.sample_lwe(*w.stream, key_rows, {seed, 5}, {seed, 9}, s.as<i8>(), nullptr);
      const auto result = w.upload(std::vector<u32>(7 * 39)),
                 phase = w.upload(std::vector<u32>(14));
      const device::LweView switched{result.as<u32>(), shape.out(7)};
      k.key_switch(*w.stream, shape, switched, {rows.as<const u64>(), shape.in(7)}, key_rows);
      k.phase(*w.stream, phase.as<u32>(), switched, s.as<i8>());
      keys.push_back(w.download<u8>(key, shape.key_bytes()));
      out.push_back(w.download<u32>(result, 7 * 39));
      phases.push_back(w.download<u32>(phase, 14));
    }
    EXPECT_EQ(keys[0], keys[1]);
    EXPECT_EQ(first_difference(out[0], out[1]), "");
    EXPECT_EQ(first_difference(phases[0], phases[1]), "");
  }
}

}  // namespace
}  // namespace crenel::test
