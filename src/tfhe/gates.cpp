// Gates of one bootstrap with OpenFHE's constants (docs/theory/tfhe.md "Gates"), and of a padded
// set's bits as tables.
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
  u32 counts;                  // bit i: the output where i inputs are 1
};

constexpr GateConstants kGates[] = {
    {"and", 2, 4, 1, 7, 8, 0b100},       {"or", 2, 4, 1, 5, 8, 0b110},
    {"nand", 2, 4, 1, 3, 8, 0b011},      {"nor", 2, 4, 1, 1, 8, 0b001},
    {"xor", 2, 4, 2, 6, 8, 0b010},       {"xnor", 2, 4, 2, 2, 8, 0b101},
    {"majority", 3, 4, 1, 7, 8, 0b1100}, {"and3", 3, 6, 1, 11, 12, 0b1000},
    {"or3", 3, 6, 1, 7, 12, 0b1110},     {"and4", 4, 8, 1, 15, 16, 0b10000},
    {"or4", 4, 8, 1, 9, 16, 0b11110},
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

device::LutView gate_function(const Evaluator::State& s, const GateConstants& g) {
  const auto key = ContentKey("gate").add(g.numerator).add(g.denominator).add(g.plain_modulus);
  return s.function(key, [&] {
    const u64 start = (u64(g.numerator) << s.log_q()) / g.denominator;
    const u64 value = s.plan().modulus / (2 * u64(g.plain_modulus)) + 1;
    return window_polynomial(s.plan(), exponent(s.plan(), start), value, value);
  });
}

// ---- bits as messages 0 and 1 of a padded set: tables of sums

/// Whether p is a padded set's, and sums up to `most` are messages of it.
bool holds_sums(const Params& params, u32 p, u64 most) {
  return params.spec().padded && p == params.spec().plain_modulus && most < p / 2;
}

/// f of a message of a padded set; `key` tells functions apart.
template <class F>
device::LutView message_function(const Evaluator::State& s, const ContentKey& key, F f) {
  return s.function(key, [&] {
    const u32 p = s.params().spec().plain_modulus;
    std::vector<u64> table(p / 2);
    for (u64 m = 0; m < table.size(); ++m) table[m] = f(m);
    return table_polynomial(s.plan(), p, table, p);
  });
}

// condition ? a : b of a padded set's bits: tables of c + 2 a and c + 2 b, of which one at most
// is 1.
Ciphertext mux_by_sums(const Evaluator::State& s, const Ciphertext& condition, const Ciphertext& a,
                       const Ciphertext& b) {
  const u32 log_q = s.log_q();
  const u64 rows = condition.data().rows();
  const auto chosen = [&](const Ciphertext& x, u64 when) {
    const auto f =
        message_function(s, ContentKey("mux").add(when), [&](u64 m) { return u64(m == when); });
    const device::LweTerm terms[] = {{condition.data().payload.as<const u32>(), 1},
                                     {x.data().payload.as<const u32>(), 2}};
    const device::Buffer sum = s.combined(terms, 0, rows, log_q);
    return s.bootstrapped(sum.as<const u32>(), rows, f);
  };
  const device::Buffer first = chosen(a, 3), second = chosen(b, 2);
  const device::LweTerm both[] = {{first.as<const u32>(), 1}, {second.as<const u32>(), 1}};
  return s.wrap(s.combined(both, 0, rows, log_q), condition.size(), condition.plain_modulus(),
                log_q);
}

}  // namespace

const char* name_of(Gate gate) { return constants(gate).name; }
u32 fan_in(Gate gate) { return constants(gate).inputs; }
u32 plain_modulus_of(Gate gate) { return constants(gate).plain_modulus; }

Gate gate_from_string(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kGates); ++i)
    if (name == kGates[i].name) return static_cast<Gate>(i);
  throw ParameterError(cat("unknown gate '", name, "'"), {{"gate", std::string(name)}});
}

u32 bit_modulus(const Params& params, u32 inputs) {
  const bool padded = params.spec().padded;
  if (inputs < 2 || inputs > 4 || (padded && inputs != 2))
    throw ParameterError(cat("bits for gates of ", inputs, " inputs, expected ",
                             padded ? "2 with this set" : "2, 3 or 4"),
                         {{"inputs", cat(inputs)}});
  if (padded) return params.spec().plain_modulus;
  return inputs == 2 ? 4 : plain_modulus_of(inputs == 3 ? Gate::and3 : Gate::and4);
}

Ciphertext Evaluator::not_(const Ciphertext& a) const {
  const State& s = *state_;
  const Ciphertext* input = &a;
  const u32 p = holds_sums(s.params(), a.plain_modulus(), 1) ? a.plain_modulus() : 4;
  s.check_inputs({&input, 1}, p, "not");
  const device::LweTerm term{a.data().payload.as<const u32>(), -1};
  Ciphertext out =
      s.wrap(s.combined({&term, 1}, encode_message(1, p, s.log_q()), a.data().rows(), s.log_q()),
             a.size(), p, s.log_q());
  out.data().secret_key = a.secret_key_id();
  return out;
}

Ciphertext Evaluator::gate(Gate gate, std::span<const Ciphertext* const> inputs) const {
  const State& s = *state_;
  const GateConstants& g = constants(gate);
  if (inputs.size() != g.inputs)
    throw ParameterError(cat(g.name, " of ", inputs.size(), " inputs, expected ", g.inputs),
                         {{"inputs", cat(inputs.size())}, {"expected", cat(g.inputs)}});
  const bool by_count =
      holds_sums(s.params(), inputs[0]->plain_modulus(), static_cast<u64>(g.inputs));
  const u32 p = by_count ? s.params().spec().plain_modulus : g.plain_modulus;
  s.check_inputs(inputs, p, g.name);
  s.bootstrap_keys();
  std::vector<device::LweTerm> terms;
  for (const Ciphertext* c : inputs)
    terms.push_back({c->data().payload.as<const u32>(), by_count ? 1 : i64(g.factor)});
  const u64 rows = inputs[0]->data().rows();
  const auto function =
      by_count ? message_function(s, ContentKey("count").add(g.inputs).add(g.counts),
                                  [&](u64 m) -> u64 { return m <= g.inputs && g.counts >> m & 1; })
               : gate_function(s, g);
  const device::Buffer sum = s.combined(terms, 0, rows, s.log_q());
  return s.wrap(s.bootstrapped(sum.as<const u32>(), rows, function), inputs[0]->size(), p,
                s.log_q());
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
  const bool by_sums = holds_sums(s.params(), condition.plain_modulus(), 3);
  const u32 p = by_sums ? condition.plain_modulus() : 4;
  s.check_inputs(first, p, "mux");
  s.check_inputs(second, p, "mux");
  s.bootstrap_keys();
  if (by_sums) return mux_by_sums(s, condition, a, b);
  const u32 log_q = s.log_q();
  const u64 rows = condition.data().rows(), half = rows * s.plan().words();
  const u32* c = condition.data().payload.as<const u32>();
  const auto nand = gate_function(s, constants(Gate::nand));
  // NAND(condition, a) and NAND(not condition, b) as one batch, then the NAND of both.
  device::Buffer sums = s.allocate_rows(2 * rows);
  const device::LweTerm with_a[] = {{c, 1}, {a.data().payload.as<const u32>(), 1}};
  const device::LweTerm with_b[] = {{c, -1}, {b.data().payload.as<const u32>(), 1}};
  s.combine(sums.as<u32>(), with_a, 0, rows, log_q);
  s.combine(sums.as<u32>() + half, with_b, encode_message(1, 4, log_q), rows, log_q);
  const device::Buffer nands = s.bootstrapped(sums.as<const u32>(), 2 * rows, nand);
  const device::LweTerm both[] = {{nands.as<const u32>(), 1}, {nands.as<const u32>() + half, 1}};
  s.combine(sums.as<u32>(), both, 0, rows, log_q);
  return s.wrap(s.bootstrapped(sums.as<const u32>(), rows, nand), condition.size(), 4, log_q);
}

Ciphertext Evaluator::refresh(const Ciphertext& a) const {
  const State& s = *state_;
  const Ciphertext* input = &a;
  const bool is_message = holds_sums(s.params(), a.plain_modulus(), 1);
  const u32 p = is_message ? a.plain_modulus() : 4;
  s.check_inputs({&input, 1}, p, "refresh");
  s.bootstrap_keys();
  const u64 rows = a.data().rows();
  const u32* in = a.data().payload.as<const u32>();
  if (is_message) {
    const auto identity = message_function(s, ContentKey("identity"), [](u64 m) { return m; });
    return s.wrap(s.bootstrapped(in, rows, identity), a.size(), p, s.log_q());
  }
  // AND with a known 1.
  const device::LweTerm term{in, 1};
  const device::Buffer sum =
      s.combined({&term, 1}, encode_message(1, 4, s.log_q()), rows, s.log_q());
  return s.wrap(s.bootstrapped(sum.as<const u32>(), rows, gate_function(s, constants(Gate::and_))),
                a.size(), p, s.log_q());
}

}  // namespace crenel::tfhe
