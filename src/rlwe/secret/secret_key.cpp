#include "rlwe/secret/secret_key.h"

#include "random/sparse.h"

namespace crenel::rlwe {

using random::Purpose;

SecretKey::SecretKey(std::shared_ptr<const RingContext> ring, random::SecretSource source,
                     u32 hamming_weight)
    : ring_(std::move(ring)), source_(std::move(source)) {
  if (hamming_weight != 0) {
    auto coefficients = random::sample_sparse_ternary(source_, ring_->ring_dim(), hamming_weight);
    key_ = embed_secret(*ring_, coefficients, ring_->everything());
    return;
  }
  key_ = Poly(ring_->stream(), {ring_->log_n(), 1, 1}, ring_->everything(), Domain::coeff, true);
  auto& k = ring_->kernels();
  k.sample_ternary(ring_->stream(), key_.view(), source_.seed(), source_.next(Purpose::secret_key));
  k.ntt(ring_->stream(), key_.view_as(Domain::eval), key_.view());
  key_.set_domain(Domain::eval);
}

SecretKey::SecretKey(std::shared_ptr<const RingContext> ring, random::SecretSource source,
                     std::span<const i8> coefficients)
    : ring_(std::move(ring)), source_(std::move(source)) {
  key_ = embed_secret(*ring_, coefficients, ring_->everything());
}

SecretKey::SecretKey(std::shared_ptr<const RingContext> ring, random::SecretSource source,
                     const SecretKey& same, const LimbSet& at)
    : ring_(std::move(ring)), source_(std::move(source)) {
  key_ = Poly(ring_->stream(), {ring_->log_n(), 1, 1}, ring_->everything(), Domain::eval, true);
  const std::size_t limb = sizeof(Word) << ring_->log_n();
  for (u32 i = 0; i < at.size(); ++i) {
    const LimbSet one = LimbSet::range(at[i], at[i] + 1);
    ring_->stream().copy(key_.view().limb_window(i, 1).data, same.key_.view().restrict_to(one).data,
                         limb);
  }
}

Poly embed_secret(const RingContext& ring, std::span<const i8> coefficients, const LimbSet& limbs) {
  auto& stream = ring.stream();
  const core::SecretVector<i64> wide(coefficients.begin(), coefficients.end());
  device::Buffer staged = stream.allocate(wide.size() * sizeof(i64), true);
  stream.copy_in_secret(staged.data(), wide.data(), wide.size() * sizeof(i64));
  Poly secret(stream, {ring.log_n(), 1, 1}, limbs, Domain::coeff, true);
  ring.kernels().reduce_signed(stream, secret.view(), staged.as<const i64>());
  ring.kernels().ntt(stream, secret.view_as(Domain::eval), secret.view());
  secret.set_domain(Domain::eval);
  return secret;
}

core::SecretVector<i8> SecretKey::export_coefficients() const {
  auto& stream = ring_->stream();
  const LimbSet one = LimbSet::range(0, 1);
  Poly limb(stream, {ring_->log_n(), 1, 1}, one, Domain::coeff, true);
  ring_->kernels().intt(stream, limb.view(), key_.view().restrict_to(one));
  core::SecretVector<Word> words(ring_->ring_dim());
  stream.copy_out_secret(words.data(), limb.data(), limb.bytes());
  core::SecretVector<i8> out(words.size());
  // 0 -> 0, 1 -> 1, q - 1 -> -1 in arithmetic: q - 1 is even and the only value with a higher bit
  // set.
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Word one = words[i] & 1u, minus_one = ((words[i] >> 1) + 0x7fffffffu) >> 31;
    out[i] = static_cast<i8>(static_cast<i8>(one) - static_cast<i8>(minus_one));
  }
  return out;
}

void expand_uniform(const RingContext& ring, View out, const random::Seed& seed, u32 first) {
  expand_uniform(ring, ring.stream(), out, seed, first);
}

void expand_uniform(const RingContext& ring, device::Stream& stream, View out,
                    const random::Seed& seed, u32 first) {
  ring.kernels().sample_uniform(stream, out, seed, {Purpose::uniform, first});
}

Poly SecretKey::encrypt(ConstView message, random::Seed& seed) {
  auto& stream = ring_->stream();
  auto& k = ring_->kernels();
  const u32 batch = message.shape.batch;
  seed = source_.derive_seed();
  Poly out(stream, {ring_->log_n(), 2, batch}, message.limbs, Domain::eval);
  View b = out.view().components(0, 1), a = out.view().components(1, 1);
  expand_uniform(*ring_, a, seed);

  Poly noisy(stream, {ring_->log_n(), 1, batch}, message.limbs, Domain::coeff, true);
  k.sample_error(stream, noisy.view(), source_.seed(), source_.next(Purpose::error, batch));
  k.add(stream, noisy.view(), noisy.view(), message);
  k.ntt(stream, noisy.view_as(Domain::eval), noisy.view());
  noisy.set_domain(Domain::eval);
  k.mul(stream, b, a, key_.view().restrict_to(message.limbs));
  k.sub(stream, b, noisy.view(), b);
  return out;
}

Poly SecretKey::decrypt(ConstView ct) const {
  auto& stream = ring_->stream();
  auto& k = ring_->kernels();
  const ConstView s = key_.view().restrict_to(ct.limbs);
  Poly m(stream, {ring_->log_n(), 1, ct.shape.batch}, ct.limbs, Domain::eval, true);
  // Horner in s: ((c_2 s) + c_1) s + c_0
  const u32 top = ct.shape.components - 1;
  k.mul(stream, m.view(), ct.components(top, 1), s);
  for (u32 c = top; c-- > 1;) {
    k.add(stream, m.view(), m.view(), ct.components(c, 1));
    k.mul(stream, m.view(), m.view(), s);
  }
  k.add(stream, m.view(), m.view(), ct.components(0, 1));
  k.intt(stream, m.view_as(Domain::coeff), m.view());
  m.set_domain(Domain::coeff);
  return m;
}

PublicKey SecretKey::make_public_key() {
  auto& stream = ring_->stream();
  Poly zero(stream, {ring_->log_n(), 1, 1}, LimbSet::range(0, ring_->chain().chain_limbs),
            Domain::coeff);
  stream.fill_zero(zero.data(), zero.bytes());
  PublicKey key;
  key.pair = encrypt(zero.view(), key.seed);
  return key;
}

namespace {

// visit(part) for each stretch of `limbs`, a subset of `all`, that is contiguous in `all` as well.
template <class Visitor>
void for_each_stretch(const LimbSet& limbs, const LimbSet& all, Visitor visit) {
  for (u32 l = 0; l < limbs.size();) {
    LimbSet stretch;
    for (u32 at = static_cast<u32>(all.find(limbs[l]));
         l < limbs.size() && at < all.size() && limbs[l] == all[at]; ++l, ++at)
      stretch.push_back(limbs[l]);
    visit(stretch);
  }
}

}  // namespace

SwitchKey SecretKey::sample_zero(ConstView under, const LimbSet& limbs, u32 first, u32 count,
                                 u32 of) {
  auto& stream = ring_->stream();
  auto& k = ring_->kernels();
  SwitchKey key{Poly::kept(stream, {ring_->log_n(), 2, count}, limbs, Domain::eval),
                source_.derive_seed(), first};
  View b = key.pairs.view().components(0, 1), a = key.pairs.view().components(1, 1);
  expand_uniform(*ring_, a, key.seed, first);

  Poly noise(stream, {ring_->log_n(), 1, count}, limbs, Domain::coeff, true);
  random::Nonce nonce = source_.next(Purpose::error, of);
  nonce.serial += first;
  k.sample_error(stream, noise.view(), source_.seed(), nonce);
  k.ntt(stream, noise.view_as(Domain::eval), noise.view());
  noise.set_domain(Domain::eval);
  // `under` may have more primes.
  for_each_stretch(limbs, under.limbs, [&](const LimbSet& stretch) {
    k.mul(stream, b.restrict_to(stretch), View(a).restrict_to(stretch), under.restrict_to(stretch));
  });
  k.sub(stream, b, noise.view(), b);
  return key;
}

namespace {

// Of keys for this level.
LimbSet gadget_digit(const Chain& chain, u32 digit, u32 level) {
  const u32 lead = chain.lead(level), begin = digit * chain.alpha, end = begin + chain.alpha;
  return LimbSet::range(std::max(begin, lead) - lead, std::min(end - lead, chain.chain_limbs));
}

}  // namespace

SwitchKey SecretKey::make_switch_key(ConstView from, ConstView under, u32 max_level) {
  auto& stream = ring_->stream();
  auto& k = ring_->kernels();
  const auto& chain = ring_->chain();
  const auto [first, count, limbs] = ring_->extent(max_level);
  SwitchKey key = sample_zero(under, limbs, first, count, chain.dnum(max_level));
  if (is_short(max_level) || is_aligned(max_level) || max_level < ring_->top_level())
    key.max_level = max_level;
  const View b = key.pairs.view().components(0, 1);
  const LimbSet chain_primes = limbs.minus(ring_->special());
  const auto scalars_of = [&](const LimbSet& primes) {
    Scalars p;
    for (u32 i = 0; i < primes.size(); ++i) p.low[i] = p.high[i] = ring_->special_mod(primes[i]);
    return p;
  };
  for (u32 j = 0; j < count; ++j) {  // + P s' on the primes of the digit
    const LimbSet digit = chain_primes.intersect(gadget_digit(chain, first + j, max_level));
    View entry = b;
    entry.data = b.data + j * b.batch_stride;
    entry.shape.batch = 1;
    for_each_stretch(digit, from.limbs, [&](const LimbSet& stretch) {
      k.mul_add_scalar(stream, entry.restrict_to(stretch), from.restrict_to(stretch),
                       scalars_of(stretch));
    });
  }
  return key;
}

SwitchKey SecretKey::make_relinearisation_key(u32 max_level) {
  Poly squared(ring_->stream(), key_.shape(), key_.limbs(), Domain::eval, true);
  ring_->kernels().mul(ring_->stream(), squared.view(), key_.view(), key_.view());
  return make_switch_key(squared.view(), key_.view(), max_level);
}

SwitchKey SecretKey::make_galois_key(u64 element, u32 max_level) {
  Poly image(ring_->stream(), key_.shape(), key_.limbs(), Domain::eval, true);
  ring_->kernels().automorphism(ring_->stream(), image.view(), key_.view(),
                                ring::galois_inverse(element, ring_->log_n()));
  return make_switch_key(key_.view(), image.view(), max_level);
}

Poly encrypt_with_public_key(const RingContext& ring, const PublicKey& key, ConstView message,
                             random::SecretSource& source) {
  auto& stream = ring.stream();
  auto& k = ring.kernels();
  const u32 batch = message.shape.batch;
  const LimbSet& limbs = message.limbs;
  Poly v(stream, {ring.log_n(), 1, batch}, limbs, Domain::coeff, true);
  k.sample_ternary(stream, v.view(), source.seed(),
                   source.next(Purpose::encryption_ternary, batch));
  k.ntt(stream, v.view_as(Domain::eval), v.view());
  v.set_domain(Domain::eval);

  Poly errors(stream, {ring.log_n(), 2, batch}, limbs, Domain::coeff, true);
  k.sample_error(stream, errors.view(), source.seed(), source.next(Purpose::error, 2 * batch));
  View e0 = errors.view().components(0, 1);
  k.add(stream, e0, e0, message);
  k.ntt(stream, errors.view_as(Domain::eval), errors.view());
  errors.set_domain(Domain::eval);

  Poly out(stream, {ring.log_n(), 2, batch}, limbs, Domain::eval);
  const ConstView pair = key.pair.view().restrict_to(limbs);
  for (u32 c = 0; c < 2; ++c)
    k.mul(stream, out.view().components(c, 1), v.view(), pair.components(c, 1));
  k.add(stream, out.view(), out.view(), errors.view());
  return out;
}

}  // namespace crenel::rlwe
