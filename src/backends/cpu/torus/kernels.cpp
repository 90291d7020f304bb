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
  return plan().steps() * engine_->element_bytes();
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

i64 CpuTorusKernels::cut_exponents(u32* out, const u32* in) const {
  const u32 log_keys = plan().group, keys = 1u << log_keys;
  const u32 log_range = plan().log_switch_modulus - plan().log_n - 1;
  const i64 range = i64(1) << log_range;
  const u64 modulus_mask = (u64(1) << plan().log_switch_modulus) - 1;
  const u32 turn_mask = (2u << plan().log_n) - 1;
  i64 cut_off = 0;
  u64 x[1 << device::kMaxGroup];
  i64 f[1 << device::kMaxGroup];
  x[0] = 0;
  for (u32 step = 0; step < plan().steps(); ++step, in += log_keys, out += keys) {
    for (u32 l = 0; l < log_keys; ++l)
      for (u32 set = 0; set < 1u << l; ++set) x[set | 1u << l] = (x[set] + in[l]) & modulus_mask;
    i64 whole = 0;
    for (u32 set = 0; set < keys; ++set) {
      f[set] = static_cast<i64>(x[set]) & (range - 1);
      whole += f[set];
    }
    // With `above` fractions beyond the cut, whose sum is `sum`, sum u^2 falls by D (2 sum - D
    // above) and sum u by D above: what is left of the cost depends on these alone.
    i64 least = 0, at = 0, taken = 0;
    for (u32 cut = 0; cut < keys; ++cut) {
      i64 above = 0, sum = 0;
      for (u32 set = 0; set < keys; ++set) {
        const i64 beyond = f[set] > f[cut];
        above += beyond, sum += beyond * f[set];
      }
      const i64 total = whole - range * above;
      const i64 cost = keys * range * (range * above - 2 * sum) - total * total;
      if (cut == 0 || cost < least) least = cost, at = f[cut], taken = total;
    }
    cut_off += taken;
    for (u32 set = 0; set < keys; ++set)
      out[set] = static_cast<u32>((x[set] >> log_range) + (f[set] > at)) & turn_mask;
  }
  return cut_off;
}

void CpuTorusKernels::start(i64* acc, const u32* bodies, const LutView& luts,
                            const u32* index) const {
  const u64 n = plan().ring_dim();
  const i64 q = static_cast<i64>(plan().modulus);
  std::fill_n(acc, plan().glwe_dim * n, i64(0));
  for (u32 j = 0; j < plan().slots; ++j) {
    const u64* table = luts.polys + (index ? index[j] : 0) * n;
    i64* to = acc + (plan().glwe_dim + j) * n;
    const u64 e = bodies[j];
    for (u64 c = 0; c < n; ++c) {
      const u64 from = (c + e) & (2 * n - 1);  // X^(-e) moves coefficient c + e to c
      i64 x = static_cast<i64>(table[from & (n - 1)]);
      if (x > q / 2) x -= q;
      to[c] = from < n ? x : -x;
    }
  }
}

template <class Word>
void CpuTorusKernels::extract(Word* out, const i64* acc, const LutView& luts,
                              const u32* index) const {
  const u64 n = plan().ring_dim(), q = plan().modulus;
  const u32 log_out = plan().rests_extracted() ? plan().log_lwe_modulus : plan().log_switch_modulus;
  const auto residue = [&](i64 x) {
    if (plan().path == device::NoisePath::raising) return static_cast<u64>(x) & (q - 1);
    return x < 0 ? static_cast<u64>(x) + q : static_cast<u64>(x);
  };
  const auto switched = [&](u64 x) {
    return static_cast<Word>(
        low_bits(static_cast<u64>(((static_cast<u128>(x) << log_out) + q / 2) / q), log_out));
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
  const u64 rows = kGroupBytes / row_bytes();
  return static_cast<u32>(std::clamp<u64>(rows, 1, kGroupRows));
}

void CpuTorusKernels::rotate_group(const LweView& out, const u32* in, u64 first, u32 rows,
                                   const void* key, const LutView& luts, u8* work) const {
  i64* acc[kGroupRows];
  u8* scratch[kGroupRows];
  const u32* row[kGroupRows];
  const u32* index[kGroupRows];
  u32* exponents[kGroupRows];
  const u32 group = plan().group, sets = plan().sets(), n = plan().lwe_dim;
  u8* const shared = work + group_rows() * (row_bytes() + exponent_bytes());
  for (u32 r = 0; r < rows; ++r) {
    u8* memory = work + r * (row_bytes() + exponent_bytes());
    acc[r] = reinterpret_cast<i64*>(memory);
    scratch[r] = memory + acc_bytes();
    exponents[r] = reinterpret_cast<u32*>(memory + row_bytes());
    row[r] = in + (first + r) * plan().read_words();
    index[r] = luts.index ? luts.index + (first + r) * plan().slots : nullptr;
    u32 bodies[64];
    for (u32 j = 0; j < plan().slots; ++j)
      if (group == 0) bodies[j] = exponent(row[r][n + j]);
    if (group != 0) {
      const i64 cut_off = cut_exponents(exponents[r], row[r]);
      const u32 log_step = group + plan().log_switch_modulus - plan().log_n - 1;  // of m D
      for (u32 j = 0; j < plan().slots; ++j) {
        const i64 body = (i64(row[r][n + j]) << group) - cut_off + (i64(1) << (log_step - 1));
        bodies[j] = static_cast<u32>(body >> log_step) & (2 * plan().ring_dim() - 1);
      }
    }
    start(acc[r], bodies, luts, index[r]);
  }
  for (u32 i = 0; i < plan().steps(); ++i) {
    watch::point();
    // a row whose exponent is 0 stands still: X^0 - 1 = 0
    i64* moving[kGroupRows];
    u8* moving_scratch[kGroupRows];
    u32 e[kGroupRows << device::kMaxGroup], count = 0;
    for (u32 r = 0; r < rows; ++r) {
      if (group != 0)
        std::copy_n(exponents[r] + i * sets, sets, e + count * sets);
      else
        e[count] = exponent(row[r][i]);
      moving[count] = acc[r], moving_scratch[count] = scratch[r];
      count += group != 0 || e[count] != 0;
    }
    if (count != 0)
      engine_->step(moving, e, count, static_cast<const u8*>(key) + i * engine_->element_bytes(),
                    i + 1 < plan().steps(), moving_scratch, shared);
  }
  for (u32 r = 0; r < rows; ++r) {
    const u64 at = (first + r) * luts.outputs * plan().extracted_words();
    if (out.word_bytes == sizeof(u32))
      extract(out.as<u32>() + at, acc[r], luts, index[r]);
    else
      extract(out.as<u64>() + at, acc[r], luts, index[r]);
  }
}

void CpuTorusKernels::do_blind_rotate(Stream& stream, const LweView& out, const ConstLweView& in,
                                      const void* key, const LutView& luts) {
  const u32 batch = static_cast<u32>(in.shape.rows);
  const u32 threads = std::min(thread_count(), batch);
  // equal groups, as large as the threads allow
  const u32 groups = std::max(threads, (batch + group_rows() - 1) / group_rows());
  const auto work = stream.allocate(thread_count() * group_bytes());
  parallel_for_workers(groups, u64(batch) * plan().steps() * plan().ring_dim(),
                       [&](u64 g, u32 worker) {
                         const u64 first = g * batch / groups, end = (g + 1) * batch / groups;
                         rotate_group(out, in.as<const u32>(), first, static_cast<u32>(end - first),
                                      key, luts, work.as<u8>() + worker * group_bytes());
                       });
}

}  // namespace crenel::backend::cpu
