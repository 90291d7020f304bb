// What the files of TFHE share: kinds, words of a power-of-two modulus, descriptions of arrays.
#pragma once

#include "crenel/tfhe/serialize.h"
#include "random/seed.h"
#include "serialize/document.h"

namespace crenel::serialize {

namespace kind {
inline constexpr std::string_view kTfheParams = "tfhe_params";
inline constexpr std::string_view kTfheCiphertext = "tfhe_ciphertext";
inline constexpr std::string_view kTfheIntegers = "tfhe_integers";
inline constexpr std::string_view kTfheCompressed = "tfhe_compressed";
inline constexpr std::string_view kTfheEvaluationKeys = "tfhe_evaluation_keys";
}  // namespace kind

/// DocumentReader::require_params, with the set of the library that the file is of, if any.
void require_set(DocumentReader& file, const tfhe::Params& params);

/// Reals that may be 0, which is written as "0".
void write_optional_real(DocumentWriter& file, const std::string& name, double value);
double optional_real(DocumentReader& file, const std::string& name);

/// Words of a tensor at any alignment, widened; DType u32 or u64.
std::vector<u64> read_words(const Tensor& tensor, std::span<const u8> bytes);
/// The inverse: words that fit the tensor's type.
void write_words(std::span<const u64> words, DType dtype, std::span<u8> to);
/// The smallest type of words modulo 2^bits.
inline DType word_type(u32 bits) { return bits <= 32 ? DType::u32 : DType::u64; }

/// Refuses a tensor of u32 words that are not below 2^bits.
void check_bits(const Tensor& tensor, std::span<const u8> bytes, u32 bits);

/// Metadata `size`, `element` and the tensor `shape`. The tensor's bytes are filled in with
/// fill_shape after allocate().
std::size_t declare_info(DocumentWriter& file, tfhe::ArrayInfo& info, u64 size);
void fill_shape(DocumentWriter& file, std::size_t tensor, const tfhe::ArrayInfo& info);
/// The info of an array of `size` elements; its tensor is checked by the caller's finish().
tfhe::ArrayInfo read_info(DocumentReader& file, u64 size);

}  // namespace crenel::serialize
