// Evaluation keys of TFHE to bytes and back: bodies, and the seeds of their masks.
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

#include "crenel/core/watch.h"
#include "serialize/poly_io.h"
#include "serialize/reject.h"
#include "serialize/tfhe_io.h"
#include "tfhe/bit_packing.h"
#include "tfhe/keygen.h"
#include "tfhe/lists.h"
#include "tfhe/params/plan.h"
#include "tfhe/reduced.h"

namespace crenel::tfhe {
namespace {

using namespace serialize;

constexpr const char* kBootstrap = "bootstrap";
constexpr const char* kSwitch = "key_switch";
constexpr const char* kPacking = "packing";
constexpr const char* kListsKey = "lists";

std::string half_name(const std::string& key) { return key + "/b"; }
std::string packed_name(const std::string& key) { return key + "/packed"; }
std::string seed_name(const std::string& key) { return key + "/seed"; }

/// Residues of polynomials: [..., primes, N], each in the bits of the largest prime; the N of a
/// polynomial, a power of two from 8, fill whole bytes.
struct Residues {
  std::string key;
  std::vector<u64> shape;
  std::vector<u64> primes;

  u32 bits() const { return residue_bits(primes); }
  u32 log_n() const { return static_cast<u32>(std::countr_zero(shape.back())); }
  u64 polys() const {
    return std::accumulate(shape.begin(), shape.end() - 1, u64(1), std::multiplies());
  }
  std::vector<u64> packed_shape() const {
    std::vector<u64> packed = shape;
    packed.back() = packed_bytes(shape.back(), bits());
    return packed;
  }
};

/// [steps, keys, digits, rows, slots, primes, N]
Residues bootstrap_residues(const device::TorusPlan& used) {
  const device::TorusPlan plan = made_plan(used);
  return {kBootstrap,
          {plan.steps(), plan.keys_per_step(), plan.digits, plan.polys(), plan.slots,
           plan.primes.size(), plan.ring_dim()},
          plan.primes};
}

/// [doublings, digits, primes, N]
Residues lists_residues(const Context::State& home) {
  const ListPlan lists = list_plan(home.plan);
  return {kListsKey,
          {home.plan.log_n, lists.digits(), lists.digits(), home.plan.ring_dim()},
          lists.primes};
}

std::vector<u64> switch_shape(const device::SwitchShape& shape) {
  return {shape.in_dim, shape.digits, shape.digit_rows(), shape.slots};
}

/// Tensors of one key.
struct KeyPart {
  std::size_t half = 0, seed = 0;
};

KeyPart declare(DocumentWriter& file, const std::string& key, const std::string& half, DType dtype,
                std::vector<u64> shape) {
  const std::size_t tensor = file.tensor(half, dtype, std::move(shape));
  return {tensor, file.tensor(seed_name(key), DType::u8, {sizeof(random::Seed)})};
}

KeyPart declare(DocumentWriter& file, const Residues& of) {
  return declare(file, of.key, packed_name(of.key), DType::u8, of.packed_shape());
}

void fill_seed(DocumentWriter& file, const KeyPart& part, const random::Seed& seed) {
  std::copy(seed.begin(), seed.end(), file.data(part.seed).begin());
}

struct KeySource {
  const Tensor* half = nullptr;
  const Tensor* seed = nullptr;
};

KeySource find(DocumentReader& file, const std::string& key, const std::string& half, DType dtype,
               const std::vector<u64>& shape) {
  return {&file.tensor(half, dtype, shape),
          &file.tensor(seed_name(key), DType::u8, {sizeof(random::Seed)})};
}

/// Packed; files of before have words of 32 bits.
KeySource find(DocumentReader& file, const Residues& of) {
  if (file.has_tensor(half_name(of.key)))
    return find(file, of.key, half_name(of.key), DType::u32, of.shape);
  return find(file, of.key, packed_name(of.key), DType::u8, of.packed_shape());
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
  const u64 i = first_unreduced(words, bits);
  if (i != words.size())
    reject("tensor " + quote(tensor.name), cat("word ", words[i]), cat("words below 2^", bits),
           tensor.begin + i * size_of(tensor.dtype));
}

/// The words, each below its prime.
std::vector<u32> read_residues(const Tensor& tensor, std::span<const u8> bytes,
                               const Residues& of) {
  const u32 bits = tensor.dtype == DType::u8 ? of.bits() : 32;
  const u64 n = of.shape.back(), poly_bytes = packed_bytes(n, bits);
  std::vector<u32> words(of.polys() * n);
  for (u64 poly = 0; poly < of.polys(); ++poly) {
    watch::point();
    unpack_bits(bytes.data() + poly * poly_bytes, bits, std::span(words).subspan(poly * n, n));
  }
  const u64 i = first_unreduced(words, of.primes, of.log_n());
  if (i != words.size())
    reject("tensor " + quote(tensor.name), cat("residue ", words[i]),
           cat("values below its prime ", of.primes[(i >> of.log_n()) % of.primes.size()]),
           tensor.begin + i * bits / 8);
  return words;
}

void write_residues(std::span<const u32> words, const Residues& of, std::span<u8> to) {
  const u64 n = of.shape.back(), poly_bytes = packed_bytes(n, of.bits());
  for (u64 poly = 0; poly < of.polys(); ++poly) {
    watch::point();
    pack_bits(words.subspan(poly * n, n), of.bits(), to.data() + poly * poly_bytes);
  }
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
  const Residues bodies = bootstrap_residues(plan);
  const KeyPart bootstrap = declare(file, bodies);
  const DType switch_type = word_type(to_rest.log_modulus), pack_type = word_type(pack.log_modulus);
  const KeyPart key_switch =
      declare(file, kSwitch, half_name(kSwitch), switch_type, switch_shape(to_rest));
  KeyPart packing;
  if (keys.has_packing())
    packing = declare(file, kPacking, half_name(kPacking), pack_type, switch_shape(pack));
  KeyPart lists;
  Residues list_bodies;
  if (keys.has_lists()) {
    list_bodies = lists_residues(context.state());
    lists = declare(file, list_bodies);
  }
  file.allocate();
  write_residues(data.bootstrap_bodies, bodies, file.data(bootstrap.half));
  fill_seed(file, bootstrap, data.bootstrap_seed);
  write_words(switch_bodies(keys), switch_type, file.data(key_switch.half));
  fill_seed(file, key_switch, data.switch_seed);
  if (keys.has_packing()) {
    write_words(packing_bodies(keys), pack_type, file.data(packing.half));
    fill_seed(file, packing, data.packing_seed);
  }
  if (keys.has_lists()) {
    write_residues(data.lists_bodies, list_bodies, file.data(lists.half));
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
  const Residues bootstrap_key = bootstrap_residues(plan);
  const KeySource bootstrap = find(file, bootstrap_key);
  const KeySource key_switch = find(file, kSwitch, half_name(kSwitch),
                                    word_type(to_rest.log_modulus), switch_shape(to_rest));
  KeySource packing;
  if (has_packing)
    packing =
        find(file, kPacking, half_name(kPacking), word_type(pack.log_modulus), switch_shape(pack));
  const Context::State& home = context.state();
  const KeyRequest request{has_packing, file.has_tensor(seed_name(kListsKey))};
  if (request.lists && list_plan(plan).primes.empty())
    reject("tensor " + quote(seed_name(kListsKey)), "a key of lists",
           "none, of sets without lists");
  KeySource lists;
  Residues list_key;
  if (request.lists) {
    list_key = lists_residues(home);
    lists = find(file, list_key);
  }
  file.require_memory(memory_of(home, request));
  // The bodies of the bootstrapping key are there once more until the keys are.
  expect_room_for_keys(home, request, bootstrap_body_words(home.plan) * sizeof(u32));
  file.finish();

  const auto bodies = [&](const KeySource& source, u32 bits) {
    std::vector<u64> words = read_words(*source.half, file.data(*source.half));
    check_words(*source.half, words, bits);
    return words;
  };
  const auto residues = read_residues(*bootstrap.half, file.data(*bootstrap.half), bootstrap_key);
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
    list_words = read_residues(*lists.half, file.data(*lists.half), list_key);
    parts.lists_seed = read_seed(file.data(*lists.seed));
    parts.lists_bodies = list_words;
  }
  return keys_from_parts(context, parts);
}

}  // namespace crenel::tfhe
