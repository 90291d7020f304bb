#include "tfhe/test_polynomial.h"

namespace crenel::tfhe {
namespace {

u64 negated(u64 x, u64 modulus) { return x == 0 ? 0 : modulus - x; }

}  // namespace

u64 scaled_to_modulus(i64 x, u64 y, u64 modulus) {
  const u64 magnitude = x < 0 ? u64(0) - static_cast<u64>(x) : static_cast<u64>(x);
  const u128 rounded = (static_cast<u128>(magnitude) * modulus + y / 2) / y;
  const u64 residue = static_cast<u64>(rounded % modulus);
  return x < 0 ? negated(residue, modulus) : residue;
}

TestPolynomial window_polynomial(const device::TorusPlan& plan, u32 start, u64 value, u64 offset) {
  const u32 n = plan.ring_dim();
  TestPolynomial out{std::vector<u64>(n), offset};
  for (u32 f = 0; f < n; ++f) {
    const bool inside = ((f + 2 * n - start) & (2 * n - 1)) < n;
    out.coefficients[f] = inside ? negated(value, plan.modulus) : value;
  }
  return out;
}

TestPolynomial table_polynomial(const device::TorusPlan& plan, u32 p, std::span<const u64> table,
                                u32 out_modulus, u64 sum) {
  const u64 n = plan.ring_dim();
  std::vector<u64> values(table.size());
  for (std::size_t m = 0; m < table.size(); ++m)
    values[m] = scaled_to_modulus(2 * static_cast<i64>(table[m]) - static_cast<i64>(sum),
                                  2 * u64(out_modulus), plan.modulus);
  TestPolynomial out{std::vector<u64>(n),
                     scaled_to_modulus(static_cast<i64>(sum), 2 * u64(out_modulus), plan.modulus)};
  for (u64 f = 0; f < n; ++f) {
    const u64 m = (2 * f * p + 2 * n) / (4 * n);  // round(f p / 2N), at most p / 2
    out.coefficients[f] = m < table.size() ? values[m] : negated(values[0], plan.modulus);
  }
  return out;
}

TestPolynomial ramp_polynomial(const device::TorusPlan& plan, u32 log_range, u32 log_modulus) {
  const u32 n = plan.ring_dim();
  // f 2^log_range / (2N 2^log_modulus) of Q
  const u64 divisor = u64(1) << (log_modulus - log_range + plan.log_n + 1);
  TestPolynomial out{std::vector<u64>(n), 0};
  for (u32 f = 0; f < n; ++f) {
    // Below N/2 stands what is read, negated, at f + N.
    const i64 at = f < n / 2 ? -static_cast<i64>(f + n) : static_cast<i64>(f);
    out.coefficients[f] = scaled_to_modulus(at, divisor, plan.modulus);
  }
  return out;
}

std::vector<u64> table_words(std::span<const TestPolynomial> polynomials) {
  std::vector<u64> words;
  for (const auto& v : polynomials)
    words.insert(words.end(), v.coefficients.begin(), v.coefficients.end());
  for (const auto& v : polynomials) words.push_back(v.offset);
  return words;
}

device::LutView lut_view(const device::TorusPlan& plan, const device::Buffer& tables,
                         const device::Buffer* index) {
  const u64 n = plan.ring_dim(), count = tables.bytes() / ((n + 1) * sizeof(u64));
  const u64* words = tables.as<const u64>();
  return {words, words + count * n, static_cast<u32>(count),
          index != nullptr ? index->as<const u32>() : nullptr};
}

}  // namespace crenel::tfhe
