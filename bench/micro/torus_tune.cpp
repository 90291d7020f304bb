// Tuner of the blind rotation: every shape that serves a parameter set, at every packing asked for,
// timed on random keys (BOLT-FHE, figure 5 and tables 8 and 10).
//
//   torus_tune --set bool128-classic --slots 1,2,5 --json out.json
//
// A block takes the most rows that fit, with --all every count is tried,
// and the shapes for any size too. Outputs of all shapes must agree to the bit: the digest is
// printed. With --once the preferred shape runs once at every packing and batch, untimed, for a
// profiler (dev/kernels/counters.sh).
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>

#include "core/sha256.h"
#include "crenel/core/error.h"
#include "device/backend.h"
#include "device/torus/tuner.h"
#include "harness/recorder.h"
#include "harness/suites.h"
#include "tfhe/params/plan.h"

namespace {

using namespace crenel;
using namespace crenel::bench;

struct Options {
  std::string set = "bool128-classic", device = "auto", arithmetic, only, json;
  std::vector<u32> slots{1}, steps, batches{16384};
  bool all = false, quick = false, once = false;

  Budget budget() const {
    if (quick)
      return {.group_seconds = 0.004, .total_seconds = 0.04, .min_groups = 3, .max_groups = 9};
    return {.group_seconds = 0.01, .total_seconds = 0.6, .min_groups = 3, .max_groups = 9};
  }
};

std::optional<Options> parse(const Words& words) {
  Options o;
  Arguments arguments("Every shape of the blind rotation that serves a set, timed on random keys.");
  arguments.text("--device", o.device, "auto, cpu, cuda, cuda:<index> or ref")
      .text("--set", o.set, "a set of crenel params list; default bool128-classic")
      .numbers("--slots", o.slots, "packings, by commas; default 1")
      .numbers("--steps", o.steps, "bits a step, by commas, of sets with groups; default the set's")
      .numbers("--batch", o.batches, "messages, by commas; default 16384")
      .text("--arithmetic", o.arithmetic, "exact, approx or split; default the set's own")
      .text("--only", o.only, "only shapes whose names contain this")
      .flag("--all", o.all, "every count of rows a block, and the shapes for any size")
      .flag("--quick", o.quick, "fewer repetitions")
      .flag("--once", o.once, "the preferred shape once, for a profiler; nothing is timed")
      .json(o.json);
  if (!arguments.parse(words)) return std::nullopt;
  return o;
}

// Random inputs of one plan on the device.
struct Inputs {
  device::Buffer key, rows, lut, offset, out, switch_key;

  Inputs(device::Stream& stream, device::TorusKernels& kernels, u32 batch) {
    const auto& plan = kernels.plan();
    std::mt19937_64 rng(1);
    key = stream.allocate(kernels.bootstrap_key_bytes());
    // One step's random polynomials serve all steps: timing does not depend on the values.
    std::vector<i64> polys(plan.key_polys() << plan.log_n);
    const i64 modulus = static_cast<i64>(plan.key_modulus());
    for (i64& x : polys) x = static_cast<i64>(rng() % plan.key_modulus()) - modulus / 2;
    const device::Buffer raw = stream.allocate(polys.size() * sizeof(i64));
    stream.copy_in(raw.data(), polys.data(), polys.size() * sizeof(i64));
    for (u32 i = 0; i < plan.steps(); ++i)
      kernels.load_bootstrap_key(stream, key.data(), i, 1, raw.as<i64>());
    std::vector<u32> words(std::size_t(batch) * plan.read_words());
    for (u32& w : words) w = static_cast<u32>(rng() & (~u64(0) >> (64 - plan.log_read_modulus())));
    rows = upload(stream, words);
    std::vector<u64> v(plan.ring_dim());
    for (u64& x : v) x = rng() % plan.modulus;
    lut = upload(stream, v);
    offset = upload(stream, std::vector<u64>{plan.modulus / 8});
    out = stream.allocate(u64(batch) * plan.extracted_words() * sizeof(u64));
    stream.fill_zero(out.data(), out.bytes());
    if (plan.group != 0) {
      std::vector<u32> words(kernels.switch_shape().key_bytes() / sizeof(u32));
      for (u32& w : words)
        w = static_cast<u32>(rng() & (~u64(0) >> (64 - plan.log_switch_modulus)));
      switch_key = upload(stream, words);
    }
  }

  template <class T>
  static device::Buffer upload(device::Stream& stream, const std::vector<T>& values) {
    device::Buffer buffer = stream.allocate(values.size() * sizeof(T));
    stream.copy_in(buffer.data(), values.data(), values.size() * sizeof(T));
    return buffer;
  }
};

std::string digest(device::Stream& stream, const device::Buffer& out, std::size_t bytes) {
  std::vector<u8> host(bytes);
  stream.copy_out(host.data(), out.data(), bytes);
  return hex(sha256(host)).substr(0, 16);
}

// The kernels of one plan with inputs of one batch.
class Tuned {
 public:
  Tuned(const Options& o, device::Device& device, const tfhe::Params& params, u32 batch)
      : o_(o),
        params_(params),
        batch_(batch),
        kernels_(device::backend_of(device).make_torus_kernels(tfhe::plan_of(params))),
        stream_(device.make_stream()),
        inputs_(*stream_, *kernels_, batch) {}

  void shapes(Json::Array& results);
  /// Sets with groups, by the shape that the kernels choose: the key switch alone, then with the
  /// rotation, queued and recorded.
  void look_ups(Json::Array& results);

 private:
  const device::TorusPlan& plan() const { return kernels_->plan(); }
  Timing time(const std::function<void()>& call) const {
    return measure(call, [&] { stream_->synchronize(); }, o_.budget());
  }
  void rotate() {
    kernels_->blind_rotate(
        *stream_,
        {inputs_.out.data(), kernels_->extracted(batch_), kernels_->extracted_word_bytes()},
        {inputs_.rows.as<const u32>(), kernels_->read(batch_)}, inputs_.key.data(),
        {inputs_.lut.as<u64>(), inputs_.offset.as<u64>(), 1, nullptr});
  }
  void key_switch() {
    const auto shape = kernels_->switch_shape();
    kernels_->key_switch(*stream_, shape, {inputs_.rows.as<u32>(), shape.out(batch_)},
                         {inputs_.out.as<const u32>(), shape.in(batch_)},
                         shape.key<const void>(inputs_.switch_key.data()));
  }
  void state(Json::Array& results, const device::RotationShape& shape, u32 rows, const Timing& t,
             const std::string& sum) const;

  const Options& o_;
  const tfhe::Params& params_;
  const u32 batch_;
  std::unique_ptr<device::TorusKernels> kernels_;
  std::shared_ptr<device::Stream> stream_;
  Inputs inputs_;
};

void Tuned::state(Json::Array& results, const device::RotationShape& shape, u32 rows,
                  const Timing& t, const std::string& sum) const {
  const u32 slots = plan().slots;
  const double rate = o_.once ? 0.0 : double(batch_) * slots / t.median;
  std::printf(
      "%-10s r %-2u g %u batch %-5u %-22s rows %-3u IPT %-3u WPP %-5g threads %-4u regs %-3u "
      "local %-4llu shared %-6llu %10.0f /s  %9.3f ms  %s\n",
      o_.set.c_str(), slots, plan().group, batch_, shape.name.c_str(), rows, shape.items_per_thread,
      shape.warps_per_poly, shape.threads, shape.registers,
      static_cast<unsigned long long>(shape.local_bytes),
      static_cast<unsigned long long>(shape.shared_bytes), rate, t.median * 1e3, sum.c_str());
  std::fflush(stdout);
  results.push_back(Json::Object{{"set", o_.set},
                                 {"slots", slots},
                                 {"step", plan().group},
                                 {"arithmetic", tfhe::to_string(params_.arithmetic())},
                                 {"shape", shape.name},
                                 {"rows", rows},
                                 {"items_per_thread", shape.items_per_thread},
                                 {"warps_per_poly", shape.warps_per_poly},
                                 {"threads", shape.threads},
                                 {"registers", shape.registers},
                                 {"local_bytes", shape.local_bytes},
                                 {"batch", batch_},
                                 {"median_s", t.median},
                                 {"rotations_per_s", rate},
                                 {"digest", sum}});
}

void Tuned::shapes(Json::Array& results) {
  auto* const tuner = dynamic_cast<device::RotationTuner*>(kernels_.get());
  const auto shapes = tuner ? tuner->shapes() : std::vector<device::RotationShape>{};
  for (std::size_t i = 0; i < std::max<std::size_t>(1, shapes.size()); ++i) {
    const device::RotationShape shape = shapes.empty() ? device::RotationShape{} : shapes[i];
    if (shape.name.rfind("any", 0) == 0 && shapes.size() > 1 && !o_.all) continue;
    if (shape.name == "bundles-any" && shapes.size() > 1 && !o_.all) continue;
    if (shape.name.find(o_.only) == std::string::npos) continue;
    for (u32 rows = shape.rows; rows >= 1; --rows) {
      if (!shapes.empty()) try {
          tuner->use_shape(i, rows);
        } catch (const UnsupportedError&) {
          continue;
        }
      rotate();
      if (o_.once) {
        stream_->synchronize();
        return state(results, shape, rows, {}, "");
      }
      const std::string sum = digest(
          *stream_, inputs_.out,
          u64(std::min(batch_, 64u)) * plan().extracted_words() * kernels_->extracted_word_bytes());
      state(results, shape, rows, time([&] { rotate(); }), sum);
      if (!o_.all || plan().group != 0) break;
    }
  }
}

void Tuned::look_ups(Json::Array& results) {
  if (plan().group == 0) return;
  const auto look_up = [&] {
    key_switch();
    rotate();
  };
  const auto graph = stream_->capture(look_up);
  const double parts[] = {time([&] { key_switch(); }).median, time(look_up).median,
                          time([&] { graph->launch(*stream_); }).median};
  const double rate = double(batch_) * plan().slots / parts[1];  // of messages
  std::printf(
      "%-10s r %-2u g %u batch %-5u switch %.3f ms, look-up %.3f ms, recorded %.3f ms, %.0f /s\n",
      o_.set.c_str(), plan().slots, plan().group, batch_, parts[0] * 1e3, parts[1] * 1e3,
      parts[2] * 1e3, rate);
  results.push_back(Json::Object{{"set", o_.set},
                                 {"slots", plan().slots},
                                 {"step", plan().group},
                                 {"batch", batch_},
                                 {"switch_s", parts[0]},
                                 {"look_up_s", parts[1]},
                                 {"recorded_s", parts[2]},
                                 {"look_ups_per_s", rate}});
}

int run_tune(const Words& words) {
  const auto options = parse(words);
  if (!options) return 0;
  const Options& o = *options;
  const auto device = device::open(o.device);
  Recorder recorder(o.once ? "tfhe-once" : "tfhe-tune", words);
  Json::Array shapes, look_ups;
  for (const u32 slots : o.slots)
    for (const u32 step : o.steps.empty() ? std::vector<u32>{0} : o.steps) {
      auto params = tfhe::Params::preset(o.set, true).with_slots(tfhe::SlotCount(slots));
      if (!o.arithmetic.empty())
        params = params.with_arithmetic(tfhe::arithmetic_from_string(o.arithmetic));
      if (step != 0) params = params.with_step(step);
      for (const u32 batch : o.batches) {
        Tuned tuned(o, *device, params, std::max(1u, batch / slots));
        if (!o.once) tuned.look_ups(look_ups);
        tuned.shapes(shapes);
      }
    }
  recorder.note("shapes", std::move(shapes));
  if (!look_ups.empty()) recorder.note("look_ups", std::move(look_ups));
  return recorder.finish(o.json, *device);
}

}  // namespace

int main(int argc, char** argv) { return crenel::bench::run_program(argc, argv, run_tune); }
