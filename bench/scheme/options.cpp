#include "scheme/options.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace crenel::bench {
namespace {

constexpr const char* kUsage =
    "crenel_bench_ckks [--device NAME] [--params NAME,...] [--limbs N,...] [--batch N,...]\n"
    "                  [--graph off|on|both] [--only TEXT] [--quick] [--json FILE]\n"
    "params: a preset (boot40), or gen:<log_n>:<scale_bits>:<depth>[:<alpha>]\n";

[[noreturn]] void usage(const std::string& problem) {
  std::fprintf(stderr, "%s\n%s", problem.c_str(), kUsage);
  std::exit(2);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::vector<u32> numbers(const std::string& text) {
  std::vector<u32> out;
  for (const auto& part : split(text, ',')) {
    char* end = nullptr;
    const unsigned long value = std::strtoul(part.c_str(), &end, 10);
    if (part.empty() || *end != '\0' || value == 0) usage("not a positive number: " + part);
    out.push_back(static_cast<u32>(value));
  }
  return out;
}

std::vector<bool> graph_axis(const std::string& text) {
  if (text == "off") return {false};
  if (text == "on") return {true};
  if (text == "both") return {false, true};
  usage("--graph " + text);
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    if (key == "--quick") {
      o.quick = true;
      continue;
    }
    if (key == "--help" || i + 1 == argc) usage(key);
    const std::string value = argv[++i];
    if (key == "--device")
      o.device = value;
    else if (key == "--params")
      o.params = split(value, ',');
    else if (key == "--limbs")
      o.limbs = numbers(value);
    else if (key == "--batch")
      o.batches = numbers(value);
    else if (key == "--graph")
      o.graph = graph_axis(value);
    else if (key == "--only")
      o.only = value;
    else if (key == "--json")
      o.json = value;
    else
      usage("unknown option " + key);
  }
  return o;
}

ckks::Params params_of(const std::string& name) {
  if (name.rfind("gen:", 0) != 0) return ckks::Params::preset(name, name.rfind("toy-", 0) == 0);
  std::string list = name.substr(4);
  for (char& c : list)
    if (c == ':') c = ',';
  const auto n = numbers(list);
  if (n.size() < 3 || n.size() > 4) usage("--params " + name);
  return ckks::Params::generate(n[0], n[1], n[2], false, n.size() == 4 ? n[3] : 0);
}

}  // namespace crenel::bench
