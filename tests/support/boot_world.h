// Contexts with keys for bootstrapping, made once a process for each device and toy set, from the
// run's seed; and what a bootstrap is expected to return. Toy sets: NOT secure.
#pragma once

#include <array>
#include <optional>

#include "circuits/bootstrapping/plan.h"
#include "circuits/bootstrapping/precision.h"
#include "circuits/bootstrapping/report.h"
#include "crenel/circuits/bootstrapping.h"
#include "support/circuits.h"

namespace crenel::test {

/// A client whose secret and encryptions are a function of the seed.
inline ckks::Client seeded_client(const ckks::Context& context, u64 seed) {
  random::Seed bytes{};
  Rng rng(seed);
  for (auto& b : bytes) b = static_cast<u8>(rng());
  return ckks::Client(std::make_shared<ckks::Client::State>(ckks::Client::State{
      context, rlwe::SecretKey(context.state().ring, random::SecretSource(bytes),
                               context.params().spec().hamming_weight)}));
}

/// A message ratio of 5 bits, and what `set` makes of the options.
template <class F>
circuits::BootstrapOptions boot_options(F set) {
  circuits::BootstrapOptions options;
  options.message_ratio = 5;
  set(options);
  return options;
}

struct BootWorld {
  BootWorld(const char* params, const std::string& device, u64 seed)
      : context(ckks::Params::preset(params, true), device), client(seeded_client(context, seed)) {}

  const ckks::Params& params() const { return context.params(); }
  u64 slots() const { return params().slots(); }

  /// Keys for exactly these options.
  ckks::EvaluationKeys keys_for(const circuits::BootstrapOptions& options = {}) {
    return client.evaluation_keys(circuits::bootstrap_key_request(params(), options));
  }
  /// The keys of the default options, made once.
  const ckks::EvaluationKeys& keys() {
    if (!keys_) keys_ = keys_for();
    return *keys_;
  }
  /// With the message ratio 2^5 where none is named: what the tests' figures are of.
  circuits::Bootstrapper boot(circuits::BootstrapOptions options = {}) {
    if (!options.message_ratio) options.message_ratio = 5;
    return circuits::Bootstrapper(context, keys(), options);
  }
  /// At the level and scale that a bootstrap takes; values.size() / slots rows.
  ckks::Ciphertext encrypt(const circuits::Bootstrapper& boot, const Values& values) {
    const u64 slots = boot.options().slots;
    return client.encrypt(values, boot.levels().input, 0.0, slots,
                          static_cast<u32>(values.size() / slots));
  }

  ckks::Context context;
  ckks::Client client;

 private:
  std::optional<ckks::EvaluationKeys> keys_;
};

inline BootWorld& boot_world(const std::string& device, const char* params = "toy-boot40") {
  static auto* worlds = new std::map<std::string, std::unique_ptr<BootWorld>>();
  auto& slot = (*worlds)[device + "/" + params];
  if (!slot) slot = std::make_unique<BootWorld>(params, device, run_seed());
  return *slot;
}

inline constexpr std::array kMessageKinds{
    circuits::MessageKind::uniform_complex, circuits::MessageKind::uniform_real,
    circuits::MessageKind::uniform_unit,    circuits::MessageKind::constant,
    circuits::MessageKind::one_hot,         circuits::MessageKind::periodic};

inline const char* name_of(circuits::MessageKind kind) {
  constexpr const char* kNames[] = {"uniform complex", "uniform real", "[0, 1]", "constant",
                                    "one-hot",         "periodic",     "bound"};
  return kNames[static_cast<int>(kind)];
}

/// One draw of a kind with |parts| <= bound.
inline Values draw(const circuits::Message& message, Rng& rng, u64 slots) {
  using circuits::MessageKind;
  std::uniform_real_distribution<double> u(-message.bound, message.bound);
  Values z(slots);
  for (u64 i = 0; i < slots; ++i) switch (message.kind) {
      case MessageKind::uniform_complex:
        z[i] = {u(rng), u(rng)};
        break;
      case MessageKind::uniform_real:
        z[i] = u(rng);
        break;
      case MessageKind::uniform_unit:
        z[i] = std::abs(u(rng));
        break;
      case MessageKind::constant:
      case MessageKind::bound:
        z[i] = message.bound;
        break;
      case MessageKind::one_hot:
        break;
      case MessageKind::periodic:
        z[i] = i < message.period ? Complex(u(rng)) : z[i - message.period];
        break;
    }
  if (message.kind == MessageKind::one_hot) z[rng() % slots] = message.bound;
  return z;
}

/// What a bootstrap would return without noise: every coefficient (StC first: every real and
/// imaginary part) through the sine and the arcsine.
inline Values after_sine(const ckks::Context& context, const circuits::BootstrapPlan& plan,
                         const Values& z) {
  const auto& p = context.params();
  const double ratio = plan.q0 / (p.scale(0) * std::exp2(plan.scale_up));
  const auto f = [&](double c) {
    return c + ratio * circuits::modular_error(c / ratio, plan.options.arcsine_degree);
  };
  if (plan.options.order == circuits::BootstrapOrder::slot_to_coeff_first)
    return map_values(z, [&](Complex x) { return Complex(f(x.real()), f(x.imag())); });
  const auto& encoder = context.state().encoder;
  auto coefficients = encoder.to_coefficients(z);
  for (auto& c : coefficients) c = f(c);
  return encoder.to_slots(coefficients, z.size());
}

/// Everything in the model but the sine.
inline circuits::SlotError noise_of(const circuits::PrecisionEstimate& e) {
  double rms = 0.0, max = 0.0;
  for (const auto* part : {&e.fit, &e.raise, &e.cts, &e.eval_mod, &e.stc, &e.output}) {
    rms += part->rms * part->rms;
    max += part->max * part->max;
  }
  return {std::sqrt(rms), std::sqrt(max)};
}

inline double rms_error(const Values& found, const Values& expected) {
  double sum = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) sum += std::norm(found[i] - expected[i]);
  return std::sqrt(sum / static_cast<double>(found.size()));
}

}  // namespace crenel::test
