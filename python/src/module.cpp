// The extension module crenel._crenel. Users import crenel and crenel.ckks.
#include "bindings.h"
#include "pool.h"
#include "tfhe.h"

NB_MODULE(_crenel, m) {
  using namespace crenel::python;
  // Objects that are alive when the interpreter exits are no leak worth a message on stderr.
  nb::set_leak_warnings(false);
  m.doc() = "C++ part of crenel; import crenel.ckks instead.";
  m.def("version", &crenel::version, "Version of the library.");
  bind_errors(m);
  bind_optimisations(m);
  bind_device(m);
  bind_tuning(m);
  bind_params(m);
  bind_ciphertext(m);
  bind_context(m);
  bind_error_model(m);
  bind_client(m);
  bind_evaluator(m);
  bind_operand(m);
  bind_chebyshev(m);
  bind_graph(m);
  bind_account(m);
  bind_linear_transform(m);
  bind_block_transform(m);
  bind_bootstrapping(m);
  bind_tfhe(m);
  bind_bridge(m);
  bind_fhecore(m);
  bind_bench(m);
  bind_files(m);
  bind_watch(m);
  bind_pool(m);
}
