// The private half of a Bootstrapper: everything but keys.
#pragma once

#include "circuits/bootstrapping/plan.h"
#include "ckks/evaluator_state.h"
#include "ckks/observer.h"
#include "crenel/core/fork_mutex.h"
#include "rlwe/encapsulation.h"

namespace crenel::circuits {

/// Rotations that need keys, of vectors with this many slots.
struct RotationNeed {
  std::vector<i64> steps;
  u64 slots = 0;
};

/// The matrices of a plan, for key requests and for plaintexts.
struct BootstrapMatrices {
  std::vector<DiagonalMatrix> coeff_to_slot, slot_to_coeff;
  explicit BootstrapMatrices(const BootstrapPlan& plan);
  std::vector<RotationNeed> rotations(const ckks::Params& params, const BootstrapPlan& plan) const;
};

/// Largest |slot| of a message that a bootstrap takes: of bounds of errors and of ciphertexts.
double largest_message(const ckks::Params& params, const BootstrapPlan& plan);
/// Where a bootstrap's result is another message's.
ckks::ResultRange result_range(const ckks::Params& params, const BootstrapPlan& plan);

struct Bootstrapper::State {
  using Ev = ckks::Evaluator;
  using Ct = ckks::Ciphertext;

  ckks::Context context;
  BootstrapPlan plan;
  rlwe::Encapsulation encapsulation;
  std::vector<double> sine;  ///< Chebyshev coefficients of EvalMod
  u32 correction = 0;        ///< log2 of the second iteration's gain
  std::vector<i64> trace_steps;
  std::vector<LinearTransform> coeff_to_slot, slot_to_coeff;
  std::vector<RotationNeed> rotations;

  State(const ckks::Context& c, BootstrapPlan plan, const BootstrapMatrices& matrices);
  /// One for a context and plan. `matrices`: the plan's, where they are at hand.
  static std::shared_ptr<State> shared(const ckks::Context& context, BootstrapPlan plan,
                                       const BootstrapMatrices* matrices = nullptr);

  /// KeyMissingError that names every missing key, and the call that makes all.
  static void check_keys(const ckks::Evaluator& ev, std::span<const RotationNeed> rotations,
                         const BootstrapOptions& options);
  void check_input(const ckks::Evaluator& ev, const ckks::Ciphertext& a) const;
  /// OutOfMemoryError where the largest of the linear transforms alone has no room.
  void expect_room(const ckks::Evaluator& ev, u32 batch) const;
  /// Slots, level and scale of an input; returns whether its scale is canonical.
  bool check_input(const ckks::Metadata& a) const;
  /// StateError where the bound of an input is known and larger than largest_message.
  void check_bound(const ckks::Ciphertext& a) const;
  /// f on an input whose bound is not known, since the steps between are of other vectors than the
  /// message; the result has a's.
  template <class F>
  Ct with_bound(const Ev& ev, const Ct& a, const F& f) const;
  void check_refinable(const ckks::Ciphertext& a, bool canonical) const;
  ckks::Ciphertext eager(const ckks::Evaluator& ev, const ckks::Ciphertext& a) const;
  /// By the graph where there is one.
  ckks::Ciphertext run(const ckks::Evaluator& ev, const ckks::Ciphertext& a);

 private:
  Ct once(const Ev& ev, const Ct& a) const;
  Ct raise(const Ev& ev, const Ct& a) const;
  Ct raise_to_slots(const Ev& ev, const Ct& a) const;
  Ct apply(const Ev& ev, const std::vector<LinearTransform>& factors, Ct a) const;
  Ct modular_reduction(const Ev& ev, const Ct& a) const;
  Ct back_to_slots(const Ev& ev, Ct a) const;
  Ct finish(const Ev& ev, Ct a) const;
  Ct refined(const Ev& ev, const Ct& a) const;
  u64 steps() const;

  ForkMutex mutex_;                     ///< one recording or replay at a time
  std::unique_ptr<ckks::Graph> graph_;  ///< of the last signature; keys are its argument
  u32 graph_batch_ = 0;
  bool graph_real_ = false;
};

}  // namespace crenel::circuits
