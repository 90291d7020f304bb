// mod_up, key_multiply, key_switch, divide: the parts of hybrid key switching.
#include <algorithm>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_columns.h"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/host/product_passes.h"
#include "backends/cuda/poly/kernels/key_multiply.cuh"
#include "device/poly/compose/product_sum.h"
#include "device/poly/compose/workspace.h"

namespace crenel::backend::cuda {
namespace {

// Dense memory for `polys` polynomials.
Poly<u32> dense(const device::Buffer& buffer, const ring::PolyShape& shape, u32 limbs) {
  const u64 component = u64(limbs) << shape.log_n;
  return {buffer.as<u32>(), component, component * shape.components};
}

Poly<const u32> read_only(const Poly<u32>& p) {
  return {p.data, p.component_stride, p.batch_stride};
}

Sources sources_of(const device::SourcesView& given) { return {poly(given.view), given.tiled}; }

// The second pass of an inverse transform, as the conversion after it takes it: in tiles or not.
Sources inverse_columns(Stream& stream, const ConversionTables& conversion,
                        const TransformArgs& args, u32 limbs, const Poly<u32>& workspace,
                        bool tiled) {
  launch_column_inverse(stream, args, limbs, conversion.inverse, tiled);
  return {read_only(workspace), tiled};
}

// Limbs `limbs` of `in`, or of what `source` makes of it, to coefficient form, scaled and shifted
// for the conversion, into `workspace`.
Sources inverse_shifted(Stream& stream, const RingTables& tables,
                        const ConversionTables& conversion, const ring::PolyView<const u32>& in,
                        const LimbSet& limbs, const Poly<u32>& workspace,
                        const RowSource& source = PlainRows()) {
  TransformArgs args = transform_args(tables, false, workspace, in, limbs);
  const bool tiled = takes_tiles(stream, conversion, args.log_n);
  args.log_blocked = tiled ? log_block_columns(args.log_n) : 0;
  launch_row_inverse(stream, args, limbs.size(), source);
  return inverse_columns(stream, conversion, in_place(args), limbs.size(), workspace, tiled);
}

// Arguments of passes in place on `out`, limbs `limbs`.
TransformArgs forward_args(const RingTables& tables, const Poly<u32>& out,
                           const ring::PolyShape& shape, const LimbSet& limbs) {
  return in_place(transform_args(tables, true, out, shape, limbs));
}

// The limbs of `output` that each digit has already, in `in`.
OwnLimbs own_limbs(const rns::ModUp& table, const ring::PolyView<const u32>& in) {
  OwnLimbs own = {no_limbs(), position_bytes(table.output, in.limbs), poly(in)};
  for (u32 d = 0; d < table.digits.size(); ++d)
    for (u32 l = 0; l < table.output.size(); ++l)
      if (table.digits[d].conversion.source.contains(table.output[l]))
        own.component.at[l] = static_cast<u8>(d);
  return own;
}

// The bytes [first, ...) of a list.
LimbBytes from(const LimbBytes& bytes, u32 first) {
  LimbBytes s = no_limbs();
  for (u32 l = first; l < rns::kMaxLimbs; ++l) s.at[l - first] = bytes.at[l];
  return s;
}

OwnLimbs from(const OwnLimbs& own, u32 first) {
  return {from(own.component, first), from(own.position, first), own.from};
}

// Limbs [first, ...) as a polynomial of their own.
Poly<u32> from(const Poly<u32>& p, u32 first, u32 log_n) {
  return {p.data + (u64(first) << log_n), p.component_stride, p.batch_stride};
}

bool discards(Stream& stream) { return cuda_stream(stream).tuned(Tunable::discard_read) != 0; }

// Bytes of one limb of all polynomials.
u64 limb_bytes(const ring::PolyShape& shape) {
  return u64(shape.polys()) * sizeof(u32) << shape.log_n;
}

// Limbs that a chain of launches works on at a time: `limbs` in equal parts. As many for any batch:
// a conversion reads all sources in each part, and a few limbs of many entries are no more cache
// than all limbs of them.
u32 limbs_at_a_time(Stream& stream, const ring::PolyShape& shape, u32 limbs) {
  const u64 room = cuda_stream(stream).tuned(Tunable::part_bytes) * shape.batch;
  const u64 parts = (limbs * limb_bytes(shape) + room - 1) / room;
  return divide_up(limbs, static_cast<u32>(std::max<u64>(parts, 1)));
}

// f(first, count) for parts of `most` limbs.
template <class F>
void in_parts(u32 most, u32 limbs, const F& f) {
  for (u32 first = 0; first < limbs; first += most) f(first, std::min(most, limbs - first));
}

// ModUp from its sources on, `own` being what mod_up_from() says.
void raise(Stream& stream, const RingTables& tables, const ring::PolyView<u32>& out,
           const Sources& sources, const ring::PolyShape& shape,
           const ring::PolyView<const u32>& own, const Prepared<rns::ModUp>& table) {
  const ConversionTables& conversion = table.on_device<ConversionTables>();
  const OwnLimbs kept = own_limbs(*table, own);
  const u32 limbs = out.limbs.size();
  in_parts(limbs_at_a_time(stream, out.shape, limbs), limbs, [&](u32 first, u32 count) {
    const Poly<u32> part = from(poly(out), first, out.shape.log_n);
    const TransformArgs args =
        forward_args(tables, part, out.shape, out.limb_window(first, count).limbs);
    launch_convert_columns(
        stream, tables, conversion, sources, shape, args, first, count, from(kept.component, first),
        starts_rows_early(stream, shape.log_n, u64(count) * args.polys, kRowWarpsPerSm));
    launch_row_forward(stream, args, count, from(kept, first));
  });
}

// What key_switch_rows reads besides the digits; no factor is a factor of 1.
KeySwitchTail tail_of(const device::KeyView& key, u32 first_digit,
                      const ring::PolyView<const u32>* addend, const device::LimbScalars* factor) {
  KeySwitchTail tail = {};
  tail.key = key_poly(key, first_digit);
  if (addend == nullptr) return tail;
  tail.addend = poly(*addend);
  tail.addend_components = addend->shape.components;
  tail.addend_limbs = addend->limbs.size();
  if (factor != nullptr)
    std::copy_n(factor->low, tail.addend_limbs, tail.factor);
  else
    std::fill_n(tail.factor, tail.addend_limbs, 1);
  return tail;
}

// `limbs`, which leave the key switch through the first pass of their inverse transform, among the
// output limbs [first, first + count) of a launch.
DroppedRows dropped_rows(const RingTables& tables, const LimbSet& out, u32 first, u32 count,
                         const LimbSet& limbs) {
  DroppedRows rows = {tables.inverse.pairs, tables.inverse.last};
  for (u32 l = 0; l < count; ++l)
    if (limbs.contains(out[first + l])) rows.limbs[l / 32] |= 1u << l % 32;
  return rows;
}

// A key switch from its sources on. Some limbs of all digits at a time, all of them when the digits
// are not too large.
void switch_key(Stream& stream, const RingTables& tables, const ring::PolyView<u32>& out,
                const Sources& sources, const ring::PolyShape& shape,
                const ring::PolyView<const u32>& own, const Prepared<rns::ModUp>& table,
                const LimbBytes& in_key, KeySwitchTail tail,
                const KeySwitchForm& form = PlainSwitch(), const LimbSet& dropped = {}) {
  const ConversionTables& conversion = table.on_device<ConversionTables>();
  const u32 limbs = out.limbs.size(), digits = static_cast<u32>(table->digits.size());
  const ring::PolyShape raised{shape.log_n, digits, shape.batch};
  const u32 most = limbs_at_a_time(stream, raised, limbs);
  const device::Buffer workspace = stream.allocate(most * limb_bytes(raised));
  const OwnLimbs kept = own_limbs(*table, own);
  tail.digits_end = discards(stream) ? 1 : 0;
  in_parts(most, limbs, [&](u32 first, u32 count) {
    const Poly<u32> part = dense(workspace, raised, count);
    TransformArgs args = forward_args(tables, part, raised, out.limb_window(first, count).limbs);
    launch_convert_columns(
        stream, tables, conversion, sources, shape, args, first, count, from(kept.component, first),
        starts_rows_early(stream, shape.log_n, u64(count) * shape.batch, kSwitchWarpsPerSm));
    args.out = poly(out);
    tail.own = from(kept, first);
    tail.in_key = from(in_key, first);
    tail.first_limb = first;
    tail.dropped = dropped_rows(tables, out.limbs, first, count, dropped);
    launch_key_switch_rows(stream, args, count, tail, form);
  });
}

// A key switch whose result is rotated, from its sources on.
void turn_key(Stream& stream, const RingTables& tables, const ring::PolyView<u32>& out,
              const Sources& sources, const ring::PolyShape& shape,
              const ring::PolyView<const u32>& own, const Prepared<rns::ModUp>& table,
              const device::KeyView& key, u32 first_digit, u64 element, bool add,
              const ring::PolyView<const u32>* addend, const device::LimbScalars* factor,
              const LimbSet& dropped = {}) {
  const TurnedSwitch form{static_cast<u32>(element),
                          static_cast<u32>(ring::galois_inverse(element, out.shape.log_n)),
                          add ? 1u : 0u};
  switch_key(stream, tables, out, sources, shape, own, table,
             position_bytes(out.limbs, key.pairs.limbs), tail_of(key, first_digit, addend, factor),
             form, dropped);
}

// A key switch of a product that has passes, from its sources on.
void switch_product(Stream& stream, const ring::Ring& ring, const RingTables& tables,
                    const ring::PolyView<u32>& out, const Sources& sources,
                    const ring::PolyView<const u32>& a, const ring::PolyView<const u32>& b,
                    const Prepared<rns::ModUp>& table, const device::KeyView& key, u32 first_digit,
                    const device::LimbScalars& lift, const device::ProductSum& sum,
                    const LimbSet& dropped = {}) {
  KeySwitchTail tail = tail_of(key, first_digit, nullptr, nullptr);
  if (!sum.addends.empty()) {
    const ring::PolyView<const u32> low = sum.addends[0].components(0, 2);
    const device::LimbScalars factor = lifted_factor(ring, a.limbs, lift, sum.factors[0]);
    tail = tail_of(key, first_digit, &low, &factor);
  }
  const ring::PolyView<const u32> second = a.components(1, 1);
  switch_key(stream, tables, out, sources, second.shape, second, table,
             position_bytes(out.limbs, key.pairs.limbs), tail, switch_of(ring, a, b, lift, sum),
             dropped);
}

// Whether passes multiply with all that it is multiplied with.
bool all_real(const device::SwitchOf& of) {
  if (!of.product()) return is_real(of.addend, of.factor);
  return is_real(&of.in, of.factor) &&
         std::all_of(of.sum.factors.begin(), of.sum.factors.end(),
                     [&](const device::LimbScalars& factor) { return is_real(&of.in, &factor); });
}

// A division from its sources on. `x_ends`: nobody reads x after.
void divide_rows(Stream& stream, const RingTables& tables, const ring::PolyView<u32>& out,
                 const Sources& sources, const ring::PolyView<const u32>& x,
                 const ConversionTables& conversion, const ring::PolyView<const u32>* addend,
                 bool x_ends = false) {
  DivideTail tail = {};
  tail.x_ends = x_ends && discards(stream) ? 1 : 0;
  tail.x = poly(x);
  const LimbBytes x_position = position_bytes(out.limbs, x.limbs);
  if (addend != nullptr) tail.addend_components = addend->shape.components;
  const u32 limbs = out.limbs.size();
  in_parts(limbs_at_a_time(stream, out.shape, limbs), limbs, [&](u32 first, u32 count) {
    const Poly<u32> part = from(poly(out), first, out.shape.log_n);
    const TransformArgs args =
        forward_args(tables, part, out.shape, out.limb_window(first, count).limbs);
    tail.x_position = from(x_position, first);
    tail.x_scale = conversion.x_scale + first;
    if (addend != nullptr) tail.addend = poly(addend->limb_window(first, count));
    launch_convert_columns(
        stream, tables, conversion, sources, x.shape, args, first, count, no_limbs(),
        starts_rows_early(stream, x.shape.log_n, u64(count) * args.polys, kRowWarpsPerSm));
    launch_row_divide(stream, args, count, tail);
  });
}

}  // namespace

void CudaPolyKernels::do_sources(Stream& stream, View out, const device::SourcesOf& of,
                                 const Prepared<rns::BaseConversion>& scales) {
  if (!fast() || !has_passes(of.sum, of.in.limbs.size()))
    return PolyKernels::do_sources(stream, out, of, scales);
  if (out.limbs.empty()) return;
  const TransformArgs args = transform_args(tables_, false, poly(out), first_rows(of), out.limbs);
  launch_row_inverse(stream, args, out.limbs.size(), rows_of(ring(), of));
  launch_column_inverse(stream, in_place(args), out.limbs.size(),
                        scales.on_device<ConversionTables>().inverse);
}

void CudaPolyKernels::do_mod_up(Stream& stream, View out, ConstView in,
                                const Prepared<rns::ModUp>& table) {
  if (!fast()) return PolyKernels::do_mod_up(stream, out, in, table);
  const device::Stage stage(stream, "mod_up");
  const device::Buffer workspace = stream.allocate(in.limbs.size() * limb_bytes(in.shape));
  const Sources sources = inverse_shifted(stream, tables_, table.on_device<ConversionTables>(), in,
                                          in.limbs, dense(workspace, in.shape, in.limbs.size()));
  raise(stream, tables_, out, sources, in.shape, in, table);
}

void CudaPolyKernels::do_mod_up_from(Stream& stream, View out, device::SourcesView sources,
                                     ConstView own, const Prepared<rns::ModUp>& table) {
  if (!fast()) return PolyKernels::do_mod_up_from(stream, out, sources, own, table);
  const device::Stage stage(stream, "mod_up");
  raise(stream, tables_, out, sources_of(sources), sources.view.shape, own, table);
}

void CudaPolyKernels::do_key_multiply(Stream& stream, View out, ConstView digits, const Key& key,
                                      u32 first_digit) {
  const device::Stage stage(stream, "key_multiply");
  KeyArgs args = {};
  args.primes = tables_.primes;
  args.out = poly(out);
  args.digits = poly(digits);
  args.key = key_poly(key, first_digit);
  args.log_n = out.shape.log_n;
  args.count = digits.shape.components;
  args.prime = prime_bytes(out.limbs);
  args.in_key = position_bytes(out.limbs, key.pairs.limbs);
  const auto cost = [&] { return traffic::key_multiply(traffic::extent(out), args.count); };
  launch(stream, cost, cuda::key_multiply,
         dim3(divide_up(out.ring_dim(), 4 * kElementThreads), out.shape.batch, out.limbs.size()),
         kElementThreads, 0, args);
}

void CudaPolyKernels::do_key_switch_extended(Stream& stream, View out, ConstView in,
                                             const Prepared<rns::ModUp>& table, const Key& key,
                                             u32 first_digit, const ConstView* addend,
                                             const Scalars* factor) {
  if (!fused_key_switch_ || !is_real(addend, factor))
    return PolyKernels::do_key_switch_extended(stream, out, in, table, key, first_digit, addend,
                                               factor);
  const device::Stage stage(stream, "key_switch");
  const device::Buffer workspace = stream.allocate(in.limbs.size() * limb_bytes(in.shape));
  const Sources sources = inverse_shifted(stream, tables_, table.on_device<ConversionTables>(), in,
                                          in.limbs, dense(workspace, in.shape, in.limbs.size()));
  switch_key(stream, tables_, out, sources, in.shape, in, table,
             position_bytes(out.limbs, key.pairs.limbs), tail_of(key, first_digit, addend, factor));
}

void CudaPolyKernels::do_key_switch_rotated(Stream& stream, View out, ConstView in,
                                            const Prepared<rns::ModUp>& table, const Key& key,
                                            u32 first_digit, u64 element, bool add,
                                            const ConstView* addend, const Scalars* factor) {
  if (!fused_key_switch_ || !is_real(addend, factor))
    return PolyKernels::do_key_switch_rotated(stream, out, in, table, key, first_digit, element,
                                              add, addend, factor);
  const device::Stage stage(stream, "key_switch");
  const device::Buffer workspace = stream.allocate(in.limbs.size() * limb_bytes(in.shape));
  const Sources sources = inverse_shifted(stream, tables_, table.on_device<ConversionTables>(), in,
                                          in.limbs, dense(workspace, in.shape, in.limbs.size()));
  turn_key(stream, tables_, out, sources, in.shape, in, table, key, first_digit, element, add,
           addend, factor);
}

void CudaPolyKernels::do_key_switch_product(Stream& stream, View out, ConstView a, ConstView b,
                                            const Prepared<rns::ModUp>& table, const Key& key,
                                            u32 first_digit, const Scalars& lift,
                                            const device::ProductSum& sum) {
  if (!fused_key_switch_ || !is_real(&a, &lift) ||
      !std::all_of(sum.factors.begin(), sum.factors.end(),
                   [&](const Scalars& factor) { return is_real(&a, &factor); }))
    return PolyKernels::do_key_switch_product(stream, out, a, b, table, key, first_digit, lift,
                                              sum);
  device::compose::with_one_addend(*this, stream, sum, [&](const device::ProductSum& one) {
    const device::Stage stage(stream, "key_switch");
    const ConstView second = a.components(1, 1);
    const device::Buffer workspace = stream.allocate(a.limbs.size() * limb_bytes(second.shape));
    const Sources sources = inverse_shifted(
        stream, tables_, table.on_device<ConversionTables>(), second, a.limbs,
        dense(workspace, second.shape, a.limbs.size()), rows_of(ring(), {a, b, one}));
    switch_product(stream, ring(), tables_, out, sources, a, b, table, key, first_digit, lift, one);
  });
}

void CudaPolyKernels::do_key_switch_divided(Stream& stream, View out, View sum,
                                            const device::SwitchOf& of,
                                            const Prepared<rns::ModUp>& raised, const Key& key,
                                            u32 first_digit, const Prepared<rns::Divide>& table,
                                            const ConstView* addend) {
  if (!fused_key_switch_ || !all_real(of) || table->dropped.empty())
    return PolyKernels::do_key_switch_divided(stream, out, sum, of, raised, key, first_digit, table,
                                              addend);
  if (of.sum.addends.size() > 1)
    return device::compose::with_one_addend(
        *this, stream, of.sum, [&](const device::ProductSum& one) {
          device::SwitchOf with_one = of;
          with_one.sum = one;
          do_key_switch_divided(stream, out, sum, with_one, raised, key, first_digit, table,
                                addend);
        });
  const LimbSet& dropped = table->dropped;
  {
    const device::Stage stage(stream, "key_switch");
    const ConstView in = of.product() ? of.in.components(1, 1) : of.in;
    const device::Buffer workspace = stream.allocate(in.limbs.size() * limb_bytes(in.shape));
    const Sources sources =
        inverse_shifted(stream, tables_, raised.on_device<ConversionTables>(), in, in.limbs,
                        dense(workspace, in.shape, in.limbs.size()),
                        of.product() ? rows_of(ring(), {of.in, of.other, of.sum}) : PlainRows());
    if (of.product())
      switch_product(stream, ring(), tables_, sum, sources, of.in, of.other, raised, key,
                     first_digit, *of.factor, of.sum, dropped);
    else if (of.element != 1)
      turn_key(stream, tables_, sum, sources, in.shape, in, raised, key, first_digit, of.element,
               false, of.addend, of.factor, dropped);
    else
      switch_key(stream, tables_, sum, sources, in.shape, in, raised,
                 position_bytes(sum.limbs, key.pairs.limbs),
                 tail_of(key, first_digit, of.addend, of.factor), PlainSwitch(), dropped);
  }
  const device::Stage stage(stream, "divide");
  const ConversionTables& conversion = table.on_device<ConversionTables>();
  const device::Buffer workspace = stream.allocate(dropped.size() * limb_bytes(sum.shape));
  const Poly<u32> rows = dense(workspace, sum.shape, dropped.size());
  const Sources sources =
      inverse_columns(stream, conversion, transform_args(tables_, false, rows, sum, dropped),
                      dropped.size(), rows, takes_tiles(stream, conversion, sum.shape.log_n));
  divide_rows(stream, tables_, out, sources, sum, conversion, addend, true);
}

void CudaPolyKernels::do_key_switch_from(Stream& stream, View out, device::SourcesView sources,
                                         ConstView own, const Prepared<rns::ModUp>& table,
                                         const Key& key, u32 first_digit, const ConstView* addend,
                                         const Scalars* factor) {
  if (!fused_key_switch_ || !is_real(addend, factor))
    return PolyKernels::do_key_switch_from(stream, out, sources, own, table, key, first_digit,
                                           addend, factor);
  const device::Stage stage(stream, "key_switch");
  switch_key(stream, tables_, out, sources_of(sources), sources.view.shape, own, table,
             position_bytes(out.limbs, key.pairs.limbs), tail_of(key, first_digit, addend, factor));
}

void CudaPolyKernels::do_key_switch_rotated_from(Stream& stream, View out,
                                                 device::SourcesView sources, ConstView own,
                                                 const Prepared<rns::ModUp>& table, const Key& key,
                                                 u32 first_digit, u64 element, bool add,
                                                 const ConstView* addend, const Scalars* factor) {
  if (!fused_key_switch_ || !is_real(addend, factor))
    return PolyKernels::do_key_switch_rotated_from(stream, out, sources, own, table, key,
                                                   first_digit, element, add, addend, factor);
  const device::Stage stage(stream, "key_switch");
  turn_key(stream, tables_, out, sources_of(sources), sources.view.shape, own, table, key,
           first_digit, element, add, addend, factor);
}

void CudaPolyKernels::do_key_switch_product_from(Stream& stream, View out,
                                                 device::SourcesView sources, ConstView a,
                                                 ConstView b, const Prepared<rns::ModUp>& table,
                                                 const Key& key, u32 first_digit,
                                                 const Scalars& lift,
                                                 const device::ProductSum& sum) {
  if (!fused_key_switch_ || !is_real(&a, &lift) || !has_passes(sum, a.limbs.size()))
    return PolyKernels::do_key_switch_product_from(stream, out, sources, a, b, table, key,
                                                   first_digit, lift, sum);
  const device::Stage stage(stream, "key_switch");
  switch_product(stream, ring(), tables_, out, sources_of(sources), a, b, table, key, first_digit,
                 lift, sum);
}

void CudaPolyKernels::do_divide(Stream& stream, View out, ConstView in,
                                const Prepared<rns::Divide>& table, const ConstView* addend) {
  if (!fast() || table->dropped.empty())
    return PolyKernels::do_divide(stream, out, in, table, addend);
  const device::Stage stage(stream, "divide");
  const ConversionTables& conversion = table.on_device<ConversionTables>();
  const u32 dropped = table->dropped.size();
  const device::Buffer workspace = stream.allocate(dropped * limb_bytes(in.shape));
  const Sources sources = inverse_shifted(stream, tables_, conversion, in, table->dropped,
                                          dense(workspace, in.shape, dropped));
  divide_rows(stream, tables_, out, sources, in, conversion, addend);
}

void CudaPolyKernels::do_divide_from(Stream& stream, View out, device::SourcesView sources,
                                     ConstView x, const Prepared<rns::Divide>& table,
                                     const ConstView* addend) {
  if (!fast() || table->dropped.empty())
    return PolyKernels::do_divide_from(stream, out, sources, x, table, addend);
  const device::Stage stage(stream, "divide");
  divide_rows(stream, tables_, out, sources_of(sources), x, table.on_device<ConversionTables>(),
              addend);
}

}  // namespace crenel::backend::cuda
