// Arrays of encrypted messages and integers to files and back.
#include <algorithm>

#include "serialize/poly_io.h"
#include "serialize/reject.h"
#include "serialize/tfhe_io.h"
#include "tfhe/encoding.h"
#include "tfhe/objects.h"

namespace crenel::tfhe {
namespace {

using namespace serialize;

/// Messages in one file: rows are counted in 32 bits.
constexpr u64 kMaxSize = ~u32{0};

/// One array of rows as tensors: the rows, or their bodies and the seed of their masks.
struct Part {
  const Ciphertext::Data* data = nullptr;
  std::size_t tensor = 0, seed = 0;
};

Part declare(DocumentWriter& file, const std::string& prefix, const Ciphertext::Data& data) {
  Part part{&data, 0, 0};
  if (data.seed) {
    part.tensor = file.tensor(prefix + "bodies", DType::u32, {data.rows(), data.slots});
    part.seed = file.tensor(prefix + "seed", DType::u8, {data.seed->size()});
  } else {
    part.tensor = file.tensor(prefix + "rows", DType::u32, {data.rows(), data.words});
  }
  return part;
}

void fill(DocumentWriter& file, const Part& part) {
  const Ciphertext::Data& data = *part.data;
  device::Stream& stream = *data.payload.stream();
  const std::span<u8> to = file.data(part.tensor);
  if (!data.seed) {
    stream.copy_out(to.data(), data.payload.data(), to.size());
    return;
  }
  const u64 row = data.slots * sizeof(u32), pitch = data.words * sizeof(u32);
  const u32* bodies = data.payload.as<const u32>() + (data.words - data.slots);
  device::Buffer dense = stream.allocate(to.size());
  stream.copy_rows(dense.data(), row, bodies, pitch, row, data.rows());
  stream.copy_out(to.data(), dense.data(), to.size());
  std::copy(data.seed->begin(), data.seed->end(), file.data(part.seed).begin());
}

/// Where the messages of an array stand and what noise they claim to have: metadata
/// `plain_modulus`, `log_modulus` and `noise_variance`.
struct Encoding {
  u32 plain_modulus = 0, log_modulus = 0;
  double noise_variance = 0;
};

void write_encoding(DocumentWriter& file, const Ciphertext::Data& data, double noise_variance) {
  file.integer("plain_modulus", data.plain_modulus);
  file.integer("log_modulus", data.log_modulus);
  write_optional_real(file, "noise_variance", noise_variance);
}

Encoding read_encoding(DocumentReader& file, const Params& params) {
  Encoding e;
  e.log_modulus = static_cast<u32>(
      file.integer("log_modulus", params.spec().log_lwe_modulus, max_log_modulus(params)));
  e.plain_modulus =
      static_cast<u32>(file.integer("plain_modulus", 2, (u64(1) << e.log_modulus) / 4));
  if (e.plain_modulus % 2 != 0) file.refuse("plain_modulus", "an even number");
  if (!file.file().metadata().contains("noise_variance"))
    reject("noise_variance", "nothing (an array of an earlier format, without its noise)",
           "a variance", 8);
  e.noise_variance = optional_real(file, "noise_variance");
  return e;
}

/// Names and shapes now, data after finish().
struct Source {
  const Tensor* tensor = nullptr;
  const Tensor* seed = nullptr;
};

/// Known messages are under no secret key, but under masks of zeros: only they may say so.
void check_masks(DocumentReader& file, const Source& source, const device::TorusPlan& plan) {
  if (source.seed)
    reject("tensor " + quote(source.tensor->name), "masks from a seed under the secret key 'none'",
           "masks of zeros, or the id of a secret key", source.tensor->offset);
  const std::span<const u8> bytes = file.data(*source.tensor);
  const u64 row = u64(plan.words()) * sizeof(u32), mask = u64(plan.rest_dim()) * sizeof(u32);
  for (u64 at = 0; at < bytes.size(); ++at)
    if (at % row < mask && bytes[at] != 0)
      reject("tensor " + quote(source.tensor->name), "a mask under the secret key 'none'",
             "masks of zeros, or the id of a secret key", source.tensor->begin + at);
}

Source find(DocumentReader& file, const std::string& prefix, bool seeded, u64 rows,
            const device::TorusPlan& plan) {
  if (!seeded) return {&file.tensor(prefix + "rows", DType::u32, {rows, plan.words()}), nullptr};
  return {&file.tensor(prefix + "bodies", DType::u32, {rows, plan.slots}),
          &file.tensor(prefix + "seed", DType::u8, {sizeof(random::Seed)})};
}

Ciphertext upload(DocumentReader& file, const Source& source, const Context::State& home, u64 size,
                  const Encoding& encoding, const SecretKeyId& id) {
  auto data = empty_ciphertext(home, size, encoding.plain_modulus, encoding.log_modulus);
  data->secret_key = id;
  data->noise = Noise(size, encoding.noise_variance);
  device::Stream& stream = *home.stream;
  data->payload = stream.allocate(data->bytes());
  if (!source.seed) {
    const auto bytes = file.data(*source.tensor);
    stream.copy_in(data->payload.data(), bytes.data(), bytes.size());
    return Ciphertext(std::move(data));
  }
  data->seed = read_seed(file.data(*source.seed));
  const std::vector<u64> bodies = read_words(*source.tensor, file.data(*source.tensor));
  device::Buffer staged = stream.allocate(bodies.size() * sizeof(u64));
  stream.copy_in(staged.data(), bodies.data(), bodies.size() * sizeof(u64));
  home.torus->expand_lwe(stream, data->view(), {*data->seed}, staged.as<const u64>());
  return Ciphertext(std::move(data));
}

/// Memory for an array of rows: the rows, and for seeded ones the bodies as 64-bit words on the
/// host and on the device.
u64 memory_of(u64 rows, bool seeded, const device::TorusPlan& plan) {
  return rows * (plan.words() * sizeof(u32) + (seeded ? u64(plan.slots) * 2 * sizeof(u64) : 0));
}

u64 rows_of(u64 size, u32 slots) { return (size + slots - 1) / slots; }

std::string block_name(u64 block) { return cat("block/", block, "/"); }

void require_home(const char* what, const Context& context, const Ciphertext::Data& data) {
  require_context(what, data.params_id, context.params().id());
  expect_home(data.params_id, data.payload, context.state(), what);
}

}  // namespace

std::vector<u8> to_bytes(const Context& context, const Ciphertext& ciphertext,
                         const ArrayInfo& info) {
  const Ciphertext::Data& data = ciphertext.data();
  require_home("a ciphertext", context, data);
  ArrayInfo described = info;
  DocumentWriter file(kind::kTfheCiphertext, data.params_id);
  file.secret_key_id(data.secret_key);
  const std::size_t shape = declare_info(file, described, data.size);
  write_encoding(file, data, data.noise.variance());
  file.flag("seeded", data.seed.has_value());
  const Part part = declare(file, "", data);
  file.allocate();
  fill_shape(file, shape, described);
  fill(file, part);
  return file.finish();
}

Ciphertext ciphertext_from_bytes(const Context& context, std::span<const u8> bytes, ArrayInfo* info,
                                 const LoadLimits& limits) {
  const Context::State& home = context.state();
  DocumentReader file(bytes, kind::kTfheCiphertext, limits);
  require_set(file, context.params());
  const SecretKeyId id = file.secret_key_id(true);
  const u64 size = file.integer("size", 1, kMaxSize);
  const Encoding encoding = read_encoding(file, context.params());
  const bool seeded = file.flag("seeded");
  const u64 rows = rows_of(size, home.plan.slots);
  const Source source = find(file, "", seeded, rows, home.plan);
  ArrayInfo found = read_info(file, size);
  file.require_memory(memory_of(rows, seeded, home.plan));
  file.finish();
  check_bits(*source.tensor, file.data(*source.tensor), encoding.log_modulus);
  if (id.is_none()) check_masks(file, source, home.plan);
  Ciphertext array = upload(file, source, home, size, encoding, id);
  if (found.element == "bool") array.data().bound = 2;
  if (info) *info = std::move(found);
  return array;
}

std::vector<u8> to_bytes(const Context& context, const Integers& integers, const ArrayInfo& info) {
  const auto& blocks = integers.blocks();
  for (const Ciphertext& block : blocks) require_home("integers", context, block.data());
  ArrayInfo described = info;
  DocumentWriter file(kind::kTfheIntegers, blocks.front().params_id());
  file.secret_key_id(integers.secret_key_id());
  const std::size_t shape = declare_info(file, described, integers.size());
  double noise = 0;
  for (const Ciphertext& block : blocks) noise = std::max(noise, block.noise_variance());
  write_encoding(file, blocks.front().data(), noise);
  file.integer("bits", integers.bits());
  file.flag("signed", integers.is_signed());
  std::vector<Part> parts;
  std::string seeded;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    parts.push_back(declare(file, block_name(i), blocks[i].data()));
    seeded += blocks[i].data().seed ? '1' : '0';
  }
  file.text("seeded", seeded);
  file.allocate();
  fill_shape(file, shape, described);
  for (const Part& part : parts) fill(file, part);
  return file.finish();
}

Integers integers_from_bytes(const Context& context, std::span<const u8> bytes, ArrayInfo* info,
                             const LoadLimits& limits) {
  const Context::State& home = context.state();
  DocumentReader file(bytes, kind::kTfheIntegers, limits);
  require_set(file, context.params());
  const SecretKeyId id = file.secret_key_id(true);
  const u64 size = file.integer("size", 1, kMaxSize);
  const Encoding encoding = read_encoding(file, context.params());
  if (encoding.plain_modulus != context.params().spec().plain_modulus)
    file.refuse("plain_modulus", cat(context.params().spec().plain_modulus));
  if (encoding.plain_modulus != 32) file.refuse("plain_modulus", "32, of integers");
  if (encoding.log_modulus != context.params().spec().log_lwe_modulus)
    file.refuse("log_modulus", cat(context.params().spec().log_lwe_modulus));
  const u32 bits = static_cast<u32>(file.integer("bits", 2, 256));
  if (bits % 2 != 0) file.refuse("bits", "an even number");
  const bool is_signed = file.flag("signed");
  const std::string seeded = file.text("seeded");
  if (seeded.size() != bits / 2 || seeded.find_first_not_of("01") != std::string::npos)
    file.refuse("seeded", cat(bits / 2, " digits 0 or 1"));
  const u64 rows = rows_of(size, home.plan.slots);
  std::vector<Source> sources;
  u64 memory = 0;
  for (u32 i = 0; i < bits / 2; ++i) {
    sources.push_back(find(file, block_name(i), seeded[i] == '1', rows, home.plan));
    memory += memory_of(rows, seeded[i] == '1', home.plan);
  }
  ArrayInfo found = read_info(file, size);
  file.require_memory(memory);
  file.finish();
  for (const Source& source : sources)
    check_bits(*source.tensor, file.data(*source.tensor), encoding.log_modulus);
  if (id.is_none())
    for (const Source& source : sources) check_masks(file, source, home.plan);
  std::vector<Ciphertext> blocks;
  for (const Source& source : sources)
    blocks.push_back(upload(file, source, home, size, encoding, id));
  if (info) *info = std::move(found);
  return Integers(std::move(blocks), bits, is_signed);
}

}  // namespace crenel::tfhe
