// The suites of bench/ that an installation can run; crenel.cli.bench hands arguments over.
#include <nanobind/stl/shared_ptr.h>

#include <cstdio>

#include "arrays.h"
#include "bindings.h"
#include "harness/suites.h"

namespace crenel::python {
namespace {

bench::Json number_or_text(nb::handle value) {
  if (value.is_none()) return {};
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  return nb::cast<double>(value);
}

/// An object of crenel.cli.bench_energy: `check(device)` and `measure(device, steps, work)`, which
/// returns a dictionary of numbers and texts.
class PythonMeter final : public bench::EnergyMeter {
 public:
  explicit PythonMeter(nb::object meter) : meter_(std::move(meter)) {}

  void check(const std::shared_ptr<device::Device>& device) const override {
    const nb::gil_scoped_acquire held;
    meter_.attr("check")(device);
  }
  bench::Json measure(const std::shared_ptr<device::Device>& device, u64 steps,
                      const std::function<void()>& work) const override {
    const nb::gil_scoped_acquire held;
    const nb::object call = nb::cpp_function([&work] {
      const nb::gil_scoped_release free;
      work();
    });
    const nb::dict found = nb::cast<nb::dict>(meter_.attr("measure")(device, steps, call));
    bench::Json::Object all;
    for (const auto& [name, value] : found)
      all.emplace_back(nb::cast<std::string>(name), number_or_text(value));
    return all;
  }

 private:
  nb::object meter_;
};

template <class F>
int run_suite(const F& suite) {
  const int code = released(suite);
  static_cast<void>(std::fflush(stdout));  // before Python's own output goes on
  return code;
}

}  // namespace

void bind_bench(nb::module_& m) {
  m.def(
      "bench_boot",
      [](const bench::Words& words, nb::object meter) {
        const PythonMeter counting(std::move(meter));
        return run_suite([&] { return bench::run_boot(words, &counting); });
      },
      nb::arg("words"), nb::arg("meter"),
      "Bootstrapping: a program's name and its arguments to its exit status. meter: of energy, as\n"
      "crenel.cli.bench_energy has it.");
  m.def(
      "bench_tfhe",
      [](const bench::Words& words) { return run_suite([&] { return bench::run_tfhe(words); }); },
      nb::arg("words"), "TFHE: a program's name and its arguments to its exit status.");
}

}  // namespace crenel::python
