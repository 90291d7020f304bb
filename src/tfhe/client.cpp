// Encryption and decryption.
#include <algorithm>

#include "crenel/core/error.h"
#include "device/room.h"
#include "tfhe/encoding.h"
#include "tfhe/keygen.h"
#include "tfhe/objects.h"
#include "tfhe/params/noise.h"

namespace crenel::tfhe {
namespace {

core::MemoryRequest messages_request(const char* operation, u64 messages, u64 bytes) {
  return {.what = cat(operation, " of ", messages, messages == 1 ? " message" : " messages"),
          .count = messages,
          .each = std::max<u64>(bytes / messages, 1),
          .units = "messages",
          .advice = "take fewer at a time, or free what is not needed"};
}

// Phases of all rows, [row][slot].
core::SecretVector<u32> phases(const Client::State& state, const Ciphertext::Data& ct) {
  const auto& home = state.context.state();
  auto& stream = *home.stream;
  const u64 words = ct.rows() * ct.slots * sizeof(u32);
  device::expect_room(stream, {words, words + ct.size * sizeof(u64)}, [&] {
    return messages_request("decryption", ct.size, 2 * words + ct.size * sizeof(u64));
  });
  core::SecretVector<u32> out(ct.rows() * ct.slots);
  device::Buffer memory = stream.allocate(out.size() * sizeof(u32), true);
  home.torus->phase(stream, memory.as<u32>(), ct.view(), state.secret.rest_device());
  stream.copy_out_secret(out.data(), memory.data(), memory.bytes());
  return out;
}

}  // namespace

Client::Client(std::shared_ptr<State> state) : state_(std::move(state)) {}
Client::Client(Client&&) noexcept = default;
Client::~Client() = default;
const Context& Client::context() const { return state_->context; }
const SecretKeyId& Client::secret_key_id() const { return state_->id; }

Ciphertext Client::encrypt(std::span<const u64> messages, u32 plain_modulus, u32 bound) {
  const auto& home = state_->context.state();
  auto& stream = *home.stream;
  stream.expect_no_capture("encryption");  // the same randomness again
  const u32 p = checked_plain_modulus(home.params, plain_modulus);
  check_messages(messages, home.params, p);
  for (std::size_t i = 0; bound != 0 && i < messages.size(); ++i)
    if (messages[i] >= bound)  // where, not what: errors are logged
      throw ParameterError(cat("message ", i, " is too large, expected below ", bound),
                           {{"index", i}, {"limit", bound}});
  auto data = empty_ciphertext(home, messages.size(), p, log_modulus_for(home.params, p));
  data->bound = bound;
  const u64 words = data->rows() * data->slots * sizeof(u64);
  device::expect_room(*home.stream, {data->bytes() + words, words}, [&] {
    return messages_request("encryption", messages.size(), data->bytes() + 2 * words);
  });

  core::SecretVector<u64> encoded(data->rows() * data->slots);
  for (std::size_t i = 0; i < messages.size(); ++i)
    encoded[i] = encode_message(messages[i], p, data->log_modulus);
  device::Buffer staged = stream.allocate(encoded.size() * sizeof(u64), true);
  stream.copy_in_secret(staged.data(), encoded.data(), encoded.size() * sizeof(u64));

  auto& source = state_->secret.source();
  data->secret_key = state_->id;
  data->noise = Noise(data->size, kErrorVariance);
  data->seed = source.derive_seed();
  data->payload = stream.allocate(data->bytes());
  const auto errors = source.next(random::Purpose::error, data->rows());
  home.torus->sample_lwe(stream, data->view(), {*data->seed}, {source.seed(), errors.serial},
                         state_->secret.rest_device(), staged.as<const u64>());
  return Ciphertext(std::move(data));
}

std::vector<u64> Client::decrypt(const Ciphertext& ciphertext) const {
  const auto& ct = ciphertext.data();
  expect_home(ct.params_id, ct.payload, state_->context.state(), "ciphertext");
  expect_same_secret_key(ct.secret_key, state_->id, "ciphertext", "this client");
  const auto phase = phases(*state_, ct);
  std::vector<u64> out(ct.size);
  for (u64 i = 0; i < ct.size; ++i)
    out[i] = decode_phase(phase[i], ct.plain_modulus, ct.log_modulus);
  return out;
}

double Client::p_fail_log2(const Ciphertext& ciphertext) const {
  const auto& ct = ciphertext.data();
  expect_home(ct.params_id, ct.payload, state_->context.state(), "ciphertext");
  return tail_log2(ct.noise.variance(), message_margin(ct.plain_modulus, ct.log_modulus));
}

std::vector<i64> Client::phase_errors(const Ciphertext& ciphertext,
                                      std::span<const u64> messages) const {
  const auto& ct = ciphertext.data();
  expect_home(ct.params_id, ct.payload, state_->context.state(), "ciphertext");
  expect_same_secret_key(ct.secret_key, state_->id, "ciphertext", "this client");
  if (messages.size() != ct.size)
    throw ParameterError(cat(messages.size(), " messages, expected ", ct.size),
                         {{"messages", messages.size()}, {"size", ct.size}});
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (messages[i] >= ct.plain_modulus)
      throw ParameterError(cat("message ", i, " is too large, expected below ", ct.plain_modulus),
                           {{"index", i}, {"limit", ct.plain_modulus}});
  const auto phase = phases(*state_, ct);
  std::vector<i64> out(ct.size);
  const u32 shift = 64 - ct.log_modulus;  // the sign bit of the modulus to that of the word
  for (u64 i = 0; i < ct.size; ++i) {
    const u64 place = encode_message(messages[i], ct.plain_modulus, ct.log_modulus);
    out[i] = static_cast<i64>((phase[i] - place) << shift) >> shift;
  }
  return out;
}

EvaluationKeys Client::evaluation_keys(const KeyRequest& request) {
  return make_evaluation_keys(state_->context, state_->secret, state_->id, request);
}

Client Client::single(u32 slot) const {
  const auto& home = state_->context.state();
  if (slot >= home.plan.slots)
    throw ParameterError(cat("slot ", slot, ", expected below ", home.plan.slots),
                         {{"slot", slot}, {"slots", home.plan.slots}});
  const Context context(home.params.with_slots(SlotCount(1)), home.device);
  const u64 words = SecretKeys::slot_words(home.plan);
  const auto& one = context.state();
  return Client(std::make_shared<State>(
      State{context,
            SecretKeys(one.plan, *one.stream, *one.poly, random::SecretSource::from_os(),
                       state_->secret.coefficients().subspan(slot * words, words)),
            random::secret_key_id_of_part(state_->id, slot)}));
}

}  // namespace crenel::tfhe
