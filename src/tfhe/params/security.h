// Security of TFHE parameter sets, by a fit to figures of the lattice estimator.
#pragma once

#include "crenel/tfhe/params.h"

namespace crenel::tfhe {

/// Bits of security of (G)LWE of dimension `dim` (n, or kN) modulo 2^log_modulus with uniform
/// ternary secrets and errors of standard deviation 3.19: a line in dim / log_modulus through the
/// estimator's figures near 128 bits (uSVP, BDD, dual hybrid, primal hybrid; MATZOV cost model;
/// at 3.45 bits a unit). Between 120 and 140 bits it is at most 0.3 above the estimator's figure,
/// for dimensions of 1000 and more within 1 bit, for shorter ones up to 1.6 below; far from there
/// it is an extrapolation. Never negative.
double security_estimate(double dim, double log_modulus);

/// What binary secrets need more of in dimension than ternary ones for the same security: tfhe-rs'
/// sets of 132 bits have a dimension of 45.9 a bit of modulus (in units of this error), where the
/// line above asks for 39.6. One anchor, rounded up: a rough rule, meant to err on the safe side,
/// and no figure of the estimator.
inline constexpr double kBinaryStretch = 1.16;

/// The weaker of LWE (n modulo Q_KS; n / kBinaryStretch with binary secrets) and GLWE (kN modulo Q,
/// or modulo T where the keys live there; always ternary).
double security_estimate(const Spec& spec);

/// How far a set's stated security may lie above the estimate: the fit's error.
inline constexpr double kSecurityTolerance = 2.0;

}  // namespace crenel::tfhe
