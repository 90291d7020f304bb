// Operands with the largest loss of the Barrett estimate (fhecore/doc/verification.md, "The largest
// loss").
//
// An estimate of either form is described by (extra, low): x = p >> (W-extra) meets mu, columns of
// x*mu below `low` are not formed, and what is left is shifted by W+1+extra. modmul_pe: (5, 0),
// modmul_pe_cs: (7, W+2).
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace fhecore_dv {

using u64 = std::uint64_t;
using Wide = unsigned __int128;

struct Form {
  unsigned extra, low;
};

/// A product p = a b whose estimate lacks `loss` of p/q, and which is `above` (in units of q) over
/// a multiple of q: the estimate is short by floor(loss - above) + 1 where loss > above, so by two
/// where loss - above > 1.
struct Product {
  u64 q = 0, a = 0, b = 0;
  double loss = 0, above = 0;
  double excess() const { return loss - above; }
};

/// The estimates of both forms, and those that a bit of p or a column less makes of them.
inline std::vector<Form> neighbours(unsigned w) {
  return {{5, 0}, {4, 0}, {7, w + 2}, {7, w + 3}, {7, w + 4}, {6, w + 2}, {6, w + 1}};
}

inline Wide mu_of(unsigned w, u64 q) { return (Wide(1) << (2 * w + 1)) / q; }

/// Booth digits of mu as booth_recode gives them: what a row that holds x or its complement loses
/// depends on the sign too, which a digit 0 may have: such a row is all ones.
struct Digit {
  bool one, two, negative;
};
inline Digit digit(Wide mu, unsigned i) {
  const unsigned bits = unsigned((mu << 1) >> (2 * i)) & 7;
  const bool low = bits & 1, mid = bits >> 1 & 1, high = bits >> 2 & 1;
  return {mid != low, (high && !mid && !low) || (!high && mid && low), high};
}

/// What the rows of booth_rows lose in columns below `low`, summed: units of column 0.
inline Wide columns_lost(unsigned low, u64 x, Wide mu) {
  Wide sum = 0;
  bool plus_one = false;
  for (unsigned i = 0; 2 * i < low + 2; ++i) {
    const Digit d = digit(mu, i);
    if (plus_one) sum += Wide(2 * i - 2 < low) << (2 * i - 2);
    if (2 * i < low) {
      const u64 mask = (u64(1) << (low - 2 * i)) - 1;
      const u64 row = (d.one ? x : d.two ? x << 1 : 0) ^ (d.negative ? ~u64(0) : 0);
      sum += Wide(row & mask) << (2 * i);
    }
    plus_one = d.negative;
  }
  return sum;
}

inline double loss_of(unsigned w, Form form, u64 q, Wide mu, Wide p) {
  const unsigned f = w + 1 + form.extra;
  const Wide x = form.extra > w ? p << (form.extra - w) : p >> (w - form.extra);
  const Wide formed = x * mu - (form.low ? columns_lost(form.low, u64(x), mu) : 0);
  // p/q - formed/2^f, whole and fractional parts apart: the difference is below 4.
  const Wide quotient = p / q, whole = formed >> f;
  const double parts =
      double(u64(p % q)) / double(q) - double(formed - (whole << f)) / double(Wide(1) << f);
  return double(std::int64_t(u64(quotient) - u64(whole))) + parts;
}

class Search {
 public:
  Search(unsigned w, u64 seed) : w_(w), random_(seed), top_((u64(1) << w) - 1) {}

  /// Moduli that can lose the most, best first. All three terms want something of q: the bits of p
  /// below x cost 2^(W-extra)/q, so q near its least; the fraction of mu costs frac(2^(2W+1)/q), so
  /// that near 1; a column left out costs most in rows of digits -0 (all ones), nothing in those of
  /// +0.
  std::vector<u64> moduli(Form form, unsigned tries, unsigned keep) {
    const u64 least = (u64(1) << (w_ - 4)) + 1, span = std::max<u64>(8, least / 4);
    const bool all = span <= tries;
    std::vector<std::pair<double, u64>> found;
    for (unsigned i = 0; i < (all ? unsigned(span) : tries); ++i) {
      const u64 q = std::min(top_, all ? least + i : least + random_() % span);
      found.push_back({-promise(form, q), q});
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    std::vector<u64> best;
    for (const auto& [score, q] : found) {
      if (best.size() == keep) break;
      best.push_back(q);
    }
    return best;
  }

  /// Products a b next above a multiple of q (by less than a quarter of q), the most excess first.
  /// With a given, b = r / a mod q meets the remainder r, and b + q, b + 2q, ... do: the greatest
  /// of W bits is taken, as p near 2^(2W) costs most.
  std::vector<Product> products(Form form, u64 q, unsigned tries, unsigned keep) {
    std::vector<Product> found;
    const Wide mu = mu_of(w_, q);
    while (tries) {
      const u64 a = top_ - random_() % (top_ / 32 + 1);
      const u64 inverse = inverse_of(a % q, q);
      if (!inverse) {
        --tries;
        continue;
      }
      for (unsigned k = 0; k < 64 && tries; ++k, --tries) {
        const u64 r = 1 + random_() % std::max<u64>(1, q / 4);
        u64 b = u64(Wide(r % q) * inverse % q);
        b += (top_ - b) / q * q;
        const Wide p = Wide(a) * b;
        found.push_back({q, a, b, loss_of(w_, form, q, mu, p), double(u64(p % q)) / double(q)});
      }
    }
    const auto more = [](const Product& x, const Product& y) { return x.excess() > y.excess(); };
    const auto middle = found.begin() + std::min<std::size_t>(keep, found.size());
    std::partial_sort(found.begin(), middle, found.end(), more);
    found.erase(middle, found.end());
    return found;
  }

 private:
  double promise(Form form, u64 q) const {
    const Wide unit = Wide(1) << (2 * w_ + 1), mu = unit / q;
    double columns = 0;
    for (unsigned i = 0; 2 * i < form.low; ++i) {
      const Digit d = digit(mu, i);
      const double share = d.one || d.two ? 0.5 : d.negative ? 1 : 0;
      columns += share * double((Wide(1) << form.low) - (Wide(1) << (2 * i)));
    }
    const double cut = form.extra < w_ ? double(u64(1) << (w_ - form.extra)) / double(q) : 0;
    return cut + double(u64(unit % q)) / double(q) +
           columns / double(Wide(1) << (w_ + 1 + form.extra));
  }

  static u64 inverse_of(u64 a, u64 q) {
    __int128 t = 0, next_t = 1, r = q, next_r = a;
    while (next_r) {
      const __int128 k = r / next_r;
      t -= k * next_t, std::swap(t, next_t);
      r -= k * next_r, std::swap(r, next_r);
    }
    return r == 1 ? u64(t < 0 ? t + q : t) : 0;
  }

  unsigned w_;
  std::mt19937_64 random_;
  u64 top_;
};

}  // namespace fhecore_dv
