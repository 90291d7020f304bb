#include "boot/tenants.h"

#include <cmath>

namespace crenel::bench {
namespace {

/// A client with keys, and a message.
struct Tenant {
  ckks::Client client;
  ckks::Evaluator ev;
  Values message;
  ckks::Ciphertext input;

  Tenant(const BootWorld& w, ckks::Client c, std::mt19937_64& rng)
      : client(std::move(c)),
        ev(w.context.evaluator(
            client.evaluation_keys(circuits::bootstrap_key_request(w.params, w.boot.options())))),
        message(uniform(rng, w.slots() * w.options.batch)),
        input(client.encrypt(message, w.boot.levels().input, 0.0, w.slots(), w.options.batch)) {}

  double error(const ckks::Ciphertext& output) {
    return Errors().add(client.decrypt(output), message);
  }
};

Budget budget_of(const BootWorld& w) {
  if (w.options.quick) return {0.0, 0.5, 0.1, 3, 10};
  return {};
}

Result row_of(const BootWorld& w, u32 batch, Json::Object more) {
  Result r{"bootstrap", w.axes(), {}, batch, 0.0, w.bound(), 0.0};
  r.axes.insert(r.axes.end(), more.begin(), more.end());
  return r;
}

// Negative where the pool gave memory back meanwhile.
double grown_since(u64 before, u64 now) {
  return static_cast<double>(now) - static_cast<double>(before);
}

}  // namespace

void measure_tenants(BootWorld& w, Recorder& recorder, std::mt19937_64& rng) {
  const circuits::Bootstrapper boot(w.context, w.options.options);
  std::vector<Tenant> tenants;
  Json::Array grown;  // keys, and everything else that a first bootstrap takes
  for (u32 k = 0; k < w.options.tenants; ++k) {
    w.stream().synchronize();
    const u64 before = w.context.device().memory().used, pool = w.stream().bytes_in_use();
    tenants.emplace_back(w, w.context.keygen(), rng);
    const u64 keys = tenants.back().ev.keys().bytes();
    const ckks::Ciphertext output = boot(tenants.back().ev, tenants.back().input);
    const double error = tenants.back().error(output);
    w.stream().synchronize();
    grown.push_back(
        Json::Object{{"driver_bytes", grown_since(before, w.context.device().memory().used)},
                     {"pool_bytes", grown_since(pool + output.bytes(), w.stream().bytes_in_use())},
                     {"key_bytes", keys},
                     {"input_bytes", tenants.back().input.bytes()},
                     {"error_log2", std::log2(error)}});
  }
  recorder.note("memory_by_tenant", std::move(grown));
  const auto time = [&](u32 clients) {
    Result r = row_of(w, w.options.batch, {{"tenants", clients}, {"graph", w.has_graphs()}});
    u64 call = 0;
    r.timing = measure(
        [&] {
          const Tenant& t = tenants[call++ % clients];
          boot(t.ev, t.input);
        },
        [&] { w.stream().synchronize(); }, budget_of(w));
    for (u32 k = 0; k < clients; ++k)
      r.error = std::max(r.error, tenants[k].error(boot(tenants[k].ev, tenants[k].input)));
    recorder.add(r);
  };
  time(1);
  time(w.options.tenants);
  time(1);
}

void measure_staged(BootWorld& w, Recorder& recorder, std::mt19937_64& rng) {
  constexpr u32 kBatches[] = {1, 8, 32};
  const auto time = [&](const ckks::Evaluator& ev, u32 batch, Json::Object more) {
    const Values message = uniform(rng, w.slots() * batch);
    const ckks::Ciphertext input =
        w.client.encrypt(message, w.boot.levels().input, 0.0, w.slots(), batch);
    Result r = row_of(w, batch, std::move(more));
    r.error = Errors().add(w.client.decrypt(w.boot.eager(ev, input)), message);
    r.timing =
        measure([&] { w.boot.eager(ev, input); }, [&] { w.stream().synchronize(); }, budget_of(w));
    recorder.add(r);
    w.stream().trim();
  };
  for (const u32 batch : kBatches) {
    time(w.context.evaluator(w.keys), batch,
         {{"graph", false}, {"resident_bytes", w.keys.bytes()}, {"host_bytes", 0}});
    for (const u32 mebibytes : w.options.resident) {
      const ckks::EvaluationKeys staged = w.keys.staged(u64(mebibytes) << 20);
      time(w.context.evaluator(staged), batch,
           {{"graph", false},
            {"resident_bytes", staged.bytes()},
            {"host_bytes", staged.host_bytes()}});
    }
  }
}

}  // namespace crenel::bench
