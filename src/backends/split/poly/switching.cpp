// Base conversions, and what consists of them and of products with keys.
#include "backends/split/poly/kernels.h"
#include "backends/split/poly/tables.h"
#include "device/poly/compose/product_sum.h"

namespace crenel::backend::split {
namespace {

using device::ProductSum;
using device::SourcesOf;
using device::compose::Temporary;
using Conversions = std::vector<Prepared<rns::BaseConversion>>;
using ConstView = ring::PolyView<const u32>;

// A view without limbs is one nevertheless, not the null that says that there is none.
ConstView present(ConstView v, const ConstView& any) {
  if (v.limbs.empty()) v.data = any.data;
  return v;
}

}  // namespace

std::shared_ptr<const device::DeviceTable> SplitPolyKernels::do_prepare(
    const rns::BaseConversion& table) {
  auto split = std::make_shared<SplitConversion>();
  split->order = by_part(table.source);
  for (u32 p = 0; p < parts(); ++p) {
    const LimbSet mine = own(p, table.destination);
    split->parts.push_back(
        mine.empty() ? Prepared<rns::BaseConversion>()
                     : kernels_[p]->prepare(rns::rearranged(moduli_, table, split->order, mine)));
  }
  return split;
}

std::shared_ptr<const device::DeviceTable> SplitPolyKernels::do_prepare(const rns::ModUp& table) {
  auto split = std::make_shared<SplitTable<rns::ModUp>>();
  for (const auto& digit : table.digits)
    split->order = split->order.concat(by_part(digit.conversion.source));
  for (u32 p = 0; p < parts(); ++p) {
    rns::BaseConversion scales;
    rns::ModUp mine;
    mine.input = split->order;
    mine.output = own(p, table.output);
    for (const auto& digit : table.digits) {
      const auto& conversion = digit.conversion;
      const rns::BaseConversion of_digit =
          rns::rearranged(moduli_, conversion, own(p, conversion.source), {});
      scales.source = scales.source.concat(of_digit.source);
      scales.source_scale.insert(scales.source_scale.end(), of_digit.source_scale.begin(),
                                 of_digit.source_scale.end());
      scales.half.insert(scales.half.end(), of_digit.half.begin(), of_digit.half.end());
      mine.digits.push_back({digit.first, digit.count,
                             rns::rearranged(moduli_, conversion, by_part(conversion.source),
                                             own(p, conversion.destination))});
    }
    scales.lazy_terms = scales.source_size();
    split->scales.push_back(kernels_[p]->prepare(std::move(scales)));
    split->parts.push_back(mine.output.empty() ? Prepared<rns::ModUp>()
                                               : kernels_[p]->prepare(std::move(mine)));
  }
  return split;
}

std::shared_ptr<const device::DeviceTable> SplitPolyKernels::do_prepare(const rns::Divide& table) {
  auto split = std::make_shared<SplitTable<rns::Divide>>();
  split->order = by_part(table.dropped);
  for (u32 p = 0; p < parts(); ++p) {
    split->scales.push_back(kernels_[p]->prepare(
        rns::rearranged(moduli_, table.conversion, own(p, table.dropped), {})));
    rns::Divide mine;
    mine.output = own(p, table.output);
    mine.dropped = split->order;
    mine.added = own(p, table.added);
    mine.input = mine.output.minus(mine.added).concat(mine.dropped);
    mine.conversion = rns::rearranged(moduli_, table.conversion, split->order, mine.output);
    for (u32 l = 0; l < table.output.size(); ++l) {
      if (part_of(table.output[l], parts()) != p) continue;
      mine.input_scale.push_back(table.input_scale[l]);
      mine.result_scale.push_back(table.result_scale[l]);
    }
    split->parts.push_back(mine.output.empty() ? Prepared<rns::Divide>()
                                               : kernels_[p]->prepare(std::move(mine)));
  }
  return split;
}

template <class F>
void SplitPolyKernels::with_own(const Blocks& at, u32 part, const ConstView* addend,
                                const Scalars* factor, const F& f) const {
  if (addend == nullptr || own(part, addend->limbs).empty()) return f(nullptr, nullptr);
  const ConstView added = at.local(part, *addend);
  if (factor == nullptr) return f(&added, nullptr);
  const Scalars mine = own(part, *factor, addend->limbs);
  f(&added, &mine);
}

template <class F>
void SplitPolyKernels::with_own(const Blocks& at, u32 part, const ProductSum& sum,
                                const LimbSet& limbs, const F& f) const {
  ProductSum mine{sum.doubled};
  Scalars constant, factor;
  ConstView addend;
  if (sum.constant != nullptr) {
    constant = own(part, *sum.constant, limbs);
    mine.constant = &constant;
  }
  if (!sum.addends.empty()) {
    addend = at.local(part, sum.addends[0]);
    factor = own(part, sum.factors[0], limbs);
    mine.addends = std::span(&addend, 1);
    mine.factors = std::span(&factor, 1);
  }
  f(mine);
}

Exchange SplitPolyKernels::gathered(Stream& stream, const ConstView& in, const LimbSet& order,
                                    const LimbSet& users) {
  SplitStream& split = split_stream(stream);
  Exchange exchange(split, split.rooms(), in.shape, order);
  std::vector<ConstView> mine;
  for (u32 p = 0; p < parts(); ++p) mine.push_back(split.blocks().local(p, in));
  exchange.spread(mine, users, nullptr);
  return exchange;
}

// All but the last pass of every part is queued before any part waits for the others.
Exchange SplitPolyKernels::gathered_sources(Stream& stream, const SourcesOf& of,
                                            const LimbSet& order, const LimbSet& users,
                                            const Conversions& scales) {
  SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  Exchange exchange(split, split.rooms(), of.shape(), order);
  const bool together =
      exchange.by_transforms() && device::can_spread_sources(*kernels_[0], split.part(0), of);
  std::vector<Temporary> transformed;  // until all is queued
  std::vector<View> workspace(parts(), View(nullptr, of.shape(), {}, Domain::coeff));
  each(stream, order, [&](u32 p, PolyKernels& kernels, Stream& part) {
    transformed.emplace_back(part, of.shape(), scales[p]->source, Domain::coeff);
    workspace[p] = transformed.back().view();
    const auto make = [&](const SourcesOf& mine) {
      if (together) return device::begin_sources(kernels, part, workspace[p], mine);
      kernels.sources(part, workspace[p], mine, scales[p]);
    };
    const ConstView in = at.local(p, of.in);
    if (!of.product()) return make(in);
    with_own(at, p, of.sum, of.in.limbs,
             [&](const ProductSum& sum) { make({in, at.local(p, of.other), sum}); });
  });
  const std::vector<ConstView> sources(workspace.begin(), workspace.end());
  Exchange::Store store;
  if (together)
    store = [&](u32 p, auto position, auto targets, const device::Meeting& meeting) {
      device::spread_sources(*kernels_[p], split.part(p), workspace[p], scales[p], position,
                             targets, meeting);
    };
  exchange.spread(sources, users, store);
  return exchange;
}

void SplitPolyKernels::do_base_convert(Stream& stream, View out, ConstView in,
                                       const Prepared<rns::BaseConversion>& table) {
  const auto& split = table.on_device<SplitConversion>();
  const Blocks& at = split_stream(stream).blocks();
  const auto sources = gathered(stream, in, split.order, out.limbs);
  each(stream, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    kernels.base_convert(part, at.local(p, out), sources[p], split.parts[p]);
  });
}

// All parts have the integers.
void SplitPolyKernels::do_lift_signed(Stream& stream, i64* values, ConstView in) {
  SplitStream& split = split_stream(stream);
  const LimbSet everywhere = LimbSet::range(0, parts());
  const auto sources = gathered(stream, in, by_part(in.limbs), everywhere);
  each(stream, everywhere, [&](u32 p, PolyKernels& kernels, Stream& part) {
    kernels.lift_signed(part, static_cast<i64*>(split.blocks().flat(p, values)), sources[p]);
  });
}

void SplitPolyKernels::do_mod_up(Stream& stream, View out, ConstView in,
                                 const Prepared<rns::ModUp>& table) {
  const auto& split = table.on_device<SplitTable<rns::ModUp>>();
  const Blocks& at = split_stream(stream).blocks();
  const auto sources = gathered_sources(stream, in, split.order, out.limbs, split.scales);
  each(stream, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const View to = at.local(p, out);
    kernels.mod_up_from(part, to, sources[p], present(at.local(p, in), to), split.parts[p]);
  });
}

void SplitPolyKernels::do_key_multiply(Stream& stream, View out, ConstView digits, const Key& key,
                                       u32 first_digit) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  each(stream, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    kernels.key_multiply(part, at.local(p, out), at.local(p, digits), own(split, p, key),
                         first_digit);
  });
}

void SplitPolyKernels::do_key_switch_extended(Stream& stream, View out, ConstView in,
                                              const Prepared<rns::ModUp>& table, const Key& key,
                                              u32 first_digit, const ConstView* addend,
                                              const Scalars* factor) {
  const auto& tables = table.on_device<SplitTable<rns::ModUp>>();
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const auto sources = gathered_sources(stream, in, tables.order, out.limbs, tables.scales);
  each(stream, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const View to = at.local(p, out);
    with_own(at, p, addend, factor, [&](const ConstView* added, const Scalars* mine) {
      kernels.key_switch_from(part, to, sources[p], present(at.local(p, in), to), tables.parts[p],
                              own(split, p, key), first_digit, added, mine);
    });
  });
}

void SplitPolyKernels::do_key_switch_rotated(Stream& stream, View out, ConstView in,
                                             const Prepared<rns::ModUp>& table, const Key& key,
                                             u32 first_digit, u64 element, bool add,
                                             const ConstView* addend, const Scalars* factor) {
  const auto& tables = table.on_device<SplitTable<rns::ModUp>>();
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const auto sources = gathered_sources(stream, in, tables.order, out.limbs, tables.scales);
  each(stream, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const View to = at.local(p, out);
    with_own(at, p, addend, factor, [&](const ConstView* added, const Scalars* mine) {
      kernels.key_switch_rotated_from(part, to, sources[p], present(at.local(p, in), to),
                                      tables.parts[p], own(split, p, key), first_digit, element,
                                      add, added, mine);
    });
  });
}

void SplitPolyKernels::do_key_switch_product(Stream& stream, View out, ConstView a, ConstView b,
                                             const Prepared<rns::ModUp>& table, const Key& key,
                                             u32 first_digit, const Scalars& lift,
                                             const ProductSum& whole) {
  const auto& tables = table.on_device<SplitTable<rns::ModUp>>();
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  device::compose::with_one_addend(*this, stream, whole, [&](const ProductSum& sum) {
    const auto sources =
        gathered_sources(stream, SourcesOf(a, b, sum), tables.order, out.limbs, tables.scales);
    each(stream, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
      const View to = at.local(p, out);
      const ConstView x = present(at.local(p, a), to), y = present(at.local(p, b), to);
      const Key mine = own(split, p, key);
      if (x.limbs.empty())  // nothing of the product is here
        return kernels.key_switch_from(part, to, sources[p], x.components(1, 1), tables.parts[p],
                                       mine, first_digit);
      with_own(at, p, sum, a.limbs, [&](const ProductSum& added) {
        kernels.key_switch_product_from(part, to, sources[p], x, y, tables.parts[p], mine,
                                        first_digit, own(p, lift, a.limbs), added);
      });
    });
  });
}

void SplitPolyKernels::do_divide(Stream& stream, View out, ConstView in,
                                 const Prepared<rns::Divide>& table, const ConstView* addend) {
  const auto& split = table.on_device<SplitTable<rns::Divide>>();
  const Blocks& at = split_stream(stream).blocks();
  const auto sources = gathered_sources(stream, in, split.order, out.limbs, split.scales);
  each(stream, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const View to = at.local(p, out);
    const ConstView added = addend != nullptr ? at.local(p, *addend) : ConstView();
    kernels.divide_from(part, to, sources[p], present(at.local(p, in), to), split.parts[p],
                        addend != nullptr ? &added : nullptr);
  });
}

void SplitPolyKernels::do_hoisted_rotate_sum(Stream& stream, View out, ConstView digits,
                                             ConstView b, ConstView a, std::span<const Key> keys,
                                             std::span<const u64> elements, const Scalars& special,
                                             u32 first_digit) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  each(stream, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const ConstView raised = at.local(p, digits);
    std::vector<Key> mine;
    for (std::size_t r = 0; r < keys.size(); ++r)
      mine.push_back(elements[r] == 1 ? Key() : own(split, p, keys[r]));
    kernels.hoisted_rotate_sum(part, at.local(p, out), raised, present(at.local(p, b), raised),
                               a.data != nullptr ? present(at.local(p, a), raised) : ConstView(),
                               mine, elements, own(p, special, b.limbs), first_digit);
  });
}

void SplitPolyKernels::do_hoisted_plain_sums(Stream& stream, std::span<const View> out,
                                             ConstView digits, ConstView b, ConstView a,
                                             std::span<const Key> keys,
                                             std::span<const u64> elements, const Grid& plain,
                                             const Scalars& special, u32 first_digit) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  each(stream, plain.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const ConstView raised = at.local(p, digits);
    std::vector<View> sums;
    for (const View& sum : out) sums.push_back(at.local(p, sum));
    std::vector<Key> mine;
    for (std::size_t r = 0; r < keys.size(); ++r)
      mine.push_back(elements[r] == 1 && a.data != nullptr ? Key() : own(split, p, keys[r]));
    kernels.hoisted_plain_sums(part, sums, raised, present(at.local(p, b), raised),
                               a.data != nullptr ? present(at.local(p, a), raised) : ConstView(),
                               mine, elements, own(split, p, plain), own(p, special, b.limbs),
                               first_digit);
  });
}

}  // namespace crenel::backend::split
