// Evaluator::checked: every public operation is done three times over: on the ciphertexts, on what
// they decrypt to, and on the bounds of what the difference may be. One generic function is the
// operation in all three.
#pragma once

#include <functional>
#include <type_traits>
#include <variant>

#include "ckks/evaluator_state.h"
#include "crenel/ckks/error_model.h"

namespace crenel::ckks {

/// Slots in the clear, row after row, and whether they are known to be real.
struct ClearSlots {
  std::vector<std::complex<double>> values;
  u64 slots = 0;
};

/// The operations of Evaluator on slots in the clear: levels and scales do not matter.
class ClearModel {
 public:
  using Slots = ClearSlots;
  using Complex = std::complex<double>;
  Slots add(const Slots& a, const Slots& b) const;
  Slots sub(const Slots& a, const Slots& b) const;
  Slots negate(const Slots& a) const;
  Slots add(const Slots& a, Complex b) const;
  Slots multiply_integer(const Slots& a, i64 re, i64 im = 0) const;
  /// `power` in [0, 2N).
  Slots multiply_monomial(const Slots& a, u64 power, u32 log_n) const;
  Slots multiply(const Slots& a, const Slots& b) const;
  Slots multiply(const Slots& a, Complex b, double = 0.0) const;
  Slots square(const Slots& a) const { return multiply(a, a); }
  Slots multiply_lazy(const Slots& a, const Slots& b) const { return multiply(a, b); }
  Slots square_lazy(const Slots& a) const { return multiply(a, a); }
  Slots multiply_rescale(const Slots& a, const Slots& b) const { return multiply(a, b); }
  Slots relinearise(const Slots& a) const { return a; }
  Slots relinearise_rescale(const Slots& a) const { return a; }
  Slots rescale(const Slots& a) const { return a; }
  Slots adjust_level(const Slots& a, u32, double = 0.0) const { return a; }
  Slots rotate(const Slots& a, i64 steps) const;
  Slots conjugate(const Slots& a) const;
  std::vector<Slots> rotate_many(const Slots& a, std::span<const i64> steps) const;
  Slots rotate_sum(const Slots& a, std::span<const i64> steps) const;
  Slots sum_slots(const Slots& a, u64 count, i64 stride = 1) const;
  /// Where fewer slots are claimed of a vector that does not repeat, not what is decrypted.
  Slots with_slots(const Slots& a, u64 slots, bool repeating = false) const;
  Slots polynomial(const Slots& x, std::span<const double> coefficients, PolynomialBasis basis,
                   double a, double b) const;
};

/// Where an operation's result is lost: a tighter range than its modulus, in units of the message.
struct ResultRange {
  double largest = std::numeric_limits<double>::infinity();
  bool of_slots = false;  ///< real and imaginary parts of the slots; else their coefficients
};

class Observer {
 public:
  Observer(const Evaluator& evaluator, const Client& client);
  const Evaluator& evaluator() const { return evaluator_; }  ///< that is not observed
  const Client& client() const { return client_; }

  /// f(evaluator, in...), a ciphertext or a vector of them, compared with the same in the clear.
  template <class F, class... In>
  auto watch(const char* operation, const F& f, const In&... in) const {
    return watch_within(operation, ResultRange{}, f, in...);
  }
  template <class F, class... In>
  auto watch_within(const char* operation, const ResultRange& range, const F& f,
                    const In&... in) const {
    expect_eager();
    auto out = f(evaluator_, in...);
    const ErrorModel errors(evaluator_.context().params());
    const auto expected = f(ClearModel(), slots_of(in)...);
    if constexpr (std::is_same_v<decltype(out), Ciphertext>) {
      compare(operation, range, out, expected, [&] { return f(errors, bound_of(in)...); });
    } else {
      for (std::size_t i = 0; i < out.size(); ++i)
        compare(operation, range, out[i], expected[i],
                [&] { return f(errors, bound_of(in)...)[i]; });
    }
    return out;
  }

 private:
  void expect_eager() const;
  ClearSlots slots_of(const Ciphertext& a) const;
  ClearSlots slots_of(const Plaintext& a) const;
  std::vector<ClearSlots> slots_of(std::span<const Ciphertext* const> a) const;
  /// Of what was decrypted: an exact message.
  ErrorBound bound_of(const Ciphertext& a) const;
  ErrorBound bound_of(const Plaintext& a) const;
  std::vector<ErrorBound> bound_of(std::span<const Ciphertext* const> a) const;
  void compare(const char* operation, const ResultRange& range, const Ciphertext& out,
               const ClearSlots& expected, const std::function<ErrorBound()>& model) const;

  Evaluator evaluator_;
  mutable Client client_;  ///< decryption changes nothing but streams
};

}  // namespace crenel::ckks
