#include "serialize/tfhe_io.h"

#include <algorithm>
#include <cstring>

#include "serialize/reject.h"

namespace crenel::serialize {
namespace {

constexpr u64 kMaxExtents = 8;
constexpr std::size_t kMaxElement = 16;

bool is_element(const std::string& text) {
  return text.size() <= kMaxElement && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

/// Whether the extents are positive and multiply to `size`, without overflow.
bool is_shape(std::span<const u64> shape, u64 size) {
  u64 product = 1;
  for (const u64 extent : shape) {
    if (extent == 0 || extent > size / product) return false;
    product *= extent;
  }
  return product == size;
}

}  // namespace

void require_set(DocumentReader& file, const tfhe::Params& params) {
  const auto& metadata = file.file().metadata();
  const auto found = metadata.find("params_id");
  if (found != metadata.end() && found->second.value != params.id()) {
    const std::string set = tfhe::Params::preset_of_id(found->second.value);
    if (!set.empty() && set != params.name())
      reject("params_id",
             cat(quote(found->second.value), " (of the set ", quote(set),
                 "; open it in a context of that set)"),
             cat(quote(params.id()), ", of ", quote(params.name())), found->second.offset);
  }
  file.require_params(params.id());
}

void write_optional_real(DocumentWriter& file, const std::string& name, double value) {
  if (value > 0)
    file.real(name, value);
  else
    file.text(name, "0");
}

double optional_real(DocumentReader& file, const std::string& name) {
  return file.text(name) == "0" ? 0.0 : file.real(name);
}

std::vector<u64> read_words(const Tensor& tensor, std::span<const u8> bytes) {
  const u64 width = size_of(tensor.dtype), count = bytes.size() / width;
  std::vector<u64> words(count);
  if (width == sizeof(u64)) {
    if (count) std::memcpy(words.data(), bytes.data(), bytes.size());
    return words;
  }
  for (u64 i = 0; i < count; ++i) {
    u32 word;
    std::memcpy(&word, bytes.data() + i * sizeof(u32), sizeof(u32));
    words[i] = word;
  }
  return words;
}

void write_words(std::span<const u64> words, DType dtype, std::span<u8> to) {
  if (dtype == DType::u64) {
    if (!words.empty()) std::memcpy(to.data(), words.data(), words.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    const u32 word = static_cast<u32>(words[i]);
    std::memcpy(to.data() + i * sizeof(u32), &word, sizeof(u32));
  }
}

void check_bits(const Tensor& tensor, std::span<const u8> bytes, u32 bits) {
  if (bits >= 32) return;
  const u64 count = bytes.size() / sizeof(u32);
  const auto word = [&](u64 i) {
    u32 w;
    std::memcpy(&w, bytes.data() + i * sizeof(u32), sizeof(u32));
    return w;
  };
  u32 all = 0;  // files are good: look for the place only when there is one
  for (u64 i = 0; i < count; ++i) all |= word(i);
  if (all >> bits == 0) return;
  for (u64 i = 0; i < count; ++i)
    if (word(i) >> bits != 0)
      reject("tensor " + quote(tensor.name), cat("word ", word(i)), cat("words below 2^", bits),
             tensor.begin + i * sizeof(u32));
}

std::size_t declare_info(DocumentWriter& file, tfhe::ArrayInfo& info, u64 size) {
  if (info.shape.empty() && info.element.empty()) info.shape = {size};
  if (info.shape.size() > kMaxExtents || !is_shape(info.shape, size))
    throw ParameterError(
        cat("shape ", shape_text(info.shape), " of an array of ", size,
            " elements, expected at most ", kMaxExtents, " extents that multiply to it"),
        {{"shape", shape_text(info.shape)}, {"size", size}});
  if (!is_element(info.element))
    throw ParameterError(cat("element type ", quote(info.element), ", expected at most ",
                             kMaxElement, " lower-case letters and digits"),
                         {{"element", quote(info.element)}});
  file.integer("size", size);
  file.text("element", info.element);
  return file.tensor("shape", DType::u64, {info.shape.size()});
}

void fill_shape(DocumentWriter& file, std::size_t tensor, const tfhe::ArrayInfo& info) {
  write_words(info.shape, DType::u64, file.data(tensor));
}

tfhe::ArrayInfo read_info(DocumentReader& file, u64 size) {
  const Tensor& tensor = file.tensor("shape", DType::u64, {DocumentReader::kAny});
  if (tensor.shape[0] > kMaxExtents)
    reject("tensor 'shape'", shape_text(tensor.shape), cat("at most ", kMaxExtents, " extents"),
           tensor.offset);
  tfhe::ArrayInfo info;
  info.shape = read_words(tensor, file.data(tensor));
  if (!is_shape(info.shape, size))
    reject("tensor 'shape'", shape_text(info.shape), cat("extents that multiply to ", size),
           tensor.begin);
  info.element = file.text("element");
  if (!is_element(info.element))
    file.refuse("element", cat("at most ", kMaxElement, " lower-case letters and digits"));
  return info;
}

}  // namespace crenel::serialize
