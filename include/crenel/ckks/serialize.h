// Objects to bytes and back: safetensors files (docs/design/0004).
#pragma once

#include <span>
#include <vector>

#include "crenel/ckks/evaluator.h"

namespace crenel::ckks {

/// Each returns a complete safetensors file; uniform halves travel as seeds where they still can.
std::vector<u8> to_bytes(const Params& params);
std::vector<u8> to_bytes(const Context& context, const Ciphertext& ciphertext);
std::vector<u8> to_bytes(const Context& context, const Plaintext& plaintext);
std::vector<u8> to_bytes(const Context& context, const EvaluationKeys& keys);
std::vector<u8> to_bytes(const Context& context, const PublicKey& key);

/// Each validates every field against the context before touching data and throws
/// SerializationError saying what is wrong and where.
Params params_from_bytes(std::span<const u8> bytes, bool allow_insecure = false);
Ciphertext ciphertext_from_bytes(const Context& context, std::span<const u8> bytes);
Plaintext plaintext_from_bytes(const Context& context, std::span<const u8> bytes);
EvaluationKeys evaluation_keys_from_bytes(const Context& context, std::span<const u8> bytes);
PublicKey public_key_from_bytes(const Context& context, std::span<const u8> bytes);

}  // namespace crenel::ckks
