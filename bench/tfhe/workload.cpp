#include "tfhe/workload.h"

#include "harness/digest.h"

namespace crenel::bench {

using tfhe::Ciphertext;

namespace {

constexpr std::size_t kChain = 16;  // steps, then fresh messages: long chains degenerate

}  // namespace

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

std::vector<SumTerm> largest_sum(u64 entries, double max_norm2) {
  std::vector<SumTerm> terms;
  u64 room = entries - 1, squares = static_cast<u64>(max_norm2);
  for (u64 factor = entries / 2; factor > 0;) {
    if (factor > room || factor * factor > squares) {
      --factor;
      continue;
    }
    terms.push_back({factor, 2});  // a bit
    room -= factor, squares -= factor * factor;
  }
  // What is left of the argument: larger messages, the smallest factors' first.
  for (bool grown = true; grown;) {
    grown = false;
    for (auto term = terms.rbegin(); term != terms.rend(); ++term) {
      if (term->factor > room) continue;
      room -= term->factor, ++term->limit;
      grown = true;
    }
  }
  return terms;
}

void Check::count(const tfhe::Client& client, const Ciphertext& c, const std::vector<u64>& expected,
                  std::vector<u64>& found) {
  for (const i64 e : client.phase_errors(c, expected)) squares += double(e) * double(e);
  found = client.decrypt(c);
  for (std::size_t i = 0; i < found.size(); ++i) failed += found[i] != expected[i];
  operations += found.size();
}

void Check::run(tfhe::Client& client, const tfhe::Evaluator& ev, u64 wanted, u64 batch,
                std::mt19937_64& rng) {
  if (ev.context().params().spec().padded)
    run_tables(client, ev, wanted, batch, rng);
  else
    run_gates(client, ev, wanted, batch, rng);
}

void Check::run_gates(tfhe::Client& client, const tfhe::Evaluator& ev, u64 wanted, u64 batch,
                      std::mt19937_64& rng) {
  std::vector<u64> x(batch), y(batch), z(batch), found;
  while (operations < wanted) {
    for (u64 i = 0; i < batch; ++i) x[i] = rng() & 1, y[i] = rng() & 1;
    Ciphertext a = ev.refresh(client.encrypt(x, 4)), b = ev.refresh(client.encrypt(y, 4));
    for (std::size_t step = 0; step < kChain && operations < wanted; ++step) {
      const auto& kinds = two_input_gates();
      const tfhe::Gate gate = kinds[rng() % kinds.size()];
      Ciphertext c = ev.gate(gate, a, b);
      for (u64 i = 0; i < batch; ++i) z[i] = clear_gate(gate, {x[i], y[i]});
      count(client, c, z, found);
      // An error is counted once: go on with the clear bits that belong to the ciphertext.
      x = std::move(y), y = found;
      a = std::move(b), b = std::move(c);
    }
  }
}

void Check::run_tables(tfhe::Client& client, const tfhe::Evaluator& ev, u64 wanted, u64 batch,
                       std::mt19937_64& rng) {
  const u64 entries = ev.context().params().spec().plain_modulus / 2;
  const std::vector<SumTerm> terms = largest_sum(entries, ev.context().params().spec().max_norm2);
  norm2 = 0;
  for (const SumTerm& term : terms) norm2 += static_cast<double>(term.factor * term.factor);
  std::vector<std::vector<u64>> x(terms.size(), std::vector<u64>(batch));
  std::vector<u64> z(batch), found;
  tfhe::Lut lut{std::vector<u64>(entries)};
  while (operations < wanted) {
    std::vector<Ciphertext> c;
    for (std::size_t which = 0; which < terms.size(); ++which) {
      for (u64& m : x[which]) m = rng() % terms[which].limit;
      c.push_back(ev.refresh(client.encrypt(x[which])));
    }
    for (std::size_t step = 0, next = 0; step < kChain && operations < wanted; ++step) {
      const std::size_t which = next;  // whose place the result takes
      next = next + 1 < terms.size() ? next + 1 : 0;
      const u64 limit = terms[which].limit;
      for (u64& y : lut.table) y = rng() % limit;
      std::vector<tfhe::Term> sum;
      for (std::size_t t = 0; t < terms.size(); ++t)
        sum.push_back({&c[t], static_cast<i64>(terms[t].factor)});
      Ciphertext result = ev.lut(ev.linear(sum), lut);
      for (u64 i = 0; i < batch; ++i) {
        u64 argument = 0;
        for (std::size_t t = 0; t < terms.size(); ++t) argument += terms[t].factor * x[t][i];
        z[i] = lut.table[argument];
      }
      count(client, result, z, found);
      // As above; what failed to another message altogether would make the argument too large.
      for (u64 i = 0; i < batch; ++i) x[which][i] = found[i] < limit ? found[i] : z[i];
      c[which] = std::move(result);
    }
  }
}

}  // namespace crenel::bench
