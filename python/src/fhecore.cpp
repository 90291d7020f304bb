// The FHECore instruction on NumPy arrays; crenel.fhecore dresses it with shapes and types.
#include "arrays.h"
#include "crenel/fhecore/unit.h"

namespace crenel::python {
namespace {

using fhecore::Counts;
using fhecore::Decomposition;
using fhecore::Unit;
using fhecore::Work;
using Result = std::pair<nb::object, Counts>;

/// A new array of `size` words that `compute` fills without the GIL, and what that executed.
template <class Compute>
Result computed(std::size_t size, const Compute& compute) {
  std::vector<u32> out(size);
  const Counts counts = released([&] { return compute(std::span<u32>(out)); });
  return {to_numpy(std::move(out)), counts};
}

Result fhe_sync(const Unit& unit, const Array<u32>& a, const Array<u32>& b,
                const std::optional<Array<u32>>& c, const std::vector<u64>& moduli) {
  const auto addend = c ? as_span(*c) : std::span<const u32>();
  return computed(a.size(), [&](std::span<u32> d) {
    return unit.fhe_sync(d, as_span(a), as_span(b), addend, moduli,
                         static_cast<u32>(a.size() / 256));
  });
}

Result transform(const Unit& unit, const Array<u32>& x, u32 log_n, const std::vector<u64>& primes,
                 bool inverse, const std::string& decomposition) {
  const Decomposition d = device::fhecore_decomposition(decomposition);
  return computed(x.size(), [&](std::span<u32> out) {
    return inverse ? unit.intt(out, as_span(x), log_n, primes, d)
                   : unit.ntt(out, as_span(x), log_n, primes, d);
  });
}

Result base_convert(const Unit& unit, const Array<u32>& x, u32 log_n,
                    const std::vector<u64>& sources, const std::vector<u64>& destinations) {
  const std::size_t size = sources.empty() ? 0 : x.size() / sources.size() * destinations.size();
  return computed(size, [&](std::span<u32> out) {
    return unit.base_convert(out, as_span(x), log_n, sources, destinations);
  });
}

void bind_work(nb::module_& m) {
  nb::class_<Counts>(m, "FhecoreCounts", "What was executed on emulated FHECore units.")
      .def(nb::init<>())
      .def_ro("fhe_sync", &Counts::fhe_sync, "Tile products m16n16k16.")
      .def_ro("fhec", &Counts::fhec, "Instructions FHEC.16816, at most two a tile product.")
      .def_ro("setc", &Counts::setc, "Instructions FHEC.SETC: column constants loaded.")
      .def_ro("multiplications", &Counts::multiplications,
              "Element-wise modular multiplications, on the ordinary cores.")
      .def_ro("faults", &Counts::faults, "Faulty columns.")
      .def("__eq__",
           [](const Counts& a, nb::handle b) {
             return nb::isinstance<Counts>(b) && a == nb::cast<const Counts&>(b);
           })
      .def(
          "__iadd__", [](Counts& a, const Counts& b) -> Counts& { return a += b; },
          nb::rv_policy::none)
      .def("__rmul__", [](const Counts& a, u64 times) { return times * a; })
      .def("__repr__", [](const Counts& c) {
        return cat("FhecoreCounts(fhe_sync=", c.fhe_sync, ", fhec=", c.fhec, ", setc=", c.setc,
                   ", multiplications=", c.multiplications, ", faults=", c.faults, ")");
      });
  nb::class_<Work>(m, "FhecoreWork", "What a mapping executes by formula, and how full it is.")
      .def_ro("counts", &Work::counts, "What will be executed.")
      .def_ro("useful_products", &Work::useful_products, "Products that the result needs.")
      .def_ro("offered_products", &Work::offered_products, "2048 an FHEC.")
      .def_ro("depth_use", &Work::depth_use, "Part of the K steps that carry a source.")
      .def_ro("column_use", &Work::column_use, "Part of the columns that carry a result.")
      .def_prop_ro("use", &Work::use, "Useful products over offered ones.");
  m.def(
      "fhecore_transform_work",
      [](i64 log_n, const std::string& decomposition) {
        return device::fhecore_transform_work(as_unsigned<u32>(log_n, "log_n"),
                                              device::fhecore_decomposition(decomposition));
      },
      "log_n"_a, "decomposition"_a = "16^4", "Work of one limb of a transform.");
  m.def(
      "fhecore_conversion_work",
      [](i64 log_n, i64 sources, i64 destinations) {
        return device::fhecore_conversion_work(as_unsigned<u32>(log_n, "log_n"),
                                               as_unsigned<u32>(sources, "sources"),
                                               as_unsigned<u32>(destinations, "destinations"));
      },
      "log_n"_a, "sources"_a, "destinations"_a, "Work of one base conversion.");
}

}  // namespace

void bind_fhecore(nb::module_& m) {
  bind_work(m);
  nb::class_<Unit>(m, "FhecoreUnit", "Emulated FHECore units of a device; see crenel.fhecore.")
      .def(nb::init<const std::string&>(), "device"_a = "auto", ReleaseGil())
      .def_prop_ro("device", &Unit::device, "The device that emulates.")
      .def("fhe_sync", &fhe_sync, "a"_a, "b"_a, "c"_a.none(), "moduli"_a,
           nb::sig("def fhe_sync(self, a: numpy.typing.NDArray[numpy.uint32], b: "
                   "numpy.typing.NDArray[numpy.uint32], "
                   "c: numpy.typing.NDArray[numpy.uint32] | None, moduli: "
                   "collections.abc.Sequence[int]) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint32], FhecoreCounts]"),
           "Tiles [count][16][16], flat.")
      .def("transform", &transform, "x"_a, "log_n"_a, "primes"_a, "inverse"_a, "decomposition"_a,
           nb::sig("def transform(self, x: numpy.typing.NDArray[numpy.uint32], log_n: int, "
                   "primes: collections.abc.Sequence[int], inverse: bool, decomposition: str) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint32], FhecoreCounts]"),
           "Limbs [rows][primes][N], flat.")
      .def("base_convert", &base_convert, "x"_a, "log_n"_a, "sources"_a, "destinations"_a,
           nb::sig("def base_convert(self, x: numpy.typing.NDArray[numpy.uint32], log_n: int, "
                   "sources: collections.abc.Sequence[int], "
                   "destinations: collections.abc.Sequence[int]) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint32], FhecoreCounts]"),
           "Limbs [rows][sources][N], flat.");
}

}  // namespace crenel::python
