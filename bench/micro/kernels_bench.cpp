// Micro-benchmark of the kernel interface: time, bytes that the algorithm must move, and their
// ratio.
//
//   kernels_bench --device cuda --json out.jsonl
//
// Times many queued calls between two synchronisations, on uniform random data, and reports the
// median of several such rounds. A row is printed and, with --json, written as one JSON object a
// line.
//
//   kernels_bench --once --polys 1,4,16 --json launches.json
//
// runs transforms and conversions once each instead, under labels, and writes what they launched:
// for a profiler (dev/kernels/counters.sh).
#include "harness/recorder.h"
#include "harness/suites.h"
#include "launches.h"
#include "sums.h"

namespace {

using namespace crenel;
using namespace crenel::bench;

void bench_basic(World& w, Table& table, u32 limbs) {
  auto& k = *w.kernels;
  auto& s = *w.stream;
  const LimbSet window = LimbSet::range(0, limbs);
  const View a = w.make(2, window, Domain::eval), b = w.make(2, window, Domain::eval);
  const View out = w.make(3, window, Domain::eval);
  const View out2 = out.components(0, 2);
  const View coefficients = [&] {
    View v = out2;
    v.domain = Domain::coeff;
    return v;
  }();
  const double l = limbs;
  table.run(w, "add", limbs, 6 * l, [&] { k.add(s, out2, a, b); });
  table.run(w, "mul_plain", limbs, 5 * l, [&] { k.mul(s, out2, a, b.components(0, 1)); });
  table.run(w, "tensor", limbs, 7 * l, [&] { k.tensor(s, out, a, b); });
  table.run(w, "automorphism", limbs, 4 * l, [&] { k.automorphism(s, out2, a, 5); });
  table.run(w, "intt", limbs, 8 * l, [&] { k.intt(s, coefficients, a); });
  table.run(w, "ntt", limbs, 8 * l, [&] { k.ntt(s, out2, coefficients); });
}

// The special limbs to the whole window, as ModDown has it; `limbs` counts destinations.
void bench_convert(World& w, Table& table, u32 limbs) {
  auto& k = *w.kernels;
  const LimbSet source = LimbSet::range(kChain, kChain + kSpecial),
                window = LimbSet::range(0, limbs);
  const auto conversion = k.prepare(rns::make_base_conversion(w.moduli, source, window));
  const View in = w.make(2, source, Domain::coeff), out = w.make(2, window, Domain::coeff);
  table.run(w, "base_convert", limbs, 2.0 * (kSpecial + limbs),
            [&] { k.base_convert(*w.stream, out, in, conversion); });
}

void bench_switch(World& w, Table& table, u32 limbs) {
  auto& k = *w.kernels;
  auto& s = *w.stream;
  const LimbSet window = LimbSet::range(0, limbs),
                special = LimbSet::range(kChain, kChain + kSpecial);
  const LimbSet extended = window.concat(special);
  const LimbSet rescaled = LimbSet::range(0, limbs - 2);
  const auto up = k.prepare(rns::make_mod_up(w.moduli, window, special, kAlpha));
  const auto down = k.prepare(rns::make_divide(w.moduli, extended, window));
  const auto down_rescale = k.prepare(rns::make_divide(w.moduli, extended, rescaled));
  const auto rescale = k.prepare(rns::make_divide(w.moduli, window, rescaled));
  const u32 digits = static_cast<u32>(up->digits.size());

  const View a = w.make(2, window, Domain::eval), b = w.make(2, window, Domain::eval);
  const View product = w.make(3, window, Domain::eval), out = w.make(2, window, Domain::eval);
  const View out_low = w.make(2, rescaled, Domain::eval);
  const View rotated = w.make(2, window, Domain::eval);
  const View raised = w.make(digits, extended, Domain::eval);
  const View key = w.make(2, LimbSet::range(0, kChain + kSpecial), Domain::eval, kChain / kAlpha);
  const View acc = w.make(2, extended, Domain::eval);
  device::LimbScalars lift;
  for (u32 i = 0; i < limbs; ++i) lift.low[i] = lift.high[i] = 12345 + i;

  const double l = limbs, e = l + kSpecial, d = digits, p = kSpecial;
  const double inverse = 4 * l, convert = l + d * e - l, forward = 4 * (d * e - l);
  const double up_bytes = inverse + convert + forward + 2 * l;
  const double key_bytes = d * e + 2 * d * e + 2 * e;
  const auto divide_bytes = [](double dropped, double kept) {
    return 2 * (4 * dropped + dropped + kept + 4 * kept + kept);
  };
  const auto key_switch = [&](const View& source, const ring::PolyView<const u32>& addend) {
    k.key_switch_extended(s, acc, source, up, key, 0);
    k.divide(s, out, acc, down, &addend);
  };
  const double switch_bytes = inverse + convert + forward + l + 2 * d * e + 2 * e - (d * e - l);
  table.run(w, "mod_up", limbs, up_bytes, [&] { k.mod_up(s, raised, a.components(1, 1), up); });
  table.run(w, "key_multiply", limbs, key_bytes, [&] { k.key_multiply(s, acc, raised, key, 0); });
  table.run(w, "key_switch", limbs, switch_bytes,
            [&] { k.key_switch_extended(s, acc, a.components(1, 1), up, key, 0); });
  const ring::PolyView<const u32> addend = product.components(0, 2), addend1 = a.components(0, 1);
  table.run(w, "mod_down", limbs, divide_bytes(p, l) + 2 * l,
            [&] { k.divide(s, out, acc, down, &addend); });
  table.run(w, "rescale", limbs, divide_bytes(2, l - 2), [&] { k.divide(s, out_low, a, rescale); });
  table.run(w, "hmult", limbs, 7 * l + switch_bytes + divide_bytes(p, l) + 2 * l, [&] {
    k.tensor(s, product, a, b);
    key_switch(product.components(2, 1), addend);
  });
  table.run(w, "hmult_rescale", limbs, 7 * l + switch_bytes + 6 * l + divide_bytes(p + 2, l - 2),
            [&] {
              k.tensor(s, product, a, b);
              k.key_switch_extended(s, acc, product.components(2, 1), up, key, 0);
              k.mul_add_scalar(s, acc.limb_window(0, limbs), product.components(0, 2), lift);
              k.divide(s, out_low, acc, down_rescale);
            });
  table.run(w, "hrot", limbs, switch_bytes + divide_bytes(p, l) + l + 4 * l, [&] {
    key_switch(a.components(1, 1), addend1);
    k.automorphism(s, rotated, out, 5);
  });
}

/// Everything that is launched, in order; what is measured has its operation's name as its stage.
int run_once(World& w, const Options& options, const Words& words) {
  Recorder recorder("kernels-once", words);
  const auto account = std::make_shared<device::Account>();
  w.stream->account(account);
  auto& k = *w.kernels;
  auto& s = *w.stream;
  const auto once = [&](const char* name, const auto& work) {
    if (std::string(name).find(options.only) == std::string::npos) return;
    const device::Stage stage(s, name);
    work();
  };
  const LimbSet special = LimbSet::range(kChain, kChain + kSpecial);
  for (const u32 limbs : {48u, 24u, 12u})
    for (const u32 polys : options.polys) {
      const LimbSet window = LimbSet::range(0, limbs);
      const auto conversion = k.prepare(rns::make_base_conversion(w.moduli, special, window));
      const View values = w.make(1, window, Domain::eval, polys);
      const View source = w.make(1, special, Domain::coeff, polys);
      const View out = w.make(1, window, Domain::coeff, polys);
      once("intt", [&] { k.intt(s, out, values); });
      once("ntt", [&] { k.ntt(s, values, out); });
      once("base_convert", [&] { k.base_convert(s, out, source, conversion); });
      s.synchronize();
      w.memory.clear();
    }
  w.stream->account(nullptr);
  recorder.note("records", to_json(account->records()));
  return recorder.finish(options.json, *w.device);
}

int run_kernels(const Words& words) {
  Options options;
  Arguments arguments("The kernel interface: time, and bytes that the algorithm must move.");
  options.device.add_to(arguments);
  arguments.number("--log-n", options.log_n, "log2 of the ring degree; default 16", 10)
      .text("--only", options.only, "operations whose name contains it")
      .flag("--graph", options.graph, "replay each operation from a graph")
      .flag("--once", options.once, "transforms and conversions, each once, for a profiler")
      .numbers("--polys", options.polys, "with --once: polynomials, by commas; default 1,2,4,8,16")
      .json(options.json);
  if (!arguments.parse(words)) return 0;
  World w = make_world(options);
  if (options.once) return run_once(w, options, words);
  std::printf("%s, N = 2^%u, alpha %u%s\n", w.device->info().description.c_str(), options.log_n,
              kAlpha, options.graph ? ", graph replay" : "");
  Table table(options);
  for (const u32 limbs : {48u, 24u, 12u}) {
    bench_basic(w, table, limbs);
    bench_convert(w, table, limbs);
    bench_switch(w, table, limbs);
    w.memory.clear();
  }
  bench_sums(w, table, 47, 4);
  bench_sums(w, table, 23, 8);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return crenel::bench::run_program(argc, argv, run_kernels); }
