// The private halves of the public objects; for tfhe/ and serialize/ only.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "crenel/tfhe/context.h"
#include "device/backend.h"
#include "random/secret_key_id.h"
#include "tfhe/device_cache.h"
#include "tfhe/noise.h"
#include "tfhe/secret_keys.h"

namespace crenel::tfhe {

/// Rows of n + r words u32 modulo 2^log_modulus (device/torus/kernels.h), r messages a row; slots
/// behind the last message hold what the operation made of zeros.
struct CiphertextShape {
  std::string params_id;
  u64 size = 0;              ///< messages, at least 1
  u32 slots = 1;             ///< [r]
  u32 words = 0;             ///< n + r
  u32 plain_modulus = 0;     ///< [p], even
  u32 log_modulus = 0;       ///< log2 [q], larger for large p (encoding.h)
  SecretKeyId secret_key{};  ///< none where the masks are zero
  Noise noise = {};          ///< of `size` messages
  u32 bound = 0;             ///< messages are below it; 0: not known

  u64 rows() const { return (size + slots - 1) / slots; }
  u64 bytes() const { return rows() * words * sizeof(u32); }
};

struct Ciphertext::Data : CiphertextShape {
  explicit Data(CiphertextShape shape) : CiphertextShape(std::move(shape)) {}

  device::Buffer payload;  ///< [rows][words]
  /// Set while the masks are what this seed expands to, row y under serial y.
  std::optional<random::Seed> seed;

  device::LweView view() const {
    return {payload.as<u32>(), {rows(), words - slots, slots, log_modulus}};
  }
  /// The same shape without payload and seed.
  std::unique_ptr<Data> like() const {
    return std::make_unique<Data>(static_cast<const CiphertextShape&>(*this));
  }
};

struct ListRing;
namespace radix {
class CircuitCache;
}

struct Context::State {
  State(Params params, std::shared_ptr<device::Device> device);

  Params params;
  device::TorusPlan plan;
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Stream> stream;  ///< of all contexts of the device
  std::unique_ptr<device::TorusKernels> torus;
  std::unique_ptr<device::PolyKernels> poly;  ///< modulo the plan's primes: key generation

  // What was brought to the device, for all evaluators.
  /// Test polynomials of gates, floor and sign. As few as parameters have gates and moduli, and
  /// never dropped: graphs read them.
  mutable DeviceCache functions;
  /// Test polynomials of users' tables.
  mutable DeviceCache tables{u64(64) << 20, 1024};
  /// Which table each message takes: a call of a division each, of which there are hundreds.
  mutable DeviceCache indices{u64(32) << 20, 4096};
  /// Circuits of integers, on the host.
  std::shared_ptr<radix::CircuitCache> circuits;

  /// The kernels of this plan for ciphertexts modulo 2^log_modulus with `slots` messages a row:
  /// blind rotation by the same keys (slots as in the plan), or conversions of rows of another
  /// width. Made on first use, as long-lived as the context.
  device::TorusKernels& variant(u32 log_modulus, u32 slots) const;
  /// The kernels of this plan, which has groups, for rotations by another step, a divisor of the
  /// keys' group. Made on first use likewise.
  device::TorusKernels& stepped(u32 step) const;
  /// The ring of lists, made on first use likewise. UnsupportedError for sets without.
  const ListRing& lists() const;

 private:
  mutable ForkMutex mutex_;
  mutable std::map<std::pair<u32, u32>, std::unique_ptr<device::TorusKernels>> variants_;
  mutable std::map<u32, std::unique_ptr<device::TorusKernels>> stepped_;
  mutable std::shared_ptr<const ListRing> lists_;
};

/// Bootstrapping keys for steps beside that of a context, made on request and kept: each once,
/// whoever asks. May be called from several threads.
class StepKeys {
 public:
  using Key = std::shared_ptr<const device::Buffer>;

  /// make(step), for each of them that is not here. `expect(missing)` is asked before.
  template <class Expect, class Make>
  std::vector<Key> get(std::span<const u32> steps, Expect expect, Make make) {
    const auto lock = watch::lock(making_);
    const std::vector<u32> here = this->steps();
    std::vector<u32> missing;
    for (const u32 step : steps)
      if (std::find(here.begin(), here.end(), step) == here.end()) missing.push_back(step);
    expect(std::span<const u32>(missing));
    for (const u32 step : missing) {
      Key key = make(step);
      const std::lock_guard kept(mutex_);
      keys_.emplace(step, std::move(key));
    }
    const std::lock_guard kept(mutex_);
    std::vector<Key> found;
    for (const u32 step : steps) found.push_back(keys_.at(step));
    return found;
  }
  u64 bytes() const {
    const std::lock_guard kept(mutex_);
    u64 sum = 0;
    for (const auto& [step, key] : keys_) sum += key->bytes();
    return sum;
  }
  std::vector<u32> steps() const {
    const std::lock_guard kept(mutex_);
    std::vector<u32> found;
    for (const auto& [step, key] : keys_) found.push_back(step);
    return found;
  }

 private:
  /// Held while keys are made, which calls whoever watches; of the map there is a lock of its own,
  /// so that bytes() and steps() never wait for that.
  ForkMutex making_;
  mutable ForkMutex mutex_;
  std::map<u32, Key> keys_;
};

/// Keys in the backend's order, and what their wire form needs: seeds and bodies.
struct EvaluationKeys::Data {
  std::string params_id;
  SecretKeyId secret_key;
  std::shared_ptr<const Context::State> home;  ///< where the keys live
  device::Buffer bootstrap;                    ///< TorusKernels::load_bootstrap_key
  device::Buffer key_switch;                   ///< rows of TorusKernels::switch_shape()
  device::Buffer packing;                      ///< rows of packing_shape(), or empty
  device::Buffer lists;  ///< [doubling][digit][2][prime][N], evaluation form (lists.h), or empty
  random::Seed bootstrap_seed{}, switch_seed{}, packing_seed{}, lists_seed{};
  /// Host memory, [step][key][digit][row][slot][prime][N] canonical residues, coefficient form;
  /// steps are those that keys are made by (made_plan).
  std::vector<u32> bootstrap_bodies;
  std::vector<u32> lists_bodies;  ///< [doubling][digit][prime][N] residues, coefficient form
  std::unique_ptr<StepKeys> others = std::make_unique<StepKeys>();
};

struct PreparedLut::Data {
  std::string params_id;
  u32 plain_modulus = 0, out_modulus = 0;
  u64 size = 0;  ///< entries of the index, 0 without
  /// log2 of the modulus that phases are read by: one more than q's for tables without symmetry.
  u32 log_modulus = 0;
  DeviceCache::Array tables;  ///< test polynomials (test_polynomial.h)
  DeviceCache::Array index;   ///< [rows][slots], or null
  u32 bound = 0;              ///< one more than the largest entry
  DeviceCache::Array half;    ///< first brings phases into the lower half; null: not needed
};

struct Client::State {
  Context context;
  SecretKeys secret;
  SecretKeyId id = random::draw_secret_key_id();
};

/// The description of `size` messages modulo p of this context, without payload and noise and under
/// no secret key. Throws
/// ParameterError for no messages and for more rows than a call can take (2^32 - 1).
std::unique_ptr<Ciphertext::Data> empty_ciphertext(const Context::State& home, u64 size,
                                                   u32 plain_modulus, u32 log_modulus);

/// Throws StateError when an object ("ciphertext", ...) has other parameters than `context`, or
/// when expect_device does; both names are in the message and in the fields `found` and `expected`.
void expect_home(const std::string& params_id, const device::Buffer& payload,
                 const Context::State& context, const char* what);
/// Throws StateError when an object in `payload` cannot be used with work queued for `device`:
/// another device, or on CUDA another Device object, whose stream is another.
void expect_device(const device::Buffer& payload, const device::Device& device, const char* what);

}  // namespace crenel::tfhe
