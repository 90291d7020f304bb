// Base conversions, and what consists of them and of products with keys.
#include "backends/split/poly/kernels.h"
#include "device/poly/compose/product_sum.h"

namespace crenel::backend::split {
namespace {

using device::ProductSum;
using device::SourcesOf;
using device::SwitchOf;
using device::compose::Temporary;
using ConstView = ring::PolyView<const u32>;

// A view without limbs is one nevertheless, not the null that says that there is none.
ConstView present(ConstView v, const ConstView& any) {
  if (v.limbs.empty()) v.data = any.data;
  return v;
}

}  // namespace

template <class F>
void SplitPolyKernels::with_own(const Blocks& at, u32 part, const ConstView* addend,
                                const Scalars* factor, const F& f) {
  const ConstView added = addend != nullptr ? at.local(part, *addend) : ConstView();
  if (added.limbs.empty()) return f(nullptr, nullptr);
  if (factor == nullptr) return f(&added, nullptr);
  const Scalars mine = own(at.layout(*addend), part, *factor, addend->limbs);
  f(&added, &mine);
}

template <class F>
void SplitPolyKernels::with_own(const Blocks& at, const Layout& layout, u32 part,
                                const ProductSum& sum, const LimbSet& limbs, const F& f) {
  ProductSum mine{sum.doubled};
  Scalars constant, factor;
  ConstView addend;
  if (sum.constant != nullptr) {
    constant = own(layout, part, *sum.constant, limbs);
    mine.constant = &constant;
  }
  if (!sum.addends.empty()) {
    addend = at.local(part, sum.addends[0]);
    factor = own(layout, part, sum.factors[0], limbs);
    mine.addends = std::span(&addend, 1);
    mine.factors = std::span(&factor, 1);
  }
  f(mine);
}

SplitPolyKernels::Sources SplitPolyKernels::gathered(Stream& stream, const ConstView& in,
                                                     const LimbSet& order, const LimbSet& users) {
  SplitStream& split = split_stream(stream);
  const Layout layout = split.blocks().layout(in);
  Sources found;
  for (u32 p = 0; p < parts(); ++p) found.of_part.push_back(split.blocks().local(p, in));
  if (layout.members() == 1) return found;
  found.exchange.emplace(split, split.rooms(), layout, in.shape, order);
  found.exchange->spread(found.of_part, users, nullptr);
  for (u32 p = 0; p < parts(); ++p) found.of_part[p] = (*found.exchange)[p];
  return found;
}

// All but the last pass of every part is queued before any part waits for the others.
template <class Table>
SplitPolyKernels::Sources SplitPolyKernels::gathered_sources(Stream& stream, const SourcesOf& of,
                                                             const SplitShare<Table>& tables,
                                                             const LimbSet& users) {
  SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const Layout layout = at.layout(of.in);
  PolyShape shape = of.shape();
  Sources found;
  found.exchange.emplace(split, split.rooms(), layout, shape, tables.order);
  shape.batch /= layout.groups;
  const bool together = found.exchange->by_transforms() &&
                        device::can_spread_sources(*kernels_[0], split.part(0), of);
  found.tiled = together;  // where all that read them take tiles
  each(stream, layout, users, [&](u32 p, PolyKernels&, Stream& part) {
    found.tiled =
        found.tiled && device::takes_tiles(part, tables.parts[p].device.get(), shape.log_n);
  });
  std::vector<Temporary> transformed;  // until all is queued
  std::vector<View> workspace(parts(), View(nullptr, shape, {}, Domain::coeff));
  each(stream, layout, tables.order, [&](u32 p, PolyKernels& kernels, Stream& part) {
    transformed.emplace_back(part, shape, tables.scales[p]->source, Domain::coeff);
    workspace[p] = transformed.back().view();
    const auto make = [&](const SourcesOf& mine) {
      if (together) return device::begin_sources(kernels, part, workspace[p], mine, found.tiled);
      kernels.sources(part, workspace[p], mine, tables.scales[p]);
    };
    const ConstView in = at.local(p, of.in);
    if (!of.product()) return make(in);
    with_own(at, layout, p, of.sum, of.in.limbs,
             [&](const ProductSum& sum) { make({in, at.local(p, of.other), sum}); });
  });
  found.of_part.assign(workspace.begin(), workspace.end());
  Exchange::Store store;
  if (together)
    store = [&](u32 p, auto position, auto targets, const device::Meeting& meeting) {
      device::spread_sources(*kernels_[p], split.part(p), workspace[p], tables.scales[p], position,
                             targets, meeting, found.tiled);
    };
  found.exchange->spread(found.of_part, users, store);
  for (u32 p = 0; p < parts(); ++p) found.of_part[p] = (*found.exchange)[p];
  return found;
}

void SplitPolyKernels::do_base_convert(Stream& stream, View out, ConstView in,
                                       const Prepared<rns::BaseConversion>& table) {
  const Blocks& at = split_stream(stream).blocks();
  const Layout layout = at.layout(out);
  const auto& split = table.on_device<SplitTable<rns::BaseConversion>>().on(layout);
  const auto sources = gathered(stream, in, split.order, out.limbs);
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    kernels.base_convert(part, at.local(p, out), sources[p].limbs(), split.parts[p]);
  });
}

// All parts have the integers.
void SplitPolyKernels::do_lift_signed(Stream& stream, i64* values, ConstView in) {
  SplitStream& split = split_stream(stream);
  const LimbSet everywhere = LimbSet::range(0, parts());
  undealt(split.blocks(), in);
  const auto sources = gathered(stream, in, whole().by_part(in.limbs), everywhere);
  each(stream, whole(), everywhere, [&](u32 p, PolyKernels& kernels, Stream& part) {
    kernels.lift_signed(part, static_cast<i64*>(split.blocks().flat(p, values)),
                        sources[p].limbs());
  });
}

void SplitPolyKernels::do_mod_up(Stream& stream, View out, ConstView in,
                                 const Prepared<rns::ModUp>& table) {
  const Blocks& at = split_stream(stream).blocks();
  const Layout layout = at.layout(out);
  const auto& split = table.on_device<SplitTable<rns::ModUp>>().on(layout);
  if (layout.members() == 1)
    return each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
      kernels.mod_up(part, at.local(p, out), at.local(p, in), split.parts[p]);
    });
  const auto sources = gathered_sources(stream, in, split, out.limbs);
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const View to = at.local(p, out);
    kernels.mod_up_from(part, to, sources[p], present(at.local(p, in), to), split.parts[p]);
  });
}

void SplitPolyKernels::do_key_multiply(Stream& stream, View out, ConstView digits, const Key& key,
                                       u32 first_digit) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const Layout layout = at.layout(out);
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    kernels.key_multiply(part, at.local(p, out), at.local(p, digits), own(split, layout, p, key),
                         first_digit);
  });
}

void SplitPolyKernels::do_key_switch_extended(Stream& stream, View out, ConstView in,
                                              const Prepared<rns::ModUp>& table, const Key& key,
                                              u32 first_digit, const ConstView* addend,
                                              const Scalars* factor) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const Layout layout = at.layout(out);
  const auto& tables = table.on_device<SplitTable<rns::ModUp>>().on(layout);
  if (layout.members() == 1)
    return each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
      with_own(at, p, addend, factor, [&](const ConstView* added, const Scalars* mine) {
        kernels.key_switch_extended(part, at.local(p, out), at.local(p, in), tables.parts[p],
                                    own(split, layout, p, key), first_digit, added, mine);
      });
    });
  const auto sources = gathered_sources(stream, in, tables, out.limbs);
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const View to = at.local(p, out);
    with_own(at, p, addend, factor, [&](const ConstView* added, const Scalars* mine) {
      kernels.key_switch_from(part, to, sources[p], present(at.local(p, in), to), tables.parts[p],
                              own(split, layout, p, key), first_digit, added, mine);
    });
  });
}

void SplitPolyKernels::do_key_switch_rotated(Stream& stream, View out, ConstView in,
                                             const Prepared<rns::ModUp>& table, const Key& key,
                                             u32 first_digit, u64 element, bool add,
                                             const ConstView* addend, const Scalars* factor) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const Layout layout = at.layout(out);
  const auto& tables = table.on_device<SplitTable<rns::ModUp>>().on(layout);
  if (layout.members() == 1)
    return each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
      with_own(at, p, addend, factor, [&](const ConstView* added, const Scalars* mine) {
        kernels.key_switch_rotated(part, at.local(p, out), at.local(p, in), tables.parts[p],
                                   own(split, layout, p, key), first_digit, element, add, added,
                                   mine);
      });
    });
  const auto sources = gathered_sources(stream, in, tables, out.limbs);
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const View to = at.local(p, out);
    with_own(at, p, addend, factor, [&](const ConstView* added, const Scalars* mine) {
      kernels.key_switch_rotated_from(part, to, sources[p], present(at.local(p, in), to),
                                      tables.parts[p], own(split, layout, p, key), first_digit,
                                      element, add, added, mine);
    });
  });
}

void SplitPolyKernels::do_key_switch_product(Stream& stream, View out, ConstView a, ConstView b,
                                             const Prepared<rns::ModUp>& table, const Key& key,
                                             u32 first_digit, const Scalars& lift,
                                             const ProductSum& whole) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const Layout layout = at.layout(out);
  const auto& tables = table.on_device<SplitTable<rns::ModUp>>().on(layout);
  device::compose::with_one_addend(*this, stream, whole, [&](const ProductSum& sum) {
    if (layout.members() == 1)
      return each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
        with_own(at, layout, p, sum, a.limbs, [&](const ProductSum& mine) {
          kernels.key_switch_product(part, at.local(p, out), at.local(p, a), at.local(p, b),
                                     tables.parts[p], own(split, layout, p, key), first_digit,
                                     own(layout, p, lift, a.limbs), mine);
        });
      });
    const auto sources = gathered_sources(stream, SourcesOf(a, b, sum), tables, out.limbs);
    each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
      const View to = at.local(p, out);
      const ConstView x = present(at.local(p, a), to), y = present(at.local(p, b), to);
      const Key mine = own(split, layout, p, key);
      if (x.limbs.empty())  // nothing of the product is here
        return kernels.key_switch_from(part, to, sources[p], x.components(1, 1), tables.parts[p],
                                       mine, first_digit);
      with_own(at, layout, p, sum, a.limbs, [&](const ProductSum& added) {
        kernels.key_switch_product_from(part, to, sources[p], x, y, tables.parts[p], mine,
                                        first_digit, own(layout, p, lift, a.limbs), added);
      });
    });
  });
}

void SplitPolyKernels::do_divide(Stream& stream, View out, ConstView in,
                                 const Prepared<rns::Divide>& table, const ConstView* addend) {
  const Blocks& at = split_stream(stream).blocks();
  const Layout layout = at.layout(out);
  const auto& split = table.on_device<SplitTable<rns::Divide>>().on(layout);
  if (layout.members() == 1)
    return each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
      const ConstView added = addend != nullptr ? at.local(p, *addend) : ConstView();
      kernels.divide(part, at.local(p, out), at.local(p, in), split.parts[p],
                     addend != nullptr ? &added : nullptr);
    });
  const auto sources = gathered_sources(stream, in, split, out.limbs);
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const View to = at.local(p, out);
    const ConstView added = addend != nullptr ? at.local(p, *addend) : ConstView();
    kernels.divide_from(part, to, sources[p], present(at.local(p, in), to), split.parts[p],
                        addend != nullptr ? &added : nullptr);
  });
}

// On parts that are groups by themselves; others exchange what the division drops as it stands.
void SplitPolyKernels::do_key_switch_divided(Stream& stream, View out, View sum, const SwitchOf& of,
                                             const Prepared<rns::ModUp>& raised, const Key& key,
                                             u32 first_digit, const Prepared<rns::Divide>& table,
                                             const ConstView* addend) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const Layout layout = at.layout(out);
  if (layout.members() != 1)
    return PolyKernels::do_key_switch_divided(stream, out, sum, of, raised, key, first_digit, table,
                                              addend);
  const auto& up = raised.on_device<SplitTable<rns::ModUp>>().on(layout);
  const auto& down = table.on_device<SplitTable<rns::Divide>>().on(layout);
  device::compose::with_one_addend(*this, stream, of.sum, [&](const ProductSum& one) {
    each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
      SwitchOf mine{at.local(p, of.in)};
      mine.element = of.element;
      const ConstView added = addend != nullptr ? at.local(p, *addend) : ConstView();
      const auto run = [&] {
        kernels.key_switch_divided(part, at.local(p, out), at.local(p, sum), mine, up.parts[p],
                                   own(split, layout, p, key), first_digit, down.parts[p],
                                   addend != nullptr ? &added : nullptr);
      };
      if (!of.product())
        return with_own(at, p, of.addend, of.factor,
                        [&](const ConstView* lifted, const Scalars* factor) {
                          mine.addend = lifted, mine.factor = factor;
                          run();
                        });
      const Scalars lift = own(layout, p, *of.factor, of.in.limbs);
      mine.other = at.local(p, of.other), mine.factor = &lift;
      with_own(at, layout, p, one, of.in.limbs, [&](const ProductSum& made) {
        mine.sum = made;
        run();
      });
    });
  });
}

void SplitPolyKernels::do_hoisted_rotate_sum(Stream& stream, View out, ConstView digits,
                                             ConstView b, ConstView a, std::span<const Key> keys,
                                             std::span<const u64> elements, const Scalars& special,
                                             u32 first_digit) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const Layout layout = whole();
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const ConstView raised = at.local(p, digits);
    std::vector<Key> mine;
    for (std::size_t r = 0; r < keys.size(); ++r)
      mine.push_back(elements[r] == 1 ? Key() : own(split, layout, p, keys[r]));
    kernels.hoisted_rotate_sum(part, at.local(p, out), raised, present(at.local(p, b), raised),
                               a.data != nullptr ? present(at.local(p, a), raised) : ConstView(),
                               mine, elements, own(layout, p, special, b.limbs), first_digit);
  });
}

void SplitPolyKernels::do_hoisted_plain_sums(Stream& stream, std::span<const View> out,
                                             ConstView digits, ConstView b, ConstView a,
                                             std::span<const Key> keys,
                                             std::span<const u64> elements, const Grid& plain,
                                             const Scalars& special, u32 first_digit) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  const Layout layout = whole();
  each(stream, layout, plain.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const ConstView raised = at.local(p, digits);
    std::vector<View> sums;
    for (const View& sum : out) sums.push_back(at.local(p, sum));
    std::vector<Key> mine;
    for (std::size_t r = 0; r < keys.size(); ++r)
      mine.push_back(elements[r] == 1 && a.data != nullptr ? Key()
                                                           : own(split, layout, p, keys[r]));
    kernels.hoisted_plain_sums(part, sums, raised, present(at.local(p, b), raised),
                               a.data != nullptr ? present(at.local(p, a), raised) : ConstView(),
                               mine, elements, own(split, p, plain),
                               own(layout, p, special, b.limbs), first_digit);
  });
}

}  // namespace crenel::backend::split
