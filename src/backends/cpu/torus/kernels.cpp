// Bootstrapping: start, steps, extraction.
#include "backends/cpu/torus/kernels.h"

#include <algorithm>

#include "backends/cpu/parallel.h"
#include "crenel/core/watch.h"

namespace crenel::backend::cpu {
namespace {

constexpr u32 kGroupRows = 8;
/// What the rows of a group may take of L2, so that they stay there while the key passes.
constexpr u64 kGroupBytes = u64(640) << 10;

std::unique_ptr<TorusEngine> make_engine(const TorusPlan& plan, Isa isa) {
  if (plan.arithmetic != device::Arithmetic::exact) return make_transform_engine(plan, isa);
  // one-lane fused multiplications may be calls of the C library: integers are faster then
  if (device::transform_is_exact(plan) && torus_table(isa).lanes > 1)
    return make_transform_engine(plan, isa);
  return make_exact_engine(plan, isa);
}

}  // namespace

CpuTorusKernels::CpuTorusKernels(TorusPlan wanted, Isa isa)
    : TorusKernels(std::move(wanted)),
      table_(torus_table(isa)),
      sample_(*isa_table(isa).sample),
      engine_(make_engine(plan(), isa)) {}

u64 CpuTorusKernels::bootstrap_key_bytes() const {
  return plan().lwe_dim * engine_->element_bytes();
}

void CpuTorusKernels::do_load_bootstrap_key(Stream& stream, void* key, u32 first, u32 count,
                                            const i64* polys) {
  const u64 words = plan().key_polys() * plan().ring_dim();
  const auto work = stream.allocate(thread_count() * engine_->shared_bytes());
  parallel_for_workers(count, count * words * 16, [&](u64 i, u32 worker) {
    engine_->load(static_cast<u8*>(key) + (first + i) * engine_->element_bytes(), polys + i * words,
                  work.as<u8>() + worker * engine_->shared_bytes());
  });
}

u32 CpuTorusKernels::exponent(u32 x) const {
  const u32 log_two_n = plan().log_n + 1, log_q = plan().log_lwe_modulus;
  const u64 mask = (u64(1) << log_two_n) - 1;
  if (log_q <= log_two_n) return static_cast<u32>((u64(x) << (log_two_n - log_q)) & mask);
  const u32 shift = log_q - log_two_n;
  return static_cast<u32>(((u64(x) + (u64(1) << (shift - 1))) >> shift) & mask);
}

void CpuTorusKernels::start(i64* acc, const u32* in, const LutView& luts, const u32* index) const {
  const u64 n = plan().ring_dim();
  const i64 q = static_cast<i64>(plan().modulus);
  std::fill_n(acc, plan().glwe_dim * n, i64(0));
  for (u32 j = 0; j < plan().slots; ++j) {
    const u64* table = luts.polys + (index ? index[j] : 0) * n;
    i64* to = acc + (plan().glwe_dim + j) * n;
    const u64 e = exponent(in[plan().lwe_dim + j]);
    for (u64 c = 0; c < n; ++c) {
      const u64 from = (c + e) & (2 * n - 1);  // X^(-e) moves coefficient c + e to c
      i64 x = static_cast<i64>(table[from & (n - 1)]);
      if (x > q / 2) x -= q;
      to[c] = from < n ? x : -x;
    }
  }
}

void CpuTorusKernels::extract(u64* out, const i64* acc, const LutView& luts,
                              const u32* index) const {
  const u64 n = plan().ring_dim(), q = plan().modulus;
  const u32 log_switch = plan().log_switch_modulus;
  const auto residue = [&](i64 x) {
    if (plan().path == device::NoisePath::raising) return static_cast<u64>(x) & (q - 1);
    return x < 0 ? static_cast<u64>(x) + q : static_cast<u64>(x);
  };
  const auto switched = [&](u64 x) {
    return low_bits(static_cast<u64>(((static_cast<u128>(x) << log_switch) + q / 2) / q),
                    log_switch);
  };
  for (u64 s = 0; s < luts.outputs; ++s, out += plan().extracted_words()) {
    const u64 i = s * (n / luts.outputs);
    for (u32 t = 0; t < plan().glwe_dim; ++t) {
      const i64* const from = acc + t * n;
      for (u64 c = 0; c <= i; ++c) out[t * n + c] = switched(residue(from[i - c]));
      for (u64 c = i + 1; c < n; ++c) out[t * n + c] = switched(residue(-from[n + i - c]));
    }
    for (u32 j = 0; j < plan().slots; ++j) {
      const u64 x =
          residue(acc[(plan().glwe_dim + j) * n + i]) + luts.offsets[index ? index[j] : 0];
      out[plan().extracted_dim() + j] = switched(x >= q ? x - q : x);
    }
  }
}

u32 CpuTorusKernels::group_rows() const {
  const u64 rows = kGroupBytes / (acc_bytes() + engine_->row_bytes());
  return static_cast<u32>(std::clamp<u64>(rows, 1, kGroupRows));
}

void CpuTorusKernels::rotate_group(u64* out, const u32* in, u64 first, u32 rows, const void* key,
                                   const LutView& luts, u8* work) const {
  i64* acc[kGroupRows];
  u8* scratch[kGroupRows];
  const u32* row[kGroupRows];
  const u32* index[kGroupRows];
  u8* const shared = work + group_rows() * (acc_bytes() + engine_->row_bytes());
  for (u32 r = 0; r < rows; ++r) {
    u8* memory = work + r * (acc_bytes() + engine_->row_bytes());
    acc[r] = reinterpret_cast<i64*>(memory);
    scratch[r] = memory + acc_bytes();
    row[r] = in + (first + r) * plan().words();
    index[r] = luts.index ? luts.index + (first + r) * plan().slots : nullptr;
    start(acc[r], row[r], luts, index[r]);
  }
  for (u32 i = 0; i < plan().lwe_dim; ++i) {
    watch::point();
    // a row whose exponent is 0 stands still: X^0 - 1 = 0
    i64* moving[kGroupRows];
    u8* moving_scratch[kGroupRows];
    u32 e[kGroupRows], count = 0;
    for (u32 r = 0; r < rows; ++r) {
      e[count] = exponent(row[r][i]);
      moving[count] = acc[r], moving_scratch[count] = scratch[r];
      count += e[count] != 0;
    }
    if (count != 0)
      engine_->step(moving, e, count, static_cast<const u8*>(key) + i * engine_->element_bytes(),
                    i + 1 < plan().lwe_dim, moving_scratch, shared);
  }
  for (u32 r = 0; r < rows; ++r)
    extract(out + (first + r) * luts.outputs * plan().extracted_words(), acc[r], luts, index[r]);
}

void CpuTorusKernels::do_blind_rotate(Stream& stream, const LweView& out, const ConstLweView& in,
                                      const void* key, const LutView& luts) {
  const u32 batch = static_cast<u32>(in.shape.rows);
  const u32 threads = std::min(thread_count(), batch);
  // equal groups, as large as the threads allow
  const u32 groups = std::max(threads, (batch + group_rows() - 1) / group_rows());
  const auto work = stream.allocate(thread_count() * group_bytes());
  parallel_for_workers(
      groups, u64(batch) * plan().lwe_dim * plan().ring_dim(), [&](u64 g, u32 worker) {
        const u64 first = g * batch / groups, end = (g + 1) * batch / groups;
        rotate_group(out.as<u64>(), in.as<const u32>(), first, static_cast<u32>(end - first), key,
                     luts, work.as<u8>() + worker * group_bytes());
      });
}

}  // namespace crenel::backend::cpu
