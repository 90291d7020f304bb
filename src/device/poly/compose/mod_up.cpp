#include "device/poly/checks.h"
#include "device/poly/compose/workspace.h"

namespace crenel::device {

using compose::Temporary;

template <class W>
void Kernels<W>::mod_up(Stream& stream, View out, ConstView in,
                        const Prepared<rns::ModUp<W>>& table) {
  checks::mod_up<W>(ring(), out, in, *table);
  const PolyShape shape = in.shape;
  Temporary<W> coefficients(stream, shape, in.limbs, Domain::coeff);
  intt(stream, coefficients.view(), in);
  for (u32 d = 0; d < table->digits.size(); ++d) {
    const auto& digit = table->digits[d];
    const View to = out.components(d, 1);
    // Own limbs: one row a batch entry.
    const std::size_t row = (std::size_t(digit.count) << shape.log_n) * sizeof(W);
    stream.copy_rows(to.limb(0, 0, digit.first), to.batch_stride * sizeof(W),
                     in.limb(0, 0, digit.first), in.batch_stride * sizeof(W), row, shape.batch);
    if (digit.conversion.destination.empty()) continue;
    // The others lie before and after them in `to`, but must be one view for the conversion.
    Temporary<W> extended(stream, shape, digit.conversion.destination, Domain::coeff);
    const View digit_limbs = coefficients.view().limb_window(digit.first, digit.count);
    base_convert(stream, extended.view(), digit_limbs, compose::conversion_of<W>(table, d));
    for (const auto& run : compose::common_runs(digit.conversion.destination, to.limbs))
      ntt(stream, to.limb_window(run.second, run.count),
          extended.view().limb_window(run.first, run.count));
  }
}

template void Kernels<u32>::mod_up(Stream&, View, ConstView, const Prepared<rns::ModUp<u32>>&);
template void Kernels<u64>::mod_up(Stream&, View, ConstView, const Prepared<rns::ModUp<u64>>&);

}  // namespace crenel::device
