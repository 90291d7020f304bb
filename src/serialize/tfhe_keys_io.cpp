// Evaluation keys of TFHE to bytes and back: bodies, and the seeds of their masks.
#include <algorithm>
#include <cstring>

#include "serialize/poly_io.h"
#include "serialize/reject.h"
#include "serialize/tfhe_io.h"
#include "tfhe/keygen.h"
#include "tfhe/lists.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {
namespace {

using namespace serialize;

constexpr const char* kBootstrap = "bootstrap";
constexpr const char* kSwitch = "key_switch";
constexpr const char* kPacking = "packing";
constexpr const char* kLists = "lists";

std::string half_name(const std::string& key) { return key + "/b"; }
std::string seed_name(const std::string& key) { return key + "/seed"; }

/// [steps, keys, digits, rows, slots, primes, N]
std::vector<u64> bootstrap_shape(const device::TorusPlan& used) {
  const device::TorusPlan plan = made_plan(used);
  return {plan.steps(), plan.keys_per_step(), plan.digits,    plan.polys(),
          plan.slots,   plan.primes.size(),   plan.ring_dim()};
}

std::vector<u64> switch_shape(const device::SwitchShape& shape) {
  return {shape.in_dim, shape.digits, shape.digit_rows(), shape.slots};
}

/// [doublings, digits, primes, N]
std::vector<u64> lists_shape(const Context::State& home) {
  const ListPlan lists = list_plan(home.plan);
  return {home.plan.log_n, lists.digits(), lists.digits(), home.plan.ring_dim()};
}

/// Tensors of one key.
struct Part {
  std::size_t half = 0, seed = 0;
};

Part declare(DocumentWriter& file, const std::string& name, DType dtype, std::vector<u64> shape) {
  const std::size_t half = file.tensor(half_name(name), dtype, std::move(shape));
  return {half, file.tensor(seed_name(name), DType::u8, {sizeof(random::Seed)})};
}

void fill_seed(DocumentWriter& file, const Part& part, const random::Seed& seed) {
  std::copy(seed.begin(), seed.end(), file.data(part.seed).begin());
}

struct Source {
  const Tensor* half = nullptr;
  const Tensor* seed = nullptr;
};

Source find(DocumentReader& file, const std::string& name, DType dtype,
            const std::vector<u64>& shape) {
  return {&file.tensor(half_name(name), dtype, shape),
          &file.tensor(seed_name(name), DType::u8, {sizeof(random::Seed)})};
}

/// Memory for the keys: on the device, and their bodies twice on the host. They are brought there
/// in chunks of bounded size.
u64 memory_of(const Context::State& home, const KeyRequest& request) {
  const auto of_switch = [](const device::SwitchShape& shape) {
    return shape.key_bytes() + 2 * shape.key_rows() * shape.slots * sizeof(u64);
  };
  return home.torus->bootstrap_key_bytes() + 2 * bootstrap_body_words(home.plan) * sizeof(u32) +
         of_switch(home.torus->switch_shape()) +
         (request.packing ? of_switch(packing_shape(home.plan)) : 0) +
         (request.lists ? 4 * list_key_words(home.plan) * sizeof(u32) : 0);
}

void check_words(const Tensor& tensor, std::span<const u64> words, u32 bits) {
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] >> bits != 0)
      reject("tensor " + quote(tensor.name), cat("word ", words[i]), cat("words below 2^", bits),
             tensor.begin + i * size_of(tensor.dtype));
}

/// Residues of polynomials with these primes as limbs, each below its prime.
std::vector<u32> read_residues(const Tensor& tensor, std::span<const u8> bytes,
                               const std::vector<u64>& primes, u32 log_n) {
  std::vector<u32> words(bytes.size() / sizeof(u32));
  if (!words.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    const u64 prime = primes[(i >> log_n) % primes.size()];
    if (words[i] >= prime)
      reject("tensor " + quote(tensor.name), cat("residue ", words[i]),
             cat("values below its prime ", prime), tensor.begin + i * sizeof(u32));
  }
  return words;
}

}  // namespace

std::vector<u8> to_bytes(const Context& context, const EvaluationKeys& keys) {
  const std::string& id = context.params().id();
  if (!keys.data())
    throw StateError("cannot save evaluation keys: there are none", {{"found", "no keys"}});
  const EvaluationKeys::Data& data = *keys.data();
  require_context("evaluation keys", data.params_id, id);
  expect_key_group(data, context.state());
  const device::TorusPlan& plan = context.state().plan;
  const device::SwitchShape to_rest = context.state().torus->switch_shape();
  const device::SwitchShape pack = packing_shape(plan);
  DocumentWriter file(kind::kTfheEvaluationKeys, id);
  file.secret_key_id(data.secret_key);
  file.flag(kPacking, keys.has_packing());
  const Part bootstrap = declare(file, kBootstrap, DType::u32, bootstrap_shape(plan));
  const DType switch_type = word_type(to_rest.log_modulus), pack_type = word_type(pack.log_modulus);
  const Part key_switch = declare(file, kSwitch, switch_type, switch_shape(to_rest));
  Part packing;
  if (keys.has_packing()) packing = declare(file, kPacking, pack_type, switch_shape(pack));
  Part lists;
  if (keys.has_lists()) lists = declare(file, kLists, DType::u32, lists_shape(context.state()));
  file.allocate();
  std::memcpy(file.data(bootstrap.half).data(), data.bootstrap_bodies.data(),
              data.bootstrap_bodies.size() * sizeof(u32));
  fill_seed(file, bootstrap, data.bootstrap_seed);
  write_words(switch_bodies(keys), switch_type, file.data(key_switch.half));
  fill_seed(file, key_switch, data.switch_seed);
  if (keys.has_packing()) {
    write_words(packing_bodies(keys), pack_type, file.data(packing.half));
    fill_seed(file, packing, data.packing_seed);
  }
  if (keys.has_lists()) {
    std::memcpy(file.data(lists.half).data(), data.lists_bodies.data(),
                data.lists_bodies.size() * sizeof(u32));
    fill_seed(file, lists, data.lists_seed);
  }
  return file.finish();
}

EvaluationKeys evaluation_keys_from_bytes(const Context& context, std::span<const u8> bytes,
                                          const LoadLimits& limits) {
  const device::TorusPlan& plan = context.state().plan;
  const device::SwitchShape to_rest = context.state().torus->switch_shape();
  const device::SwitchShape pack = packing_shape(plan);
  DocumentReader file(bytes, kind::kTfheEvaluationKeys, limits, LoadLimits::kKeyBytes);
  require_set(file, context.params());
  const SecretKeyId id = file.secret_key_id(false);
  const bool has_packing = file.flag(kPacking);
  if (has_packing && plan.rests_extracted())
    file.refuse(kPacking, "no packing key, of sets with groups");
  const Source bootstrap = find(file, kBootstrap, DType::u32, bootstrap_shape(plan));
  const Source key_switch =
      find(file, kSwitch, word_type(to_rest.log_modulus), switch_shape(to_rest));
  Source packing;
  if (has_packing) packing = find(file, kPacking, word_type(pack.log_modulus), switch_shape(pack));
  const Context::State& home = context.state();
  const KeyRequest request{has_packing, file.has_tensor(half_name(kLists))};
  if (request.lists && list_plan(plan).primes.empty())
    file.refuse(half_name(kLists), "no key of lists, of sets without them");
  Source lists;
  if (request.lists) lists = find(file, kLists, DType::u32, lists_shape(home));
  file.require_memory(memory_of(home, request));
  // The bodies of the bootstrapping key are there once more until the keys are.
  expect_room_for_keys(home, request, bootstrap_body_words(home.plan) * sizeof(u32));
  file.finish();

  const auto bodies = [&](const Source& source, u32 bits) {
    std::vector<u64> words = read_words(*source.half, file.data(*source.half));
    check_words(*source.half, words, bits);
    return words;
  };
  const auto residues =
      read_residues(*bootstrap.half, file.data(*bootstrap.half), plan.primes, plan.log_n);
  const std::vector<u64> switch_words = bodies(key_switch, to_rest.log_modulus);
  std::vector<u64> packing_words;
  EvaluationKeyParts parts;
  parts.secret_key = id;
  parts.bootstrap_seed = read_seed(file.data(*bootstrap.seed));
  parts.bootstrap_bodies = residues;
  parts.switch_seed = read_seed(file.data(*key_switch.seed));
  parts.switch_bodies = switch_words;
  if (has_packing) {
    packing_words = bodies(packing, pack.log_modulus);
    parts.packing_seed = read_seed(file.data(*packing.seed));
    parts.packing_bodies = packing_words;
  }
  std::vector<u32> list_words;
  if (request.lists) {
    list_words =
        read_residues(*lists.half, file.data(*lists.half), home.lists().plan.primes, plan.log_n);
    parts.lists_seed = read_seed(file.data(*lists.seed));
    parts.lists_bodies = list_words;
  }
  return keys_from_parts(context, parts);
}

}  // namespace crenel::tfhe
