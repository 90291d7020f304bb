// What a client does, and what happens once: context, keys, encode, encrypt, decrypt.
#include "scheme/bench_world.h"

namespace crenel::bench {
namespace {

// Seconds-long calls are timed one by one, a few times.
Budget few(const BenchWorld& w) {
  return w.options.quick ? Budget{0.0, 0.0, 1.0, 1, 1} : Budget{0.0, 3.0, 0.05, 3, 5};
}

void bench_context(BenchWorld& w, Recorder& recorder) {
  Result r{"context", w.axes(), {}, 1, 0.0, 0.0, 0.0};
  std::optional<ckks::Context> made;
  r.timing = measure([&] { made.emplace(w.params(), w.options.device.open()); },
                     [&] {
                       if (made) made->stream().synchronize();
                     },
                     few(w));
  const Values x = w.values(4, 1);
  r.error = max_error(made->decode(made->encode(x)), x);
  r.bound = w.bound(w.params().scale(0));
  recorder.add(r);
}

void bench_keys(BenchWorld& w, Recorder& recorder) {
  const bool gpu = w.context.device().info().kind == device::Kind::cuda;
  const i64 count = w.options.quick || !gpu ? 4 : 60;
  ckks::KeyRequest request{{}, false, false};
  for (i64 k = 1; k <= count; ++k) request.rotations.push_back(k);
  Result r{"keygen_rotations", w.axes(), {}, static_cast<u32>(count), 0.0, 0.0, 0.0};
  ckks::EvaluationKeys keys;
  r.timing = measure([&] { keys = {}, keys = w.client.evaluation_keys(request); },
                     [&] { w.context.stream().synchronize(); }, few(w));
  const Values x = w.values(5, 1);
  Values expected(x.size());
  for (u64 i = 0; i < x.size(); ++i) expected[i] = x[(i + static_cast<u64>(count)) % x.size()];
  const auto rotated = w.context.evaluator(keys).rotate(w.client.encrypt(x), count);
  r.error = max_error(w.client.decrypt(rotated), expected);
  r.bound = w.bound(rotated.scale());
  r.bytes = static_cast<double>(keys.bytes());
  recorder.add(r);
}

}  // namespace

void bench_client(BenchWorld& w, Recorder& recorder) {
  const u32 level = w.params().normal_top_level();
  const Values x = w.values(6, 1);
  const auto sync = [&] { w.context.stream().synchronize(); };
  const auto plain = w.context.encode(x);
  const auto cipher = w.client.encrypt(x);
  const auto public_key = w.client.public_key();
  const double bound = w.bound(w.params().scale(level));
  const auto record = [&](const char* name, const std::function<void()>& call,
                          const std::function<Values()>& output, double allowed) {
    if (!w.wanted(name)) return;
    Result r{name, w.axes(level), {}, 1, 0.0, allowed, 0.0};
    r.timing = measure(call, sync, w.budget());
    r.error = max_error(output(), x);
    recorder.add(r);
  };
  record(
      "encode", [&] { w.context.encode(x); }, [&] { return w.context.decode(w.context.encode(x)); },
      bound);
  record(
      "decode", [&] { w.context.decode(plain); }, [&] { return w.context.decode(plain); }, bound);
  record(
      "encrypt", [&] { w.client.encrypt(plain); },
      [&] { return w.client.decrypt(w.client.encrypt(plain)); }, bound);
  record(
      "encrypt_public_key", [&] { public_key.encrypt(plain); },
      [&] { return w.client.decrypt(public_key.encrypt(plain)); }, 4.0 * bound);
  record(
      "encode_encrypt", [&] { w.client.encrypt(x); },
      [&] { return w.client.decrypt(w.client.encrypt(x)); }, bound);
  record(
      "decrypt_decode", [&] { w.client.decrypt(cipher); }, [&] { return w.client.decrypt(cipher); },
      bound);
  if (w.wanted("context")) bench_context(w, recorder);
  if (w.wanted("keygen_rotations")) bench_keys(w, recorder);
}

}  // namespace crenel::bench
