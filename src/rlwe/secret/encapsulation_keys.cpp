// The keys of sparse-secret encapsulation: the one place that ever holds the ephemeral sparse
// secret.
#include "random/sparse.h"
#include "rlwe/encapsulation.h"
#include "rlwe/secret/secret_key.h"

namespace crenel::rlwe {

EncapsulationKeys SecretKey::make_encapsulation_keys(u32 weight, std::span<const u64> turned) {
  if (!turned.empty()) expect_over_mod_raise(*ring_);
  auto& stream = ring_->stream();
  auto& k = ring_->kernels();
  const LimbSet& base = ring_->window(0);
  const LimbSet small = encapsulation_limbs(*ring_);
  const LimbSet chain = LimbSet::range(0, ring_->chain().chain_limbs);

  const auto coefficients = random::sample_sparse_ternary(source_, ring_->ring_dim(), weight);
  const Poly sparse_small = embed_secret(*ring_, coefficients, small);
  const Poly sparse_chain = embed_secret(*ring_, coefficients, chain);

  // Under the sparse secret, modulo q0 P': the factor P' is zero modulo its own primes.
  EncapsulationKeys keys{sample_zero(sparse_small.view(), small, 0, 1, 1),
                         sample_zero(key_.view(), ring_->everything(), 0, 1, 1),
                         {},
                         weight};
  Scalars p;
  for (u32 i = 0; i < base.size(); ++i) {
    const auto& m = ring_->modulus(base[i]);
    Word product = 1;
    for (u32 j = base.size(); j < small.size(); ++j)
      product =
          math::mul_mod<Word>(product, static_cast<Word>(ring_->modulus(small[j]).q % m.q), m);
    p.low[i] = p.high[i] = product;
  }
  k.mul_add_scalar(stream, keys.dense_to_sparse.pairs.view().components(0, 1).restrict_to(base),
                   key_.view().restrict_to(base), p);

  // Under the dense secret, modulo Q P.
  for (u32 i = 0; i < chain.size(); ++i) p.low[i] = p.high[i] = ring_->special_mod(chain[i]);
  k.mul_add_scalar(stream, keys.sparse_to_dense.pairs.view().components(0, 1).restrict_to(chain),
                   sparse_chain.view(), p);
  if (turned.empty()) return keys;

  // Under turned secrets: P / S is zero modulo the special primes that are left of it.
  const LimbSet over = with_over_primes(*ring_, chain);
  const Scalars factor = over_scalars(*ring_, over);
  const Poly sparse_over = embed_secret(*ring_, coefficients, over);
  Poly under(stream, key_.shape(), key_.limbs(), Domain::eval, true);
  for (u64 element : turned) {
    k.automorphism(stream, under.view(), key_.view(),
                   ring::galois_inverse(element, ring_->log_n()));
    SwitchKey& key =
        keys.turned.emplace(element, sample_zero(under.view(), ring_->everything(), 0, 1, 1))
            .first->second;
    k.mul_add_scalar(stream, key.pairs.view().components(0, 1).restrict_to(over),
                     sparse_over.view(), factor);
  }
  return keys;
}

}  // namespace crenel::rlwe
