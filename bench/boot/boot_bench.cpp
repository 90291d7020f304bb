// Latency and precision of bootstrapping through the public interface.
//
//   crenel_bench_boot --device cuda --params boot40 --runs 100 --json out.json
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "boot/tenants.h"
#include "crenel/ckks/copies.h"
#include "crenel/ckks/serialize.h"
#include "crenel/core/error.h"
#include "crenel/device/link.h"
#include "harness/digest.h"
#include "harness/suites.h"

namespace crenel::bench {
namespace {

/// One row of results: a call, and what its output decrypts to.
struct Row {
  Json::Object axes;
  std::function<ckks::Ciphertext()> call;
  const Values& expected;
  /// Where it runs, when that is not the world's context.
  const ckks::Context* context = nullptr;
};

/// Times rows; those of equal inputs must have equal bits.
class Rows {
 public:
  Rows(BootWorld& world, Recorder& recorder) : w_(world), recorder_(recorder) {
    if (w_.options.quick) budget_ = {0.0, 0.5, 0.1, 3, 10};
  }

  void time(const Row& row) {
    w_.stream().reset_peak();
    Result r{"bootstrap", w_.axes(), {}, w_.options.batch, 0.0, w_.bound(), 0.0};
    r.axes.insert(r.axes.end(), row.axes.begin(), row.axes.end());
    check(row, r);
    const ckks::Context& context = row.context != nullptr ? *row.context : w_.context;
    r.timing = measure([&] { row.call(); }, [&] { context.synchronize(); }, budget_);
    const double gained = w_.report.levels.output - w_.report.levels.input;
    const double work = gained * static_cast<double>(w_.slots() * w_.options.batch);
    r.axes.emplace_back("slot_level_ns", 1e9 * r.timing.median / work);
    peak_ = std::max<u64>(peak_, w_.stream().peak_bytes());
    recorder_.add(r);
  }
  u64 peak_bytes() const { return peak_; }

 private:
  // Error, size and digest of one output, which is gone before the timing starts.
  void check(const Row& row, Result& r) {
    Errors errors;
    ckks::Ciphertext output = row.call();
    if (row.context != nullptr) output = ckks::copy_to(w_.context, output);
    r.error = errors.add(w_.client.decrypt(output), row.expected);
    r.bytes = static_cast<double>(output.bytes());
    const std::string bits = digest(ckks::to_bytes(w_.context, output));
    r.axes.emplace_back("rms_log2", std::log2(errors.rms()));
    r.axes.emplace_back("digest", bits);
    if (digest_.empty()) digest_ = bits;
    if (bits == digest_) return;
    std::fprintf(stderr, "other bits than the first row's: %s\n", bits.c_str());
    r.error = HUGE_VAL;
  }

  BootWorld& w_;
  Recorder& recorder_;
  Budget budget_;
  std::string digest_;
  u64 peak_ = 0;
};

void measure_kinds(BootWorld& w, Recorder& recorder, std::mt19937_64& rng) {
  Json::Object measured;
  for (const Kind& kind : kinds()) {
    Errors e;
    for (u32 i = 0; i < w.options.runs; ++i) {
      const Values fresh = kind.draw(rng, w.slots() * w.options.batch);
      e.add(w.client.decrypt(w.boot(w.encrypt(fresh))), fresh);
    }
    const double expected = w.boot.expected_error(kind.message);
    measured.emplace_back(kind.name, Json::Object{{"mean_max_error_log2", std::log2(e.mean_max())},
                                                  {"worst_error_log2", std::log2(e.worst())},
                                                  {"expected_max_log2", std::log2(expected)},
                                                  {"runs", e.runs()}});
  }
  recorder.note("precision_by_message", std::move(measured));
}

/// Errors of fresh uniform messages; returns how many bootstraps were wrong.
u32 measure_precision(BootWorld& w, Recorder& recorder, std::mt19937_64& rng) {
  Errors errors;
  u32 failures = 0;
  for (u32 i = 0; i < w.options.runs; ++i) {
    const Values fresh = w.draw(rng);
    const double e = errors.add(w.client.decrypt(w.boot(w.encrypt(fresh))), fresh);
    if (e <= w.bound()) continue;
    ++failures;
    std::fprintf(stderr, "run %u: error 2^%.2f\n", i, std::log2(e));
  }
  if (w.options.runs)
    recorder.note("precision",
                  Json::Object{{"runs", errors.runs()},
                               {"mean_max_error_log2", std::log2(errors.mean_max())},
                               {"worst_error_log2", std::log2(errors.worst())},
                               {"rms_error_log2", std::log2(errors.rms())},
                               {"expected_max_log2", std::log2(w.report.expected_error)},
                               {"expected_rms_log2", std::log2(w.report.expected_rms)},
                               {"log2_failure_probability", w.report.log2_failure},
                               {"failures", failures}});
  return failures;
}

/// `driver_bytes`: of everything on the device, while what bootstraps need is there and no more.
void note_costs(const BootWorld& w, Recorder& recorder, u64 peak, u64 driver_bytes) {
  recorder.note("setup", Json::Object{{"context_s", w.context_seconds},
                                      {"keys_s", w.keys_seconds},
                                      {"setup_s", w.plaintexts_seconds}});
  recorder.note("memory", Json::Object{{"keys", w.report.key_count},
                                       {"key_bytes", w.report.key_bytes},
                                       {"plaintext_bytes", w.report.plaintext_bytes},
                                       {"workspace_bytes_stated", w.report.workspace_bytes},
                                       {"workspace_bytes_peak", peak - w.bytes_at_rest},
                                       {"driver_bytes", driver_bytes},
                                       {"by_part", w.memory.parts()}});
}

/// Eager, then replayed, of one input; the bytes that the rows took at most.
u64 time_both(const BootWorld& w, Rows& rows, const Values& z, const ckks::Ciphertext& input) {
  rows.time({{{"graph", false}}, [&] { return w.boot.eager(input); }, z});
  // Elsewhere a graph is the callable itself: no row of its own.
  if (w.has_graphs()) rows.time({{{"graph", true}}, [&] { return w.boot(input); }, z});
  return rows.peak_bytes();
}

/// The same bootstrap on another device, by copies of the keys: the bits must be those of the
/// first.
void time_beside(const BootWorld& w, Rows& rows, Recorder& recorder, const Values& z,
                 const ckks::Ciphertext& input) {
  const auto device = w.options.device.open_as(w.options.beside);
  if (!device->parts().empty()) device::exchange_by(*device, w.options.exchange);
  PartMemory memory(device);
  const ckks::Context there(w.params, device);
  const auto step = [&](const char* name) {
    there.synchronize();
    memory.step(name);
  };
  step("context");
  const ckks::EvaluationKeys keys = ckks::copy_to(there, w.keys);
  step("keys");
  const circuits::Bootstrapper boot(there, keys, w.options.options);
  step("plaintexts");
  const ckks::Ciphertext copy = ckks::copy_to(there, input);
  const auto time = [&](bool graph) {
    rows.time({{{"device", w.options.beside},
                {"graph", graph},
                {"exchange", name_of(w.options.exchange)}},
               [&] { return graph ? boot(copy) : boot.eager(copy); },
               z,
               &there});
  };
  time(false);
  if (device->has_graphs()) time(true);
  step("bootstraps");
  recorder.note("beside", Json::Object{{"device", w.options.beside},
                                       {"description", device->info().description},
                                       {"memory_by_part", memory.parts()}});
}

/// Before keys are made: that somebody can count what was asked for.
void expect_meter(const BootOptions& options, const EnergyMeter* meter) {
  if (options.energy == 0) return;
  if (meter == nullptr)
    throw UnsupportedError("--energy needs who counts it: crenel bench boot of the Python package",
                           {{"option", "--energy"}});
  meter->check(options.device.open());
}

/// Of bootstraps of one input, one queued behind the other.
void measure_energy(const BootWorld& w, Recorder& recorder, const EnergyMeter& meter,
                    const ckks::Ciphertext& input) {
  const u64 steps = u64(w.options.energy) * w.options.batch;
  recorder.note("energy", meter.measure(w.context.shared_device(), steps, [&] {
    for (u32 i = 0; i < w.options.energy; ++i) w.boot(input);
    w.stream().synchronize();
  }));
}

/// Bootstraps of few slots and of real messages, each with a bootstrapper and keys of its own.
int run_sizes(BootOptions options, const Words& words) {
  Recorder recorder("boot", words);
  std::mt19937_64 rng(2026);
  std::shared_ptr<device::Device> last;
  for (const u32 slots : options.sizes)
    for (const auto message :
         {circuits::BootstrapMessage::complex, circuits::BootstrapMessage::real}) {
      options.options.slots = slots, options.options.message = message;
      BootWorld w(options);
      std::printf("%u slots, %s\n", slots, w.real() ? "real" : "complex");
      const Values z = w.draw(rng);
      const ckks::Ciphertext input = w.encrypt(z);
      Rows rows(w, recorder);
      time_both(w, rows, z, input);
      last = w.context.shared_device();
    }
  return recorder.finish(options.json, *last);
}

/// What each part of the device, and of the one beside it, holds: no values, so that models of GPUs
/// can do it, too.
int run_memory(BootOptions options, const Words& words) {
  Recorder recorder("boot_memory", words);
  Json::Array devices;
  std::shared_ptr<device::Device> first;
  for (const std::string& name : {options.device.name, options.beside}) {
    if (name.empty()) continue;
    options.device.name = name;
    BootWorld w(options);
    const ckks::Ciphertext input = w.encrypt(Values(w.slots() * options.batch, 0.5));
    w.boot.eager(input);
    if (w.has_graphs()) w.boot(input);
    w.stream().synchronize();
    w.memory.step("bootstraps");
    const auto device = w.context.shared_device();
    devices.push_back(Json::Object{{"device", device->info().name},
                                   {"description", device->info().description},
                                   {"parts", w.memory.parts()}});
    if (!first) first = device;
  }
  recorder.note("params", options.params);
  recorder.note("devices", std::move(devices));
  return recorder.finish(options.json, *first);
}

int errors_alone(BootWorld& w, Recorder& recorder, std::mt19937_64& rng) {
  if (w.options.kinds) measure_kinds(w, recorder, rng);
  const u32 failures = measure_precision(w, recorder, rng);
  const int code = recorder.finish(w.options.json, w.context.device());
  return failures ? 1 : code;
}

}  // namespace

int run_boot(const Words& words) { return run_boot(words, nullptr); }

int run_boot(const Words& words, const EnergyMeter* meter) {
  const auto options = parse_boot_options(words);
  if (!options) return 0;
  if (options->memory) return run_memory(*options, words);
  expect_meter(*options, meter);
  if (!options->sizes.empty()) return run_sizes(*options, words);
  BootWorld w(*options);
  std::printf(
      "%s on %s%s\n%s\n", options->params.c_str(), w.context.device().info().description.c_str(),
      w.params.insecure() ? "; INSECURE parameters, for tests only" : "", w.report.text().c_str());
  std::mt19937_64 rng(2026);
  const Values z = w.draw(rng);
  const ckks::Ciphertext input = w.encrypt(z);
  if (options->once) {
    for (int i = 0; i < 2; ++i) w.boot.eager(input);
    w.stream().synchronize();
    return 0;
  }
  Recorder recorder("boot", words);
  recorder.note("configuration", w.axes());
  if (!options->latency) return errors_alone(w, recorder, rng);
  Rows rows(w, recorder);
  const u64 peak = time_both(w, rows, z, input);
  const u64 driver_bytes = w.context.device().memory().used;
  w.memory.step("bootstraps");
  if (options->energy != 0) measure_energy(w, recorder, *meter, input);
  if (!options->beside.empty()) time_beside(w, rows, recorder, z, input);
  if (options->tenants != 0) measure_tenants(w, recorder, rng);
  if (!options->resident.empty()) measure_staged(w, recorder, rng);
  if (options->kinds) measure_kinds(w, recorder, rng);
  const u32 failures = measure_precision(w, recorder, rng);
  note_costs(w, recorder, peak, driver_bytes);
  const int code = recorder.finish(options->json, w.context.device());
  return failures ? 1 : code;
}

}  // namespace crenel::bench
