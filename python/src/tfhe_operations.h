// Operations on encrypted integers, bound to the class that computes them and to the one that
// describes a circuit of them: one list, so that what one has the other has too.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/variant.h>

#include "tfhe.h"

namespace crenel::python {

/// A member function, const where `Self` is.
template <class Self, class Result, class... Arguments>
struct MethodOf {
  using Type = Result (Self::*)(Arguments...);
};
template <class Self, class Result, class... Arguments>
struct MethodOf<const Self, Result, Arguments...> {
  using Type = Result (Self::*)(Arguments...) const;
};

/// What is bound is in terms of Traits, which has
///   Self: the class, const where its operations are
///   Operand: what it takes where a public value may stand
///   Integers, Bits: what Python has of its values; kIntegers: the former in words
///   value(x): what the class takes of Integers or Bits
///   result(self, x): what Python gets of what the class gives
///   Guard: of calls
///   kRounds: may Python say how a division rounds? Else down.
template <class Traits>
class IntegerOperations {
  using Self = typename Traits::Self;
  using Integers = typename Traits::Integers;
  using Bits = typename Traits::Bits;
  using Guard = typename Traits::Guard;
  using Value = std::remove_cvref_t<decltype(Traits::value(std::declval<const Integers&>()))>;
  using ByCount = typename MethodOf<Self, Value, const Value&, u32>::Type;
  using ByValue = typename MethodOf<Self, Value, const Value&, const Value&>::Type;

  /// Integers, or the words of a public value as two's complement of 256 bits.
  using Operand = std::variant<const Integers*, std::vector<u64>>;
  static typename Traits::Operand operand(const Operand& x) {
    if (const auto* words = std::get_if<std::vector<u64>>(&x))
      return tfhe::WideValue::of_words(
          std::span(*words).first(std::min<std::size_t>(words->size(), tfhe::WideValue::kWords)),
          true);
    const Integers* integers = std::get<const Integers*>(x);
    if (integers == nullptr)
      throw nb::type_error(cat("expected ", Traits::kIntegers, ", got None").c_str());
    return Traits::value(*integers);
  }

 public:
  using Class = nb::class_<std::remove_const_t<Self>>;

  explicit IntegerOperations(Class& c) : c_(c) {}

  void bind() {
    using C = std::remove_const_t<Self>;
    binary("add", &C::add);
    binary("sub", &C::sub);
    binary("mul", &C::mul);
    binary("min", &C::min);
    binary("max", &C::max);
    binary("min_max", &C::min_max);
    binary("bit_and", &C::bit_and);
    binary("bit_or", &C::bit_or);
    binary("bit_xor", &C::bit_xor);
    binary("add_overflow", &C::add_overflow);
    binary("sub_overflow", &C::sub_overflow);
    binary("mul_overflow", &C::mul_overflow);
    division("div", &C::div);
    division("rem", &C::rem);
    division("divmod", &C::divmod);
    shift("shift_left", &C::shift_left, &C::shift_left);
    shift("shift_right", &C::shift_right, &C::shift_right);
    shift("rotate_left", &C::rotate_left, &C::rotate_left);
    shift("rotate_right", &C::rotate_right, &C::rotate_right);
    unary("neg", &C::neg);
    unary("abs", &C::abs);
    unary("bit_not", &C::bit_not);
    unary("leading_zeros", &C::leading_zeros);
    unary("trailing_zeros", &C::trailing_zeros);
    unary("count_ones", &C::count_ones);
    bind_others();
  }

 private:
  template <class Method>
  void binary(const char* name, Method op) {
    c_.def(
        name,
        [op](Self& self, const Operand& a, const Operand& b) {
          return Traits::result(self, (self.*op)(operand(a), operand(b)));
        },
        "a"_a, "b"_a, Guard());
  }

  template <class Method>
  void division(const char* name, Method op) {
    const auto divided = [op](Self& self, const Operand& a, const Operand& b, bool floored) {
      return Traits::result(self, (self.*op)(operand(a), operand(b), floored));
    };
    if constexpr (Traits::kRounds)
      c_.def(name, divided, "a"_a, "b"_a, "floored"_a = true, Guard());
    else
      c_.def(
          name,
          [divided](Self& self, const Operand& a, const Operand& b) {
            return divided(self, a, b, true);
          },
          "a"_a, "b"_a, Guard());
  }

  /// By a public count or encrypted ones.
  void shift(const char* name, ByCount by_count, ByValue by_value) {
    c_.def(
          name,
          [by_count](Self& self, const Integers& a, i64 count) {
            return Traits::result(
                self, (self.*by_count)(Traits::value(a), as_unsigned<u32>(count, "count")));
          },
          "a"_a, "count"_a, Guard())
        .def(
            name,
            [by_value](Self& self, const Integers& a, const Integers& count) {
              return Traits::result(self, (self.*by_value)(Traits::value(a), Traits::value(count)));
            },
            "a"_a, "count"_a, Guard());
  }

  template <class Method>
  void unary(const char* name, Method op) {
    c_.def(
        name,
        [op](Self& self, const Integers& a) {
          return Traits::result(self, (self.*op)(Traits::value(a)));
        },
        "a"_a, Guard());
  }

  void bind_others() {
    c_.def(
          "compare",
          [](Self& self, const std::string& name, const Operand& a, const Operand& b) {
            return Traits::result(self, self.compare(comparison(name), operand(a), operand(b)));
          },
          "comparison"_a, "a"_a, "b"_a, Guard())
        .def(
            "select",
            [](Self& self, const Bits& condition, const Operand& a, const Operand& b) {
              return Traits::result(self,
                                    self.select(Traits::value(condition), operand(a), operand(b)));
            },
            "condition"_a, "a"_a, "b"_a, Guard())
        .def(
            "convert",
            [](Self& self, const Integers& a, u32 bits, bool is_signed) {
              return Traits::result(self, self.convert(Traits::value(a), bits, is_signed));
            },
            "a"_a, "bits"_a, "signed"_a, Guard())
        .def(
            "look_up",
            [](Self& self, const Integers& index, const Array<u64>& words, u32 bits,
               bool is_signed) {
              return Traits::result(
                  self, self.look_up(Traits::value(index), as_span(words), bits, is_signed));
            },
            "index"_a, "words"_a, "bits"_a, "signed"_a, Guard());
  }

  Class& c_;
};

}  // namespace crenel::python
