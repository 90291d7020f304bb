// Key switches of what would be stored before, and of what is rotated after.
#include "device/poly/compose/product_sum.h"
#include "device/poly/compose/workspace.h"

namespace crenel::device {

namespace compose {

void product_sum(PolyKernels& kernels, Stream& stream, const PolyView<u32>& out,
                 const PolyView<const u32>& a, const PolyView<const u32>& b,
                 const ProductSum& sum) {
  const LimbScalars none;
  const LimbScalars* constant = sum.constant;
  bool doubled = sum.doubled;
  if (same(a, b)) {
    kernels.tensor_square(stream, out, a, !doubled ? nullptr : constant ? constant : &none);
    if (doubled) doubled = false, constant = nullptr;
  } else {
    kernels.tensor(stream, out, a, b);
  }
  LimbScalars own;  // factor of what is there
  for (u32 l = 0; l < out.limbs.size(); ++l) own.low[l] = own.high[l] = doubled ? 2 : 1;
  // Components [first, last), the constant on the first of them.
  const auto combine = [&](u32 first, u32 last, const LimbScalars* added) {
    if (first == last) return;
    const PolyView<u32> to = out.components(first, last - first);
    std::vector<PolyView<const u32>> terms{to};
    std::vector<LimbScalars> factors{own};
    for (const auto& addend : sum.addends) terms.push_back(addend.components(first, last - first));
    factors.insert(factors.end(), sum.factors.begin(), sum.factors.end());
    kernels.linear_combination(stream, to, terms, factors, added);
  };
  const u32 added = sum.addends.empty() ? 0 : sum.addends[0].shape.components;
  if (added != 0) {
    const u32 apart = constant != nullptr ? 1 : 0;
    combine(0, apart, constant);
    combine(apart, added, nullptr);
  } else if (constant != nullptr) {
    const PolyView<u32> first = out.components(0, 1);
    if (doubled) kernels.mul_scalar(stream, first, first, own);
    kernels.add_scalar(stream, first, first, *constant);
  }
  const u32 done = added != 0 ? added : constant != nullptr ? 1 : 0;
  const PolyView<u32> rest = out.components(done, 3 - done);
  if (doubled && done < 3) kernels.mul_scalar(stream, rest, rest, own);
}

void product_third(PolyKernels& kernels, Stream& stream, const PolyView<u32>& out,
                   const PolyView<const u32>& a, const PolyView<const u32>& b,
                   const ProductSum& sum) {
  kernels.mul(stream, out, a.components(1, 1), b.components(1, 1));
  const bool adds = !sum.addends.empty() && sum.addends[0].shape.components == 3;
  if (!adds && !sum.doubled) return;
  LimbScalars own;
  for (u32 l = 0; l < out.limbs.size(); ++l) own.low[l] = own.high[l] = sum.doubled ? 2 : 1;
  std::vector<PolyView<const u32>> terms{out};
  std::vector<LimbScalars> factors{own};
  if (adds) {
    for (const auto& addend : sum.addends) terms.push_back(addend.components(2, 1));
    factors.insert(factors.end(), sum.factors.begin(), sum.factors.end());
  }
  kernels.linear_combination(stream, out, terms, factors, nullptr);
}

namespace {

// The rotation of `sum`, a switch, with an addend that is not in it yet (may be null).
void rotate_sum(PolyKernels& kernels, Stream& stream, const PolyView<u32>& out,
                const PolyView<u32>& sum, u64 element, bool add, const PolyView<const u32>* addend,
                const LimbScalars* factor) {
  const PolyView<const u32>* turned = nullptr;  // added as it is rotated
  if (addend != nullptr) {
    const PolyView<u32> window =
        sum.components(0, addend->shape.components).limb_window(0, addend->limbs.size());
    if (factor != nullptr)
      kernels.mul_add_scalar(stream, window, *addend, *factor);
    else if (add && addend->limbs.size() == out.limbs.size())
      turned = addend;
    else
      kernels.add(stream, window, window, *addend);
  }
  if (add)
    kernels.automorphism_add(stream, out, sum, element, turned);
  else
    kernels.automorphism(stream, out, sum, element);
}

}  // namespace
}  // namespace compose

void PolyKernels::do_key_switch_rotated(Stream& stream, View out, ConstView in,
                                        const Prepared<rns::ModUp>& table, const Key& key,
                                        u32 first_digit, u64 element, bool add,
                                        const ConstView* addend, const Scalars* factor) {
  const compose::Temporary sum(stream, out.shape, out.limbs, Domain::eval);
  const bool lifted =
      addend != nullptr && factor != nullptr && addend->limbs.size() == table->input.size();
  key_switch_extended(stream, sum.view(), in, table, key, first_digit, lifted ? addend : nullptr,
                      lifted ? factor : nullptr);
  compose::rotate_sum(*this, stream, out, sum.view(), element, add, lifted ? nullptr : addend,
                      factor);
}

void PolyKernels::do_key_switch_divided(Stream& stream, View out, View sum, const SwitchOf& of,
                                        const Prepared<rns::ModUp>& raised, const Key& key,
                                        u32 first_digit, const Prepared<rns::Divide>& table,
                                        const ConstView* addend) {
  if (of.product())
    key_switch_product(stream, sum, of.in, of.other, raised, key, first_digit, *of.factor, of.sum);
  else if (of.element != 1)
    key_switch_rotated(stream, sum, of.in, raised, key, first_digit, of.element, false, of.addend,
                       of.factor);
  else
    key_switch_extended(stream, sum, of.in, raised, key, first_digit, of.addend, of.factor);
  divide(stream, out, sum, table, addend);
}

void PolyKernels::do_key_switch_rotated_from(Stream& stream, View out, SourcesView sources,
                                             ConstView own, const Prepared<rns::ModUp>& table,
                                             const Key& key, u32 first_digit, u64 element, bool add,
                                             const ConstView* addend, const Scalars* factor) {
  const compose::Temporary sum(stream, out.shape, out.limbs, Domain::eval);
  const bool lifted = addend != nullptr && factor != nullptr;
  key_switch_from(stream, sum.view(), sources, own, table, key, first_digit,
                  lifted ? addend : nullptr, lifted ? factor : nullptr);
  compose::rotate_sum(*this, stream, out, sum.view(), element, add, lifted ? nullptr : addend,
                      factor);
}

namespace {

/// use(low, last): the first two components of sum + a b, and the third, made for the call.
template <class Use>
void with_product(PolyKernels& kernels, Stream& stream, PolyKernels::ConstView a,
                  PolyKernels::ConstView b, const ProductSum& sum, const Use& use) {
  PolyShape shape = a.shape;
  shape.components = 3;
  const compose::Temporary made(stream, shape, a.limbs, Domain::eval);
  compose::product_sum(kernels, stream, made.view(), a, b, sum);
  const PolyKernels::ConstView d = made.view();
  use(d.components(0, 2), d.components(2, 1));
}

}  // namespace

void PolyKernels::do_key_switch_product(Stream& stream, View out, ConstView a, ConstView b,
                                        const Prepared<rns::ModUp>& table, const Key& key,
                                        u32 first_digit, const Scalars& lift,
                                        const ProductSum& sum) {
  with_product(*this, stream, a, b, sum, [&](const ConstView& low, const ConstView& last) {
    key_switch_extended(stream, out, last, table, key, first_digit, &low, &lift);
  });
}

void PolyKernels::do_key_switch_product_from(Stream& stream, View out, SourcesView sources,
                                             ConstView a, ConstView b,
                                             const Prepared<rns::ModUp>& table, const Key& key,
                                             u32 first_digit, const Scalars& lift,
                                             const ProductSum& sum) {
  with_product(*this, stream, a, b, sum, [&](const ConstView& low, const ConstView& last) {
    key_switch_from(stream, out, sources, last, table, key, first_digit, &low, &lift);
  });
}

}  // namespace crenel::device
