// More products than levels: the sign of encrypted numbers, with a bootstrap whenever levels run
// out.
//
// The set toy-boot40 is INSECURE and finishes at once; "boot40" is the same with N = 2^16, for real
// use.
#include <crenel/crenel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace ckks = crenel::ckks;
namespace circuits = crenel::circuits;

int main() {
  constexpr int kIterations = 20;
  const auto params = ckks::Params::preset("toy-boot40", /*allow_insecure=*/true);
  const ckks::Context context(params);
  auto client = context.keygen();
  circuits::BootstrapOptions options;
  options.message = circuits::BootstrapMessage::real;
  options.values = circuits::BootstrapValues::centred;
  const auto server = client.evaluation_keys(circuits::bootstrap_key_request(params, options));

  const auto ev = context.evaluator(server);
  circuits::Bootstrapper boot(context, server, options);
  std::printf("%s\n", boot.describe().text().c_str());

  // x -> (3 x - x^3) / 2 takes numbers of [-1, 1] towards their sign, at two levels an iteration.
  // Small errors, those of a bootstrap too, die out near -1 and 1.
  std::vector<double> x(params.slots());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = std::sin(static_cast<double>(3 * i + 1));
    x[i] = std::copysign(std::max(std::abs(v), 0.05), v);
  }
  const std::vector<double> step{0.0, 1.5, 0.0, -0.5};
  auto c = client.encrypt(x);
  int refreshed = 0;
  for (int i = 0; i < kIterations; ++i) {
    if (c.level() < 2) {
      c = boot(ev.adjust_level(c, boot.levels().input));
      ++refreshed;
    }
    c = ev.polynomial(c, step);
  }

  const auto y = client.decrypt(c);
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    error = std::max(error, std::abs(y[i] - std::copysign(1.0, x[i])));
  std::printf("%d levels of products on %u: %d bootstraps\nlargest error 2^%.1f\n", 2 * kIterations,
              params.normal_top_level(), refreshed, std::log2(error));
  return refreshed > 0 && error < std::ldexp(1.0, -20) ? 0 : 1;
}
