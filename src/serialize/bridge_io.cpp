// Keys of the bridge to bytes and back; uniform halves travel as seeds.
#include <algorithm>

#include "bridge/keys.h"
#include "crenel/bridge/serialize.h"
#include "rlwe/secret/secret_key.h"
#include "serialize/poly_io.h"
#include "serialize/reject.h"

namespace crenel::bridge {
namespace {

using namespace serialize;
using ring::Domain;

constexpr const char *kTfheParams = "tfhe_params_id", *kTfheSecret = "tfhe_secret_key_id";

/// A key of the file, and the ring that it is of.
struct Part {
  std::string name;
  const rlwe::RingContext* ring;
  u32 digits;
  rns::LimbSet limbs;

  std::vector<u64> shape() const { return {digits, limbs.size(), ring->ring_dim()}; }
  u64 bytes() const { return poly_bytes(*ring, 2, digits, limbs); }
};

void add_merges(std::vector<Part>& parts, const std::string& name, const rlwe::RingContext& ring,
                MergeLevels levels) {
  const auto [first, digits, limbs] = ring.extent(0);
  parts.push_back({name + "/up", &ring, digits, limbs});
  for (u32 i = 0; i < levels.count; ++i)
    parts.push_back({cat(name, "/merge/", levels.first + i), &ring, digits, limbs});
}

// In the order of Keys::Data::for_each.
std::vector<Part> parts_of(const rlwe::RingContext& ring, const Rings& rings) {
  std::vector<Part> parts{{"down", &ring, 1, ring.window(0)}};
  add_merges(parts, "middle", *rings.middle, middle_levels(rings));
  add_merges(parts, "last", *rings.last, last_levels(rings));
  return parts;
}

rlwe::SwitchKey loaded(DocumentReader& file, const Part& part, const Tensor& half,
                       const Tensor& seed) {
  rlwe::SwitchKey key;
  key.pairs = rlwe::Poly::kept(part.ring->stream(), {part.ring->log_n(), 2, part.digits},
                               part.limbs, Domain::eval);
  key.seed = read_seed(file.data(seed));
  copy_in(key.pairs, 0, file.data(half));
  rlwe::expand_uniform(*part.ring, key.pairs.view().components(1, 1), key.seed);
  return key;
}

// Files of packing keys that lived in the ring of the CKKS set.
void refuse_former(const DocumentReader& file) {
  if (file.has_tensor("up/b"))
    reject("bridge keys", "keys of packing in the CKKS ring ('up/b')",
           "those of packing in rings of its own: make them again with make_keys");
}

}  // namespace

std::vector<u8> to_bytes(const ckks::Context& ckks, const tfhe::Context& tfhe, const Keys& keys) {
  const Keys::Data& data = keys.data();
  require_context("bridge keys", data.ckks_params_id, ckks.params().id());
  require_context("bridge keys", data.tfhe_params_id, tfhe.params().id());
  DocumentWriter file(kind::kBridgeKeys, data.ckks_params_id);
  file.secret_key_id(data.ckks_secret_key);
  file.text(kTfheParams, data.tfhe_params_id);
  file.text(kTfheSecret, data.tfhe_secret_key.text());
  std::vector<std::size_t> half, seed;
  for (const Part& part : parts_of(*data.ring, *data.rings)) {
    half.push_back(file.tensor(part.name + "/b", DType::u32, part.shape()));
    seed.push_back(file.tensor(part.name + "/seed", DType::u8, {sizeof(random::Seed)}));
  }
  file.allocate();
  std::size_t i = 0;
  data.for_each([&](const rlwe::SwitchKey& key) {
    copy_out(key.pairs, 0, file.data(half[i]));
    std::copy(key.seed.begin(), key.seed.end(), file.data(seed[i]).begin());
    ++i;
  });
  return file.finish();
}

Keys keys_from_bytes(const ckks::Context& ckks, const tfhe::Context& tfhe,
                     std::span<const u8> bytes, const LoadLimits& limits) {
  expect_fitting(ckks, tfhe);
  DocumentReader file(bytes, kind::kBridgeKeys, limits);
  file.require_params(ckks.params().id());
  auto data = std::make_shared<Keys::Data>();
  data->ckks_params_id = ckks.params().id();
  data->ckks_secret_key = file.secret_key_id(false);
  data->tfhe_params_id = file.text(kTfheParams);
  if (data->tfhe_params_id != tfhe.params().id()) file.refuse(kTfheParams, tfhe.params().id());
  const auto id = SecretKeyId::from_text(file.text(kTfheSecret));
  if (!id || id->is_none()) file.refuse(kTfheSecret, "32 hexadecimal digits");
  data->tfhe_secret_key = *id;
  refuse_former(file);
  data->ring = ckks.state().ring;
  data->rings = make_rings(ckks, small_degree(tfhe));
  const std::vector<Part> parts = parts_of(*data->ring, *data->rings);
  std::vector<const Tensor*> half, seed;
  u64 memory = 0;
  for (const Part& part : parts) {
    half.push_back(&file.tensor(part.name + "/b", DType::u32, part.shape()));
    seed.push_back(&file.tensor(part.name + "/seed", DType::u8, {sizeof(random::Seed)}));
    memory += part.bytes();
  }
  file.require_memory(memory);
  file.finish();
  for (std::size_t i = 0; i < parts.size(); ++i)
    check_residues(*half[i], file.data(*half[i]), *parts[i].ring, parts[i].limbs);
  std::size_t i = 0;
  const auto next = [&] {
    rlwe::SwitchKey key = loaded(file, parts[i], *half[i], *seed[i]);
    ++i;
    return key;
  };
  data->down = next();
  const auto merges = [&](MergeLevels levels) {
    MergeKeys keys{next(), {}};
    for (u32 level = 0; level < levels.count; ++level) keys.turns.push_back(next());
    return keys;
  };
  data->middle = merges(middle_levels(*data->rings));
  data->last = merges(last_levels(*data->rings));
  return Keys(std::move(data));
}

}  // namespace crenel::bridge
