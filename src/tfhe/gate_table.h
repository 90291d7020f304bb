// OpenFHE's constants of gates (docs/theory/tfhe.md "Gates").
#pragma once

#include "crenel/tfhe/evaluator.h"
#include "device/torus/plan.h"

namespace crenel::tfhe {

/// The output is 0 where the phase of factor * (sum of inputs) lies in [c, c + q / 2), else 1.
struct GateConstants {
  const char* name;
  u32 inputs;
  u32 plain_modulus;
  u32 factor;
  u32 numerator, denominator;  // c / q
  u32 counts;                  // bit i: the output where i inputs are 1
};

/// ParameterError for no gate.
const GateConstants& constants(Gate gate);
/// E(x) of device/torus/kernels.h.
u32 exponent(const device::TorusPlan& plan, u64 x);
/// c modulo q, rounded down.
u64 window_start(const device::TorusPlan& plan, const GateConstants& g);
/// How far a gate's sum may be off, modulo q: the least distance of the places that its inputs add
/// up to from the ends of the window. factor q / 2p, less what roundings take where p is no
/// power of two.
double gate_margin(const device::TorusPlan& plan, const GateConstants& g);
/// Whether p is a padded set's, and sums up to `most` are messages of it.
bool holds_sums(const Params& params, u32 p, u64 most);

}  // namespace crenel::tfhe
