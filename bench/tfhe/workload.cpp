#include "tfhe/workload.h"

#include "harness/digest.h"

namespace crenel::bench {

using tfhe::Ciphertext;

Operation::Inputs Workload::pointers() const {
  Operation::Inputs out;
  for (const Ciphertext& c : inputs) out.push_back(&c);
  return out;
}

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
  std::vector<u64> all;
  for (const Ciphertext& c : outputs) {
    const std::vector<u64> m = client.decrypt(c);
    all.insert(all.end(), m.begin(), m.end());
  }
  return digest({reinterpret_cast<const u8*>(all.data()), all.size() * sizeof(u64)});
}

void Check::run(tfhe::Client& client, const tfhe::Evaluator& ev, u64 wanted, u64 batch,
                std::mt19937_64& rng) {
  constexpr int kChain = 16;  // then fresh messages: long chains degenerate
  std::vector<u64> x(batch), y(batch);
  while (gates < wanted) {
    for (u64 i = 0; i < batch; ++i) x[i] = rng() & 1, y[i] = rng() & 1;
    Ciphertext a = ev.refresh(client.encrypt(x, 4)), b = ev.refresh(client.encrypt(y, 4));
    for (int step = 0; step < kChain && gates < wanted; ++step) {
      const auto& kinds = two_input_gates();
      const tfhe::Gate gate = kinds[rng() % kinds.size()];
      Ciphertext c = ev.gate(gate, a, b);
      std::vector<u64> z(batch);
      for (u64 i = 0; i < batch; ++i) z[i] = clear_gate(gate, {x[i], y[i]});
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

}  // namespace crenel::bench
