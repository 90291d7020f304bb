// Look-up tables: padded sets by one bootstrap, others as OpenFHE's EvalFunc (tfhe.md 2c).
#include <algorithm>

#include "crenel/core/error.h"
#include "tfhe/encoding.h"
#include "tfhe/evaluator_state.h"

namespace crenel::tfhe {
namespace {

// How a table on all of [0, p) can be evaluated.
enum class Symmetry : u8 {
  negacyclic,  ///< f(m + p/2) = -f(m): what a blind rotation gives by itself
  periodic,    ///< f(m + p/2) = f(m): after the phase was brought into its lower half
  none,        ///< any: as a table on the lower half of the doubled modulus
};

bool is_negacyclic(std::span<const u64> table, u64 out_modulus) {
  const std::size_t half = table.size() / 2;
  for (std::size_t m = 0; m < half; ++m)
    if ((table[m] + table[m + half]) % out_modulus != 0) return false;
  return true;
}

bool is_periodic(std::span<const u64> table) {
  const auto half = table.begin() + static_cast<std::ptrdiff_t>(table.size() / 2);
  return std::equal(table.begin(), half, half);
}

// One symmetry that all tables have.
Symmetry symmetry_of(std::span<const Lut> luts, u32 out_modulus) {
  const auto all = [&](auto has) { return std::all_of(luts.begin(), luts.end(), has); };
  if (all([&](const Lut& f) { return is_negacyclic(f.table, out_modulus); }))
    return Symmetry::negacyclic;
  return all([](const Lut& f) { return is_periodic(f.table); }) ? Symmetry::periodic
                                                                : Symmetry::none;
}

u32 checked_out_modulus(const Evaluator::State& s, std::span<const Lut> luts, u32 p) {
  const u32 wanted = luts[0].out_modulus != 0 ? luts[0].out_modulus : p;
  for (std::size_t t = 0; t < luts.size(); ++t) {
    const u32 other = luts[t].out_modulus != 0 ? luts[t].out_modulus : p;
    if (other != wanted)
      throw ParameterError(cat("table ", t, " gives messages modulo ", other, ", table 0 modulo ",
                               wanted, ", expected one out_modulus"),
                           {{"table", cat(t)}, {"out_modulus", cat(other)}});
  }
  const u32 out = checked_plain_modulus(s.params(), wanted);
  if (log_modulus_for(s.params(), out) != s.log_q())
    throw ParameterError(
        cat("out_modulus ", out, ", expected one whose messages fit q = 2^", s.log_q()),
        {{"out_modulus", cat(out)}, {"log_modulus", cat(s.log_q())}});
  return out;
}

void check_tables(const Evaluator::State& s, std::span<const Lut> luts, u32 p, u32 out_modulus) {
  const u32 entries = message_limit(s.params(), p);
  const u64 limit = message_limit(s.params(), out_modulus);
  for (std::size_t t = 0; t < luts.size(); ++t) {
    if (luts[t].table.size() != entries)
      throw ParameterError(
          cat("table ", t, " has ", luts[t].table.size(), " entries, expected ", entries),
          {{"table", cat(t)}, {"entries", cat(luts[t].table.size())}, {"expected", cat(entries)}});
    for (std::size_t m = 0; m < luts[t].table.size(); ++m)
      if (luts[t].table[m] >= limit)
        throw ParameterError(
            cat("table ", t, ": entry ", m, " is ", luts[t].table[m], ", expected below ", limit),
            {{"table", cat(t)}, {"entry", cat(m)}, {"limit", cat(limit)}});
  }
}

// The first `entries` values of every table, for messages modulo p of which the lower half occurs.
std::shared_ptr<const DeviceTables> device_tables(const Evaluator::State& s,
                                                  std::span<const Lut> luts, u32 p, u32 entries,
                                                  u32 out_modulus) {
  ContentKey key("table");
  key.add(p).add(entries).add(out_modulus).add(luts.size());
  for (const Lut& lut : luts)
    for (u32 m = 0; m < entries; ++m) key.add(lut.table[m]);
  return s.tables.get(*s.stream, key.text(), [&] {
    std::vector<TestPolynomial> polynomials;
    for (const Lut& lut : luts)
      polynomials.push_back(
          table_polynomial(s.plan(), p, std::span(lut.table).first(entries), out_modulus));
    return polynomials;
  });
}

// x modulo 2^log_modulus with m/4 + (-m/4 in the lower half, +m/4 in the upper) taken off: x itself
// or x - m/2, in the lower half. p: messages modulo 2^log_modulus; the halves begin half a message
// below 0 and m/2.
device::Buffer into_lower_half(const Evaluator::State& s, const u32* x, u64 rows, u32 log_modulus,
                               u32 p) {
  const u32 steps = 2 * s.plan().ring_dim();
  const auto table = s.tables.get(*s.stream, ContentKey("half").add(p).text(), [&] {
    const u64 quarter = scaled_to_modulus(1, 4, s.plan().modulus);
    return std::vector{
        window_polynomial(s.plan(), (steps - steps / (2 * p)) % steps, quarter, quarter)};
  });
  device::Buffer out = s.allocate_rows(rows);
  s.bootstrap(out.as<u32>(), log_modulus, x, log_modulus, rows, table->view());
  const device::LweTerm difference[] = {{x, 1}, {out.as<const u32>(), -1}};
  s.combine(out.as<u32>(), difference, 0, rows, log_modulus);
  return out;
}

void check_doubled_modulus(const Evaluator::State& s) {
  const auto& plan = s.plan();
  const u32 doubled = plan.log_lwe_modulus + 1;
  if (doubled <= plan.log_n + 1 && doubled <= plan.log_switch_modulus) return;
  throw UnsupportedError(
      cat("a table that is neither negacyclic nor periodic is evaluated modulo 2 q = 2^", doubled,
          ", expected at most 2 N = ", 2 * plan.ring_dim(), " and Q_KS = 2^",
          plan.log_switch_modulus),
      {{"q", cat(u64(1) << plan.log_lwe_modulus)},
       {"N", cat(plan.ring_dim())},
       {"log_switch_modulus", cat(plan.log_switch_modulus)}});
}

// index: device memory or null.
device::Buffer evaluate(const Evaluator::State& s, const Ciphertext::Data& a,
                        std::span<const Lut> luts, u32 out_modulus, const u32* index) {
  const u32 p = a.plain_modulus;
  const u64 rows = a.rows();
  const u32* in = a.payload.as<const u32>();
  const auto symmetry =
      s.params().spec().padded ? Symmetry::negacyclic : symmetry_of(luts, out_modulus);
  if (symmetry == Symmetry::negacyclic) {
    const auto tables = device_tables(s, luts, p, p / 2, out_modulus);
    return s.bootstrapped(in, rows, tables->view(index));
  }
  if (symmetry == Symmetry::periodic) {
    const auto tables = device_tables(s, luts, p, p / 2, out_modulus);
    const device::Buffer lower = into_lower_half(s, in, rows, s.log_q(), p);
    return s.bootstrapped(lower.as<const u32>(), rows, tables->view(index));
  }
  // Read modulo 2 q the phase is x or x + q: twice as many messages, of which m and m + p are one.
  check_doubled_modulus(s);
  const auto tables = device_tables(s, luts, 2 * p, p, out_modulus);
  const device::Buffer lower = into_lower_half(s, in, rows, s.log_q() + 1, 2 * p);
  device::Buffer out = s.allocate_rows(rows);
  s.bootstrap(out.as<u32>(), s.log_q(), lower.as<const u32>(), s.log_q() + 1, rows,
              tables->view(index));
  return out;
}

}  // namespace

Ciphertext Evaluator::lut(const Ciphertext& a, const Lut& lut) const {
  return this->lut(a, std::span(&lut, 1), {});
}

Ciphertext Evaluator::lut(const Ciphertext& a, std::span<const Lut> luts,
                          std::span<const u32> index) const {
  const State& s = *state_;
  s.check(a);
  s.check_log_modulus(a, s.log_q(), "look-up table");
  if (luts.empty())
    throw ParameterError("no look-up table, expected at least one", {{"luts", "0"}});
  const u32 p = a.plain_modulus(), out_modulus = checked_out_modulus(s, luts, p);
  check_tables(s, luts, p, out_modulus);
  const bool indexed = luts.size() > 1;
  if (index.size() != (indexed ? a.size() : 0) && !(luts.size() == 1 && index.size() == a.size()))
    throw ParameterError(cat("index of ", index.size(), " entries, expected ", a.size()),
                         {{"index", cat(index.size())}, {"size", cat(a.size())}});
  for (std::size_t i = 0; i < index.size(); ++i)
    if (index[i] >= luts.size())
      throw ParameterError(
          cat("index of message ", i, " is ", index[i], ", expected below ", luts.size(),
              " (tables)"),
          {{"message", cat(i)}, {"index", cat(index[i])}, {"luts", cat(luts.size())}});
  s.bootstrap_keys();
  device::Buffer on_device;
  if (indexed) {  // unused slots of the last row read table 0
    std::vector<u32> padded(a.data().rows() * s.plan().slots, 0);
    std::copy(index.begin(), index.end(), padded.begin());
    on_device = s.stream->allocate(padded.size() * sizeof(u32));
    s.stream->copy_in(on_device.data(), padded.data(), on_device.bytes());
  }
  return s.wrap(evaluate(s, a.data(), luts, out_modulus, on_device.as<const u32>()), a.size(),
                out_modulus, s.log_q());
}

}  // namespace crenel::tfhe
