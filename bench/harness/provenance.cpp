#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <thread>

#include "harness/recorder.h"
#include "provenance_build.h"

namespace crenel::bench {
namespace {

std::string first_line_of(const char* command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), &pclose);
  std::array<char, 256> line{};
  if (!pipe || !std::fgets(line.data(), line.size(), pipe.get())) return {};
  std::string text = line.data();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string host_processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return {};
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text.data();
}

// Absent stays absent.
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

std::string environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

}  // namespace

Json::Object provenance(const device::Device& device, const std::string& command) {
  const auto& info = device.info();
  Json::Object p{
      {"date", utc_now()},
      {"command", command},
      {"version", CRENEL_BENCH_VERSION},
      {"commit", text_or_null(environment("CRENEL_COMMIT", CRENEL_BENCH_COMMIT))},
      {"dirty", *CRENEL_BENCH_COMMIT ? Json(CRENEL_BENCH_DIRTY) : Json()},
      {"compiler", CRENEL_BENCH_COMPILER},
      {"build_type", CRENEL_BENCH_BUILD_TYPE},
      {"device", info.name},
      {"device_description", info.description},
      {"host_processor", text_or_null(host_processor())},
      {"host_threads",
       text_or_null(environment("OMP_NUM_THREADS",
                                std::to_string(std::thread::hardware_concurrency()).c_str()))}};
  if (info.kind == device::Kind::cuda) {
    const char* query =
        "nvidia-smi --query-gpu=driver_version,clocks.sm,clocks.mem,clocks.max.sm "
        "--format=csv,noheader 2>/dev/null";
    p.emplace_back("cuda_toolkit", text_or_null(CRENEL_BENCH_CUDA));
    p.emplace_back("cuda_architectures", text_or_null(CRENEL_BENCH_ARCHITECTURES));
    p.emplace_back("driver_and_clocks", text_or_null(first_line_of(query)));
  }
  return p;
}

}  // namespace crenel::bench
