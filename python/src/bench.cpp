// The suites of bench/ that an installation can run; crenel.cli.bench hands arguments over.
#include <cstdio>

#include "arrays.h"
#include "bindings.h"
#include "harness/suites.h"

namespace crenel::python {
namespace {

int run_suite(int (*suite)(const bench::Words&), const bench::Words& words) {
  const int code = released([&] { return suite(words); });
  static_cast<void>(std::fflush(stdout));  // before Python's own output goes on
  return code;
}

}  // namespace

void bind_bench(nb::module_& m) {
  m.def(
      "bench_boot", [](const bench::Words& words) { return run_suite(bench::run_boot, words); },
      nb::arg("words"), "Bootstrapping: a program's name and its arguments to its exit status.");
  m.def(
      "bench_tfhe", [](const bench::Words& words) { return run_suite(bench::run_tfhe, words); },
      nb::arg("words"), "TFHE: a program's name and its arguments to its exit status.");
}

}  // namespace crenel::python
