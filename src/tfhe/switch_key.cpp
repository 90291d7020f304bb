// Key-switching and packing keys: LWE encryptions of v B^j times words of a secret.
#include <algorithm>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "tfhe/bit_packing.h"
#include "tfhe/keygen.h"
#include "tfhe/lists.h"
#include "tfhe/params/plan.h"
#include "tfhe/reduced.h"

namespace crenel::tfhe {
namespace {

// Rows a call: bounds the messages in memory, not the key.
constexpr u64 kChunkRows = u64(1) << 16;

// The (word, digit, v - 1) of a row.
struct RowIndex {
  u32 word, digit;
  u64 value;
};

RowIndex row_index(const device::SwitchShape& shape, u64 row) {
  const u64 values = shape.digit_rows();
  return {static_cast<u32>(row / (values * shape.digits)),
          static_cast<u32>(row / values % shape.digits), row % values + 1};
}

// message(row, slot): what the row encrypts for the slot, modulo 2^64.
template <class Message>
device::Buffer make_key(const Context::State& home, SecretKeys& secret,
                        const device::SwitchShape& shape, const random::Seed& mask_seed,
                        Message message) {
  auto& stream = *home.stream;
  device::Buffer key = stream.allocate(shape.key_bytes());
  const u64 mask = (u64(1) << shape.log_modulus) - 1;
  auto& source = secret.source();
  const u64 most = std::min(shape.key_rows(), kChunkRows);
  core::SecretVector<u64> host(most * shape.slots);
  device::Buffer messages = stream.allocate(host.size() * sizeof(u64), true);
  for (u64 first = 0; first < shape.key_rows(); first += most) {
    const u64 rows = std::min(most, shape.key_rows() - first);
    watch::point();
    for (u64 y = 0; y < rows; ++y)
      for (u32 slot = 0; slot < shape.slots; ++slot)
        host[y * shape.slots + slot] = message(row_index(shape, first + y), slot) & mask;
    stream.copy_in_secret(messages.data(), host.data(), rows * shape.slots * sizeof(u64));
    const auto errors = source.next(random::Purpose::error, rows);
    home.torus->sample_lwe(stream, shape.key(key.data()).slice(first, rows), {mask_seed, first},
                           {source.seed(), errors.serial}, secret.lwe_device(),
                           messages.as<const u64>());
    watch::advance();
  }
  return key;
}

device::Buffer expand_key(const Context::State& home, const device::SwitchShape& shape,
                          const random::Seed& seed, std::span<const u64> bodies) {
  auto& stream = *home.stream;
  device::Buffer key = stream.allocate(shape.key_bytes());
  const u64 most = std::min(shape.key_rows(), kChunkRows);
  device::Buffer staged = stream.allocate(most * shape.slots * sizeof(u64));
  for (u64 first = 0; first < shape.key_rows(); first += most) {
    const u64 rows = std::min(most, shape.key_rows() - first);
    stream.copy_in(staged.data(), bodies.data() + first * shape.slots,
                   rows * shape.slots * sizeof(u64));
    home.torus->expand_lwe(stream, shape.key(key.data()).slice(first, rows), {seed, first},
                           staged.as<const u64>());
    watch::advance();
  }
  return key;
}

std::vector<u64> bodies_of(const device::Buffer& key, const device::SwitchShape& shape) {
  auto& stream = *key.stream();
  const u64 rows = shape.key_rows(), word = shape.key_word_bytes(), row = shape.slots * word;
  device::Buffer dense = stream.allocate(rows * row);
  stream.copy_rows(dense.data(), row, key.as<const u8>() + shape.out_dim * word,
                   shape.out_words() * word, row, rows);
  std::vector<u64> out(rows * shape.slots);
  if (word == sizeof(u64)) {
    stream.copy_out(out.data(), dense.data(), rows * row);
    return out;
  }
  std::vector<u32> narrow(out.size());
  stream.copy_out(narrow.data(), dense.data(), rows * row);
  std::copy(narrow.begin(), narrow.end(), out.begin());
  return out;
}

void expect_words(const char* what, u64 found, u64 expected) {
  if (found != expected)
    throw SerializationError(cat(what, " of ", found, " words, expected ", expected),
                             {{"found", found}, {"expected", expected}});
}

void expect_reduced(const char* what, std::span<const u64> words, u32 log_modulus) {
  const u64 i = first_unreduced(words, log_modulus);
  if (i == words.size()) return;
  throw SerializationError(
      cat(what, ": word ", i, " is ", words[i], ", expected below 2^", log_modulus),
      {{"index", i}, {"found", words[i]}, {"expected", cat("below 2^", log_modulus)}});
}

void expect_residues(const char* what, std::span<const u32> words, const std::vector<u64>& primes,
                     u32 log_n) {
  const u64 i = first_unreduced(words, primes, log_n);
  if (i == words.size()) return;
  const u64 prime = primes[(i >> log_n) % primes.size()];
  throw SerializationError(
      cat(what, ": word ", i, " is ", words[i], ", expected a residue modulo ", prime),
      {{"index", i}, {"found", words[i]}, {"expected", cat("below ", prime)}});
}

std::shared_ptr<EvaluationKeys::Data> new_data(const Context& context, const SecretKeyId& id) {
  auto data = std::make_shared<EvaluationKeys::Data>();
  data->params_id = context.params().id();
  data->secret_key = id;
  data->home = context.shared_state();
  return data;
}

}  // namespace

device::SwitchShape packing_shape(const device::TorusPlan& plan) {
  device::SwitchShape shape;
  shape.in_dim = plan.slots * plan.lwe_dim;
  shape.out_dim = plan.lwe_dim;
  shape.slots = plan.slots;
  shape.log_modulus = std::min(plan.log_switch_modulus, u32(32));
  shape.log_out_modulus = plan.log_lwe_modulus;
  shape.base_log = std::min(plan.switch_base_log, u32(3));
  shape.digits = (shape.log_modulus + shape.base_log - 1) / shape.base_log;
  return shape;
}

device::Need key_memory(const Context::State& home, const KeyRequest& request) {
  u64 device = home.torus->bootstrap_key_bytes() + home.torus->switch_shape().key_bytes();
  u64 host = bootstrap_body_words(home.plan) * sizeof(u32);
  if (request.packing) device += packing_shape(home.plan).key_bytes();
  if (request.lists) {
    const u64 bodies = list_key_words(home.plan) * sizeof(u32);
    device += 2 * bodies;
    host += bodies;
  }
  return {device, host};
}

void expect_possible(const Context::State& home, const KeyRequest& request) {
  if (request.lists) expect_lists(home);
  if (request.packing && home.plan.rests_extracted())
    throw UnsupportedError(
        cat("keys for pack with '", home.params.name(), "', whose ciphertexts rest ",
            "under the extracted key, expected a set without groups"),
        {{"name", home.params.name()}, {"key", "packing"}});
}

u64 key_bytes(const Context& context, const KeyRequest& request) {
  expect_possible(context.state(), request);
  return key_memory(context.state(), request).device;
}

void expect_room_for_keys(const Context::State& home, const KeyRequest& request, u64 host) {
  const bool packing = request.packing;
  device::Need need = key_memory(home, request);
  need.host += host;
  device::expect_room(*home.device, need, [&] {
    return core::MemoryRequest{
        .what = cat("evaluation keys of ", home.params.name(), packing ? " with packing" : ""),
        .advice = packing ? "leave out packing, or take a set with fewer slots"
                          : "take a set with fewer slots or smaller dimensions"};
  });
}

namespace {

// Units of a Task that makes keys: elements of the bootstrapping key, calls for the others.
u64 units(const Context::State& home, const KeyRequest& request) {
  const auto calls = [](const device::SwitchShape& shape) {
    return (shape.key_rows() + kChunkRows - 1) / kChunkRows;
  };
  return made_plan(home.plan).steps() + calls(home.torus->switch_shape()) +
         (request.packing ? calls(packing_shape(home.plan)) : 0) + (request.lists ? 1 : 0);
}

}  // namespace

KeyRequest request_of(const EvaluationKeys& keys) { return {keys.has_packing(), keys.has_lists()}; }

EvaluationKeys make_evaluation_keys(const Context& context, SecretKeys& secret,
                                    const SecretKeyId& id, const KeyRequest& request) {
  const Context::State& home = context.state();
  expect_possible(home, request);
  expect_room_for_keys(home, request);
  auto data = new_data(context, id);
  const watch::Task task(units(home, request), "evaluation keys");
  make_bootstrap_key(home, secret, *data);
  const auto shape = home.torus->switch_shape();
  data->switch_seed = secret.source().derive_seed();
  data->key_switch =
      make_key(home, secret, shape, data->switch_seed, [&](const RowIndex& row, u32 slot) {
        const i64 s = secret.extracted(slot, row.word);
        return (static_cast<u64>(s) * row.value)
               << (shape.log_weight() + shape.base_log * row.digit);
      });
  if (request.lists) {
    make_list_key(home, secret, *data);
    watch::advance();
  }
  if (request.packing) {
    const auto pack = packing_shape(home.plan);
    const u32 n = home.plan.lwe_dim;
    data->packing_seed = secret.source().derive_seed();
    data->packing =
        make_key(home, secret, pack, data->packing_seed, [&](const RowIndex& row, u32 slot) {
          if (row.word / n != slot) return u64(0);
          const i64 s = secret.lwe(0, row.word % n);
          return (static_cast<u64>(s) * row.value) << (pack.base_log * row.digit);
        });
  }
  home.stream->trim();  // what the making took is more than evaluation will need
  return EvaluationKeys(std::move(data));
}

EvaluationKeys keys_from_parts(const Context& context, const EvaluationKeyParts& parts) {
  const Context::State& home = context.state();
  const auto shape = home.torus->switch_shape(), pack = packing_shape(home.plan);
  if (parts.secret_key.is_none())  // results would claim to need no key
    throw SerializationError("evaluation keys of no secret key, expected its id",
                             {{"found", "none"}, {"expected", "a secret key id"}});
  expect_words("bootstrapping key", parts.bootstrap_bodies.size(), bootstrap_body_words(home.plan));
  expect_residues("bootstrapping key", parts.bootstrap_bodies, home.plan.primes, home.plan.log_n);
  expect_words("key-switching key", parts.switch_bodies.size(), shape.key_rows() * shape.slots);
  expect_reduced("key-switching key", parts.switch_bodies, shape.log_modulus);
  if (parts.packing_seed) {
    expect_words("packing key", parts.packing_bodies.size(), pack.key_rows() * pack.slots);
    expect_reduced("packing key", parts.packing_bodies, pack.log_modulus);
  }
  const KeyRequest there{parts.packing_seed.has_value(), parts.lists_seed.has_value()};
  if (there.lists) {
    expect_words("key of lists", parts.lists_bodies.size(), list_key_words(home.plan));
    expect_residues("key of lists", parts.lists_bodies, home.lists().plan.primes, home.plan.log_n);
  }
  auto data = new_data(context, parts.secret_key);
  const watch::Task task(units(home, there), "loading keys");
  data->bootstrap_seed = parts.bootstrap_seed;
  data->bootstrap_bodies.assign(parts.bootstrap_bodies.begin(), parts.bootstrap_bodies.end());
  data->bootstrap = load_bootstrap_key(home, *home.torus, *data);
  data->switch_seed = parts.switch_seed;
  data->key_switch = expand_key(home, shape, parts.switch_seed, parts.switch_bodies);
  if (parts.packing_seed) {
    data->packing_seed = *parts.packing_seed;
    data->packing = expand_key(home, pack, *parts.packing_seed, parts.packing_bodies);
  }
  if (there.lists) {
    data->lists_seed = *parts.lists_seed;
    data->lists_bodies.assign(parts.lists_bodies.begin(), parts.lists_bodies.end());
    load_list_key(home, *data);
    watch::advance();
  }
  home.stream->trim();  // what the making took is more than evaluation will need
  return EvaluationKeys(std::move(data));
}

void expect_key_group(const EvaluationKeys::Data& keys, const Context::State& home) {
  const u32 found = keys.home->plan.made_group(), expected = home.plan.made_group();
  if (found != expected)
    throw StateError(cat("keys made for groups of ", found, " secret bits, expected ", expected,
                         "; take parameters with_key_group(", found, ")"),
                     {{"found", found}, {"expected", expected}});
}

EvaluationKeys with_steps_of(const Context& context, const EvaluationKeys& keys) {
  const Context::State& home = context.state();
  const EvaluationKeys::Data& from = *keys.data();
  expect_room_for_keys(home, {false, keys.has_lists()}, from.bootstrap_bodies.size() * sizeof(u32));
  auto data = new_data(context, from.secret_key);
  const watch::Task task(made_plan(home.plan).steps(), "keys of other steps");
  data->bootstrap_seed = from.bootstrap_seed;
  data->bootstrap_bodies = from.bootstrap_bodies;
  data->bootstrap = load_bootstrap_key(home, *home.torus, *data);
  data->switch_seed = from.switch_seed;
  data->key_switch = home.stream->allocate(from.key_switch.bytes());
  home.stream->copy(data->key_switch.data(), from.key_switch.data(), from.key_switch.bytes());
  if (keys.has_lists()) {
    data->lists_seed = from.lists_seed;
    data->lists_bodies = from.lists_bodies;
    load_list_key(home, *data);
  }
  home.stream->trim();
  return EvaluationKeys(std::move(data));
}

std::vector<u64> switch_bodies(const EvaluationKeys& keys) {
  return bodies_of(keys.data()->key_switch, keys.data()->home->torus->switch_shape());
}

std::vector<u64> packing_bodies(const EvaluationKeys& keys) {
  if (!keys.has_packing()) return {};
  return bodies_of(keys.data()->packing, packing_shape(keys.data()->home->plan));
}

u64 EvaluationKeys::bytes() const {
  return data_ ? data_->bootstrap.bytes() + data_->key_switch.bytes() + data_->packing.bytes() +
                     data_->lists.bytes() + data_->others->bytes()
               : 0;
}

namespace {

u64 wire_bytes_of(const Context::State& home, const KeyRequest& request) {
  const auto body_bytes = [](const device::SwitchShape& s) {
    return s.key_rows() * s.slots * s.key_word_bytes() + sizeof(random::Seed);
  };
  const auto residue_bytes = [](u64 words, std::span<const u64> primes) {
    return packed_bytes(words, residue_bits(primes)) + sizeof(random::Seed);
  };
  return residue_bytes(bootstrap_body_words(home.plan), home.plan.primes) +
         body_bytes(home.torus->switch_shape()) +
         (request.packing ? body_bytes(packing_shape(home.plan)) : 0) +
         (request.lists ? residue_bytes(list_key_words(home.plan), list_plan(home.plan).primes)
                        : 0);
}

}  // namespace

u64 EvaluationKeys::wire_bytes() const {
  return data_ ? wire_bytes_of(*data_->home, request_of(*this)) : 0;
}

u64 key_wire_bytes(const Context& context, const KeyRequest& request) {
  expect_possible(context.state(), request);
  return wire_bytes_of(context.state(), request);
}

SecretKeyId EvaluationKeys::secret_key_id() const {
  return data_ ? data_->secret_key : SecretKeyId();
}

bool EvaluationKeys::has_packing() const { return data_ && data_->packing; }
bool EvaluationKeys::has_lists() const { return data_ && data_->lists; }

}  // namespace crenel::tfhe
