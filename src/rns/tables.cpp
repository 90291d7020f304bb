#include "rns/tables.h"

#include <algorithm>
#include <bit>

namespace crenel::rns {
namespace {

using math::make_shoup;
using math::Modulus;
using math::mul_mod;

// prod of the primes in `set`, except id `skip`, modulo m.
u32 product_mod(const Moduli& moduli, const LimbSet& set, const Modulus<u32>& m, int skip = -1) {
  u32 product = 1;
  for (u32 k = 0; k < set.size(); ++k)
    if (static_cast<int>(set[k]) != skip)
      product = mul_mod<u32>(product, static_cast<u32>(moduli[set[k]].q % m.q), m);
  return product;
}

// a + b, saturated at the largest value.
u64 saturating_add(u64 a, u64 b) {
  const u64 s = a + b;
  return s < a ? ~u64(0) : s;
}

// 2^56 times up to 128 sources.
constexpr u32 kMaxReciprocalShift = 56;
static_assert(kMaxLimbs <= 128);

// See BaseConversion::lazy_terms.
u32 count_lazy_terms(const Moduli& moduli, const BaseConversion& c) {
  const u32 n = c.source_size();
  for (u32 terms = n; terms > 1; --terms) {
    bool fits = true;
    for (u32 i = 0; fits && i < c.destination.size(); ++i) {
      const u32 p = moduli[c.destination[i]].q;
      for (u32 first = 0; fits && first < n; first += terms) {
        u64 sum = u64(p) * (1 + 2 * c.largest_quotient());
        for (u32 j = first; j < std::min(n, first + terms); ++j)
          sum = saturating_add(sum, u64(c.matrix[i * n + j]) * (moduli[c.source[j]].q - 1));
        fits = sum != ~u64(0);
      }
    }
    if (fits) return terms;
  }
  return 1;
}

// The shift is as large as words of 31 bits and sums of many sources in 63 bits allow.
void add_reciprocals(const Moduli& moduli, BaseConversion& c) {
  u32 least = moduli[c.source[0]].q;
  for (u32 j = 1; j < c.source_size(); ++j) least = std::min(least, moduli[c.source[j]].q);
  c.shift = std::min<u32>(kMaxReciprocalShift, 30 + static_cast<u32>(std::bit_width(least)));
  for (u32 j = 0; j < c.source_size(); ++j)
    c.reciprocal.push_back(static_cast<u32>((u64(1) << c.shift) / moduli[c.source[j]].q));
  for (u32 i = 0; i < c.destination.size(); ++i)
    c.product.push_back(product_mod(moduli, c.source, moduli[c.destination[i]]));
}

}  // namespace

BaseConversion make_base_conversion(const Moduli& moduli, const LimbSet& source,
                                    const LimbSet& destination, const LimbSet& source_factor,
                                    Quotient quotient) {
  BaseConversion c;
  c.source = source;
  c.destination = destination;
  const u32 n = source.size();
  for (u32 j = 0; j < n; ++j) {
    const auto& d = moduli[source[j]];
    const u32 hat = product_mod(moduli, source, d, static_cast<int>(source[j]));
    const u32 factor = product_mod(moduli, source_factor, d);
    c.source_scale.push_back(
        make_shoup<u32>(mul_mod<u32>(math::inverse_mod<u32>(hat, d), factor, d), d.q));
    c.half.push_back(static_cast<u32>((d.q - 1) / 2));
  }
  for (u32 i = 0; i < destination.size(); ++i) {
    const auto& p = moduli[destination[i]];
    u32 correction = 0;
    for (u32 j = 0; j < n; ++j) {
      const u32 hat = product_mod(moduli, source, p, static_cast<int>(source[j]));
      c.matrix.push_back(hat);
      const u32 term = mul_mod<u32>(hat, static_cast<u32>(c.half[j] % p.q), p);
      correction = math::add_mod<u32>(correction, term, p.q);
    }
    c.offset.push_back(math::neg_mod<u32>(correction, p.q));
  }
  if (quotient == Quotient::rounded && n > 1) add_reciprocals(moduli, c);
  c.lazy_terms = n == 0 ? 0 : count_lazy_terms(moduli, c);
  return c;
}

BaseConversion rearranged(const Moduli& moduli, const BaseConversion& conversion,
                          const LimbSet& source, const LimbSet& destination) {
  const auto position = [](const LimbSet& limbs, u32 id) {
    const int at = limbs.find(id);
    if (at < 0) throw StateError(cat("base conversion without prime id ", id), {{"id", id}});
    return static_cast<u32>(at);
  };
  BaseConversion c;
  c.source = source;
  c.destination = destination;
  c.shift = conversion.shift;
  for (u32 j = 0; j < source.size(); ++j) {
    const u32 from = position(conversion.source, source[j]);
    c.source_scale.push_back(conversion.source_scale[from]);
    c.half.push_back(conversion.half[from]);
    if (conversion.rounded()) c.reciprocal.push_back(conversion.reciprocal[from]);
  }
  for (u32 i = 0; i < destination.size(); ++i) {
    const u32 row = position(conversion.destination, destination[i]);
    for (u32 j = 0; j < source.size(); ++j)
      c.matrix.push_back(conversion.matrix[row * conversion.source_size() +
                                           position(conversion.source, source[j])]);
    c.offset.push_back(conversion.offset[row]);
    if (conversion.rounded()) c.product.push_back(conversion.product[row]);
  }
  c.lazy_terms = c.source_size() == 0 ? 0 : count_lazy_terms(moduli, c);
  return c;
}

ModUp make_mod_up(const Moduli& moduli, const LimbSet& window, const LimbSet& special, u32 alpha,
                  u32 lead) {
  ModUp m;
  m.input = window;
  m.output = window.concat(special);
  for (u32 i = 0; i < window.size();) {
    const u32 block = (window[i] + lead) / alpha;
    ModUp::Digit digit;
    LimbSet limbs;
    digit.first = i;
    for (; i < window.size() && (window[i] + lead) / alpha == block; ++i)
      limbs.push_back(window[i]);
    digit.count = limbs.size();
    digit.conversion = make_base_conversion(moduli, limbs, m.output.minus(limbs));
    m.digits.push_back(std::move(digit));
  }
  return m;
}

Divide make_divide(const Moduli& moduli, const LimbSet& input, const LimbSet& output) {
  Divide d;
  d.input = input;
  d.output = output;
  d.dropped = input.minus(output);
  d.added = output.minus(input);
  d.conversion = make_base_conversion(moduli, d.dropped, output, d.added, Quotient::rounded);
  for (u32 i = 0; i < output.size(); ++i) {
    const auto& p = moduli[output[i]];
    const u32 inverse = math::inverse_mod<u32>(product_mod(moduli, d.dropped, p), p);
    const u32 scale = d.added.contains(output[i])
                          ? u32(0)
                          : mul_mod<u32>(inverse, product_mod(moduli, d.added, p), p);
    d.result_scale.push_back(make_shoup<u32>(inverse, p.q));
    d.input_scale.push_back(make_shoup<u32>(scale, p.q));
  }
  return d;
}

}  // namespace crenel::rns
