// Gates of one bootstrap with OpenFHE's constants (docs: tfhe.md 2c).
#include "crenel/core/error.h"
#include "tfhe/encoding.h"
#include "tfhe/evaluator_state.h"

namespace crenel::tfhe {
namespace {

// The output is 0 where the phase of factor * (sum of inputs) lies in [c, c + q / 2), else 1.
struct GateConstants {
  const char* name;
  u32 inputs;
  u32 plain_modulus;
  u32 factor;
  u32 numerator, denominator;  // c / q
};

constexpr GateConstants kGates[] = {
    {"and", 2, 4, 1, 7, 8},      {"or", 2, 4, 1, 5, 8},     {"nand", 2, 4, 1, 3, 8},
    {"nor", 2, 4, 1, 1, 8},      {"xor", 2, 4, 2, 6, 8},    {"xnor", 2, 4, 2, 2, 8},
    {"majority", 3, 4, 1, 7, 8}, {"and3", 3, 6, 1, 11, 12}, {"or3", 3, 6, 1, 7, 12},
    {"and4", 4, 8, 1, 15, 16},   {"or4", 4, 8, 1, 9, 16},
};

const GateConstants& constants(Gate gate) {
  const auto i = static_cast<std::size_t>(gate);
  if (i >= std::size(kGates))
    throw ParameterError(cat("gate number ", i, ", expected below ", std::size(kGates)),
                         {{"gate", cat(i)}});
  return kGates[i];
}

// E(x) of device/torus/kernels.h.
u32 exponent(const device::TorusPlan& plan, u64 x) {
  const u32 steps = plan.log_n + 1, log_q = plan.log_lwe_modulus;
  const u64 e =
      log_q <= steps ? x << (steps - log_q) : ((x << steps) + (u64(1) << (log_q - 1))) >> log_q;
  return static_cast<u32>(e & ((u64(1) << steps) - 1));
}

std::shared_ptr<const DeviceTables> gate_tables(const Evaluator::State& s, const GateConstants& g) {
  return s.tables.get(
      *s.stream, ContentKey("gate").add(g.numerator).add(g.denominator).add(g.plain_modulus).text(),
      [&] {
        const u64 start = (u64(g.numerator) << s.log_q()) / g.denominator;
        const u64 value = s.plan().modulus / (2 * u64(g.plain_modulus)) + 1;
        return std::vector{window_polynomial(s.plan(), exponent(s.plan(), start), value, value)};
      });
}

}  // namespace

const char* name_of(Gate gate) { return constants(gate).name; }
u32 fan_in(Gate gate) { return constants(gate).inputs; }
u32 plain_modulus_of(Gate gate) { return constants(gate).plain_modulus; }

Ciphertext Evaluator::gate(Gate gate, std::span<const Ciphertext* const> inputs) const {
  const State& s = *state_;
  const GateConstants& g = constants(gate);
  if (inputs.size() != g.inputs)
    throw ParameterError(cat(g.name, " of ", inputs.size(), " inputs, expected ", g.inputs),
                         {{"inputs", cat(inputs.size())}, {"expected", cat(g.inputs)}});
  s.check_inputs(inputs, g.plain_modulus, g.name);
  s.bootstrap_keys();
  std::vector<device::LweTerm> terms;
  for (const Ciphertext* c : inputs)
    terms.push_back({c->data().payload.as<const u32>(), static_cast<i64>(g.factor)});
  const u64 rows = inputs[0]->data().rows();
  const auto table = gate_tables(s, g);
  const device::Buffer sum = s.combined(terms, 0, rows, s.log_q());
  return s.wrap(s.bootstrapped(sum.as<const u32>(), rows, table->view()), inputs[0]->size(),
                g.plain_modulus, s.log_q());
}

Ciphertext Evaluator::gate(Gate gate_kind, const Ciphertext& a, const Ciphertext& b) const {
  const Ciphertext* inputs[] = {&a, &b};
  return gate(gate_kind, inputs);
}

Ciphertext Evaluator::mux(const Ciphertext& condition, const Ciphertext& a,
                          const Ciphertext& b) const {
  const State& s = *state_;
  const Ciphertext* first[] = {&condition, &a};
  const Ciphertext* second[] = {&condition, &b};
  s.check_inputs(first, 4, "mux");
  s.check_inputs(second, 4, "mux");
  s.bootstrap_keys();
  const u32 log_q = s.log_q();
  const u64 rows = condition.data().rows(), half = rows * s.plan().words();
  const u32* c = condition.data().payload.as<const u32>();
  const auto table = gate_tables(s, constants(Gate::nand));
  // NAND(condition, a) and NAND(not condition, b) as one batch, then the NAND of both.
  device::Buffer sums = s.allocate_rows(2 * rows);
  const device::LweTerm with_a[] = {{c, 1}, {a.data().payload.as<const u32>(), 1}};
  const device::LweTerm with_b[] = {{c, -1}, {b.data().payload.as<const u32>(), 1}};
  s.combine(sums.as<u32>(), with_a, 0, rows, log_q);
  s.combine(sums.as<u32>() + half, with_b, encode_message(1, 4, log_q), rows, log_q);
  const device::Buffer nands = s.bootstrapped(sums.as<const u32>(), 2 * rows, table->view());
  const device::LweTerm both[] = {{nands.as<const u32>(), 1}, {nands.as<const u32>() + half, 1}};
  s.combine(sums.as<u32>(), both, 0, rows, log_q);
  return s.wrap(s.bootstrapped(sums.as<const u32>(), rows, table->view()), condition.size(), 4,
                log_q);
}

Ciphertext Evaluator::refresh(const Ciphertext& a) const {
  const State& s = *state_;
  const Ciphertext* input = &a;
  s.check_inputs({&input, 1}, 4, "refresh");
  s.bootstrap_keys();
  // AND with a known 1.
  const device::LweTerm term{a.data().payload.as<const u32>(), 1};
  const u64 rows = a.data().rows();
  const auto table = gate_tables(s, constants(Gate::and_));
  const device::Buffer sum =
      s.combined({&term, 1}, encode_message(1, 4, s.log_q()), rows, s.log_q());
  return s.wrap(s.bootstrapped(sum.as<const u32>(), rows, table->view()), a.size(), 4, s.log_q());
}

}  // namespace crenel::tfhe
