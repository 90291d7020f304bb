// Arrays of radix integers, their encryption and decryption.
#include <algorithm>

#include "crenel/core/error.h"
#include "crenel/tfhe/integer.h"
#include "random/seed.h"
#include "tfhe/integer/checks.h"

namespace crenel::tfhe {
namespace {

u64 low_mask(u32 bits) { return bits >= 64 ? ~u64(0) : (u64(1) << bits) - 1; }

Integers encrypt(Client& client, std::vector<WideValue> values, u32 bits, bool is_signed) {
  const random::WipeOnExit wipe_values(values);
  radix::check_set(client.context().params());
  std::vector<Ciphertext> blocks;
  std::vector<u64> messages(values.size());
  const random::WipeOnExit wipe(messages);
  for (u32 j = 0; j < bits / 2; ++j) {
    for (std::size_t i = 0; i < values.size(); ++i) messages[i] = values[i].block(j);
    blocks.push_back(client.encrypt(messages));
  }
  return Integers(std::move(blocks), bits, is_signed);
}

// word += term modulo 2^64; the carry.
u64 add_to(u64& word, u64 term) {
  word += term;
  return word < term ? 1 : 0;
}

void check_origins(const std::vector<u32>& origins, std::size_t blocks) {
  if (!origins.empty() && origins.size() != blocks)
    throw ParameterError(cat("origins of ", origins.size(), " blocks, expected of ", blocks),
                         {{"found", origins.size()}, {"expected", blocks}});
  for (u32 j = 0; j < origins.size(); ++j) {
    const u32 origin = origins[j];
    const bool first = origin == j || (origin < j && origins[origin] == origin);
    const bool known = origin >= Integers::kKnown && origin < Integers::kKnown + 4;
    if (!first && !known)
      throw ParameterError(cat("origin of block ", j, " is ", origin,
                               ", expected one of the first blocks of their kind up to it, or ",
                               Integers::kKnown, " and a message below 4"),
                           {{"index", j}, {"found", origin}});
  }
}

u32 origin_of(const Integers& a, u32 block) {
  return a.origins().empty() ? block : a.origins()[block];
}

// Blocks that are copies of each other in all parts, or the same message.
std::vector<u32> common_origins(std::span<const Integers* const> parts) {
  std::vector<u32> origins;
  for (u32 j = 0; j < parts[0]->blocks().size(); ++j) {
    const u32 first = origin_of(*parts[0], j);
    const auto all = [&](const auto& holds) {
      return std::all_of(parts.begin(), parts.end(), holds);
    };
    if (first >= Integers::kKnown &&
        all([&](const Integers* part) { return origin_of(*part, j) == first; })) {
      origins.push_back(first);
      continue;
    }
    u32 i = 0;
    while (i < j && (origins[i] != i || !all([&](const Integers* part) {
                       return origin_of(*part, i) == origin_of(*part, j);
                     })))
      ++i;
    origins.push_back(i);
  }
  return origins;
}

void check_narrow(const Integers& a, bool is_signed) {
  if (a.is_signed() != is_signed)
    throw StateError(cat("integers are ", a.is_signed() ? "signed" : "unsigned", ", expected ",
                         is_signed ? "signed" : "unsigned"),
                     {{"signed", a.is_signed()}});
  if (a.bits() > 64)
    throw StateError(
        cat("integers of ", a.bits(), " bits, expected at most 64: take decrypt_words"),
        {{"bits", a.bits()}, {"expected", "up to 64"}});
}

}  // namespace

namespace radix {

void check_bits(u32 bits) {
  if (bits < 2 || bits > 256 || bits % 2 != 0)
    throw ParameterError(cat("bits is ", bits, ", expected an even number from 2 to 256"),
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

void check_range(const WideValue& value, u32 bits, bool is_signed, const std::string& what) {
  if (value.fits(bits, is_signed)) return;
  const u32 free = is_signed ? bits - 1 : bits;
  const std::string most = free <= 64 ? cat(low_mask(free)) : cat("2^", free, " - 1"),
                    least = !is_signed   ? std::string("0")
                            : free <= 63 ? cat(-static_cast<i64>(low_mask(free)) - 1)
                                         : cat("-2^", free),
                    range = cat(least, "..", most);
  throw ParameterError(cat(what, " is out of range, expected ", range, " for ", bits, " bits"),
                       {{"where", what}, {"expected", range}, {"bits", bits}});
}

std::vector<WideValue> values_of(std::span<const u64> words, u32 bits, bool is_signed) {
  check_bits(bits);
  const u32 each = words_of(bits);
  if (words.size() % each != 0)
    throw ParameterError(
        cat(words.size(), " words, expected ", each, " for each integer of ", bits, " bits"),
        {{"words", words.size()}, {"bits", bits}});
  std::vector<WideValue> values;
  values.reserve(words.size() / each);  // no copy stays behind
  for (std::size_t i = 0; i < words.size(); i += each) {
    values.push_back(WideValue::of_words(words.subspan(i, each), is_signed));
    check_range(values.back(), bits, is_signed, cat("value ", i / each));
  }
  return values;
}

void check_count(u32 count, u32 bits) {
  if (count >= bits)
    throw ParameterError(cat("shift by ", count, ", expected 0..", bits - 1),
                         {{"count", count}, {"bits", bits}});
}

void check_shift_count(bool is_signed) {
  if (is_signed)
    throw StateError(
        "shift by signed integers, expected unsigned ones, which a conversion makes (convert, in "
        "Python cast)",
        {{"found", "signed"}, {"expected", "unsigned"}});
}

void refuse_zero_divisor() {
  throw ParameterError("division by a public 0, expected another divisor", {{"divisor", 0}});
}

std::vector<std::vector<u8>> table_of(u32 index_bits, bool index_signed,
                                      std::span<const u64> entries, u32 bits, bool is_signed) {
  constexpr u64 kMost = 65536;
  if (index_signed)
    throw StateError("table: the index is signed, expected unsigned integers",
                     {{"found", "signed"}, {"expected", "unsigned"}});
  const std::vector<WideValue> values = values_of(entries, bits, is_signed);
  const u64 most = index_bits < 16 ? u64(1) << index_bits : kMost;
  if (values.empty() || values.size() > most)
    throw ParameterError(cat("table of ", values.size(), " entries for an index of ", index_bits,
                             " bits, expected 1 to ", most),
                         {{"entries", values.size()}, {"expected", cat("1..", most)}});
  std::vector<std::vector<u8>> table;
  for (const WideValue& value : values) {
    auto& entry = table.emplace_back();
    for (u32 j = 0; j < bits / 2; ++j) entry.push_back(static_cast<u8>(value.block(j)));
  }
  return table;
}

}  // namespace radix

WideValue WideValue::of_signed(i64 value) {
  const auto word = static_cast<u64>(value);
  return of_words({&word, 1}, true);
}

WideValue WideValue::of_words(std::span<const u64> words, bool is_signed) {
  WideValue value;
  const u64 fill = is_signed && !words.empty() && words.back() >> 63 != 0 ? ~u64(0) : 0;
  for (u32 i = 0; i < kWords; ++i) value.words_[i] = i < words.size() ? words[i] : fill;
  return value;
}

WideValue WideValue::operator-() const {
  WideValue value;
  u64 carry = 1;
  for (u32 i = 0; i < kWords; ++i) {
    value.words_[i] = ~words_[i] + carry;
    carry = carry != 0 && value.words_[i] == 0 ? 1 : 0;
  }
  return value;
}

bool WideValue::fits(u32 bits, bool is_signed) const {
  const u32 from = is_signed ? bits - 1 : bits;  // all bits above are the sign
  const u64 fill = is_signed && negative() ? 1 : 0;
  for (u32 i = from; i < 64 * kWords; ++i)
    if ((words_[i / 64] >> (i % 64) & 1) != fill) return false;
  return true;
}

Integers::Integers(std::vector<Ciphertext> blocks, u32 bits, bool is_signed,
                   std::vector<u32> origins)
    : blocks_(std::move(blocks)), origins_(std::move(origins)), bits_(bits), signed_(is_signed) {
  radix::check_bits(bits);
  if (blocks_.size() != bits / 2)
    throw ParameterError(
        cat("integers of ", bits, " bits from ", blocks_.size(), " blocks, expected ", bits / 2),
        {{"bits", bits}, {"blocks", blocks_.size()}});
  check_origins(origins_, blocks_.size());
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
  return Integers(std::move(copies), bits_, signed_, origins_);
}

Integers Integers::slice(u64 first, u64 count) const {
  std::vector<Ciphertext> parts;
  for (const Ciphertext& block : blocks_) parts.push_back(block.slice(first, count));
  return Integers(std::move(parts), bits_, signed_, origins_);
}

Integers Integers::take(std::span<const u64> index) const {
  std::vector<Ciphertext> parts;
  for (const Ciphertext& block : blocks_) parts.push_back(block.take(index));
  return Integers(std::move(parts), bits_, signed_, origins_);
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
  return Integers(std::move(blocks), first.bits(), first.is_signed(), common_origins(parts));
}

Integers encrypt_unsigned(Client& client, std::span<const u64> values, u32 bits) {
  radix::check_bits(bits);
  std::vector<WideValue> wide(values.begin(), values.end());
  const random::WipeOnExit wipe(wide);
  for (std::size_t i = 0; i < wide.size(); ++i)
    radix::check_range(wide[i], bits, false, cat("value ", i));
  return encrypt(client, wide, bits, false);
}

Integers encrypt_signed(Client& client, std::span<const i64> values, u32 bits) {
  radix::check_bits(bits);
  std::vector<WideValue> wide;
  wide.reserve(values.size());
  for (const i64 value : values) wide.push_back(WideValue::of_signed(value));
  const random::WipeOnExit wipe(wide);
  for (std::size_t i = 0; i < wide.size(); ++i)
    radix::check_range(wide[i], bits, true, cat("value ", i));
  return encrypt(client, wide, bits, true);
}

Integers encrypt_words(Client& client, std::span<const u64> words, u32 bits, bool is_signed) {
  return encrypt(client, radix::values_of(words, bits, is_signed), bits, is_signed);
}

// Blocks weigh 4^j; one that holds more than 3 carries, as it would in an addition.
std::vector<u64> decrypt_words(const Client& client, const Integers& a) {
  const u32 each = words_of(a.bits()), top = (a.bits() - 1) % 64;
  std::vector<u64> words(a.size() * each, 0);
  for (u32 j = 0; j < a.blocks().size(); ++j) {
    std::vector<u64> messages = client.decrypt(a.blocks()[j]);
    const random::WipeOnExit wipe(messages);
    const u32 first = j / 32, at = j % 32 * 2;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      u64* value = words.data() + i * each;
      u64 carry = add_to(value[first], messages[i] << at);
      carry += at == 0 ? 0 : messages[i] >> (64 - at);
      for (u32 w = first + 1; w < each && carry != 0; ++w) carry = add_to(value[w], carry);
    }
  }
  for (std::size_t i = each - 1; i < words.size(); i += each) {
    const u64 sign = a.is_signed() ? words[i] >> top & 1 : 0;
    words[i] = (words[i] & low_mask(top + 1)) | (sign * ~low_mask(top + 1));
  }
  return words;
}

std::vector<u64> decrypt_unsigned(const Client& client, const Integers& a) {
  check_narrow(a, false);
  return decrypt_words(client, a);
}

std::vector<i64> decrypt_signed(const Client& client, const Integers& a) {
  check_narrow(a, true);
  std::vector<u64> words = decrypt_words(client, a);
  const random::WipeOnExit wipe(words);
  return {words.begin(), words.end()};
}

}  // namespace crenel::tfhe
