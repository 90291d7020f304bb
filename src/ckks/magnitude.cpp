#include "ckks/magnitude.h"

#include "ckks/scale.h"

namespace crenel::ckks {

void magnitude::expect_fits(const Params& params, const Metadata& meta, const char* operation) {
  if (!known(meta.bound)) return;
  const double largest = largest_value(params, meta.level, meta.scale);
  if (!(meta.bound <= largest))
    throw StateError(
        cat(operation, " at level ", meta.level, " could reach values of ", brief(meta.bound),
            " by the bounds of its operands, and values beyond ", brief(largest),
            " (max_value at scale 2^", brief(std::log2(meta.scale)),
            ") do not decrypt; scale the inputs down, compute at a higher level, or state a "
            "smaller bound that you know"),
        {{"operation", operation},
         {"level", meta.level},
         {"bound", meta.bound},
         {"max_value", largest}});
}

Magnitude MagnitudeModel::result(Magnitude a, double bound) const {
  a.meta = magnitude::bounded(params_, a.meta, bound, circuit_);
  return a;
}

Magnitude MagnitudeModel::add(const Magnitude& a, const Magnitude& b) const {
  Magnitude out = a;
  out.components = std::max(a.components, b.components);
  out.meta.real = a.meta.real && b.meta.real;
  return result(out, magnitude::sum(a.meta.bound, b.meta.bound));
}

Magnitude MagnitudeModel::add(const Magnitude& a, std::complex<double> b) const {
  Magnitude out = a;
  out.meta.real = a.meta.real && b.imag() == 0.0;
  return result(out, magnitude::sum(a.meta.bound, std::abs(b)));
}

Magnitude MagnitudeModel::multiply(const Magnitude& a, std::complex<double> b, double scale) const {
  if (scale == 0.0) scale = constant_scale(params_, a.level(), a.scale());
  Magnitude out = a;
  out.meta = product_metadata(params_, a.meta, scale, a.meta.real && b.imag() == 0.0);
  return result(out, magnitude::scaled(a.meta.bound, std::abs(b)));
}

Magnitude MagnitudeModel::multiply_lazy(const Magnitude& a, const Magnitude& b) const {
  Magnitude out = a;
  out.meta = product_metadata(params_, a.meta, b.scale(), a.meta.real && b.meta.real);
  out.components = 3;
  return result(out, magnitude::product(a.meta.bound, b.meta.bound));
}

Magnitude MagnitudeModel::relinearise(Magnitude a) const {
  a.components = 2;
  return a;
}

Magnitude MagnitudeModel::rescale(const Magnitude& a) const {
  return {rescaled_metadata(params_, a.meta), a.components};
}

Magnitude MagnitudeModel::adjust_level(const Magnitude& a, u32 level, double scale) const {
  return ckks::adjust_level(MagnitudeOps{*this}, a, level, scale);
}

Magnitude MagnitudeOps::linear_combination(std::span<const Magnitude* const> x,
                                           std::span<const double> c, double constant,
                                           double scale) const {
  Magnitude out = *x[0];
  out.meta.scale = scale;
  double bound = std::abs(constant);
  for (std::size_t k = 0; k < x.size(); ++k) {
    out.meta.real = out.meta.real && x[k]->meta.real;
    bound = magnitude::sum(bound, magnitude::scaled(x[k]->meta.bound, std::abs(c[k])));
  }
  return ev.result(out, bound);
}

}  // namespace crenel::ckks
