// From residues in coefficient form to slots.
#pragma once

#include "ckks/objects.h"

namespace crenel::ckks {

/// Slots of a polynomial in coefficient form, row after row.
std::vector<std::complex<double>> decode_coefficients(const Context::State& state,
                                                      const rlwe::Poly& coefficients,
                                                      const Metadata& meta);

/// How many leading limbs of the window of `meta.level` hold messages of this scale comfortably,
/// plus one limb to check with; decoding falls back to all limbs when the check fails.
u32 limbs_to_decode(const Context::State& state, const Metadata& meta);

/// Like decode_coefficients, on the first limbs only: nullopt when they do not suffice.
std::optional<std::vector<std::complex<double>>> try_decode_coefficients(
    const Context::State& state, const rlwe::Poly& coefficients, const Metadata& meta);

/// Largest |slot| of a plaintext polynomial in evaluation form; kUnknownBound where the first limbs
/// do not hold it.
double measured_bound(const Context::State& state, const rlwe::Poly& poly, const Metadata& meta);

}  // namespace crenel::ckks
