#include "rns/tables.h"

#include <algorithm>

namespace crenel::rns {
namespace {

using math::make_shoup;
using math::Modulus;
using math::mul_mod;

// prod of the primes in `set`, except id `skip`, modulo m.
template <class W>
W product_mod(const Moduli<W>& moduli, const LimbSet& set, const Modulus<W>& m, int skip = -1) {
  W product = 1;
  for (u32 k = 0; k < set.size(); ++k)
    if (static_cast<int>(set[k]) != skip)
      product = mul_mod<W>(product, static_cast<W>(moduli[set[k]].q % m.q), m);
  return product;
}

// a + b, saturated at the largest value.
template <class T>
T saturating_add(T a, T b) {
  const T s = a + b;
  return s < a ? ~T(0) : s;
}

// See BaseConversion::lazy_terms.
template <class W>
u32 count_lazy_terms(const Moduli<W>& moduli, const BaseConversion<W>& c) {
  using Wide = math::Wide<W>;
  const u32 n = c.source_size();
  for (u32 terms = n; terms > 1; --terms) {
    bool fits = true;
    for (u32 i = 0; fits && i < c.destination.size(); ++i) {
      const W p = moduli[c.destination[i]].q;
      for (u32 first = 0; fits && first < n; first += terms) {
        Wide sum = p;
        for (u32 j = first; j < std::min(n, first + terms); ++j)
          sum = saturating_add<Wide>(sum, Wide(c.matrix[i * n + j]) * (moduli[c.source[j]].q - 1));
        fits = sum != ~Wide(0);
      }
    }
    if (fits) return terms;
  }
  return 1;
}

}  // namespace

template <class W>
BaseConversion<W> make_base_conversion(const Moduli<W>& moduli, const LimbSet& source,
                                       const LimbSet& destination, const LimbSet& source_factor) {
  BaseConversion<W> c;
  c.source = source;
  c.destination = destination;
  const u32 n = source.size();
  for (u32 j = 0; j < n; ++j) {
    const auto& d = moduli[source[j]];
    const W hat = product_mod<W>(moduli, source, d, static_cast<int>(source[j]));
    const W factor = product_mod<W>(moduli, source_factor, d);
    c.source_scale.push_back(
        make_shoup<W>(mul_mod<W>(math::inverse_mod<W>(hat, d), factor, d), d.q));
    c.half.push_back(static_cast<W>((d.q - 1) / 2));
  }
  for (u32 i = 0; i < destination.size(); ++i) {
    const auto& p = moduli[destination[i]];
    W correction = 0;
    for (u32 j = 0; j < n; ++j) {
      const W hat = product_mod<W>(moduli, source, p, static_cast<int>(source[j]));
      c.matrix.push_back(hat);
      const W term = mul_mod<W>(hat, static_cast<W>(c.half[j] % p.q), p);
      correction = math::add_mod<W>(correction, term, p.q);
    }
    c.offset.push_back(math::neg_mod<W>(correction, p.q));
  }
  c.lazy_terms = n == 0 ? 0 : count_lazy_terms<W>(moduli, c);
  return c;
}

template <class W>
ModUp<W> make_mod_up(const Moduli<W>& moduli, const LimbSet& window, const LimbSet& special,
                     u32 alpha) {
  ModUp<W> m;
  m.input = window;
  m.output = window.concat(special);
  for (u32 i = 0; i < window.size();) {
    const u32 block = window[i] / alpha;
    typename ModUp<W>::Digit digit;
    LimbSet limbs;
    digit.first = i;
    for (; i < window.size() && window[i] / alpha == block; ++i) limbs.push_back(window[i]);
    digit.count = limbs.size();
    digit.conversion = make_base_conversion<W>(moduli, limbs, m.output.minus(limbs));
    m.digits.push_back(std::move(digit));
  }
  return m;
}

template <class W>
Divide<W> make_divide(const Moduli<W>& moduli, const LimbSet& input, const LimbSet& output) {
  Divide<W> d;
  d.input = input;
  d.output = output;
  d.dropped = input.minus(output);
  d.added = output.minus(input);
  d.conversion = make_base_conversion<W>(moduli, d.dropped, output, d.added);
  for (u32 i = 0; i < output.size(); ++i) {
    const auto& p = moduli[output[i]];
    const W inverse = math::inverse_mod<W>(product_mod<W>(moduli, d.dropped, p), p);
    const W scale = d.added.contains(output[i])
                        ? W(0)
                        : mul_mod<W>(inverse, product_mod<W>(moduli, d.added, p), p);
    d.result_scale.push_back(make_shoup<W>(inverse, p.q));
    d.input_scale.push_back(make_shoup<W>(scale, p.q));
  }
  return d;
}

#define CRENEL_RNS_INSTANTIATE(W)                                                          \
  template BaseConversion<W> make_base_conversion<W>(const Moduli<W>&, const LimbSet&,     \
                                                     const LimbSet&, const LimbSet&);      \
  template ModUp<W> make_mod_up<W>(const Moduli<W>&, const LimbSet&, const LimbSet&, u32); \
  template Divide<W> make_divide<W>(const Moduli<W>&, const LimbSet&, const LimbSet&);
CRENEL_RNS_INSTANTIATE(u32)
CRENEL_RNS_INSTANTIATE(u64)
#undef CRENEL_RNS_INSTANTIATE

}  // namespace crenel::rns
