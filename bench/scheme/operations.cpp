// What a server does, at one level: eager or replayed from a CUDA graph; queued many at a time, or
// each call by itself, on the same inputs or on inputs that take turns.
#include "harness/event_timer.h"
#include "scheme/bench_world.h"

namespace crenel::bench {
namespace {

using ckks::Ciphertext;
using ckks::Plaintext;

/// What operations read.
struct Inputs {
  Ciphertext a, b, product, lazy;
  Plaintext p;
};

struct Operation {
  const char* name;
  std::function<std::vector<Ciphertext>(const Inputs&)> call;
  Values expected;  ///< of the last output
};

/// Equal inputs at different addresses, and the outputs of as many calls: one call after the other
/// finds none of them in the cache.
class Rotation {
 public:
  Rotation(const std::function<Inputs()>& make, u64 bytes) {
    do inputs_.push_back(make());
    while (inputs_.size() * inputs_[0].a.bytes() < bytes);  // an operation reads one at least
    outputs_.resize(inputs_.size());
  }
  void call(const Operation& op) {
    outputs_[next_] = op.call(inputs_[next_]);
    next_ = (next_ + 1) % inputs_.size();
  }
  const Ciphertext& last() const { return outputs_.front().back(); }

 private:
  std::vector<Inputs> inputs_;
  std::vector<std::vector<Ciphertext>> outputs_;
  std::size_t next_ = 0;
};

/// More than three times what the second-level cache of the GPUs at hand holds (H200: 50 MiB).
constexpr u64 kRotatedBytes = u64(192) << 20;

template <class... C>
std::vector<Ciphertext> list(C&&... c) {
  std::vector<Ciphertext> out;
  (out.push_back(std::forward<C>(c)), ...);
  return out;
}

Values rolled(const Values& v, i64 steps, u64 slots) {
  Values out(v.size());
  for (u64 i = 0; i < v.size(); ++i)
    out[i] = v[i / slots * slots + (i % slots + static_cast<u64>(steps)) % slots];
  return out;
}

template <class F>
Values zip(const Values& a, const Values& b, F f) {
  Values out(a.size());
  for (u64 i = 0; i < a.size(); ++i) out[i] = f(a[i], b[i % b.size()]);
  return out;
}

// Scale of inputs: canonical, or at bootstrapping levels the one that a product keeps.
double scale_at(const ckks::Params& p, u32 level) {
  return level <= p.normal_top_level() ? p.scale(level) : p.rescale_ratio(level);
}

// One call captured and replayed; on devices without graphs the call runs again.
class Replayed {
 public:
  Replayed(BenchWorld& w, const Operation& op, const Inputs& inputs) : stream_(w.ev.stream()) {
    exec_ = stream_.capture([&] { output_ = op.call(inputs); });
  }
  void launch() { exec_->launch(stream_); }
  const Ciphertext& last() const { return output_.back(); }

 private:
  device::Stream& stream_;
  std::vector<Ciphertext> output_;
  std::unique_ptr<device::GraphExec> exec_;
};

/// One operation at one level, in every way that it is timed.
class Measured {
 public:
  Measured(BenchWorld& w, Recorder& recorder, const Operation& op, u32 level, u32 batch)
      : w_(w), recorder_(recorder), op_(op), level_(level), batch_(batch) {}

  void replayed(const Inputs& inputs) {
    Replayed replayed(w_, op_, inputs);
    const Timing t = measure([&] { replayed.launch(); }, sync(), w_.budget());
    record(t, true, "queued", "same", replayed.last());
  }
  void eager(const Inputs& inputs, const std::function<Inputs()>& make) {
    const auto call = [&] { op_.call(inputs); };
    record(measure(call, sync(), w_.budget()), false, "queued", "same", op_.call(inputs).back());
    if (!has_event_timer(stream())) return;
    const Timing same = measure_each(call, stream(), w_.budget());
    record(same, false, "each", "same", op_.call(inputs).back());
    Rotation rotation(make, kRotatedBytes);
    const Timing apart = measure_each([&] { rotation.call(op_); }, stream(), w_.budget());
    record(apart, false, "each", "rotating", rotation.last());
  }

 private:
  device::Stream& stream() const { return w_.ev.stream(); }
  std::function<void()> sync() const {
    return [this] { stream().synchronize(); };
  }
  void record(const Timing& timing, bool graph, const char* how, const char* inputs,
              const Ciphertext& output) {
    Result r;
    r.name = op_.name;
    r.axes = w_.axes(level_);
    r.axes.emplace_back("graph", graph);
    r.axes.emplace_back("timing", how);
    r.axes.emplace_back("inputs", inputs);
    r.batch = batch_;
    r.timing = timing;
    r.error = max_error(w_.client.decrypt(output), op_.expected);
    // Products before their rescale hold a message of the scale of its factors.
    const double scale = output.level() == level_ ? scale_at(w_.params(), level_) : output.scale();
    r.bound = 3.0 * w_.bound(std::min(scale, output.scale()));  // a sum of eight has sqrt(8) times
    r.bytes = static_cast<double>(output.bytes());
    recorder_.add(r);
  }

  BenchWorld& w_;
  Recorder& recorder_;
  const Operation& op_;
  u32 level_, batch_;
};

}  // namespace

void bench_operations(BenchWorld& w, Recorder& recorder, u32 level, u32 batch, bool graph) {
  const auto& ev = w.ev;
  const u64 slots = w.params().slots();
  const double scale = scale_at(w.params(), level);
  const Values x = w.values(1, batch), y = w.values(2, batch), weights = w.values(3, 1);
  const Ciphertext a = w.client.encrypt(x, level, scale, 0, batch);
  const Ciphertext b = w.client.encrypt(y, level, scale, 0, batch);
  const Ciphertext product = ev.multiply(a, b), lazy = ev.multiply_lazy(a, b);
  const auto make = [&]() -> Inputs {
    return {a.clone(), b.clone(), product.clone(), lazy.clone(),
            w.context.encode(weights, level, scale)};
  };
  const Inputs inputs = make();
  const auto times = [](Complex s, Complex t) { return s * t; };
  const Values xy = zip(x, y, times);
  const auto& steps = hoisted_steps();
  Values sum(x.size());
  for (i64 s : steps)
    sum = zip(sum, rolled(x, s, slots), [](Complex s1, Complex s2) { return s1 + s2; });
  const std::vector<Operation> operations{
      {"hmult", [&](const Inputs& in) { return list(ev.multiply(in.a, in.b)); }, xy},
      {"hmult_rescale", [&](const Inputs& in) { return list(ev.multiply_rescale(in.a, in.b)); },
       xy},
      {"hmult_then_rescale",
       [&](const Inputs& in) { return list(ev.rescale(ev.multiply(in.a, in.b))); }, xy},
      {"relinearise", [&](const Inputs& in) { return list(ev.relinearise(in.lazy)); }, xy},
      {"hrot", [&](const Inputs& in) { return list(ev.rotate(in.a, 1)); }, rolled(x, 1, slots)},
      {"conjugate", [&](const Inputs& in) { return list(ev.conjugate(in.a)); },
       zip(x, x, [](Complex s, Complex) { return std::conj(s); })},
      {"rescale", [&](const Inputs& in) { return list(ev.rescale(in.product)); }, xy},
      {"hadd", [&](const Inputs& in) { return list(ev.add(in.a, in.b)); },
       zip(x, y, [](Complex s, Complex t) { return s + t; })},
      {"pmult", [&](const Inputs& in) { return list(ev.multiply(in.a, in.p)); },
       zip(x, weights, times)},
      {"rotate_many_8", [&](const Inputs& in) { return ev.rotate_many(in.a, steps); },
       rolled(x, steps.back(), slots)},
      {"rotate_sum_8", [&](const Inputs& in) { return list(ev.rotate_sum(in.a, steps)); }, sum}};
  for (const Operation& op : operations) {
    if (!w.wanted(op.name)) continue;
    Measured measured(w, recorder, op, level, batch);
    if (graph)
      measured.replayed(inputs);
    else
      measured.eager(inputs, make);
  }
}

}  // namespace crenel::bench
