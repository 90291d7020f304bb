// One set of keys and one set of ciphertexts, made on ref, evaluated on every device: equal bits.
#include <cstring>

#include "support/tfhe_world.h"
#include "tfhe/keygen.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

/// The keys of `from` in `to`, by their parts.
EvaluationKeys carried_keys(const EvaluationKeys& from, const Context& to) {
  const auto& data = *from.data();
  const auto switching = switch_bodies(from), packing = packing_bodies(from);
  EvaluationKeyParts parts;
  parts.secret_key = data.secret_key;
  parts.bootstrap_seed = data.bootstrap_seed;
  parts.bootstrap_bodies = data.bootstrap_bodies;
  parts.switch_seed = data.switch_seed;
  parts.switch_bodies = switching;
  if (from.has_packing()) {
    parts.packing_seed = data.packing_seed;
    parts.packing_bodies = packing;
  }
  return keys_from_parts(to, parts);
}

class TfheDevices : public test::DeviceTest {
 protected:
  /// The worlds of ref and of the candidate with ref's keys.
  struct Pair {
    Pair(const std::string& device, const std::string& name)
        : reference(test::tfhe_world("ref", name, true)),
          context(reference.params(), device),
          ev(context.evaluator(carried_keys(reference.keys, context), {0.0})) {}
    test::TfheWorld& reference;
    Context context;
    Evaluator ev;
  };

  using Inputs = std::vector<Ciphertext>;
  using Operation = std::function<std::vector<Ciphertext>(const Evaluator&, const Inputs&)>;

  /// The operation gives the same words, and sizes, on both devices.
  static void expect_same(Pair& pair, const Inputs& inputs, const Operation& operation,
                          const std::string& what) {
    Inputs there;
    for (const auto& c : inputs) there.push_back(test::carried(c, pair.context));
    const auto expected = operation(pair.reference.ev, inputs), got = operation(pair.ev, there);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const auto a = test::words_of(got[i]), b = test::words_of(expected[i]);
      ASSERT_EQ(a.size(), b.size());
      EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(u32)), 0)
          << what << " " << i << "; repeat with CRENEL_SEED=" << test::run_seed();
      EXPECT_EQ(got[i].plain_modulus(), expected[i].plain_modulus());
    }
  }

  static Inputs encrypted(Pair& pair, u32 count, u64 size, u32 p, u64 limit) {
    auto rng = test::test_rng();
    Inputs out;
    for (u32 i = 0; i < count; ++i)
      out.push_back(pair.reference.client.encrypt(test::random_messages(rng, size, limit), p));
    return out;
  }

  static std::vector<Ciphertext> one(Ciphertext c) {
    std::vector<Ciphertext> v;
    v.push_back(std::move(c));
    return v;
  }
};

TEST_P(TfheDevices, GatesHaveEqualBits) {
  for (const char* name :
       {"gadget:exact", "gadget:approx:r3", "gadget2:exact:r3", "gadget2:approx:binary",
        "raising:exact:binary:r2", "raising:approx:r5", "raising:approx", "rounded:approx",
        "sparse:r3", "gadget2:split:r3", "large:split:binary"}) {
    Pair pair(GetParam(), name);
    const auto inputs = encrypted(pair, 3, 7, 4, 2);
    SCOPED_TRACE(name);
    expect_same(
        pair, inputs,
        [](const Evaluator& ev, const Inputs& in) {
          auto out = one(ev.gate(Gate::nand, in[0], in[1]));
          out.push_back(ev.gate(Gate::xor_, in[1], in[2]));
          const Ciphertext* three[] = {&in[0], &in[1], &in[2]};
          out.push_back(ev.gate(Gate::majority, three));
          out.push_back(ev.mux(in[0], in[1], in[2]));
          out.push_back(ev.refresh(out[0]));
          out.push_back(ev.not_(out[1]));
          return out;
        },
        "gate");
  }
}

TEST_P(TfheDevices, LookUpTablesHaveEqualBits) {
  auto rng = test::test_rng();
  for (const char* name :
       {"padded:exact:r3", "padded:approx", "toy-lut4", "func:exact:r2", "func:approx:binary"}) {
    Pair pair(GetParam(), name);
    const u32 p = pair.context.params().spec().plain_modulus;
    const u32 limit = message_limit(pair.context.params(), p);
    std::vector<Lut> luts;
    for (int t = 0; t < 3; ++t) luts.push_back({test::random_messages(rng, limit, limit), 0});
    std::vector<u32> index;
    for (u64 i = 0; i < 8; ++i) index.push_back(u32(rng() % 3));
    SCOPED_TRACE(name);
    expect_same(
        pair, encrypted(pair, 2, 8, p, limit / 2),
        [&](const Evaluator& ev, const Inputs& in) {
          auto out = one(ev.lut(in[0], luts[0]));
          out.push_back(ev.lut(in[0], luts, index));
          const Term terms[] = {{&in[0], 1}, {&in[1], -3}};
          out.push_back(ev.lut(ev.linear(terms, 5), luts[1]));
          return out;
        },
        "table");
  }
}

TEST_P(TfheDevices, FunctionsOfLargeMessagesHaveEqualBits) {
  for (const char* name : {"large", "large:r3:binary", "gadget:approx"}) {
    Pair pair(GetParam(), name);
    SCOPED_TRACE(name);
    expect_same(
        pair, encrypted(pair, 1, 5, 64, 64),
        [](const Evaluator& ev, const Inputs& in) {
          auto out = ev.decompose(in[0], 2);
          out.push_back(ev.sign(in[0]));
          out.push_back(ev.floor(in[0], 1));
          return out;
        },
        "function");
  }
}

TEST_P(TfheDevices, PackingHasEqualBits) {
  for (const char* name : {"gadget:r3", "raising:approx:r5"}) {
    Pair pair(GetParam(), name);
    Client one_slot = pair.reference.client.single();
    const Context single(pair.context.params().with_slots(SlotCount(1)),
                         pair.context.device().shared_from_this());
    const Ciphertext c = one_slot.encrypt(Messages{1, 0, 0, 1, 1, 0, 1}, 4);
    const Ciphertext here = pair.reference.ev.pack(c);
    const Ciphertext there = pair.ev.pack(test::carried(c, single));
    EXPECT_EQ(test::words_of(there), test::words_of(here)) << name;
  }
}

TEST_P(TfheDevices, SecretsTravelAsBytes) {
  for (const char* name : {"gadget:approx:r3", "raising:binary:approx"}) {
    Pair pair(GetParam(), name);
    Client there =
        Client::import_secret_key(pair.context, pair.reference.client.export_secret_key());
    const Messages x{1, 2, 0, 3, 1};
    const Ciphertext c = pair.reference.client.encrypt(x), d = there.encrypt(x);
    EXPECT_EQ(there.decrypt(test::carried(c, pair.context)), x);
    EXPECT_EQ(pair.reference.client.decrypt(test::carried(d, pair.reference.context)), x);
    // Keys made there serve here.
    const EvaluationKeys keys = carried_keys(there.evaluation_keys(), pair.reference.context);
    const Evaluator ev = pair.reference.context.evaluator(keys, {0.0});
    const Ciphertext a = pair.reference.client.encrypt(Messages{0, 1, 0, 1});
    const Ciphertext b = pair.reference.client.encrypt(Messages{0, 0, 1, 1});
    EXPECT_EQ(pair.reference.client.decrypt(ev.gate(Gate::xnor, a, b)), (Messages{1, 0, 0, 1}));
  }
}

CRENEL_CANDIDATE_SUITE(TfheDevices);

}  // namespace
}  // namespace crenel::tfhe
