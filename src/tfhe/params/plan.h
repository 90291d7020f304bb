// From parameters to what a backend sees.
#pragma once

#include "crenel/tfhe/params.h"
#include "device/torus/plan.h"

namespace crenel::tfhe {

/// The plan of `spec` with r = `slots`. The prime list is empty (and the modulus 0) where no primes
/// of the wanted size exist; validate() reports it. Expects poly_size to be a power of two below
/// 2^20.
device::TorusPlan plan_of(const Spec& spec, SlotCount slots);
device::TorusPlan plan_of(const Params& params);
/// The plan by whose steps keys are made and sent: that of whole groups.
device::TorusPlan made_plan(const device::TorusPlan& plan);
/// The arithmetic that plan_of made the plan's from.
Arithmetic arithmetic_of(const device::TorusPlan& plan);

/// Primes = 1 mod 2N below 2^28, in ascending order, empty when there are none: one for a gadget
/// modulus of at most 28 bits (the largest below 2^log), otherwise two near 2^(log / 2). Of the
/// pairs in reach, a gadget modulus takes the largest product below 2^log, so that Q keeps its
/// published size in bits; a raised one the smallest above, so that floor(T / Q^2) keeps its
/// nominal value.
std::vector<u64> accumulator_primes(NoisePath path, u32 log_modulus, u32 ring_dim);

/// ceil(a / b)
constexpr u32 ceil_div(u32 a, u32 b) { return (a + b - 1) / b; }

}  // namespace crenel::tfhe
