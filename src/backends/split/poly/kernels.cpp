// Operations that take each limb alone.
#include "backends/split/poly/kernels.h"

namespace crenel::backend::split {

SplitPolyKernels::SplitPolyKernels(const std::shared_ptr<const ring::Ring>& ring,
                                   const std::vector<std::shared_ptr<device::Device>>& parts)
    : PolyKernels(ring) {
  for (const auto& part : parts)
    kernels_.push_back(device::backend_of(*part).make_poly_kernels(ring));
  for (u32 id = 0; id < ring->prime_count(); ++id) moduli_.push_back(ring->modulus(id));
}

device::LimbScalars SplitPolyKernels::own(const Layout& layout, u32 part, const Scalars& scalars,
                                          const LimbSet& limbs) {
  Scalars mine;
  for (u32 l = 0, count = 0; l < limbs.size(); ++l)
    if (layout.keeps(part, limbs[l])) {
      mine.low[count] = scalars.low[l];
      mine.high[count++] = scalars.high[l];
    }
  return mine;
}

// Behind a slot the part has an address of its own (SplitStream::upload_addresses); the shape is
// that of its share.
device::KeyView SplitPolyKernels::own(const SplitStream& stream, const Layout& layout, u32 part,
                                      const Key& key) const {
  if (key.slot == nullptr)
    return {stream.blocks().local_key(part, key.pairs, layout), key.first_digit};
  const auto* slot = static_cast<const u32* const*>(
      stream.blocks().flat(part, static_cast<const void*>(key.slot)));
  const LimbSet mine = whole().limbs(part, key.pairs.limbs);
  const LimbSet all = Layout{parts(), key.shared_by}.limbs(part, key.pairs.limbs);
  if (layout.groups != 1 && layout.groups != key.shared_by)
    throw StateError("a switching key whose limbs the groups of parts do not have",
                     {{"found", key.shared_by}, {"expected", layout.groups}});
  // As Block::shared() has them: its own limbs, then those of its group.
  ConstView shape(reinterpret_cast<const u32*>(slot), key.pairs.shape,
                  key.shared_by == 1 ? mine : mine.concat(all.minus(mine)), Domain::eval);
  if (layout.groups == 1) shape.limbs = mine;
  return {shape, slot, key.first_digit};
}

// A grid of several entries has all limbs of its memory: entries lie one after the other.
device::PlainGrid SplitPolyKernels::own(const SplitStream& stream, u32 part,
                                        const Grid& plain) const {
  Grid mine = plain;
  mine.limbs = whole().limbs(part, plain.limbs);
  if (plain.giants == 0 || plain.babies == 0) return mine;
  const PolyShape entries{plain.log_words, plain.babies, plain.giants};
  const ConstView all(plain.data, entries, plain.limbs, Domain::eval);
  mine.data = stream.blocks().local(part, all).data;
  return mine;
}

// Of every argument what the part has of it; of those without limbs, all.
template <class Kernel, class... Args>
void SplitPolyKernels::limbwise(Stream& stream, Kernel kernel, const View& out,
                                const Args&... args) {
  const Blocks& at = split_stream(stream).blocks();
  const Layout layout = at.layout(out);
  const auto mine = [&](u32 p, const auto& arg) -> decltype(auto) {
    using Arg = std::decay_t<decltype(arg)>;
    if constexpr (std::is_same_v<Arg, ConstView>)
      return at.local(p, arg);
    else if constexpr (std::is_same_v<Arg, Scalars>)
      return own(layout, p, arg, out.limbs);
    else
      return (arg);  // by reference: seeds of secrets leave no copy
  };
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    (kernels.*kernel)(part, at.local(p, out), mine(p, args)...);
  });
}

void SplitPolyKernels::do_add(Stream& stream, View out, ConstView a, ConstView b) {
  limbwise(stream, &PolyKernels::add, out, a, b);
}

void SplitPolyKernels::do_sub(Stream& stream, View out, ConstView a, ConstView b) {
  limbwise(stream, &PolyKernels::sub, out, a, b);
}

void SplitPolyKernels::do_mul(Stream& stream, View out, ConstView a, ConstView b) {
  limbwise(stream, &PolyKernels::mul, out, a, b);
}

void SplitPolyKernels::do_mul_add(Stream& stream, View out, ConstView a, ConstView b) {
  limbwise(stream, &PolyKernels::mul_add, out, a, b);
}

void SplitPolyKernels::do_neg(Stream& stream, View out, ConstView a) {
  limbwise(stream, &PolyKernels::neg, out, a);
}

void SplitPolyKernels::do_ntt(Stream& stream, View out, ConstView in) {
  limbwise(stream, &PolyKernels::ntt, out, in);
}

void SplitPolyKernels::do_intt(Stream& stream, View out, ConstView in) {
  limbwise(stream, &PolyKernels::intt, out, in);
}

void SplitPolyKernels::do_mul_scalar(Stream& stream, View out, ConstView a,
                                     const Scalars& scalars) {
  limbwise(stream, &PolyKernels::mul_scalar, out, a, scalars);
}

void SplitPolyKernels::do_mul_add_scalar(Stream& stream, View out, ConstView a,
                                         const Scalars& scalars) {
  limbwise(stream, &PolyKernels::mul_add_scalar, out, a, scalars);
}

void SplitPolyKernels::do_add_scalar(Stream& stream, View out, ConstView a,
                                     const Scalars& scalars) {
  limbwise(stream, &PolyKernels::add_scalar, out, a, scalars);
}

void SplitPolyKernels::do_automorphism(Stream& stream, View out, ConstView in, u64 element) {
  limbwise(stream, &PolyKernels::automorphism, out, in, element);
}

// Integers and streams of random bits are counted through all rows, of which a group has its own.
Layout SplitPolyKernels::undealt(const Blocks& at, const ConstView& v) {
  const Layout layout = at.layout(v);
  if (layout.groups != 1)
    throw StateError(cat("memory whose entries are dealt out to ", layout.groups,
                         " groups of devices, expected entries that all devices have"),
                     {{"found", layout.groups}, {"expected", 1}});
  return layout;
}

void SplitPolyKernels::do_reduce_signed(Stream& stream, View out, const i64* values) {
  const Blocks& at = split_stream(stream).blocks();
  each(stream, undealt(at, out), out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    kernels.reduce_signed(part, at.local(p, out), static_cast<const i64*>(at.flat(p, values)));
  });
}

void SplitPolyKernels::do_sample_uniform(Stream& stream, View out, const random::Seed& seed,
                                         random::Nonce nonce) {
  undealt(split_stream(stream).blocks(), out);
  limbwise(stream, &PolyKernels::sample_uniform, out, seed, nonce);
}

void SplitPolyKernels::do_sample_ternary(Stream& stream, View out, const random::Seed& seed,
                                         random::Nonce nonce) {
  undealt(split_stream(stream).blocks(), out);
  limbwise(stream, &PolyKernels::sample_ternary, out, seed, nonce);
}

void SplitPolyKernels::do_sample_error(Stream& stream, View out, const random::Seed& seed,
                                       random::Nonce nonce) {
  undealt(split_stream(stream).blocks(), out);
  limbwise(stream, &PolyKernels::sample_error, out, seed, nonce);
}

void SplitPolyKernels::do_tensor(Stream& stream, View out, ConstView a, ConstView b) {
  limbwise(stream, &PolyKernels::tensor, out, a, b);
}

void SplitPolyKernels::do_tensor_square(Stream& stream, View out, ConstView a,
                                        const Scalars* doubled) {
  const Blocks& at = split_stream(stream).blocks();
  const Layout layout = at.layout(out);
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const Scalars mine = doubled != nullptr ? own(layout, p, *doubled, out.limbs) : Scalars();
    kernels.tensor_square(part, at.local(p, out), at.local(p, a),
                          doubled != nullptr ? &mine : nullptr);
  });
}

void SplitPolyKernels::do_linear_combination(Stream& stream, View out,
                                             std::span<const ConstView> in,
                                             std::span<const Scalars> scalars,
                                             const Scalars* constant) {
  const Blocks& at = split_stream(stream).blocks();
  const Layout layout = at.layout(out);
  each(stream, layout, out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    std::vector<ConstView> terms;
    std::vector<Scalars> factors;
    for (const ConstView& term : in) terms.push_back(at.local(p, term));
    for (const Scalars& factor : scalars) factors.push_back(own(layout, p, factor, out.limbs));
    const Scalars mine = constant != nullptr ? own(layout, p, *constant, out.limbs) : Scalars();
    kernels.linear_combination(part, at.local(p, out), terms, factors,
                               constant != nullptr ? &mine : nullptr);
  });
}

void SplitPolyKernels::do_plain_multiply_sum(Stream& stream, std::span<const View> out,
                                             std::span<const ConstView> in, const Grid& plain) {
  const SplitStream& split = split_stream(stream);
  const Blocks& at = split.blocks();
  each(stream, whole(), plain.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    std::vector<View> sums;
    std::vector<ConstView> steps;
    for (const View& sum : out) sums.push_back(at.local(p, sum));
    for (const ConstView& step : in) steps.push_back(at.local(p, step));
    kernels.plain_multiply_sum(part, sums, steps, own(split, p, plain));
  });
}

void SplitPolyKernels::do_automorphism_add(Stream& stream, View out, ConstView in, u64 element,
                                           const ConstView* addend) {
  const Blocks& at = split_stream(stream).blocks();
  each(stream, at.layout(out), out.limbs, [&](u32 p, PolyKernels& kernels, Stream& part) {
    const ConstView added = addend != nullptr ? at.local(p, *addend) : ConstView();
    kernels.automorphism_add(part, at.local(p, out), at.local(p, in), element,
                             addend != nullptr ? &added : nullptr);
  });
}

}  // namespace crenel::backend::split
