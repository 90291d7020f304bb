// Context::keygen and Context::evaluator, EvaluationKeys, PublicKey.
#include <algorithm>

#include "ckks/objects.h"

namespace crenel::ckks {

Client Context::keygen() const {
  auto source = random::SecretSource::from_os();
  rlwe::SecretKey secret(state_->ring, std::move(source), params().spec().hamming_weight);
  return Client(std::make_shared<Client::State>(Client::State{*this, std::move(secret)}));
}

Evaluator Context::evaluator(EvaluationKeys keys) const {
  return Evaluator(*this, std::move(keys));
}

bool EvaluationKeys::has_relinearisation() const { return data_ && data_->set.relinearisation; }

bool EvaluationKeys::has_conjugation() const {
  return data_ &&
         data_->set.galois.count(ring::galois_element_for_conjugation(data_->ring->log_n()));
}

std::vector<i64> EvaluationKeys::rotations() const {
  std::vector<i64> steps;
  if (!data_) return steps;
  const i64 order = static_cast<i64>(data_->ring->ring_dim() / 2);
  const u64 mask = 4 * static_cast<u64>(order) - 1;
  u64 element = 1;
  for (i64 k = 0; k < order; ++k, element = (element * 5) & mask)
    if (data_->set.galois.count(element)) steps.push_back(k > order / 2 ? k - order : k);
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool EvaluationKeys::has_encapsulation() const { return data_ && data_->set.encapsulation; }

u64 EvaluationKeys::bytes() const {
  u64 total = 0;
  if (data_) data_->set.for_each([&](const rlwe::SwitchKey& key) { total += key.pairs.bytes(); });
  return total;
}

u64 EvaluationKeys::wire_bytes() const {
  u64 keys = 0;
  if (data_) data_->set.for_each([&](const rlwe::SwitchKey&) { ++keys; });
  return bytes() / 2 + keys * sizeof(random::Seed);
}

Ciphertext PublicKey::encrypt(const Plaintext& plaintext) const {
  const auto& state = data_->context.state();
  auto& stream = state.ring->stream();
  const auto& poly = plaintext.data().poly;
  expect_home(plaintext.params_id(), poly, state, "plaintext");
  rlwe::Poly message(stream, poly.shape(), poly.limbs(), ring::Domain::coeff, true);
  state.ring->kernels().intt(stream, message.view(), poly.view());
  auto source = random::SecretSource::from_os();
  auto out = std::make_unique<Ciphertext::Data>();
  out->meta = plaintext.metadata();
  out->params_id = plaintext.params_id();
  out->poly = rlwe::encrypt_with_public_key(*state.ring, data_->key, message.view(), source);
  return Ciphertext(std::move(out));
}

}  // namespace crenel::ckks
