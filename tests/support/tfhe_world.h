// A TFHE context, a client and an evaluator with keys, made once a process for each device and set.
// Parameters here are toys unless the name says otherwise: NOT secure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>

#include "crenel/tfhe/evaluator.h"
#include "support/devices.h"
#include "support/random.h"
#include "tfhe/encoding.h"
#include "tfhe/objects.h"

namespace crenel::test {

using Messages = std::vector<u64>;

/// Of an encryption's error, on the integers of the ciphertext.
inline constexpr double kErrorStd = 3.2403703492039301;  // sqrt(10.5)

/// The evaluator refuses no failure probability: toys fail.
struct TfheWorld {
  TfheWorld(const tfhe::Params& params, const std::string& device, bool packing)
      : context(params, device),
        client(context.keygen()),
        keys(client.evaluation_keys({packing})),
        ev(context.evaluator(keys, {0.0})) {}

  const tfhe::Params& params() const { return context.params(); }

  tfhe::Context context;
  tfhe::Client client;
  tfhe::EvaluationKeys keys;
  tfhe::Evaluator ev;
};

/// Toys of every noise path. Unless said otherwise q = 2N = 1024, so that no phase is rounded and
/// fresh encryptions have ten standard deviations of room in gates of four inputs.
inline tfhe::Spec tfhe_toy_spec(const std::string& shape) {
  using namespace tfhe;
  Spec spec;
  spec.name = "test-" + shape;
  spec.lwe_dim = LweDim(8);
  spec.glwe_dim = GlweDim(1);
  spec.poly_size = PolySize(512);
  spec.log_lwe_modulus = 10;
  spec.security_bits = 1;
  spec.switch_base_log = DecompBaseLog(4);
  if (shape == "gadget" || shape == "func") {  // one prime
    spec.log_modulus = 27;
    spec.base_log = DecompBaseLog(7);
    spec.log_switch_modulus = 18;
  }
  if (shape == "func") {  // q = N: any function of 3 bits
    spec.log_lwe_modulus = 9;
    spec.plain_modulus = 8;
  }
  if (shape == "gadget2") {  // two primes
    spec.log_modulus = 50;
    spec.base_log = DecompBaseLog(17);
    spec.log_switch_modulus = 20;
  }
  if (shape == "large" || shape == "broad") {  // as G4: results modulo up to 2^30
    spec.log_modulus = 54;
    spec.base_log = DecompBaseLog(14);
    spec.log_switch_modulus = 35;
    spec.switch_base_log = DecompBaseLog(5);
    spec.lwe_dim = LweDim(6);
  }
  if (shape == "broad") {  // G4's one digit, whose noise leaves 16 bits
    spec.base_log = DecompBaseLog(27);
    spec.lwe_dim = LweDim(3);
  }
  if (shape == "raising" || shape == "sparse") {
    spec.path = NoisePath::raising;
    spec.glwe_dim = GlweDim(2);
    spec.log_modulus = 17;
    spec.log_raised_modulus = 39;
    spec.log_switch_modulus = 17;
  }
  if (shape == "many") {  // several chunks of a bootstrapping key; its noise leaves no message
    spec.path = NoisePath::raising;
    spec.lwe_dim = LweDim(500);
    spec.poly_size = PolySize(64);
    spec.log_lwe_modulus = 7;
    spec.log_modulus = 17;
    spec.log_raised_modulus = 39;
    spec.log_switch_modulus = 17;
  }
  if (shape == "sparse") spec.log_lwe_modulus = 9;  // q < 2N
  if (shape == "rounded" || shape == "padded") {    // q > 2N
    spec.path = NoisePath::raising;
    spec.log_modulus = 20;
    spec.log_raised_modulus = 46;
    spec.log_switch_modulus = 20;
    spec.log_lwe_modulus = shape == "padded" ? 12 : 20;
  }
  if (shape == "padded") {
    spec.plain_modulus = 16;
    spec.padded = true;
  }
  return spec;
}

/// "<preset or toy shape>[:r<slots>][:exact|:approx|:split][:binary][:norm<max_norm2>]", e.g.
/// "gadget:r3:approx:binary".
inline const tfhe::Params& tfhe_params(const std::string& name) {
  static auto* made = new std::map<std::string, tfhe::Params>();
  if (const auto it = made->find(name); it != made->end()) return it->second;
  std::stringstream text(name);
  std::string shape, option;
  std::getline(text, shape, ':');
  const auto presets = tfhe::Params::preset_names();
  const bool preset = std::find(presets.begin(), presets.end(), shape) != presets.end();
  tfhe::Spec spec = preset ? tfhe::Params::preset(shape, true).spec() : tfhe_toy_spec(shape);
  u32 slots = 1;
  while (std::getline(text, option, ':')) {
    if (option == "binary")
      spec.secret = tfhe::LweSecret::binary;
    else if (option.starts_with("norm"))
      spec.max_norm2 = std::stod(option.substr(4));
    else if (option[0] == 'r')
      slots = static_cast<u32>(std::stoul(option.substr(1)));
    else
      spec.arithmetic = tfhe::arithmetic_from_string(option);
  }
  auto params = tfhe::Params::from_spec(spec, true).with_slots(tfhe::SlotCount(slots));
  return made->emplace(name, std::move(params)).first->second;
}

/// Kept for the whole process; a failing construction is not cached.
inline TfheWorld& tfhe_world(const std::string& device, const std::string& name,
                             bool packing = false) {
  static auto* worlds = new std::map<std::string, std::unique_ptr<TfheWorld>>();
  auto& slot = (*worlds)[device + "/" + name + (packing ? "/packing" : "")];
  if (!slot) slot = std::make_unique<TfheWorld>(tfhe_params(name), device, packing);
  return *slot;
}

/// Base of the suites of TFHE: one instance a device.
class TfheTest : public DeviceTest {
 protected:
  TfheWorld& world(const std::string& name, bool packing = false) {
    return tfhe_world(GetParam(), name, packing);
  }
  /// ref is written for reading: fewer sets and repetitions there.
  bool exhaustive() const { return GetParam() != "ref"; }
};

inline Messages random_messages(Rng& rng, u64 count, u64 limit) {
  Messages m(count);
  for (auto& x : m) x = rng() % limit;
  return m;
}

/// Ciphertexts without a mask whose phases modulo 2^log_modulus are given: what a bootstrap makes
/// of them has no noise, which shows the function itself.
inline tfhe::Ciphertext at_phases(TfheWorld& w, const std::vector<u32>& phases, u32 plain_modulus,
                                  u32 log_modulus) {
  const auto& home = w.context.state();
  auto data = tfhe::empty_ciphertext(home, phases.size(), plain_modulus, log_modulus);
  std::vector<u32> rows(data->rows() * data->words);
  for (u64 i = 0; i < phases.size(); ++i)
    rows[i / data->slots * data->words + home.plan.rest_dim() + i % data->slots] = phases[i];
  data->payload = home.stream->allocate(data->bytes());
  home.stream->copy_in(data->payload.data(), rows.data(), data->bytes());
  return tfhe::Ciphertext(std::move(data));
}

/// The payload, on the host.
inline std::vector<u32> words_of(const tfhe::Ciphertext& c) {
  std::vector<u32> words(c.bytes() / sizeof(u32));
  c.data().payload.stream()->copy_out(words.data(), c.data().payload.data(), c.bytes());
  return words;
}

/// The same ciphertext in another context, seed and all.
inline tfhe::Ciphertext carried(const tfhe::Ciphertext& c, const tfhe::Context& to) {
  const auto words = words_of(c);
  auto data = c.data().like();
  data->params_id = to.params().id();
  data->seed = c.data().seed;
  data->payload = to.stream().allocate(c.bytes());
  to.stream().copy_in(data->payload.data(), words.data(), c.bytes());
  return tfhe::Ciphertext(std::move(data));
}

inline std::vector<u32> all_phases(u32 log_modulus) {
  std::vector<u32> phases(std::size_t(1) << log_modulus);
  for (u32 x = 0; x < phases.size(); ++x) phases[x] = x;
  return phases;
}

template <class F>
Messages map_messages(const Messages& a, F f) {
  Messages out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = f(a[i]);
  return out;
}

/// Random messages below 16 through a random table, under a fresh key.
struct LookedUp {
  tfhe::Client client;
  tfhe::Ciphertext result;
  Messages expected;
};
inline LookedUp looked_up(const tfhe::Params& params, const std::string& device, u64 count,
                          Rng& rng) {
  const tfhe::Context context(params, device);
  tfhe::Client client = context.keygen();
  const tfhe::Evaluator ev = context.evaluator(client.evaluation_keys(), {0.0});
  const Messages x = random_messages(rng, count, 16);
  const tfhe::Lut f{random_messages(rng, 16, 16), 0};
  tfhe::Ciphertext result = ev.lut(client.encrypt(x), f);
  return {std::move(client), std::move(result), map_messages(x, [&](u64 m) { return f.table[m]; })};
}

}  // namespace crenel::test
