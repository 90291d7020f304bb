#include <algorithm>
#include <bit>

#include "backends/cuda/torus/device/fft_field.cuh"
#include "backends/cuda/torus/device/passes.cuh"
#include "backends/cuda/torus/host/instances.h"

namespace crenel::backend::cuda::torus {
namespace {

constexpr std::size_t kBlockReserve = 1 << 10;

u32 twiddle_count(const RotateInstance& instance, u32 log_points) {
  const PassPlan plan(log_points, instance.rmax);
  return instance.fft ? twiddle_offset<true>(plan, plan.count)
                      : twiddle_offset<false>(plan, plan.count);
}

}  // namespace

bool RotateInstance::serves(const device::TorusPlan& plan, bool by_fft) const {
  const bool raised = plan.path == device::NoisePath::raising;
  if (fft != by_fft || (!fft && limbs != plan.primes.size()) || raising != raised ||
      ternary != (plan.secret == device::LweSecret::ternary) || pieces != plan.digit_pieces() ||
      (polys != 0 && polys != plan.polys()) || (lp != 0 && lp != log_points(plan)) ||
      plan.polys() % og != 0)
    return false;
  // Sums that live in registers from digit to digit take a thread each.
  if (staged && (plan.polys() / og) << log_points(plan) > threads * tiles) return false;
  // Signed words hold the accumulator, its sums, and the operands of the products.
  const u64 acc_bound = acc_bytes == 8 ? u64(1) << 62 : u64(1) << 30;
  if (plan.modulus > acc_bound) return false;
  if (operand_bytes == 8) return true;
  if (pieces == 2 && plan.digits != 1) return false;                // see Cut
  if (fft && pieces == 1 && plan.modulus >> 51 != 0) return false;  // see Accumulator
  u64 operand = plan.modulus / 2;
  if (!raised) {
    operand = (operand >> (plan.base_log * plan.digits)) + 1;
    if (plan.digits > 1) operand = std::max(operand, u64(1) << (plan.base_log - 1));
  }
  for (const u64 p : plan.primes)
    if (!by_fft && operand >= p) return false;
  return operand < u64(1) << 30;
}

std::size_t RotateInstance::work_bytes(const device::TorusPlan& plan, u32 group) const {
  const u64 operands = staged ? 1 : plan.operands();
  return operands * plan.polys() * group * element_bytes << log_points(plan);
}

std::size_t RotateInstance::shared_bytes(const device::TorusPlan& plan, u32 group,
                                         bool spilled) const {
  const u64 acc = u64(plan.polys()) * group * acc_bytes * (plan.ring_dim() + pad);
  const u64 exponents = 16 * ((group + 3) / 4);
  const u64 tables = fft ? FftField<Accumulator<true, i32>>::table_bytes(
                               plan.log_n, twiddle_count(*this, log_points(plan)))
                         : 0;
  return (spilled ? 0 : work_bytes(plan, group)) + acc + exponents + tables;
}

u32 RotateInstance::largest_group(const device::TorusPlan& plan, std::size_t shared) const {
  const u32 outs = plan.polys() / og;
  // Of what a multiprocessor has, the driver takes 1 KiB a block.
  const std::size_t room = (shared + kBlockReserve) / blocks - kBlockReserve;
  u32 group = 0;
  for (u32 g = bt; g <= 32 * bt; g += bt) {
    // A warp must not be split between outputs, and staged sums need a thread each.
    const u32 parts = outs * (g / bt);
    const u64 need = staged ? (u64(parts) << log_points(plan)) / tiles
                            : parts * std::min(32u, 1u << log_points(plan));
    if (need > threads || shared_bytes(plan, g, false) > room) break;
    group = g;
  }
  return group;
}

u32 RotateInstance::log_tile(const device::TorusPlan& plan, u32 group) const {
  const u32 parts = plan.polys() / og * (group / bt);
  if (staged) return log_points(plan) - (std::bit_width(tiles) - 1);
  const u32 most = std::bit_width(threads / parts) - 1;
  return std::min(most, log_points(plan));
}

}  // namespace crenel::backend::cuda::torus
