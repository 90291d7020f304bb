// Carries into the columns of an addition, all at once: what columns do with a carry is a sign, and
// so is what a span of columns does.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "tfhe/integer/circuit.h"

namespace crenel::tfhe::radix {

/// -1, 0 or 1.
i64 signum(i64 v);

/// A number whose sign counts: a look-up gives -1, 0 or 1 of its value.
struct Signed {
  Sum value;
  std::function<i64(i64)> sign;
};
/// Of numbers in order, least significant first: one number with the sign of the last of them that
/// is not 0. Four at a time, so a round for each factor of four.
Signed leading_sign(Circuit& circuit, std::vector<Signed> numbers);

/// The state of a column is the sign of its value less 3: 1 where it carries and -1 where it does
/// not, whatever comes in, and 0 where it hands on what comes in. That of a span of neighbours is
/// the sign of the top one that is not 0, so the sign of v_0 + w v_1 + ..., where each weight
/// exceeds all that is below it. A look-up reads sums of -15..15: two columns as they are, 4 v_1 +
/// v_0, or four states, or two states and a column. Spans are aligned: pairs of columns, four of
/// these, four of those; the carry into column j is the sign of the spans that [0, j) consists of.
/// So a state is looked up with one weight for all sums that read it, and order comparisons
/// (leading_sign) read the same spans.
class Spans {
 public:
  /// Columns of 0..6, the first of 0..7 where nothing comes in. Where the set's max_norm2 does not
  /// allow 4 v_1 + v_0, spans are of single columns, of four, of sixteen.
  Spans(Circuit& circuit, const Blocks& columns, bool carry_in);

  /// What comes into column j: 0 or `one`, j up to the number of columns (then: what leaves all).
  Sum carry(u32 j, i64 one = 1);
  /// -1, 0 or 1 of the columns from..to - 1, where the first of them begins a span.
  Sum state(u32 from, u32 to);
  /// The widest aligned span of up to j columns, that is, whose carry is known a round before.
  u32 widest(u32 j) const;

 private:
  static constexpr u32 kFree = ~u32(0);  ///< of a span that no wider one has
  /// Neighbouring columns, by a number with their sign.
  struct Part {
    Sum value;
    bool is_column = false;  ///< read as it is, else by a look-up of its sign
    u32 position = kFree;    ///< among the four that the next span has
  };
  using Parts = std::vector<Part>;  // least significant first

  const Part& span(u32 level, u32 index);
  Part column(u32 j) const;
  u32 size_of(u32 level) const { return (pairs_ ? 2u : 1u) << (2 * (level - 1)); }
  Parts parts(u32 from, u32 to);
  /// As parts that one look-up reads; neighbours at the top become one span first, where that takes
  /// no round more.
  Parts fitted(Parts parts);
  Sum joined(const Parts& parts);
  /// One term of a sum: the part times `factor`, of a state `scale` times it by the look-up.
  struct Term {
    i64 factor = 1, scale = 1;
  };
  /// Of parts that one look-up reads; of others none.
  std::vector<Term> terms(const Parts& parts) const;
  u32 round_of(const Sum& value) const;
  u32 ready(const Part& part) const { return round_of(part.value) + (part.is_column ? 0 : 1); }

  Circuit& circuit_;
  Blocks values_;
  bool carry_in_, pairs_;
  std::map<std::pair<u32, u32>, Part> spans_;
};

}  // namespace crenel::tfhe::radix
