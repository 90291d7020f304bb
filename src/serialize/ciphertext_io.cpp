// Ciphertexts and plaintexts to files and back.
#include <algorithm>
#include <bit>

#include "ckks/batch_request.h"
#include "ckks/decode.h"
#include "ckks/objects.h"
#include "ckks/scale.h"
#include "crenel/ckks/serialize.h"
#include "serialize/poly_io.h"
#include "serialize/reject.h"

namespace crenel::ckks {
namespace {

using namespace serialize;
using ring::Domain;

constexpr const char* kDomain = "evaluation";

void write_metadata(DocumentWriter& file, const Params& params, const Metadata& meta,
                    const rlwe::Poly& poly) {
  if (poly.domain() != Domain::eval)
    throw StateError("cannot save a polynomial in coefficient form: evaluation form is expected");
  if (!scale_fits(params, meta.level, meta.scale))
    throw StateError(cat("cannot save: the scale is ", meta.scale, ", expected ",
                         scale_range(params, meta.level)),
                     {{"scale", meta.scale}, {"expected", scale_range(params, meta.level)}});
  file.integer("level", meta.level);
  file.real("scale", meta.scale);
  file.integer("slots", meta.slots);
  file.flag("real", meta.real);
  file.integer("batch", poly.shape().batch);
  file.text("domain", kDomain);
}

// What is not positive and normal is written as the smallest that is: a bound may be larger.
void write_bound(DocumentWriter& file, double bound) {
  if (bound < kUnknownBound)
    file.real("bound", std::max(bound, std::numeric_limits<double>::min()));
}

struct Described {
  Metadata meta;
  u32 batch = 1;
};

Described read_metadata(DocumentReader& file, const Params& params) {
  file.require_params(params.id());
  Described d;
  d.meta.level = static_cast<u32>(file.integer("level", 0, params.max_level()));
  d.meta.scale = file.real("scale");
  if (!scale_fits(params, d.meta.level, d.meta.scale))
    file.refuse("scale", scale_range(params, d.meta.level));
  d.meta.slots = file.integer("slots", 1, params.slots());
  if (!std::has_single_bit(d.meta.slots)) file.refuse("slots", "a power of two");
  d.meta.real = file.flag("real");
  d.batch = static_cast<u32>(file.integer("batch", 1, kMaxBatch));
  if (file.text("domain") != kDomain) file.refuse("domain", quote(kDomain));
  if (const auto bound = file.optional_real("bound")) d.meta.bound = *bound;
  return d;
}

}  // namespace

std::vector<u8> to_bytes(const Context& context, const Ciphertext& ciphertext) {
  require_context("a ciphertext", ciphertext.params_id(), context.params().id());
  const Ciphertext::Data& data = ciphertext.data();
  const rlwe::Poly& poly = data.poly;
  DocumentWriter file(kind::kCiphertext, data.params_id);
  write_metadata(file, context.params(), data.meta, poly);
  write_bound(file, data.meta.bound);
  file.secret_key_id(data.meta.secret_key);
  file.integer("components", poly.shape().components);
  file.flag("seeded", data.seed.has_value());

  const std::vector<u64> shape{poly.shape().batch, poly.limbs().size(), poly.shape().ring_dim()};
  std::vector<std::pair<u32, std::size_t>> tensors;  // component, tensor
  for (u32 c = 0; c < poly.shape().components; ++c)
    if (c != 1 || !data.seed) tensors.emplace_back(c, file.tensor(cat("c", c), DType::u32, shape));
  std::size_t seed = 0;
  if (data.seed) seed = file.tensor("seed", DType::u8, {data.seed->size()});
  file.allocate();
  for (const auto& [component, tensor] : tensors) copy_out(poly, component, file.data(tensor));
  if (data.seed) std::copy(data.seed->begin(), data.seed->end(), file.data(seed).begin());
  return file.finish();
}

Ciphertext ciphertext_from_bytes(const Context& context, std::span<const u8> bytes,
                                 const LoadLimits& limits) {
  const rlwe::RingContext& ring = *context.state().ring;
  DocumentReader file(bytes, kind::kCiphertext, limits);
  auto [meta, batch] = read_metadata(file, context.params());
  meta.secret_key = file.secret_key_id(false);
  const u32 components = static_cast<u32>(file.integer("components", 2, 3));
  const bool seeded = file.flag("seeded");
  if (seeded && components != 2) file.refuse("seeded", "'false' with three components");
  const rns::LimbSet& limbs = ring.window(meta.level);
  std::vector<std::pair<u32, const Tensor*>> tensors;
  for (u32 c = 0; c < components; ++c)
    if (c != 1 || !seeded)
      tensors.emplace_back(
          c, &file.tensor(cat("c", c), DType::u32, {batch, limbs.size(), ring.ring_dim()}));
  const Tensor* seed = nullptr;
  if (seeded) seed = &file.tensor("seed", DType::u8, {sizeof(random::Seed)});
  const u64 bytes_needed = poly_bytes(ring, components, batch, limbs);
  file.require_memory(bytes_needed);
  device::expect_room(ring.device(), {.device = bytes_needed},
                      [&, rows = batch] { return batch_request("loading", rows, bytes_needed); });
  file.finish();
  for (const auto& [component, tensor] : tensors)
    check_residues(*tensor, file.data(*tensor), ring, limbs);

  auto data = std::make_unique<Ciphertext::Data>();
  data->meta = meta;
  data->params_id = context.params().id();
  data->poly = rlwe::Poly(ring.stream(), {ring.log_n(), components, batch}, limbs, Domain::eval);
  for (const auto& [component, tensor] : tensors)
    copy_in(data->poly, component, file.data(*tensor));
  if (seed) {
    data->seed = read_seed(file.data(*seed));
    rlwe::expand_uniform(ring, data->poly.view().components(1, 1), *data->seed);
  }
  return Ciphertext(std::move(data));
}

std::vector<u8> to_bytes(const Context& context, const Plaintext& plaintext, bool allow_exact) {
  require_context("a plaintext", plaintext.params_id(), context.params().id());
  const Plaintext::Data& data = plaintext.data();
  if (!allow_exact)
    expect_not_decrypted(plaintext, "serialisation",
                         "; allow_exact writes what stays with the key holder");
  DocumentWriter file(kind::kPlaintext, data.params_id);
  write_metadata(file, context.params(), data.meta, data.poly);
  if (data.stated) write_bound(file, data.meta.bound);
  const std::size_t tensor = file.tensor(
      "m", DType::u32,
      {data.poly.shape().batch, data.poly.limbs().size(), data.poly.shape().ring_dim()});
  file.allocate();
  copy_out(data.poly, 0, file.data(tensor));
  return file.finish();
}

Plaintext plaintext_from_bytes(const Context& context, std::span<const u8> bytes,
                               const LoadLimits& limits) {
  const rlwe::RingContext& ring = *context.state().ring;
  DocumentReader file(bytes, kind::kPlaintext, limits);
  const auto [meta, batch] = read_metadata(file, context.params());
  const rns::LimbSet& limbs = ring.window(meta.level);
  const Tensor& tensor = file.tensor("m", DType::u32, {batch, limbs.size(), ring.ring_dim()});
  const u64 bytes_needed = poly_bytes(ring, 1, batch, limbs);
  file.require_memory(bytes_needed);
  device::expect_room(ring.device(), {.device = bytes_needed},
                      [&, rows = batch] { return batch_request("loading", rows, bytes_needed); });
  file.finish();
  check_residues(tensor, file.data(tensor), ring, limbs);

  auto data = std::make_unique<Plaintext::Data>();
  data->meta = meta;
  data->params_id = context.params().id();
  data->poly = rlwe::Poly(ring.stream(), {ring.log_n(), 1, batch}, limbs, Domain::eval);
  copy_in(data->poly, 0, file.data(tensor));
  data->stated = meta.bound < kUnknownBound;
  if (!data->stated) data->meta.bound = measured_bound(context.state(), data->poly, meta);
  return Plaintext(std::move(data));
}

}  // namespace crenel::ckks
