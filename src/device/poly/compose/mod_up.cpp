#include "device/poly/compose/product_sum.h"
#include "device/poly/compose/workspace.h"

namespace crenel::device {

using compose::Temporary;

void PolyKernels::do_sources(Stream& stream, View out, const SourcesOf& of,
                             const Prepared<rns::BaseConversion>& scales) {
  if (of.product()) {
    const Temporary third(stream, of.shape(), of.in.limbs, Domain::eval);
    compose::product_third(*this, stream, third.view(), of.in, of.other, of.sum);
    return sources(stream, out, third.view(), scales);
  }
  for (const auto& run : compose::common_runs(out.limbs, of.in.limbs))
    intt(stream, out.limb_window(run.first, run.count), of.in.limb_window(run.second, run.count));
}

void PolyKernels::do_mod_up(Stream& stream, View out, ConstView in,
                            const Prepared<rns::ModUp>& table) {
  Temporary coefficients(stream, in.shape, in.limbs, Domain::coeff);
  intt(stream, coefficients.view(), in);
  PolyKernels::do_mod_up_from(stream, out, coefficients.view(), in, table);
}

void PolyKernels::do_mod_up_from(Stream& stream, View out, SourcesView sources, ConstView own,
                                 const Prepared<rns::ModUp>& table) {
  const ConstView& limbs = sources.limbs();
  const PolyShape shape = limbs.shape;
  for (u32 d = 0; d < table->digits.size(); ++d) {
    const auto& digit = table->digits[d];
    const View to = out.components(d, 1);
    // Own limbs: one row a batch entry.
    const LimbSet own_limbs = own.limbs.intersect(digit.conversion.source);
    const ConstView from = own.restrict_to(own_limbs);
    for (const auto& run : compose::common_runs(own_limbs, to.limbs))
      stream.copy_rows(to.limb(0, 0, run.second), to.batch_stride * sizeof(u32),
                       from.limb(0, 0, run.first), from.batch_stride * sizeof(u32),
                       (std::size_t(run.count) << shape.log_n) * sizeof(u32), shape.batch);
    if (digit.conversion.destination.empty()) continue;
    // The others lie before and after them in `to`, but must be one view for the conversion.
    Temporary extended(stream, shape, digit.conversion.destination, Domain::coeff);
    const ConstView digit_limbs = limbs.limb_window(digit.first, digit.count);
    base_convert(stream, extended.view(), digit_limbs, table.conversions->at(d));
    for (const auto& run : compose::common_runs(digit.conversion.destination, to.limbs))
      ntt(stream, to.limb_window(run.second, run.count),
          extended.view().limb_window(run.first, run.count));
  }
}

}  // namespace crenel::device
