// What PolyKernels checks on entry to an operation: shapes, limbs, domains, overlap. A violation
// throws StateError that names both values. Host arithmetic only, a few hundred nanoseconds.
#pragma once

#include "device/poly/kernels.h"

namespace crenel::device::checks {

using ConstView = PolyView<const u32>;

/// The table; StateError where there is none.
template <class Table>
const Table& table_of(const char* op, const Prepared<Table>& prepared) {
  if (!prepared) throw StateError(cat(op, ": the table is empty, expected a prepared one"));
  return *prepared;
}

/// Log N and prime ids belong to the ring.
void view(const char* op, const ring::Ring& ring, const ConstView& v, const char* name);

/// Identical limbs; the message names `op` and both sets.
void limbs(const char* op, const LimbSet& got, const LimbSet& expected, const char* name);
void equal(const char* op, const char* what, u64 got, u64 expected);
void domain(const char* op, Domain got, Domain expected, const char* name);
/// view(), and in evaluation form.
void eval_view(const char* op, const ring::Ring& ring, const ConstView& v, const char* name);
/// Galois elements are odd and below 2N.
void element(const char* op, u64 element, u32 log_n);

/// out and in share no word, or are the same view when `in_place` is allowed.
void overlap(const char* op, const ConstView& out, const ConstView& in, bool in_place);

/// neg, mul_scalar, ...: out and a of equal shape, limbs, domain.
void unary(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& a);
/// add, mul, ...: as unary, b broadcast.
void binary(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& a,
            const ConstView& b);
/// ntt (from coeff to eval) and intt (the other way).
void transform(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& in,
               Domain from, Domain to);
void automorphism(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& in,
                  u64 galois_element);
/// addend: what is added to the leading components of the input, may be null.
void automorphism_add(const ring::Ring& ring, const ConstView& out, const ConstView& in,
                      u64 galois_element, const ConstView* addend);
void base_convert(const ring::Ring& ring, const ConstView& out, const ConstView& in,
                  const Prepared<rns::BaseConversion>& table);
/// reduce_signed, sample_*: one output in the domain given.
void source(const char* op, const ring::Ring& ring, const ConstView& out, Domain wanted);
/// sample_uniform: either domain.
void source(const char* op, const ring::Ring& ring, const ConstView& out);
/// One or two limbs whose primes have a product below 2^62.
void lift_signed(const ring::Ring& ring, const i64* values, const ConstView& in);
void linear_combination(const ring::Ring& ring, const ConstView& out, std::span<const ConstView> in,
                        std::span<const LimbScalars> scalars);
void tensor(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& a,
            const ConstView& b);
void mod_up(const ring::Ring& ring, const ConstView& out, const ConstView& in,
            const Prepared<rns::ModUp>& table);
void key_multiply(const ring::Ring& ring, const ConstView& out, const ConstView& digits,
                  const KeyView& key, u32 first_digit);
void key_switch_extended(const ring::Ring& ring, const ConstView& out, const ConstView& in,
                         const Prepared<rns::ModUp>& table, const KeyView& key, u32 first_digit,
                         const ConstView* addend, const LimbScalars* factor);
void key_switch_rotated(const ring::Ring& ring, const ConstView& out, const ConstView& in,
                        const Prepared<rns::ModUp>& table, const KeyView& key, u32 first_digit,
                        u64 galois_element, const ConstView* addend);
void product_sum(const ring::Ring& ring, const ConstView& out, const ConstView& a,
                 const ConstView& b, const ProductSum& sum);
void key_switch_product(const ring::Ring& ring, const ConstView& out, const ConstView& a,
                        const ConstView& b, const Prepared<rns::ModUp>& table, const KeyView& key,
                        u32 first_digit, const ProductSum& sum);
void divide(const ring::Ring& ring, const ConstView& out, const ConstView& in,
            const Prepared<rns::Divide>& table, const ConstView* addend);
/// `sum`: where the result of the switch goes.
void key_switch_divided(const ring::Ring& ring, const ConstView& out, const ConstView& sum,
                        const SwitchOf& of, const Prepared<rns::ModUp>& raised, const KeyView& key,
                        u32 first_digit, const Prepared<rns::Divide>& table,
                        const ConstView* addend);
/// What is added to a product: all addends of two or of three components, of limbs `wanted`.
void addends(const char* op, const ring::Ring& ring, const ConstView& out, const LimbSet& wanted,
             const ProductSum& sum);
/// A switching key with the gadget digits [first, first + digits) and the limbs of `out`; nothing
/// is written on it.
void switching_key(const char* op, const ring::Ring& ring, const KeyView& key, const ConstView& out,
                   u32 first, u32 digits);
void sources(const ring::Ring& ring, const ConstView& out, const SourcesOf& of,
             const Prepared<rns::BaseConversion>& scales);
void mod_up_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                 const ConstView& own, const Prepared<rns::ModUp>& table);
void key_switch_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                     const ConstView& own, const Prepared<rns::ModUp>& table, const KeyView& key,
                     u32 first_digit, const ConstView* addend, const LimbScalars* factor);
void key_switch_rotated_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                             const ConstView& own, const Prepared<rns::ModUp>& table,
                             const KeyView& key, u32 first_digit, u64 galois_element,
                             const ConstView* addend);
void key_switch_product_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                             const ConstView& a, const ConstView& b,
                             const Prepared<rns::ModUp>& table, const KeyView& key, u32 first_digit,
                             const ProductSum& sum);
void divide_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                 const ConstView& x, const Prepared<rns::Divide>& table, const ConstView* addend);
void hoisted_rotate_sum(const ring::Ring& ring, const ConstView& out, const ConstView& digits,
                        const ConstView& b, const ConstView& a, std::span<const KeyView> keys,
                        std::span<const u64> elements, u32 first_digit);
void plain_multiply_sum(const ring::Ring& ring, std::span<const PolyView<u32>> out,
                        std::span<const ConstView> in, const PlainGrid& plain);
void hoisted_plain_sums(const ring::Ring& ring, std::span<const PolyView<u32>> out,
                        const ConstView& digits, const ConstView& b, const ConstView& a,
                        std::span<const KeyView> keys, std::span<const u64> elements,
                        const PlainGrid& plain, u32 first_digit);

}  // namespace crenel::device::checks
