#include "harness/recorder.h"

#include <cmath>
#include <cstdio>
#include <fstream>

#include "crenel/core/error.h"

namespace crenel::bench {

Recorder::Recorder(std::string suite, const Words& words) : suite_(std::move(suite)) {
  for (const std::string& word : words)  // where files lie is nobody's business
    command_.append(command_.empty() ? "" : " ").append(word.substr(word.rfind('/') + 1));
  std::printf("%-22s %5s %5s %5s %12s %9s %12s %8s\n", "operation", "limbs", "batch", "graph",
              "median us", "iqr %", "us / batch", "error");
}

void Recorder::add(const Result& r) {
  const auto us = [](double seconds) { return seconds * 1e6; };
  const bool right = r.error <= r.bound;  // false for NaN
  const double spread = (r.timing.q3 - r.timing.q1) / r.timing.median;
  Json::Object row{{"name", r.name}};
  std::string limbs = "-", graph = "-", how;
  for (const auto& [key, value] : r.axes) {
    row.emplace_back(key, value);
    if (key == "limbs") limbs = value.dump();
    if (key == "graph") graph = value.dump() == "true" ? "on" : "off";
    if (key == "timing" || key == "inputs") how += " " + value.dump();
  }
  row.emplace_back("batch", r.batch);
  row.emplace_back("latency_us", us(r.timing.median));
  row.emplace_back("q1_us", us(r.timing.q1));
  row.emplace_back("q3_us", us(r.timing.q3));
  row.emplace_back("min_us", us(r.timing.least));
  row.emplace_back("amortised_us", us(r.timing.median) / r.batch);
  row.emplace_back("groups", r.timing.groups);
  row.emplace_back("calls_per_group", r.timing.calls);
  if (r.bytes > 0) row.emplace_back("bytes", r.bytes);
  row.emplace_back("error_log2", r.error > 0 ? Json(std::log2(r.error)) : Json());
  row.emplace_back("bound_log2", std::log2(r.bound));
  row.emplace_back("correct", right);
  results_.push_back(row);
  std::printf("%-22s %5s %5u %5s %12.2f %9.1f %12.2f   2^%.1f%s%s\n", r.name.c_str(), limbs.c_str(),
              r.batch, graph.c_str(), us(r.timing.median), 100 * spread,
              us(r.timing.median) / r.batch, std::log2(r.error), how.c_str(),
              right ? "" : "  WRONG");
  std::fflush(stdout);
  if (!right) wrong_.push_back(r.name + " at " + limbs + " limbs");
}

void Recorder::note(const std::string& name, Json value) {
  std::printf("%s %s\n", name.c_str(), value.dump().c_str());
  notes_.emplace_back(name, std::move(value));
}

int Recorder::finish(const std::string& path, const device::Device& device) const {
  if (!path.empty()) {
    Json::Object file{{"kind", "crenel-bench"},
                      {"format", 1},
                      {"suite", suite_},
                      {"provenance", provenance(device, command_)},
                      {"results", results_}};
    file.insert(file.end(), notes_.begin(), notes_.end());
    std::ofstream out(path);
    out << Json(std::move(file)).dump() << '\n';
    out.flush();
    if (!out) throw ParameterError(cat("--json: cannot write ", path), {{"json", path}});
  }
  std::fflush(stdout);
  for (const auto& w : wrong_) std::fprintf(stderr, "wrong result: %s\n", w.c_str());
  return wrong_.empty() ? 0 : 1;
}

}  // namespace crenel::bench
