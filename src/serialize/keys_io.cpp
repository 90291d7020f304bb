// Evaluation keys and public keys to bytes and back; uniform halves travel as seeds.
#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "crenel/core/watch.h"
#include "rlwe/shared_keys.h"
#include "serialize/key_set.h"
#include "serialize/poly_io.h"

namespace crenel::ckks {
namespace {

using namespace serialize;
using ring::Domain;

void fill(DocumentWriter& file, std::size_t half, std::size_t seed_index, const rlwe::Poly& pairs,
          const random::Seed& seed) {
  copy_out(pairs, 0, file.data(half));
  std::copy(seed.begin(), seed.end(), file.data(seed_index).begin());
}

}  // namespace

std::vector<u8> to_bytes(const Context& context, const EvaluationKeys& keys) {
  const std::string& id = context.params().id();
  if (keys.data()) require_context("evaluation keys", keys.data()->params_id, id);
  DocumentWriter file(kind::kEvaluationKeys, id);
  file.secret_key_id(keys.secret_key_id());
  const auto parts = declare_keys(file, *context.state().ring, resident_keys(keys));
  file.allocate();
  watch::Task task(parts.size() + 1, "saving keys");
  for (const auto& [key, half, seed] : parts) {
    fill(file, half, seed, key->pairs, key->seed);
    watch::advance();
  }
  std::vector<u8> bytes = file.finish();
  task.finish();
  return bytes;
}

EvaluationKeys evaluation_keys_from_bytes(const Context& context, std::span<const u8> bytes,
                                          const LoadLimits& limits) {
  auto data = std::make_shared<EvaluationKeys::Data>();
  data->params_id = context.params().id();
  data->ring = context.state().ring;
  KeyReader reader(*data->ring, data->params_id, bytes, limits);
  data->secret_key = reader.secret_key_id();
  data->set = reader.load_all();
  rlwe::share_between_groups(data->set);
  return EvaluationKeys(std::move(data));
}

std::vector<u8> to_bytes(const Context& context, const PublicKey& key) {
  const std::string& id = context.params().id();
  require_context("a public key", key.data().context.params().id(), id);
  const rlwe::PublicKey& source = key.data().key;
  DocumentWriter file(kind::kPublicKey, id);
  file.secret_key_id(key.secret_key_id());
  const std::size_t half =
      file.tensor("b", DType::u32, {source.pair.limbs().size(), source.pair.shape().ring_dim()});
  const std::size_t seed = file.tensor("seed", DType::u8, {source.seed.size()});
  file.allocate();
  fill(file, half, seed, source.pair, source.seed);
  return file.finish();
}

PublicKey public_key_from_bytes(const Context& context, std::span<const u8> bytes,
                                const LoadLimits& limits) {
  const rlwe::RingContext& ring = *context.state().ring;
  const rns::LimbSet limbs = rns::LimbSet::range(0, ring.chain().chain_limbs);
  DocumentReader file(bytes, kind::kPublicKey, limits);
  file.require_params(context.params().id());
  const SecretKeyId id = file.secret_key_id(false);
  const Tensor& half = file.tensor("b", DType::u32, {limbs.size(), ring.ring_dim()});
  const Tensor& seed = file.tensor("seed", DType::u8, {sizeof(random::Seed)});
  file.require_memory(poly_bytes(ring, 2, 1, limbs));
  file.finish();
  check_residues(half, file.data(half), ring, limbs);

  rlwe::PublicKey key;
  key.seed = read_seed(file.data(seed));
  key.pair = rlwe::Poly(ring.stream(), {ring.log_n(), 2, 1}, limbs, Domain::eval);
  copy_in(key.pair, 0, file.data(half));
  rlwe::expand_uniform(ring, key.pair.view().components(1, 1), key.seed);
  return PublicKey(
      std::make_shared<const PublicKey::Data>(PublicKey::Data{context, std::move(key), id}));
}

}  // namespace crenel::ckks
