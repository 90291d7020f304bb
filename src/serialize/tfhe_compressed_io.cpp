// Compressed arrays to files and back: their words as they are, checked for stray bits.
#include <algorithm>

#include "crenel/tfhe/evaluator.h"
#include "serialize/poly_io.h"
#include "serialize/reject.h"
#include "serialize/tfhe_io.h"
#include "tfhe/compressed.h"
#include "tfhe/lists.h"
#include "tfhe/objects.h"
#include "tfhe/params/list_plan.h"

namespace crenel::tfhe {
namespace {

using namespace serialize;

/// Messages in one file: rows are counted in 32 bits.
constexpr u64 kMaxBlocks = ~u32{0};
constexpr const char* kWords = "words";
/// Rows under the LWE secret, or lists in the ring.
constexpr const char* kSwitched = "switched";
constexpr const char* kLists = "lists";

/// [rows, bytes of a row], or the bytes of all lists
std::vector<u64> words_shape(const Context::State& home, const Compressed::Data& data) {
  if (data.form == StoredForm::lists) return {stored_lists_bytes(home, data.size)};
  return {stored_rows(home.plan, data.size), stored_row_bytes(home.plan)};
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

/// Words of every list are below P = 2^bits - 1, and bits behind its last word zero.
void check_lists(const Tensor& tensor, std::span<const u8> bytes, const Context::State& home,
                 u64 size) {
  const ListPlan plan = list_plan(home.plan);
  const u64 n = home.plan.ring_dim();
  std::vector<u32> words;
  u64 begin = 0;
  for (u64 first = 0; first < size; first += n) {
    const u64 count = std::min(n, size - first), length = stored_list_bytes(home, count);
    words.resize(n + count);
    unpack_bits(bytes.data() + begin, plan.log_stored, words);
    for (u64 i = 0; i < words.size(); ++i)
      if (words[i] >= plan.stored_modulus)
        reject("tensor " + quote(tensor.name), cat("word ", words[i], " of a list"),
               cat("words below ", plan.stored_modulus),
               tensor.begin + begin + i * plan.log_stored / 8);
    const u32 used = static_cast<u32>(words.size() * plan.log_stored % 8);
    if (used != 0 && bytes[begin + length - 1] >> used != 0)
      reject("tensor " + quote(tensor.name), cat("byte ", u32(bytes[begin + length - 1])),
             cat("bits ", used, " and above zero behind the last word of a list"),
             tensor.begin + begin + length - 1);
    begin += length;
  }
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
  file.text("form", data.form == StoredForm::lists ? kLists : kSwitched);
  file.integer("blocks", data.size);
  file.integer("plain_modulus", data.plain_modulus);
  write_optional_real(file, "noise_variance", data.noise_variance);
  file.integer("bits", data.integer_bits);
  file.flag("signed", data.is_signed);
  const std::size_t words = file.tensor(kWords, DType::u8, words_shape(context.state(), data));
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
  const std::string form = file.text("form");
  if (form != kSwitched && form != kLists)
    file.refuse("form", cat(quote(kSwitched), " or ", quote(kLists)));
  data->form = form == kLists ? StoredForm::lists : StoredForm::switched;
  expect_compression(home);
  if (data->form == StoredForm::lists && list_plan(home.plan).primes.empty())
    file.refuse("form", cat(quote(kSwitched), ": the set has no lists"));
  data->size = file.integer("blocks", 1, kMaxBlocks);
  data->plain_modulus = static_cast<u32>(file.integer("plain_modulus", 2, 32));
  const u32 expected = compressible_modulus(context.params(), data->plain_modulus);
  if (data->plain_modulus != expected) file.refuse("plain_modulus", cat(expected));
  data->noise_variance = optional_real(file, "noise_variance");
  read_width(file, *data);
  const u64 blocks = std::max<u32>(data->integer_bits / 2, 1);
  const u64 size = file.integer("size", 1, kMaxBlocks);
  if (size != data->size / blocks) file.refuse("size", cat(data->size / blocks));
  const Tensor& words = file.tensor(kWords, DType::u8, words_shape(home, *data));
  ArrayInfo found = read_info(file, size);
  file.require_memory(stored_bytes(context, data->size, data->form));
  file.finish();
  const std::span<const u8> stored = file.data(words);
  if (data->form == StoredForm::lists)
    check_lists(words, stored, home, data->size);
  else
    check_tails(words, stored, home.plan);
  data->words.assign(stored.begin(), stored.end());
  if (found.element == "bool") data->bound = 2;
  if (info) *info = std::move(found);
  return Compressed(std::move(data));
}

}  // namespace crenel::tfhe
