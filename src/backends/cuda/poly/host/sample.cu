#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/kernels/sample.cuh"

namespace crenel::backend::cuda {
namespace {

// Arguments that carry the key of a seed; the host copy is wiped at the end.
struct SeededArgs {
  SampleArgs args = {};

  SeededArgs(const RingTables& tables, const ring::PolyView<u32>& out) {
    args.moduli = tables.moduli;
    args.out = poly(out);
    args.log_n = out.shape.log_n;
    args.components = out.shape.components;
    args.limbs = out.limbs.size();
    args.prime = prime_bytes(out.limbs);
  }
  SeededArgs(const RingTables& tables, const ring::PolyView<u32>& out, const random::Seed& seed,
             random::Nonce nonce)
      : SeededArgs(tables, out) {
    args.state = random::chacha20_state(seed, nonce);
  }
  ~SeededArgs() { random::secure_zero(&args.state, sizeof args.state); }
  SeededArgs(const SeededArgs&) = delete;
  SeededArgs& operator=(const SeededArgs&) = delete;
};

dim3 grid_of(const ring::PolyView<u32>& out, u32 limbs) {
  return {divide_up(out.ring_dim(), 4 * kSampleThreads), limbs, out.shape.polys()};
}

auto cost_of(const char* kernel, const ring::PolyView<u32>& out, u32 read_bytes, u32 times = 1) {
  return [=, extent = traffic::extent(out)] {
    return traffic::sampling(kernel, extent, read_bytes, times);
  };
}

}  // namespace

void CudaPolyKernels::do_sample_uniform(Stream& stream, View out, const random::Seed& seed,
                                        random::Nonce nonce) {
  const SeededArgs seeded(tables_, out, seed, nonce);
  launch(stream, cost_of("sample_uniform", out, 0), cuda::sample_uniform,
         grid_of(out, out.limbs.size()), kSampleThreads, 0, seeded.args);
}

void CudaPolyKernels::do_sample_ternary(Stream& stream, View out, const random::Seed& seed,
                                        random::Nonce nonce) {
  const SeededArgs seeded(tables_, out, seed, nonce);
  launch(stream, cost_of("sample_ternary", out, 0), sample_small<true>, grid_of(out, 1),
         kSampleThreads, 0, seeded.args);
}

void CudaPolyKernels::do_sample_error(Stream& stream, View out, const random::Seed& seed,
                                      random::Nonce nonce) {
  const SeededArgs seeded(tables_, out, seed, nonce);
  launch(stream, cost_of("sample_error", out, 0), sample_small<false>, grid_of(out, 1),
         kSampleThreads, 0, seeded.args);
}

void CudaPolyKernels::do_reduce_signed(Stream& stream, View out, const i64* values) {
  const SeededArgs plain(tables_, out);
  const u32 groups = divide_up(out.limbs.size(), kReducedLimbs);
  launch(stream, cost_of("reduce_signed", out, sizeof(i64), groups), cuda::reduce_signed,
         grid_of(out, groups), kSampleThreads, 0, plain.args, values);
}

}  // namespace crenel::backend::cuda
