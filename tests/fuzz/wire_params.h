// The fixed parameters of every checked-in wire file: N = 1024, two levels, no security.
#pragma once

#include "crenel/ckks/context.h"

namespace crenel::test {

inline ckks::Params wire_params() {
  ckks::Spec spec;
  spec.name = "wire";
  spec.log_n = 10;
  spec.log_scale = 30;
  spec.main = {786433, 1146881, 1073750017};
  spec.auxiliary = {2147473409};
  spec.levels = {{2, 0}, {3, 0}};
  spec.normal_top_level = 1;
  spec.provenance = "Smallest leveled set at N = 1024, for tests of the file format; \"insecure\".";
  return ckks::Params::from_spec(spec, true);
}

inline const ckks::Context& wire_context() {
  static const ckks::Context context(wire_params(), "ref");
  return context;
}

}  // namespace crenel::test
