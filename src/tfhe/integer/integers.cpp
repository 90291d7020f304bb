// Arrays of radix integers, their encryption and decryption.
#include "crenel/core/error.h"
#include "crenel/tfhe/integer.h"
#include "random/seed.h"
#include "tfhe/integer/checks.h"

namespace crenel::tfhe {
namespace {

u64 low_mask(u32 bits) { return bits == 64 ? ~u64(0) : (u64(1) << bits) - 1; }

Integers encrypt(Client& client, std::span<const u64> values, u32 bits, bool is_signed) {
  radix::check_set(client.context().params());
  std::vector<Ciphertext> blocks;
  std::vector<u64> messages(values.size());
  const random::WipeOnExit wipe(messages);
  for (u32 bit = 0; bit < bits; bit += 2) {
    for (std::size_t i = 0; i < values.size(); ++i) messages[i] = values[i] >> bit & 3;
    blocks.push_back(client.encrypt(messages));
  }
  return Integers(std::move(blocks), bits, is_signed);
}

// Blocks weigh 4^j; one that holds more than 3 carries, as it would in an addition.
std::vector<u64> decrypt(const Client& client, const Integers& a) {
  std::vector<u64> values(a.size(), 0);
  for (u32 j = 0; j < a.blocks().size(); ++j) {
    std::vector<u64> messages = client.decrypt(a.blocks()[j]);
    const random::WipeOnExit wipe(messages);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += messages[i] << (2 * j);
  }
  for (u64& value : values) value &= low_mask(a.bits());
  return values;
}

}  // namespace

namespace radix {

void check_bits(u32 bits) {
  if (bits < 2 || bits > 64 || bits % 2 != 0)
    throw ParameterError(cat("bits is ", bits, ", expected an even number from 2 to 64"),
                         {{"bits", bits}});
}

void check_set(const Params& params) {
  const Spec& spec = params.spec();
  if (!spec.padded || spec.plain_modulus != 32 || params.slots().value != 1)
    throw ParameterError(
        cat("'", spec.name, "' has p = ", spec.plain_modulus,
            spec.padded ? " with padding and " : " without padding and ", params.slots(),
            " slots, expected p = 32 with padding and 1 slot for integers; take a set for tables, "
            "such as lut4-128"),
        {{"name", spec.name},
         {"plain_modulus", spec.plain_modulus},
         {"slots", params.slots().value}});
  if (spec.max_norm2 < kMaxNorm2)
    throw ParameterError(cat("'", spec.name, "' has max_norm2 = ", spec.max_norm2,
                             ", expected at least ", kMaxNorm2, " for integers"),
                         {{"name", spec.name}, {"max_norm2", spec.max_norm2}});
}

void check_range(u64 value, u32 bits, bool is_signed, const std::string& what) {
  const auto as_signed = static_cast<i64>(value);
  const i64 half = static_cast<i64>(low_mask(bits) / 2);
  if (is_signed ? as_signed >= -half - 1 && as_signed <= half : value <= low_mask(bits)) return;
  const std::string range = cat(is_signed ? cat(-half - 1) : std::string("0"), "..",
                                is_signed ? cat(half) : cat(low_mask(bits)));
  throw ParameterError(cat(what, " is out of range, expected ", range, " for ", bits, " bits"),
                       {{"where", what}, {"expected", range}, {"bits", bits}});
}

}  // namespace radix

Integers::Integers(std::vector<Ciphertext> blocks, u32 bits, bool is_signed)
    : blocks_(std::move(blocks)), bits_(bits), signed_(is_signed) {
  radix::check_bits(bits);
  if (blocks_.size() != bits / 2)
    throw ParameterError(
        cat("integers of ", bits, " bits from ", blocks_.size(), " blocks, expected ", bits / 2),
        {{"bits", bits}, {"blocks", blocks_.size()}});
  for (const Ciphertext& block : blocks_) {
    if (block.size() != blocks_[0].size())
      throw StateError(cat("blocks of ", blocks_[0].size(), " and of ", block.size(),
                           " messages, expected equal sizes"),
                       {{"size", block.size()}, {"expected", blocks_[0].size()}});
    if (block.plain_modulus() != 32)
      throw StateError(cat("a block has messages modulo ", block.plain_modulus(), ", expected 32"),
                       {{"plain_modulus", block.plain_modulus()}});
    if (block.params_id() != blocks_[0].params_id())
      throw StateError("blocks of different parameters",
                       {{"found", block.params_id()}, {"expected", blocks_[0].params_id()}});
    expect_same_secret_key(block.secret_key_id(), secret_key_, "block", "the others");
    secret_key_ = either(secret_key_, block.secret_key_id());
  }
}

u64 Integers::size() const { return blocks_[0].size(); }

u64 Integers::bytes() const {
  u64 total = 0;
  for (const Ciphertext& block : blocks_) total += block.bytes();
  return total;
}

Integers Integers::clone() const {
  std::vector<Ciphertext> copies;
  for (const Ciphertext& block : blocks_) copies.push_back(block.clone());
  return Integers(std::move(copies), bits_, signed_);
}

Integers Integers::slice(u64 first, u64 count) const {
  std::vector<Ciphertext> parts;
  for (const Ciphertext& block : blocks_) parts.push_back(block.slice(first, count));
  return Integers(std::move(parts), bits_, signed_);
}

Integers Integers::take(std::span<const u64> index) const {
  std::vector<Ciphertext> parts;
  for (const Ciphertext& block : blocks_) parts.push_back(block.take(index));
  return Integers(std::move(parts), bits_, signed_);
}

Integers concatenate(std::span<const Integers* const> parts) {
  if (parts.empty()) throw ParameterError("concatenation of no integers", {{"parts", 0}});
  const Integers& first = *parts[0];
  for (const Integers* part : parts)
    if (part->bits() != first.bits() || part->is_signed() != first.is_signed())
      throw StateError(cat("concatenation of integers of ", part->bits(), " and ", first.bits(),
                           " bits, or of signed and unsigned ones"),
                       {{"found", part->bits()}, {"expected", first.bits()}});
  std::vector<Ciphertext> blocks;
  for (std::size_t b = 0; b < first.blocks().size(); ++b) {
    std::vector<const Ciphertext*> values;
    for (const Integers* part : parts) values.push_back(&part->blocks()[b]);
    blocks.push_back(concatenate(values));
  }
  return Integers(std::move(blocks), first.bits(), first.is_signed());
}

Integers encrypt_unsigned(Client& client, std::span<const u64> values, u32 bits) {
  radix::check_bits(bits);
  for (std::size_t i = 0; i < values.size(); ++i)
    radix::check_range(values[i], bits, false, cat("value ", i));
  return encrypt(client, values, bits, false);
}

Integers encrypt_signed(Client& client, std::span<const i64> values, u32 bits) {
  radix::check_bits(bits);
  for (std::size_t i = 0; i < values.size(); ++i)
    radix::check_range(static_cast<u64>(values[i]), bits, true, cat("value ", i));
  std::vector<u64> words(values.begin(), values.end());
  const random::WipeOnExit wipe(words);
  return encrypt(client, words, bits, true);
}

std::vector<u64> decrypt_unsigned(const Client& client, const Integers& a) {
  if (a.is_signed()) throw StateError("integers are signed, expected unsigned", {{"signed", true}});
  return decrypt(client, a);
}

std::vector<i64> decrypt_signed(const Client& client, const Integers& a) {
  if (!a.is_signed())
    throw StateError("integers are unsigned, expected signed", {{"signed", false}});
  std::vector<u64> words = decrypt(client, a);
  const random::WipeOnExit wipe(words);
  std::vector<i64> values(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const u64 sign = words[i] >> (a.bits() - 1) & 1;
    values[i] = static_cast<i64>(words[i] | (sign * ~low_mask(a.bits())));
  }
  return values;
}

}  // namespace crenel::tfhe
