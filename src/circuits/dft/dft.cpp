#include "circuits/dft/dft.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"

namespace crenel::circuits {
namespace {

using Complex = std::complex<double>;

// The 8h-th roots of unity of the butterflies of half-length h: w_j = exp(2 pi i 5^j / 8h).
std::vector<Complex> stage_roots(u64 half) {
  std::vector<Complex> roots(half);
  const u64 order = 8 * half;
  for (u64 j = 0, power = 1; j < half; ++j, power = power * 5 % order) {
    const double angle =
        2.0 * std::numbers::pi * static_cast<double>(power) / static_cast<double>(order);
    roots[j] = {std::cos(angle), std::sin(angle)};
  }
  return roots;
}

void accumulate(DiagonalMatrix& m, u64 offset, u64 row, Complex value) {
  auto& diagonal = m.diagonals[offset % m.slots];
  if (diagonal.empty()) diagonal.resize(m.slots);
  diagonal[row] += value;
}

// One stage of butterflies of half-length h: forward (u + w v, u - w v), inverse
// (u + v, (u - v) conj(w)).
DiagonalMatrix stage(u64 slots, u64 half, bool inverse) {
  DiagonalMatrix m{slots, {}};
  const auto roots = stage_roots(half);
  for (u64 i = 0; i < slots; ++i) {
    const u64 position = i % (2 * half);
    const bool upper = position < half;
    const Complex w = roots[position % half];
    if (inverse) {
      accumulate(m, 0, i, upper ? 1.0 : -std::conj(w));
      accumulate(m, upper ? half : slots - half, i, upper ? 1.0 : std::conj(w));
    } else {
      accumulate(m, 0, i, upper ? 1.0 : -w);
      accumulate(m, upper ? half : slots - half, i, upper ? w : 1.0);
    }
  }
  return m;
}

// The product "first b, then a".
DiagonalMatrix compose(const DiagonalMatrix& a, const DiagonalMatrix& b) {
  DiagonalMatrix m{a.slots, {}};
  for (const auto& [ka, da] : a.diagonals)
    for (const auto& [kb, db] : b.diagonals) {
      watch::point();
      auto& sum = m.diagonals[(ka + kb) % m.slots];
      if (sum.empty()) sum.resize(m.slots);
      for (u64 i = 0; i < m.slots; ++i) {
        const Complex x = da[i], y = db[(i + ka) % m.slots];
        sum[i] += Complex(x.real() * y.real() - x.imag() * y.imag(),
                          x.real() * y.imag() + x.imag() * y.real());
      }
    }
  return m;
}

void scale(DiagonalMatrix& m, double factor) {
  for (auto& [offset, diagonal] : m.diagonals)
    for (Complex& x : diagonal) x *= factor;
}

// The matrix whose input comes rotated by `in` and whose output is to be rotated by `out` (both to
// the left, any sign): offsets k become k + out - in, values move with the output.
DiagonalMatrix shifted(const DiagonalMatrix& m, i64 out, i64 in) {
  const i64 slots = static_cast<i64>(m.slots);
  const auto mod = [slots](i64 x) { return static_cast<u64>(((x % slots) + slots) % slots); };
  DiagonalMatrix r{m.slots, {}};
  for (const auto& [k, values] : m.diagonals) {
    auto& to = r.diagonals[mod(static_cast<i64>(k) + out - in)];
    to.resize(m.slots);
    for (u64 i = 0; i < m.slots; ++i) to[i] = values[mod(static_cast<i64>(i) + out)];
  }
  return r;
}

u64 round_up(u64 x, u64 multiple) { return (x + multiple - 1) / multiple * multiple; }

// Strides and reach of the factors: factor f takes the stages of half-lengths lows[f] ..
// lows[f] 2^(stages-1), and has the offsets +-(2^stages - 1) lows[f].
struct Extent {
  u64 low;    ///< smallest half-length: the stride
  u64 reach;  ///< largest offset
};

// Rotations handed from factor f to factor f + 1 that leave only non-negative offsets.
std::vector<i64> handed_rotations(const std::vector<Extent>& e, bool ascending) {
  std::vector<i64> x(e.size() + 1, 0);
  if (ascending) {
    for (std::size_t f = 0; f + 1 < e.size(); ++f)
      x[f + 1] = static_cast<i64>(
          round_up(static_cast<u64>(x[f]) + e[f].reach, std::max(e[f].low, e[f + 1].low)));
  } else {
    for (std::size_t f = e.size() - 1; f > 0; --f)
      x[f] = -static_cast<i64>(
          round_up(static_cast<u64>(-x[f + 1]) + e[f].reach, std::max(e[f].low, e[f - 1].low)));
  }
  return x;
}

void check(u64 slots, std::span<const u32> stages) {
  u32 total = 0;
  for (u32 s : stages) total += s;
  if (!std::has_single_bit(slots) || total != static_cast<u32>(std::bit_width(slots)) - 1)
    throw ParameterError(cat("factors of ", total, " stages for ", slots, " slots, expected ",
                             std::bit_width(slots) - 1),
                         {{"stages", total}, {"slots", slots}});
}

std::vector<DiagonalMatrix> factors_of(u64 slots, std::span<const u32> stages, double factor,
                                       bool inverse) {
  check(slots, stages);
  std::vector<DiagonalMatrix> factors;
  std::vector<Extent> extents;
  u64 half = inverse ? slots / 2 : 1;
  for (u32 count : stages) {
    DiagonalMatrix product;
    Extent extent{half, 0};
    for (u32 s = 0; s < count; ++s) {
      extent.low = std::min(extent.low, half), extent.reach += half;
      const auto next = stage(slots, half, inverse);
      product = s == 0 ? next : compose(next, product);
      half = inverse ? half / 2 : half * 2;
    }
    if (count == 0) {  // fewer stages than factors: a factor that only multiplies
      product.slots = slots;
      product.diagonals[0].assign(slots, 1.0);
      extent.low = 1;
    }
    scale(product, factor);
    factors.push_back(std::move(product)), extents.push_back(extent);
  }
  const auto rotations = handed_rotations(extents, !inverse);
  for (std::size_t f = 0; f < factors.size(); ++f)
    factors[f] = shifted(factors[f], rotations[f + 1], rotations[f]);
  return factors;
}

DiagonalMatrix repeated(const DiagonalMatrix& m) {
  DiagonalMatrix r{2 * m.slots, {}};
  for (const auto& [k, values] : m.diagonals) {
    auto& to = r.diagonals[k];
    to = values;
    to.insert(to.end(), values.begin(), values.end());
  }
  return r;
}

}  // namespace

DiagonalMatrix joined_halves(u64 slots) {
  DiagonalMatrix combine{2 * slots, {}};
  auto &own = combine.diagonals[0], &other = combine.diagonals[slots];
  const Complex unit(0.0, 1.0);
  for (u64 i = 0; i < 2 * slots; ++i) {
    own.push_back(i < slots ? Complex(1.0) : unit);
    other.push_back(i < slots ? unit : Complex(1.0));
  }
  return combine;
}

std::vector<DiagonalMatrix> slot_to_coeff_factors(u64 slots, std::span<const u32> stages,
                                                  double factor, bool joined) {
  auto factors = factors_of(slots, stages, factor, false);
  if (joined) factors[0] = compose(repeated(factors[0]), joined_halves(slots));
  return factors;
}

std::vector<DiagonalMatrix> coeff_to_slot_factors(u64 slots, std::span<const u32> stages,
                                                  double factor, bool joined) {
  auto factors = factors_of(slots, stages, factor, true);
  if (!joined) return factors;
  DiagonalMatrix& last = factors.back();
  last = repeated(last);
  for (auto& [k, values] : last.diagonals)
    for (u64 i = slots; i < 2 * slots; ++i) values[i] *= Complex(0.0, -1.0);
  return factors;
}

void scale_column(DiagonalMatrix& m, u64 column, double factor) {
  for (auto& [k, values] : m.diagonals) values[(column + m.slots - k) % m.slots] *= factor;
}

std::vector<u32> split_stages(u32 log_slots, u32 factors) {
  std::vector<u32> stages(factors, log_slots / factors);
  // The first factor has the largest strides and half the diagonals (CoeffToSlot), the last ones
  // the shortest periods: the remainder goes to both ends before the second.
  const u32 order[] = {0, factors - 1, factors - 2};
  for (u32 i = 0; i < log_slots % factors; ++i) ++stages[order[i]];
  return stages;
}

namespace {
constexpr u32 kRaisedStages = 4;
}  // namespace

u32 raised_factors(u32 log_slots) {
  // Stages that so many factors are cheapest for, by the traffic account
  // (docs/notes/2026-11-25-less-work.md).
  constexpr u32 kUpTo[] = {4, 6, 9};
  u32 factors = 1;
  for (u32 limit : kUpTo) factors += log_slots > kRaisedStages + limit;
  return factors;
}

std::vector<u32> split_raised_stages(u32 log_slots, u32 others) {
  std::vector<u32> stages{std::min(kRaisedStages, log_slots)};
  const u32 rest = log_slots - stages[0];
  // The last factors are on the fewest limbs and have the shortest periods.
  for (u32 f = 0; f < others; ++f) stages.push_back((rest + f) / others);
  return stages;
}

}  // namespace crenel::circuits
