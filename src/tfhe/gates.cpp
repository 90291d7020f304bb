// Gates of one bootstrap with OpenFHE's constants (docs/theory/tfhe.md "Gates"), and of a padded
// set's bits as tables.
#include <algorithm>
#include <initializer_list>
#include <limits>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "tfhe/encoding.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/gate_table.h"

namespace crenel::tfhe {
namespace {

Ciphertext bits(Ciphertext result) {
  result.data().bound = 2;
  return result;
}

// Noise of sum_i factor_i input_i.
Noise sum_noise(std::initializer_list<std::pair<const Noise*, double>> terms) {
  Noise sum(terms.begin()->first->size());
  for (const auto& [noise, factor] : terms) sum.add(*noise, factor);
  return sum;
}

// The three sums that mux reads, in the order in which it does, judged by `judge(sum, margin)`.
template <class Judge>
void judge_mux(const Evaluator::State& s, bool by_sums, u32 p, const Noise& condition,
               const Noise& a, const Noise& b, Judge judge) {
  if (by_sums) {
    for (const Noise* x : {&a, &b})
      judge(sum_noise({{&condition, 1}, {x, 2}}), message_margin(p, s.log_q()));
    return;
  }
  const double margin = gate_margin(s.plan(), constants(Gate::nand));
  const Noise first = s.bootstrap_noise(a.size(), s.log_q()),
              second = s.bootstrap_noise(a.size(), s.log_q());
  judge(sum_noise({{&condition, 1}, {&a, 1}}), margin);
  judge(sum_noise({{&condition, -1}, {&b, 1}}), margin);
  judge(sum_noise({{&first, 1}, {&second, 1}}), margin);
}

device::LutView gate_function(const Evaluator::State& s, const GateConstants& g) {
  const auto key = ContentKey("gate").add(g.numerator).add(g.denominator).add(g.plain_modulus);
  return s.function(key, [&] {
    const u64 start = window_start(s.plan(), g);
    const u64 value = s.plan().modulus / (2 * u64(g.plain_modulus)) + 1;
    return window_polynomial(s.plan(), exponent(s.plan(), start), value, value);
  });
}

// ---- bits as messages 0 and 1 of a padded set: tables of sums

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
  const watch::Task task(s.units(2 * rows), "bootstraps");
  const device::Buffer first = chosen(a, 3), second = chosen(b, 2);
  const device::LweTerm both[] = {{first.as<const u32>(), 1}, {second.as<const u32>(), 1}};
  Noise noise = s.bootstrap_noise(condition.size(), log_q);
  noise.add(s.bootstrap_noise(condition.size(), log_q), 1);
  return s.wrap(s.combined(both, 0, rows, log_q), condition.size(), condition.plain_modulus(),
                log_q, std::move(noise));
}

}  // namespace

Ciphertext Evaluator::not_(const Ciphertext& a) const {
  const State& s = *state_;
  const Ciphertext* input = &a;
  const u32 p = holds_sums(s.params(), a.plain_modulus(), 1) ? a.plain_modulus() : 4;
  s.check_inputs({&input, 1}, p, "not");
  s.check_bits(a, "not");
  const device::LweTerm term{a.data().payload.as<const u32>(), -1};
  Ciphertext out =
      s.wrap(s.combined({&term, 1}, encode_message(1, p, s.log_q()), a.data().rows(), s.log_q()),
             a.size(), p, s.log_q(), a.data().noise.scaled(-1));
  out.data().secret_key = a.secret_key_id();
  out.data().bound = a.bound();
  return out;
}

Ciphertext Evaluator::gate(Gate gate, std::span<const Ciphertext* const> inputs) const {
  const State& s = *state_;
  const GateConstants& g = constants(gate);
  if (inputs.size() != g.inputs)
    throw ParameterError(cat(g.name, " of ", inputs.size(), " inputs, expected ", g.inputs),
                         {{"inputs", inputs.size()}, {"expected", g.inputs}});
  const bool by_count =
      holds_sums(s.params(), inputs[0]->plain_modulus(), static_cast<u64>(g.inputs));
  const u32 p = by_count ? s.params().spec().plain_modulus : g.plain_modulus;
  s.check_inputs(inputs, p, g.name);
  for (const Ciphertext* input : inputs) s.check_bits(*input, g.name);
  s.bootstrap_keys();
  std::vector<device::LweTerm> terms;
  Noise noise(inputs[0]->size());
  for (const Ciphertext* c : inputs) {
    const i64 factor = by_count ? 1 : i64(g.factor);
    terms.push_back({c->data().payload.as<const u32>(), factor});
    noise.add(c->data().noise, static_cast<double>(factor));
  }
  s.judge(noise, s.log_q(), by_count ? message_margin(p, s.log_q()) : gate_margin(s.plan(), g),
          g.name);
  const u64 rows = inputs[0]->data().rows();
  const auto function =
      by_count ? message_function(s, ContentKey("count").add(g.inputs).add(g.counts),
                                  [&](u64 m) -> u64 { return m <= g.inputs && g.counts >> m & 1; })
               : gate_function(s, g);
  const device::Buffer sum = s.combined(terms, 0, rows, s.log_q());
  return bits(s.wrap(s.bootstrapped(sum.as<const u32>(), rows, function), inputs[0]->size(), p,
                     s.log_q(), s.bootstrap_noise(inputs[0]->size(), s.log_q())));
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
  for (const Ciphertext* input : {&condition, &a, &b}) s.check_bits(*input, "mux");
  s.bootstrap_keys();
  judge_mux(s, by_sums, p, condition.data().noise, a.data().noise, b.data().noise,
            [&](const Noise& sum, double margin) { s.judge(sum, s.log_q(), margin, "mux"); });
  if (by_sums) return bits(mux_by_sums(s, condition, a, b));
  const u32 log_q = s.log_q();
  const u64 rows = condition.data().rows(), half = rows * s.plan().words();
  const u32* c = condition.data().payload.as<const u32>();
  const auto nand = gate_function(s, constants(Gate::nand));
  const watch::Task task(s.units(3 * rows), "bootstraps");
  // NAND(condition, a) and NAND(not condition, b) as one batch, then the NAND of both.
  device::Buffer sums = s.allocate_rows(2 * rows);
  const device::LweTerm with_a[] = {{c, 1}, {a.data().payload.as<const u32>(), 1}};
  const device::LweTerm with_b[] = {{c, -1}, {b.data().payload.as<const u32>(), 1}};
  s.combine(sums.as<u32>(), with_a, 0, rows, log_q);
  s.combine(sums.as<u32>() + half, with_b, encode_message(1, 4, log_q), rows, log_q);
  const device::Buffer nands = s.bootstrapped(sums.as<const u32>(), 2 * rows, nand);
  const device::LweTerm both[] = {{nands.as<const u32>(), 1}, {nands.as<const u32>() + half, 1}};
  s.combine(sums.as<u32>(), both, 0, rows, log_q);
  return bits(s.wrap(s.bootstrapped(sums.as<const u32>(), rows, nand), condition.size(), 4, log_q,
                     s.bootstrap_noise(condition.size(), log_q)));
}

u64 RefreshFunction::constant(u32 log_modulus) const {
  return is_message ? 0 : encode_message(1, 4, log_modulus);
}

RefreshFunction Evaluator::State::refresh_function(u32 plain_modulus) const {
  const bool is_message = holds_sums(params(), plain_modulus, 1);
  const u32 p = is_message ? plain_modulus : 4;
  return {is_message, p,
          is_message ? message_margin(p, log_q()) : gate_margin(plan(), constants(Gate::and_))};
}

device::LutView Evaluator::State::refresh_view(const RefreshFunction& function) const {
  if (function.is_message)
    return message_function(*this, ContentKey("identity"), [](u64 m) { return m; });
  return gate_function(*this, constants(Gate::and_));
}

Ciphertext Evaluator::refresh(const Ciphertext& a) const {
  const State& s = *state_;
  const Ciphertext* input = &a;
  const RefreshFunction function = s.refresh_function(a.plain_modulus());
  s.check_inputs({&input, 1}, function.plain_modulus, "refresh");
  s.bootstrap_keys();
  s.judge(a.data().noise, s.log_q(), function.margin, "refresh");
  if (!function.is_message) s.check_bits(a, "refresh");
  const u64 rows = a.data().rows();
  const u32* in = a.data().payload.as<const u32>();
  device::Buffer sum;
  if (const u64 constant = function.constant(s.log_q()); constant != 0) {
    const device::LweTerm term{in, 1};
    sum = s.combined({&term, 1}, constant, rows, s.log_q());
    in = sum.as<const u32>();
  }
  Ciphertext out = s.wrap(s.bootstrapped(in, rows, s.refresh_view(function)), a.size(),
                          a.plain_modulus(), s.log_q(), s.bootstrap_noise(a.size(), s.log_q()));
  out.data().bound = function.is_message ? a.bound() : 2;
  return out;
}

double Evaluator::p_fail_log2(Gate gate) const {
  const State& s = *state_;
  const GateConstants& g = constants(gate);
  const Params& params = s.params();
  const bool by_count = holds_sums(params, params.spec().plain_modulus, g.inputs);
  Noise sum(1);
  for (u32 i = 0; i < g.inputs; ++i) sum.add(s.input_noise(), by_count ? 1 : g.factor);
  return s.failure(
      sum, s.log_q(),
      by_count ? message_margin(params.spec().plain_modulus, s.log_q()) : gate_margin(s.plan(), g));
}

double Evaluator::p_fail_log2(std::string_view operation) const {
  const State& s = *state_;
  const Spec& spec = s.params().spec();
  const u32 p = spec.plain_modulus;
  const Noise input = s.input_noise();
  if (operation == "refresh") {
    return s.failure(input, s.log_q(), s.refresh_function(p).margin);
  }
  if (operation == "lut") {
    if (spec.padded) return s.failure(input, s.log_q(), table_margin(s.plan(), p));
    const u32 log = table_log_modulus(s.plan());
    Noise lower = input;
    lower.add(s.bootstrap_noise(1, log), -1);
    return s.failure(lower, log, table_margin(s.plan(), p));
  }
  if (operation != "mux") return p_fail_log2(gate_from_string(operation));
  double worst = -std::numeric_limits<double>::infinity();
  judge_mux(s, holds_sums(s.params(), p, 3), p, input, s.input_noise(), s.input_noise(),
            [&](const Noise& sum, double margin) {
              worst = std::max(worst, s.failure(sum, s.log_q(), margin));
            });
  return worst;
}

}  // namespace crenel::tfhe
