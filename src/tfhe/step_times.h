// Written by tools/gen_lookups.py: seconds of a batch of look-ups of lut4-128, key switches
// included, by the step of its rotations.
// bench/results/tfhe-forms-lut4-128-h100.json
#pragma once

#include "crenel/core/types.h"

namespace crenel::tfhe {

struct StepTime {
  u32 step, rotations;
  double seconds;
};
/// The set's ring degree and accumulator polynomials, and the multiprocessors of the GPU.
inline constexpr u32 kStepTimesRingDim = 2048, kStepTimesPolys = 2, kStepTimesProcessors = 132;
// clang-format off
inline constexpr StepTime kStepTimes[] = {
    {2, 1, 0.00174549},
    {2, 8, 0.00187513},
    {2, 33, 0.00232798},
    {2, 66, 0.00289763},
    {2, 100, 0.00344264},
    {2, 132, 0.00357457},
    {2, 198, 0.00411551},
    {2, 264, 0.00429523},
    {2, 396, 0.0067036},
    {2, 528, 0.00683064},
    {2, 1024, 0.013449},
    {2, 8192, 0.107155},
    {4, 1, 0.000886961},
    {4, 8, 0.000928041},
    {4, 33, 0.0013424},
    {4, 66, 0.00197271},
    {4, 100, 0.00305393},
    {4, 132, 0.0038816},
    {4, 198, 0.00464813},
    {4, 264, 0.00494994},
    {4, 396, 0.00655399},
    {4, 528, 0.00668478},
    {4, 1024, 0.0131288},
    {4, 8192, 0.104666},
};
// clang-format on

}  // namespace crenel::tfhe
