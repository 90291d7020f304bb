#include "device/poly/compose/workspace.h"

namespace crenel::device {
namespace {

// The values of `count` constants from `first` on, times -1 when `negate`, as scalars by position.
LimbScalars scalars_of(const ring::Ring& ring, const LimbSet& limbs,
                       const std::vector<math::ShoupConstant<u32>>& constants, u32 first, u32 count,
                       bool negate) {
  LimbScalars s;
  for (u32 i = 0; i < count; ++i) {
    const u32 value = constants[first + i].value;
    s.low[i] = s.high[i] =
        negate ? math::neg_mod<u32>(value, ring.modulus(limbs[first + i]).q) : value;
  }
  return s;
}

}  // namespace

void PolyKernels::do_divide(Stream& stream, View out, ConstView in,
                            const Prepared<rns::Divide>& table, const ConstView* addend) {
  compose::Temporary dropped(stream, in.shape, table->dropped, Domain::coeff);
  for (const auto& run : compose::common_runs(table->dropped, in.limbs))
    intt(stream, dropped.view().limb_window(run.first, run.count),
         in.limb_window(run.second, run.count));
  PolyKernels::do_divide_from(stream, out, dropped.view(), in, table, addend);
}

void PolyKernels::do_divide_from(Stream& stream, View out, SourcesView sources, ConstView x,
                                 const Prepared<rns::Divide>& table, const ConstView* addend) {
  const u32 limbs = out.limbs.size();
  // out = -r / B, computed in place; then the kept limbs of x are added on top.
  const View remainder = compose::with_domain(out, Domain::coeff);
  base_convert(stream, remainder, sources.limbs(), table.conversions->at(0));
  ntt(stream, out, remainder);
  mul_scalar(stream, out, out, scalars_of(ring(), out.limbs, table->result_scale, 0, limbs, true));
  for (const auto& run : compose::common_runs(out.limbs, x.limbs))
    mul_add_scalar(stream, out.limb_window(run.first, run.count),
                   x.limb_window(run.second, run.count),
                   scalars_of(ring(), out.limbs, table->input_scale, run.first, run.count, false));
  if (addend == nullptr) return;
  const View sum = out.components(0, addend->shape.components);
  add(stream, sum, sum, *addend);
}

}  // namespace crenel::device
