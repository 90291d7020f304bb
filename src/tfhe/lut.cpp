// Look-up tables: padded sets by one bootstrap, others as OpenFHE's EvalFunc (docs/theory/tfhe.md
// "Functions of messages").
#include <algorithm>
#include <bit>
#include <cmath>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
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

u32 checked_out_modulus(const Params& params, std::span<const Lut> luts, u32 p) {
  const u32 wanted = luts[0].out_modulus != 0 ? luts[0].out_modulus : p;
  for (std::size_t t = 0; t < luts.size(); ++t) {
    const u32 other = luts[t].out_modulus != 0 ? luts[t].out_modulus : p;
    if (other != wanted)
      throw ParameterError(cat("table ", t, " gives messages modulo ", other, ", table 0 modulo ",
                               wanted, ", expected one out_modulus"),
                           {{"table", t}, {"out_modulus", other}});
  }
  const u32 out = checked_plain_modulus(params, wanted), log_q = params.spec().log_lwe_modulus;
  if (log_modulus_for(params, out) != log_q)
    throw ParameterError(
        cat("out_modulus ", out, ", expected one whose messages fit q = 2^", log_q),
        {{"out_modulus", out}, {"log_modulus", log_q}});
  return out;
}

// Of a padded set, a table of both halves: entries from p / 2 on are those of -p / 2, ..., -1.
bool is_signed(const Lut& lut, u32 p) { return lut.table.size() == p; }

// What a rotation can give of both halves: f(m) and f(m - p / 2) have one sum, whatever m.
void check_halves(const Lut& lut, std::size_t t, u32 out_modulus) {
  const std::size_t half = lut.table.size() / 2;
  const auto sum = [&](std::size_t m) {
    return (lut.table[m] + lut.table[m + half]) % out_modulus;
  };
  for (std::size_t m = 0; m < half; ++m) {
    const std::size_t at = m + 1 == half ? 0 : m + 1;  // the least message last: few think of it
    if (sum(at) != sum(1 % half))
      throw ParameterError(cat("signed table ", t, ": the entries of ", at, " and ",
                               static_cast<i64>(at) - static_cast<i64>(half), " add up to ",
                               sum(at), ", expected those of all messages and ", half,
                               " less to have one sum, ", sum(1 % half), ", modulo ", out_modulus),
                           {{"table", t},
                            {"message", static_cast<i64>(at) - static_cast<i64>(half)},
                            {"expected", sum(1 % half)}});
  }
}

void check_tables(const Params& params, std::span<const Lut> luts, u32 p, u32 out_modulus) {
  const u32 entries = message_limit(params, p);
  const bool padded = params.spec().padded;
  for (std::size_t t = 0; t < luts.size(); ++t) {
    const bool both = padded && is_signed(luts[t], p);
    if (luts[t].table.size() != entries && !both)
      throw ParameterError(
          cat("table ", t, " has ", luts[t].table.size(), " entries, expected ", entries,
              padded ? cat(", or ", p, " of a signed table") : std::string()),
          {{"table", t}, {"entries", luts[t].table.size()}, {"expected", entries}});
    const u64 limit = both ? out_modulus : message_limit(params, out_modulus);
    for (std::size_t m = 0; m < luts[t].table.size(); ++m)
      if (luts[t].table[m] >= limit)
        throw ParameterError(
            cat("table ", t, ": entry ", m, " is too large, expected below ", limit),
            {{"table", t}, {"entry", m}, {"limit", limit}});
    if (both) check_halves(luts[t], t, out_modulus);
  }
}

[[noreturn]] void refuse_index(u64 entries, const std::string& expected) {
  throw ParameterError(cat("index of ", entries, " entries, expected ", expected),
                       {{"index", entries}, {"size", expected}});
}

void check_index(std::span<const u32> index, std::size_t tables) {
  for (std::size_t i = 0; i < index.size(); ++i)
    if (index[i] >= tables)
      throw ParameterError(
          cat("index of message ", i, " is ", index[i], ", expected below ", tables, " (tables)"),
          {{"message", i}, {"index", index[i]}, {"luts", tables}});
}

void check_doubled_modulus(const device::TorusPlan& plan) {
  const u32 doubled = plan.log_lwe_modulus + 1;
  if (doubled <= plan.log_n + 1 && doubled <= plan.log_switch_modulus) return;
  throw UnsupportedError(
      cat("a table that is neither negacyclic nor periodic is evaluated modulo 2 q = 2^", doubled,
          ", expected at most 2 N = ", 2 * plan.ring_dim(), " and Q_KS = 2^",
          plan.log_switch_modulus),
      {{"q", u64(1) << plan.log_lwe_modulus},
       {"N", plan.ring_dim()},
       {"log_switch_modulus", plan.log_switch_modulus}});
}

// The first `entries` values of every table, for messages modulo p of which the lower half occurs,
// or both do of a signed table.
DeviceCache::Array device_tables(const Context::State& home, std::span<const Lut> luts, u32 p,
                                 u32 entries, u32 out_modulus) {
  // f(m) + f(m - p / 2), 0 of tables of one half
  const auto sum_of = [&](const Lut& lut) -> u64 {
    const bool both = home.params.spec().padded && is_signed(lut, p);
    return both ? (lut.table[0] + lut.table[entries]) % out_modulus : 0;
  };
  ContentKey key("table");
  key.add(p).add(entries).add(out_modulus);
  for (const Lut& lut : luts) key.add(std::span(lut.table).first(entries)).add(sum_of(lut));
  return home.tables.get(*home.stream, key, [&] {
    std::vector<TestPolynomial> polynomials;
    for (const Lut& lut : luts)
      polynomials.push_back(table_polynomial(home.plan, p, std::span(lut.table).first(entries),
                                             out_modulus, sum_of(lut)));
    return table_words(polynomials);
  });
}

// Takes m/4 + (-m/4 in the lower half, +m/4 in the upper) off messages modulo p, where m is their
// modulus: nothing or m/2. The halves begin half a message below 0 and m/2.
DeviceCache::Array half_table(const Context::State& home, u32 p) {
  return home.tables.get(*home.stream, ContentKey("half").add(p), [&] {
    const u32 steps = 2 * home.plan.ring_dim();
    const u64 quarter = scaled_to_modulus(1, 4, home.plan.modulus);
    return table_words(std::vector{
        window_polynomial(home.plan, (steps - steps / (2 * p)) % steps, quarter, quarter)});
  });
}

// [rows][slots]; slots behind the last message read table 0.
DeviceCache::Array device_index(const Context::State& home, std::span<const u32> index) {
  return home.indices.get(*home.stream, ContentKey("index").add(index), [&] {
    const u64 slots = home.plan.slots;
    std::vector<u32> words((index.size() + slots - 1) / slots * slots, 0);
    std::copy(index.begin(), index.end(), words.begin());
    return words;
  });
}

// x, modulo 2^log_modulus, into the lower half by half_table.
device::Buffer into_lower_half(const Evaluator::State& s, const u32* x, u64 rows,
                               const PreparedLut::Data& lut) {
  device::Buffer out = s.allocate_rows(rows);
  s.bootstrap(out.as<u32>(), lut.log_modulus, x, lut.log_modulus, rows,
              lut_view(s.plan(), *lut.half));
  const device::LweTerm difference[] = {{x, 1}, {out.as<const u32>(), -1}};
  s.combine(out.as<u32>(), difference, 0, rows, lut.log_modulus);
  return out;
}

// The first bootstrap's result is taken off before the second reads.
void judge(const Evaluator::State& s, const Ciphertext::Data& a, const PreparedLut::Data& lut) {
  const double margin = table_margin(s.plan(), lut.plain_modulus);
  s.judge(a.noise, lut.log_modulus, margin, "look-up table");
  if (!lut.half) return;
  Noise lower = a.noise;
  lower.add(s.bootstrap_noise(a.size, lut.log_modulus), -1);
  s.judge(lower, lut.log_modulus, margin, "look-up table");
}

}  // namespace

double table_margin(const device::TorusPlan& plan, u32 p) {
  const double margin = message_margin(p, plan.log_lwe_modulus);
  // the halves of half_table begin at a step
  const double step = std::exp2(double(plan.log_lwe_modulus) - plan.log_n - 1);
  return std::has_single_bit(p) ? margin : margin - std::max(step, 1.0);
}

u64 PreparedLut::size() const { return data_->size; }
u32 PreparedLut::plain_modulus() const { return data_->plain_modulus; }
u32 PreparedLut::out_modulus() const { return data_->out_modulus; }

PreparedLut Context::prepare(std::span<const Lut> luts, std::span<const u32> index,
                             u32 plain_modulus) const {
  const State& home = *state_;
  if (luts.empty()) throw ParameterError("no look-up table, expected at least one", {{"luts", 0}});
  const u32 p = plain_modulus != 0 ? plain_modulus : home.params.spec().plain_modulus;
  if (p % 2 != 0 || p > (u64(1) << home.plan.log_lwe_modulus) / 4)
    throw ParameterError(cat("look-up table of messages modulo ", p,
                             ", expected an even number up to 2^", home.plan.log_lwe_modulus - 2),
                         {{"plain_modulus", p}});
  auto data = std::make_shared<PreparedLut::Data>();
  data->params_id = home.params.id();
  data->plain_modulus = p;
  data->out_modulus = checked_out_modulus(home.params, luts, p);
  check_tables(home.params, luts, p, data->out_modulus);
  if (luts.size() > 1 && index.empty()) refuse_index(0, "one a message");
  check_index(index, luts.size());
  for (const Lut& lut : luts)
    for (const u64 entry : lut.table)
      data->bound = std::max(data->bound, static_cast<u32>(entry) + 1);
  if (data->bound > message_limit(home.params, data->out_modulus)) data->bound = 0;  // not known
  data->size = index.size();
  data->log_modulus = home.plan.log_lwe_modulus;
  const auto symmetry =
      home.params.spec().padded ? Symmetry::negacyclic : symmetry_of(luts, data->out_modulus);
  if (symmetry == Symmetry::none) {
    // Read modulo 2 q the phase is x or x + q: twice as many messages, of which m and m + p are
    // one.
    check_doubled_modulus(home.plan);
    data->log_modulus += 1;
    data->tables = device_tables(home, luts, 2 * p, p, data->out_modulus);
    data->half = half_table(home, 2 * p);
    home.variant(data->log_modulus, home.plan.slots);  // made now, not by the first look-up
  } else {
    data->tables = device_tables(home, luts, p, p / 2, data->out_modulus);
    if (symmetry == Symmetry::periodic) data->half = half_table(home, p);
  }
  if (luts.size() > 1) data->index = device_index(home, index);
  return PreparedLut(std::move(data));
}

Ciphertext Evaluator::lut(const Ciphertext& a, const Lut& lut) const {
  return this->lut(a, std::span(&lut, 1), {});
}

Ciphertext Evaluator::lut(const Ciphertext& a, std::span<const Lut> luts,
                          std::span<const u32> index) const {
  const State& s = *state_;
  s.check(a);
  s.check_log_modulus(a, s.log_q(), "look-up table");
  if (luts.size() > 1 && index.size() != a.size()) refuse_index(index.size(), cat(a.size()));
  s.bootstrap_keys();
  return lut(a, s.context.prepare(luts, index, a.plain_modulus()));
}

Ciphertext Evaluator::lut(const Ciphertext& a, std::span<const Lut> luts,
                          std::span<const u32> index, u32 outputs) const {
  const State& s = *state_;
  s.check(a);
  s.check_log_modulus(a, s.log_q(), "look-up table");
  if (!s.params().spec().padded || s.plan().slots != 1)
    throw UnsupportedError(
        cat("look-ups with several outputs: '", s.params().name(), "' with ", s.plan().slots,
            " messages a row, expected padding and 1; take a set such as lut4-128"),
        {{"name", s.params().name()}, {"slots", s.plan().slots}});
  const u32 limit = message_limit(s.params(), a.plain_modulus());
  if (!std::has_single_bit(outputs) || outputs > limit)
    throw ParameterError(cat("outputs is ", outputs, ", expected a power of two up to ", limit),
                         {{"outputs", outputs}, {"limit", limit}});
  if (luts.size() > 1 && index.size() != a.size()) refuse_index(index.size(), cat(a.size()));
  s.bootstrap_keys();
  for (const Lut& lut : luts)
    if (outputs > 1 && lut.table.size() > limit)
      throw ParameterError(cat("a signed table has one output, got ", outputs),
                           {{"outputs", outputs}, {"expected", 1}});
  return s.looked_up(a, s.context.prepare(luts, index, a.plain_modulus()), outputs);
}

Ciphertext Evaluator::State::looked_up(const Ciphertext& a, const PreparedLut& lut,
                                       u32 outputs) const {
  const PreparedLut::Data& f = lut.data();
  tfhe::judge(*this, a.data(), f);
  const u64 rows = a.data().rows();
  device::LutView view = lut_view(plan(), *f.tables, f.index.get());
  view.outputs = outputs;
  const watch::Task task(units(rows), "bootstraps");
  Ciphertext result = wrap(bootstrapped(a.data().payload.as<const u32>(), rows, view),
                           a.size() * outputs, f.out_modulus, log_q(),
                           outputs == 1 ? bootstrap_noise(a.size(), log_q())
                                        : bootstrap_noise(a.size(), outputs, log_q()));
  result.data().bound = f.bound;
  return result;
}

Ciphertext Evaluator::lut(const Ciphertext& a, const PreparedLut& lut) const {
  const State& s = *state_;
  const PreparedLut::Data& f = lut.data();
  s.check(a);
  s.check_log_modulus(a, s.log_q(), "look-up table");
  expect_home(f.params_id, *f.tables, s.home(), "look-up table");
  s.check_plain_modulus(a, f.plain_modulus, "look-up table");
  if (f.size != 0 && f.size != a.size()) refuse_index(f.size, cat(a.size()));
  s.bootstrap_keys();
  judge(s, a.data(), f);
  const u64 rows = a.data().rows();
  const u32* in = a.data().payload.as<const u32>();
  device::Buffer lower;
  const watch::Task task(s.units((f.half ? 2 : 1) * rows), "bootstraps");
  if (f.half) {
    lower = into_lower_half(s, in, rows, f);
    in = lower.as<const u32>();
  }
  device::Buffer out = s.allocate_rows(rows);
  s.bootstrap(out.as<u32>(), s.log_q(), in, f.log_modulus, rows,
              lut_view(s.plan(), *f.tables, f.index.get()));
  Ciphertext result = s.wrap(std::move(out), a.size(), f.out_modulus, s.log_q(),
                             s.bootstrap_noise(a.size(), s.log_q()));
  result.data().bound = f.bound;
  return result;
}

}  // namespace crenel::tfhe
