// What a server does, at one level: eager or replayed from a CUDA graph.
#include "scheme/bench_world.h"

namespace crenel::bench {
namespace {

using ckks::Ciphertext;
using ckks::Plaintext;

struct Operation {
  const char* name;
  std::function<std::vector<Ciphertext>()> call;
  Values expected;  ///< of the last output
};

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
  Replayed(BenchWorld& w, const Operation& op) : stream_(w.ev.stream()) {
    exec_ = stream_.capture([this, &op] { output_ = op.call(); });
  }
  void launch() { exec_->launch(stream_); }
  const Ciphertext& last() const { return output_.back(); }

 private:
  device::Stream& stream_;
  std::vector<Ciphertext> output_;
  std::unique_ptr<device::GraphExec> exec_;
};

void run(BenchWorld& w, Recorder& recorder, const Operation& op, u32 level, u32 batch, bool graph) {
  if (!w.wanted(op.name)) return;
  auto& stream = w.ev.stream();
  const auto sync = [&] { stream.synchronize(); };
  Result r;
  r.name = op.name;
  r.axes = w.axes(level);
  r.axes.emplace_back("graph", graph);
  r.batch = batch;
  const auto check = [&](const Ciphertext& output) {
    r.error = max_error(w.client.decrypt(output), op.expected);
    // Products before their rescale hold a message of the scale of its factors.
    const double scale = output.level() == level ? scale_at(w.params(), level) : output.scale();
    r.bound = 3.0 * w.bound(std::min(scale, output.scale()));  // a sum of eight has sqrt(8) times
    r.bytes = static_cast<double>(output.bytes());
  };
  if (graph) {
    Replayed replayed(w, op);
    r.timing = measure([&] { replayed.launch(); }, sync, w.budget());
    check(replayed.last());
  } else {
    r.timing = measure([&] { op.call(); }, sync, w.budget());
    check(op.call().back());
  }
  recorder.add(r);
}

}  // namespace

void bench_operations(BenchWorld& w, Recorder& recorder, u32 level, u32 batch, bool graph) {
  const auto& ev = w.ev;
  const u64 slots = w.params().slots();
  const double scale = scale_at(w.params(), level);
  const Values x = w.values(1, batch), y = w.values(2, batch), weights = w.values(3, 1);
  const Ciphertext a = w.client.encrypt(x, level, scale, 0, batch);
  const Ciphertext b = w.client.encrypt(y, level, scale, 0, batch);
  const Plaintext p = w.context.encode(weights, level, scale);
  const Ciphertext product = ev.multiply(a, b), lazy = ev.multiply_lazy(a, b);
  const auto times = [](Complex s, Complex t) { return s * t; };
  const Values xy = zip(x, y, times);
  const auto& steps = hoisted_steps();
  Values sum(x.size());
  for (i64 s : steps)
    sum = zip(sum, rolled(x, s, slots), [](Complex s1, Complex s2) { return s1 + s2; });
  const std::vector<Operation> operations{
      {"hmult", [&] { return list(ev.multiply(a, b)); }, xy},
      {"hmult_rescale", [&] { return list(ev.multiply_rescale(a, b)); }, xy},
      {"hmult_then_rescale", [&] { return list(ev.rescale(ev.multiply(a, b))); }, xy},
      {"relinearise", [&] { return list(ev.relinearise(lazy)); }, xy},
      {"hrot", [&] { return list(ev.rotate(a, 1)); }, rolled(x, 1, slots)},
      {"conjugate", [&] { return list(ev.conjugate(a)); },
       zip(x, x, [](Complex s, Complex) { return std::conj(s); })},
      {"rescale", [&] { return list(ev.rescale(product)); }, xy},
      {"hadd", [&] { return list(ev.add(a, b)); },
       zip(x, y, [](Complex s, Complex t) { return s + t; })},
      {"pmult", [&] { return list(ev.multiply(a, p)); }, zip(x, weights, times)},
      {"rotate_many_8", [&] { return ev.rotate_many(a, steps); }, rolled(x, steps.back(), slots)},
      {"rotate_sum_8", [&] { return list(ev.rotate_sum(a, steps)); }, sum}};
  for (const auto& op : operations) run(w, recorder, op, level, batch, graph);
}

}  // namespace crenel::bench
