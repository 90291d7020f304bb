// The private half of a Bootstrapper.
#pragma once

#include "circuits/bootstrapping/plan.h"
#include "ckks/evaluator_state.h"
#include "rlwe/encapsulation.h"

namespace crenel::circuits {

struct Bootstrapper::State {
  ckks::Context context;
  BootstrapPlan plan;
  ckks::Evaluator ev;
  rlwe::Encapsulation encapsulation;
  std::vector<double> sine;  ///< Chebyshev coefficients of EvalMod
  u32 correction = 0;        ///< log2 of the second iteration's gain
  std::vector<i64> trace_steps;
  std::vector<LinearTransform> coeff_to_slot, slot_to_coeff;
  std::unique_ptr<ckks::Graph> graph;  ///< of the last signature
  ckks::Metadata graph_meta;
  u32 graph_batch = 0;

  State(const ckks::Context& c, ckks::EvaluationKeys keys, const BootstrapOptions& options);

  void check_keys(const std::vector<DiagonalMatrix>& cts,
                  const std::vector<DiagonalMatrix>& stc) const;
  void check_input(const ckks::Ciphertext& a) const;
  void check_refinable(const ckks::Ciphertext& a, bool canonical) const;
  ckks::Ciphertext eager(const ckks::Ciphertext& a) const;
  ckks::Ciphertext run(const ckks::Ciphertext& a);
  ckks::Ciphertext once(const ckks::Ciphertext& a) const;
  ckks::Ciphertext raise(const ckks::Ciphertext& a) const;
  ckks::Ciphertext raise_to_slots(const ckks::Ciphertext& a) const;
  ckks::Ciphertext apply(const std::vector<LinearTransform>& factors, ckks::Ciphertext a) const;
  ckks::Ciphertext modular_reduction(const ckks::Ciphertext& a) const;
  ckks::Ciphertext back_to_slots(ckks::Ciphertext a) const;
  ckks::Ciphertext finish(ckks::Ciphertext a) const;
  ckks::Ciphertext refined(const ckks::Ciphertext& a) const;
};

}  // namespace crenel::circuits
