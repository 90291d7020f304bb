#include "ckks/observer.h"

#include <algorithm>
#include <cmath>

#include "ckks/scale.h"

namespace crenel::ckks {
namespace {

using Complex = std::complex<double>;

/// "Far beyond": bounds of the model hold but for 2^-128, so that a factor is for what it leaves
/// out.
constexpr double kMargin = 16.0;
/// Double precision of encoding, decoding and computing in the clear, relative to the largest slot.
constexpr double kClearError = 0x1p-36;
/// Relative, where the model refuses (two iterations, three components, a worst case that does not
/// fit though this one does).
constexpr double kWithoutModel = 0x1p-7;

template <class F>
ClearSlots each(const ClearSlots& a, F f) {
  ClearSlots out = a;
  for (Complex& v : out.values) v = f(v);
  return out;
}

// A plaintext of one row serves every row of a.
template <class F>
ClearSlots both(const ClearSlots& a, const ClearSlots& b, F f) {
  ClearSlots out = a;
  for (std::size_t i = 0; i < out.values.size(); ++i)
    out.values[i] = f(a.values[i], b.values[i % b.values.size()]);
  return out;
}

}  // namespace

ClearSlots ClearModel::add(const Slots& a, const Slots& b) const {
  return both(a, b, [](Complex x, Complex y) { return x + y; });
}
ClearSlots ClearModel::sub(const Slots& a, const Slots& b) const {
  return both(a, b, [](Complex x, Complex y) { return x - y; });
}
ClearSlots ClearModel::negate(const Slots& a) const {
  return each(a, [](Complex x) { return -x; });
}
ClearSlots ClearModel::add(const Slots& a, Complex b) const {
  return each(a, [&](Complex x) { return x + b; });
}
ClearSlots ClearModel::multiply_integer(const Slots& a, i64 re, i64 im) const {
  return multiply(a, Complex(static_cast<double>(re), static_cast<double>(im)));
}
ClearSlots ClearModel::multiply(const Slots& a, const Slots& b) const {
  return both(a, b, [](Complex x, Complex y) { return x * y; });
}
ClearSlots ClearModel::multiply(const Slots& a, Complex b, double) const {
  return each(a, [&](Complex x) { return x * b; });
}
ClearSlots ClearModel::conjugate(const Slots& a) const {
  return each(a, [](Complex x) { return std::conj(x); });
}

ClearSlots ClearModel::rotate(const Slots& a, i64 steps) const {
  ClearSlots out = a;
  const u64 shift = reduced_steps(steps, a.slots);
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const std::size_t row = i / a.slots * a.slots;
    out.values[i] = a.values[row + (i - row + shift) % a.slots];
  }
  return out;
}

std::vector<ClearSlots> ClearModel::rotate_many(const Slots& a, std::span<const i64> steps) const {
  std::vector<ClearSlots> out;
  for (i64 k : steps) out.push_back(rotate(a, k));
  return out;
}

ClearSlots ClearModel::rotate_sum(const Slots& a, std::span<const i64> steps) const {
  ClearSlots out = rotate(a, steps[0]);
  for (i64 k : steps.subspan(1)) out = add(out, rotate(a, k));
  return out;
}

ClearSlots ClearModel::sum_slots(const Slots& a, u64 count, i64 stride) const {
  stride %= static_cast<i64>(a.slots);
  ClearSlots out = a;
  for (u64 k = 1; k < count; k *= 2) out = add(out, rotate(out, stride * static_cast<i64>(k)));
  return out;
}

ClearSlots ClearModel::with_slots(const Slots& a, u64 slots, bool) const {
  ClearSlots out{std::vector<Complex>(a.values.size() / a.slots * slots), slots};
  for (std::size_t i = 0; i < out.values.size(); ++i)
    out.values[i] = a.values[i / slots * a.slots + i % slots % a.slots];
  return out;
}

ClearSlots ClearModel::polynomial(const Slots& x, std::span<const double> c, PolynomialBasis basis,
                                  double a, double b) const {
  if (basis == PolynomialBasis::power)
    return each(x, [&](Complex v) {
      Complex sum = 0.0;
      for (std::size_t k = c.size(); k-- > 0;) sum = sum * v + c[k];
      return sum;
    });
  return each(x, [&](Complex v) {  // Clenshaw
    const Complex y = (2.0 * v - a - b) / (b - a);
    Complex above = 0.0, here = 0.0;
    for (std::size_t k = c.size(); k-- > 1;) {
      const Complex next = 2.0 * y * here - above + c[k];
      above = here, here = next;
    }
    return y * here - above + c[0];
  });
}

Observer::Observer(const Evaluator& evaluator, const Client& client)
    : evaluator_(evaluator), client_(client.shared_state()) {}

void Observer::expect_eager() const {
  if (evaluator_.stream().capturing())
    throw StateError(
        "checked evaluator inside a recording, which cannot decrypt; record with the evaluator "
        "that it was made from",
        {{"found", "a checked evaluator"}, {"expected", "an evaluator"}});
}

ClearSlots Observer::slots_of(const Ciphertext& a) const {
  auto& home = client_.context().stream();
  if (&home != &evaluator_.stream()) home.wait_for(evaluator_.stream());
  return {client_.decrypt(a), a.slots()};
}

ClearSlots Observer::slots_of(const Plaintext& a) const {
  return {evaluator_.context().decode(a), a.slots()};
}

std::vector<ClearSlots> Observer::slots_of(std::span<const Ciphertext* const> a) const {
  std::vector<ClearSlots> slots;
  for (const Ciphertext* one : a) slots.push_back(slots_of(*one));
  return slots;
}

ErrorBound Observer::bound_of(const Ciphertext& a) const {
  ErrorBound bound;
  bound.meta = a.metadata();
  bound.components = a.components();
  bound.params_id = a.params_id();
  bound.message = largest_slot(slots_of(a).values);
  return bound;
}

ErrorBound Observer::bound_of(const Plaintext& a) const {
  ErrorBound bound;
  bound.meta = a.metadata();
  bound.components = 1;
  bound.params_id = a.params_id();
  bound.message = largest_slot(slots_of(a).values);
  return bound;
}

std::vector<ErrorBound> Observer::bound_of(std::span<const Ciphertext* const> a) const {
  std::vector<ErrorBound> bounds;
  for (const Ciphertext* one : a) bounds.push_back(bound_of(*one));
  return bounds;
}

void Observer::compare(const char* operation, const ResultRange& range, const Ciphertext& out,
                       const ClearSlots& expected, const std::function<ErrorBound()>& model) const {
  const Context::State& context = evaluator_.context().state();
  const ClearSlots found = slots_of(out);
  double coefficient = 0.0, part = 0.0;
  for (std::size_t row = 0; row < expected.values.size(); row += expected.slots) {
    const std::span<const Complex> slots(expected.values.data() + row, expected.slots);
    for (double c : context.encoder.to_coefficients(slots))
      coefficient = std::max(coefficient, std::abs(c));
    for (Complex v : slots) part = std::max({part, std::abs(v.real()), std::abs(v.imag())});
  }
  // In units of the message, a coefficient of half the modulus.
  const double half =
      std::exp2(std::min(context.params.log_q(out.level()) - 1.0 - std::log2(out.scale()), 1023.0));
  const double factor =
      std::max(coefficient / half, (range.of_slots ? part : coefficient) / range.largest);
  if (!(factor < 1.0))
    throw StateError(cat(operation, ": the result left the range of level ", out.level(),
                         ", scale 2^", brief(std::log2(out.scale())), ", by a factor of ",
                         brief(factor), "; scale the inputs down, or compute at a higher level"),
                     {{"operation", operation}, {"level", out.level()}, {"factor", factor}});
  double error = 0.0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double e = std::abs(found.values[i] - expected.values[i]);
    error = std::max(error, std::isnan(e) ? kUnknownBound : e);
  }
  const double largest = largest_slot(expected.values);
  double allowed = 0.0;
  try {
    allowed = kMargin * model().max + kClearError * std::max(1.0, largest);
  } catch (const Error&) {
    allowed = kWithoutModel * std::max(1.0, largest);
  }
  if (!(error <= allowed))
    throw StateError(
        cat(operation, ": the result at level ", out.level(), " is off by ", brief(error),
            " in some slot, expected at most ", brief(allowed),
            "; an intermediate result left its range, or an operand was none any more"),
        {{"operation", operation},
         {"level", out.level()},
         {"error", error},
         {"expected", cat("<= ", allowed)}});
}

}  // namespace crenel::ckks
