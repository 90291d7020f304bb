#include "device/poly/compose/workspace.h"

namespace crenel::device {

using compose::Temporary;

void PolyKernels::do_mod_up(Stream& stream, View out, ConstView in,
                            const Prepared<rns::ModUp>& table) {
  const PolyShape shape = in.shape;
  Temporary coefficients(stream, shape, in.limbs, Domain::coeff);
  intt(stream, coefficients.view(), in);
  for (u32 d = 0; d < table->digits.size(); ++d) {
    const auto& digit = table->digits[d];
    const View to = out.components(d, 1);
    // Own limbs: one row a batch entry.
    const std::size_t row = (std::size_t(digit.count) << shape.log_n) * sizeof(u32);
    stream.copy_rows(to.limb(0, 0, digit.first), to.batch_stride * sizeof(u32),
                     in.limb(0, 0, digit.first), in.batch_stride * sizeof(u32), row, shape.batch);
    if (digit.conversion.destination.empty()) continue;
    // The others lie before and after them in `to`, but must be one view for the conversion.
    Temporary extended(stream, shape, digit.conversion.destination, Domain::coeff);
    const View digit_limbs = coefficients.view().limb_window(digit.first, digit.count);
    base_convert(stream, extended.view(), digit_limbs, table.conversions->at(d));
    for (const auto& run : compose::common_runs(digit.conversion.destination, to.limbs))
      ntt(stream, to.limb_window(run.second, run.count),
          extended.view().limb_window(run.first, run.count));
  }
}

}  // namespace crenel::device
