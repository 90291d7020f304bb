#include "bridge/rings.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ckks/objects.h"
#include "ckks/params/security.h"
#include "random/samplers.h"
#include "rlwe/encapsulation.h"
#include "rlwe/ring_switch.h"

namespace crenel::bridge {
namespace {

constexpr double kBits = 128;  // of security that a ring is asked for

// The first of `limbs` are those of level 0.
rlwe::Chain chain_of(const rlwe::RingContext& ring, u32 log_n, const rlwe::LimbSet& limbs) {
  rlwe::Chain chain;
  chain.log_n = log_n;
  for (u32 i = 0; i < limbs.size(); ++i) chain.primes.push_back(ring.modulus(limbs[i]).q);
  chain.chain_limbs = ring.window(0).size();
  chain.alpha = limbs.size() - chain.chain_limbs;
  chain.windows = {{0, chain.chain_limbs}};
  return chain;
}

u32 middle_log_n(const ckks::Context& ckks, u32 small_degree, double log_modulus) {
  const ckks::Params& set = ckks.params();
  const double wanted = std::min(kBits, set.security_bits());
  u32 log_n = static_cast<u32>(std::bit_width(small_degree));  // twice the degree
  while (log_n < set.log_n() && ckks::estimate_security_bits(log_n, log_modulus, 0) < wanted)
    ++log_n;
  if (log_n >= set.log_n())
    throw UnsupportedError(
        cat("a bridge of ", set.name(), ", whose ring of degree ", set.ring_dim(),
            " has no smaller one, of twice the degree ", small_degree, " of messages or more, for ",
            log_modulus, " bits of keys"),
        {{"ring_dim", set.ring_dim()}, {"small_degree", small_degree}});
  return log_n;
}

}  // namespace

double log_modulus(const rlwe::RingContext& ring) {
  double bits = 0;
  for (u32 i = 0; i < ring.everything().size(); ++i) bits += std::log2(ring.modulus(i).q);
  return bits;
}

u64 merging_element(const rlwe::RingContext& ring, u32 level) {
  return ring::galois_element_for_rotation(i64(1) << (level - 2), ring.log_n());
}

double switch_variance(const rlwe::RingContext& ring, double secret) {
  const double errors = random::kErrorPairs / 2.0, n = static_cast<double>(ring.ring_dim());
  double special = 1, noise = 0;
  for (u32 i = 0; i < ring.special().size(); ++i) special *= ring.modulus(ring.special()[i]).q;
  // The centred conversion of a digit of k primes: k quotients, each off by up to half.
  const u32 alpha = ring.chain().alpha, limbs = ring.window(0).size();
  for (u32 first = 0; first < limbs; first += alpha) {
    const u32 count = std::min(alpha, limbs - first);
    double digit = 1;
    for (u32 i = 0; i < count; ++i) digit *= ring.modulus(first + i).q;
    noise += n * errors * count / 12 * (digit / special) * (digit / special);
  }
  return noise + (1 + secret) / 12;
}

std::shared_ptr<const Rings> make_rings(const ckks::Context& ckks, u32 small_degree) {
  const rlwe::RingContext& ring = *ckks.state().ring;
  rlwe::expect_ring_switch(ring);
  const rlwe::LimbSet last = rlwe::encapsulation_limbs(ring);
  rlwe::LimbSet middle = ring.window(0);
  middle.push_back(ring.special()[0]);
  double bits = 0;
  for (u32 i = 0; i < middle.size(); ++i) bits += std::log2(ring.modulus(middle[i]).q);
  const u32 log_n = middle_log_n(ckks, small_degree, bits);
  return ckks.state().shared.get<Rings>(cat("bridge rings ", small_degree), [&] {
    const auto device = ring.shared_device();
    return std::make_shared<Rings>(Rings{
        std::make_shared<const rlwe::RingContext>(chain_of(ring, log_n, middle), device),
        std::make_shared<const rlwe::RingContext>(chain_of(ring, ring.log_n(), last), device)});
  });
}

}  // namespace crenel::bridge
