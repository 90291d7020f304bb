#include "rlwe/ring_context.h"

#include <memory>
#include <mutex>

#include "device/room.h"

namespace crenel::rlwe {
namespace {

Word reduce_i128(i128 x, Word q) {
  const i128 r = x % static_cast<i128>(q);
  return static_cast<Word>(r < 0 ? r + q : r);
}

}  // namespace

LimbSet Chain::limbs(u32 level) const {
  const Window all = windows[ordinary(level)];
  if (!is_short(level)) return LimbSet::range(all.begin, all.end);
  return LimbSet::range(all.begin, windows[base_of(level)].end)
      .concat(LimbSet::range(windows[normal_top].end, all.end));
}

bool Chain::has_level(u32 level) const {
  if (is_aligned(level)) {
    if (ordinary(level) > top_level() || alpha == 0) return false;
    const Window w = windows[ordinary(level)];
    const auto digits = [&](u32 of) { return digit_of(w.end - 1, of) - digit_of(w.begin, of); };
    return w.begin == aligned_begin() && digits(level) < digits(ordinary(level));
  }
  if (!is_short(level)) return level <= top_level();
  const u32 base = base_of(level), full = ordinary(level);
  if (base >= normal_top || full < normal_top || full > top_level()) return false;
  // What the levels above take away or bring must be the same primes.
  if (windows[base].begin != windows[normal_top].begin) return false;
  const LimbSet all = limbs(level);
  for (u32 i = 1; i < all.size(); ++i)
    if (all[i] / alpha > all[i - 1] / alpha + 1) return false;
  return true;
}

std::optional<u32> Chain::highest_aligned(u32 level) const {
  for (u32 l = std::min(level, top_level()) + 1; l-- > 0;)
    if (aligned(l)) return l;
  return std::nullopt;
}

KeyExtent key_extent(const Chain& chain, u32 level) {
  if (is_aligned(level)) {  // the levels that it serves begin at one prime
    const u32 begin = chain.aligned_begin(), end = chain.up_to(ordinary(level)).end;
    const u32 first = chain.digit_of(begin, level);
    return {first, chain.digit_of(end - 1, level) + 1 - first, LimbSet::range(begin, end)};
  }
  const auto normal = chain.up_to(highest_ordinary(level));
  LimbSet limbs = LimbSet::range(normal.begin, normal.end);
  if (is_short(level)) {
    const LimbSet short_limbs = chain.limbs(level);
    limbs = LimbSet();
    for (u32 id = 0; id < chain.chain_limbs; ++id)
      if (short_limbs.contains(id) || (id >= normal.begin && id < normal.end)) limbs.push_back(id);
  }
  const u32 first = limbs[0] / chain.alpha;
  return {first, limbs.back() / chain.alpha + 1 - first, limbs};
}

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
  for (u32 id = 0; id < chain_.chain_limbs; ++id) {
    const auto& m = ring->modulus(id);
    Word p = 1;
    for (u32 k = 0; k < special_.size(); ++k)
      p = math::mul_mod<Word>(p, static_cast<Word>(ring->modulus(special_[k]).q % m.q), m);
    special_mod_.push_back(p);
  }

  levels_.resize(chain_.windows.size());
  for (u32 level = 0; level < levels_.size(); ++level) {
    levels_[level].window = chain_.limbs(level);
    make_tables(levels_[level], level == 0 ? nullptr : &levels_[level - 1].window);
    if (chain_.aligned(level))
      levels_[level].aligned_mod_up = prepare_mod_up(levels_[level].window, aligned_level(level));
  }
  short_levels_.resize((chain_.normal_top + 1) * (top_level() - chain_.normal_top + 1));
}

rns::Moduli RingContext::moduli() const {
  rns::Moduli all;
  for (u32 id = 0; id < everything_.size(); ++id) all.push_back(ring_->modulus(id));
  return all;
}

device::Prepared<rns::ModUp> RingContext::prepare_mod_up(const LimbSet& window, u32 level) const {
  return kernels_->prepare(
      rns::make_mod_up(moduli(), window, special_, chain_.alpha, chain_.lead(level)));
}

void RingContext::make_tables(LevelTables& t, const LimbSet* below) const {
  const rns::Moduli moduli = this->moduli();
  t.extended = t.window.concat(special_);
  for (u32 i = 0; i < t.window.size(); ++i)
    t.special_scalars.low[i] = t.special_scalars.high[i] = special_mod_[t.window[i]];
  t.mod_up = prepare_mod_up(t.window, 0);
  t.mod_down = kernels_->prepare(rns::make_divide(moduli, t.extended, t.window));
  if (below == nullptr) return;
  t.rescale = kernels_->prepare(rns::make_divide(moduli, t.window, *below));
  t.mod_down_rescale = kernels_->prepare(rns::make_divide(moduli, t.extended, *below));
}

void RingContext::make_short_levels(u32 base, u32 level) const {
  const std::lock_guard lock(short_mutex_);
  const LimbSet* below = nullptr;
  for (u32 l = chain_.normal_top; l <= level; ++l) {
    auto& slot = short_levels_[short_index(short_level(base, l))];
    if (slot == nullptr) {
      auto made = std::make_unique<LevelTables>();
      made->window = chain_.limbs(short_level(base, l));
      make_tables(*made, below);
      slot = std::move(made);
    }
    below = &slot->window;
  }
}

KeyExtent RingContext::extent(u32 level) const {
  if (!is_short(level) && !is_aligned(level) && level >= top_level())
    return {0, chain_.dnum(), everything_};
  KeyExtent e = key_extent(chain_, level);
  e.limbs = e.limbs.concat(special_);
  return e;
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
