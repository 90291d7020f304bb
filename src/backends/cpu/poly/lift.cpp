// Residues of one or two primes to signed integers.
#include <algorithm>

#include "backends/cpu/parallel.h"
#include "backends/cpu/poly/kernels.h"

namespace crenel::backend::cpu {
namespace {

// All ones when x > bound, else zero: no branch, since samples are made of secrets until they are
// complete, and nothing says here that they are.
i64 above(i64 x, i64 bound) { return (bound - x) >> 63; }

void lift_one(i64* values, const u32* x, u64 n, u32 q) {
  for (u64 i = 0; i < n; ++i) values[i] = i64(x[i]) - (i64(q) & above(x[i], q / 2));
}

// x0 + q0 t with t = (x1 - x0) / q0 mod q1, then the representative nearest to zero.
void lift_two(i64* values, const u32* x0, const u32* x1, u64 n, u32 q0, u32 q1, Shoup q0_inverse,
              Shoup one) {
  const i64 product = static_cast<i64>(u64(q0) * q1), half = product / 2;
  for (u64 i = 0; i < n; ++i) {
    const u32 difference = math::sub_mod<u32>(x1[i], math::mul_shoup<u32>(x0[i], one, q1), q1);
    const u32 t = math::mul_shoup<u32>(difference, q0_inverse, q1);
    const i64 x = static_cast<i64>(u64(q0) * t + x0[i]);
    values[i] = x - (product & above(x, half));
  }
}

}  // namespace

void CpuPolyKernels::do_lift_signed(Stream&, i64* values, ConstView in) {
  const u64 n = in.ring_dim(), piece = std::min<u64>(n, 4096), pieces = n / piece;
  const u32 components = in.shape.components, id0 = in.limbs[0];
  const bool two = in.limbs.size() == 2;
  const auto& m0 = ring().modulus(id0);
  const auto& m1 = ring().modulus(two ? in.limbs[1] : id0);
  const Shoup inverse =
      two ? math::make_shoup<u32>(math::inverse_mod<u32>(m0.q % m1.q, m1), m1.q) : Shoup{};
  const Shoup one = math::make_shoup<u32>(1 % m1.q, m1.q);
  parallel_for(in.shape.polys() * pieces, 4 * in.words(), [&](u64 i) {
    const u32 poly = static_cast<u32>(i / pieces), b = poly / components, c = poly % components;
    const u64 at = i % pieces * piece;
    i64* const to = values + poly * n + at;
    if (two)
      lift_two(to, in.limb(b, c, 0) + at, in.limb(b, c, 1) + at, piece, m0.q, m1.q, inverse, one);
    else
      lift_one(to, in.limb(b, c, 0) + at, piece, m0.q);
  });
}

}  // namespace crenel::backend::cpu
