// Loaders of TFHE, and what a server or a client does with what they load.
#include "fuzz/targets.h"

namespace crenel::test {
namespace {

using tfhe::Context;
using Span = std::span<const u8>;

struct World {
  Context context = tiny_tfhe();
  tfhe::Client client = context.keygen();
  tfhe::EvaluationKeys keys = client.evaluation_keys();
  tfhe::Evaluator evaluator = context.evaluator(keys);

  tfhe::Ciphertext encrypt(u64 size = 1) { return client.encrypt(std::vector<u64>(size, 1)); }
};

World& world() {
  static World w;
  return w;
}

/// Integers in a context of their own: p = 32.
struct IntegerWorld {
  Context context = small_lut4();
  tfhe::Client client = context.keygen();
};

IntegerWorld& integer_world() {
  static IntegerWorld w;
  return w;
}

template <class Load>
void run_array(Span bytes, const Context& context, const Load& load) {
  with_reseal(bytes, [&](Span b) {
    tfhe::ArrayInfo info;
    try_load(
        b, [&](Span c) { return load(context, c, &info, kFuzzLimits); },
        [&](const auto& array) { return tfhe::to_bytes(context, array, info); });
  });
}

void run_keys(Span bytes) {
  with_reseal(bytes, [](Span b) {
    try_load(
        b, [](Span c) { return tfhe::evaluation_keys_from_bytes(tiny_tfhe(), c, kFuzzLimits); },
        [](const tfhe::EvaluationKeys& keys) { return tfhe::to_bytes(tiny_tfhe(), keys); });
  });
}

void run_params(Span bytes) {
  with_reseal(bytes, [](Span b) {
    try_load(
        b, [](Span c) { return tfhe::params_from_bytes(c, true, kFuzzLimits); },
        [](const tfhe::Params& params) { return tfhe::to_bytes(params); });
  });
}

void run_secret_key(Span bytes) {
  with_reseal(bytes,
              [](Span b) { run_secret_loader(b, tiny_tfhe(), tfhe::Client::import_secret_key); });
}

void use(const tfhe::Ciphertext& x) {
  World& w = world();
  ++accepted_loads();
  const std::vector<std::function<void()>> each{
      [&] { w.client.decrypt(x); },
      [&] { w.evaluator.not_(x); },
      [&] { w.evaluator.gate(tfhe::Gate::and_, x, x); },
      [&] { w.evaluator.gate(tfhe::Gate::xor_, x, w.encrypt(x.size() % 8 + 1)); },
      [&] { w.evaluator.mux(x, x, x); },
      [&] { w.evaluator.refresh(x); },
      [&] { w.evaluator.floor(x, 1); },
      [&] { w.evaluator.sign(x); },
      [&] { x.clone(); },
  };
  for (const auto& operation : each) allow_errors(operation);
}

/// What loads is used; errors of the library are the worst that comes of it.
void run_operations(Span bytes) {
  World& w = world();
  const Bytes sealed = reseal(bytes);
  if (sealed.empty()) return;
  // A gate costs a bootstrap a message: few of them.
  constexpr LoadLimits kFew{u64{64} << 10};
  allow_errors([&] {
    const auto x = tfhe::ciphertext_from_bytes(w.context, sealed, nullptr, kFew);
    if (x.size() <= 16) use(x);
  });
  allow_errors([&] {
    const auto keys = tfhe::evaluation_keys_from_bytes(w.context, sealed, kFuzzLimits);
    ++accepted_loads();
    const auto x = w.encrypt(2);
    w.client.decrypt(w.context.evaluator(keys).gate(tfhe::Gate::or_, x, x));
  });
}

std::map<std::string, Bytes> ciphertext_seeds() {
  World& w = world();
  const auto fresh = w.encrypt(3);
  return {{"seeded", tfhe::to_bytes(w.context, fresh)},
          {"computed", tfhe::to_bytes(w.context, w.evaluator.not_(fresh), {{3}, "bool"})}};
}

std::map<std::string, Bytes> key_seeds() {
  World& w = world();
  return {{"keys", tfhe::to_bytes(w.context, w.keys)},
          {"packing", tfhe::to_bytes(w.context, w.client.evaluation_keys({true}))}};
}

std::map<std::string, Bytes> integer_seeds() {
  IntegerWorld& w = integer_world();
  const std::vector<u64> values{3, 1};
  const std::vector<i64> negative{-1};
  return {{"unsigned", tfhe::to_bytes(w.context, tfhe::encrypt_unsigned(w.client, values, 4))},
          {"signed", tfhe::to_bytes(w.context, tfhe::encrypt_signed(w.client, negative, 8))}};
}

std::map<std::string, Bytes> compressed_seeds() {
  const Context& context = small_groups();
  tfhe::Client client = context.keygen();
  const tfhe::Evaluator ev =
      context.evaluator(client.evaluation_keys({.lists = true}), {.max_p_fail_log2 = 0.0});
  const tfhe::IntegerEvaluator integers(ev);
  const std::vector<u64> values{3, 1};
  return {{"messages", tfhe::to_bytes(context, ev.compress(client.encrypt(values)))},
          {"lists",
           tfhe::to_bytes(context, ev.compress(client.encrypt(values), tfhe::StoredForm::lists))},
          {"integers",
           tfhe::to_bytes(context, integers.compress(tfhe::encrypt_unsigned(client, values, 4)))}};
}

}  // namespace

std::vector<FuzzTarget> tfhe_targets() {
  return {
      {"tfhe_params", run_params,
       [] {
         return std::map<std::string, Bytes>{
             {"tiny", tfhe::to_bytes(tiny_tfhe().params())},
             {"gadget", tfhe::to_bytes(tfhe::Params::preset("toy-gadget", true))}};
       }},
      {"tfhe_ciphertext", [](Span b) { run_array(b, tiny_tfhe(), tfhe::ciphertext_from_bytes); },
       ciphertext_seeds},
      {"tfhe_integers", [](Span b) { run_array(b, small_lut4(), tfhe::integers_from_bytes); },
       integer_seeds},
      {"tfhe_compressed", [](Span b) { run_array(b, small_groups(), tfhe::compressed_from_bytes); },
       compressed_seeds},
      {"tfhe_evaluation_keys", run_keys, key_seeds},
      {"tfhe_secret_key", run_secret_key,
       [] { return std::map<std::string, Bytes>{{"key", world().client.export_secret_key()}}; }},
      {"tfhe_operations", run_operations,
       [] {
         auto all = ciphertext_seeds();
         all.merge(key_seeds());
         return all;
       }},
  };
}

}  // namespace crenel::test
