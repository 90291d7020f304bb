// How evaluation keys are made: from the secret keys, or from their parts as they travel.
#pragma once

#include <optional>

#include "device/room.h"
#include "tfhe/objects.h"

namespace crenel::tfhe {

/// Words u32 of EvaluationKeys::Data::bootstrap_bodies: steps keys digits (k + r) r primes N, of
/// the steps that keys are made by (made_plan).
u64 bootstrap_body_words(const device::TorusPlan& plan);
/// The switch that packs r ciphertexts at rest under slot 0's secret into one row, modulo the
/// smaller of Q_KS and 2^32 with a base of at most 2^3, which keeps its key within the size of the
/// other.
device::SwitchShape packing_shape(const device::TorusPlan& plan);
/// [g_j] of digit j modulo the key's modulus: 2^(base_log (j + 1)), or round(T / Q) for raising.
u64 gadget_weight(const device::TorusPlan& plan, u32 digit);

/// What evaluation keys take when they are there: on the device EvaluationKeys::bytes(), on the
/// host the bodies of the bootstrapping key.
device::Need key_memory(const Context::State& home, const KeyRequest& request);
/// OutOfMemoryError where key_memory(), and `host` bytes beside it, are not there.
void expect_room_for_keys(const Context::State& home, const KeyRequest& request, u64 host = 0);

EvaluationKeys make_evaluation_keys(const Context& context, SecretKeys& secret,
                                    const SecretKeyId& id, const KeyRequest& request);

/// The same keys for the steps of this context, whose set has groups: made anew from their bodies.
EvaluationKeys with_steps_of(const Context& context, const EvaluationKeys& keys);
/// StateError for keys made for groups of another size than this context's parameters expect.
void expect_key_group(const EvaluationKeys::Data& keys, const Context::State& home);
/// UnsupportedError where a set has no packing, or no lists, and they are asked for.
void expect_possible(const Context::State& home, const KeyRequest& request);
/// What there is beside the keys of the bootstrap.
KeyRequest request_of(const EvaluationKeys& keys);

/// What determines evaluation keys. Masks: mask polynomial t of row i of the bootstrapping key,
/// rows counted through [element][key][digit][row], is device::PolyKernels::sample_uniform of
/// (bootstrap_seed, {uniform, i k + t}), coefficient form, prime ids by position in the plan; masks
/// of row y of a key switch are TorusKernels::sample_lwe's of (seed, serial y). All host memory.
struct EvaluationKeyParts {
  SecretKeyId secret_key{};
  random::Seed bootstrap_seed{};
  std::span<const u32> bootstrap_bodies;  ///< EvaluationKeys::Data::bootstrap_bodies
  random::Seed switch_seed{};
  std::span<const u64> switch_bodies;  ///< [row][slot], modulo Q_KS
  std::optional<random::Seed> packing_seed;
  std::span<const u64> packing_bodies;  ///< [row][slot], modulo packing_shape().log_modulus
  std::optional<random::Seed> lists_seed;
  std::span<const u32> lists_bodies;  ///< EvaluationKeys::Data::lists_bodies
};

/// Throws SerializationError for counts that are wrong or words that are not reduced.
EvaluationKeys keys_from_parts(const Context& context, const EvaluationKeyParts& parts);
/// The bodies of a key switch's rows, [row][slot], copied from the device.
std::vector<u64> switch_bodies(const EvaluationKeys& keys);
std::vector<u64> packing_bodies(const EvaluationKeys& keys);

// ---- for keygen's own files

/// Makes the bootstrapping key into `data` (buffer, seed, bodies).
void make_bootstrap_key(const Context::State& home, SecretKeys& secret, EvaluationKeys::Data& data);
/// The key that data's seed and bodies state, in the order and by the steps of these kernels.
device::Buffer load_bootstrap_key(const Context::State& home, device::TorusKernels& torus,
                                  const EvaluationKeys::Data& data);

}  // namespace crenel::tfhe
