// TFHE objects to bytes and back: safetensors files (docs/design/0004,
// docs/reference/file-format.md).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "crenel/core/limits.h"
#include "crenel/tfhe/context.h"
#include "crenel/tfhe/integer.h"

namespace crenel::tfhe {

/// What the numbers of an array are to a front end: its shape (C order), and the type of an element
/// ("bool", "uint8", ..., or empty). Travels with the array; the library itself only checks that
/// the extents multiply to the array's size.
struct ArrayInfo {
  std::vector<u64> shape;  ///< at most 8 extents; empty when saving: the array as a vector
  std::string element;     ///< at most 16 lower-case letters and digits
};

/// Each returns a complete safetensors file. Masks of fresh ciphertexts and of keys travel as
/// seeds. StateError for an object of another context, ParameterError for an info that does not
/// fit.
std::vector<u8> to_bytes(const Params& params);
std::vector<u8> to_bytes(const Context& context, const Ciphertext& ciphertext,
                         const ArrayInfo& info = {});
std::vector<u8> to_bytes(const Context& context, const Integers& integers,
                         const ArrayInfo& info = {});
/// `info` of integers is that of the integers, not of their blocks.
std::vector<u8> to_bytes(const Context& context, const Compressed& compressed,
                         const ArrayInfo& info = {});
std::vector<u8> to_bytes(const Context& context, const EvaluationKeys& keys);

/// Each validates every field against the context before touching data and throws
/// SerializationError saying what is wrong and where, also for contents that would take more memory
/// than `limits` allow: masks that travel as a seed are several hundred times as long as what
/// travels with it. Nothing may change the bytes during the call. `info`: where to put the array's
/// info, or null.
/// Parameters are refused too where they are below the norm (Params::below_norm) and no published
/// set of the library by their numbers, unless `allow_insecure`: nothing that a file says of itself
/// makes it safer. A set of the library that has another name since (Spec::former_name) gets it:
/// `migration`, unless null, is then a sentence about that, and else empty.
Params params_from_bytes(std::span<const u8> bytes, bool allow_insecure = false,
                         const LoadLimits& limits = {}, std::string* migration = nullptr);
Ciphertext ciphertext_from_bytes(const Context& context, std::span<const u8> bytes,
                                 ArrayInfo* info = nullptr, const LoadLimits& limits = {});
Integers integers_from_bytes(const Context& context, std::span<const u8> bytes,
                             ArrayInfo* info = nullptr, const LoadLimits& limits = {});
Compressed compressed_from_bytes(const Context& context, std::span<const u8> bytes,
                                 ArrayInfo* info = nullptr, const LoadLimits& limits = {});
EvaluationKeys evaluation_keys_from_bytes(const Context& context, std::span<const u8> bytes,
                                          const LoadLimits& limits = {});

}  // namespace crenel::tfhe
