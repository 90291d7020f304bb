// What a product does to level and scale, by hand and by the convenient form.
#include <crenel/crenel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace ckks = crenel::ckks;

int main() {
  const auto print = [](const char* what, const ckks::Ciphertext& c) {
    std::printf("%-12s level %u, scale 2^%.2f\n", what, c.level(), std::log2(c.scale()));
  };
  const auto params = ckks::Params::generate(/*log_n=*/14, /*scale_bits=*/40, /*depth=*/3);
  const ckks::Context context(params);
  auto client = context.keygen();
  const auto ev = context.evaluator(client.evaluation_keys());

  std::vector<double> x(params.slots());
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = -1.0 + 2.0 * static_cast<double>(i) / static_cast<double>(x.size() - 1);
  const auto a = client.encrypt(x);
  print("fresh", a);

  // By hand: a product doubles the logarithm of the scale, a rescale brings it back for one level.
  auto square = ev.multiply(a, a);
  print("multiplied", square);
  square = ev.rescale(square);
  print("rescaled", square);

  // Operands of one call share a level: adding a needs it brought down.
  const auto cube = ev.multiply_rescale(square, ev.adjust_level(a, square.level()));
  const auto by_hand = client.decrypt(ev.add(cube, ev.adjust_level(a, cube.level())));

  // The same, written as arithmetic.
  const ckks::Operand o(ev, a.clone()), sum = o * o * o + o;
  print("x^3 + x", sum.ciphertext());
  const auto convenient = client.decrypt(sum.ciphertext());
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    for (const auto& result : {by_hand[i], convenient[i]})
      error = std::max(error, std::abs(result - (x[i] * x[i] * x[i] + x[i])));
  std::printf("largest error 2^%.1f\n", std::log2(error));
  return error < std::ldexp(1.0, -15) ? 0 : 1;
}
