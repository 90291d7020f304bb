// Roots of unity in double precision, and tables of the negacyclic transform: R[X]/(X^N + 1) as the
// M = N/2 complex points of C[X]/(X^M - i), by a tree of radix-2 butterflies. Made on the host, the
// same everywhere.
#pragma once

#include <vector>

#include "crenel/core/types.h"

namespace crenel::ring {

struct Complex {
  double re = 0.0;
  double im = 0.0;
};

/// [j] = exp(2 pi i j / 2^log_order), j < 2^log_order, symmetric to the bit in all octants and
/// within an error of half a unit in the last place: the same with every C library.
std::vector<Complex> roots_of_unity(u32 log_order);

/// A polynomial a of degree < N enters as the M points z_j = a_j + i a_(j+M). Node (d, b) of the
/// tree, b < 2^d, holds M / 2^d values: residues modulo X^(M/2^d) - zeta(d, b); zeta(0, 0) = i,
/// w(d, b) = sqrt(zeta(d, b)), zeta(d+1, 2b) = w, zeta(d+1, 2b+1) = -w.
struct NegacyclicFft {
  /// log_n in 3..12.
  explicit NegacyclicFft(u32 log_n);

  u32 log_n = 0;
  u32 points() const { return u32(1) << (log_n - 1); }
  /// twiddles[2^d + b] = w(d, b), d < log2 M; w(d, 2b+1) = i w(d, 2b) to the bit. Entry 0 unused.
  std::vector<Complex> twiddles;
  /// roots[j] = exp(i pi j / N), j < 2N, symmetric to the bit in all octants.
  std::vector<Complex> roots;
  /// Leaf f evaluates at exp(i pi exponents[f] / N); exponents[f] = 1 mod 4.
  std::vector<u32> exponents;
};

}  // namespace crenel::ring
