// Latency and precision of bootstrapping through the public interface.
//
//   crenel_bench_boot --device cuda --params boot40 --runs 100 --json out.json
//
// --runs: fresh random messages whose errors make the statistics; --kinds: other
// kinds of messages as well, against the model; --once: eager bootstraps only, for profilers.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <utility>

#include "crenel/circuits/bootstrapping.h"
#include "crenel/core/error.h"
#include "harness/recorder.h"

namespace {

using namespace crenel;
using Values = std::vector<std::complex<double>>;

struct Arguments {
  std::string device = "auto", params = "boot40", json;
  circuits::BootstrapOptions options;
  u32 runs = 10;
  u32 batch = 1;
  bool kinds = false;
  bool once = false;
  bool quick = false;
};

[[noreturn]] void usage(const std::string& problem) {
  std::fprintf(
      stderr,
      "%s\ncrenel_bench_boot [--device NAME] [--params NAME] [--runs N] [--batch N] [--slots N]\n"
      "  [--ratio BITS] [--target LEVEL] [--minimal] [--stc-first] [--kinds] [--once] [--quick]\n"
      "  [--json FILE]\n",
      problem.c_str());
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--minimal") {
      a.options.keys = circuits::KeyMode::minimal;
    } else if (key == "--stc-first") {
      a.options.order = circuits::BootstrapOrder::slot_to_coeff_first;
    } else if (key == "--kinds") {
      a.kinds = true;
    } else if (key == "--once") {
      a.once = true;
    } else if (key == "--quick") {
      a.quick = true;
    } else {
      if (i + 1 == argc) usage(key);
      const std::string value = argv[++i];
      const auto number = [&] {
        return static_cast<u32>(std::strtoul(value.c_str(), nullptr, 10));
      };
      if (key == "--device")
        a.device = value;
      else if (key == "--params")
        a.params = value;
      else if (key == "--json")
        a.json = value;
      else if (key == "--runs")
        a.runs = number();
      else if (key == "--batch")
        a.batch = number();
      else if (key == "--slots")
        a.options.slots = number();
      else if (key == "--ratio")
        a.options.message_ratio = number();
      else if (key == "--target")
        a.options.target_level = number();
      else
        usage(key);
    }
  }
  return a;
}

Values uniform(std::mt19937_64& rng, u64 count) {
  std::uniform_real_distribution<double> u(-1.0, 1.0);
  Values v(count);
  for (auto& x : v) x = {u(rng), u(rng)};
  return v;
}

// Errors of every slot of many bootstraps.
struct Errors {
  double worst = 0.0, sum_of_maxima = 0.0, squares = 0.0;
  u64 slots = 0, runs = 0;

  double add(const Values& found, const Values& expected) {
    double largest = found.size() == expected.size() ? 0.0 : HUGE_VAL;
    for (std::size_t i = 0; i < found.size() && i < expected.size(); ++i) {
      const double e = std::abs(found[i] - expected[i]);
      if (!(e <= largest)) largest = std::isnan(e) ? HUGE_VAL : e;
      squares += e * e;
    }
    slots += found.size(), ++runs;
    worst = std::max(worst, largest), sum_of_maxima += largest;
    return largest;
  }
  double mean_max() const { return sum_of_maxima / static_cast<double>(runs); }
  double rms() const { return std::sqrt(squares / static_cast<double>(slots)); }
};

struct Kind {
  const char* name;
  circuits::Message message;
  std::function<Values(std::mt19937_64&, u64)> draw;
};

std::vector<Kind> kinds() {
  using K = circuits::MessageKind;
  const auto real = [](std::mt19937_64& rng, u64 n, double a, double b) {
    std::uniform_real_distribution<double> u(a, b);
    Values v(n);
    for (auto& x : v) x = u(rng);
    return v;
  };
  return {
      {"uniform_complex", {K::uniform_complex}, uniform},
      {"uniform_real", {K::uniform_real}, [=](auto& r, u64 n) { return real(r, n, -1.0, 1.0); }},
      {"uniform_unit", {K::uniform_unit}, [=](auto& r, u64 n) { return real(r, n, 0.0, 1.0); }},
      {"constant", {K::constant}, [](auto&, u64 n) { return Values(n, 1.0); }},
      {"one_hot",
       {K::one_hot},
       [](auto& r, u64 n) {
         Values v(n);
         v[r() % n] = 1.0;
         return v;
       }},
      {"period_16",
       {K::periodic},
       [=](auto& r, u64 n) {
         const Values few = real(r, 16, -1.0, 1.0);
         Values v(n);
         for (u64 i = 0; i < n; ++i) v[i] = few[i % 16];
         return v;
       }},
      {"at_the_bound", {K::bound}, [](auto& r, u64 n) {
         Values v(n);
         for (auto& x : v) x = r() & 1 ? 1.0 : -1.0;
         return v;
       }}};
}

// Seconds since the last call.
double lap() {
  static auto last = std::chrono::steady_clock::now();
  const auto now = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(now - std::exchange(last, now)).count();
}

int run(int argc, char** argv) {
  const Arguments a = parse(argc, argv);
  bench::Recorder recorder("boot", argc, argv);
  lap();
  const auto params = ckks::Params::preset(a.params, true);
  const ckks::Context context(params, a.device);
  const double context_s = lap();
  auto client = context.keygen();
  const auto keys = client.evaluation_keys(circuits::bootstrap_key_request(params, a.options));
  auto& stream = context.stream();
  stream.synchronize();
  const double keys_s = lap();
  circuits::Bootstrapper boot(context, keys, a.options);
  stream.synchronize();
  const double setup_s = lap();
  stream.reset_peak();
  const u64 before = stream.bytes_in_use();
  const auto report = boot.describe();
  std::printf("%s on %s\n%s\n", a.params.c_str(), context.device().info().description.c_str(),
              report.text().c_str());

  std::mt19937_64 rng(2026);
  const u64 slots = boot.options().slots;
  const auto encrypt = [&](const Values& z) {
    return client.encrypt(z, boot.levels().input, 0.0, slots, a.batch);
  };
  const Values z = uniform(rng, slots * a.batch);
  const auto input = encrypt(z);
  if (a.once) {
    for (int i = 0; i < 2; ++i) boot.eager(input);
    stream.synchronize();
    return 0;
  }
  const double bound = 8.0 * report.expected_error;
  const auto check = [&](const ckks::Ciphertext& out, const Values& expected) {
    Errors e;
    return e.add(client.decrypt(out), expected);
  };
  bench::Budget budget;
  if (a.quick) budget = {0.0, 0.5, 0.1, 3, 10};
  const auto axes = [&](bool graph) {
    return bench::Json::Object{
        {"params", a.params},
        {"params_id", params.id()},
        {"log_n", params.log_n()},
        {"log_pq", params.log_pq()},
        {"slots", slots},
        {"message_ratio", boot.options().message_ratio},
        {"keys", a.options.keys == circuits::KeyMode::minimal ? "minimal" : "hoisted"},
        {"input_level", report.levels.input},
        {"output_level", report.levels.output},
        {"graph", graph}};
  };
  const bool graphs = context.device().info().kind == device::Kind::cuda;
  u64 peak = 0;
  for (bool graph : graphs ? std::vector<bool>{false, true} : std::vector<bool>{false}) {
    const auto call = [&] { return graph ? boot(input) : boot.eager(input); };
    bench::Result r{"bootstrap", axes(graph), {}, a.batch, 0.0, bound, 0.0};
    r.error = check(call(), z);
    r.timing = bench::measure([&] { call(); }, [&] { stream.synchronize(); }, budget);
    recorder.add(r);
    peak = std::max<u64>(peak, stream.peak_bytes() - before);
  }
  if (a.kinds) {
    bench::Json::Object measured;
    for (const Kind& kind : kinds()) {
      Errors e;
      const double expected = boot.expected_error(kind.message);
      for (u32 i = 0; i < 5; ++i) {
        const Values fresh = kind.draw(rng, slots * a.batch);
        e.add(client.decrypt(boot(encrypt(fresh))), fresh);
      }
      measured.emplace_back(kind.name,
                            bench::Json::Object{{"mean_max_error_log2", std::log2(e.mean_max())},
                                                {"worst_error_log2", std::log2(e.worst)},
                                                {"expected_max_log2", std::log2(expected)},
                                                {"runs", e.runs}});
    }
    recorder.note("precision_by_message", std::move(measured));
  }
  Errors errors;
  u32 failures = 0;
  for (u32 i = 0; i < a.runs; ++i) {
    const Values fresh = uniform(rng, slots * a.batch);
    const double e = errors.add(client.decrypt(boot(encrypt(fresh))), fresh);
    if (e <= bound) continue;
    ++failures;
    std::fprintf(stderr, "run %u: error 2^%.2f\n", i, std::log2(e));
  }
  recorder.note("precision",
                bench::Json::Object{{"runs", errors.runs},
                                    {"mean_max_error_log2", std::log2(errors.mean_max())},
                                    {"worst_error_log2", std::log2(errors.worst)},
                                    {"rms_error_log2", std::log2(errors.rms())},
                                    {"expected_max_log2", std::log2(report.expected_error)},
                                    {"expected_rms_log2", std::log2(report.expected_rms)},
                                    {"log2_failure_probability", report.log2_failure},
                                    {"failures", failures}});
  recorder.note("setup", bench::Json::Object{
                             {"context_s", context_s}, {"keys_s", keys_s}, {"setup_s", setup_s}});
  recorder.note("memory", bench::Json::Object{{"keys", report.key_count},
                                              {"key_bytes", report.key_bytes},
                                              {"plaintext_bytes", report.plaintext_bytes},
                                              {"workspace_bytes_stated", report.workspace_bytes},
                                              {"workspace_bytes_peak", peak},
                                              {"pool_bytes_peak", stream.peak_bytes()}});
  const int code = recorder.finish(a.json, context.device());
  return failures ? 1 : code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const crenel::Error& e) {
    std::fprintf(stderr, "%s: %s\n", e.code().c_str(), e.what());
    return 1;
  }
}
