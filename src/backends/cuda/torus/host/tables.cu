#include <algorithm>

#include "backends/cuda/torus/device/passes.cuh"
#include "backends/cuda/torus/host/tables.h"
#include "ring/fft.h"
#include "ring/ring.h"

namespace crenel::backend::cuda::torus {
namespace {

// From tree order to the order in which passes read.
template <bool EvenOnly, class T>
std::vector<T> in_pass_order(const std::vector<T>& tree, const PassPlan& plan) {
  std::vector<T> ordered(twiddle_offset<EvenOnly>(plan, plan.count));
  for (u32 p = 0; p < plan.count; ++p) {
    const u32 offset = twiddle_offset<EvenOnly>(plan, p), depth = plan.depth[p];
    for (u32 t = 0; t < plan.bits[p]; ++t)
      for (u32 s = 0; s < (1u << t); ++s) {
        if (EvenOnly && (s & 1)) continue;
        for (u32 b = 0; b < (1u << depth); ++b)
          ordered[offset + (twiddle_slot<EvenOnly>(t, s) << depth) + b] =
              tree[(std::size_t(1) << (depth + t)) + (b << t) + s];
      }
  }
  return ordered;
}

u32 half(u32 x, u32 q) { return x % 2 == 0 ? x / 2 : (x + q) / 2; }
u32 montgomery(u32 x, u32 q) { return static_cast<u32>((u64(x) << 32) % q); }

std::vector<Pair> pairs_of(const std::vector<math::ShoupConstant<u32>>& from) {
  std::vector<Pair> pairs;
  for (const auto& c : from) pairs.push_back({c.value, c.quotient});
  return pairs;
}

}  // namespace

TorusTables::TorusTables(const std::shared_ptr<CudaDevice>& device, const device::TorusPlan& plan,
                         bool by_fft)
    : device_(device), by_fft_(by_fft), limbs_(static_cast<u32>(plan.primes.size())) {
  RotateArgs& a = common_;
  a.lwe_dim = plan.lwe_dim;
  a.glwe_dim = plan.glwe_dim;
  a.slots = plan.slots;
  a.polys = plan.polys();
  a.log_n = plan.log_n;
  a.log_points = by_fft ? plan.log_n - 1 : plan.log_n;
  a.log_lwe_modulus = plan.log_lwe_modulus;
  a.log_switch_modulus = plan.log_switch_modulus;
  a.digits = plan.digits;
  a.operands = plan.operands();
  a.piece_log = plan.digit_pieces() == 2 ? device::piece_log(plan) : 0;
  a.base_log = plan.base_log;
  a.ternary = plan.secret == device::LweSecret::ternary;
  a.modulus = plan.modulus;
  a.key_modulus = plan.key_modulus();
  const double q = static_cast<double>(plan.modulus), t = static_cast<double>(a.key_modulus);
  a.key_ratio = q / t;
  if (plan.path == device::NoisePath::raising) {
    while ((u64(1) << a.log_modulus) < plan.modulus) ++a.log_modulus;
  } else {
    for (u32 j = 0; j < plan.digits; ++j)
      a.carry += (i64(1) << (plan.base_log - 1)) << (plan.base_log * j);
  }
  if (by_fft) {
    const ring::NegacyclicFft fft(plan.log_n);
    for (const auto& w : fft.twiddles) complex_tree_.push_back(make_double2(w.re, w.im));
    std::vector<double> cosines;
    for (u32 j = 0; j <= plan.ring_dim() / 2; ++j) cosines.push_back(fft.roots[j].re);
    roots_ = std::make_unique<DeviceBytes>(device, cosines.data(), cosines.size() * sizeof(double));
    a.cosines = reinterpret_cast<const double*>(roots_->data());
    const double points = fft.points();
    a.scale = plan.path == device::NoisePath::raising ? q / t / points : 1.0 / points;
    a.reduces = device::reduces_product(plan);
    a.q = q;
    a.q_inverse = 1.0 / q;
    return;
  }
  const ring::Ring ring(plan.log_n, plan.primes);
  std::vector<u32> turns(2 * limbs_ * plan.ring_dim());
  for (u32 l = 0; l < limbs_; ++l) {
    const auto& tables = ring.prime(l);
    const auto& m = tables.modulus;
    u32 scale = tables.n_inv.value;
    for (u32 other = 0; other < limbs_; ++other)
      if (other != l)
        scale =
            math::mul_mod<u32>(scale, math::inverse_mod<u32>(ring.modulus(other).q % m.q, m), m);
    const auto shoup = math::make_shoup<u32>(scale, m.q);
    a.prime[l] = {m.q, m.q_inv, m.r, {shoup.value, shoup.quotient}};
    forward_tree_[l] = pairs_of(tables.roots);
    inverse_tree_[l] = pairs_of(tables.inverse_roots);
    // Points are at most 2q, keys below q: a sum of so many products stays below q 2^32.
    if (u64(plan.polys()) * plan.digits * 2 * m.q >> 32 != 0) a.folds = 1;
    for (u32 entry = 0; entry < plan.ring_dim(); ++entry) {
      const u32 w = tables.roots[entry].value, inverse = tables.inverse_roots[entry].value;
      u32* const turn = &turns[2 * (entry * limbs_ + l)];
      turn[0] = montgomery(a.ternary ? half(math::add_mod(w, inverse, m.q), m.q) : w, m.q);
      turn[1] = a.ternary ? montgomery(half(math::sub_mod(w, inverse, m.q), m.q), m.q) : 0;
    }
  }
  roots_ = std::make_unique<DeviceBytes>(device, turns.data(), turns.size() * sizeof(u32));
  a.turns = reinterpret_cast<const u32*>(roots_->data());
}

void TorusTables::prepare(u32 rmax) {
  if (ordered_.contains(rmax)) return;
  const PassPlan plan(common_.log_points, rmax);
  Ordered o = {};
  TableBuilder builder;
  if (by_fft_) {
    const auto twiddles = in_pass_order<true>(complex_tree_, plan);
    o.count = static_cast<u32>(twiddles.size());
    o.forward[0] = builder.add(twiddles);
    std::copy_n(twiddles.begin(), twiddle_slots<true>(plan.bits[0]), o.first);
  } else {
    for (u32 l = 0; l < limbs_; ++l) {
      const auto forward = in_pass_order<false>(forward_tree_[l], plan);
      const auto inverse = in_pass_order<false>(inverse_tree_[l], plan);
      o.forward[l] = builder.add(forward);
      o.inverse[l] = builder.add(inverse);
      std::copy_n(forward.begin(), twiddle_slots<false>(plan.bits[0]), o.first_forward[l]);
      std::copy_n(inverse.begin(), twiddle_slots<false>(plan.bits[0]), o.first_inverse[l]);
    }
  }
  o.memory = std::make_unique<DeviceBytes>(device_, builder.bytes().data(), builder.bytes().size());
  ordered_.emplace(rmax, std::move(o));
}

RotateArgs TorusTables::arguments(u32 rmax) const {
  const Ordered& o = ordered_.at(rmax);
  RotateArgs args = common_;
  const u8* base = o.memory->data();
  args.twiddles = reinterpret_cast<const double2*>(base + o.forward[0]);
  args.twiddle_count = o.count;
  std::copy(std::begin(o.first), std::end(o.first), args.first);
  for (u32 l = 0; l < limbs_ && !by_fft_; ++l) {
    args.forward[l] = reinterpret_cast<const Pair*>(base + o.forward[l]);
    args.inverse[l] = reinterpret_cast<const Pair*>(base + o.inverse[l]);
    std::copy_n(o.first_forward[l], kFirstPairs, args.first_forward[l]);
    std::copy_n(o.first_inverse[l], kFirstPairs, args.first_inverse[l]);
  }
  return args;
}

}  // namespace crenel::backend::cuda::torus
