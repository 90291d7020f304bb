#include "crenel/ckks/copies.h"

#include "ckks/objects.h"
#include "crenel/core/watch.h"
#include "crenel/device/link.h"
#include "device/room.h"
#include "rlwe/shared_keys.h"

namespace crenel::ckks {
namespace {

void expect_parameters(const std::string& params_id, const Context& to, const char* what) {
  if (params_id != to.params().id())
    throw StateError(cat(what, " of parameters ", params_id, ", context has ", to.params().id()),
                     {{"found", params_id}, {"expected", to.params().id()}});
}

// Into memory that the caller allocated of the same shape.
rlwe::Poly filled(rlwe::Poly copy, const rlwe::Poly& from) {
  device::copy_across(copy.stream(), copy.data(), from.stream(), from.data(), from.bytes());
  return copy;
}

rlwe::Poly across(device::Stream& stream, const rlwe::Poly& from) {
  return filled(rlwe::Poly(stream, from.shape(), from.limbs(), from.domain()), from);
}

rlwe::SwitchKey across(device::Stream& stream, const rlwe::SwitchKey& from) {
  const rlwe::Poly& pairs = from.pairs;
  rlwe::SwitchKey key;
  key.pairs = filled(rlwe::Poly::kept(stream, pairs.shape(), pairs.limbs(), pairs.domain()), pairs);
  key.seed = from.seed;
  key.first_digit = from.first_digit;
  key.max_level = from.max_level;
  watch::advance();
  return key;
}

}  // namespace

EvaluationKeys copy_to(const Context& to, const EvaluationKeys& keys) {
  const EvaluationKeys::Data* from = keys.data();
  if (from == nullptr) return {};
  expect_parameters(from->params_id, to, "evaluation keys");
  if (from->staged)
    throw StateError(
        "staged keys lie in host memory: copy the keys that they were made from, and stage the "
        "copies",
        {{"found", "staged keys"}, {"expected", "keys on a device"}});
  auto& stream = to.stream();
  const u64 needed = from->set.pair_bytes();  // groups of parts have more, there or here
  device::expect_room(stream, {needed}, [&] {
    return core::MemoryRequest{.what = cat("a copy of ", keys.count(), " evaluation keys"),
                               .bytes = needed,
                               .advice = "stage the keys, or use fewer devices"};
  });
  auto data = std::make_shared<EvaluationKeys::Data>();
  data->params_id = from->params_id;
  data->secret_key = from->secret_key;
  data->ring = to.state().ring;
  const watch::Task task(keys.count(), "copying keys");
  const rlwe::EvaluationKeySet& set = from->set;
  if (set.relinearisation) data->set.relinearisation = across(stream, *set.relinearisation);
  for (const auto& [element, key] : set.galois) data->set.put(element, across(stream, key));
  for (const auto& [id, key] : set.aligned)
    data->set.put(rlwe::aligned_key(id), across(stream, key));
  if (set.encapsulation) {
    const rlwe::EncapsulationKeys& keys_of = *set.encapsulation;
    data->set.encapsulation =
        rlwe::EncapsulationKeys{.dense_to_sparse = across(stream, keys_of.dense_to_sparse),
                                .sparse_to_dense = across(stream, keys_of.sparse_to_dense),
                                .turned = {},
                                .weight = keys_of.weight};
    for (const auto& [element, key] : keys_of.turned)
      data->set.encapsulation->turned.emplace(element, across(stream, key));
  }
  rlwe::share_between_groups(data->set);
  return EvaluationKeys(std::move(data));
}

Ciphertext copy_to(const Context& to, const Ciphertext& ciphertext) {
  const Ciphertext::Data& from = ciphertext.data();
  expect_parameters(from.params_id, to, "ciphertext");
  auto data = std::make_unique<Ciphertext::Data>();
  data->meta = from.meta;
  data->params_id = from.params_id;
  data->seed = from.seed;
  data->poly = across(to.stream(), from.poly);
  return Ciphertext(std::move(data));
}

Plaintext copy_to(const Context& to, const Plaintext& plaintext) {
  const Plaintext::Data& from = plaintext.data();
  expect_parameters(from.params_id, to, "plaintext");
  expect_not_decrypted(plaintext, "a copy");  // which would lie in memory that nothing wipes
  return Plaintext(std::make_unique<Plaintext::Data>(Plaintext::Data{
      from.meta, from.params_id, across(to.stream(), from.poly), from.decrypted, from.stated}));
}

}  // namespace crenel::ckks
