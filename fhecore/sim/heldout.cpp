// Held-out kernels and whole operations of the library, for the profiler and for the clock.
//
//   heldout --list FILE   as JSON what each case launches, in order (any device: cuda:dry will do)
//   heldout --profile     every case once between cudaProfilerStart and Stop, in the same order
//   heldout --time FILE   times of the operations: medians, on a stream and by graph replay
//   [--device NAME] [--set kernels|operations|all]
//
// The cases are shapes that no parameter was fitted to. Limbs 47 and 23: those of boot40 after and
// before bootstrapping (48 chain primes, 12 special ones, alpha 12).
#include <cuda_profiler_api.h>

#include <array>

#include "crenel/device/account.h"
#include "micro/world.h"

namespace {

using namespace crenel;
using namespace crenel::bench;

struct Case {
  std::string name;
  u32 log_n;
  bool operation;
  std::function<void()> run;
};

struct Suite {
  std::array<World, 4> worlds;  // rings 2^13 .. 2^16
  std::vector<Case> cases;
  std::vector<std::shared_ptr<void>> kept;
};

View coefficients(View v) {
  v.domain = Domain::coeff;
  return v;
}

void add_transforms(Suite& s, World& w, u32 log_n) {
  const LimbSet window = LimbSet::range(0, 24);
  const View in = w.make(2, window, Domain::eval), out = w.make(2, window, Domain::eval);
  const std::string suffix = "_" + std::to_string(log_n);
  s.cases.push_back({"ntt" + suffix, log_n, false,
                     [&w, in, out] { w.kernels->ntt(*w.stream, out, coefficients(in)); }});
  s.cases.push_back({"intt" + suffix, log_n, false,
                     [&w, in, out] { w.kernels->intt(*w.stream, coefficients(out), in); }});
}

void add_convert(Suite& s, World& w, u32 first, u32 sources, u32 destinations) {
  const LimbSet from = LimbSet::range(first, first + sources), to = LimbSet::range(0, destinations);
  const auto table = w.kernels->prepare(rns::make_base_conversion(w.moduli, from, to));
  const View in = w.make(2, from, Domain::coeff), out = w.make(2, to, Domain::coeff);
  s.cases.push_back({"convert_" + std::to_string(sources) + "_" + std::to_string(destinations), 16,
                     false,
                     [&w, in, out, table] { w.kernels->base_convert(*w.stream, out, in, table); }});
}

void add_elementwise(Suite& s, World& w, u32 limbs) {
  const LimbSet window = LimbSet::range(0, limbs);
  const View a = w.make(2, window, Domain::eval), b = w.make(2, window, Domain::eval);
  const View out = w.make(3, window, Domain::eval), out2 = out.components(0, 2);
  auto& k = *w.kernels;
  auto& q = *w.stream;
  const auto add = [&](const char* name, std::function<void()> f) {
    s.cases.push_back({std::string(name) + "_" + std::to_string(limbs), 16, false, std::move(f)});
  };
  add("add", [&k, &q, out2, a, b] { k.add(q, out2, a, b); });
  add("mul", [&k, &q, out2, a, b] { k.mul(q, out2, a, b); });
  add("tensor", [&k, &q, out, a, b] { k.tensor(q, out, a, b); });
  add("automorphism", [&k, &q, out2, a] { k.automorphism(q, out2, a, 5); });
  const LimbSet extended = window.concat(LimbSet::range(kChain, kChain + kSpecial));
  const u32 digits = (limbs + kAlpha - 1) / kAlpha;
  const View raised = w.make(digits, extended, Domain::eval),
             acc = w.make(2, extended, Domain::eval);
  const View key = w.make(2, LimbSet::range(0, kChain + kSpecial), Domain::eval, kChain / kAlpha);
  add("key_multiply", [&k, &q, acc, raised, key] { k.key_multiply(q, acc, raised, key, 0); });
}

// HEMult (without rescaling), Rotate and Rescale, as the evaluator composes them.
void add_operations(Suite& s, World& w, u32 limbs) {
  const LimbSet window = LimbSet::range(0, limbs),
                special = LimbSet::range(kChain, kChain + kSpecial);
  const LimbSet extended = window.concat(special), rescaled = LimbSet::range(0, limbs - 2);
  auto& k = *w.kernels;
  auto& q = *w.stream;
  const auto up = k.prepare(rns::make_mod_up(w.moduli, window, special, kAlpha));
  const auto down = k.prepare(rns::make_divide(w.moduli, extended, window));
  const auto rescale = k.prepare(rns::make_divide(w.moduli, window, rescaled));
  const View a = w.make(2, window, Domain::eval), b = w.make(2, window, Domain::eval);
  const View product = w.make(3, window, Domain::eval), out = w.make(2, window, Domain::eval);
  const View low = w.make(2, rescaled, Domain::eval), rotated = w.make(2, window, Domain::eval);
  const View key = w.make(2, LimbSet::range(0, kChain + kSpecial), Domain::eval, kChain / kAlpha);
  const View acc = w.make(2, extended, Domain::eval);
  const std::string suffix = "_" + std::to_string(limbs);
  s.cases.push_back({"hemult" + suffix, 16, true, [=, &k, &q] {
                       k.tensor(q, product, a, b);
                       k.key_switch_extended(q, acc, product.components(2, 1), up, key, 0);
                       const ring::PolyView<const u32> addend = product.components(0, 2);
                       k.divide(q, out, acc, down, &addend);
                     }});
  s.cases.push_back({"rotate" + suffix, 16, true, [=, &k, &q] {
                       k.key_switch_extended(q, acc, a.components(1, 1), up, key, 0);
                       const ring::PolyView<const u32> addend = a.components(0, 1);
                       k.divide(q, out, acc, down, &addend);
                       k.automorphism(q, rotated, out, 5);
                     }});
  s.cases.push_back({"rescale" + suffix, 16, true, [=, &k, &q] { k.divide(q, low, a, rescale); }});
}

void fill(Suite& s, const std::string& device, const std::string& set) {
  for (u32 i = set == "operations" ? 3 : 0; i < 4; ++i) {
    Options options;
    options.device = device, options.log_n = 13 + i;
    s.worlds[i] = make_world(options);
  }
  World& w = s.worlds[3];
  if (set != "operations") {
    for (u32 i = 0; i < 4; ++i) add_transforms(s, s.worlds[i], 13 + i);
    add_convert(s, w, kChain, 12, 48);
    add_convert(s, w, 0, 4, 24);
    add_convert(s, w, kChain - 18, 18, 12);
    add_elementwise(s, w, 36);
  }
  if (set != "kernels")
    for (const u32 limbs : {47u, 23u}) add_operations(s, w, limbs);
}

World& world_of(Suite& s, const Case& c) { return s.worlds[c.log_n - 13]; }

void list(Suite& s, const char* path) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) throw StateError(cat(path, ": cannot be written"));
  std::fprintf(file, "{\"kind\": \"fhecore-cases\", \"cases\": [");
  const char* next_case = "";
  for (const Case& c : s.cases) {
    const auto account = std::make_shared<device::Account>();
    world_of(s, c).stream->account(account);
    c.run();
    world_of(s, c).stream->account(nullptr);
    std::fprintf(file, "%s\n {\"name\": \"%s\", \"log_n\": %u, \"operation\": %s, \"launches\": [",
                 next_case, c.name.c_str(), c.log_n, c.operation ? "true" : "false");
    const char* next = "";
    for (const auto& r : account->records()) {
      if (r.work == device::Work::copy) continue;
      std::fprintf(file,
                   "%s\n  {\"kernel\": \"%s\", \"work\": \"%s\", \"limbs\": %u, \"polys\": %u, ",
                   next, std::string(r.kernel).c_str(), device::name_of(r.work), r.limbs, r.polys);
      std::fprintf(file, "\"read_bytes\": %llu, \"written_bytes\": %llu}",
                   static_cast<unsigned long long>(r.read_bytes),
                   static_cast<unsigned long long>(r.written_bytes));
      next = ",";
    }
    std::fprintf(file, "]}");
    next_case = ",";
  }
  std::fprintf(file, "\n]}\n");
  std::fclose(file);
}

void profile(Suite& s) {
  for (const Case& c : s.cases) c.run();  // modules loaded, pools filled
  for (World& w : s.worlds)
    if (w.stream) w.stream->synchronize();
  cudaProfilerStart();
  for (const Case& c : s.cases) {
    c.run();
    world_of(s, c).stream->synchronize();
  }
  cudaProfilerStop();
}

double median_us(World& w, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) call();
  for (int round = 0; round < 15; ++round) {
    w.stream->synchronize();
    const auto begin = Clock::now();
    for (int i = 0; i < 20; ++i) call();
    w.stream->synchronize();
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / 20 * 1e6);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void time_all(Suite& s, const char* path) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) throw StateError(cat(path, ": cannot be written"));
  std::fprintf(file, "{\"kind\": \"fhecore-times\", \"device\": \"%s\", \"times\": {",
               s.worlds[3].device->info().description.c_str());
  const char* next = "";
  for (const Case& c : s.cases) {
    World& w = world_of(s, c);
    const double stream = median_us(w, c.run);
    const auto graph = w.stream->capture(c.run);
    const double replay = median_us(w, [&] { graph->launch(*w.stream); });
    std::fprintf(file, "%s\n  \"%s\": {\"stream_us\": %.3f, \"graph_us\": %.3f}", next,
                 c.name.c_str(), stream, replay);
    next = ",";
  }
  std::fprintf(file, "\n}}\n");
  std::fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  std::string device = "cuda", set = "all", mode, path;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--profile")
      mode = flag;
    else if (flag == "--list" || flag == "--time")
      mode = flag, path = value, ++i;
    else if (flag == "--device")
      device = value, ++i;
    else if (flag == "--set")
      set = value, ++i;
    else
      mode.clear(), i = argc;
  }
  if (mode.empty() || (mode != "--profile" && path.empty())) {
    std::fprintf(stderr,
                 "usage: %s --list FILE | --profile | --time FILE [--device NAME] "
                 "[--set kernels|operations|all]\n",
                 argv[0]);
    return 2;
  }
  try {
    Suite suite;
    fill(suite, device, set);
    if (mode == "--list") list(suite, path.c_str());
    if (mode == "--profile") profile(suite);
    if (mode == "--time") time_all(suite, path.c_str());
  } catch (const Error& e) {
    std::fprintf(stderr, "%s: %s\n", e.code().c_str(), e.what());
    return 1;
  }
  return 0;
}
