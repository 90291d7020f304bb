#include "rlwe/encapsulation.h"

#include <cmath>

namespace crenel::rlwe {
namespace {

constexpr u32 kMaxBasePrimes = 2;    // of q0: what lift_signed takes
constexpr double kMaxBaseBits = 62;  // its integers are 64-bit

double base_bits(const RingContext& ring) {
  const LimbSet& base = ring.window(0);
  double bits = 0;
  for (u32 i = 0; i < base.size(); ++i) bits += std::log2(ring.modulus(base[i]).q);
  return bits;
}

bool supported(u32 base_primes, double base_bits, u32 special_primes) {
  return base_primes <= kMaxBasePrimes && base_bits < kMaxBaseBits &&
         special_primes >= kEncapsulationPrimes;
}

}  // namespace

bool supports_encapsulation(const RingContext& ring) {
  return supported(ring.window(0).size(), base_bits(ring), ring.special().size());
}

void expect_encapsulation(u32 base_primes, double base_bits, u32 special_primes) {
  if (supported(base_primes, base_bits, special_primes)) return;
  throw UnsupportedError(
      cat("sparse-secret encapsulation with ", base_primes, " primes (", base_bits,
          " bits) at level 0 and ", special_primes, " special primes, expected at most ",
          kMaxBasePrimes, " primes below ", kMaxBaseBits, " bits and at least ",
          kEncapsulationPrimes, " special primes"),
      {{"level_0_primes", base_primes}, {"special_primes", special_primes}});
}

LimbSet encapsulation_limbs(const RingContext& ring) {
  const LimbSet &base = ring.window(0), &special = ring.special();
  expect_encapsulation(base.size(), base_bits(ring), special.size());
  LimbSet limbs = base;
  for (u32 k = 0; k < kEncapsulationPrimes; ++k) limbs.push_back(special[k]);
  return limbs;
}

Encapsulation::Encapsulation(const RingContext& ring) : ring_(ring) {
  const LimbSet limbs = encapsulation_limbs(ring), &base = ring.window(0);
  rns::Moduli moduli;
  for (u32 id = 0; id < ring.everything().size(); ++id) moduli.push_back(ring.modulus(id));
  // A block as long as the chain: one digit, whatever blocks the hybrid keys have.
  mod_up_ = ring.kernels().prepare(
      rns::make_mod_up(moduli, base, limbs.minus(base), ring.everything().size()));
  mod_down_ = ring.kernels().prepare(rns::make_divide(moduli, limbs, base));
}

bool supports_over_mod_raise(u32 log_n, double base_bits, u32 special_primes, double special_bits) {
  constexpr double kMargin = 8;  // bits
  if (special_primes <= kOverPrimes) return false;
  // Special primes are of one size, nearly.
  const double left = special_bits * (special_primes - kOverPrimes) / special_primes;
  return left >= base_bits + log_n / 2.0 + kMargin;
}

bool supports_over_mod_raise(const RingContext& ring) {
  const LimbSet& special = ring.special();
  double bits = 0;
  for (u32 i = 0; i < special.size(); ++i) bits += std::log2(ring.modulus(special[i]).q);
  return supports_encapsulation(ring) &&
         supports_over_mod_raise(ring.log_n(), base_bits(ring), special.size(), bits);
}

void expect_over_mod_raise(const RingContext& ring) {
  if (supports_over_mod_raise(ring)) return;
  throw UnsupportedError(
      cat("OverModRaise with ", ring.special().size(), " special primes, expected ", kOverPrimes,
          " and as many as exceed level 0 of ", base_bits(ring), " bits"),
      {{"special_primes", ring.special().size()}, {"expected", cat("> ", kOverPrimes)}});
}

LimbSet with_over_primes(const RingContext& ring, const LimbSet& chain) {
  LimbSet limbs = chain;
  for (u32 k = 0; k < kOverPrimes; ++k) limbs.push_back(ring.special()[k]);
  return limbs;
}

Scalars over_scalars(const RingContext& ring, const LimbSet& limbs) {
  Scalars s;
  for (u32 i = 0; i < limbs.size(); ++i) {
    const auto& m = ring.modulus(limbs[i]);
    Word product = 1;
    for (u32 k = kOverPrimes; k < ring.special().size(); ++k)
      product = math::mul_mod<Word>(product,
                                    static_cast<Word>(ring.modulus(ring.special()[k]).q % m.q), m);
    s.low[i] = s.high[i] = product;
  }
  return s;
}

Poly Encapsulation::to_sparse(device::Stream& stream, ConstView ciphertext,
                              const KeyView& dense_to_sparse) const {
  auto& k = ring_.kernels();
  const u32 batch = ciphertext.shape.batch;
  const ConstView b = ciphertext.components(0, 1), a = ciphertext.components(1, 1);
  Poly extended(stream, {ring_.log_n(), 1, batch}, mod_up_->output, Domain::eval);
  k.mod_up(stream, extended.view(), a, mod_up_);
  Poly acc(stream, {ring_.log_n(), 2, batch}, extended.limbs(), Domain::eval);
  k.key_multiply(stream, acc.view(), extended.view(), dense_to_sparse, 0);
  Poly out(stream, acc.shape(), ring_.window(0), Domain::eval);
  k.divide(stream, out.view(), acc.view(), mod_down_, &b);
  return out;
}

Poly Encapsulation::lift(device::Stream& stream, ConstView polynomial, const LimbSet& limbs) const {
  auto& k = ring_.kernels();
  Poly coefficients(stream, polynomial.shape, polynomial.limbs, Domain::coeff);
  k.intt(stream, coefficients.view(), polynomial);
  const u64 count = u64(polynomial.shape.polys()) * ring_.ring_dim();
  const device::Buffer integers = stream.allocate(count * sizeof(i64));
  k.lift_signed(stream, integers.as<i64>(), coefficients.view());
  Poly lifted(stream, polynomial.shape, limbs, Domain::coeff);
  k.reduce_signed(stream, lifted.view(), integers.as<const i64>());
  k.ntt(stream, lifted.view_as(Domain::eval), lifted.view());
  lifted.set_domain(Domain::eval);
  return lifted;
}

Raised Encapsulation::over_raise(device::Stream& stream, ConstView sparse_ciphertext,
                                 u32 level) const {
  return {lift(stream, sparse_ciphertext.components(0, 1),
               with_over_primes(ring_, ring_.window(level))),
          lift(stream, sparse_ciphertext.components(1, 1), ring_.extended(level))};
}

Poly Encapsulation::raise(device::Stream& stream, ConstView sparse_ciphertext,
                          const KeyView& sparse_to_dense, u32 level) const {
  auto& k = ring_.kernels();
  const LimbSet& window = ring_.window(level);
  const Poly a = lift(stream, sparse_ciphertext.components(1, 1), ring_.extended(level));
  Poly acc(stream, {ring_.log_n(), 2, a.shape().batch}, a.limbs(), Domain::eval);
  k.key_multiply(stream, acc.view(), a.view(), sparse_to_dense, 0);
  const Poly b = lift(stream, sparse_ciphertext.components(0, 1), window);
  const ConstView addend = b.view();
  Poly out(stream, acc.shape(), window, Domain::eval);
  k.divide(stream, out.view(), acc.view(), ring_.mod_down(level), &addend);
  return out;
}

}  // namespace crenel::rlwe
