// Tuner of the blind rotation: every shape that serves a parameter set, at every packing asked for,
// timed on random keys (BOLT-FHE, figure 5 and tables 8 and 10).
//
//   torus_tune --set bool128-classic --slots 1,2,5 --json out.json
//
// A block takes the most rows that fit, with --all every count is tried,
// and the shapes for any size too. Outputs of all shapes must agree to the bit: the digest is
// printed.
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
  std::string set = "bool128-classic", device = "auto", arithmetic, json;
  std::vector<u32> slots{1};
  u32 batch = 16384;
  bool all = false;
};

std::optional<Options> parse(const Words& words) {
  Options o;
  Arguments arguments("Every shape of the blind rotation that serves a set, timed on random keys.");
  arguments.text("--device", o.device, "auto, cpu, cuda, cuda:<index> or ref")
      .text("--set", o.set, "a set of crenel params list; default bool128-classic")
      .numbers("--slots", o.slots, "packings, by commas; default 1")
      .number("--batch", o.batch, "messages; default 16384", 1)
      .text("--arithmetic", o.arithmetic, "exact, approx or split; default the set's own")
      .flag("--all", o.all, "every count of rows a block, and the shapes for any size")
      .json(o.json);
  if (!arguments.parse(words)) return std::nullopt;
  return o;
}

// Random inputs of one plan on the device.
struct Inputs {
  device::Buffer key, rows, lut, offset, out;

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

void tune(const Options& o, device::Device& device, u32 slots, Json::Array& results) {
  auto params = tfhe::Params::preset(o.set, true).with_slots(tfhe::SlotCount(slots));
  if (!o.arithmetic.empty())
    params = params.with_arithmetic(tfhe::arithmetic_from_string(o.arithmetic));
  const auto plan = tfhe::plan_of(params);
  const auto kernels = device::backend_of(device).make_torus_kernels(plan);
  const auto stream = device.make_stream();
  const u32 batch = std::max(1u, o.batch / slots);
  Inputs inputs(*stream, *kernels, batch);
  auto* const tuner = dynamic_cast<device::RotationTuner*>(kernels.get());
  const auto shapes = tuner ? tuner->shapes() : std::vector<device::RotationShape>{};
  for (std::size_t i = 0; i < std::max<std::size_t>(1, shapes.size()); ++i) {
    const device::RotationShape shape = shapes.empty() ? device::RotationShape{} : shapes[i];
    if (shape.name.rfind("any", 0) == 0 && shapes.size() > 1 && !o.all) continue;
    for (u32 rows = shape.rows; rows >= 1; --rows) {
      if (!shapes.empty()) try {
          tuner->use_shape(i, rows);
        } catch (const UnsupportedError&) {
          continue;
        }
      const auto call = [&] {
        kernels->blind_rotate(
            *stream,
            {inputs.out.data(), kernels->extracted(batch), kernels->extracted_word_bytes()},
            {inputs.rows.as<const u32>(), kernels->read(batch)}, inputs.key.data(),
            {inputs.lut.as<u64>(), inputs.offset.as<u64>(), 1, nullptr});
      };
      call();
      const std::string sum = digest(
          *stream, inputs.out,
          u64(std::min(batch, 64u)) * plan.extracted_words() * kernels->extracted_word_bytes());
      const Timing t =
          measure(call, [&] { stream->synchronize(); },
                  {.group_seconds = 0.01, .total_seconds = 0.6, .min_groups = 3, .max_groups = 9});
      const double rate = double(batch) * slots / t.median;
      std::printf(
          "%-10s r %-2u %-22s rows %-3u IPT %-3u WPP %-5g threads %-4u regs %-3u local %-4llu "
          "shared %-6llu %10.0f /s  %9.3f ms  %s\n",
          o.set.c_str(), slots, shape.name.c_str(), rows, shape.items_per_thread,
          shape.warps_per_poly, shape.threads, shape.registers,
          static_cast<unsigned long long>(shape.local_bytes),
          static_cast<unsigned long long>(shape.shared_bytes), rate, t.median * 1e3, sum.c_str());
      std::fflush(stdout);
      results.push_back(Json::Object{{"set", o.set},
                                     {"slots", slots},
                                     {"arithmetic", tfhe::to_string(params.arithmetic())},
                                     {"shape", shape.name},
                                     {"rows", rows},
                                     {"items_per_thread", shape.items_per_thread},
                                     {"warps_per_poly", shape.warps_per_poly},
                                     {"threads", shape.threads},
                                     {"registers", shape.registers},
                                     {"local_bytes", shape.local_bytes},
                                     {"batch", batch},
                                     {"median_s", t.median},
                                     {"rotations_per_s", rate},
                                     {"digest", sum}});
      if (!o.all) break;
    }
  }
}

int run_tune(const Words& words) {
  const auto options = parse(words);
  if (!options) return 0;
  const Options& o = *options;
  const auto device = device::open(o.device);
  Recorder recorder("tfhe-tune", words);
  Json::Array results;
  for (const u32 slots : o.slots) tune(o, *device, slots, results);
  recorder.note("shapes", std::move(results));
  return recorder.finish(o.json, *device);
}

}  // namespace

int main(int argc, char** argv) { return crenel::bench::run_program(argc, argv, run_tune); }
