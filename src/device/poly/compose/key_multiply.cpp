#include "device/poly/compose/workspace.h"

namespace crenel::device {

void PolyKernels::do_key_multiply(Stream& stream, View out, ConstView digits, const Key& key,
                                  u32 first_digit) {
  const ConstView pairs = key.resolved();
  // Each stretch of the digits' limbs that is contiguous in the key as well.
  for (const auto& run : compose::common_runs(out.limbs, pairs.limbs))
    for (u32 c = 0; c < 2; ++c) {
      const View to = out.components(c, 1).limb_window(run.first, run.count);
      for (u32 d = 0; d < digits.shape.components; ++d) {
        const ConstView digit = digits.components(d, 1).limb_window(run.first, run.count);
        const ConstView factor = compose::batch_entry(pairs, key.entry(first_digit + d))
                                     .components(c, 1)
                                     .limb_window(run.second, run.count);
        if (d == 0)
          mul(stream, to, digit, factor);
        else
          mul_add(stream, to, digit, factor);
      }
    }
}

void PolyKernels::do_key_switch_extended(Stream& stream, View out, ConstView in,
                                         const Prepared<rns::ModUp>& table, const Key& key,
                                         u32 first_digit, const ConstView* addend,
                                         const Scalars* factor) {
  PolyShape shape = in.shape;
  shape.components = static_cast<u32>(table->digits.size());
  compose::Temporary digits(stream, shape, table->output, Domain::eval);
  mod_up(stream, digits.view(), in, table);
  key_multiply(stream, out, digits.view(), key, first_digit);
  if (addend == nullptr) return;
  const View window = out.components(0, addend->shape.components);
  mul_add_scalar(stream, window.limb_window(0, addend->limbs.size()), *addend, *factor);
}

void PolyKernels::do_key_switch_from(Stream& stream, View out, SourcesView sources, ConstView own,
                                     const Prepared<rns::ModUp>& table, const Key& key,
                                     u32 first_digit, const ConstView* addend,
                                     const Scalars* factor) {
  PolyShape shape = sources.view.shape;
  shape.components = static_cast<u32>(table->digits.size());
  compose::Temporary digits(stream, shape, table->output, Domain::eval);
  mod_up_from(stream, digits.view(), sources, own, table);
  key_multiply(stream, out, digits.view(), key, first_digit);
  if (addend == nullptr) return;
  const View window = out.components(0, addend->shape.components);
  mul_add_scalar(stream, window.limb_window(0, addend->limbs.size()), *addend, *factor);
}

}  // namespace crenel::device
