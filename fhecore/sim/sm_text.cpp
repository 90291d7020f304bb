// Text in, JSON out: traces, parameters, results.
#include <algorithm>
#include <sstream>

#include "sm_model.h"

namespace crenel::fhecore::sim {
namespace {

const char* const kNames[kUnits] = {
    "alu",  "fma",    "fmawide",   "fmalite", "uni",  "mufu",   "fp64", "tensor", "fhec",
    "setc", "ldg",    "stg",       "lds",     "sts",  "ldgsts", "shfl", "ldc",    "s2r",
    "bar",  "depbar", "ldgdepbar", "bra",     "exit", "clock",  "nop"};

[[noreturn]] void fail(int line, const std::string& what) {
  throw SimError("line " + std::to_string(line) + ": " + what);
}

// "key=value" fields after the unit of an instruction.
void read_field(Instruction& in, const std::string& field, int line) {
  const auto at = field.find('=');
  if (at == std::string::npos) fail(line, "field " + field + ": expected key=value");
  const std::string key = field.substr(0, at), text = field.substr(at + 1);
  std::istringstream value(text);
  char colon = 0;
  if (key == "d") {
    value >> in.dst >> colon >> in.dst_count;
  } else if (key == "s") {
    std::pair<int, int> s;
    value >> s.first >> colon >> s.second;
    in.sources.push_back(s);
  } else if (key == "r0" || key == "r1") {
    value >> in.reads[key[1] - '0'];
  } else if (key == "m0" || key == "m1") {
    value >> in.lost[key[1] - '0'];
  } else if (key == "c") {
    value >> in.constants;
  } else if (key == "st") {
    value >> in.stall;
  } else if (key == "y") {
    value >> in.yield;
  } else if (key == "wb") {
    value >> in.write_bar;
  } else if (key == "rb") {
    value >> in.read_bar;
  } else if (key == "w") {
    value >> in.wait;
  } else if (key == "arg") {
    value >> in.arg;
  } else if (key == "sb") {
    value >> in.depbar;
  } else if (key == "sec") {
    value >> in.sectors;
  } else if (key == "wf") {
    value >> in.wavefronts;
  } else if (key == "l1") {
    value >> in.l1_hit;
  } else if (key == "l2") {
    value >> in.l2_hit;
  } else {
    fail(line, "unknown field " + key);
  }
  if (value.fail()) fail(line, "field " + field + ": not a number");
}

void check(const Instruction& in, int line) {
  const auto barrier = [](int b) { return (b >= 0 && b < 6) || b == 7; };
  if (in.stall < 0 || in.stall > 64) fail(line, "stall outside 0..64");
  if (!barrier(in.write_bar) || !barrier(in.read_bar)) fail(line, "barrier not in 0..5 or 7");
  if (in.wait > 63) fail(line, "wait mask outside 0..63");
  if (in.dst_count > 0 && (in.dst < 0 || in.dst + in.dst_count > 256))
    fail(line, "destination registers outside 0..255");
  for (const auto& s : in.sources)
    if (s.first < 0 || s.second < 1 || s.first + s.second > 256)
      fail(line, "source registers outside 0..255");
  if (in.sectors < 0 || in.wavefronts < 0 || in.l1_hit < 0 || in.l1_hit > 1 || in.l2_hit < 0 ||
      in.l2_hit > 1)
    fail(line, "sectors and wavefronts must not be negative, hit rates lie in 0..1");
}

Path read_path(std::istringstream& words, int size, int line) {
  Path path;
  std::string word;
  while (words >> word) {
    std::istringstream range(word);
    int first = 0, count = 0;
    char colon = 0;
    range >> first >> colon >> count;
    if (range.fail() || colon != ':' || first < 0 || count < 1 || first + count > size)
      fail(line, "range " + word + ": expected first:count within " + std::to_string(size));
    path.emplace_back(first, first + count);
  }
  if (path.empty()) fail(line, "empty path");
  return path;
}

}  // namespace

const char* name_of(Unit unit) { return kNames[static_cast<int>(unit)]; }

Unit unit_named(const std::string& name) {
  for (int i = 0; i < kUnits; ++i)
    if (name == kNames[i]) return static_cast<Unit>(i);
  throw SimError("unknown unit " + name);
}

int Instruction::source_registers() const {
  int n = 0;
  for (const auto& s : sources) n += s.second;
  return n;
}

Trace read_trace(const std::string& text) {
  Trace trace;
  std::istringstream lines(text);
  std::string row, word;
  for (int line = 1; std::getline(lines, row); ++line) {
    std::istringstream words(row);
    if (!(words >> word) || word[0] == '#') continue;
    if (word == "kernel") {
      words >> trace.kernel;
    } else if (word == "launch") {
      words >> trace.warps_per_cta >> trace.registers >> trace.shared_bytes >> trace.grid_ctas;
      if (words.fail() || trace.warps_per_cta < 1 || trace.warps_per_cta > 32)
        fail(line, "launch: expected warps (1..32), registers, shared bytes, CTAs");
    } else if (word == "i") {
      Instruction in;
      words >> word;
      in.unit = unit_named(word);
      while (words >> word) read_field(in, word, line);
      check(in, line);
      trace.code.push_back(in);
    } else if (word == "path") {
      trace.paths.push_back(read_path(words, static_cast<int>(trace.code.size()), line));
    } else if (word == "cta") {
      std::vector<int> cta;
      for (int path; words >> path;) {
        if (path < 0 || path >= static_cast<int>(trace.paths.size()))
          fail(line, "path " + std::to_string(path) + " does not exist");
        cta.push_back(path);
      }
      if (static_cast<int>(cta.size()) != trace.warps_per_cta)
        fail(line, "a path for each of the " + std::to_string(trace.warps_per_cta) + " warps");
      trace.ctas.push_back(cta);
    } else {
      fail(line, "unknown word " + word);
    }
  }
  if (trace.ctas.empty()) throw SimError("the trace has no CTA");
  if (trace.grid_ctas < static_cast<i64>(trace.ctas.size()))
    throw SimError("the launch has fewer CTAs than one multiprocessor");
  return trace;
}

const std::vector<std::string>& Params::names() {
  static const std::vector<std::string> names = {"sms",
                                                 "clock_ghz",
                                                 "max_warps",
                                                 "max_ctas",
                                                 "registers",
                                                 "register_granule",
                                                 "shared_bytes",
                                                 "shared_reserved",
                                                 "scheduler",
                                                 "bank_interval",
                                                 "bank_queue",
                                                 "alu_interval",
                                                 "alu_latency",
                                                 "fma_interval",
                                                 "fma_latency",
                                                 "fmawide_interval",
                                                 "fmawide_latency",
                                                 "wide_stall",
                                                 "wide_alu_cycles",
                                                 "fmalite_interval",
                                                 "fmalite_latency",
                                                 "uni_interval",
                                                 "uni_latency",
                                                 "mufu_interval",
                                                 "mufu_latency",
                                                 "fp64_interval",
                                                 "fp64_latency",
                                                 "tensor_interval",
                                                 "tensor32_interval",
                                                 "tensor_latency",
                                                 "fhec_interval",
                                                 "fhec_latency",
                                                 "fhec_extra_latency",
                                                 "fhec_port_registers",
                                                 "fhec_banks",
                                                 "setc_cycles",
                                                 "mio_depth",
                                                 "mio_interval",
                                                 "mio_latency",
                                                 "lsu_cycles_per_wavefront",
                                                 "lds_latency",
                                                 "shfl_latency",
                                                 "ldc_latency",
                                                 "constant_miss",
                                                 "s2r_latency",
                                                 "read_release",
                                                 "l1_latency",
                                                 "l2_latency",
                                                 "dram_latency",
                                                 "l1_sectors_per_cycle",
                                                 "l2_bytes_per_cycle",
                                                 "l2_write_bytes_per_cycle",
                                                 "dram_bytes_per_cycle",
                                                 "dram_write_bytes_per_cycle",
                                                 "l2_read_on_write",
                                                 "sm_fill_bytes_per_cycle",
                                                 "bar_latency",
                                                 "branch_cycles",
                                                 "clock_cycles",
                                                 "store_queue_bytes",
                                                 "cta_launch",
                                                 "cta_interval"};
  return names;
}

Params::Params(std::map<std::string, double> values) : values_(std::move(values)) {
  for (const auto& name : names())
    if (!values_.contains(name)) throw SimError("parameter " + name + " is missing");
  for (const auto& [name, value] : values_) {
    if (std::find(names().begin(), names().end(), name) == names().end())
      throw SimError("parameter " + name + " is unknown");
    if (!(value >= 0)) throw SimError("parameter " + name + " must not be negative");
  }
}

double Params::operator[](const std::string& name) const { return values_.at(name); }

Params read_params(const std::string& text) {
  std::map<std::string, double> values;
  std::istringstream words(text);
  std::string name;
  for (double value; words >> name >> value;) values[name] = value;
  if (!words.eof()) throw SimError("parameter " + name + ": expected a number");
  return Params(std::move(values));
}

std::string to_json(const Trace& trace, const Result& r) {
  std::ostringstream out;
  out.precision(12);
  out << "{\"kernel\": \"" << trace.kernel << "\", \"cycles\": " << r.cycles
      << ", \"issued\": " << r.issued << ", \"ctas\": " << trace.ctas.size()
      << ", \"ctas_resident\": " << r.ctas_resident << ", \"warps_active\": " << r.warps_active
      << ", \"idle_cycles\": " << r.idle_cycles << ", \"bytes_l2\": " << r.bytes_l2
      << ", \"bytes_dram\": " << r.bytes_dram << ", \"by_unit\": {";
  const char* separator = "";
  for (int u = 0; u < kUnits; ++u) {
    if (r.by_unit[u] == 0) continue;
    out << separator << '"' << kNames[u] << "\": " << r.by_unit[u];
    separator = ", ";
  }
  out << "}, \"stalled\": {";
  for (std::size_t s = 0; s < r.stalled.size(); ++s)
    out << (s ? ", " : "") << '"' << kStalls[s] << "\": " << r.stalled[s];
  out << "}, \"clocks\": [";
  separator = "";
  for (const auto& warp : r.clocks) {
    if (warp.empty()) continue;
    out << separator << '[';
    for (std::size_t i = 0; i < warp.size(); ++i) out << (i ? ", " : "") << warp[i];
    out << ']';
    separator = ", ";
  }
  out << "]}";
  return out.str();
}

}  // namespace crenel::fhecore::sim
