// External products in integers: number-theoretic transforms modulo each prime, the Chinese
// remainder, one exact rounding.
#include "backends/ref/torus/kernels.h"
#include "crenel/core/error.h"

namespace crenel::backend::ref {
namespace {

using Words = std::vector<u32>;

class ExactProduct final : public TorusProduct {
 public:
  explicit ExactProduct(const TorusPlan& plan)
      : plan_(plan),
        ring_(std::make_shared<const ring::Ring>(plan.log_n, plan.primes)),
        kernels_(ring_),
        stream_(device::make_ref_device()->make_stream()) {
    const u64 n = plan_.ring_dim();
    monomial_.resize(primes());
    for (u32 l = 0; l < primes(); ++l) {
      Words x(n, 0);
      x[1] = 1;
      monomial_[l] = transform(x, l);
    }
  }

  u64 element_bytes() const override {
    return plan_.key_polys() * primes() * plan_.ring_dim() * sizeof(u32);
  }

  // [key][digit][row][out][prime][N], evaluation form.
  void load(void* element, const i64* keys) const override {
    const u64 n = plan_.ring_dim();
    u32* out = static_cast<u32*>(element);
    for (u64 poly = 0; poly < plan_.key_polys(); ++poly)
      for (u32 l = 0; l < primes(); ++l, out += n) {
        const Words values = transform(residues(keys + poly * n, l), l);
        std::copy(values.begin(), values.end(), out);
      }
  }

  void multiply(std::vector<i128>& increment, const std::vector<i64>& operands, const void* element,
                std::span<const u32> exponents) const override {
    const u32 e = exponents[0];
    const u64 n = plan_.ring_dim(), terms = u64(plan_.digits) * plan_.polys();
    std::vector<std::vector<Words>> in(primes());
    for (u32 l = 0; l < primes(); ++l)
      for (u64 t = 0; t < terms; ++t) in[l].push_back(transform(residues(&operands[t * n], l), l));
    for (u32 out = 0; out < plan_.polys(); ++out) {
      std::vector<Words> sums;
      for (u32 l = 0; l < primes(); ++l) sums.push_back(sum(in[l], element, l, out, e));
      for (u64 c = 0; c < n; ++c) increment[out * n + c] = rounded(sums, c);
    }
  }

 private:
  u32 primes() const { return static_cast<u32>(plan_.primes.size()); }
  u32 prime(u32 l) const { return static_cast<u32>(plan_.primes[l]); }

  Words residues(const i64* values, u32 l) const {
    Words out(plan_.ring_dim());
    for (u64 c = 0; c < out.size(); ++c) out[c] = residue(values[c], prime(l));
    return out;
  }

  ring::PolyView<u32> view(Words& x, u32 l, Domain domain) const {
    return {x.data(), {plan_.log_n, 1, 1}, ring::LimbSet::range(l, l + 1), domain};
  }
  Words transform(Words in, u32 l) const {
    Words out(in.size());
    kernels_.ntt(*stream_, view(out, l, Domain::eval), view(in, l, Domain::coeff));
    return out;
  }
  Words inverse(Words in, u32 l) const {
    Words out(in.size());
    kernels_.intt(*stream_, view(out, l, Domain::coeff), view(in, l, Domain::eval));
    return out;
  }

  // sum_key (X^(+-e) - 1) sum_t in_t key_t modulo prime l, in coefficients.
  Words sum(const std::vector<Words>& in, const void* element, u32 l, u32 out, u32 e) const {
    const u64 n = plan_.ring_dim();
    const u32 p = prime(l);
    Words total(n, 0);
    for (u32 k = 0; k < plan_.keys_per_step(); ++k) {
      const u64 power = k == 0 ? e : 2 * n - e;
      for (u64 f = 0; f < n; ++f) {
        u32 acc = 0;
        for (u64 t = 0; t < in.size(); ++t)
          acc = plus(acc, times(in[t][f], key(element, k, t, out, l)[f], p), p);
        const u32 x = power_of(monomial_[l][f], power, p);
        total[f] = plus(total[f], times(plus(x, p - 1, p), acc, p), p);
      }
    }
    return inverse(std::move(total), l);
  }

  const u32* key(const void* element, u32 k, u64 term, u32 out, u32 l) const {
    const u64 terms = u64(plan_.digits) * plan_.polys();
    const u64 poly = (k * terms + term) * plan_.polys() + out;
    return static_cast<const u32*>(element) + (poly * primes() + l) * plan_.ring_dim();
  }

  static u32 power_of(u32 x, u64 exponent, u32 p) {
    u32 result = 1;
    for (u32 base = x; exponent != 0; exponent >>= 1, base = times(base, base, p))
      if (exponent & 1) result = times(result, base, p);
    return result;
  }

  // Coefficient c of the sum modulo the product of the primes, scaled and rounded.
  i128 rounded(const std::vector<Words>& sums, u64 c) const {
    const u64 modulus = plan_.key_modulus();
    u128 x = 0;
    for (u32 l = 0; l < primes(); ++l) {
      // the number that is 1 modulo prime l and 0 modulo the others
      const u64 rest = modulus / prime(l);
      const u32 inverse = power_of(static_cast<u32>(rest % prime(l)), prime(l) - 2, prime(l));
      x = (x + static_cast<u128>(rest) * times(sums[l][c], inverse, prime(l))) % modulus;
    }
    if (plan_.path == device::NoisePath::gadget) return static_cast<i128>(x);
    // the modulus is odd: no ties
    return static_cast<i128>((x * plan_.modulus + modulus / 2) / modulus);
  }

  TorusPlan plan_;
  std::shared_ptr<const ring::Ring> ring_;
  mutable RefPolyKernels kernels_;  // its operations are stateless
  std::shared_ptr<Stream> stream_;
  std::vector<Words> monomial_;  ///< X in evaluation form
};

}  // namespace

std::unique_ptr<TorusProduct> make_exact_product(const TorusPlan& plan) {
  return std::make_unique<ExactProduct>(plan);
}

}  // namespace crenel::backend::ref
