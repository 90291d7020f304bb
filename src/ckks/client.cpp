#include "crenel/ckks/client.h"

#include <cmath>

#include "ckks/batch_request.h"
#include "ckks/decode.h"
#include "ckks/key_sizes.h"
#include "ckks/objects.h"
#include "ckks/params/security.h"
#include "crenel/core/watch.h"
#include "random/plausible.h"
#include "rlwe/encapsulation.h"
#include "rlwe/shared_keys.h"

namespace crenel::ckks {
using Complex = std::complex<double>;

void require_secure_encapsulation(const Params& params, const rlwe::RingContext& ring) {
  const rlwe::LimbSet limbs = rlwe::encapsulation_limbs(ring);
  if (params.insecure()) return;
  double log_modulus = 0;
  for (u32 i = 0; i < limbs.size(); ++i) log_modulus += std::log2(ring.modulus(limbs[i]).q);
  const u32 weight = rlwe::kEncapsulationWeight;
  const auto bound = max_log_pq(params.log_n(), 128, weight);
  if (bound && log_modulus <= *bound) return;
  const std::string limit = bound ? cat(*bound) : "no entry of the table";
  throw ParameterError(
      cat("encapsulation keys: the modulus of the key under the sparse secret has ", log_modulus,
          " bits, expected at most ", limit, " for N = 2^", params.log_n(), ": ",
          security_source(weight)),
      {{"log_modulus", log_modulus},
       {"bound", bound ? FieldValue(*bound) : FieldValue(limit)},
       {"hamming_weight", weight}});
}

Client::Client(std::shared_ptr<State> state) : state_(std::move(state)) {}
Client::Client(Client&&) noexcept = default;
Client::~Client() = default;
const Context& Client::context() const { return state_->context; }
const SecretKeyId& Client::secret_key_id() const { return state_->id; }

Ciphertext Client::encrypt(const Plaintext& plaintext) {
  const auto& ring = *state_->context.state().ring;
  const auto& poly = plaintext.data().poly;
  ring.stream().expect_no_capture("encryption");  // the same randomness again
  expect_home(plaintext.params_id(), poly, state_->context.state(), "plaintext");
  expect_not_decrypted(plaintext, "encryption");
  // Message, errors, and the ciphertext's two components.
  device::expect_room(ring.stream(), {.device = 4 * poly.bytes()}, [&] {
    return batch_request("encryption", poly.shape().batch, 4 * poly.bytes());
  });
  rlwe::Poly message(ring.stream(), poly.shape(), poly.limbs(), ring::Domain::coeff, true);
  ring.kernels().intt(ring.stream(), message.view(), poly.view());
  auto out = std::make_unique<Ciphertext::Data>();
  out->meta = encrypted_metadata(plaintext, state_->id);
  out->params_id = plaintext.params_id();
  random::Seed seed;
  out->poly = state_->secret.encrypt(message.view(), seed);
  out->seed = seed;
  return Ciphertext(std::move(out));
}

Ciphertext Client::encrypt(std::span<const Complex> values, std::optional<u32> level, double scale,
                           u64 slots, u32 batch, double bound) {
  return encrypt(state_->context.encode(values, level, scale, slots, batch, bound));
}

Ciphertext Client::encrypt(std::span<const double> values, std::optional<u32> level, double scale,
                           u64 slots, u32 batch, double bound) {
  return encrypt(state_->context.encode(values, level, scale, slots, batch, bound));
}

std::vector<Complex> Client::decrypt(const Ciphertext& ciphertext) {
  const auto& context = state_->context.state();
  expect_home(ciphertext.params_id(), ciphertext.data().poly, context, "ciphertext");
  expect_same_secret_key(ciphertext.secret_key_id(), state_->id, "ciphertext", "this client");
  const auto& meta = ciphertext.metadata();
  // Messages are short: the first limbs of the window hold them, and one more limb tells when not.
  const rlwe::ConstView all = ciphertext.data().poly.view();
  const u32 few = limbs_to_decode(context, meta), batch = ciphertext.batch();
  const u64 message = u64(batch) * few * context.ring->ring_dim() * sizeof(rlwe::Word);
  // Its residues here and there, its coefficients, its slots.
  const u64 values =
      u64(batch) * (context.ring->ring_dim() * sizeof(double) + meta.slots * sizeof(Complex));
  device::expect_room(context.ring->stream(), {message, message + values},
                      [&] { return batch_request("decryption", batch, 2 * message + values); });
  if (few < all.limbs.size()) {
    const rlwe::Poly message = state_->secret.decrypt(all.limb_window(0, few));
    if (auto slots = try_decode_coefficients(context, message, meta)) return *slots;
  }
  return decode_coefficients(context, state_->secret.decrypt(all), meta);
}

Plaintext Client::decrypt_to_plaintext(const Ciphertext& ciphertext) const {
  expect_home(ciphertext.params_id(), ciphertext.data().poly, state_->context.state(),
              "ciphertext");
  expect_same_secret_key(ciphertext.secret_key_id(), state_->id, "ciphertext", "this client");
  const auto& ring = *state_->context.state().ring;
  auto data = std::make_unique<Plaintext::Data>();
  data->meta = ciphertext.metadata();
  data->meta.secret_key = {};
  data->params_id = ciphertext.params_id();
  data->decrypted = true;
  data->poly = state_->secret.decrypt(ciphertext.data().poly.view());
  ring.kernels().ntt(ring.stream(), data->poly.view_as(ring::Domain::eval), data->poly.view());
  data->poly.set_domain(ring::Domain::eval);
  return Plaintext(std::move(data));
}

EvaluationKeys Client::evaluation_keys(const KeyRequest& request) {
  const auto& context = state_->context.state();
  auto data = std::make_shared<EvaluationKeys::Data>();
  data->params_id = context.params.id();
  data->secret_key = state_->id;
  data->ring = context.ring;
  auto& secret = state_->secret;
  if (request.encapsulation) require_secure_encapsulation(context.params, *context.ring);
  expect_room_for_keys(context, request);
  const auto turned = turned_elements(context.params, request);
  if (!turned.empty()) rlwe::expect_over_mod_raise(*context.ring);
  const auto keys = switch_keys(context.params, request);
  const watch::Task task(keys.size() + u64(request.encapsulation), "evaluation keys");
  for (const auto& [id, level] : keys) {
    data->set.put(id, make_switch_key(secret, id, level));
    watch::advance();
  }
  if (request.encapsulation) {
    data->set.encapsulation = secret.make_encapsulation_keys(rlwe::kEncapsulationWeight, turned);
    watch::advance();
  }
  rlwe::share_between_groups(data->set);
  return EvaluationKeys(std::move(data));
}

PublicKey Client::public_key() {
  return PublicKey(std::make_shared<PublicKey::Data>(
      PublicKey::Data{state_->context, state_->secret.make_public_key(), state_->id}));
}

Client client_of(const Context& context, std::span<const i8> coefficients, const SecretKeyId& id) {
  const u64 n = coefficients.size();
  const auto [ones, minus_ones, other] = random::count_ternary(coefficients);
  const auto refuse = [](const char* found, const std::string& expected) {
    throw SerializationError(
        cat("cannot load the secret key: found ", found, ", expected ", expected),
        {{"where", "tensor 'coefficients'"}, {"found", found}, {"expected", expected}});
  };
  if (other) refuse("other coefficients", "-1, 0, 1");
  const u64 weight = context.params().spec().hamming_weight;
  if (weight != 0 && ones + minus_ones != weight)
    refuse("another Hamming weight", cat(weight, " of these parameters"));
  const bool plausible = weight != 0 ? random::plausible_count(ones, weight, 0.5)
                                     : random::plausible_count(ones, n, 0.25) &&
                                           random::plausible_count(minus_ones, n, 0.25) &&
                                           random::plausible_count(n - ones - minus_ones, n, 0.5);
  if (!plausible)
    refuse("numbers of 1 and -1 that chance does not give", "those of a key that was drawn");
  rlwe::SecretKey secret(context.state().ring, random::SecretSource::from_os(), coefficients);
  return Client(std::make_shared<Client::State>(Client::State{context, std::move(secret), id}));
}

}  // namespace crenel::ckks
