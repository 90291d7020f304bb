// Every base conversion that boot40 asks for, at every level: digits of ModUp, ModDown, rescaling
// and both merged. Whole polynomials of 2^16 on GPUs, against the library's kernels of the same
// device (which other suites hold equal to ref); 2^8 coefficients on hosts, where ref is slow: a
// coefficient does not see the others.
#include "crenel/ckks/params.h"
#include "support/devices.h"
#include "support/fhecore_world.h"

namespace crenel::test {
namespace {

class FhecoreBoot : public DeviceTest {};
CRENEL_DEVICE_SUITE(FhecoreBoot);

std::vector<rns::BaseConversion> conversions_of(const ckks::Params& p, const rns::Moduli& moduli) {
  const auto special = LimbSet::range(p.chain_limbs(), p.chain_limbs() + p.alpha());
  std::vector<rns::BaseConversion> found;
  const auto add = [&](rns::BaseConversion c) {
    if (c.source.empty() || c.destination.empty()) return;
    for (const auto& other : found)
      if (other.source == c.source && other.destination == c.destination &&
          other.source_scale[0].value == c.source_scale[0].value)
        return;
    found.push_back(std::move(c));
  };
  // Of divisions what the unit does: the sum; the quotient is rounded elsewhere.
  const auto add_division = [&](const LimbSet& input, const LimbSet& output) {
    const auto d = rns::make_divide(moduli, input, output);
    add(rns::make_base_conversion(moduli, d.dropped, d.output, d.added));
  };
  for (u32 level = 0; level <= p.max_level(); ++level) {
    const auto window = LimbSet::range(p.window_begin(level), p.window_end(level));
    const auto extended = window.concat(special);
    for (auto& digit : rns::make_mod_up(moduli, window, special, p.alpha()).digits)
      add(std::move(digit.conversion));
    add_division(extended, window);
    if (level == 0) continue;
    const auto below = LimbSet::range(p.window_begin(level - 1), p.window_end(level - 1));
    add_division(window, below);
    add_division(extended, below);
  }
  return found;
}

TEST_P(FhecoreBoot, EveryConversionOfEveryLevel) {
  Rng rng = test_rng();
  const auto params = ckks::Params::preset("boot40");
  const u32 log_n = device_->info().kind == device::Kind::cuda ? params.log_n() : 8;
  auto context = make_context(device_, log_n, params.primes());
  const auto moduli = moduli_of(*context.ring);
  const auto fhecore = fhecore_of(*device_);
  const ring::PolyShape shape{log_n, 1, 1};
  const auto conversions = conversions_of(params, moduli);
  EXPECT_GT(conversions.size(), 3u * params.max_level());
  for (const auto& t : conversions) {
    SCOPED_TRACE(
        cat("from limb ", t.source[0], ", ", t.source.size(), " limbs, to ", t.destination.size()));
    const auto in = random_poly(*context.ring, rng, shape, t.source, Domain::coeff);
    const auto out = garbage_poly(rng, shape, t.destination, Domain::coeff);
    const auto table = fhecore->prepare(device::make_fhecore_conversion(moduli, t));
    const auto library = context.kernels->prepare(rns::BaseConversion(t));
    fhecore->reset_counts(*context.stream);
    const auto got = run_on(context, {out, in}, [&](Context& c, const Views& v) {
      fhecore->base_convert(*c.stream, v[0], v[1], table);
    });
    const auto expected = run_on(context, {out, in}, [&](Context& c, const Views& v) {
      c.kernels->base_convert(*c.stream, v[0], v[1], library);
    });
    ASSERT_TRUE(same_words(out, got[0], expected[0]));
    ASSERT_TRUE(same_words(in, got[1], in.words));
    expect_counts(
        *fhecore, *context.stream,
        device::fhecore_conversion_work(log_n, t.source.size(), t.destination.size()).counts);
  }
}

}  // namespace
}  // namespace crenel::test
