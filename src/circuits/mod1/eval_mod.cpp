#include "circuits/mod1/eval_mod.h"

#include <cmath>
#include <numbers>

#include "ckks/polynomial.h"

namespace crenel::circuits {

using ckks::Ciphertext;

Ciphertext eval_mod(const ckks::Evaluator& ev, Ciphertext y, const Mod1Params& params,
                    std::span<const double> coefficients, bool folded) {
  const auto& chain = ev.context().params();
  const u32 depth = ckks::polynomial_depth(params.degree);
  double scale = y.scale();
  for (u32 l = y.level(); l > y.level() - depth; --l)
    scale = scale * scale / chain.rescale_ratio(l);
  const double quarter = -1.0 / (4.0 * params.width);
  const u32 end = y.level() - depth;
  Ciphertext shifted = folded ? ckks::add_constant(ev.state(), std::move(y), quarter)
                              : ev.add(y, std::complex<double>(quarter));
  Ciphertext v = ckks::evaluate_polynomial(ev, std::move(shifted), coefficients,
                                           ckks::PolynomialBasis::chebyshev, end, scale, folded);
  // v_(i+1) = 2 v_i^2 - c_0^(2^(i+1)), the cosine of twice the angle scaled by c_0^(2^i)
  double constant =
      std::pow(0.5 / std::numbers::pi, 1.0 / std::exp2(static_cast<double>(params.double_angles)));
  for (u32 i = 0; i < params.double_angles; ++i) {
    constant *= constant;
    const auto& s = ev.state();
    v = folded ? ckks::relinearised_rescaled(s, ckks::pending_double_square(s, v, -constant))
               : ev.relinearise_rescale(ckks::double_square(s, v, -constant));
  }
  return v;
}

}  // namespace crenel::circuits
