// One context with keys and clear values, and the yardstick for errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>

#include "crenel/ckks/evaluator.h"
#include "harness/recorder.h"
#include "scheme/options.h"

namespace crenel::bench {

using Complex = std::complex<double>;
using Values = std::vector<Complex>;

inline const std::vector<i64>& hoisted_steps() {
  static const std::vector<i64> steps{1, 2, 3, 4, 5, 6, 7, 8};
  return steps;
}

inline double max_error(const Values& found, const Values& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double error = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double e = std::abs(found[i] - expected[i]);
    if (!(e <= error)) error = std::isnan(e) ? std::numeric_limits<double>::infinity() : e;
  }
  return error;
}

/// Every key that operations read, and beside each one for aligned levels where there are such.
inline ckks::KeyRequest key_request(const ckks::Params& params, const Options& o) {
  ckks::KeyRequest request{hoisted_steps(), true, true};
  const auto level = params.highest_aligned(params.normal_top_level());
  if (o.plain_keys || !level) return request;
  for (i64 k : hoisted_steps()) request.aligned_rotations.emplace(k, *level);
  request.aligned_conjugation = request.aligned_relinearisation = level;
  return request;
}

struct BenchWorld {
  BenchWorld(const std::string& name, const Options& o)
      : options(o),
        params_name(name),
        context(params_of(name), o.device.open()),
        client(context.keygen()),
        ev(context.evaluator(client.evaluation_keys(key_request(context.params(), o)))) {}

  const ckks::Params& params() const { return context.params(); }
  bool wanted(const std::string& name) const {
    const auto in_name = [&](const std::string& part) {
      return name.find(part) != std::string::npos;
    };
    return options.only.empty() || std::ranges::any_of(options.only, in_name);
  }
  Budget budget() const {
    Budget b;
    if (options.quick) b = {0.005, 0.3, 0.1, 3, 10};
    return b;
  }
  /// Rows of N/2 uniform values in [-1, 1]^2; fixed seeds.
  Values values(u32 seed, u32 batch) const {
    std::mt19937_64 rng(seed);
    std::uniform_real_distribution<double> u(-1.0, 1.0);
    Values v(params().slots() * batch);
    for (auto& x : v) x = {u(rng), u(rng)};
    return v;
  }
  /// 2^-20 at scale 2^40 and N = 2^16 (docs/theory/precision.md,
  /// "Operations"), in proportion elsewhere.
  double bound(double scale) const {
    return std::exp2(std::max(-40.0, 20.0 - std::log2(scale) + (params().log_n() - 16.0)));
  }
  u32 limbs(u32 level) const { return params().window_end(level) - params().window_begin(level); }
  /// Level >= 1 with the number of limbs nearest to `wanted` from below, the lowest one otherwise.
  u32 level_for(u32 wanted_limbs) const {
    u32 best = 1;
    for (u32 l = 1; l <= params().max_level(); ++l)
      if (limbs(l) <= wanted_limbs && limbs(l) > limbs(best)) best = l;
    return best;
  }
  Json::Object axes(std::optional<u32> level = {}) const {
    Json::Object a{{"params", params_name},
                   {"params_id", params().id()},
                   {"log_n", params().log_n()},
                   {"scale_bits", params().spec().log_scale},
                   {"log_pq", params().log_pq()},
                   {"alpha", params().alpha()},
                   {"security_bits", std::floor(params().security_bits())}};
    if (level) {
      a.emplace_back("level", *level);
      a.emplace_back("limbs", limbs(*level));
      a.emplace_back("aligned_keys",
                     !options.plain_keys && params().highest_aligned(*level) == level);
    }
    return a;
  }

  Options options;
  std::string params_name;
  ckks::Context context;
  ckks::Client client;
  ckks::Evaluator ev;
};

/// Homomorphic operations at one level.
void bench_operations(BenchWorld& w, Recorder& recorder, u32 level, u32 batch, bool graph);
/// Context, keys, encode, encrypt, decrypt, decode.
void bench_client(BenchWorld& w, Recorder& recorder);

}  // namespace crenel::bench
