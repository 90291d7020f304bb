// Keys of the bridge to bytes and back; uniform halves travel as seeds.
#include <algorithm>
#include <array>

#include "bridge/keys.h"
#include "crenel/bridge/serialize.h"
#include "serialize/poly_io.h"
#include "serialize/reject.h"

namespace crenel::bridge {
namespace {

using namespace serialize;
using ring::Domain;

constexpr const char *kTfheParams = "tfhe_params_id", *kTfheSecret = "tfhe_secret_key_id";

struct Part {
  std::string name;
  rns::LimbSet limbs;
};

// Down under the small ring's secret, up under the large one's.
std::array<Part, 2> parts(const rlwe::RingContext& ring) {
  return {Part{"down", ring.window(0)}, Part{"up", ring.extent(0).limbs}};
}

rlwe::SwitchKey loaded(DocumentReader& file, const rlwe::RingContext& ring, const Part& part,
                       const Tensor& half, const Tensor& seed) {
  rlwe::SwitchKey key;
  key.pairs = rlwe::Poly::kept(ring.stream(), {ring.log_n(), 2, 1}, part.limbs, Domain::eval);
  key.seed = read_seed(file.data(seed));
  copy_in(key.pairs, 0, file.data(half));
  return key;
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
  const rlwe::SwitchKey* const both[] = {&data.keys.down, &data.keys.up};
  std::size_t half[2], seed[2];
  const auto described = parts(*data.ring);
  for (std::size_t i = 0; i < 2; ++i) {
    half[i] = file.tensor(described[i].name + "/b", DType::u32,
                          {described[i].limbs.size(), data.ring->ring_dim()});
    seed[i] = file.tensor(described[i].name + "/seed", DType::u8, {sizeof(random::Seed)});
  }
  file.allocate();
  for (std::size_t i = 0; i < 2; ++i) {
    copy_out(both[i]->pairs, 0, file.data(half[i]));
    std::copy(both[i]->seed.begin(), both[i]->seed.end(), file.data(seed[i]).begin());
  }
  return file.finish();
}

Keys keys_from_bytes(const ckks::Context& ckks, const tfhe::Context& tfhe,
                     std::span<const u8> bytes, const LoadLimits& limits) {
  expect_fitting(ckks, tfhe);
  const rlwe::RingContext& ring = *ckks.state().ring;
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
  data->ring = ckks.state().ring;
  const auto described = parts(ring);
  const Tensor *half[2], *seed[2];
  u64 memory = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    half[i] = &file.tensor(described[i].name + "/b", DType::u32,
                           {described[i].limbs.size(), ring.ring_dim()});
    seed[i] = &file.tensor(described[i].name + "/seed", DType::u8, {sizeof(random::Seed)});
    memory += poly_bytes(ring, 2, 1, described[i].limbs);
  }
  file.require_memory(memory);
  file.finish();
  for (std::size_t i = 0; i < 2; ++i)
    check_residues(*half[i], file.data(*half[i]), ring, described[i].limbs);
  data->keys.down = loaded(file, ring, described[0], *half[0], *seed[0]);
  data->keys.up = loaded(file, ring, described[1], *half[1], *seed[1]);
  const rlwe::KeyExtent extent = ring.extent(0);
  data->keys.up.first_digit = extent.first_digit;
  data->keys.up.max_level = 0;
  for (rlwe::SwitchKey* key : {&data->keys.down, &data->keys.up})
    rlwe::expand_uniform(ring, key->pairs.view().components(1, 1), key->seed, key->first_digit);
  return Keys(std::move(data));
}

}  // namespace crenel::bridge
