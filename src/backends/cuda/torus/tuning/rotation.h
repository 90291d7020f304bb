// Shapes of the blind rotation: one line an instance, chosen by measurement on the H200
// (dev/kernels/README.md, "Blind rotation"; bench/results/tfhe-tune-*.json holds the figures of
// all).
#pragma once

#include "backends/cuda/torus/kernels/blind_rotate.cuh"

namespace crenel::backend::cuda::torus {

//                           LP RMax OG BT Threads Staged Blocks
using AnyShape = RotateShape<0, 1, 1, 1, 512, false>;  ///< sizes of run time

/// Instances of a shape with the polynomials of the accumulator as a constant come first where they
/// are measured: addresses are immediate then.

/// Raising, double precision, by log2 of the points. Pairs of blocks hide each other's barriers,
/// where four rows fit half of the shared memory; otherwise a block takes all of it.
using Raising8Pair = RotateShape<8, 4, 2, 4, 256, false, 2>;  ///< bool128-classic, M3, one slot
using Raising8 = RotateShape<8, 4, 2, 4, 512, false>;         ///< ... with more slots
using Raising8Small = RotateShape<8, 3, 1, 1, 512, false>;    ///< latency: a row a block
using Raising9Pair = RotateShape<9, 3, 2, 4, 256, false, 2>;  ///< M1
using Raising9 = RotateShape<9, 3, 2, 4, 512, false>;         ///< M1 with slots, M5 with one
using Raising9Six = RotateShape<9, 3, 2, 3, 384, false>;      ///< M4: six polynomials
using Raising9Three = RotateShape<9, 3, 3, 3, 384, false>;    ///< three
using Raising9Wide = RotateShape<9, 3, 2, 2, 512, false>;     ///< M5: eight polynomials
using Raising9Small = RotateShape<9, 3, 1, 1, 512, false>;
using Raising10 = RotateShape<10, 4, 2, 4, 512, false>;       ///< M2, M6
using Raising10Three = RotateShape<10, 4, 3, 2, 384, false>;  ///< ... with two slots
using Raising10Small = RotateShape<10, 4, 1, 1, 512, false>;
using Raising11 = RotateShape<11, 4, 2, 2, 512, false>;  ///< lut4-128-classic
using Raising11Small = RotateShape<11, 4, 1, 1, 512, false>;

/// Gadget, double precision.
using Gadget9 = RotateShape<9, 3, 2, 4, 512, true>;  ///< G1, G3, G5, STD128
using Gadget9Small = RotateShape<9, 3, 1, 1, 1024, true>;
using Gadget10 = RotateShape<10, 4, 2, 3, 512, false>;  ///< G2: one digit
using Gadget10Small = RotateShape<10, 4, 1, 1, 512, false>;

/// Gadget, double precision, digits in two pieces.
using Split10 = RotateShape<10, 4, 2, 2, 512, false>;  ///< G4
using Split10Small = RotateShape<10, 4, 1, 1, 512, false>;

/// Two primes, exact.
using Exact11 = RotateShape<11, 4, 2, 3, 512, false>;  ///< G4
using Exact11Pair = RotateShape<11, 3, 2, 1, 256, false, 2>;
using Exact9 = RotateShape<9, 3, 2, 4, 512, false>;  ///< bool128-classic, M3

}  // namespace crenel::backend::cuda::torus
