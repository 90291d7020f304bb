// Files of secret keys: the same for every scheme.
#pragma once

#include <functional>

#include "core/secret_pages.h"
#include "serialize/document.h"

namespace crenel::serialize {

/// Coefficients of a secret key, and whose they are.
struct SecretKeyFile {
  SecretKeyId id;
  core::SecretVector<i8> coefficients;
};

/// The file of `coefficients`, a tensor of this shape. The result is the caller's to wipe.
std::vector<u8> write_secret_key(std::string_view kind, const std::string& params_id,
                                 const SecretKeyId& id, std::vector<u64> shape,
                                 std::span<const i8> coefficients);
/// The coefficients of untrusted bytes, of whose values nothing is checked: neither branches nor
/// addresses depend on them. SerializationError for anything but a whole file of this kind,
/// parameters and shape; `require_params` refuses those of other parameters.
SecretKeyFile read_secret_key(std::string_view kind,
                              const std::function<void(DocumentReader&)>& require_params,
                              std::span<const u64> shape, std::span<const u8> bytes);

}  // namespace crenel::serialize
