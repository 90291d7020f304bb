// Context::keygen and Context::evaluator, EvaluationKeys, PublicKey.
#include <algorithm>

#include "ckks/batch_request.h"
#include "ckks/key_sizes.h"
#include "ckks/objects.h"
#include "crenel/core/watch.h"

namespace crenel::ckks {

Client Context::keygen() const {
  auto source = random::SecretSource::from_os();
  rlwe::SecretKey secret(state_->ring, std::move(source), params().spec().hamming_weight);
  return Client(std::make_shared<Client::State>(Client::State{*this, std::move(secret)}));
}

Evaluator Context::evaluator(EvaluationKeys keys) const {
  return Evaluator(*this, std::move(keys));
}

SecretKeyId EvaluationKeys::secret_key_id() const {
  return data_ ? data_->secret_key : SecretKeyId();
}

bool EvaluationKeys::has_relinearisation() const {
  return data_ && data_->has(rlwe::kRelinearisation);
}

bool EvaluationKeys::has_conjugation() const {
  return data_ && data_->has(ring::galois_element_for_conjugation(data_->ring->log_n()));
}

namespace {

// Steps of the rotations for whose element has(element), ascending.
template <class Has>
std::vector<i64> steps_with(const rlwe::RingContext& ring, const Has& has) {
  std::vector<i64> steps;
  const i64 order = static_cast<i64>(ring.ring_dim() / 2);
  const u64 mask = 4 * static_cast<u64>(order) - 1;
  u64 element = 5;
  for (i64 k = 1; k < order; ++k, element = (element * 5) & mask)
    if (has(element)) steps.push_back(k > order / 2 ? k - order : k);
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

std::vector<i64> EvaluationKeys::rotations() const {
  if (!data_) return {};
  return steps_with(*data_->ring, [&](u64 element) { return data_->has(element); });
}

std::vector<i64> EvaluationKeys::aligned_rotations() const {
  if (!data_) return {};
  return steps_with(*data_->ring,
                    [&](u64 element) { return data_->has(rlwe::aligned_key(element)); });
}

namespace {

std::optional<u32> level_of(const EvaluationKeys::Data* data, rlwe::KeyId id) {
  if (data == nullptr) return std::nullopt;
  const auto level = data->max_level(id);
  return level ? std::optional(std::min(rlwe::highest_ordinary(*level), data->ring->top_level()))
               : std::nullopt;
}

}  // namespace

std::optional<u32> EvaluationKeys::rotation_level(i64 steps) const {
  if (!data_) return std::nullopt;
  const u64 element = ring::galois_element_for_rotation(steps, data_->ring->log_n());
  return element == rlwe::kNoKey ? data_->ring->top_level() : level_of(data(), element);
}

std::optional<u32> EvaluationKeys::conjugation_level() const {
  if (!data_) return std::nullopt;
  return level_of(data(), ring::galois_element_for_conjugation(data_->ring->log_n()));
}

std::optional<u32> EvaluationKeys::relinearisation_level() const {
  return level_of(data(), rlwe::kRelinearisation);
}

std::optional<u32> EvaluationKeys::aligned_rotation(i64 steps) const {
  if (!data_) return std::nullopt;
  const u64 element = ring::galois_element_for_rotation(steps, data_->ring->log_n());
  return level_of(data(), rlwe::aligned_key(element));
}

std::optional<u32> EvaluationKeys::aligned_conjugation() const {
  if (!data_) return std::nullopt;
  return level_of(data(),
                  rlwe::aligned_key(ring::galois_element_for_conjugation(data_->ring->log_n())));
}

std::optional<u32> EvaluationKeys::aligned_relinearisation() const {
  return level_of(data(), rlwe::aligned_key(rlwe::kRelinearisation));
}

bool EvaluationKeys::has_encapsulation() const { return data_ && data_->has(rlwe::kDenseToSparse); }

u64 EvaluationKeys::bytes() const {
  if (!data_) return 0;
  if (data_->staged) return data_->staged->device_bytes();
  u64 total = 0;
  data_->set.for_each([&](const rlwe::SwitchKey& key) { total += key.pairs.memory_bytes(); });
  return total;
}

u64 EvaluationKeys::host_bytes() const {
  return data_ && data_->staged ? data_->staged->host_bytes() : 0;
}

EvaluationKeys EvaluationKeys::staged(u64 device_bytes) const {
  if (!data_) return *this;
  if (data_->staged)
    throw StateError("staging of keys that are staged, expected keys in device memory",
                     {{"found", "staged keys"}, {"expected", "keys in device memory"}});
  u64 largest = 0;
  data_->set.for_each(
      [&](const rlwe::SwitchKey& key) { largest = std::max<u64>(largest, key.pairs.bytes()); });
  const u64 all = data_->set.pair_bytes();
  const u64 frames = least_staged_bytes(device_bytes, all, largest);
  device::expect_room(data_->ring->device(), {frames, all / 2}, [&] {
    return core::MemoryRequest{.what = cat("staging of ", count(), " evaluation keys within ",
                                           core::human_bytes(device_bytes)),
                               .advice =
                                   "stage fewer keys, or save them and load those that are "
                                   "needed"};
  });
  std::map<rlwe::KeyId, rlwe::HostKey> keys;
  const watch::Task task(data_->set.ids().size(), "staging keys");
  for (rlwe::KeyId id : data_->set.ids()) {
    keys.emplace(id, rlwe::to_host(*data_->ring, *data_->set.find(id)));
    watch::advance();
  }
  auto data = std::make_shared<Data>();
  data->params_id = data_->params_id;
  data->secret_key = data_->secret_key;
  data->ring = data_->ring;
  data->staged = std::make_shared<rlwe::StagedKeys>(data->ring, std::move(keys), device_bytes);
  return EvaluationKeys(std::move(data));
}

u32 EvaluationKeys::count() const { return data_ ? static_cast<u32>(data_->ids().size()) : 0; }

u64 EvaluationKeys::wire_bytes() const {
  if (!data_) return 0;
  const u64 halves = data_->staged ? data_->staged->half_bytes() : data_->set.pair_bytes() / 2;
  return halves + count() * sizeof(random::Seed);
}

const SecretKeyId& PublicKey::secret_key_id() const { return data_->secret_key; }

Ciphertext PublicKey::encrypt(const Plaintext& plaintext) const {
  const auto& state = data_->context.state();
  auto& stream = state.ring->stream();
  const auto& poly = plaintext.data().poly;
  stream.expect_no_capture("encryption");  // the same randomness again
  expect_home(plaintext.params_id(), poly, state, "plaintext");
  expect_not_decrypted(plaintext, "encryption");
  // Message, the ternary factor, two errors, two components.
  device::expect_room(stream, {.device = 6 * poly.bytes()}, [&] {
    return batch_request("encryption", poly.shape().batch, 6 * poly.bytes());
  });
  rlwe::Poly message(stream, poly.shape(), poly.limbs(), ring::Domain::coeff, true);
  state.ring->kernels().intt(stream, message.view(), poly.view());
  auto source = random::SecretSource::from_os();
  auto out = std::make_unique<Ciphertext::Data>();
  out->meta = encrypted_metadata(plaintext, data_->secret_key);
  out->params_id = plaintext.params_id();
  out->poly = rlwe::encrypt_with_public_key(*state.ring, data_->key, message.view(), source);
  return Ciphertext(std::move(out));
}

}  // namespace crenel::ckks
