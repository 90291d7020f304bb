// What every backend checks on entry to an operation: shapes, limbs, domains, overlap. A violation
// throws StateError that names both values. Host arithmetic only, a few hundred nanoseconds.
#pragma once

#include "device/poly/kernels.h"

namespace crenel::device::checks {

template <class W>
using ConstView = PolyView<const W>;

/// Log N and prime ids belong to the ring.
template <class W>
void view(const char* op, const ring::Ring<W>& ring, const ConstView<W>& v, const char* name);

/// Identical limbs; the message names `op` and both sets.
void limbs(const char* op, const LimbSet& got, const LimbSet& expected, const char* name);
void equal(const char* op, const char* what, u64 got, u64 expected);
void domain(const char* op, Domain got, Domain expected, const char* name);
/// Galois elements are odd and below 2N.
void element(const char* op, u64 element, u32 log_n);

/// out and in share no word, or are the same view when `in_place` is allowed.
template <class W>
void overlap(const char* op, const ConstView<W>& out, const ConstView<W>& in, bool in_place);

/// neg, mul_scalar, ...: out and a of equal shape, limbs, domain.
template <class W>
void unary(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out,
           const ConstView<W>& a);
/// add, mul, ...: as unary, b broadcast.
template <class W>
void binary(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out,
            const ConstView<W>& a, const ConstView<W>& b);
/// ntt (from coeff to eval) and intt (the other way).
template <class W>
void transform(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out,
               const ConstView<W>& in, Domain from, Domain to);
template <class W>
void automorphism(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out,
                  const ConstView<W>& in, u64 galois_element);
/// addend: what is added to the leading components of the input, may be null.
template <class W>
void automorphism_add(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
                      u64 galois_element, const ConstView<W>* addend);
template <class W>
void base_convert(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
                  const rns::BaseConversion<W>& table);
/// reduce_signed, sample_*: one output in the domain given.
template <class W>
void source(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out, Domain wanted);
/// sample_uniform: either domain.
template <class W>
void source(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out);
/// One or two limbs whose primes have a product below 2^62.
template <class W>
void lift_signed(const ring::Ring<W>& ring, const i64* values, const ConstView<W>& in);
template <class W>
void linear_combination(const ring::Ring<W>& ring, const ConstView<W>& out,
                        std::span<const ConstView<W>> in, std::span<const LimbScalars<W>> scalars);
template <class W>
void tensor(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& a,
            const ConstView<W>& b);
template <class W>
void mod_up(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
            const rns::ModUp<W>& table);
template <class W>
void key_multiply(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& digits,
                  const KeyView<W>& key, u32 first_digit);
template <class W>
void key_switch(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
                const rns::ModUp<W>& table, const KeyView<W>& key, u32 first_digit,
                const ConstView<W>* addend, const LimbScalars<W>* factor);
template <class W>
void divide(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
            const rns::Divide<W>& table, const ConstView<W>* addend);
template <class W>
void hoisted_rotate_sum(const ring::Ring<W>& ring, const ConstView<W>& out,
                        const ConstView<W>& digits, const ConstView<W>& b, const ConstView<W>& a,
                        std::span<const KeyView<W>> keys, std::span<const u64> elements,
                        u32 first_digit);
template <class W>
void plain_multiply_sum(const ring::Ring<W>& ring, std::span<const PolyView<W>> out,
                        std::span<const ConstView<W>> in, const PlainGrid<W>& plain);
template <class W>
void hoisted_plain_sums(const ring::Ring<W>& ring, std::span<const PolyView<W>> out,
                        const ConstView<W>& digits, const ConstView<W>& b, const ConstView<W>& a,
                        std::span<const KeyView<W>> keys, std::span<const u64> elements,
                        const PlainGrid<W>& plain, u32 first_digit);

}  // namespace crenel::device::checks
