// Lists of messages: what packing adds to phases, against the model, and that it packs.
#include <cmath>

#include "support/tfhe_world.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/lists.h"

namespace crenel::tfhe {
namespace {

class TfheListsNoise : public test::DeviceTest {};

// Coefficient `at` of b + a s modulo Q'.
u64 phase(const std::vector<u32>& packed, const ListRing& r, const SecretKeys& secret, u64 at) {
  const u64 n = u64(1) << r.log_n(), digits = r.plan.digits();
  u128 sum = 0;
  for (u64 d = 0; d < digits; ++d) {
    const u64 p = r.plan.primes[d];
    i64 x = packed[d * n + at];
    for (u64 i = 0; i < n; ++i) {
      const i64 word = packed[(digits + d) * n + (i <= at ? at - i : n + at - i)];
      x += secret.extracted(0, static_cast<u32>(i)) * (i <= at ? word : -word);
    }
    const u64 residue = static_cast<u64>((x % i64(p) + i64(p)) % i64(p));
    const u64 rest = r.plan.modulus / p;
    u64 inverse = 1;
    while (u128(rest % p) * inverse % p != 1) ++inverse;
    sum += u128(rest) * inverse % r.plan.modulus * residue;
  }
  return static_cast<u64>(sum % r.plan.modulus);
}

TEST_P(TfheListsNoise, PackingErrsAsTheModelSays) {
  auto rng = test::test_rng();
  constexpr int kKeys = 4;
  const Params params = Params::preset("toy-lut4g4", true);
  for (const u64 count : {u64(200), u64(21)}) {
    double measured = 0, model = 0;
    for (int key = 0; key < kKeys; ++key) {
      const Context context(params, GetParam());
      Client client = context.keygen();
      const Evaluator ev = context.evaluator(client.evaluation_keys({.lists = true}), {0.0});
      const test::Messages m = test::random_messages(rng, count, 16);
      const Ciphertext x = client.encrypt(m);
      const auto errors = client.phase_errors(x, m);
      const auto packed = packed_rows(ev.state(), x.data().payload.as<const u32>(), count);
      const ListRing& r = context.state().lists();
      const double q = std::exp2(ev.state().log_q()), product = double(r.plan.modulus);
      const u64 apart = (u64(1) << r.log_n()) / list_width(count);
      for (u64 j = 0; j < count; ++j) {
        const u64 found = phase(packed, r, client.state().secret, j * apart);
        const double at_q = double(m[j]) * q / 32 + double(errors[j]);
        const double off =
            std::remainder(double(found) - at_q / q * product, product) * q / product;
        measured += off * off / double(count * kKeys);
      }
      model = list_noise(ev.state().plan(), r.plan, count).packing;
    }
    std::printf("%llu messages: std %.3g of q's units, model %.3g\n",
                static_cast<unsigned long long>(count), std::sqrt(measured), std::sqrt(model));
    // beyond five deviations of both samples, chi-squares of 800 and of 84 squares, with the keys'
    // errors, whose weights differ by 0.05
    const double spread = count < 100 ? 2.0 : 0.45;
    EXPECT_GT(measured / model, 1 / (1 + spread)) << "repeat with CRENEL_SEED=" << test::run_seed();
    EXPECT_LT(measured / model, 1 + spread) << "repeat with CRENEL_SEED=" << test::run_seed();
  }
}

CRENEL_CANDIDATE_SUITE(TfheListsNoise);

}  // namespace
}  // namespace crenel::tfhe
