#include "random/secret_key_id.h"

#include <algorithm>

#include "core/sha256.h"
#include "random/seed.h"

namespace crenel::random {
namespace {

SecretKeyId first_bytes(std::span<const u8> bytes) {
  SecretKeyId::Bytes id;
  std::copy_n(bytes.begin(), id.size(), id.begin());
  return SecretKeyId(id);
}

}  // namespace

SecretKeyId draw_secret_key_id() {
  SecretKeyId id;
  // A seed of its own, of which nothing else is made.
  while (id.is_none()) id = first_bytes(seed_from_os());
  return id;
}

SecretKeyId secret_key_id_of_part(const SecretKeyId& id, u32 part) {
  if (part == 0) return id;
  static constexpr std::string_view kDomain = "crenel.secret_key_id.part";
  Sha256 hash;
  hash.update({reinterpret_cast<const u8*>(kDomain.data()), kDomain.size()}).update(id.bytes());
  const u8 word[] = {static_cast<u8>(part), static_cast<u8>(part >> 8), static_cast<u8>(part >> 16),
                     static_cast<u8>(part >> 24)};
  return first_bytes(hash.update(word).finish());
}

}  // namespace crenel::random
