// Polynomials at a prescribed level and scale, for circuits whose levels have no canonical scale.
#pragma once

#include <variant>

#include "ckks/paterson_stockmeyer.h"
#include "ckks/pending_product.h"

namespace crenel::ckks {

/// sum_k c_k x_k + constant at `scale`, unrescaled: constant k is encoded at scale / x_k.scale. All
/// x of one level, slot count, batch and number of components; at least one.
Ciphertext linear_combination(const Evaluator::State& s, std::span<const Ciphertext* const> x,
                              std::span<const double> c, double constant, double scale);

/// a + constant, in the memory of a.
Ciphertext add_constant(const Evaluator::State& s, Ciphertext a, double constant);

/// 2 a^2 + constant, three components: from T_k to T_2k, and the double angle.
Ciphertext double_square(const Evaluator::State& s, const Ciphertext& a, double constant);

/// An unrescaled sum: of two components, or a product that its relinearisation makes.
using UnrescaledSum = std::variant<Ciphertext, PendingProduct>;

/// Ciphertexts, for the templates of ckks/paterson_stockmeyer.h and ckks/levels.h.
struct CiphertextOps {
  using Value = Ciphertext;
  using Operations = Evaluator;
  const Evaluator& ev;
  /// Limbs of operands of higher levels are read where they lie, and sums are made in place: the
  /// same bits with less traffic than compositions of ev's operations. An ablation turns it off.
  bool folded = true;

  const Params& params() const { return ev.context().params(); }
  const Metadata& metadata(const Ciphertext& a) const { return a.metadata(); }
  u32 components(const Ciphertext& a) const { return a.components(); }
  Ciphertext copy(const Ciphertext& a) const { return ev.state().copy(a); }
  Ciphertext drop(const Ciphertext& a, u32 level) const { return drop_limbs(ev.state(), a, level); }
  Ciphertext double_square(const Ciphertext& a, double constant) const {
    return ckks::double_square(ev.state(), a, constant);
  }
  Ciphertext linear_combination(std::span<const Ciphertext* const> x, std::span<const double> c,
                                double constant, double scale) const {
    return ckks::linear_combination(ev.state(), x, c, constant, scale);
  }
  // Folded: operands are at `level` or at one that limbs can be dropped from, and outlive the sum.
  using Sum = UnrescaledSum;
  Sum square(const Ciphertext& a) const { return pending_square(ev.state(), a); }
  Sum doubled_square(const Ciphertext& a, double constant) const {
    return pending_double_square(ev.state(), a, constant);
  }
  Sum product(const Ciphertext& a, const Ciphertext& b, u32 level) const;
  /// The sum keeps a.
  Sum product(Ciphertext&& a, const Ciphertext& b, u32 level) const;
  /// 2 a b - c: T_(i+j) of T_i, T_j and T_|i-j|.
  Sum chebyshev_product(const Ciphertext& a, const Ciphertext& b, const Ciphertext& c,
                        u32 level) const;
  Ciphertext linear_combination(std::span<const Ciphertext* const> x, std::span<const double> c,
                                double constant, double scale, u32 level) const;
  /// sum += the linear combination, of two components; sum is at this scale.
  void add_combination(Sum& sum, std::span<const Ciphertext* const> x, std::span<const double> c,
                       double constant) const;
  /// sum += a, which has no more components.
  void add_to(Sum& sum, Sum a) const;
  /// Rescaled, and relinearised where it is a product.
  Ciphertext finish(const Sum& sum) const;
  void set_scale(Sum& sum, double scale) const;

  /// The scale that it has, up to rounding of the bookkeeping.
  void set_scale(Ciphertext& a, double scale) const { a.data().meta.scale = scale; }
  /// What is known of T_i(x) besides its making.
  void limit_chebyshev(Ciphertext& a, const Ciphertext& x, u32 i) const;
};

/// sum_k c_k x^k or sum_k c_k T_k(x), degree >= 1, at exactly this level and scale, rescaled. x
/// must be at level >= level + polynomial_depth(degree); every intermediate has the scale that
/// squaring and rescaling gives it. `folded`: of CiphertextOps.
Ciphertext evaluate_polynomial(const Evaluator& ev, Ciphertext x, std::span<const double> c,
                               PolynomialBasis basis, u32 level, double scale, bool folded = true);

}  // namespace crenel::ckks
