#include "tfhe/options.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "crenel/core/error.h"

namespace crenel::bench {
namespace {

[[noreturn]] void usage(const std::string& problem) {
  std::fprintf(
      stderr,
      "%s\ncrenel_bench_tfhe [--set NAME] [--slots R] [--batch N] [--device NAME]\n"
      "  [--arithmetic exact|approx|split] [--operation NAME] [--floor-bits N] "
      "[--include-transfers]\n"
      "  [--verify GATES] [--no-latency] [--once] [--quick] [--json FILE]\n"
      "operations: a gate (nand, and, or, nor, xor, xnor, majority), refresh, lut, "
      "lut_negacyclic,\n"
      "  lut_periodic, floor, sign, decompose; default nand, or lut where the set is for tables\n",
      problem.c_str());
  std::exit(2);
}

template <class T>
T number(const std::string& key, const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    usage(key + " takes a number, got " + text);
  return value;
}

tfhe::Arithmetic known_arithmetic(const std::string& name) {
  try {
    return tfhe::arithmetic_from_string(name);
  } catch (const ParameterError& error) {
    usage(error.what());
  }
}

}  // namespace

TfheOptions parse_tfhe_options(int argc, char** argv) {
  TfheOptions o;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--include-transfers") {
      o.transfers = true;
    } else if (key == "--once") {
      o.once = true;
    } else if (key == "--quick") {
      o.quick = true;
    } else if (key == "--no-latency") {
      o.latency = false;
    } else {
      if (i + 1 == argc) usage(key);
      const std::string value = argv[++i];
      if (key == "--device")
        o.device = value;
      else if (key == "--set")
        o.set = value;
      else if (key == "--arithmetic")
        o.arithmetic = known_arithmetic(value);
      else if (key == "--operation")
        o.operation = value;
      else if (key == "--json")
        o.json = value;
      else if (key == "--slots")
        o.slots = number<u32>(key, value);
      else if (key == "--batch")
        o.batch = number<u32>(key, value);
      else if (key == "--floor-bits")
        o.floor_bits = number<u32>(key, value);
      else if (key == "--verify")
        o.verify = number<u64>(key, value);
      else
        usage(key);
    }
  }
  if (o.batch == 0 || o.slots == 0) usage("--batch and --slots must be positive");
  return o;
}

}  // namespace crenel::bench
