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
  return plan().lwe_dim * product_->element_bytes();
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

void RefTorusKernels::bootstrap_row(u64* out, const u32* in, const u8* key, const LutView& luts,
                                    const u32* index) const {
  const TorusPlan& p = plan();
  const u64 n = p.ring_dim(), q = p.modulus;
  std::vector<u64> acc(p.polys() * n, 0);
  for (u32 j = 0; j < p.slots; ++j) {
    const u64* table = luts.polys + (index ? index[j] : 0) * n;
    const u64 shift = 2 * n - exponent(in[p.lwe_dim + j]);  // X^(-E)
    for (u64 c = 0; c < n; ++c) {
      const u64 at = (c + shift) % (2 * n);
      acc[(p.glwe_dim + j) * n + at % n] = at < n ? table[c] : (q - table[c]) % q;
    }
  }
  std::vector<i128> increment(acc.size());
  for (u32 i = 0; i < p.lwe_dim; ++i) {
    watch::point();
    product_->multiply(increment, operands(acc), key + i * product_->element_bytes(),
                       exponent(in[i]));
    for (u64 c = 0; c < acc.size(); ++c) {
      const i128 sum = (static_cast<i128>(acc[c]) + increment[c]) % static_cast<i128>(q);
      acc[c] = static_cast<u64>(sum < 0 ? sum + static_cast<i128>(q) : sum);
    }
  }
  const u32 log_switch = p.log_switch_modulus;
  const auto switched = [&](u64 x) {
    return low_bits(static_cast<u64>(((static_cast<u128>(x) << log_switch) + q / 2) / q),
                    log_switch);
  };
  for (u64 s = 0; s < luts.outputs; ++s, out += p.extracted_words()) {
    const u64 i = s * (n / luts.outputs);
    for (u32 t = 0; t < p.glwe_dim; ++t)
      for (u64 c = 0; c < n; ++c)
        out[t * n + c] = switched(c <= i ? acc[t * n + i - c] : (q - acc[t * n + n + i - c]) % q);
    for (u32 j = 0; j < p.slots; ++j) {
      const u64 offset = luts.offsets[index ? index[j] : 0];
      out[p.extracted_dim() + j] = switched((acc[(p.glwe_dim + j) * n + i] + offset) % q);
    }
  }
}

void RefTorusKernels::do_blind_rotate(Stream&, const LweView& out, const ConstLweView& in,
                                      const void* key, const LutView& luts) {
  for (u64 row = 0; row < in.shape.rows; ++row)
    bootstrap_row(out.as<u64>() + row * luts.outputs * out.shape.words(),
                  in.as<const u32>() + row * in.shape.words(), static_cast<const u8*>(key), luts,
                  luts.index ? luts.index + row * plan().slots : nullptr);
}

}  // namespace crenel::backend::ref
