#include <algorithm>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/kernels/linear_combination.cuh"

namespace crenel::backend::cuda {
namespace {

using Scalars = device::LimbScalars;

u32 halves_of(const Scalars& s, u32 limbs) {
  return std::equal(s.low, s.low + limbs, s.high) ? 0 : 1;
}

void put_words(u32* words, const Scalars& s, u32 limbs, u32 halves) {
  for (u32 l = 0; l < limbs; ++l) {
    words[l << halves] = s.low[l];
    if (halves) words[2 * l + 1] = s.high[l];
  }
}

}  // namespace

// As many terms a launch as its arguments hold; a further launch adds to what `out` has.
void CudaPolyKernels::do_linear_combination(Stream& stream, View out, std::span<const ConstView> in,
                                            std::span<const Scalars> scalars,
                                            const Scalars* constant) {
  const u32 limbs = out.limbs.size();
  CombinationArgs args = {};
  args.primes = tables_.primes;
  args.out = poly(out);
  args.log_n = out.shape.log_n;
  args.components = out.shape.components;
  args.constant = kNoConstant;
  args.prime = prime_bytes(out.limbs);
  u32 used = 0;
  const auto flush = [&] {
    const auto cost = [&] {
      return traffic::elementwise("linear_combination", traffic::Work::elementwise,
                                  traffic::extent(out), args.terms, args.terms);
    };
    launch(stream, cost, cuda::linear_combination,
           dim3(divide_up(out.ring_dim(), 4 * kElementThreads), limbs, out.shape.polys()),
           kElementThreads, 0, args);
    args.constant = kNoConstant;
    args.terms = used = 0;
  };
  const auto add = [&](const Poly<const u32>& from, const Scalars& s) {
    const u32 halves = halves_of(s, limbs), words = limbs << halves;
    if (args.terms == kCombinationTerms || used + words > kCombinationWords) {
      flush();
      Scalars one;
      std::fill_n(one.low, limbs, 1), std::fill_n(one.high, limbs, 1);
      args.term[args.terms++] = {
          {args.out.data, args.out.component_stride, args.out.batch_stride}, used, 0};
      put_words(args.words, one, limbs, 0);
      used = limbs;
    }
    args.term[args.terms++] = {from, used, halves};
    put_words(args.words + used, s, limbs, halves);
    used += words;
  };
  if (constant != nullptr) {
    args.constant = 0;
    args.constant_halves = halves_of(*constant, limbs);
    used = limbs << args.constant_halves;
    put_words(args.words, *constant, limbs, args.constant_halves);
  }
  // All inputs that are `out` itself are one term, of the first launch.
  Scalars own;
  bool in_place = false;
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (in[k].data != out.data) continue;
    in_place = true;
    for (u32 l = 0; l < limbs; ++l) {
      const u32 q = ring().modulus(out.limbs[l]).q;
      own.low[l] = math::add_mod<u32>(own.low[l], scalars[k].low[l], q);
      own.high[l] = math::add_mod<u32>(own.high[l], scalars[k].high[l], q);
    }
  }
  if (in_place) add(poly(ConstView(out)), own);
  for (std::size_t k = 0; k < in.size(); ++k)
    if (in[k].data != out.data) add(poly(in[k]), scalars[k]);
  flush();
}

}  // namespace crenel::backend::cuda
