// The keys of ring switching: between the ring's secret and one of a smaller degree.
#include "rlwe/ring_switch.h"
#include "rlwe/secret/secret_key.h"

namespace crenel::rlwe {

RingSwitchKeys SecretKey::make_ring_switch_keys(std::span<const i8> small) {
  expect_ring_switch(*ring_);
  auto& k = ring_->kernels();
  const LimbSet& base = ring_->window(0);
  const u64 stride = ring_->ring_dim() / small.size();
  core::SecretVector<i8> coefficients(ring_->ring_dim(), 0);
  for (u64 i = 0; i < small.size(); ++i) coefficients[i * stride] = small[i];
  const Poly embedded = embed_secret(*ring_, coefficients, ring_->everything());

  // The factor p is zero modulo p itself.
  RingSwitchKeys keys{sample_zero(embedded.view(), base, 0, 1, 1), {}};
  const LimbSet low = LimbSet::range(base[0], base[0] + 1);
  Scalars p;
  p.low[0] = p.high[0] = static_cast<Word>(ring_->modulus(base[1]).q % ring_->modulus(base[0]).q);
  k.mul_add_scalar(ring_->stream(), keys.down.pairs.view().components(0, 1).restrict_to(low),
                   key_.view().restrict_to(low), p);
  keys.up = make_switch_key(embedded.view(), key_.view(), 0);
  return keys;
}

}  // namespace crenel::rlwe
