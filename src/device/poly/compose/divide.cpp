#include "device/poly/checks.h"
#include "device/poly/compose/workspace.h"

namespace crenel::device {
namespace {

// The values of `count` constants from `first` on, times -1 when `negate`, as scalars by position.
template <class W>
LimbScalars<W> scalars_of(const ring::Ring<W>& ring, const LimbSet& limbs,
                          const std::vector<math::ShoupConstant<W>>& constants, u32 first,
                          u32 count, bool negate) {
  LimbScalars<W> s;
  for (u32 i = 0; i < count; ++i) {
    const W value = constants[first + i].value;
    s.low[i] = s.high[i] =
        negate ? math::neg_mod<W>(value, ring.modulus(limbs[first + i]).q) : value;
  }
  return s;
}

}  // namespace

template <class W>
void Kernels<W>::divide(Stream& stream, View out, ConstView in,
                        const Prepared<rns::Divide<W>>& table, const ConstView* addend) {
  checks::divide<W>(ring(), out, in, *table, addend);
  const u32 limbs = out.limbs.size();
  // out = -r / B, computed in place; then the kept limbs of x are added on top.
  compose::Temporary<W> dropped(stream, in.shape, table->dropped, Domain::coeff);
  for (const auto& run : compose::common_runs(table->dropped, in.limbs))
    intt(stream, dropped.view().limb_window(run.first, run.count),
         in.limb_window(run.second, run.count));
  const View remainder = compose::with_domain(out, Domain::coeff);
  base_convert(stream, remainder, dropped.view(), compose::conversion_of<W>(table, 0));
  ntt(stream, out, remainder);
  mul_scalar(stream, out, out, scalars_of(ring(), out.limbs, table->result_scale, 0, limbs, true));
  for (const auto& run : compose::common_runs(out.limbs, in.limbs))
    mul_add_scalar(stream, out.limb_window(run.first, run.count),
                   in.limb_window(run.second, run.count),
                   scalars_of(ring(), out.limbs, table->input_scale, run.first, run.count, false));
  if (addend == nullptr) return;
  const View sum = out.components(0, addend->shape.components);
  add(stream, sum, sum, *addend);
}

#define CRENEL_INSTANTIATE(W)                                                                 \
  template void Kernels<W>::divide(Stream&, View, ConstView, const Prepared<rns::Divide<W>>&, \
                                   const ConstView*);
CRENEL_INSTANTIATE(u32)
CRENEL_INSTANTIATE(u64)
#undef CRENEL_INSTANTIATE

}  // namespace crenel::device
