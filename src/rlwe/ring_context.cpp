#include "rlwe/ring_context.h"

#include "device/room.h"

namespace crenel::rlwe {
namespace {

Word reduce_i128(i128 x, Word q) {
  const i128 r = x % static_cast<i128>(q);
  return static_cast<Word>(r < 0 ? r + q : r);
}

}  // namespace

RingContext::RingContext(Chain chain, std::shared_ptr<device::Device> device)
    : chain_(std::move(chain)), device_(std::move(device)) {
  // For either direction a root and its companion for every coefficient of every prime; devices
  // with memory of their own get a copy.
  const u64 tables = 2 * 2 * sizeof(Word) * (u64(chain_.primes.size()) << chain_.log_n);
  const bool copied = !device_->in_host_memory();
  device::expect_room(*device_, {.device = copied ? tables : 0, .host = tables}, [&] {
    return core::MemoryRequest{.what = cat("tables of a context of ", chain_.primes.size(),
                                           " primes and ring degree 2^", chain_.log_n)};
  });
  auto ring = std::make_shared<const ring::Ring>(chain_.log_n, chain_.primes);
  ring_ = ring;
  kernels_ = device::backend_of(*device_).make_poly_kernels(ring);
  stream_ = device_->shared_stream();

  const u32 total = ring->prime_count();
  special_ = LimbSet::range(chain_.chain_limbs, total);
  everything_ = LimbSet::range(0, total);
  rns::Moduli moduli;
  for (u32 id = 0; id < total; ++id) moduli.push_back(ring->modulus(id));

  for (u32 id = 0; id < chain_.chain_limbs; ++id) {
    Word p = 1;
    for (u32 k = 0; k < special_.size(); ++k)
      p = math::mul_mod<Word>(p, static_cast<Word>(moduli[special_[k]].q % moduli[id].q),
                              moduli[id]);
    special_mod_.push_back(p);
  }

  levels_.resize(chain_.windows.size());
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    auto& t = levels_[level];
    const auto w = chain_.windows[level];
    t.window = LimbSet::range(w.begin, w.end);
    t.extended = t.window.concat(special_);
    for (u32 i = 0; i < t.window.size(); ++i)
      t.special_scalars.low[i] = t.special_scalars.high[i] = special_mod_[t.window[i]];
  }
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    auto& t = levels_[level];
    t.mod_up = kernels_->prepare(rns::make_mod_up(moduli, t.window, special_, chain_.alpha));
    t.mod_down = kernels_->prepare(rns::make_divide(moduli, t.extended, t.window));
    if (level == 0) continue;
    const LimbSet& below = levels_[level - 1].window;
    t.rescale = kernels_->prepare(rns::make_divide(moduli, t.window, below));
    t.mod_down_rescale = kernels_->prepare(rns::make_divide(moduli, t.extended, below));
  }
}

RingContext::KeyExtent RingContext::extent(u32 level) const {
  if (level >= top_level()) return {0, chain_.dnum(), everything_};
  const auto [begin, end] = chain_.up_to(level);
  const u32 first = begin / chain_.alpha;
  return {first, (end - 1) / chain_.alpha + 1 - first, LimbSet::range(begin, end).concat(special_)};
}

Scalars RingContext::integer_scalars(const LimbSet& limbs, i128 re, i128 im) const {
  Scalars s;
  for (u32 i = 0; i < limbs.size(); ++i) {
    const auto& m = modulus(limbs[i]);
    const Word a = reduce_i128(re, m.q);
    if (im == 0) {
      s.low[i] = s.high[i] = a;
      continue;
    }
    // I = psi^(N/2); roots[1] = psi^brev(1) = psi^(N/2).
    const Word unit = ring_->prime(limbs[i]).roots[1].value;
    const Word b = math::mul_mod<Word>(reduce_i128(im, m.q), unit, m);
    s.low[i] = math::add_mod<Word>(a, b, m.q);
    s.high[i] = math::sub_mod<Word>(a, b, m.q);
  }
  return s;
}

}  // namespace crenel::rlwe
