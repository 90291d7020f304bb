// Bootstraps a second, latency, key sizes and failures of TFHE.
//
//   crenel_bench_tfhe --set bool128 --batch 16384 --device cuda --include-transfers
//     --verify 10000000 --json out.json
//
// Results "resident": inputs and outputs stay on the device. "transfers": every call also copies
// its inputs from host memory and its outputs back. "latency": one row of ciphertexts.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <utility>

#include "core/sha256.h"
#include "crenel/core/error.h"
#include "harness/recorder.h"
#include "tfhe/host_words.h"
#include "tfhe/objects.h"
#include "tfhe/operation.h"
#include "tfhe/options.h"

namespace {

using namespace crenel;
using bench::Json;
using bench::Operation;
using tfhe::Ciphertext;

// Seconds since the last call.
double lap() {
  static auto last = std::chrono::steady_clock::now();
  const auto now = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(now - std::exchange(last, now)).count();
}

tfhe::Params chosen(const bench::TfheOptions& o) {
  tfhe::Params params = tfhe::Params::preset(o.set);
  if (o.slots != 1) params = params.with_slots(tfhe::SlotCount(o.slots));
  if (o.arithmetic) params = params.with_arithmetic(*o.arithmetic);
  return params;
}

// Encrypted inputs of `size` messages with what the operation makes of them.
struct Workload {
  std::vector<Ciphertext> inputs;
  std::vector<std::vector<u64>> expected;  // of each output
  Operation::Inputs pointers() const {
    Operation::Inputs out;
    for (const Ciphertext& c : inputs) out.push_back(&c);
    return out;
  }
};

Workload draw(tfhe::Client& client, const Operation& op, u64 size, std::mt19937_64& rng) {
  Workload w;
  std::vector<std::vector<u64>> messages(op.inputs, std::vector<u64>(size));
  for (auto& m : messages) {
    for (u64& x : m) x = rng() % op.limit;
    w.inputs.push_back(client.encrypt(m, op.plain_modulus));
  }
  for (u64 i = 0; i < size; ++i) {
    std::vector<u64> arguments;
    for (const auto& m : messages) arguments.push_back(m[i]);
    const auto results = op.clear(arguments);
    w.expected.resize(results.size());
    for (std::size_t j = 0; j < results.size(); ++j) w.expected[j].push_back(results[j]);
  }
  return w;
}

u64 failures(const tfhe::Client& client, const std::vector<Ciphertext>& outputs,
             const std::vector<std::vector<u64>>& expected) {
  u64 wrong = outputs.size() == expected.size() ? 0 : ~u64(0);
  for (std::size_t j = 0; j < outputs.size() && j < expected.size(); ++j) {
    const auto found = client.decrypt(outputs[j]);
    if (found.size() != expected[j].size()) return ~u64(0);
    for (std::size_t i = 0; i < found.size(); ++i) wrong += found[i] != expected[j][i];
  }
  return wrong;
}

std::string digest(const tfhe::Client& client, const std::vector<Ciphertext>& outputs) {
  Sha256 hash;
  for (const Ciphertext& c : outputs) {
    const std::vector<u64> m = client.decrypt(c);
    hash.update({reinterpret_cast<const u8*>(m.data()), m.size() * sizeof(u64)});
  }
  return hex(hash.finish());
}

// The inputs in host memory, as a request would bring them, and room for the result.
class HostCopy {
 public:
  HostCopy(const Workload& w, bool lock) : lock_(lock) {
    for (const Ciphertext& c : w.inputs) {
      models_.push_back(&c.data());
      words_.emplace_back(c.data().bytes() / sizeof(u32), lock);
      c.data().payload.stream()->copy_out(words_.back().data(), c.data().payload.data(),
                                          c.data().bytes());
    }
  }
  // From host memory to host memory.
  void call(const Operation& op, const tfhe::Evaluator& ev) {
    std::vector<Ciphertext> inputs;
    Operation::Inputs pointers;
    inputs.reserve(words_.size());
    for (std::size_t i = 0; i < words_.size(); ++i) {
      auto data = models_[i]->like();
      auto& stream = *models_[i]->payload.stream();
      data->payload = stream.allocate(data->bytes());
      stream.copy_in(data->payload.data(), words_[i].data(), data->bytes());
      inputs.emplace_back(std::move(data));
      pointers.push_back(&inputs.back());
    }
    const auto outputs = op.run(ev, pointers);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      const auto& data = outputs[j].data();
      if (j == results_.size()) results_.emplace_back(data.bytes() / sizeof(u32), lock_);
      data.payload.stream()->copy_out(results_[j].data(), data.payload.data(), data.bytes());
    }
  }
  double bytes() const {
    u64 total = 0;
    for (const auto& w : words_) total += w.bytes();
    for (const auto& r : results_) total += r.bytes();
    return static_cast<double>(total);
  }
  bool locked() const { return words_.front().locked(); }

 private:
  std::vector<const Ciphertext::Data*> models_;
  std::vector<bench::HostWords> words_, results_;
  bool lock_;
};

// Gates whose inputs come from bootstraps (as the failure probability is stated for), decrypted one
// by one, with the variance of their phases.
struct Check {
  u64 gates = 0, failed = 0;
  double squares = 0.0;
  void run(tfhe::Client& client, const tfhe::Evaluator& ev, u64 wanted, u64 batch,
           std::mt19937_64& rng) {
    constexpr int kChain = 16;  // then fresh messages: long chains degenerate
    std::vector<u64> x(batch), y(batch);
    while (gates < wanted) {
      for (u64 i = 0; i < batch; ++i) x[i] = rng() & 1, y[i] = rng() & 1;
      Ciphertext a = ev.refresh(client.encrypt(x, 4)), b = ev.refresh(client.encrypt(y, 4));
      for (int step = 0; step < kChain && gates < wanted; ++step) {
        const auto& kinds = bench::two_input_gates();
        const tfhe::Gate gate = kinds[rng() % kinds.size()];
        Ciphertext c = ev.gate(gate, a, b);
        std::vector<u64> z(batch);
        for (u64 i = 0; i < batch; ++i) z[i] = bench::clear_gate(gate, {x[i], y[i]});
        for (const i64 e : client.phase_errors(c, z)) squares += double(e) * double(e);
        const auto found = client.decrypt(c);
        for (u64 i = 0; i < batch; ++i) failed += found[i] != z[i];
        gates += batch;
        // An error is counted once: go on with the clear bits that belong to the ciphertext.
        x = std::move(y), y = found;
        a = std::move(b), b = std::move(c);
      }
    }
  }
};

int run(int argc, char** argv) {
  const bench::TfheOptions o = bench::parse_tfhe_options(argc, argv);
  bench::Recorder recorder("tfhe", argc, argv);
  const tfhe::Params params = chosen(o);
  const Operation op = bench::make_operation(params, o.operation, o.floor_bits);
  lap();
  const tfhe::Context context(params, o.device);
  const double context_s = lap();
  auto client = context.keygen();
  const auto keys = client.evaluation_keys();
  context.stream().synchronize();
  const double keys_s = lap();
  const auto ev = context.evaluator(keys);
  auto& stream = context.stream();
  std::printf("%s, %u messages a mask, %s: %s, 2^%.1f, %.1f bits; %s on %s\n", o.set.c_str(),
              params.slots().value, tfhe::to_string(params.arithmetic()), op.name.c_str(),
              params.p_fail_log2(), params.security_bits(), "bootstraps",
              context.device().info().description.c_str());
  if (params.below_norm()) std::printf("%s\n", params.warning().c_str());

  std::mt19937_64 rng(2026);
  const Workload work = draw(client, op, o.batch, rng);
  if (o.once) {
    for (int i = 0; i < 2; ++i) op.run(ev, work.pointers());
    stream.synchronize();
    return 0;
  }
  // Paper sets fail now and then: three standard deviations above what the model expects.
  const auto allowed = [&](double gates) {
    const double expected = gates * op.bootstraps * std::exp2(params.p_fail_log2());
    return expected < 1e-3 ? 0.5 : expected + 3.0 * std::sqrt(expected) + 1.0;
  };
  bench::Budget budget;
  budget.group_seconds = 0.05;
  if (o.quick) budget = {0.0, 0.5, 0.1, 3, 10};
  const auto axes = [&](const char* mode, u64 size, const std::string& sha) {
    return Json::Object{{"params", o.set},
                        {"params_id", params.id()},
                        {"slots", params.slots().value},
                        {"arithmetic", tfhe::to_string(params.arithmetic())},
                        {"operation", op.name},
                        {"mode", mode},
                        {"bootstraps_per_operation", op.bootstraps},
                        {"p_fail_log2", params.p_fail_log2()},
                        {"security_bits", params.security_bits()},
                        {"size", size},
                        {"digest", sha}};
  };
  bool locked = false;
  const auto measure = [&](const char* mode, const Workload& w, u64 size,
                           const std::function<void()>& call, double bytes) {
    const auto outputs = op.run(ev, w.pointers());
    bench::Result r{op.name, axes(mode, size, digest(client, outputs)), {}, u32(size), 0, 0, bytes};
    r.error = static_cast<double>(failures(client, outputs, w.expected));
    r.bound = allowed(static_cast<double>(size));
    r.timing = bench::measure(call, [&] { stream.synchronize(); }, budget);
    const double rate = static_cast<double>(size) / r.timing.median;
    r.axes.emplace_back("operations_per_s", rate);
    r.axes.emplace_back("bootstraps_per_s", rate * op.bootstraps);
    r.axes.emplace_back("failures", r.error);
    recorder.add(r);
    std::printf("  %s: %.0f %s/s\n", mode, rate, op.name.c_str());
  };
  const auto call = [&](const Workload& w) {
    return [&op, &ev, inputs = w.pointers()] { op.run(ev, inputs); };
  };
  measure("resident", work, o.batch, call(work), 0.0);
  if (o.transfers) {
    HostCopy host(work, context.device().info().kind == device::Kind::cuda);
    host.call(op, ev);
    locked = host.locked();
    measure("transfers", work, o.batch, [&] { host.call(op, ev); }, host.bytes());
  }
  if (o.latency) {
    const u64 row = params.slots().value;
    const Workload single = draw(client, op, row, rng);
    measure("latency", single, row, call(single), 0.0);
  }
  if (o.transfers) recorder.note("page_locked_host_memory", locked);
  recorder.note("keys", Json::Object{{"device_bytes", keys.bytes()},
                                     {"wire_bytes", keys.wire_bytes()},
                                     {"context_s", context_s},
                                     {"keys_s", keys_s},
                                     {"pool_bytes_peak", stream.peak_bytes()}});
  bool verified = true;
  if (o.verify) {
    lap();
    Check check;
    check.run(client, ev, o.verify, o.batch, rng);
    const double measured = std::sqrt(check.squares / static_cast<double>(check.gates));
    const double expected = tfhe::fresh_std(params, std::sqrt(10.5));
    verified = static_cast<double>(check.failed) <= allowed(static_cast<double>(check.gates));
    recorder.note("verified", Json::Object{{"gates", check.gates},
                                           {"failures", check.failed},
                                           {"expected_failures",
                                            double(check.gates) * std::exp2(params.p_fail_log2())},
                                           {"phase_std", measured},
                                           {"phase_std_model", expected},
                                           {"seconds", lap()}});
  }
  const int code = recorder.finish(o.json, context.device());
  return verified ? code : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const crenel::Error& e) {
    std::fprintf(stderr, "%s: %s\n", e.code().c_str(), e.what());
    return 1;
  }
}
