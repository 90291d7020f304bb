// NumPy arrays and byte buffers in and out, without copies where the memory allows it.
#pragma once

#include <nanobind/ndarray.h>

#include <complex>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "bindings.h"

namespace crenel::python {

/// The type of slots in signatures: which of the two, only the values say.
#define CRENEL_SLOTS "numpy.typing.NDArray[numpy.float64] | numpy.typing.NDArray[numpy.complex128]"

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Rows of numbers, one after the other.
struct Values {
  std::variant<Array<double>, Array<std::complex<double>>> numbers;
  u32 batch = 1;
};

/// numpy.asarray(object); ParameterError for masked places, which it would fill with what stands
/// under the mask, and for rows of different lengths.
nb::object as_array(nb::handle object, const char* name);

/// Anything that numpy.asarray takes, as float64 (bool, integers, reals) or complex128: a vector,
/// or a matrix with one vector a row. Contiguous arrays of these types are not copied.
/// ParameterError for other types and shapes, and as as_array.
Values read_values(nb::handle object, const char* name = "values");

/// The same, refusing complex numbers.
Array<double> read_reals(nb::handle object, const char* name);

template <class T>
std::span<const T> as_span(const Array<T>& array) {
  return {array.data(), array.size()};
}

/// f(numbers, rows) without the interpreter's lock; what read_values reads.
template <class F>
auto with_values(nb::handle object, const F& f) {
  const Values values = read_values(object);
  return released([&] {
    return std::visit([&](const auto& a) { return f(as_span(a), values.batch); }, values.numbers);
  });
}

/// How numbers are encoded, from what Python gave.
struct Encoding {
  Encoding(std::optional<i64> at_level, std::optional<double> at_scale, std::optional<i64> of_slots,
           std::optional<double> stated)
      : level(as_level(at_level)),
        scale(as_scale(at_scale)),
        slots(as_slots(of_slots)),
        bound(as_bound(stated)) {}
  std::optional<u32> level;
  double scale;
  u64 slots;
  double bound;
};

struct Integer {
  double value;
};
using Number = std::variant<Integer, double, std::complex<double>>;

/// Python's numbers, NumPy's, and NumPy arrays without axes; nothing for anything else.
/// ParameterError for integers beyond float64 and for a masked one.
std::optional<Number> number_of(nb::handle object);

/// A Python function of real numbers.
using RealFunction = nb::typed<nb::callable, double(double)>;
/// Its values; ParameterError where it gives something else than a real number. For calls that keep
/// the interpreter's lock.
std::function<double(double)> values_by(const RealFunction& f);

/// A NumPy array that owns `values`; the numbers are not copied.
template <class T>
nb::object to_numpy(std::vector<T>&& values) {
  auto heap = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = heap->data();
  const std::size_t size = heap->size();
  nb::capsule owner(heap.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  heap.release();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

/// Slots as a NumPy array: float64 when every slot is real, else complex128; a matrix when batch
/// > 1.
nb::object slots_to_numpy(std::vector<std::complex<double>>&& slots, bool real, u32 batch);

/// The bytes of bytes, bytearray, memoryview, mmap, numpy.ndarray, ... as they were at one time:
/// anything but `bytes`, which nothing changes, is copied, so that no other thread or process can
/// change what a loader has checked. SerializationError, before the copy, for more than
/// `max_bytes`. The copy is wiped when it goes: it may hold a secret key.
class BufferView {
 public:
  explicit BufferView(nb::handle object, std::optional<Bytes> max_bytes = std::nullopt);
  ~BufferView();
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  std::span<const u8> bytes() const { return bytes_; }

 private:
  Py_buffer view_;
  std::unique_ptr<u8[]> copy_;
  std::span<const u8> bytes_;
};

/// Limits of a loader: `max_bytes` of Python, None for the default.
inline LoadLimits limits_of(std::optional<Bytes> max_bytes) {
  if (!max_bytes) return {};
  return {bytes_of(*max_bytes, "max_bytes")};
}

inline nb::bytes to_python(const std::vector<u8>& bytes) {
  expect_host_memory(bytes.size(), "the bytes of a file as a Python object");
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// Overwrites secrets in ordinary memory; the compiler keeps it.
inline void wipe(std::span<u8> bytes) {
  for (volatile u8& b : bytes) b = 0;
}

/// The same of an exported secret key: only the caller's copy stays.
inline nb::bytes secret_to_python(std::vector<u8> bytes) {
  nb::bytes result = to_python(bytes);
  wipe(bytes);
  return result;
}

/// Runs f without the GIL, as ReleaseGil does.
template <class F>
auto released(F&& f) {
  const Computing computing;
  return f();
}

/// What parameters of every scheme have as Python values: to_bytes, equality and hash by content.
template <class Params>
void bind_value_methods(nb::class_<Params>& c) {
  c.def(
       "to_bytes", [](const Params& p) { return to_python(released([&] { return to_bytes(p); })); },
       "A complete safetensors file.")
      .def("__eq__",
           [](const Params& a, nb::handle b) {
             return nb::isinstance<Params>(b) && a == nb::cast<const Params&>(b);
           })
      .def("__hash__", [](const Params& p) { return std::hash<std::string>{}(p.id()); });
}

}  // namespace crenel::python
