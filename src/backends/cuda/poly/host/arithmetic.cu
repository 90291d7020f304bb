#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/kernels/elementwise.cuh"

namespace crenel::backend::cuda {
namespace {

using View = ring::PolyView<u32>;
using ConstView = ring::PolyView<const u32>;

ElementArgs arguments(const RingTables& tables, const View& out, const ConstView& a,
                      const ConstView& b) {
  ElementArgs args = {};
  args.primes = tables.primes;
  args.out = poly(out);
  args.a = poly(a);
  args.b = broadcast_poly(b);
  args.log_n = out.shape.log_n;
  args.components = out.shape.components;
  args.prime = prime_bytes(out.limbs);
  return args;
}

dim3 element_grid(const View& out) {
  return {divide_up(out.ring_dim(), 4 * kElementThreads * kElementUnroll), out.limbs.size(),
          out.shape.polys()};
}

template <BinaryOp Op>
void run(Stream& stream, const char* name, const RingTables& tables, const View& out,
         const ConstView& a, const ConstView& b) {
  constexpr bool kMul = Op == BinaryOp::mul || Op == BinaryOp::mul_add;
  const auto cost = [&] {
    return traffic::elementwise(name, traffic::Work::elementwise, traffic::extent(out),
                                Op == BinaryOp::mul_add ? 3 : 2, kMul);
  };
  launch(stream, cost, binary<Op>, element_grid(out), kElementThreads, 0,
         arguments(tables, out, a, b));
}

template <ScalarOp Op>
void run(Stream& stream, const char* name, const RingTables& tables, const View& out,
         const ConstView& a, const ScalarArgs& scalars) {
  constexpr bool kMul = Op == ScalarOp::mul || Op == ScalarOp::mul_add;
  const auto cost = [&] {
    return traffic::elementwise(name, traffic::Work::elementwise, traffic::extent(out),
                                Op == ScalarOp::mul_add ? 2 : 1, kMul);
  };
  launch(stream, cost, scalar<Op>, element_grid(out), kElementThreads, 0,
         arguments(tables, out, a, a), scalars);
}

// The scalars of the view's limbs, times R when they will be multiplied with.
ScalarArgs scalar_args(const ring::Ring& ring, const View& out, const device::LimbScalars& scalars,
                       bool montgomery) {
  ScalarArgs args = {};
  for (u32 l = 0; l < out.limbs.size(); ++l) {
    const math::Modulus<u32>& m = ring.modulus(out.limbs[l]);
    args.low[l] = montgomery ? math::mul_mod<u32>(scalars.low[l], m.r, m) : scalars.low[l];
    args.high[l] = montgomery ? math::mul_mod<u32>(scalars.high[l], m.r, m) : scalars.high[l];
  }
  return args;
}

}  // namespace

void CudaPolyKernels::do_add(Stream& stream, View out, ConstView a, ConstView b) {
  run<BinaryOp::add>(stream, "add", tables_, out, a, b);
}

void CudaPolyKernels::do_sub(Stream& stream, View out, ConstView a, ConstView b) {
  run<BinaryOp::sub>(stream, "sub", tables_, out, a, b);
}

void CudaPolyKernels::do_mul(Stream& stream, View out, ConstView a, ConstView b) {
  run<BinaryOp::mul>(stream, "mul", tables_, out, a, b);
}

void CudaPolyKernels::do_mul_add(Stream& stream, View out, ConstView a, ConstView b) {
  run<BinaryOp::mul_add>(stream, "mul_add", tables_, out, a, b);
}

void CudaPolyKernels::do_neg(Stream& stream, View out, ConstView a) {
  run<ScalarOp::neg>(stream, "neg", tables_, out, a, ScalarArgs{});
}

void CudaPolyKernels::do_mul_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) {
  run<ScalarOp::mul>(stream, "mul_scalar", tables_, out, a,
                     scalar_args(ring(), out, scalars, true));
}

void CudaPolyKernels::do_mul_add_scalar(Stream& stream, View out, ConstView a,
                                        const Scalars& scalars) {
  run<ScalarOp::mul_add>(stream, "mul_add_scalar", tables_, out, a,
                         scalar_args(ring(), out, scalars, true));
}

void CudaPolyKernels::do_add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) {
  run<ScalarOp::add>(stream, "add_scalar", tables_, out, a,
                     scalar_args(ring(), out, scalars, false));
}

void CudaPolyKernels::do_tensor(Stream& stream, View out, ConstView a, ConstView b) {
  ElementArgs args = arguments(tables_, out, a, b);
  args.b = poly(b);
  const auto cost = [&] { return traffic::tensor(traffic::extent(out)); };
  launch(stream, cost, cuda::tensor,
         dim3(divide_up(out.ring_dim(), 4 * kElementThreads), out.limbs.size(), out.shape.batch),
         kElementThreads, 0, args);
}

void CudaPolyKernels::do_tensor_square(Stream& stream, View out, ConstView a,
                                       const Scalars* doubled) {
  const ElementArgs args = arguments(tables_, out, a, a);
  const ScalarArgs scalars = doubled ? scalar_args(ring(), out, *doubled, false) : ScalarArgs{};
  const auto cost = [&] { return traffic::tensor_square(traffic::extent(out)); };
  launch(stream, cost, doubled ? cuda::tensor_square<true> : cuda::tensor_square<false>,
         dim3(divide_up(out.ring_dim(), 4 * kElementThreads), out.limbs.size(), out.shape.batch),
         kElementThreads, 0, args, scalars);
}

}  // namespace crenel::backend::cuda
