// The checked entry points: one place an operation, and a place where work may stop.
#include "device/poly/kernels.h"

#include "crenel/core/watch.h"
#include "crenel/device/optimisations.h"
#include "device/poly/checks.h"
#include "device/poly/compose/product_sum.h"

namespace crenel::device {

namespace {

using Conversions = std::vector<Prepared<rns::BaseConversion>>;

template <class Table>
Prepared<Table> prepared(Table& table, std::shared_ptr<const DeviceTable> device,
                         Conversions conversions) {
  return {std::make_shared<const Table>(std::move(table)), std::move(device),
          std::make_shared<const Conversions>(std::move(conversions))};
}

bool on(const Stream& stream, Optimisation o) { return optimisations(stream.device()).has(o); }

// What `o` adds to the fused key switch is there with that one only.
bool fuses_key_switch(const Stream& stream, Optimisation o, bool lifts) {
  return on(stream, o) && on(stream, Optimisation::key_switch) &&
         on(stream, Optimisation::multi_polynomial) && (!lifts || on(stream, Optimisation::lift));
}

}  // namespace

Prepared<rns::BaseConversion> PolyKernels::prepare(rns::BaseConversion table) {
  return prepared(table, do_prepare(table), {});
}

Prepared<rns::ModUp> PolyKernels::prepare(rns::ModUp table) {
  Conversions conversions;
  for (const auto& digit : table.digits) conversions.push_back(prepare(digit.conversion));
  return prepared(table, do_prepare(table), std::move(conversions));
}

Prepared<rns::Divide> PolyKernels::prepare(rns::Divide table) {
  return prepared(table, do_prepare(table), {prepare(table.conversion)});
}

std::shared_ptr<const DeviceTable> PolyKernels::do_prepare(const rns::BaseConversion&) {
  return nullptr;
}
std::shared_ptr<const DeviceTable> PolyKernels::do_prepare(const rns::ModUp&) { return nullptr; }
std::shared_ptr<const DeviceTable> PolyKernels::do_prepare(const rns::Divide&) { return nullptr; }

void PolyKernels::add(Stream& stream, const View& out, const ConstView& a, const ConstView& b) {
  watch::point();
  checks::binary("add", ring(), out, a, b);
  do_add(stream, out, a, b);
}

void PolyKernels::sub(Stream& stream, const View& out, const ConstView& a, const ConstView& b) {
  watch::point();
  checks::binary("sub", ring(), out, a, b);
  do_sub(stream, out, a, b);
}

void PolyKernels::neg(Stream& stream, const View& out, const ConstView& a) {
  watch::point();
  checks::unary("neg", ring(), out, a);
  do_neg(stream, out, a);
}

void PolyKernels::mul(Stream& stream, const View& out, const ConstView& a, const ConstView& b) {
  watch::point();
  checks::binary("mul", ring(), out, a, b);
  do_mul(stream, out, a, b);
}

void PolyKernels::mul_add(Stream& stream, const View& out, const ConstView& a, const ConstView& b) {
  watch::point();
  checks::binary("mul_add", ring(), out, a, b);
  do_mul_add(stream, out, a, b);
}

void PolyKernels::mul_scalar(Stream& stream, const View& out, const ConstView& a,
                             const Scalars& scalars) {
  watch::point();
  checks::unary("mul_scalar", ring(), out, a);
  do_mul_scalar(stream, out, a, scalars);
}

void PolyKernels::mul_add_scalar(Stream& stream, const View& out, const ConstView& a,
                                 const Scalars& scalars) {
  watch::point();
  checks::unary("mul_add_scalar", ring(), out, a);
  do_mul_add_scalar(stream, out, a, scalars);
}

void PolyKernels::add_scalar(Stream& stream, const View& out, const ConstView& a,
                             const Scalars& scalars) {
  watch::point();
  checks::unary("add_scalar", ring(), out, a);
  do_add_scalar(stream, out, a, scalars);
}

void PolyKernels::ntt(Stream& stream, const View& out, const ConstView& in) {
  watch::point();
  checks::transform("ntt", ring(), out, in, Domain::coeff, Domain::eval);
  do_ntt(stream, out, in);
}

void PolyKernels::intt(Stream& stream, const View& out, const ConstView& in) {
  watch::point();
  checks::transform("intt", ring(), out, in, Domain::eval, Domain::coeff);
  do_intt(stream, out, in);
}

void PolyKernels::automorphism(Stream& stream, const View& out, const ConstView& in, u64 element) {
  watch::point();
  checks::automorphism("automorphism", ring(), out, in, element);
  do_automorphism(stream, out, in, element);
}

void PolyKernels::base_convert(Stream& stream, const View& out, const ConstView& in,
                               const Prepared<rns::BaseConversion>& table) {
  watch::point();
  checks::base_convert(ring(), out, in, table);
  do_base_convert(stream, out, in, table);
}

void PolyKernels::reduce_signed(Stream& stream, const View& out, const i64* values) {
  watch::point();
  checks::source("reduce_signed", ring(), out, Domain::coeff);
  do_reduce_signed(stream, out, values);
}

void PolyKernels::lift_signed(Stream& stream, i64* values, const ConstView& in) {
  watch::point();
  checks::lift_signed(ring(), values, in);
  do_lift_signed(stream, values, in);
}

void PolyKernels::sample_uniform(Stream& stream, const View& out, const random::Seed& seed,
                                 random::Nonce nonce) {
  watch::point();
  checks::source("sample_uniform", ring(), out);
  do_sample_uniform(stream, out, seed, nonce);
}

void PolyKernels::sample_ternary(Stream& stream, const View& out, const random::Seed& seed,
                                 random::Nonce nonce) {
  watch::point();
  checks::source("sample_ternary", ring(), out, Domain::coeff);
  do_sample_ternary(stream, out, seed, nonce);
}

void PolyKernels::sample_error(Stream& stream, const View& out, const random::Seed& seed,
                               random::Nonce nonce) {
  watch::point();
  checks::source("sample_error", ring(), out, Domain::coeff);
  do_sample_error(stream, out, seed, nonce);
}

void PolyKernels::tensor(Stream& stream, const View& out, const ConstView& a, const ConstView& b) {
  watch::point();
  checks::tensor("tensor", ring(), out, a, b);
  if (!on(stream, Optimisation::tensor)) return PolyKernels::do_tensor(stream, out, a, b);
  do_tensor(stream, out, a, b);
}

void PolyKernels::tensor_square(Stream& stream, const View& out, const ConstView& a,
                                const Scalars* doubled) {
  watch::point();
  checks::tensor("tensor_square", ring(), out, a, a);
  if (!on(stream, Optimisation::tensor_square))
    return PolyKernels::do_tensor_square(stream, out, a, doubled);
  const bool apart = doubled != nullptr && !on(stream, Optimisation::doubling);
  do_tensor_square(stream, out, a, apart ? nullptr : doubled);
  if (!apart) return;
  add(stream, out, out, out);
  add_scalar(stream, out.components(0, 1), out.components(0, 1), *doubled);
}

void PolyKernels::linear_combination(Stream& stream, const View& out, std::span<const ConstView> in,
                                     std::span<const Scalars> scalars, const Scalars* constant) {
  watch::point();
  checks::linear_combination(ring(), out, in, scalars);
  if (!on(stream, Optimisation::linear_combination))
    return PolyKernels::do_linear_combination(stream, out, in, scalars, constant);
  do_linear_combination(stream, out, in, scalars, constant);
}

void PolyKernels::plain_multiply_sum(Stream& stream, std::span<const View> out,
                                     std::span<const ConstView> in, const Grid& plain) {
  watch::point();
  checks::plain_multiply_sum(ring(), out, in, plain);
  if (!on(stream, Optimisation::plain_sums))
    return PolyKernels::do_plain_multiply_sum(stream, out, in, plain);
  do_plain_multiply_sum(stream, out, in, plain);
}

void PolyKernels::automorphism_add(Stream& stream, const View& out, const ConstView& in,
                                   u64 element, const ConstView* addend) {
  watch::point();
  checks::automorphism_add(ring(), out, in, element, addend);
  if (!on(stream, Optimisation::automorphism_add))
    return PolyKernels::do_automorphism_add(stream, out, in, element, addend);
  do_automorphism_add(stream, out, in, element, addend);
}

void PolyKernels::mod_up(Stream& stream, const View& out, const ConstView& in,
                         const Prepared<rns::ModUp>& table) {
  watch::point();
  checks::mod_up(ring(), out, in, table);
  if (!on(stream, Optimisation::mod_up) || !on(stream, Optimisation::multi_polynomial))
    return PolyKernels::do_mod_up(stream, out, in, table);
  do_mod_up(stream, out, in, table);
}

void PolyKernels::key_multiply(Stream& stream, const View& out, const ConstView& digits,
                               const Key& key, u32 first_digit) {
  watch::point();
  checks::key_multiply(ring(), out, digits, key, first_digit);
  // What a slot in memory of the device holds is not known here: such a key has no composition.
  const bool known = key.slot == nullptr || stream.device().in_host_memory();
  if (known && !on(stream, Optimisation::key_multiply))
    return PolyKernels::do_key_multiply(stream, out, digits, key, first_digit);
  do_key_multiply(stream, out, digits, key, first_digit);
}

void PolyKernels::key_switch_extended(Stream& stream, const View& out, const ConstView& in,
                                      const Prepared<rns::ModUp>& table, const Key& key,
                                      u32 first_digit, const ConstView* addend,
                                      const Scalars* factor) {
  watch::point();
  checks::key_switch_extended(ring(), out, in, table, key, first_digit, addend, factor);
  if (!on(stream, Optimisation::key_switch) || !on(stream, Optimisation::multi_polynomial))
    return PolyKernels::do_key_switch_extended(stream, out, in, table, key, first_digit, addend,
                                               factor);
  if (addend == nullptr || on(stream, Optimisation::lift))
    return do_key_switch_extended(stream, out, in, table, key, first_digit, addend, factor);
  do_key_switch_extended(stream, out, in, table, key, first_digit, nullptr, nullptr);
  const View window = out.components(0, addend->shape.components);
  mul_add_scalar(stream, window.limb_window(0, addend->limbs.size()), *addend, *factor);
}

void PolyKernels::key_switch_rotated(Stream& stream, const View& out, const ConstView& in,
                                     const Prepared<rns::ModUp>& table, const Key& key,
                                     u32 first_digit, u64 element, bool add,
                                     const ConstView* addend, const Scalars* factor) {
  watch::point();
  checks::key_switch_rotated(ring(), out, in, table, key, first_digit, element, addend);
  if (!fuses_key_switch(stream, Optimisation::rotated_rows, addend != nullptr))
    return PolyKernels::do_key_switch_rotated(stream, out, in, table, key, first_digit, element,
                                              add, addend, factor);
  do_key_switch_rotated(stream, out, in, table, key, first_digit, element, add, addend, factor);
}

void PolyKernels::product_sum(Stream& stream, const View& out, const ConstView& a,
                              const ConstView& b, const ProductSum& sum) {
  watch::point();
  checks::product_sum(ring(), out, a, b, sum);
  compose::product_sum(*this, stream, out, a, b, sum);
}

void PolyKernels::key_switch_product(Stream& stream, const View& out, const ConstView& a,
                                     const ConstView& b, const Prepared<rns::ModUp>& table,
                                     const Key& key, u32 first_digit, const Scalars& lift,
                                     const ProductSum& sum) {
  watch::point();
  checks::key_switch_product(ring(), out, a, b, table, key, first_digit, sum);
  if (!fuses_key_switch(stream, Optimisation::product_rows, true))
    return PolyKernels::do_key_switch_product(stream, out, a, b, table, key, first_digit, lift,
                                              sum);
  do_key_switch_product(stream, out, a, b, table, key, first_digit, lift, sum);
}

void PolyKernels::divide(Stream& stream, const View& out, const ConstView& in,
                         const Prepared<rns::Divide>& table, const ConstView* addend) {
  watch::point();
  checks::divide(ring(), out, in, table, addend);
  const auto divided = [&](const View& to, const ConstView& from, const ConstView* added) {
    if (on(stream, Optimisation::division)) return do_divide(stream, to, from, table, added);
    PolyKernels::do_divide(stream, to, from, table, added);
  };
  const ConstView* fused = on(stream, Optimisation::division_addend) ? addend : nullptr;
  if (on(stream, Optimisation::multi_polynomial))
    divided(out, in, fused);
  else
    for (u32 c = 0; c < out.shape.components; ++c) {
      const bool adds = fused != nullptr && c < fused->shape.components;
      const ConstView part = adds ? fused->components(c, 1) : ConstView();
      divided(out.components(c, 1), in.components(c, 1), adds ? &part : nullptr);
    }
  if (addend == fused) return;
  const View sum = out.components(0, addend->shape.components);
  add(stream, sum, sum, *addend);
}

void PolyKernels::key_switch_divided(Stream& stream, const View& out, const SwitchOf& of,
                                     const Prepared<rns::ModUp>& raised, const Key& key,
                                     u32 first_digit, const Prepared<rns::Divide>& table,
                                     const ConstView* addend) {
  const compose::Temporary sum(stream, {out.shape.log_n, 2, out.shape.batch},
                               checks::table_of("key_switch_divided", raised).output, Domain::eval);
  key_switch_divided(stream, out, sum.view(), of, raised, key, first_digit, table, addend);
}

void PolyKernels::key_switch_divided(Stream& stream, const View& out, const View& sum,
                                     const SwitchOf& of, const Prepared<rns::ModUp>& raised,
                                     const Key& key, u32 first_digit,
                                     const Prepared<rns::Divide>& table, const ConstView* addend) {
  watch::point();
  checks::key_switch_divided(ring(), out, sum, of, raised, key, first_digit, table, addend);
  const auto has = [&](Optimisation o, bool needed) { return !needed || on(stream, o); };
  if (fuses_key_switch(stream, Optimisation::divided_rows, of.product() || of.addend != nullptr) &&
      on(stream, Optimisation::division) && has(Optimisation::division_addend, addend != nullptr) &&
      has(Optimisation::product_rows, of.product()) &&
      has(Optimisation::rotated_rows, of.element != 1))
    return do_key_switch_divided(stream, out, sum, of, raised, key, first_digit, table, addend);
  PolyKernels::do_key_switch_divided(stream, out, sum, of, raised, key, first_digit, table, addend);
}

void PolyKernels::sources(Stream& stream, const View& out, const SourcesOf& of,
                          const Prepared<rns::BaseConversion>& scales) {
  watch::point();
  checks::sources(ring(), out, of, scales);
  do_sources(stream, out, of, scales);
}

const PolyView<const u32>& SourcesView::limbs() const {
  if (tiled) throw StateError("sources in tiles, expected limb by limb");
  return view;
}

void PolyKernels::mod_up_from(Stream& stream, const View& out, const SourcesView& sources,
                              const ConstView& own, const Prepared<rns::ModUp>& table) {
  watch::point();
  checks::mod_up_from(ring(), out, sources.view, own, table);
  do_mod_up_from(stream, out, sources, own, table);
}

void PolyKernels::key_switch_from(Stream& stream, const View& out, const SourcesView& sources,
                                  const ConstView& own, const Prepared<rns::ModUp>& table,
                                  const Key& key, u32 first_digit, const ConstView* addend,
                                  const Scalars* factor) {
  watch::point();
  checks::key_switch_from(ring(), out, sources.view, own, table, key, first_digit, addend, factor);
  do_key_switch_from(stream, out, sources, own, table, key, first_digit, addend, factor);
}

void PolyKernels::key_switch_rotated_from(Stream& stream, const View& out,
                                          const SourcesView& sources, const ConstView& own,
                                          const Prepared<rns::ModUp>& table, const Key& key,
                                          u32 first_digit, u64 element, bool add,
                                          const ConstView* addend, const Scalars* factor) {
  watch::point();
  checks::key_switch_rotated_from(ring(), out, sources.view, own, table, key, first_digit, element,
                                  addend);
  do_key_switch_rotated_from(stream, out, sources, own, table, key, first_digit, element, add,
                             addend, factor);
}

void PolyKernels::key_switch_product_from(Stream& stream, const View& out,
                                          const SourcesView& sources, const ConstView& a,
                                          const ConstView& b, const Prepared<rns::ModUp>& table,
                                          const Key& key, u32 first_digit, const Scalars& lift,
                                          const ProductSum& sum) {
  watch::point();
  checks::key_switch_product_from(ring(), out, sources.view, a, b, table, key, first_digit, sum);
  do_key_switch_product_from(stream, out, sources, a, b, table, key, first_digit, lift, sum);
}

void PolyKernels::divide_from(Stream& stream, const View& out, const SourcesView& sources,
                              const ConstView& x, const Prepared<rns::Divide>& table,
                              const ConstView* addend) {
  watch::point();
  checks::divide_from(ring(), out, sources.view, x, table, addend);
  do_divide_from(stream, out, sources, x, table, addend);
}

void PolyKernels::hoisted_rotate_sum(Stream& stream, const View& out, const ConstView& digits,
                                     const ConstView& b, const ConstView& a,
                                     std::span<const Key> keys, std::span<const u64> elements,
                                     const Scalars& special, u32 first_digit) {
  watch::point();
  checks::hoisted_rotate_sum(ring(), out, digits, b, a, keys, elements, first_digit);
  if (!on(stream, Optimisation::hoisted_sums))
    return PolyKernels::do_hoisted_rotate_sum(stream, out, digits, b, a, keys, elements, special,
                                              first_digit);
  do_hoisted_rotate_sum(stream, out, digits, b, a, keys, elements, special, first_digit);
}

void PolyKernels::hoisted_plain_sums(Stream& stream, std::span<const View> out,
                                     const ConstView& digits, const ConstView& b,
                                     const ConstView& a, std::span<const Key> keys,
                                     std::span<const u64> elements, const Grid& plain,
                                     const Scalars& special, u32 first_digit) {
  watch::point();
  checks::hoisted_plain_sums(ring(), out, digits, b, a, keys, elements, plain, first_digit);
  if (!on(stream, Optimisation::hoisted_sums))
    return PolyKernels::do_hoisted_plain_sums(stream, out, digits, b, a, keys, elements, plain,
                                              special, first_digit);
  do_hoisted_plain_sums(stream, out, digits, b, a, keys, elements, plain, special, first_digit);
}

}  // namespace crenel::device
