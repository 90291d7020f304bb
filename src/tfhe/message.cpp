// MessageEvaluator: linear combinations modulo p, and the bootstraps that bring them back below L
// (docs/theory/tfhe.md, "Functions of messages").
#include "crenel/tfhe/message.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "crenel/core/error.h"
#include "tfhe/encoding.h"
#include "tfhe/evaluator_state.h"

namespace crenel::tfhe {
namespace {

bool holds(Comparison comparison, u64 a, u64 b) {
  switch (comparison) {
    case Comparison::equal:
      return a == b;
    case Comparison::not_equal:
      return a != b;
    case Comparison::less:
      return a < b;
    case Comparison::less_equal:
      return a <= b;
    case Comparison::greater:
      return a > b;
    case Comparison::greater_equal:
      break;
  }
  return a >= b;
}

// a ? b as b ?' a
Comparison swapped(Comparison comparison) {
  switch (comparison) {
    case Comparison::less:
      return Comparison::greater;
    case Comparison::less_equal:
      return Comparison::greater_equal;
    case Comparison::greater:
      return Comparison::less;
    case Comparison::greater_equal:
      return Comparison::less_equal;
    default:
      return comparison;
  }
}

/// The space of one operation's messages, and its bootstraps.
class Space {
 public:
  Space(const Evaluator& evaluator, const Ciphertext& like, const char* operation)
      : ev_(evaluator),
        s_(evaluator.state()),
        operation_(operation),
        p_(like.plain_modulus()),
        log_modulus_(like.data().log_modulus) {
    const u32 own = s_.params().spec().plain_modulus;
    s_.check(like);
    if (padded()) s_.check_plain_modulus(like, own, operation);
  }

  bool padded() const { return s_.params().spec().padded; }
  u32 limit() const { return message_limit(s_.params(), p_); }
  u64 bound(const Ciphertext& a) const {
    return a.bound() == 0 ? limit() : std::min<u64>(a.bound(), limit());
  }
  void expect_padded(const char* what) const {
    if (padded()) return;
    throw UnsupportedError(cat(operation_, ": ", what, " need a set with padding, found '",
                               s_.params().name(), "'; take a set for tables, such as lut4-128"),
                           {{"operation", operation_}, {"name", s_.params().name()}});
  }
  u64 message(i64 value) const {
    if (value >= 0 && value < i64(limit())) return static_cast<u64>(value);
    throw ParameterError(cat(operation_, ": the public value is no message, expected 0 to ",
                             limit() - 1, " with this set"),
                         {{"operation", operation_}, {"expected", cat("0..", limit() - 1)}});
  }

  /// Can a table read it as often as the set promises?
  bool readable(const Noise& noise) const {
    const double bound = std::min(s_.max_p_fail_log2, std::max(s_.params().p_fail_log2(), -128.0));
    return failure(noise) <= bound * (1 - kRounding);
  }

  /// sum factor_t input_t + constant modulo p, with inputs refreshed where the result, and one
  /// bootstrap's noise on top, could not be read otherwise.
  Ciphertext linear(std::vector<Term> terms, i64 constant) const {
    Ciphertext result = ev_.linear(terms, constant);
    if (!padded()) return decryptable(std::move(result));
    if (readable(with_bootstrap(result))) return result;
    std::vector<Ciphertext> fresh;
    fresh.reserve(terms.size());
    const double least = s_.bootstrap_noise(1, s_.log_q()).variance() * (1 + 1e-9);
    for (Term& term : terms)
      if (term.input->noise_variance() > least)
        term.input = &fresh.emplace_back(ev_.refresh(*term.input));
    return fresh.empty() ? std::move(result) : ev_.linear(terms, constant);
  }
  Noise with_bootstrap(const Ciphertext& a) const {
    if (!padded()) return a.data().noise;
    Noise noise = a.data().noise;
    noise.add(s_.bootstrap_noise(a.size(), s_.log_q()), 1);
    return noise;
  }

  /// x modulo p as x modulo L: takes L off where the phase is in the upper half.
  Ciphertext reduced(Ciphertext x) const {
    if (!padded()) return x;
    const auto half = upper_half(ContentKey("upper").add(p_), scaled_to_modulus(1, 4, modulus()));
    const Ciphertext off = bootstrapped(x, half, p_);
    const Term terms[] = {{&x, 1}, {&off, -1}};
    return ev_.linear(terms);
  }
  /// 1 where the phase of x modulo p is in the upper half: where a difference is negative.
  Ciphertext negative(const Ciphertext& x) const {
    return bits(bootstrapped(
        x, upper_half(ContentKey("negative").add(p_), scaled_to_modulus(1, i64(2) * p_, modulus())),
        p_));
  }
  /// table[x] / out_modulus for x below L, negated for x - L above.
  Ciphertext negacyclic(const Ciphertext& x, const char* name, u32 out_modulus,
                        u64 (*f)(u64 m, u64 out_modulus)) const {
    return bootstrapped(x, table(name, out_modulus, f), p_);
  }
  /// Of -m the table that is 1 at 0 and else 0: coefficient v 2N / p after the rotation is the one
  /// that v - m would look up.
  Ciphertext one_hot(const Ciphertext& m) const {
    const u32 outputs = limit();
    if (s_.plan().slots != 1 || !std::has_single_bit(outputs))
      throw UnsupportedError(
          cat(operation_, ": ", s_.plan().slots, " messages a row and ", outputs,
              " values, expected 1 and a power of two; take a set such as lut4-128"),
          {{"operation", operation_}, {"slots", s_.plan().slots}, {"values", outputs}});
    const Term term{&m, -1};
    const Ciphertext x = ev_.linear({&term, 1});
    auto view = table("equal", p_, [](u64 v, u64) -> u64 { return v == 0; });
    view.outputs = outputs;
    return bits(bootstrapped(x, view, p_));
  }
  static Ciphertext bits(Ciphertext x) { return bounded(std::move(x), 2); }
  static Ciphertext bounded(Ciphertext x, u64 bound) {
    x.data().bound = static_cast<u32>(bound);
    return x;
  }
  Ciphertext not_of(const Ciphertext& bit) const {
    const Term term{&bit, -1};
    return bits(ev_.linear({&term, 1}, 1));
  }
  /// The operand, or its value encrypted without noise.
  const Ciphertext& encrypted(const MessageOperand& a, u64 size,
                              std::optional<Ciphertext>& known) const {
    if (a.messages() != nullptr) return *a.messages();
    return known.emplace(ev_.trivial(std::vector<u64>(size, message(a.value())), p_));
  }

 private:
  static constexpr double kRounding = 1e-9;  // relative, of the order of summation

  u64 modulus() const { return s_.plan().modulus; }
  device::LutView table(const char* name, u32 out_modulus, u64 (*f)(u64 m, u64 out_modulus)) const {
    return s_.function(ContentKey(name).add(p_), [&] {
      std::vector<u64> table(p_ / 2);
      for (u64 m = 0; m < table.size(); ++m) table[m] = f(m, out_modulus);
      return table_polynomial(s_.plan(), p_, table, out_modulus);
    });
  }
  /// log2 of the failure probability of a table that reads it; without padding, where nothing reads
  /// or refreshes any message, of its decryption.
  double failure(const Noise& noise) const {
    if (padded()) return s_.failure(noise, s_.log_q(), table_margin(s_.plan(), p_));
    return tail_log2(noise.variance(), message_margin(p_, log_modulus_));
  }
  Ciphertext decryptable(Ciphertext x) const {
    const double found = failure(x.data().noise);
    if (found <= s_.max_p_fail_log2 * (1 - kRounding)) return x;
    throw ParameterError(
        cat(operation_, ": the result would decrypt wrongly with a probability of up to 2^", found,
            ", expected at most 2^", s_.max_p_fail_log2,
            ": add fewer messages, take a set with padding, such as lut4-128, which refreshes "
            "them, "
            "or raise the evaluator's max_p_fail_log2"),
        {{"operation", operation_},
         {"p_fail_log2", found},
         {"max_p_fail_log2", s_.max_p_fail_log2}});
  }

  /// 2 value where the phase is in [1/2, 1) less half a message, else 0.
  device::LutView upper_half(const ContentKey& key, u64 value) const {
    return s_.function(key, [&] {
      const u32 steps = 2 * s_.plan().ring_dim();
      return window_polynomial(s_.plan(), (steps - steps / (2 * p_)) % steps, value, value);
    });
  }
  Ciphertext bootstrapped(const Ciphertext& x, const device::LutView& function, u32 p) const {
    s_.check_log_modulus(x, s_.log_q(), operation_);
    s_.bootstrap_keys();
    s_.judge(x.data().noise, s_.log_q(), table_margin(s_.plan(), p), operation_);
    return s_.wrap(s_.bootstrapped(x.data().payload.as<const u32>(), x.data().rows(), function),
                   x.size() * function.outputs, p, s_.log_q(),
                   function.outputs == 1
                       ? s_.bootstrap_noise(x.size(), s_.log_q())
                       : s_.bootstrap_noise(x.size(), function.outputs, s_.log_q()));
  }

  const Evaluator& ev_;
  const Evaluator::State& s_;
  const char* operation_;
  u32 p_, log_modulus_;
};

const Ciphertext& encrypted_of(const MessageOperand& a, const MessageOperand& b,
                               const char* operation) {
  if (a.messages() == nullptr && b.messages() == nullptr)
    throw ParameterError(
        cat(operation, ": two public values, expected encrypted messages at least once"),
        {{"operation", operation}, {"operands", "public"}});
  return a.messages() != nullptr ? *a.messages() : *b.messages();
}

/// a + sign b without reduction, and the largest |value| it can have with what is known of bounds.
struct Combined {
  Ciphertext value;
  u64 high = 0;  ///< of a sum
};

Combined combined(const Space& space, const MessageOperand& a, const MessageOperand& b, i64 sign) {
  std::vector<Term> terms;
  i64 constant = 0;
  u64 high = 0;
  const i64 limit = space.limit();
  for (const auto& [operand, factor] : {std::pair(&a, i64(1)), std::pair(&b, sign)}) {
    if (operand->messages() != nullptr) {
      terms.push_back({operand->messages(), factor});
      high += space.bound(*operand->messages()) - 1;
    } else {
      const i64 value = (operand->value() % limit + limit) % limit;
      constant += factor * value;
      high += static_cast<u64>(value);
    }
  }
  return {space.linear(std::move(terms), constant), high};
}

}  // namespace

Ciphertext MessageEvaluator::add(const MessageOperand& a, const MessageOperand& b) const {
  const Space space(evaluator_, encrypted_of(a, b, "add"), "add");
  Combined sum = combined(space, a, b, 1);
  if (sum.high < space.limit()) return Space::bounded(std::move(sum.value), sum.high + 1);
  return Space::bounded(space.reduced(std::move(sum.value)), space.limit());
}

Ciphertext MessageEvaluator::sub(const MessageOperand& a, const MessageOperand& b) const {
  if (b.messages() == nullptr && a.messages() != nullptr) {
    const i64 limit = Space(evaluator_, *a.messages(), "sub").limit();
    return add(a, (limit - b.value() % limit) % limit);
  }
  const Space space(evaluator_, encrypted_of(a, b, "sub"), "sub");
  // what a public value is certain to exceed needs no reduction
  const i64 limit = space.limit();
  const u64 high = space.bound(*b.messages()) - 1;
  Combined difference = combined(space, a, b, -1);
  if (a.messages() == nullptr) {
    const auto value = static_cast<u64>((a.value() % limit + limit) % limit);
    if (value >= high) return Space::bounded(std::move(difference.value), value + 1);
  }
  return Space::bounded(space.reduced(std::move(difference.value)), space.limit());
}

Ciphertext MessageEvaluator::mul(const Ciphertext& a, i64 factor) const {
  const Space space(evaluator_, a, "mul");
  const i64 limit = space.limit();
  const i64 f = (factor % limit + limit) % limit;
  const u64 high = (space.bound(a) - 1) * static_cast<u64>(f);
  const Term term{&a, !space.padded() && 2 * f > limit ? f - limit : f};
  Ciphertext product = evaluator_.linear({&term, 1});
  const bool fits = !space.padded() || high < static_cast<u64>(limit);
  if (fits && space.readable(space.with_bootstrap(product)))
    return Space::bounded(std::move(product), std::min<u64>(high + 1, space.limit()));
  Lut table;
  for (i64 m = 0; m < limit; ++m) table.table.push_back(static_cast<u64>(m * f % limit));
  return evaluator_.lut(a, table);
}

Ciphertext MessageEvaluator::sum(std::span<const Ciphertext* const> parts) const {
  if (parts.empty())
    throw ParameterError("sum of no messages, expected at least one", {{"parts", "0"}});
  const Space space(evaluator_, *parts[0], "sum");
  std::vector<const Ciphertext*> level(parts.begin(), parts.end());
  std::vector<Ciphertext> owned;  // what `level` points to after the first round
  for (;;) {
    std::vector<Ciphertext> sums;
    std::vector<u64> highs;
    for (std::size_t i = 0, end = 0; i < level.size(); i = end) {
      Noise noise = level[i]->data().noise;
      std::vector<Term> terms{{level[i], 1}};
      u64 high = space.bound(*level[i]) - 1;
      for (end = i + 1; end < level.size(); ++end) {
        if (level[end]->size() != level[i]->size()) break;  // `linear` says what is wrong
        Noise more = noise;
        more.add(level[end]->data().noise, 1);
        more.add(
            Noise(more.size(),
                  evaluator_.state().bootstrap_noise(1, evaluator_.state().log_q()).variance()),
            1);
        if (space.padded() && !space.readable(more)) break;
        noise.add(level[end]->data().noise, 1);
        terms.push_back({level[end], 1});
        high += space.bound(*level[end]) - 1;
      }
      if (end < level.size() && level[end]->size() != level[i]->size())
        terms.push_back({level[end], 1});
      if (end == i + 1 && level.size() > 1 && end < level.size()) {  // two do not fit: refresh both
        sums.push_back(space.linear({{level[i], 1}, {level[end], 1}}, 0));
        high += space.bound(*level[end++]) - 1;
      } else {
        sums.push_back(space.padded() ? evaluator_.linear(terms) : space.linear(terms, 0));
      }
      highs.push_back(high);
    }
    const bool last = sums.size() == 1;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const bool fits = highs[i] < space.limit();
      if (!fits) sums[i] = space.reduced(std::move(sums[i]));
      sums[i].data().bound = static_cast<u32>(fits ? highs[i] + 1 : space.limit());
      if (!last && space.padded()) sums[i] = evaluator_.refresh(sums[i]);
    }
    if (last) return std::move(sums[0]);
    owned = std::move(sums);
    level.clear();
    for (const Ciphertext& sum : owned) level.push_back(&sum);
  }
}

Ciphertext MessageEvaluator::compare(Comparison comparison, const MessageOperand& a,
                                     const MessageOperand& b) const {
  if (a.messages() == nullptr && b.messages() != nullptr) return compare(swapped(comparison), b, a);
  const Space space(evaluator_, encrypted_of(a, b, "comparison"), "comparison");
  if (b.messages() == nullptr) space.message(b.value());
  const u32 bit = space.padded() ? a.messages()->plain_modulus() : 4;
  if (!space.padded()) {
    Lut table{{}, bit};
    const u64 limit = space.limit();
    if (b.messages() == nullptr) {
      for (u64 m = 0; m < limit; ++m)
        table.table.push_back(holds(comparison, m, static_cast<u64>(b.value())));
      return evaluator_.lut(*a.messages(), table);
    }
    if (comparison != Comparison::equal && comparison != Comparison::not_equal)
      space.expect_padded("comparisons of order between encrypted messages");
    for (u64 m = 0; m < limit; ++m) table.table.push_back(holds(comparison, m, 0));
    return evaluator_.lut(combined(space, a, b, -1).value, table);
  }
  if (comparison == Comparison::equal || comparison == Comparison::not_equal) {
    // differences are in (-L, L): a table that is zero but at 0 has the symmetry that it needs
    const Ciphertext difference = combined(space, a, b, -1).value;
    Ciphertext equal = Space::bits(
        space.negacyclic(difference, "equal", bit, [](u64 m, u64) -> u64 { return m == 0; }));
    return comparison == Comparison::equal ? std::move(equal) : space.not_of(equal);
  }
  const bool reversed = comparison == Comparison::greater || comparison == Comparison::less_equal;
  const Ciphertext difference =
      reversed ? combined(space, b, a, -1).value : combined(space, a, b, -1).value;
  Ciphertext negative = space.negative(difference);
  const bool strict = comparison == Comparison::less || comparison == Comparison::greater;
  return strict ? std::move(negative) : space.not_of(negative);
}

Ciphertext MessageEvaluator::one_hot(const Ciphertext& a) const {
  const Space space(evaluator_, a, "one_hot");
  space.expect_padded("one-hot bits");
  return space.one_hot(a);
}

Ciphertext MessageEvaluator::select(const Ciphertext& condition, const MessageOperand& a,
                                    const MessageOperand& b) const {
  const Space space(evaluator_, condition, "select");
  space.expect_padded("selections");
  evaluator_.state().check_bits(condition, "select");
  std::optional<Ciphertext> known_a, known_b;
  const Ciphertext& x = space.encrypted(a, condition.size(), known_a);
  const Ciphertext& y = space.encrypted(b, condition.size(), known_b);
  const u32 halves = 2 * condition.plain_modulus();  // a message m of it is half of one modulo p
  const auto half = [](u64 m, u64) { return m; };
  const auto minus_half = [](u64 m, u64 modulus) { return m == 0 ? 0 : modulus - m; };
  // L where the condition is 1: moves a message to the half of the phases that is read negated
  const Ciphertext moved =
      space.negacyclic(condition, "condition", 2, [](u64 m, u64) -> u64 { return m != 0; });
  const Ciphertext x_moved = space.linear({{&x, 1}, {&moved, 1}}, 0);
  const Ciphertext y_moved = space.linear({{&y, 1}, {&moved, 1}}, 0);
  // +-a/2 + a/2 -+ b/2 + b/2
  const Ciphertext parts[] = {space.negacyclic(x_moved, "minus half", halves, minus_half),
                              space.negacyclic(x, "half", halves, half),
                              space.negacyclic(y_moved, "half", halves, half),
                              space.negacyclic(y, "half", halves, half)};
  std::vector<Term> terms;
  for (const Ciphertext& part : parts) terms.push_back({&part, 1});
  return Space::bounded(evaluator_.linear(terms), std::max(space.bound(x), space.bound(y)));
}

}  // namespace crenel::tfhe
