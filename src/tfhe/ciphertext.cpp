#include "crenel/tfhe/ciphertext.h"

#include <algorithm>

#include "crenel/core/error.h"
#include "tfhe/objects.h"

namespace crenel::tfhe {
namespace {

void expect_equal(const char* what, const std::string& found, const std::string& expected) {
  if (found != expected)
    throw StateError(cat("concatenation: ", what, " ", found, ", expected ", expected),
                     {{"found", found}, {"expected", expected}});
}

}  // namespace

std::unique_ptr<Ciphertext::Data> empty_ciphertext(const Context::State& home, u64 size,
                                                   u32 plain_modulus, u32 log_modulus) {
  if (size == 0) throw ParameterError("no messages, expected at least one", {{"size", 0}});
  auto data = std::make_unique<Ciphertext::Data>(CiphertextShape{home.params.id(),
                                                                 size,
                                                                 home.plan.slots,
                                                                 home.plan.words(),
                                                                 plain_modulus,
                                                                 log_modulus,
                                                                 {},
                                                                 Noise(size)});
  if (size > u64(0xffffffff) || data->rows() > 0xffffffff)
    throw ParameterError(cat(size, " messages, expected at most 2^32 - 1"), {{"size", size}});
  return data;
}

Ciphertext::Ciphertext(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Ciphertext::Ciphertext(Ciphertext&&) noexcept = default;
Ciphertext& Ciphertext::operator=(Ciphertext&&) noexcept = default;
Ciphertext::~Ciphertext() = default;

u64 Ciphertext::size() const { return data_->size; }
u32 Ciphertext::plain_modulus() const { return data_->plain_modulus; }
u32 Ciphertext::bound() const { return data_->bound; }
u64 Ciphertext::bytes() const { return data_->bytes(); }
const std::string& Ciphertext::params_id() const { return data_->params_id; }
const SecretKeyId& Ciphertext::secret_key_id() const { return data_->secret_key; }
double Ciphertext::noise_variance() const { return data_->noise.variance(); }

Ciphertext Ciphertext::clone() const {
  auto copy = data_->like();
  copy->seed = data_->seed;
  auto& stream = *data_->payload.stream();
  copy->payload = stream.allocate(data_->bytes());
  stream.copy(copy->payload.data(), data_->payload.data(), data_->bytes());
  return Ciphertext(std::move(copy));
}

Ciphertext Ciphertext::slice(u64 first, u64 count) const {
  const Data& d = *data_;
  if (count == 0 || first > d.size || count > d.size - first)
    throw ParameterError(cat("messages [", first, ", ", first, " + ", count,
                             "), expected at least one of [0, ", d.size, ")"),
                         {{"first", first}, {"count", count}, {"size", d.size}});
  if (first % d.slots != 0)
    throw ParameterError(cat("slice from message ", first, ", expected a multiple of ", d.slots,
                             " (messages under a mask)"),
                         {{"first", first}, {"slots", d.slots}});
  auto part = d.like();
  part->size = count;
  part->noise = d.noise.slice(first, count);
  auto& stream = *d.payload.stream();
  part->payload = stream.allocate(part->bytes());
  stream.copy(part->payload.data(), d.payload.as<u32>() + first / d.slots * d.words, part->bytes());
  return Ciphertext(std::move(part));
}

Ciphertext Ciphertext::take(std::span<const u64> index) const {
  const Data& d = *data_;
  if (index.empty()) throw ParameterError("no messages to take, expected one", {{"index", "0"}});
  if (d.slots != 1)
    throw UnsupportedError(cat("messages in any order where ", d.slots,
                               " share a mask, expected a context without packing"),
                           {{"slots", d.slots}});
  for (const u64 i : index)
    if (i >= d.size)
      throw ParameterError(cat("message ", i, ", expected below ", d.size),
                           {{"index", i}, {"size", d.size}});
  auto taken = d.like();
  taken->size = index.size();
  taken->noise = {};
  auto& stream = *d.payload.stream();
  taken->payload = stream.allocate(taken->bytes());
  const std::size_t row = d.words * sizeof(u32);
  const auto* from = d.payload.as<const u32>();
  auto* to = taken->payload.as<u32>();
  for (std::size_t i = 0, end = 0; i < index.size(); i = end) {  // runs of equal distance
    const u64 step = i + 1 < index.size() && index[i + 1] > index[i] ? index[i + 1] - index[i] : 1;
    for (end = i + 1; end < index.size() && index[end] == index[end - 1] + step;) ++end;
    stream.copy_rows(to + i * d.words, row, from + index[i] * d.words, step * row, row, end - i);
    if (step == 1) taken->noise.append(d.noise.slice(index[i], end - i));
    for (std::size_t j = i; step > 1 && j < end; ++j)
      taken->noise.append(d.noise.slice(index[j], 1));
  }
  return Ciphertext(std::move(taken));
}

Ciphertext concatenate(std::span<const Ciphertext* const> parts) {
  if (parts.empty()) throw ParameterError("concatenation of no ciphertexts", {{"parts", 0}});
  const auto& first = parts[0]->data();
  auto& stream = *first.payload.stream();
  auto whole = first.like();
  whole->size = 0;
  whole->noise = {};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& part = parts[i]->data();
    expect_equal("parameters", part.params_id, first.params_id);
    expect_same_secret_key(part.secret_key, whole->secret_key, "part of a concatenation",
                           "the others");
    whole->secret_key = either(whole->secret_key, part.secret_key);
    expect_equal("plain modulus", cat(part.plain_modulus), cat(first.plain_modulus));
    expect_equal("log modulus", cat(part.log_modulus), cat(first.log_modulus));
    expect_device(part.payload, stream.device(), "part of a concatenation");
    if (i + 1 < parts.size() && part.size % part.slots != 0)
      throw ParameterError(cat("part ", i, " of a concatenation has ", part.size,
                               " messages, expected a multiple of ", part.slots),
                           {{"part", i}, {"size", part.size}, {"slots", part.slots}});
    whole->size += part.size;
    whole->bound = whole->bound == 0 || part.bound == 0 ? 0 : std::max(whole->bound, part.bound);
    whole->noise.append(part.noise);
  }
  whole->payload = stream.allocate(whole->bytes());
  u32* to = whole->payload.as<u32>();
  for (const Ciphertext* c : parts) {
    const auto& part = c->data();
    stream.copy(to, part.payload.data(), part.bytes());
    to += part.rows() * part.words;
  }
  return Ciphertext(std::move(whole));
}

}  // namespace crenel::tfhe
