// Gates: truth tables on every noise path, windows phase by phase, MUX, circuits.
#include <functional>

#include "support/tfhe_world.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

constexpr Gate kEveryGate[] = {Gate::and_, Gate::or_,  Gate::nand,     Gate::nor,
                               Gate::xor_, Gate::xnor, Gate::majority, Gate::and3,
                               Gate::or3,  Gate::and4, Gate::or4};

u64 plain_gate(Gate gate, std::span<const u64> in) {
  u64 sum = 0;
  for (u64 x : in) sum += x;
  switch (gate) {
    case Gate::and_:
    case Gate::and3:
    case Gate::and4:
      return sum == in.size();
    case Gate::or_:
    case Gate::or3:
    case Gate::or4:
      return sum > 0;
    case Gate::nand:
      return sum < 2;
    case Gate::nor:
      return sum == 0;
    case Gate::xor_:
      return sum == 1;
    case Gate::xnor:
      return sum != 1;
    case Gate::majority:
      return sum >= 2;
  }
  return 2;
}

class TfheGates : public test::TfheTest {
 protected:
  std::vector<const char*> names() const {
    if (!exhaustive()) return {"gadget:r3", "raising:binary:approx", "sparse"};
    return {"gadget:exact",      "gadget:approx:r3",        "gadget:binary:r5:exact",
            "gadget2:exact:r3",  "gadget2:approx:binary",   "raising:exact",
            "raising:approx:r5", "raising:binary:exact:r3", "raising:binary:approx",
            "sparse:r3",         "sparse:exact:binary",     "rounded:approx",
            "rounded:exact:r5",  "gadget2:split:r3"};
  }
  /// Fresh encryptions, sqrt(10.5 inputs), must be seven standard deviations away from the edge.
  static bool has_room(const test::TfheWorld& w, Gate gate) {
    const double edge =
        std::exp2(w.params().spec().log_lwe_modulus) / (2.0 * plain_modulus_of(gate));
    return edge > 7.0 * std::sqrt(10.5 * fan_in(gate));
  }
};

TEST_P(TfheGates, TruthTables) {
  for (const char* name : names()) {
    auto& w = world(name);
    int checked = 0;
    for (Gate gate : kEveryGate) {
      if (!has_room(w, gate)) continue;
      ++checked;
      const u32 inputs = fan_in(gate), p = plain_modulus_of(gate), size = 1u << inputs;
      std::vector<Ciphertext> encrypted;
      std::vector<const Ciphertext*> pointers;
      Messages expected(size);
      for (u32 i = 0; i < inputs; ++i) {
        Messages column(size);
        for (u32 row = 0; row < size; ++row) column[row] = row >> i & 1;
        encrypted.push_back(w.client.encrypt(column, p));
      }
      for (auto& c : encrypted) pointers.push_back(&c);
      for (u32 row = 0; row < size; ++row) {
        Messages bits;
        for (u32 i = 0; i < inputs; ++i) bits.push_back(row >> i & 1);
        expected[row] = plain_gate(gate, bits);
      }
      const Ciphertext out = w.ev.gate(gate, pointers);
      EXPECT_EQ(out.plain_modulus(), p);
      EXPECT_EQ(w.client.decrypt(out), expected) << name_of(gate) << " on " << name;
    }
    EXPECT_GE(checked, 9) << name;
  }
}

TEST_P(TfheGates, WindowsAreOpenFhes) {
  // c / q of OpenFHE; the output is 0 in [c, c + q/2), for every phase of the sum.
  const std::pair<u32, u32> window[] = {{7, 8}, {5, 8},   {3, 8},  {1, 8},   {6, 8}, {2, 8},
                                        {7, 8}, {11, 12}, {7, 12}, {15, 16}, {9, 16}};
  for (const char* name : {"gadget:r3", "sparse:r3"}) {
    auto& w = world(name);
    const u32 log_q = w.params().spec().log_lwe_modulus, q = 1u << log_q;
    for (std::size_t g = 0; g < std::size(kEveryGate); ++g) {
      const Gate gate = kEveryGate[g];
      if (!exhaustive() && g % 4 != 2) continue;
      const u32 p = plain_modulus_of(gate);
      const u32 factor = gate == Gate::xor_ || gate == Gate::xnor ? 2 : 1;
      const u32 start = q * window[g].first / window[g].second;
      auto phases = test::all_phases(log_q);
      if (!exhaustive()) {  // around both edges
        phases.clear();
        for (u32 edge : {start, start + q / 2})
          for (u32 d = 0; d < 9; ++d) phases.push_back((edge / factor + d - 4) & (q - 1));
      }
      std::vector<Ciphertext> inputs;
      inputs.push_back(test::at_phases(w, phases, p, log_q));
      for (u32 i = 1; i < fan_in(gate); ++i)
        inputs.push_back(test::at_phases(w, std::vector<u32>(phases.size(), 0), p, log_q));
      std::vector<const Ciphertext*> pointers;
      for (auto& c : inputs) pointers.push_back(&c);
      Messages expected;
      for (u32 x : phases) expected.push_back(((factor * x - start) & (q - 1)) < q / 2 ? 0 : 1);
      EXPECT_EQ(w.client.decrypt(w.ev.gate(gate, pointers)), expected) << name_of(gate);
    }
  }
}

TEST_P(TfheGates, OutputsStandWhereOpenFhePutsThem) {
  // Q = Q_KS = q = 2^20: nothing is rounded, 1 stands at 2 (floor(Q / 2p) + 1), 0 at 0.
  auto& w = world("rounded:exact:r5");
  const u32 log_q = w.params().spec().log_lwe_modulus;
  ASSERT_EQ(w.params().modulus(), u64(1) << log_q);
  for (Gate gate : {Gate::and_, Gate::and3, Gate::and4}) {
    const u32 p = plain_modulus_of(gate);
    const Messages x{0, 1};
    std::vector<Ciphertext> inputs;
    std::vector<const Ciphertext*> pointers;
    for (u32 i = 0; i < fan_in(gate); ++i) inputs.push_back(w.ev.trivial(x, p));
    for (auto& c : inputs) pointers.push_back(&c);
    const i64 one = 2 * ((i64(1) << log_q) / (2 * p) + 1);
    EXPECT_EQ(w.client.phase_errors(w.ev.gate(gate, pointers), Messages{0, 0}),
              (std::vector<i64>{0, one}));
  }
}

TEST_P(TfheGates, NotRefreshAndMux) {
  for (const char* name : names()) {
    auto& w = world(name);
    Messages c(8), x(8), y(8), inverted(8), chosen(8);
    for (u64 i = 0; i < 8; ++i) {
      c[i] = i & 1, x[i] = i >> 1 & 1, y[i] = i >> 2 & 1;
      inverted[i] = 1 - c[i];
      chosen[i] = c[i] ? x[i] : y[i];
    }
    const Ciphertext ec = w.client.encrypt(c, 4), ex = w.client.encrypt(x, 4);
    const Ciphertext ey = w.client.encrypt(y, 4);
    EXPECT_EQ(w.client.decrypt(w.ev.not_(ec)), inverted) << name;
    EXPECT_EQ(w.client.decrypt(w.ev.refresh(ex)), x) << name;
    EXPECT_EQ(w.client.decrypt(w.ev.mux(ec, ex, ey)), chosen) << name;
    EXPECT_EQ(w.client.decrypt(w.ev.mux(w.ev.not_(ec), ey, ex)), chosen) << name;
    EXPECT_EQ(w.client.decrypt(ec), c);  // inputs are unharmed
  }
}

TEST_P(TfheGates, NotHasNoNoiseOfItsOwn) {
  auto& w = world("gadget:r3");
  const Messages x{0, 1, 1, 0}, inverted{1, 0, 0, 1};
  const Ciphertext a = w.client.encrypt(x);
  auto errors = w.client.phase_errors(a, x);
  for (auto& e : errors) e = -e;
  EXPECT_EQ(w.client.phase_errors(w.ev.not_(a), inverted), errors);
}

TEST_P(TfheGates, ConstantAndExtremeBatches) {
  auto rng = test::test_rng();
  auto& w = world(exhaustive() ? "raising:approx:r5" : "gadget:r3");
  for (u64 size : {u64(1), u64(2), u64(exhaustive() ? 333 : 11)}) {
    const Messages zeros(size, 0), ones(size, 1), x = test::random_messages(rng, size, 2);
    const Ciphertext a = w.client.encrypt(zeros), b = w.client.encrypt(ones),
                     c = w.client.encrypt(x);
    EXPECT_EQ(w.client.decrypt(w.ev.gate(Gate::or_, a, c)), x);
    EXPECT_EQ(w.client.decrypt(w.ev.gate(Gate::and_, b, c)), x);
    EXPECT_EQ(w.client.decrypt(w.ev.gate(Gate::and_, a, c)), zeros);
    EXPECT_EQ(w.client.decrypt(w.ev.gate(Gate::nand, a, c)), ones);
  }
}

TEST_P(TfheGates, BatchesAreTheirPartsOneByOne) {
  auto rng = test::test_rng();
  for (const char* name : {"gadget:approx:r3", "raising:exact"}) {
    auto& w = world(name);
    const Messages x = test::random_messages(rng, 9, 2), y = test::random_messages(rng, 9, 2);
    const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(y);
    const Ciphertext whole = w.ev.gate(Gate::xor_, a, b);
    std::vector<Ciphertext> parts;
    for (u64 first = 0; first < 9; first += 3)
      parts.push_back(w.ev.gate(Gate::xor_, a.slice(first, 3), b.slice(first, 3)));
    const Ciphertext* pointers[] = {&parts[0], &parts[1], &parts[2]};
    EXPECT_EQ(test::words_of(concatenate(pointers)), test::words_of(whole)) << name;
  }
}

TEST_P(TfheGates, ChainOfFiftyGates) {
  auto rng = test::test_rng();
  for (const char* name : {"gadget:approx:r3", "raising:binary:approx"}) {
    auto& w = world(name);
    constexpr u32 kWires = 6;
    const u64 size = exhaustive() ? 31 : 3;
    std::vector<Messages> plain;
    std::vector<Ciphertext> wires;
    for (u32 i = 0; i < kWires; ++i) {
      plain.push_back(test::random_messages(rng, size, 2));
      wires.push_back(w.client.encrypt(plain.back()));
    }
    for (int step = 0; step < 50; ++step) {
      const u32 to = u32(rng() % kWires), a = u32(rng() % kWires);
      const u32 b = (a + 1 + u32(rng() % (kWires - 1))) % kWires;
      if (step % 10 == 9) {
        const u32 c = u32(rng() % kWires);
        if (c != a && c != b) {
          Messages next(size);
          for (u64 i = 0; i < size; ++i) next[i] = plain[c][i] ? plain[a][i] : plain[b][i];
          wires[to] = w.ev.mux(wires[c], wires[a], wires[b]);
          plain[to] = next;
          continue;
        }
      }
      const Gate gate = kEveryGate[rng() % 6];
      Messages next(size);
      for (u64 i = 0; i < size; ++i) next[i] = plain_gate(gate, Messages{plain[a][i], plain[b][i]});
      wires[to] = w.ev.gate(gate, wires[a], wires[b]);
      plain[to] = next;
    }
    for (u32 i = 0; i < kWires; ++i)
      EXPECT_EQ(w.client.decrypt(wires[i]), plain[i]) << name << " wire " << i;
  }
}

TEST(TfheGateTable, NamesAndShapes) {
  EXPECT_STREQ(name_of(Gate::and_), "and");
  EXPECT_STREQ(name_of(Gate::or4), "or4");
  EXPECT_EQ(fan_in(Gate::majority), 3u);
  EXPECT_EQ(plain_modulus_of(Gate::and3), 6u);
  EXPECT_EQ(plain_modulus_of(Gate::or4), 8u);
  EXPECT_THROW(name_of(static_cast<Gate>(11)), ParameterError);
}

// Every combination of `inputs` bits, one message each.
std::vector<Messages> truth_table(u32 inputs) {
  std::vector<Messages> bits(inputs);
  for (u32 row = 0; row < (1u << inputs); ++row)
    for (u32 i = 0; i < inputs; ++i) bits[i].push_back(row >> i & 1);
  return bits;
}

TEST_P(TfheGates, BitsOfPaddedSetsTakeEveryGate) {
  auto& w = world("padded:r3");
  const u32 own = w.params().spec().plain_modulus;
  EXPECT_EQ(bit_modulus(w.params()), own);
  for (Gate gate : kEveryGate) {
    std::vector<Ciphertext> inputs;
    for (const Messages& bits : truth_table(fan_in(gate))) inputs.push_back(w.client.encrypt(bits));
    std::vector<const Ciphertext*> pointers;
    for (const Ciphertext& c : inputs) pointers.push_back(&c);
    const Ciphertext out = w.ev.gate(gate, pointers);
    EXPECT_EQ(out.plain_modulus(), own);
    Messages expected;
    for (u32 row = 0; row < (1u << inputs.size()); ++row) {
      Messages in;
      for (u32 i = 0; i < inputs.size(); ++i) in.push_back(row >> i & 1);
      expected.push_back(plain_gate(gate, in));
    }
    EXPECT_EQ(w.client.decrypt(out), expected) << name_of(gate);
  }
  const auto bits = truth_table(3);
  const Ciphertext c = w.client.encrypt(bits[0]), a = w.client.encrypt(bits[1]),
                   b = w.client.encrypt(bits[2]);
  Messages chosen, inverse;
  for (u64 i = 0; i < 8; ++i) {
    chosen.push_back(bits[0][i] ? bits[1][i] : bits[2][i]);
    inverse.push_back(1 - bits[0][i]);
  }
  EXPECT_EQ(w.client.decrypt(w.ev.mux(c, a, b)), chosen);
  EXPECT_EQ(w.client.decrypt(w.ev.not_(c)), inverse);
  const Messages messages{0, 1, 2, 3, 4, 5, 6, 7};
  const Ciphertext fresh = w.ev.refresh(w.client.encrypt(messages));
  EXPECT_EQ(fresh.plain_modulus(), own);
  EXPECT_EQ(w.client.decrypt(fresh), messages);
  // Bits of p = 4 are gates' as in any set, and do not mix with the others.
  const Ciphertext x = w.client.encrypt(Messages{0, 1, 0, 1}, 4),
                   y = w.client.encrypt(Messages{0, 0, 1, 1}, 4);
  EXPECT_EQ(w.ev.gate(Gate::xor_, x, y).plain_modulus(), 4u);
  EXPECT_EQ(w.client.decrypt(w.ev.gate(Gate::xor_, x, y)), (Messages{0, 1, 1, 0}));
  EXPECT_THROW(w.ev.gate(Gate::xor_, x, w.client.encrypt(Messages{0, 0, 1, 1})), StateError);
  EXPECT_THROW(w.ev.mux(c, c, b), StateError);
}

TEST(TfheBits, ModuliForGates) {
  const Params gates = test::tfhe_params("gadget"), tables = test::tfhe_params("padded");
  EXPECT_EQ(bit_modulus(gates), 4u);
  EXPECT_EQ(bit_modulus(gates, 3), plain_modulus_of(Gate::or3));
  EXPECT_EQ(bit_modulus(gates, 4), plain_modulus_of(Gate::and4));
  EXPECT_EQ(bit_modulus(tables), 16u);
  for (u32 inputs : {0u, 1u, 5u}) EXPECT_THROW(bit_modulus(gates, inputs), ParameterError);
  EXPECT_THROW(bit_modulus(tables, 3), ParameterError);
  EXPECT_EQ(message_bound(gates), 4u);
  EXPECT_EQ(message_bound(gates, 64), 64u);
  EXPECT_EQ(message_bound(tables), 8u);
  EXPECT_EQ(message_bound(tables, 4), 2u);
  EXPECT_THROW(message_bound(gates, 5), ParameterError);
  EXPECT_THROW(message_bound(gates, 1u << 20), ParameterError);
  for (Gate gate : kEveryGate) EXPECT_EQ(gate_from_string(name_of(gate)), gate);
  EXPECT_THROW(gate_from_string("implies"), ParameterError);
}

CRENEL_DEVICE_SUITE(TfheGates);

}  // namespace
}  // namespace crenel::tfhe
