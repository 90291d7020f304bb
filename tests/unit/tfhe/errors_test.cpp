// Operands that do not fit: which error, which fields, and inputs unharmed.
#include <functional>

#include "support/tfhe_world.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

class TfheErrors : public test::TfheTest {
 protected:
  /// The error thrown, which must be an E.
  template <class E>
  static E caught(const std::function<void()>& f) {
    try {
      f();
    } catch (const E& e) {
      EXPECT_STRNE(e.what(), "");
      return e;
    } catch (const Error& e) {
      ADD_FAILURE() << "another error: " << e.code() << ": " << e.what();
      return E("");
    }
    ADD_FAILURE() << "nothing thrown";
    return E("");
  }
};

TEST_P(TfheErrors, Encryption) {
  auto& w = world("gadget:r3");
  const auto e = caught<ParameterError>([&] { w.client.encrypt(Messages{0, 4, 1}); });
  EXPECT_EQ(e.field("index"), "1");
  EXPECT_EQ(e.field("message"), "");  // a message is nobody's business
  EXPECT_EQ(e.field("limit"), "4");
  caught<ParameterError>([&] { w.client.encrypt(Messages{~u64(0)}, 64); });
  EXPECT_EQ(caught<ParameterError>([&] { w.client.encrypt({}); }).field("size"), "0");
  EXPECT_EQ(
      caught<ParameterError>([&] { w.client.encrypt(Messages{0}, 5); }).field("plain_modulus"),
      "5");
  EXPECT_EQ(
      caught<ParameterError>([&] { w.client.encrypt(Messages{0}, 1u << 30); }).field("log_modulus"),
      "38");
  const auto beyond = caught<ParameterError>([&] { w.client.encrypt(Messages{0}, 2048); });
  EXPECT_EQ(beyond.field("log_modulus"), "19");
  EXPECT_EQ(beyond.field("bound"), "18");  // Q_KS
  caught<ParameterError>([&] { w.ev.trivial(Messages{0}, 2048); });
  caught<ParameterError>([&] { w.ev.trivial(Messages{4}); });
  caught<ParameterError>([&] { w.ev.trivial({}); });
  auto& padded = world("padded:r3");
  EXPECT_EQ(caught<ParameterError>([&] { padded.client.encrypt(Messages{8}); }).field("limit"),
            "8");
  EXPECT_EQ(padded.client.decrypt(padded.client.encrypt(Messages{7})), Messages{7});
}

TEST_P(TfheErrors, GateInputs) {
  auto& w = world("gadget:r3");
  const Messages x{0, 1, 1};
  const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(Messages{1, 1, 0});
  const Ciphertext longer = w.client.encrypt(Messages{1, 1, 0, 0});
  const Ciphertext eight = w.client.encrypt(x, 8), large = w.client.encrypt(x, 64);
  const Ciphertext foreign = world("raising").client.encrypt(x);

  auto e = caught<StateError>([&] { w.ev.gate(Gate::and_, a, longer); });
  EXPECT_EQ(e.field("found"), "4");
  EXPECT_EQ(e.field("expected"), "3");
  e = caught<StateError>([&] { w.ev.gate(Gate::and_, a, eight); });
  EXPECT_EQ(e.field("found"), "8");
  EXPECT_EQ(e.field("expected"), "4");
  e = caught<StateError>([&] { w.ev.gate(Gate::and_, foreign, a); });
  EXPECT_EQ(e.field("found"), foreign.params_id());
  EXPECT_EQ(e.field("expected"), w.params().id());
  caught<StateError>([&] { w.ev.gate(Gate::and_, a, large); });
  e = caught<StateError>([&] { w.ev.gate(Gate::xor_, a, a); });
  EXPECT_EQ(e.field("found"), "one ciphertext");
  const Ciphertext again = a.clone();  // OpenFHE's rule is about objects
  EXPECT_EQ(w.client.decrypt(w.ev.gate(Gate::and_, a, again)), x);

  const Ciphertext* three[] = {&a, &b, &again};
  const Ciphertext* repeated[] = {&a, &b, &a};
  EXPECT_EQ(caught<ParameterError>([&] { w.ev.gate(Gate::and_, three); }).field("expected"), "2");
  caught<ParameterError>([&] { w.ev.gate(Gate::majority, a, b); });
  caught<ParameterError>([&] { w.ev.gate(Gate::nand, {}); });
  caught<StateError>([&] { w.ev.gate(Gate::majority, repeated); });
  caught<StateError>([&] { w.ev.gate(Gate::and3, three); });  // p = 6 there
  caught<ParameterError>([&] { w.ev.gate(static_cast<Gate>(200), a, b); });

  caught<StateError>([&] { w.ev.mux(a, a, b); });
  caught<StateError>([&] { w.ev.mux(a, b, a); });
  caught<StateError>([&] { w.ev.mux(a, b, longer); });
  caught<StateError>([&] { w.ev.mux(eight, a, b); });
  caught<StateError>([&] { w.ev.not_(eight); });
  caught<StateError>([&] { w.ev.refresh(eight); });
  caught<StateError>([&] { w.ev.refresh(foreign); });
  EXPECT_EQ(w.client.decrypt(a), x);
}

TEST_P(TfheErrors, LookUpTables) {
  auto& w = world("padded:r3");
  const Messages x{0, 1, 7};
  const Ciphertext a = w.client.encrypt(x), large = w.client.encrypt(x, 64);
  const Lut fine{Messages(8, 3), 0};
  auto e = caught<ParameterError>([&] { w.ev.lut(a, Lut{Messages(12, 0), 0}); });
  EXPECT_EQ(e.field("entries"), "12");
  EXPECT_EQ(e.field("expected"), "8");
  Lut bad = fine;
  bad.table[5] = 8;  // the padded half
  e = caught<ParameterError>([&] { w.ev.lut(a, bad); });
  EXPECT_EQ(e.field("entry"), "5");
  EXPECT_EQ(e.field("limit"), "8");
  caught<ParameterError>([&] { w.ev.lut(a, Lut{Messages(8, 0), 3}); });
  caught<ParameterError>([&] { w.ev.lut(a, Lut{Messages(8, 0), 64}); });  // not at rest modulo q
  caught<StateError>([&] { w.ev.lut(large, Lut{Messages(32, 0), 0}); });
  caught<ParameterError>([&] { w.ev.lut(a, {}, {}); });

  const std::vector<Lut> two{fine, fine}, mixed{fine, Lut{Messages(8, 1), 4}};
  const std::vector<u32> index{0, 1, 0}, short_index{0, 1}, out_of_range{0, 2, 0};
  caught<ParameterError>([&] { w.ev.lut(a, two, {}); });
  caught<ParameterError>([&] { w.ev.lut(a, two, short_index); });
  EXPECT_EQ(caught<ParameterError>([&] { w.ev.lut(a, two, out_of_range); }).field("message"), "1");
  caught<ParameterError>([&] { w.ev.lut(a, mixed, index); });
  EXPECT_EQ(w.client.decrypt(w.ev.lut(a, two, index)), Messages(3, 3));
  EXPECT_EQ(w.client.decrypt(a), x);
}

TEST_P(TfheErrors, LinearCombinations) {
  auto& w = world("gadget:r3");
  const Ciphertext a = w.client.encrypt(Messages{0, 1}),
                   longer = w.client.encrypt(Messages{0, 1, 1});
  const Ciphertext eight = w.client.encrypt(Messages{0, 1}, 8);
  const Term none[] = {{nullptr, 1}}, sizes[] = {{&a, 1}, {&longer, 1}},
             moduli[] = {{&a, 1}, {&eight, 1}};
  const Term fine[] = {{&a, 1}};
  caught<ParameterError>([&] { w.ev.linear({}); });
  caught<ParameterError>([&] { w.ev.linear(none); });
  caught<StateError>([&] { w.ev.linear(sizes); });
  caught<StateError>([&] { w.ev.linear(moduli); });
  caught<ParameterError>([&] { w.ev.linear(fine, 0, 3); });
  caught<ParameterError>([&] { w.ev.linear(fine, 0, 512); });
}

TEST_P(TfheErrors, KeysAndContexts) {
  auto& w = world("gadget:r3");
  auto& other = world("raising");
  const auto e = caught<StateError>([&] { w.context.evaluator(other.keys); });
  EXPECT_EQ(e.field("found"), other.params().id());
  const Evaluator keyless = w.context.evaluator(EvaluationKeys(nullptr));
  const Messages x{0, 1, 1};
  const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(x);
  EXPECT_EQ(w.client.decrypt(keyless.not_(a)), (Messages{1, 0, 0}));
  EXPECT_EQ(caught<KeyMissingError>([&] { keyless.gate(Gate::and_, a, b); }).field("key"),
            "bootstrap");
  caught<KeyMissingError>([&] { keyless.mux(a, b, keyless.not_(b)); });
  caught<KeyMissingError>([&] { keyless.refresh(a); });
  caught<KeyMissingError>([&] { keyless.sign(a); });
  caught<KeyMissingError>([&] { keyless.lut(a, Lut{{0, 1, 0, 1}, 0}); });
  EXPECT_EQ(keyless.keys().bytes(), 0u);
  EXPECT_EQ(keyless.keys().wire_bytes(), 0u);
  EXPECT_FALSE(keyless.keys().has_packing());
  EXPECT_EQ(caught<StateError>([&] { other.client.decrypt(a); }).field("found"), a.params_id());
  caught<StateError>([&] { other.client.phase_errors(a, x); });
}

TEST_P(TfheErrors, DevicesDiffer) {
  const std::string elsewhere = GetParam() == "ref" ? "cpu" : "ref";
  auto& here = world("gadget:r3");
  auto& there = test::tfhe_world(elsewhere, "gadget:r3");
  const Ciphertext a = here.client.encrypt(Messages{1, 0, 1}),
                   b = there.client.encrypt(Messages{1, 0, 1});
  const auto e = caught<StateError>([&] { here.ev.gate(Gate::and_, a, b); });
  EXPECT_EQ(e.field("found"), elsewhere);
  EXPECT_EQ(e.field("expected"), GetParam());
  caught<StateError>([&] { here.context.evaluator(there.keys); });
  caught<StateError>([&] { here.client.decrypt(b); });
  const Ciphertext* parts[] = {&a, &b};
  caught<StateError>([&] { concatenate(parts); });
}

CRENEL_DEVICE_SUITE(TfheErrors);

}  // namespace
}  // namespace crenel::tfhe
