#include "crenel/tfhe/copies.h"

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "crenel/device/link.h"
#include "tfhe/keygen.h"
#include "tfhe/objects.h"

namespace crenel::tfhe {
namespace {

void expect_parameters(const std::string& params_id, const Context& to, const char* what) {
  if (params_id != to.params().id())
    throw StateError(cat(what, " of parameters ", params_id, ", context has ", to.params().id()),
                     {{"found", params_id}, {"expected", to.params().id()}});
}

device::Buffer across(device::Stream& stream, const device::Buffer& from) {
  device::Buffer copy = stream.allocate(from.bytes());
  device::copy_across(stream, copy.data(), *from.stream(), from.data(), from.bytes());
  return copy;
}

// The order of a bootstrapping key is its backend's, which may choose it by the GPU.
bool same_order(const device::Device& a, const device::Device& b) {
  const device::DeviceInfo &x = a.info(), &y = b.info();
  return x.kind == y.kind && x.description == y.description;
}

}  // namespace

EvaluationKeys copy_to(const Context& to, const EvaluationKeys& keys) {
  const EvaluationKeys::Data* from = keys.data();
  if (from == nullptr) return EvaluationKeys(nullptr);
  expect_parameters(from->params_id, to, "evaluation keys");
  expect_key_group(*from, to.state());
  const Context::State& home = to.state();
  expect_room_for_keys(home, request_of(keys));
  auto& stream = *home.stream;
  auto data = std::make_shared<EvaluationKeys::Data>();
  data->params_id = from->params_id;
  data->secret_key = from->secret_key;
  data->home = to.shared_state();
  data->bootstrap_seed = from->bootstrap_seed;
  data->switch_seed = from->switch_seed;
  data->packing_seed = from->packing_seed;
  data->bootstrap_bodies = from->bootstrap_bodies;
  if (same_order(*from->home->device, *home.device)) {
    data->bootstrap = across(stream, from->bootstrap);
  } else {
    const watch::Task task(home.plan.lwe_dim, "copying keys");
    data->bootstrap = load_bootstrap_key(home, *home.torus, *data);
  }
  data->key_switch = across(stream, from->key_switch);
  if (keys.has_packing()) data->packing = across(stream, from->packing);
  if (keys.has_lists()) {
    data->lists_seed = from->lists_seed;
    data->lists_bodies = from->lists_bodies;
    data->lists = across(stream, from->lists);
  }
  return EvaluationKeys(std::move(data));
}

Ciphertext copy_to(const Context& to, const Ciphertext& ciphertext) {
  const Ciphertext::Data& from = ciphertext.data();
  expect_parameters(from.params_id, to, "ciphertext");
  auto data = from.like();
  data->seed = from.seed;
  data->payload = across(*to.state().stream, from.payload);
  return Ciphertext(std::move(data));
}

Integers copy_to(const Context& to, const Integers& integers) {
  std::vector<Ciphertext> blocks;
  for (const Ciphertext& block : integers.blocks()) blocks.push_back(copy_to(to, block));
  return Integers(std::move(blocks), integers.bits(), integers.is_signed(), integers.origins());
}

}  // namespace crenel::tfhe
