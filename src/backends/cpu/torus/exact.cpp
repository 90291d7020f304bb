// External products by number-theoretic transforms modulo each prime.
#include <algorithm>

#include "backends/cpu/torus/kernels.h"
#include "ring/ring.h"

namespace crenel::backend::cpu {
namespace {

class ExactEngine final : public TorusEngine {
 public:
  ExactEngine(const TorusPlan& plan, Isa isa)
      : plan_(plan),
        isa_(isa_table(plan.ring_dim() < kMinVectorRow ? Isa::scalar : isa)),
        table_(torus_table(isa)),
        ring_(plan.log_n, plan.primes) {
    const u32 n = plan.ring_dim();
    for (u32 l = 0; l < primes(); ++l) {
      const auto& m = ring_.modulus(l);
      const auto& t = ring_.prime(l);
      const auto shoup = [&](u32 value) { return math::make_shoup<u32>(value, m.q); };
      primes_.push_back({m.q, m.q_inv, shoup(1 % m.q), shoup(m.r), shoup(m.r2),
                         shoup(math::mul_mod<u32>(m.r2, m.r, m))});
      // psi^j - 1
      std::vector<u32> powers;
      for (u32 j = 0, x = 1; j < 2 * n; ++j, x = math::mul_mod<u32>(x, t.psi, m))
        powers.push_back(math::sub_mod<u32>(x, 1, m.q));
      powers_.push_back(std::move(powers));
      scale_root_.push_back(shoup(math::mul_mod<u32>(t.n_inv.value, t.inverse_roots[1].value, m)));
    }
    for (u32 f = 0; f < n; ++f) exponents_.push_back(2 * ring::bit_reverse(f, plan.log_n) + 1);
    const bool raising = plan.path == device::NoisePath::raising;
    rounding_ = {.log_n = plan.log_n,
                 .raising = raising,
                 .reduces = false,
                 .modulus = plan.modulus,
                 .base_log = plan.base_log,
                 .digits = plan.digits,
                 .piece_log = 0,
                 .scale = 0,
                 .modulus_double = 0,
                 .modulus_inverse = 0};
    const double q = static_cast<double>(plan.modulus), t = static_cast<double>(plan.key_modulus());
    crt_ = {primes_[0].q, 0, 0, 0, raising, plan.modulus, plan.key_modulus(), q / t, 1 / t};
    if (primes() == 2) {
      const auto& m = ring_.modulus(1);
      const auto inverse = math::make_shoup<u32>(
          math::inverse_mod<u32>(static_cast<u32>(plan.primes[0] % m.q), m), m.q);
      crt_.p1 = m.q, crt_.inverse = inverse.value, crt_.inverse_quotient = inverse.quotient;
    }
  }

  u64 element_bytes() const override { return plan_.key_polys() * primes() * poly_bytes(); }
  // integers of the operands, their residues, two sums, two monomials, the products, row pointers
  u64 row_bytes() const override { return 0; }
  u64 shared_bytes() const override {
    return pointers_at() + (3 * terms() * sizeof(u32*) + 63) / 64 * 64;
  }

  // [prime][key][out][term][N]
  void load(void* element, const i64* keys, u8* work) const override {
    const u64 n = plan_.ring_dim(), outs = plan_.polys();
    u32* row = reinterpret_cast<u32*>(work);
    for (u32 l = 0; l < primes(); ++l)
      for (u32 k = 0; k < plan_.keys_per_step(); ++k)
        for (u64 t = 0; t < terms(); ++t)
          for (u64 o = 0; o < outs; ++o) {
            isa_.arithmetic->reduce_signed(row, keys + ((k * terms() + t) * outs + o) * n, n,
                                           primes_[l]);
            forward(static_cast<u32*>(element) + key_at(l, k, o, t), row, l);
          }
  }

  void step(i64* const* acc, const u32* e, u32 rows, const void* element, bool, u8* const*,
            u8* shared) const override {
    for (u32 r = 0; r < rows; ++r) step_row(acc[r], e[r], static_cast<const u32*>(element), shared);
  }

 private:
  u32 primes() const { return static_cast<u32>(plan_.primes.size()); }
  u64 terms() const { return u64(plan_.digits) * plan_.polys(); }
  u64 poly_bytes() const { return std::max<u64>(plan_.ring_dim() * sizeof(u32), 64); }
  u64 pointers_at() const {
    return (3 * terms() + 4 + u64(plan_.polys()) * primes()) * poly_bytes();
  }
  u64 key_at(u32 l, u32 k, u64 out, u64 term) const {
    return (((u64(l) * plan_.keys_per_step() + k) * plan_.polys() + out) * terms() + term) *
           plan_.ring_dim();
  }

  void forward(u32* out, const u32* in, u32 l) const {
    isa_.ntt->ntt(
        {out, in, plan_.log_n, primes_[l].q, ring_.prime(l).roots.data(), nullptr, {}, nullptr});
  }
  void inverse(u32* row, u32 l) const {
    isa_.ntt->intt({row, row, plan_.log_n, primes_[l].q, ring_.prime(l).inverse_roots.data(),
                    ring_.prime(l).n_inv, scale_root_[l], 0});
  }

  void step_row(i64* acc, u32 e, const u32* element, u8* work) const {
    const u64 n = plan_.ring_dim(), outs = plan_.polys();
    i64* digits = reinterpret_cast<i64*>(work);
    u32* in = reinterpret_cast<u32*>(work + terms() * 2 * poly_bytes());
    const u64 row = poly_bytes() / sizeof(u32);
    u32* sum[2] = {in + terms() * row, in + (terms() + 1) * row};
    u32* monomial[2] = {sum[1] + row, sum[1] + 2 * row};
    u32* product = sum[1] + 3 * row;
    table_.digits(digits, outs * n, acc, rounding_);
    for (u32 l = 0; l < primes(); ++l) {
      for (u64 t = 0; t < terms(); ++t) {
        isa_.arithmetic->reduce_signed(in + t * row, digits + t * n, n, primes_[l]);
        forward(in + t * row, in + t * row, l);
      }
      table_.monomials(monomial[0], monomial[1], powers_[l].data(), exponents_.data(), e,
                       static_cast<u32>(n));
      for (u64 o = 0; o < outs; ++o) {
        u32* const to = product + (o * primes() + l) * row;
        multiply(sum, in, element, l, o, reinterpret_cast<const u32**>(work + pointers_at()));
        isa_.arithmetic->mul(to, sum[0], monomial[0], n, primes_[l]);
        if (plan_.keys_per_step() == 2)
          isa_.arithmetic->mul_add(to, sum[1], monomial[1], n, primes_[l]);
        inverse(to, l);
      }
    }
    for (u64 o = 0; o < outs; ++o) {
      const u32* x = product + o * primes() * row;
      table_.combine(acc + o * n, x, x + row, static_cast<u32>(n), crt_);
    }
  }

  // The sums with key 0 and key 1.
  void multiply(u32* const* sum, const u32* in, const u32* element, u32 l, u64 out,
                const u32** rows) const {
    const u64 row = poly_bytes() / sizeof(u32), n = plan_.ring_dim();
    const u32** const key0 = rows + terms();
    const u32** const key1 = key0 + terms();
    const u32 last = plan_.keys_per_step() - 1;
    for (u64 t = 0; t < terms(); ++t) {
      rows[t] = in + t * row;
      key0[t] = element + key_at(l, 0, out, t);
      key1[t] = element + key_at(l, last, out, t);
    }
    isa_.fused->key_multiply(
        {sum[0], sum[1], rows, key0, key1, static_cast<u32>(terms()), n, nullptr, {}}, primes_[l]);
  }

  TorusPlan plan_;
  const IsaTable& isa_;
  const TorusTable& table_;
  ring::Ring ring_;
  std::vector<Prime> primes_;
  std::vector<std::vector<u32>> powers_;  ///< psi^j - 1, j < 2N
  std::vector<Shoup> scale_root_;
  std::vector<u32> exponents_;
  TorusRounding rounding_{};
  TorusCrt crt_{};
};

}  // namespace

std::unique_ptr<TorusEngine> make_exact_engine(const TorusPlan& plan, Isa isa) {
  return std::make_unique<ExactEngine>(plan, isa);
}

}  // namespace crenel::backend::cpu
