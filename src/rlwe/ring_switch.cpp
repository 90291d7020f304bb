#include "rlwe/ring_switch.h"

#include "rlwe/key_switcher.h"

namespace crenel::rlwe {

void expect_ring_switch(const RingContext& ring) {
  const u32 primes = ring.window(0).size();
  if (primes != 2)
    throw UnsupportedError(
        cat("a switch to another ring from a level 0 of ", primes, " primes, expected 2"),
        {{"level_0_primes", primes}, {"expected", 2}});
}

RingSwitch::RingSwitch(const RingContext& ring) : ring_(ring) {
  expect_ring_switch(ring);
  const LimbSet& base = ring.window(0);
  low_ = LimbSet::range(base[0], base[0] + 1);
  rns::Moduli moduli;
  for (u32 id = 0; id < ring.everything().size(); ++id) moduli.push_back(ring.modulus(id));
  mod_up_ = ring.kernels().prepare(
      rns::make_mod_up(moduli, low_, base.minus(low_), ring.everything().size()));
  mod_down_ = ring.kernels().prepare(rns::make_divide(moduli, base, low_));
}

Poly RingSwitch::down(device::Stream& stream, ConstView ciphertext, const KeyView& key) const {
  auto& k = ring_.kernels();
  const PolyShape pair{ring_.log_n(), 2, 1}, one{ring_.log_n(), 1, 1};
  Poly divided(stream, pair, low_, Domain::eval);
  k.divide(stream, divided.view(), ciphertext, mod_down_);
  const Poly& low = divided;
  const ConstView b = low.view().components(0, 1), a = low.view().components(1, 1);
  Poly extended(stream, one, mod_up_->output, Domain::eval);
  k.mod_up(stream, extended.view(), a, mod_up_);
  Poly acc(stream, pair, extended.limbs(), Domain::eval);
  k.key_multiply(stream, acc.view(), extended.view(), key, 0);
  Poly out(stream, pair, low_, Domain::eval);
  k.divide(stream, out.view(), acc.view(), mod_down_, &b);
  k.intt(stream, out.view_as(Domain::coeff), out.view());
  out.set_domain(Domain::coeff);
  return out;
}

Poly ring_switch_up(const RingContext& ring, device::Stream& stream, ConstView ciphertext,
                    const KeyView& key) {
  const KeySwitcher switcher(ring, stream);
  const ConstView b = ciphertext.components(0, 1);
  return switcher.switch_down({.in = ciphertext.components(1, 1)}, key, 0, &b);
}

}  // namespace crenel::rlwe
