#include "backends/ref/torus/kernels.h"

#include "crenel/core/watch.h"

namespace crenel::backend::ref {
namespace {

// The integer congruent to x modulo q, in [-q/2, q/2).
i64 centred(u64 x, u64 q) {
  return 2 * static_cast<u128>(x) >= q ? static_cast<i64>(x) - static_cast<i64>(q)
                                       : static_cast<i64>(x);
}

// The residue of x modulo 2^base_log in [-B/2, B/2).
i64 low_digit(i64 x, u32 base_log) {
  const i64 base = i64(1) << base_log;
  const i64 r = ((x % base) + base) % base;
  return r >= base / 2 ? r - base : r;
}

}  // namespace

RefTorusKernels::RefTorusKernels(TorusPlan wanted)
    : TorusKernels(std::move(wanted)),
      product_(plan().arithmetic == device::Arithmetic::exact ? make_exact_product(plan())
                                                              : make_approx_product(plan())) {}

u64 RefTorusKernels::bootstrap_key_bytes() const {
  return plan().steps() * product_->element_bytes();
}

void RefTorusKernels::do_load_bootstrap_key(Stream&, void* key, u32 first, u32 count,
                                            const i64* polys) {
  for (u32 i = 0; i < count; ++i) {
    watch::point();
    product_->load(static_cast<u8*>(key) + (u64(first) + i) * product_->element_bytes(),
                   polys + i * plan().key_polys() * plan().ring_dim());
  }
}

u32 RefTorusKernels::exponent(u32 x) const {
  const u64 two_n = 2 * u64(plan().ring_dim()), q = u64(1) << plan().log_lwe_modulus;
  if (q <= two_n) return static_cast<u32>(x * (two_n / q) % two_n);
  return static_cast<u32>((x * two_n + q / 2) / q % two_n);
}

std::vector<i64> RefTorusKernels::operands(const std::vector<u64>& acc) const {
  const TorusPlan& p = plan();
  std::vector<i64> out(p.operands() * acc.size());
  const auto put = [&](u32 digit, u64 k, i64 x) {
    i64* const to = &out[digit * p.digit_pieces() * acc.size() + k];
    if (p.digit_pieces() == 1) {
      *to = x;
      return;
    }
    const u32 log = device::piece_log(p);
    const i64 low = low_digit(x, log);
    to[0] = low, to[acc.size()] = (x - low) / (i64(1) << log);
  };
  for (u64 k = 0; k < acc.size(); ++k) {
    i64 x = centred(acc[k], p.modulus);
    if (p.path == device::NoisePath::raising) {
      out[k] = x;
      continue;
    }
    const i64 base = i64(1) << p.base_log;
    x = (x - low_digit(x, p.base_log)) / base;
    for (u32 d = 0; d + 1 < p.digits; ++d) {
      const i64 digit = low_digit(x, p.base_log);
      put(d, k, digit);
      x = (x - digit) / base;
    }
    put(p.digits - 1, k, x);
  }
  return out;
}

RefTorusKernels::Exponents RefTorusKernels::exponents(const u32* in) const {
  const TorusPlan& p = plan();
  if (p.group != 0) return cut_exponents(in);
  Exponents out;
  for (u32 i = 0; i < p.lwe_dim; ++i) out.steps.push_back({exponent(in[i])});
  for (u32 j = 0; j < p.slots; ++j) out.bodies.push_back(exponent(in[p.lwe_dim + j]));
  return out;
}

RefTorusKernels::Exponents RefTorusKernels::cut_exponents(const u32* in) const {
  const TorusPlan& p = plan();
  const u64 two_n = 2 * u64(p.ring_dim()), q = u64(1) << p.log_switch_modulus;
  const i64 keys = p.sets(), range = static_cast<i64>(q / two_n);  // m, D
  Exponents out;
  i64 cut_off = 0;  // the sum of all u
  for (u32 step = 0; step < p.steps(); ++step) {
    std::vector<i64> x(keys, 0);
    for (u32 set = 0; set < keys; ++set)
      for (u32 l = 0; l < p.group; ++l)
        if (set >> l & 1) x[set] = (x[set] + in[step * p.group + l]) % static_cast<i64>(q);
    std::vector<i64> best;
    i64 least = 0;
    for (u32 cut = 0; cut < keys; ++cut) {
      std::vector<i64> u(keys);
      i64 sum = 0, squares = 0;
      for (u32 set = 0; set < keys; ++set) {
        u[set] = x[set] % range - (x[set] % range > x[cut] % range ? range : 0);
        sum += u[set], squares += u[set] * u[set];
      }
      const i64 cost = keys * squares - sum * sum;
      if (best.empty() || cost < least) best = u, least = cost;
    }
    std::vector<u32> c(keys);
    for (u32 set = 0; set < keys; ++set) {
      c[set] = static_cast<u32>(static_cast<u64>((x[set] - best[set]) / range) % two_n);
      cut_off += best[set];
    }
    out.steps.push_back(std::move(c));
  }
  for (u32 j = 0; j < p.slots; ++j) {
    const i64 turn = keys * static_cast<i64>(q);
    const i64 body = keys * i64(in[p.lwe_dim + j]) - cut_off + keys * range / 2;
    // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a step has at least one key
    out.bodies.push_back(static_cast<u32>((body % turn + turn) % turn / (keys * range)));
  }
  return out;
}

std::vector<u64> RefTorusKernels::rotated(const Exponents& e, const u8* key, const LutView& luts,
                                          const u32* index) const {
  const TorusPlan& p = plan();
  const u64 n = p.ring_dim(), q = p.modulus;
  std::vector<u64> acc(p.polys() * n, 0);
  for (u32 j = 0; j < p.slots; ++j) {
    const u64* table = luts.polys + (index ? index[j] : 0) * n;
    const u64 shift = 2 * n - e.bodies[j];  // X^(-E)
    for (u64 c = 0; c < n; ++c) {
      const u64 at = (c + shift) % (2 * n);
      acc[(p.glwe_dim + j) * n + at % n] = at < n ? table[c] : (q - table[c]) % q;
    }
  }
  std::vector<i128> increment(acc.size());
  for (u32 i = 0; i < p.steps(); ++i) {
    watch::point();
    product_->multiply(increment, operands(acc), key + i * product_->element_bytes(), e.steps[i]);
    for (u64 c = 0; c < acc.size(); ++c) {
      const i128 before = p.accumulates() ? static_cast<i128>(acc[c]) : 0;
      const i128 sum = (before + increment[c]) % static_cast<i128>(q);
      acc[c] = static_cast<u64>(sum < 0 ? sum + static_cast<i128>(q) : sum);
    }
  }
  return acc;
}

void RefTorusKernels::bootstrap_row(const LweView& out, const ConstLweView& in, u64 row,
                                    const u8* key, const LutView& luts) const {
  const TorusPlan& p = plan();
  const u64 n = p.ring_dim(), q = p.modulus;
  const u32* index = luts.index ? luts.index + row * p.slots : nullptr;
  const auto acc =
      rotated(exponents(in.as<const u32>() + row * in.shape.words()), key, luts, index);
  const u32 log_out = out.shape.log_modulus;
  u64 at = row * luts.outputs * out.shape.words();
  const auto put = [&](u64 x) {
    x = low_bits(static_cast<u64>(((static_cast<u128>(x) << log_out) + q / 2) / q), log_out);
    if (out.word_bytes == sizeof(u32))
      out.as<u32>()[at++] = static_cast<u32>(x);
    else
      out.as<u64>()[at++] = x;
  };
  for (u64 s = 0; s < luts.outputs; ++s) {
    const u64 i = s * (n / luts.outputs);
    for (u32 t = 0; t < p.glwe_dim; ++t)
      for (u64 c = 0; c < n; ++c)
        put(c <= i ? acc[t * n + i - c] : (q - acc[t * n + n + i - c]) % q);
    for (u32 j = 0; j < p.slots; ++j) {
      const u64 offset = luts.offsets[index ? index[j] : 0];
      put((acc[(p.glwe_dim + j) * n + i] + offset) % q);
    }
  }
}

void RefTorusKernels::do_blind_rotate(Stream&, const LweView& out, const ConstLweView& in,
                                      const void* key, const LutView& luts) {
  for (u64 row = 0; row < in.shape.rows; ++row)
    bootstrap_row(out, in, row, static_cast<const u8*>(key), luts);
}

}  // namespace crenel::backend::ref
