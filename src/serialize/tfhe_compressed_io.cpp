// Compressed arrays to files and back: their words as they are, checked for stray bits.
#include <algorithm>

#include "serialize/poly_io.h"
#include "serialize/reject.h"
#include "serialize/tfhe_io.h"
#include "tfhe/compressed.h"
#include "tfhe/objects.h"

namespace crenel::tfhe {
namespace {

using namespace serialize;

/// Messages in one file: rows are counted in 32 bits.
constexpr u64 kMaxSize = ~u32{0};
constexpr const char* kWords = "words";
/// The one form there is: rows under the LWE secret.
constexpr const char* kForm = "switched";

/// [rows, bytes of a row]
std::vector<u64> words_shape(const device::TorusPlan& plan, const Compressed::Data& data) {
  return {data.size, stored_row_bytes(plan)};
}

/// Of integers their width, blocks of which there are `size` in all; 0 for messages.
void read_width(DocumentReader& file, Compressed::Data& data) {
  data.integer_bits = static_cast<u32>(file.integer("bits", 0, 256));
  data.is_signed = file.flag("signed");
  if (data.integer_bits == 0) {
    if (data.is_signed) file.refuse("signed", "false, of messages");
    return;
  }
  if (data.integer_bits % 2 != 0) file.refuse("bits", "an even number, or 0");
  if (data.plain_modulus != 32) file.refuse("plain_modulus", "32, of integers");
  if (data.size % (data.integer_bits / 2) != 0)
    file.refuse("blocks", cat("a multiple of ", data.integer_bits / 2));
}

/// Bits behind the last word of a row are zero.
void check_tails(const Tensor& tensor, std::span<const u8> bytes, const device::TorusPlan& plan) {
  const u64 row = stored_row_bytes(plan);
  const u32 used = static_cast<u32>((u64(plan.read_words()) * stored_log_modulus(plan)) % 8);
  if (used == 0) return;
  for (u64 end = row; end <= bytes.size(); end += row)
    if (bytes[end - 1] >> used != 0)
      reject("tensor " + quote(tensor.name), cat("byte ", u32(bytes[end - 1])),
             cat("bits ", used, " and above zero behind the last word"), tensor.begin + end - 1);
}

}  // namespace

std::vector<u8> to_bytes(const Context& context, const Compressed& compressed,
                         const ArrayInfo& info) {
  const Compressed::Data& data = compressed.data();
  require_context("a compressed array", data.params_id, context.params().id());
  const u64 blocks = std::max<u32>(data.integer_bits / 2, 1);
  ArrayInfo described = info;
  DocumentWriter file(kind::kTfheCompressed, data.params_id);
  file.secret_key_id(data.secret_key);
  const std::size_t shape = declare_info(file, described, data.size / blocks);
  file.text("form", kForm);
  file.integer("blocks", data.size);
  file.integer("plain_modulus", data.plain_modulus);
  write_optional_real(file, "noise_variance", data.noise_variance);
  file.integer("bits", data.integer_bits);
  file.flag("signed", data.is_signed);
  const std::size_t words = file.tensor(kWords, DType::u8, words_shape(context.state().plan, data));
  file.allocate();
  fill_shape(file, shape, described);
  std::copy(data.words.begin(), data.words.end(), file.data(words).begin());
  return file.finish();
}

Compressed compressed_from_bytes(const Context& context, std::span<const u8> bytes, ArrayInfo* info,
                                 const LoadLimits& limits) {
  const Context::State& home = context.state();
  DocumentReader file(bytes, kind::kTfheCompressed, limits);
  require_set(file, context.params());
  auto data = std::make_shared<Compressed::Data>();
  data->params_id = context.params().id();
  data->secret_key = file.secret_key_id(false);
  if (file.text("form") != kForm) file.refuse("form", quote(kForm));
  expect_compression(home);
  data->size = file.integer("blocks", 1, kMaxSize);
  data->plain_modulus = static_cast<u32>(file.integer("plain_modulus", 2, 32));
  const u32 expected = compressible_modulus(context.params(), data->plain_modulus);
  if (data->plain_modulus != expected) file.refuse("plain_modulus", cat(expected));
  data->noise_variance = optional_real(file, "noise_variance");
  read_width(file, *data);
  const u64 blocks = std::max<u32>(data->integer_bits / 2, 1);
  const u64 size = file.integer("size", 1, kMaxSize);
  if (size != data->size / blocks) file.refuse("size", cat(data->size / blocks));
  const Tensor& words = file.tensor(kWords, DType::u8, words_shape(home.plan, *data));
  ArrayInfo found = read_info(file, size);
  file.require_memory(data->size * stored_row_bytes(home.plan));
  file.finish();
  const std::span<const u8> stored = file.data(words);
  check_tails(words, stored, home.plan);
  data->words.assign(stored.begin(), stored.end());
  if (found.element == "bool") data->bound = 2;
  if (info) *info = std::move(found);
  return Compressed(std::move(data));
}

}  // namespace crenel::tfhe
