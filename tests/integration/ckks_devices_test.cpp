// One input, every device: a whole chain of operations gives the same bytes as ref.
#include "crenel/ckks/serialize.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

// What travels: parameters, keys and inputs made once, on ref.
struct Wire {
  std::string params;
  std::vector<u8> keys;
  std::vector<u8> a, b, weights;
};

const Wire& wire(const std::string& params) {
  static auto* made = new std::map<std::string, Wire>();
  if (const auto it = made->find(params); it != made->end()) return it->second;
  const Context context(test::world_params(params), "ref");
  Client client = context.keygen();
  auto rng = test::test_rng();
  const u64 n = 2 * context.params().slots();  // batch 2
  Wire w;
  w.params = params;
  w.keys = to_bytes(context, client.evaluation_keys({{1, 2, -3}, true, true}));
  w.a = to_bytes(context, client.encrypt(test::random_values(rng, n, 0.7), {}, 0.0, 0, 2));
  w.b = to_bytes(context, client.encrypt(test::random_values(rng, n, 0.7), {}, 0.0, 0, 2));
  w.weights = to_bytes(context, context.encode(test::random_values(rng, context.params().slots())));
  return made->emplace(params, std::move(w)).first->second;
}

// Every public operation at least once; each result in wire form.
std::vector<std::vector<u8>> run(const std::string& device, const Wire& w) {
  const Context context(test::world_params(w.params), device);
  const Evaluator ev = context.evaluator(evaluation_keys_from_bytes(context, w.keys));
  const Ciphertext a = ciphertext_from_bytes(context, w.a), b = ciphertext_from_bytes(context, w.b);
  const Plaintext weights = plaintext_from_bytes(context, w.weights);
  std::vector<std::vector<u8>> out;
  const auto keep = [&](const Ciphertext& c) { out.push_back(to_bytes(context, c)); };
  keep(a);
  keep(ev.sub(ev.add(a, b), ev.negate(b)));
  keep(ev.add(ev.sub(ev.add(a, weights), weights), Complex(0.5, -0.25)));
  keep(ev.multiply_integer(a, 3, -2));
  for (i64 power : {1, -6, 64, 1024, -2048}) keep(ev.multiply_monomial(a, power));
  const Ciphertext product = ev.multiply_rescale(a, b);
  keep(product);
  keep(ev.rescale(ev.multiply(a, b)));
  keep(ev.rescale(ev.multiply(a, weights)));
  keep(ev.rescale(ev.multiply(a, Complex(0.3, 0.7))));
  const Ciphertext lazy = ev.add(ev.multiply_lazy(a, b), ev.square_lazy(a));
  keep(lazy);
  keep(ev.relinearise(lazy));
  keep(ev.relinearise_rescale(lazy));
  keep(ev.square(a));
  for (u32 level = 0; level < product.level(); ++level) keep(ev.adjust_level(product, level));
  keep(ev.rotate(product, -3));
  keep(ev.conjugate(product));
  const std::vector<i64> steps{0, 1, 2, -3};
  for (const auto& c : ev.rotate_many(product, steps)) keep(c);
  keep(ev.rotate_sum(product, steps));
  keep(ev.sum_slots(product, 4));
  keep(ev.polynomial(a, std::vector<double>{0.5, 0.197, 0.0, -0.004, 0.1, 0.2}));
  keep(ev.polynomial(product, std::vector<double>{0.1, -0.2, 0.3, 0.4}, PolynomialBasis::chebyshev,
                     -2.0, 2.0));
  return out;
}

// What ref makes of it, once for all devices.
const std::vector<std::vector<u8>>& of_ref(const std::string& params) {
  static auto* made = new std::map<std::string, std::vector<std::vector<u8>>>();
  const auto found = made->find(params);
  return found != made->end() ? found->second
                              : made->emplace(params, run("ref", wire(params))).first->second;
}

class CkksDevices : public test::DeviceTest {};

TEST_P(CkksDevices, EveryOperationHasTheBitsOfRef) {
  for (const char* params : {"s40", "s35"}) {
    const auto& expected = of_ref(params);
    const auto found = run(GetParam(), wire(params));
    ASSERT_EQ(found.size(), expected.size());
    for (u64 i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i] == expected[i]) << params << ": result " << i;
  }
}

TEST_P(CkksDevices, BootstrappingChainHasTheBitsOfRef) {
  const auto& expected = of_ref("toy-boot40");
  const auto found = run(GetParam(), wire("toy-boot40"));
  ASSERT_EQ(found.size(), expected.size());
  for (u64 i = 0; i < found.size(); ++i) EXPECT_TRUE(found[i] == expected[i]) << "result " << i;
}

TEST_P(CkksDevices, OneSetOfKeysServesEveryDevice) {
  // Encrypted here, evaluated there, decrypted here.
  const Context home(test::world_params("s40"), "ref");
  Client client = home.keygen();
  const Values x(home.params().slots(), Complex(0.5, 0.25));
  const Context away(test::world_params("s40"), GetParam());
  const Evaluator ev = away.evaluator(
      evaluation_keys_from_bytes(away, to_bytes(home, client.evaluation_keys({{}, false, true}))));
  const Ciphertext there = ciphertext_from_bytes(away, to_bytes(home, client.encrypt(x)));
  const Ciphertext back =
      ciphertext_from_bytes(home, to_bytes(away, ev.multiply_rescale(there, there)));
  const auto expected = test::map_values(x, [](Complex v) { return v * v; });
  EXPECT_LT(test::max_error(client.decrypt(back), expected), test::tolerance(home.params()));
}

CRENEL_POLY_SUITE(CkksDevices);

}  // namespace
}  // namespace crenel::ckks
