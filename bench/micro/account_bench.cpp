// One run of some operations with an account attached: what dev/kernels/ncu_account.sh compares
// with the hardware counters.
//
//   account_bench --operation each --json FILE
//
// The file holds the records of the operations, and how many kernels the program launches before
// them, for the profiler to skip.
#include <cstdio>
#include <functional>
#include <string>

#include "crenel/crenel.h"
#include "harness/suites.h"
#include "launches.h"

namespace {

using namespace crenel;

u64 kernels_in(const std::vector<device::LaunchRecord>& records) {
  u64 count = 0;
  for (const auto& r : records) count += r.work != device::Work::copy;
  return count;
}

struct Options {
  std::string device = "cuda", params = "boot40", operation = "each", json;
};

// A band of diagonals with nothing periodic in them.
circuits::DiagonalMatrix band(u64 slots, u64 width) {
  circuits::DiagonalMatrix matrix{slots, {}};
  for (u64 k = 0; k < width; ++k) {
    auto& diagonal = matrix.diagonals[k];
    for (u64 i = 0; i < slots; ++i) diagonal.push_back(1.0 / static_cast<double>(1 + (i + k) % 97));
  }
  return matrix;
}

// What comes before the launches that are looked at: keys, inputs, plaintexts.
std::function<void()> prepare(const ckks::Context& context, ckks::Client& client,
                              const std::string& operation) {
  const std::vector<double> values{0.5, -0.25};
  const auto input = [&](u32 level) {
    return std::make_shared<const ckks::Ciphertext>(client.encrypt(values, level));
  };
  if (operation == "bootstrap") {
    const auto keys = client.evaluation_keys(circuits::bootstrap_key_request(context.params()));
    const auto boot = std::make_shared<circuits::Bootstrapper>(context, keys);
    return [boot, a = input(boot->levels().input)] { boot->eager(*a); };
  }
  const u32 top = context.params().max_level();
  circuits::LinearTransformOptions options;
  options.level = top;
  const auto transform = std::make_shared<circuits::LinearTransform>(
      context, band(context.params().slots(), 16), options);
  ckks::KeyRequest request;
  request.rotations = transform->rotations();
  request.rotations.insert(request.rotations.end(), {1, 2});
  const auto ev = context.evaluator(client.evaluation_keys(request));
  const auto weights = std::make_shared<const ckks::Plaintext>(context.encode(values, top));
  const auto low = input(context.params().normal_top_level());
  return [=, a = input(top), b = input(top)] {
    device::Stream& stream = ev.stream();
    const auto in_stage = [&](const char* label, const auto& f) {
      const device::Stage stage(stream, label);
      f();
    };
    in_stage("hmult", [&] { ev.multiply(*a, *b); });
    in_stage("square", [&] { ev.square(*a); });
    in_stage("hrot", [&] { ev.rotate(*a, 1); });
    in_stage("rescale", [&] { ev.rescale(*a); });
    in_stage("hadd", [&] { ev.add(*a, *b); });
    in_stage("pmult", [&] { ev.multiply(*a, *weights); });
    in_stage("cmult", [&] { ev.multiply(*a, std::complex<double>(0.5, 0.25)); });
    in_stage("rotate_sum", [&] { ev.rotate_sum(*a, std::vector<i64>{0, 1, 2}); });
    in_stage("polynomial",
             [&] { ev.polynomial(*low, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}); });
    in_stage("transform", [&] { (*transform)(ev, *a); });
  };
}

void run(const Options& options, std::FILE* file) {
  const ckks::Params params = ckks::Params::preset(options.params, true);
  const ckks::Context context(params, options.device);
  device::Stream& stream = context.stream();
  const auto account = std::make_shared<device::Account>();
  stream.account(account);
  ckks::Client client = context.keygen();
  const auto work = prepare(context, client, options.operation);
  const u64 before = kernels_in(account->records());
  account->clear();
  work();
  stream.account(nullptr);
  stream.synchronize();
  const auto records = account->records();
  const bench::Json document = bench::Json::Object{{"kind", "crenel-account"},
                                                   {"format", 1},
                                                   {"version", version()},
                                                   {"params", options.params},
                                                   {"operation", options.operation},
                                                   {"device", context.device().info().description},
                                                   {"kernels_before", before},
                                                   {"kernels", kernels_in(records)},
                                                   {"records", bench::to_json(records)}};
  std::fprintf(file, "%s\n", document.dump().c_str());
}

int run_account(const bench::Words& words) {
  Options options;
  bench::Arguments arguments("One run of some operations with an account attached.");
  arguments.text("--device", options.device, "cuda (default), cuda:<index> or cuda:dry")
      .text("--params", options.params, "a set of crenel params list; default boot40")
      .text("--operation", options.operation, "each (default) or bootstrap")
      .json(options.json);
  if (!arguments.parse(words)) return 0;
  if (options.json.empty()) throw ParameterError("--json FILE is needed: nothing else is printed");
  std::FILE* file = std::fopen(options.json.c_str(), "w");
  if (file == nullptr)
    throw ParameterError(cat("--json: cannot write ", options.json), {{"json", options.json}});
  run(options, file);
  return std::fclose(file) == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return crenel::bench::run_program(argc, argv, run_account); }
