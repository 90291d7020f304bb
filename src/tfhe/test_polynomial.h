// Functions on the torus as test polynomials: v with coefficient v_f the value at phase f of 2N
// steps, f < N; blind rotation reads -v_(f - N) at f >= N.
#pragma once

#include <span>
#include <vector>

#include "device/torus/kernels.h"

namespace crenel::tfhe {

/// Coefficients and offset canonical modulo Q.
struct TestPolynomial {
  std::vector<u64> coefficients;  ///< [N]
  u64 offset = 0;
};

/// round(x Q / y) modulo Q, any sign of x; |x| < 2^63, 0 < y < 2^63.
u64 scaled_to_modulus(i64 x, u64 y, u64 modulus);

/// -value in the window of N phases from `start` (below 2N), +value outside, plus `offset`; both
/// canonical modulo Q.
TestPolynomial window_polynomial(const device::TorusPlan& plan, u32 start, u64 value, u64 offset);

/// table[m] Q / out_modulus for phases nearest to message m < p / 2 at m 2N / p; table.size() = p
/// / 2. The half window below phase 0 reads table[0] too. Messages m - p / 2 give sum - table[m].
TestPolynomial table_polynomial(const device::TorusPlan& plan, u32 p, std::span<const u64> table,
                                u32 out_modulus, u64 sum = 0);

/// The phase f itself in [N/2, 3N/2), as f 2^log_range / 2N of 2^log_modulus (OpenFHE's f2 of
/// EvalFloor): what stands in the low log_range bits of a phase modulo 2^log_modulus.
TestPolynomial ramp_polynomial(const device::TorusPlan& plan, u32 log_range, u32 log_modulus);

/// [polynomial][N], then [polynomial] their offsets: what a context brings to its device.
std::vector<u64> table_words(std::span<const TestPolynomial> polynomials);
/// The view of such an array on the device; `index`: device memory, or null.
device::LutView lut_view(const device::TorusPlan& plan, const device::Buffer& tables,
                         const device::Buffer* index = nullptr);

}  // namespace crenel::tfhe
