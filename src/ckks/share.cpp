// Results for others: noise that hides the error of the circuit (docs/theory/security.md, "Shared
// results").
#include "ckks/share.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "ckks/decode.h"
#include "ckks/evaluator_state.h"
#include "ckks/norms.h"
#include "crenel/ckks/error_model.h"
#include "random/gaussian.h"

namespace crenel::ckks {
namespace {

using Complex = std::complex<double>;

constexpr u32 kMinBits = 30, kMaxBits = 64;
/// A sample of the noise exceeds this many standard deviations in one of 2^128 cases.
constexpr double kNoiseTail = 13.4;
/// Digits of the result below the noise: 2^-2 of it.
constexpr double kGridBits = 2.0;

void check(const Sharing& sharing) {
  if (sharing.queries < 1) throw ParameterError("queries 0, expected at least 1", {{"queries", 0}});
  if (sharing.statistical_bits < kMinBits || sharing.statistical_bits > kMaxBits)
    throw ParameterError(cat("statistical_bits ", sharing.statistical_bits, ", expected ", kMinBits,
                             " to ", kMaxBits),
                         {{"statistical_bits", sharing.statistical_bits}});
}

/// Without an error there would be no noise, and no circuit is without.
void check(const ErrorBound& bound) {
  for (const auto& [name, value] : {std::pair{"message", bound.message}, {"rms", bound.rms}})
    if (!(value > 0.0) || !std::isfinite(value))
      throw ParameterError(
          cat("error bound with ", name, " ", value, ", expected a positive finite number"),
          {{name, value}});
}

/// The ciphertext is of the circuit that the bound is of, as far as its metadata tell.
void check_agrees(const Ciphertext& c, const ErrorBound& bound) {
  const auto expect = [](const char* what, const auto& found, const auto& expected, bool equal) {
    if (!equal)
      throw StateError(cat("ciphertext of ", what, " ", found, ", expected ", expected,
                           " by the error model: not a result of the circuit modelled"),
                       {{what, found}, {"found", found}, {"expected", expected}});
  };
  expect("params_id", c.params_id(), bound.params_id, c.params_id() == bound.params_id);
  expect("level", c.level(), bound.level(), c.level() == bound.level());
  expect("scale", c.scale(), bound.scale(), scales_agree(c.scale(), bound.scale()));
  expect("slots", c.slots(), bound.slots(), c.slots() == bound.slots());
  expect("components", c.components(), bound.components, c.components() == bound.components);
}

/// What the noise is, decided by numbers of the client alone.
struct Flood {
  double std;        ///< of a coefficient
  double slot_std;   ///< root mean square in a slot, in the message's unit
  double precision;  ///< bits that remain
  double largest;    ///< |slot| of an honest result with its noise, at most
};

Flood plan_flood(const Params& params, const ErrorBound& bound, const Sharing& sharing) {
  const double queries = static_cast<double>(sharing.queries);
  const double factor = std::sqrt(12.0 * queries) * std::exp2(sharing.statistical_bits / 2.0);
  const double kept = 2.0 * static_cast<double>(bound.slots());
  Flood f{};
  f.std = factor * bound.rms * bound.scale();
  f.slot_std = factor * bound.rms * std::sqrt(kept);
  f.precision = std::log2(bound.message / f.slot_std);
  const double tail = NormBounds(params, bound.slots()).noise(1.0).max;
  f.largest = bound.message + bound.max + tail * f.std / bound.scale();
  const bool fits =
      f.std <= random::kMaxGaussianStd &&
      std::log2((bound.message + bound.ring) * bound.scale() + kNoiseTail * f.std) + 1.0 <
          params.log_q(bound.level());
  if (!(f.precision >= 1.0) || !fits)
    throw ParameterError(
        cat("nothing to share: messages of up to ", brief(bound.message), " with errors of ",
            brief(bound.rms), " (rms) need noise of ", brief(f.slot_std), " a slot for ",
            sharing.statistical_bits, " bits and ", sharing.queries, " queries, which leaves ",
            brief(f.precision),
            " bits, expected at least 1 and noise within the modulus: take fewer slots, a larger "
            "scale_bits, fewer queries or statistical_bits"),
        {{"message", bound.message},
         {"error_rms", bound.rms},
         {"noise_std", f.slot_std},
         {"precision_bits", f.precision},
         {"statistical_bits", sharing.statistical_bits},
         {"queries", sharing.queries}});
  const double allowed = std::exp2(-static_cast<double>(sharing.statistical_bits)) / queries;
  if (!(bound.failure <= allowed))
    throw ParameterError(cat("the error bound fails with probability 2^", std::log2(bound.failure),
                             ", expected at most 2^", std::log2(allowed)),
                         {{"failure", bound.failure}, {"expected", allowed}});
  return f;
}

/// Adds noise to the coefficients that decoding reads, as integers: what follows is a function of
/// integers that hide the error already, and may round as it likes.
void add_noise(const rlwe::RingContext& ring, rlwe::Poly& message, u64 slots, double std,
               random::SecretSource& source) {
  auto& stream = message.stream();
  const u64 n = ring.ring_dim(), gap = n / (2 * slots);
  const u32 rows = message.shape().batch;
  core::SecretVector<i64> noise(n * rows, 0);
  for (u32 row = 0; row < rows; ++row) {
    const auto nonce = source.next(random::Purpose::flooding);
    random::GaussianSource draw(source.seed(), nonce, std);
    for (u64 k = 0; k < n; k += gap) noise[row * n + k] = draw();
  }
  device::Buffer staged = stream.allocate(noise.size() * sizeof(i64), true);
  stream.copy_in_secret(staged.data(), noise.data(), noise.size() * sizeof(i64));
  rlwe::Poly added(stream, message.shape(), message.limbs(), ring::Domain::coeff, true);
  ring.kernels().reduce_signed(stream, added.view(), staged.as<const i64>());
  ring.kernels().add(stream, message.view(), message.view(), added.view());
}

}  // namespace

u64 ShareLedger::take(u64 rows, const Sharing& sharing) {
  const double limit = std::exp2(-static_cast<double>(sharing.statistical_bits));
  const double cost = static_cast<double>(rows) * limit / static_cast<double>(sharing.queries);
  const std::lock_guard lock(mutex_);
  if (!(account_.spent + cost <= limit * (1.0 + 1e-9)))
    throw StateError(
        cat("share of ", rows, " more vectors after ", account_.shares, ", expected at most ",
            sharing.queries, " under this key with ", sharing.statistical_bits,
            " bits (the shares so far have used 2^", brief(std::log2(account_.spent)),
            ", these need 2^", brief(std::log2(cost)), ", of 2^-", sharing.statistical_bits,
            "): state from the first share on how many there will be, or make a new key"),
        {{"shares", account_.shares},
         {"rows", rows},
         {"queries", sharing.queries},
         {"statistical_bits", sharing.statistical_bits},
         {"spent", account_.spent}});
  account_.spent += cost;
  return account_.shares += rows;
}

ShareAccount ShareLedger::account() const {
  const std::lock_guard lock(mutex_);
  return account_;
}

void ShareLedger::add(const ShareAccount& earlier) {
  if (!std::isfinite(earlier.spent) || earlier.spent < 0.0)
    throw ParameterError(cat("spent ", earlier.spent, ", expected a finite number >= 0"),
                         {{"spent", earlier.spent}});
  const std::lock_guard lock(mutex_);
  account_.shares += earlier.shares;
  account_.spent += earlier.spent;
}

ShareAccount Client::share_account() const { return state_->ledger->account(); }
void Client::add_to_share_account(const ShareAccount& earlier) { state_->ledger->add(earlier); }

void expect_not_decrypted(const Plaintext& plaintext, const char* what, const char* advice) {
  if (plaintext.data().decrypted)
    throw StateError(cat(what, " of a plaintext that a decryption gave, expected an encoded one: ",
                         "its error would travel on", advice),
                     {{"found", "decrypted"}, {"expected", "encoded"}});
}

Share Client::decrypt_to_share(const Ciphertext& ciphertext, const ErrorBound& bound,
                               const Sharing& sharing) {
  const auto& context = state_->context.state();
  expect_home(ciphertext.params_id(), ciphertext.data().poly, context, "ciphertext");
  expect_same_secret_key(ciphertext.secret_key_id(), state_->id, "ciphertext", "this client");
  check(sharing), check(bound);
  check_agrees(ciphertext, bound);
  const Flood flood = plan_flood(context.params, bound, sharing);
  Share share;
  // From here on it counts, whatever happens: what follows depends on the result.
  share.given = state_->ledger->take(ciphertext.batch(), sharing);
  rlwe::Poly message = state_->secret.decrypt(ciphertext.data().poly.view());
  add_noise(*context.ring, message, bound.slots(), flood.std, state_->secret.source());
  share.values = decode_coefficients(context, message, bound.meta);
  double largest = 0.0;
  for (const Complex& v : share.values) largest = std::max(largest, std::abs(v));
  if (!(largest <= flood.largest))
    throw StateError(
        cat("the result with its noise reaches beyond ", flood.largest,
            ", the most that the error model allows: the circuit was not followed, or its inputs "
            "are out of bounds"),
        {{"expected", flood.largest}});
  share.grid = std::exp2(std::floor(std::log2(flood.slot_std)) - kGridBits);
  const auto rounded = [&](double x) { return std::nearbyint(x / share.grid) * share.grid; };
  for (Complex& v : share.values)
    v = {rounded(v.real()), bound.meta.real ? 0.0 : rounded(v.imag())};
  share.real = bound.meta.real;
  share.noise_std = flood.slot_std;
  share.error_rms = bound.rms;
  share.precision_bits = flood.precision;
  share.bits_lost = std::log2(flood.slot_std / bound.rms);
  share.sharing = sharing;
  return share;
}

}  // namespace crenel::ckks
