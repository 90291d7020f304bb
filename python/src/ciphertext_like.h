// A ciphertext or an operand, as an argument; and what either refuses to be asked.
#pragma once

#include "bindings.h"

namespace crenel::python {

/// What stands for a ciphertext: one, or an operand. Points into an object that the caller holds.
struct CiphertextLike {
  const std::shared_ptr<const ckks::Ciphertext>* shared = nullptr;
  const ckks::Ciphertext& get() const { return **shared; }
};

/// None where the object stands for no ciphertext.
CiphertextLike find_ciphertext(nb::handle object) noexcept;

/// Refuses comparisons, truth values and `in`, and documents the hash: CKKS computes
/// on what it cannot see, and approximately. `what`: "a ciphertext".
template <class T>
void refuse_comparisons(nb::class_<T>& c, const std::string& what) {
  const auto refuse = [&](const char* name, const std::string& message, const char* other) {
    c.def(
        name,
        [message](const T&, const nb::args&) -> nb::object {
          throw nb::type_error(message.c_str());
        },
        nb::sig(cat("def ", name, "(self", other, ") -> typing.NoReturn").c_str()));
  };
  for (const char* name : {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
    refuse(name,
           what +
               " cannot be compared: CKKS is approximate, and nobody but the client can look. "
               "Decrypt and compare, numpy.isclose(client.decrypt(a), b); `a is b` compares "
               "objects",
           ", other: object, /");
  refuse("__bool__", what + " has no truth value: decrypt it, and ask the numbers", "");
  refuse("__contains__",
         what + " does not tell what is in it: decrypt it, and look among the numbers",
         ", other: object, /");
  c.def(
      "__hash__",
      [](nb::handle self) {
        return static_cast<std::intptr_t>(reinterpret_cast<std::uintptr_t>(self.ptr()) >> 4);
      },
      nb::sig("def __hash__(self) -> int"),
      "Of the object, not of what is encrypted: equal messages have different hashes.");
}

/// Operators of a ciphertext that no evaluator computes: TypeError says to bind it. What has
/// operators of its own (an operand, an array, a record) computes with it.
template <class T>
void refuse_operators(nb::class_<T>& c) {
  for (const char* name : {"__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
                           "__truediv__", "__matmul__", "__rmatmul__"})
    c.def(
        name,
        [](const T&, nb::handle other) -> nb::object {
          if (nb::isinstance<ckks::Operand>(other) || nb::hasattr(other, "bound_to") ||
              nb::hasattr(other, "evaluator"))
            throw nb::next_overload();
          throw nb::type_error(
              "a ciphertext computes nothing by itself: bind it to an evaluator, ev(a) + b with "
              "ev = context.evaluator(keys)");
        },
        "other"_a, nb::is_operator(),
        nb::sig(cat("def ", name, "(self, other: Operand) -> Operand").c_str()));
}

}  // namespace crenel::python

template <>
struct nanobind::detail::type_caster<crenel::python::CiphertextLike> {
  NB_TYPE_CASTER(crenel::python::CiphertextLike, const_name("Ciphertext | Operand"))
  bool from_python(handle source, auto, cleanup_list*) noexcept {
    value = crenel::python::find_ciphertext(source);
    return value.shared != nullptr;
  }
};
