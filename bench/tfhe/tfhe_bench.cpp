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

#include "harness/recorder.h"
#include "harness/suites.h"
#include "tfhe/host_copy.h"
#include "tfhe/options.h"
#include "tfhe/workload.h"

namespace crenel::bench {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

tfhe::Params chosen(const TfheOptions& o) {
  tfhe::Params params = tfhe::Params::preset(o.set, true);
  if (o.slots != 1) params = params.with_slots(tfhe::SlotCount(o.slots));
  if (o.step != 0) params = params.with_step(o.step);
  if (o.arithmetic) params = params.with_arithmetic(*o.arithmetic);
  return params;
}

/// One operation with its keys on one device.
class TfheBench {
 public:
  TfheBench(const TfheOptions& options, const tfhe::Params& params)
      : o_(options),
        params_(params),
        op_(make_operation(params, options.operation, options.floor_bits)),
        start_(now()),
        context_(params, options.device),
        context_seconds_(now() - start_),
        client_(context_.keygen()),
        keys_(client_.evaluation_keys()),
        // measured as asked; what fails is counted and compared with allowed()
        ev_(context_.evaluator(keys_, {0.0})) {
    context_.stream().synchronize();
    keys_seconds_ = now() - start_ - context_seconds_;
    budget_.group_seconds = 0.05;
    if (o_.quick) budget_ = {0.0, 0.5, 0.1, 3, 10};
  }

  int run(const Words& words);

 private:
  void describe() const;
  /// Of one bootstrap of the operation: gates have their own, functions what the set states.
  double p_fail_log2() const {
    return op_.gate ? ev_.p_fail_log2(*op_.gate) : params_.p_fail_log2();
  }
  double allowed(double operations, double p_fail_log2) const;
  void time(Recorder& recorder, const char* mode, const Workload& w,
            const std::function<void()>& call, double bytes) const;
  void transfers(Recorder& recorder, const Workload& work) const;
  void note_keys(Recorder& recorder) const;
  bool verify(Recorder& recorder);

  const TfheOptions& o_;
  const tfhe::Params& params_;
  const Operation op_;
  const double start_;
  const tfhe::Context context_;
  const double context_seconds_;
  tfhe::Client client_;
  const tfhe::EvaluationKeys keys_;
  const tfhe::Evaluator ev_;
  double keys_seconds_ = 0.0;
  Budget budget_;
  std::mt19937_64 rng_{2026};
};

void TfheBench::describe() const {
  std::printf("%s on %s, %u a mask, %s: %s\n", o_.set.c_str(),
              context_.device().info().description.c_str(), params_.slots().value,
              tfhe::to_string(params_.arithmetic()), op_.name.c_str());
  std::printf("a bootstrap fails with probability 2^%.1f; %.1f bits of security\n",
              params_.p_fail_log2(), params_.security_bits());
  if (params_.below_norm()) std::printf("%s\n", params_.warning().c_str());
}

// Paper sets fail now and then: three standard deviations above what the model expects.
double TfheBench::allowed(double operations, double p_fail_log2) const {
  const double expected = operations * op_.bootstraps * std::exp2(p_fail_log2);
  return expected < 1e-3 ? 0.5 : expected + 3.0 * std::sqrt(expected) + 1.0;
}

void TfheBench::time(Recorder& recorder, const char* mode, const Workload& w,
                     const std::function<void()>& call, double bytes) const {
  const auto outputs = op_.run(ev_, w.pointers());
  const u64 size = w.expected.front().size();
  Result r{op_.name, {}, {}, static_cast<u32>(size), 0.0, 0.0, bytes};
  r.error = static_cast<double>(failures(client_, outputs, w.expected));
  r.bound = allowed(static_cast<double>(size), p_fail_log2());
  r.timing = measure(call, [&] { context_.stream().synchronize(); }, budget_);
  const double rate = static_cast<double>(size) / r.timing.median;
  r.axes = {{"params", o_.set},
            {"params_id", params_.id()},
            {"slots", params_.slots().value},
            {"step", params_.spec().step},
            {"arithmetic", tfhe::to_string(params_.arithmetic())},
            {"operation", op_.name},
            {"mode", mode},
            {"bootstraps_per_operation", op_.bootstraps},
            {"p_fail_log2", p_fail_log2()},
            {"security_bits", params_.security_bits()},
            {"size", size},
            {"digest", digest(client_, outputs)},
            {"operations_per_s", rate},
            {"bootstraps_per_s", rate * op_.bootstraps},
            {"failures", r.error}};
  recorder.add(r);
  std::printf("  %s: %.0f %s/s, %.0f bootstraps/s\n", mode, rate, op_.name.c_str(),
              rate * op_.bootstraps);
}

void TfheBench::transfers(Recorder& recorder, const Workload& work) const {
  HostCopy host(work.pointers(), context_.device().info().kind == device::Kind::cuda);
  host.call(op_, ev_);
  time(recorder, "transfers", work, [&] { host.call(op_, ev_); }, host.bytes());
  recorder.note("page_locked_host_memory", host.locked());
}

void TfheBench::note_keys(Recorder& recorder) const {
  recorder.note("keys", Json::Object{{"device_bytes", keys_.bytes()},
                                     {"wire_bytes", keys_.wire_bytes()},
                                     {"context_s", context_seconds_},
                                     {"keys_s", keys_seconds_},
                                     {"pool_bytes_peak", context_.stream().peak_bytes()}});
}

bool TfheBench::verify(Recorder& recorder) {
  const double start = now();
  Check check;
  check.run(client_, ev_, o_.verify, o_.batch, rng_);
  const double operations = static_cast<double>(check.operations);
  std::printf("  %llu checked at squared factors of %g: %llu failures\n",
              static_cast<unsigned long long>(check.operations), check.norm2,
              static_cast<unsigned long long>(check.failed));
  recorder.note("verified",
                Json::Object{{"operations", check.operations},
                             {"norm2", check.norm2},
                             {"failures", check.failed},
                             {"expected_failures", operations * std::exp2(params_.p_fail_log2())},
                             {"phase_std", std::sqrt(check.squares / operations)},
                             {"phase_std_model", tfhe::fresh_std(params_, std::sqrt(10.5))},
                             {"seconds", now() - start}});
  return static_cast<double>(check.failed) <= allowed(operations, params_.p_fail_log2());
}

int TfheBench::run(const Words& words) {
  describe();
  const Workload work = draw(client_, op_, o_.batch, rng_);
  const auto call = [&](const Workload& w) {
    return [this, inputs = w.pointers()] { op_.run(ev_, inputs); };
  };
  if (o_.once) {
    for (int i = 0; i < 2; ++i) call(work)();
    context_.stream().synchronize();
    if (o_.verify == 0) return 0;
  }
  Recorder recorder("tfhe", words);
  if (!o_.once) time(recorder, "resident", work, call(work), 0.0);
  if (!o_.once && o_.transfers) transfers(recorder, work);
  if (!o_.once && !o_.no_latency) {
    const Workload single = draw(client_, op_, params_.slots().value, rng_);
    time(recorder, "latency", single, call(single), 0.0);
  }
  note_keys(recorder);
  const bool verified = !o_.verify || verify(recorder);
  const int code = recorder.finish(o_.json, context_.device());
  return verified ? code : 1;
}

}  // namespace

int run_tfhe(const Words& words) {
  const auto options = parse_tfhe_options(words);
  if (!options) return 0;
  const tfhe::Params params = chosen(*options);
  return TfheBench(*options, params).run(words);
}

}  // namespace crenel::bench
