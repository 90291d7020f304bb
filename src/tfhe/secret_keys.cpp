#include "tfhe/secret_keys.h"

#include "crenel/core/error.h"
#include "random/chacha20.h"
#include "random/plausible.h"

namespace crenel::tfhe {

core::SecretVector<i8> sample_secret(random::SecretSource& source, u64 count, bool binary) {
  random::ChaChaState state =
      random::chacha20_state(source.seed(), source.next(random::Purpose::secret_key));
  const random::WipeOnExit wipe_state(&state, sizeof state);
  random::ChaChaBlock block{};
  const random::WipeOnExit wipe_block(&block, sizeof block);
  core::SecretVector<i8> out(count);
  for (u64 i = 0; i < count; ++i) {
    if (i % 8 == 0) block = random::chacha20_block(state, static_cast<u32>(i / 8));
    const u32* w = block.word + 2 * (i % 8);
    const u64 x = static_cast<u64>(w[1]) << 32 | w[0];
    const i8 ternary = static_cast<i8>(static_cast<i32>((static_cast<u128>(x) * 3) >> 64) - 1);
    out[i] = binary ? static_cast<i8>(x >> 63) : ternary;
  }
  return out;
}

namespace {

// An LWE secret or one polynomial: each alone must be what key generation gives, since one that is
// zero would be enough to lose all.
void check_part(const char* what, std::span<const i8> part, bool binary) {
  const auto [ones, minus_ones, other] = random::count_ternary(part);
  const auto refuse = [&](const char* found, const char* expected) {
    throw SerializationError(
        cat("cannot load the secret key: found ", what, " with ", found, ", expected ", expected),
        {{"where", what}, {"found", found}, {"expected", expected}});
  };
  if (other || (binary && minus_ones != 0))
    refuse("other coefficients", binary ? "0, 1" : "-1, 0, 1");
  const u64 n = part.size();
  const bool plausible = binary ? random::plausible_count(ones, n, 0.5)
                                : random::plausible_count(ones, n, 1.0 / 3) &&
                                      random::plausible_count(minus_ones, n, 1.0 / 3) &&
                                      random::plausible_count(n - ones - minus_ones, n, 1.0 / 3);
  if (!plausible)
    refuse("numbers of 1 and -1 that chance does not give", "those of a key that was drawn");
}

}  // namespace

SecretKeys::SecretKeys(const device::TorusPlan& plan, device::Stream& stream,
                       device::PolyKernels& poly, random::SecretSource source)
    : plan_(plan), source_(std::move(source)) {
  const bool binary = plan.secret == device::LweSecret::binary;
  host_.reserve(slot_words(plan) * plan.slots);
  for (u32 slot = 0; slot < plan.slots; ++slot) {
    const auto lwe = sample_secret(source_, plan.lwe_dim, binary);
    const auto glwe = sample_secret(source_, plan.extracted_dim(), false);
    host_.insert(host_.end(), lwe.begin(), lwe.end());
    host_.insert(host_.end(), glwe.begin(), glwe.end());
  }
  upload(stream, poly);
}

SecretKeys::SecretKeys(const device::TorusPlan& plan, device::Stream& stream,
                       device::PolyKernels& poly, random::SecretSource source,
                       std::span<const i8> coefficients)
    : plan_(plan), source_(std::move(source)) {
  const u64 slot = slot_words(plan), expected = slot * plan.slots;
  if (coefficients.size() != expected)
    throw SerializationError(
        cat("secret key of ", coefficients.size(), " coefficients, expected ", expected),
        {{"where", "secret key"}, {"found", coefficients.size()}, {"expected", expected}});
  const bool binary = plan.secret == device::LweSecret::binary;
  for (u64 first = 0; first < expected; first += slot) {
    check_part("an LWE secret", coefficients.subspan(first, plan.lwe_dim), binary);
    for (u64 at = first + plan.lwe_dim; at < first + slot; at += plan.ring_dim())
      check_part("a GLWE polynomial", coefficients.subspan(at, plan.ring_dim()), false);
  }
  host_.assign(coefficients.begin(), coefficients.end());
  upload(stream, poly);
}

void SecretKeys::upload(device::Stream& stream, device::PolyKernels& poly) {
  const u64 n = plan_.lwe_dim, kn = plan_.extracted_dim(), slot = slot_words(plan_);
  lwe_ = stream.allocate(plan_.slots * n, true);
  if (plan_.rests_extracted()) rest_ = stream.allocate(plan_.slots * kn, true);
  core::SecretVector<i64> wide(plan_.slots * kn);
  for (u32 j = 0; j < plan_.slots; ++j) {
    stream.copy_in_secret(lwe_.as<i8>() + j * n, host_.data() + j * slot, n);
    if (plan_.rests_extracted())
      stream.copy_in_secret(rest_.as<i8>() + j * kn, host_.data() + j * slot + n, kn);
    for (u64 i = 0; i < kn; ++i) wide[j * kn + i] = host_[j * slot + n + i];
  }
  device::Buffer staged = stream.allocate(wide.size() * sizeof(i64), true);
  stream.copy_in_secret(staged.data(), wide.data(), wide.size() * sizeof(i64));

  const u64 words = wide.size() * plan_.primes.size();
  glwe_ = stream.allocate(words * sizeof(u32), true);
  negated_ = stream.allocate(words * sizeof(u32), true);
  const auto limbs = ring::LimbSet::range(0, static_cast<u32>(plan_.primes.size()));
  const ring::PolyShape shape{plan_.log_n, plan_.glwe_dim, plan_.slots};
  const ring::PolyView<u32> coeff(glwe_.as<u32>(), shape, limbs, ring::Domain::coeff);
  const ring::PolyView<u32> eval(glwe_.as<u32>(), shape, limbs, ring::Domain::eval);
  const ring::PolyView<u32> minus(negated_.as<u32>(), shape, limbs, ring::Domain::eval);
  poly.reduce_signed(stream, coeff, staged.as<const i64>());
  poly.ntt(stream, eval, coeff);
  poly.neg(stream, minus, eval);
}

ring::PolyView<const u32> SecretKeys::view(const device::Buffer& buffer) const {
  return {buffer.as<const u32>(),
          {plan_.log_n, plan_.glwe_dim, plan_.slots},
          ring::LimbSet::range(0, static_cast<u32>(plan_.primes.size())),
          ring::Domain::eval};
}

}  // namespace crenel::tfhe
