// The keys of ring switching: between the ring's secret and one of a smaller degree.
#include "rlwe/ring_switch.h"
#include "rlwe/secret/secret_key.h"

namespace crenel::rlwe {
namespace {

/// z(X^D), evaluation form, every prime; secret memory.
Poly embed_small(const RingContext& ring, std::span<const i8> small) {
  const u64 stride = ring.ring_dim() / small.size();
  core::SecretVector<i8> coefficients(ring.ring_dim(), 0);
  for (u64 i = 0; i < small.size(); ++i) coefficients[i * stride] = small[i];
  return embed_secret(ring, coefficients, ring.everything());
}

}  // namespace

SwitchKey SecretKey::make_ring_switch_down(std::span<const i8> small) {
  expect_ring_switch(*ring_);
  auto& k = ring_->kernels();
  const LimbSet& base = ring_->window(0);
  const Poly embedded = embed_small(*ring_, small);

  // The factor p is zero modulo p itself.
  SwitchKey key = sample_zero(embedded.view(), base, 0, 1, 1);
  const LimbSet low = LimbSet::range(base[0], base[0] + 1);
  Scalars p;
  p.low[0] = p.high[0] = static_cast<Word>(ring_->modulus(base[1]).q % ring_->modulus(base[0]).q);
  k.mul_add_scalar(ring_->stream(), key.pairs.view().components(0, 1).restrict_to(low),
                   key_.view().restrict_to(low), p);
  return key;
}

SwitchKey SecretKey::make_ring_switch_up(std::span<const i8> small) {
  return make_switch_key(embed_small(*ring_, small).view(), key_.view(), 0);
}

}  // namespace crenel::rlwe
