// The smallest contexts that have every kind of object: what a fuzzer loads files into.
#pragma once

#include "crenel/ckks/client.h"
#include "crenel/tfhe/evaluator.h"
#include "crenel/tfhe/integer.h"
#include "fuzz/wire_params.h"

namespace crenel::test {

/// One level of one prime and two special ones: a key is 12 KB, and there is encapsulation.
inline const ckks::Context& tiny_ckks() {
  static const ckks::Context context = [] {
    ckks::Spec spec;
    spec.name = "tiny";
    spec.log_n = 10;
    spec.log_scale = 25;
    spec.main = {1073750017};
    spec.auxiliary = {2147473409, 2147389441};
    spec.levels = {{1, 0}};
    spec.normal_top_level = 0;
    return ckks::Context(ckks::Params::from_spec(spec, true), "ref");
  }();
  return context;
}

/// Gates at n = 2, N = 8: keys of a few KB.
inline const tfhe::Context& tiny_tfhe() {
  static const tfhe::Context context = [] {
    tfhe::Spec spec = tfhe::Params::preset("toy-raising", true).spec();
    spec.name = "tiny";
    spec.lwe_dim = tfhe::LweDim(2);
    spec.glwe_dim = tfhe::GlweDim(1);
    spec.poly_size = tfhe::PolySize(8);
    spec.switch_base_log = tfhe::DecompBaseLog(2);
    return tfhe::Context(tfhe::Params::from_spec(spec, true), "ref");
  }();
  return context;
}

/// Integers want p = 32: the smallest set that has them.
inline const tfhe::Context& small_lut4() {
  static const tfhe::Context context(tfhe::Params::preset("toy-lut4", true), "ref");
  return context;
}

/// A set with groups.
inline const tfhe::Context& small_groups() {
  static const tfhe::Context context(tfhe::Params::preset("toy-lut4g4", true), "ref");
  return context;
}

}  // namespace crenel::test
