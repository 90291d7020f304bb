// Tables of base conversions as each part has them, on every layout that there is.
#include "backends/split/poly/tables.h"

#include "backends/split/poly/kernels.h"

namespace crenel::backend::split {

// Parts that are groups by themselves have whole operations to do.
template <class Table>
void SplitPolyKernels::deal_whole(const Table& table, SplitShare<Table>& share) {
  for (const auto& kernels : kernels_) share.parts.push_back(kernels->prepare(table));
}

template <>
void SplitPolyKernels::deal(const rns::BaseConversion& table, const Layout& layout,
                            SplitShare<rns::BaseConversion>& share) {
  share.order = layout.by_part(table.source);
  for (u32 p = 0; p < parts(); ++p) {
    const LimbSet mine = layout.limbs(p, table.destination);
    share.parts.push_back(
        mine.empty() ? Prepared<rns::BaseConversion>()
                     : kernels_[p]->prepare(rns::rearranged(moduli_, table, share.order, mine)));
  }
}

template <>
void SplitPolyKernels::deal(const rns::ModUp& table, const Layout& layout,
                            SplitShare<rns::ModUp>& share) {
  if (layout.members() == 1) return deal_whole(table, share);
  for (const auto& digit : table.digits)
    share.order = share.order.concat(layout.by_part(digit.conversion.source));
  for (u32 p = 0; p < parts(); ++p) {
    rns::BaseConversion scales;
    rns::ModUp mine;
    mine.input = share.order;
    mine.output = layout.limbs(p, table.output);
    for (const auto& digit : table.digits) {
      const auto& conversion = digit.conversion;
      const rns::BaseConversion of_digit =
          rns::rearranged(moduli_, conversion, layout.limbs(p, conversion.source), {});
      scales.source = scales.source.concat(of_digit.source);
      scales.source_scale.insert(scales.source_scale.end(), of_digit.source_scale.begin(),
                                 of_digit.source_scale.end());
      scales.half.insert(scales.half.end(), of_digit.half.begin(), of_digit.half.end());
      mine.digits.push_back({digit.first, digit.count,
                             rns::rearranged(moduli_, conversion, layout.by_part(conversion.source),
                                             layout.limbs(p, conversion.destination))});
    }
    scales.lazy_terms = scales.source_size();
    share.scales.push_back(kernels_[p]->prepare(std::move(scales)));
    share.parts.push_back(mine.output.empty() ? Prepared<rns::ModUp>()
                                              : kernels_[p]->prepare(std::move(mine)));
  }
}

template <>
void SplitPolyKernels::deal(const rns::Divide& table, const Layout& layout,
                            SplitShare<rns::Divide>& share) {
  if (layout.members() == 1) return deal_whole(table, share);
  share.order = layout.by_part(table.dropped);
  for (u32 p = 0; p < parts(); ++p) {
    share.scales.push_back(kernels_[p]->prepare(
        rns::rearranged(moduli_, table.conversion, layout.limbs(p, table.dropped), {})));
    rns::Divide mine;
    mine.output = layout.limbs(p, table.output);
    mine.dropped = share.order;
    mine.added = layout.limbs(p, table.added);
    mine.input = mine.output.minus(mine.added).concat(mine.dropped);
    mine.conversion = rns::rearranged(moduli_, table.conversion, share.order, mine.output);
    for (u32 l = 0; l < table.output.size(); ++l) {
      if (!layout.keeps(p, table.output[l])) continue;
      mine.input_scale.push_back(table.input_scale[l]);
      mine.result_scale.push_back(table.result_scale[l]);
    }
    share.parts.push_back(mine.output.empty() ? Prepared<rns::Divide>()
                                              : kernels_[p]->prepare(std::move(mine)));
  }
}

template <class Table>
std::shared_ptr<const device::DeviceTable> SplitPolyKernels::dealt(const Table& table) {
  auto split = std::make_shared<SplitTable<Table>>();
  deal(table, whole(), split->whole);
  if (const u32 groups = groups_of(parts()); groups > 1)
    deal(table, {parts(), groups}, split->groups);
  return split;
}

std::shared_ptr<const device::DeviceTable> SplitPolyKernels::do_prepare(
    const rns::BaseConversion& table) {
  return dealt(table);
}

std::shared_ptr<const device::DeviceTable> SplitPolyKernels::do_prepare(const rns::ModUp& table) {
  return dealt(table);
}

std::shared_ptr<const device::DeviceTable> SplitPolyKernels::do_prepare(const rns::Divide& table) {
  return dealt(table);
}

}  // namespace crenel::backend::split
