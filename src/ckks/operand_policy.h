// The policy of the convenient form: what is rescaled and aligned, and when; of ciphertexts and of
// their error bounds (`Ops`: ckks/paterson_stockmeyer.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <map>
#include <optional>
#include <utility>

#include "ckks/evaluator_state.h"

namespace crenel::ckks::policy {

inline constexpr double kMaxInteger = 0x1p31;  // beyond, a factor is encoded: noise grows with it

inline bool is_gaussian_integer(std::complex<double> z) {
  const auto integer = [](double x) { return std::abs(x) < kMaxInteger && std::trunc(x) == x; };
  return integer(z.real()) && integer(z.imag());
}

/// Relinearised, and rescaled to an ordinary scale; nothing where there is nothing to do.
template <class Ops>
std::optional<typename Ops::Value> reduce(const Ops& ops, const typename Ops::Value& x) {
  using Value = typename Ops::Value;
  const Params& params = ops.params();
  const auto excessive = [&](const Value& c) {
    return c.level() > 0 &&
           c.scale() > params.scale(c.level()) * std::exp2(0.5 * params.spec().log_scale);
  };
  std::optional<Value> out;
  if (ops.components(x) > 2) out = ops.ev.relinearise(x);
  while (excessive(out ? *out : x)) out = ops.ev.rescale(out ? *out : x);
  return out;
}

/// What two reduced values become to be at one level and one scale; nothing for what stays.
template <class Ops>
auto align(const Ops& ops, const typename Ops::Value& a, const typename Ops::Value& b) {
  using Value = typename Ops::Value;
  using Result = std::pair<std::optional<Value>, std::optional<Value>>;
  const Params& params = ops.params();
  if (a.level() > b.level())
    return Result(ops.ev.adjust_level(a, b.level(), b.scale()), std::nullopt);
  if (b.level() > a.level())
    return Result(std::nullopt, ops.ev.adjust_level(b, a.level(), a.scale()));
  if (scales_agree(a.scale(), b.scale())) return Result();
  if (a.level() == 0)
    refuse_level(params, "aligning", 0, 1, {{"scale", a.scale()}, {"expected", b.scale()}},
                 cat(" (scales ", a.scale(), " and ", b.scale(), " differ)"));
  const u32 level = a.level() - 1;
  return Result(ops.ev.adjust_level(a, level, 0.0), ops.ev.adjust_level(b, level, 0.0));
}

/// Scale of a vector whose product with a reduced value, rescaled, is canonical; at level 0 the
/// canonical one: the rescale will refuse.
inline double factor_scale(const Params& params, u32 level, double scale) {
  return level > 0 ? params.rescale_ratio(level) * params.scale(level - 1) / scale : 0.0;
}

[[noreturn]] inline void refuse_zero() {
  throw ParameterError("division of a ciphertext by zero", {{"divisor", 0}});
}

template <class T>
std::vector<T> reciprocals(std::span<const T> values) {
  std::vector<T> out;
  for (T v : values) {
    if (v == T(0)) refuse_zero();
    out.push_back(1.0 / v);
  }
  return out;
}

/// Rescales a product, and refuses where there is no level to rescale to.
template <class Ops>
typename Ops::Value rescaled_product(const Ops& ops, const typename Ops::Value& product) {
  if (product.level() == 0) refuse_level(ops.params(), "multiply", 0, 1);
  return ops.ev.rescale(product);
}

/// Refuses a division by a constant or by a vector where its product with the reciprocals has no
/// level to take.
inline void expect_division(const Params& params, u32 level) {
  if (level == 0) refuse_level(params, "divide", 0, 1);
}

/// x^exponent with the least depth; x is reduced.
template <class Operand>
Operand power(const Params& params, const Operand& x, u64 exponent) {
  if (exponent == 0)
    throw ParameterError("the exponent must be a positive integer, got 0", {{"exponent", 0}});
  const u32 depth = static_cast<u32>(std::bit_width(exponent - 1));
  if (x.level() < depth)
    refuse_level(params, "power", x.level(), depth, {{"exponent", exponent}},
                 cat(" (exponent ", exponent, " takes ", depth, " levels)"));
  std::map<u64, Operand> powers{{1, x}};
  const auto power = [&](const auto& self, u64 k) -> const Operand& {
    if (const auto it = powers.find(k); it != powers.end()) return it->second;
    const Operand& high = self(self, (k + 1) / 2);
    return powers.emplace(k, high.multiply(self(self, k / 2))).first->second;
  };
  return power(power, exponent);
}

/// Slots that a sum at this stride goes over by default: all that are so far apart. A stride that
/// does not divide the slots would leave some out.
inline u64 slots_at_stride(u64 slots, i64 stride) {
  const u64 distance = stride < 0 ? u64(0) - static_cast<u64>(stride) : static_cast<u64>(stride);
  if (slots % std::max<u64>(distance, 1) != 0)
    throw ParameterError(cat("sum at stride ", stride, " over all of ", slots,
                             " slots, which it does not divide; ", "say over how many (count)"),
                         {{"stride", stride}, {"slots", slots}});
  return slots / std::max<u64>(distance, 1);
}

}  // namespace crenel::ckks::policy
