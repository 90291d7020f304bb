#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/kernels/automorphism.cuh"

namespace crenel::backend::cuda {
namespace {

template <bool Add>
void run(Stream& stream, const RingTables& tables, const ring::PolyView<u32>& out,
         const ring::PolyView<const u32>& in, u64 element,
         const ring::PolyView<const u32>* addend) {
  AutomorphismArgs args = {};
  args.primes = tables.primes;
  args.out = poly(out);
  args.in = poly(in);
  if (addend != nullptr) {
    args.addend = poly(*addend);
    args.addend_components = addend->shape.components;
  }
  args.log_n = out.shape.log_n;
  args.components = out.shape.components;
  args.element = static_cast<u32>(element);
  args.inverse_element = static_cast<u32>(ring::galois_inverse(element, out.shape.log_n));
  args.prime = prime_bytes(out.limbs);
  const dim3 grid(divide_up(out.ring_dim(), 4 * kElementThreads), out.limbs.size(),
                  out.shape.polys());
  const bool eval = out.domain == Domain::eval;
  const auto cost = [&] {
    const traffic::Extent extent = traffic::extent(out);
    const u64 component = extent.values() / args.components;
    return traffic::automorphism(extent, extent.values() + args.addend_components * component, Add,
                                 eval, args.inverse_element);
  };
  launch(stream, cost, eval ? automorphism_eval<Add> : automorphism_coeff<Add>, grid,
         kElementThreads, 0, args);
}

}  // namespace

void CudaPolyKernels::do_automorphism(Stream& stream, View out, ConstView in, u64 element) {
  run<false>(stream, tables_, out, in, element, nullptr);
}

void CudaPolyKernels::do_automorphism_add(Stream& stream, View out, ConstView in, u64 element,
                                          const ConstView* addend) {
  run<true>(stream, tables_, out, in, element, addend);
}

}  // namespace crenel::backend::cuda
