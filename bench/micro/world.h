// Rings, random polynomials and the table of results of the micro-benchmarks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "harness/device_choice.h"
#include "math/primes.h"

namespace crenel::bench {

using device::Domain;
using device::LimbSet;
using device::PolyShape;
using Clock = std::chrono::steady_clock;
using View = ring::PolyView<u32>;

constexpr u32 kChain = 48, kSpecial = 12, kAlpha = 12, kRounds = 15;

struct Options {
  DeviceChoice device{.name = "cuda", .on = {}, .tuned = {}};
  std::string json, only;
  u32 log_n = 16;
  bool graph = false, once = false;
  std::vector<u32> polys{1, 2, 4, 8, 16};
};

struct World {
  std::shared_ptr<device::Device> device;
  std::shared_ptr<device::Stream> stream;
  std::shared_ptr<const ring::Ring> ring;
  std::unique_ptr<device::PolyKernels> kernels;
  rns::Moduli moduli;
  std::vector<device::Buffer> memory;

  View make(u32 components, const LimbSet& limbs, Domain domain, u32 batch = 1) {
    const PolyShape shape{ring->log_n(), components, batch};
    const std::size_t words = (std::size_t(components) * batch * limbs.size()) << ring->log_n();
    memory.push_back(stream->allocate(words * sizeof(u32)));
    View v(memory.back().as<u32>(), shape, limbs, domain);
    random::Seed seed{};
    seed[0] = static_cast<u8>(memory.size());
    kernels->sample_uniform(*stream, v, seed, {random::Purpose::test, 0});
    return v;
  }
};

inline World make_world(const Options& options) {
  World w;
  w.device = options.device.open();
  w.stream = w.device->make_stream();
  const u64 two_n = u64(2) << options.log_n;
  auto primes =
      math::nearest_ntt_primes(u64(1) << 30, kChain, u64(1) << 29, u64(1123) * 1000000, two_n);
  const auto special =
      math::nearest_ntt_primes((u64(1) << 31) - 1, kSpecial, u64(3) << 29, u64(1) << 31, two_n);
  primes.insert(primes.end(), special.begin(), special.end());
  w.ring = std::make_shared<const ring::Ring>(options.log_n, primes);
  for (u32 i = 0; i < w.ring->prime_count(); ++i) w.moduli.push_back(w.ring->modulus(i));
  w.kernels = device::backend_of(*w.device).make_poly_kernels(w.ring);
  return w;
}

class Table {
 public:
  explicit Table(const Options& options) : options_(options) {
    if (!options.json.empty()) file_ = std::fopen(options.json.c_str(), "w");
    std::printf("%-24s %6s %10s %10s %9s\n", "operation", "limbs", "us", "MiB", "GB/s");
  }
  ~Table() {
    if (file_) std::fclose(file_);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  /// Whether --only lets the operation run.
  bool wants(const char* name) const {
    return options_.only.empty() || std::strstr(name, options_.only.c_str()) != nullptr;
  }

  // `limb_accesses`: limbs read plus limbs written by the algorithm.
  void run(World& w, const char* name, u32 limbs, double limb_accesses,
           const std::function<void()>& work) {
    if (!wants(name)) return;
    std::function<void()> call = work;
    std::shared_ptr<device::GraphExec> graph;
    if (options_.graph) {
      graph = w.stream->capture(work);
      call = [&w, graph] { graph->launch(*w.stream); };
    }
    for (int i = 0; i < 3; ++i) call();
    w.stream->synchronize();
    auto begin = Clock::now();
    call();
    w.stream->synchronize();
    const double once = std::chrono::duration<double>(Clock::now() - begin).count();
    const int calls = std::clamp(static_cast<int>(4e-3 / once), 1, 200);
    std::vector<double> times;
    for (u32 round = 0; round < kRounds; ++round) {
      begin = Clock::now();
      for (int i = 0; i < calls; ++i) call();
      w.stream->synchronize();
      times.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / calls);
    }
    std::sort(times.begin(), times.end());
    const double us = times[times.size() / 2] * 1e6;
    const double bytes = limb_accesses * sizeof(u32) * static_cast<double>(w.ring->ring_dim());
    std::printf("%-24s %6u %10.2f %10.1f %9.0f\n", name, limbs, us, bytes / (1 << 20),
                bytes / us / 1e3);
    std::fflush(stdout);
    if (!file_) return;
    std::fprintf(
        file_,
        "{\"operation\": \"%s\", \"limbs\": %u, \"log_n\": %u, \"device\": \"%s\", "
        "\"graph\": %s, \"us\": %.3f, \"us_min\": %.3f, \"bytes\": %.0f, \"gb_per_s\": %.1f}\n",
        name, limbs, w.ring->log_n(), w.device->info().description.c_str(),
        options_.graph ? "true" : "false", us, times.front() * 1e6, bytes, bytes / us / 1e3);
  }

 private:
  Options options_;
  std::FILE* file_ = nullptr;
};

}  // namespace crenel::bench
