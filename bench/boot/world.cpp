#include "boot/world.h"

#include <chrono>

namespace crenel::bench {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ckks::Params checked(const BootOptions& o) {
  auto params = ckks::Params::preset(o.params, o.params.starts_with("toy-"));
  circuits::bootstrap_key_request(params, o.options);
  return params;
}

const char* first_of(circuits::BootstrapOrder order) {
  const bool slot_to_coeff = order == circuits::BootstrapOrder::slot_to_coeff_first;
  return slot_to_coeff ? "slot_to_coeff_first" : "coeff_to_slot_first";
}

}  // namespace

BootWorld::BootWorld(const BootOptions& o)
    : options(o),
      params(checked(o)),
      device_(o.device.open()),
      lap_(now()),
      memory(device_),
      context(params, device_),
      context_seconds(lap("context")),
      client(context.keygen()),
      keys(client.evaluation_keys(circuits::bootstrap_key_request(params, o.options))),
      keys_seconds(lap("keys")),
      boot(context, keys, o.options),
      plaintexts_seconds(lap("plaintexts")),
      bytes_at_rest(stream().bytes_in_use()),
      report(boot.describe()) {}

double BootWorld::lap(const std::string& step) {
  stream().synchronize();
  const double seconds = now() - lap_;
  memory.step(step);
  lap_ = now();
  return seconds;
}

Values BootWorld::draw(std::mt19937_64& rng) const {
  Values values = uniform(rng, slots() * options.batch);
  if (real())
    for (auto& v : values) v = v.real();
  return values;
}

ckks::Ciphertext BootWorld::encrypt(const Values& values) {
  return client.encrypt(values, boot.levels().input, 0.0, slots(), options.batch);
}

Json::Object BootWorld::axes() const {
  const u32 level = report.levels.input;
  return {{"params", options.params},
          {"params_id", params.id()},
          {"log_n", params.log_n()},
          {"scale_bits", params.spec().log_scale},
          {"log_pq", params.log_pq()},
          {"alpha", params.alpha()},
          {"security_bits", params.security_bits()},
          {"slots", slots()},
          {"message", real() ? "real" : "complex"},
          {"message_ratio", report.message_ratio},
          {"ratio_chosen", report.ratio_chosen},
          {"values", name_of(report.values)},
          {"order", first_of(boot.options().order)},
          {"keys", options.options.keys == circuits::KeyMode::minimal ? "minimal" : "hoisted"},
          {"aligned_keys", keys.aligned_relinearisation().has_value()},
          {"limbs", params.window_end(level) - params.window_begin(level)},
          {"input_level", level},
          {"output_level", report.levels.output}};
}

}  // namespace crenel::bench
