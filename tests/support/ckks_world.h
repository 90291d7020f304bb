// A context, a client and an evaluator with keys, made once a process for each device and parameter
// set: key generation is the dearest part of most scheme tests. Parameters here are toys unless the
// name says otherwise: NOT secure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "ckks/objects.h"
#include "crenel/ckks/evaluator.h"
#include "support/devices.h"
#include "support/random.h"

namespace crenel::test {

using Complex = std::complex<double>;
using Values = std::vector<Complex>;

/// Steps that the shared evaluator has keys for: powers of two and a few others, both ways.
inline const std::vector<i64>& world_rotations() {
  static const std::vector<i64> steps{1, 2, 3, 4, 5, 8, 16, 32, 64, 128, 256, 512, -1, -2, -3, -7};
  return steps;
}

inline std::vector<u32> words_of(const rlwe::Poly& poly) {
  std::vector<u32> words(poly.words());
  poly.stream().synchronize();
  poly.stream().copy_out(words.data(), poly.data(), poly.bytes());
  return words;
}
/// The words of a ciphertext.
inline std::vector<u32> bits(const ckks::Ciphertext& c) { return words_of(c.data().poly); }

struct World {
  World(const ckks::Params& params, const std::string& device)
      : context(params, device),
        client(context.keygen()),
        keys(client.evaluation_keys({world_rotations(), true, true})),
        ev(context.evaluator(keys)) {}

  const ckks::Params& params() const { return context.params(); }
  u64 slots() const { return params().slots(); }

  ckks::Context context;
  ckks::Client client;
  ckks::EvaluationKeys keys;
  ckks::Evaluator ev;
};

/// "toy-..." presets by name; "s30" .. "s50": generated toys of that scale.
inline const ckks::Params& world_params(const std::string& name) {
  static auto* made = new std::map<std::string, ckks::Params>();
  if (const auto it = made->find(name); it != made->end()) return it->second;
  if (name[0] != 's') return made->emplace(name, ckks::Params::preset(name, true)).first->second;
  const u32 bits = static_cast<u32>(std::stoul(name.substr(1)));
  return made->emplace(name, ckks::Params::generate(11, bits, 8, true)).first->second;
}

/// Kept for the whole process; a failing construction is not cached.
inline World& world(const std::string& device, const std::string& params) {
  static auto* worlds = new std::map<std::string, std::unique_ptr<World>>();
  auto& slot = (*worlds)[device + "/" + params];
  if (!slot) slot = std::make_unique<World>(world_params(params), device);
  return *slot;
}

/// Base of the scheme suites: one instance a device.
class SchemeTest : public DeviceTest {
 protected:
  World& world(const std::string& params) { return test::world(GetParam(), params); }
  /// Exhaustive loops run everywhere but on ref, which is written for reading: there a sample does.
  bool exhaustive() const { return GetParam() != "ref"; }
  /// Parameter sets of every scale; on ref two of them.
  std::vector<const char*> every_scale() const {
    if (!exhaustive()) return {"s35", "s40"};
    return {"s30", "s35", "s40", "s45", "s50"};
  }
};

/// Uniform in the square [-1, 1]^2.
inline Values random_values(Rng& rng, u64 count, double bound = 1.0) {
  std::uniform_real_distribution<double> u(-bound, bound);
  Values v(count);
  for (auto& x : v) x = {u(rng), u(rng)};
  return v;
}
inline std::vector<double> random_reals(Rng& rng, u64 count, double a = -1.0, double b = 1.0) {
  std::uniform_real_distribution<double> u(a, b);
  std::vector<double> v(count);
  for (auto& x : v) x = u(rng);
  return v;
}

inline double max_error(const Values& found, const Values& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double error = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double e = std::abs(found[i] - expected[i]);
    if (std::isnan(e)) return std::numeric_limits<double>::infinity();
    error = std::max(error, e);
  }
  return error;
}

template <class F>
Values map_values(const Values& a, F f) {
  Values out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = f(a[i]);
  return out;
}
template <class F>
Values zip_values(const Values& a, const Values& b, F f) {
  Values out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = f(a[i], b[i]);
  return out;
}
/// Slot i of the result is slot i + steps, in every row of `slots` values.
inline Values rolled(const Values& a, i64 steps, u64 slots = 0) {
  if (slots == 0) slots = a.size();
  const i64 n = static_cast<i64>(slots);
  Values out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const i64 row = static_cast<i64>(i) / n, j = static_cast<i64>(i) % n;
    out[i] = a[static_cast<std::size_t>(row * n + (((j + steps) % n) + n) % n)];
  }
  return out;
}

/// Bound on the error of one operation at this scale for N <= 2^14, values of absolute value
/// <= 1.5: about 8 times the expected maximum (docs/theory/precision.md).
inline double tolerance(const ckks::Params& params, double operations = 1.0) {
  return operations * std::exp2(18.0 + (params.log_n() - 11) - params.spec().log_scale) / 8.0;
}

/// Runs `f`, expects an error of class E, and returns it for a look at its fields.
template <class E, class F>
E expect_error(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another error: " << e.what();
    return E("another error");
  }
  ADD_FAILURE() << "no error";
  return E("no error");
}

}  // namespace crenel::test
