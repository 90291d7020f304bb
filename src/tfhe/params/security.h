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

/// The same for uniform binary secrets, whose dual hybrid attack is the best: a line in (dim - 46)
/// / log_modulus near 30 figures of the estimator (commit 27a581b, MATZOV; moduli 2^15 to 2^27, 125
/// to 138 bits): at most 0.2 above any of them and 1.1 below.
double binary_security_estimate(double dim, double log_modulus);

/// The weaker of LWE (n modulo Q_KS) and GLWE (kN modulo Q,
/// or modulo T where the keys live there; always ternary).
double security_estimate(const Spec& spec);

/// How far a set's stated security may lie above the estimate: the fit's error.
inline constexpr double kSecurityTolerance = 2.0;

}  // namespace crenel::tfhe
