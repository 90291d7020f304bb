// The private half of a Bootstrapper: everything but keys.
#pragma once

#include "circuits/bootstrapping/packing.h"
#include "circuits/bootstrapping/plan.h"
#include "circuits/linear_transform/raised_transform.h"
#include "ckks/evaluator_state.h"
#include "ckks/observer.h"
#include "crenel/core/fork_mutex.h"
#include "rlwe/encapsulation.h"

namespace crenel::circuits {

/// Rotations that need keys, of vectors with this many slots at this level.
struct RotationNeed {
  std::vector<i64> steps;
  u64 slots = 0;
  u32 level = 0;
  bool turned = false;  ///< keys that lead back from the sparse secret, of 0 steps, too
};

/// Whether the evaluator has all of these keys.
bool serves(const ckks::Evaluator::State& s, const RotationNeed& need);

/// The matrices of a plan, for key requests and for plaintexts.
struct BootstrapMatrices {
  std::vector<DiagonalMatrix> coeff_to_slot, slot_to_coeff;
  std::optional<DiagonalMatrix> halves;
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
  using Inputs = std::span<const Ct* const>;

  ckks::Context context;
  BootstrapPlan plan;
  rlwe::Encapsulation encapsulation;
  std::vector<double> sine;  ///< Chebyshev coefficients of EvalMod
  u32 correction = 0;        ///< log2 of the second iteration's gain
  std::vector<i64> trace_steps;
  std::optional<RaisedTransform> raised_factor;  ///< the first of CoeffToSlot, with OverModRaise
  std::vector<LinearTransform> coeff_to_slot, slot_to_coeff;
  std::optional<LinearTransform> halves;  ///< what joins them, with BootstrapPlan::join_halves()
  std::vector<RotationNeed> rotations;
  MonomialPacking packing;

  State(const ckks::Context& c, BootstrapPlan plan, const BootstrapMatrices& matrices);
  /// One for a context and plan. `matrices`: the plan's, where they are at hand.
  static std::shared_ptr<State> shared(const ckks::Context& context, BootstrapPlan plan,
                                       const BootstrapMatrices* matrices = nullptr);

  /// KeyMissingError that names every missing key, and the call that makes all. `level`: the
  /// highest of conjugation and relinearisation, where EvalMod starts.
  static void check_keys(const ckks::Evaluator& ev, std::span<const RotationNeed> rotations,
                         u32 level, const BootstrapOptions& options);
  /// OutOfMemoryError where the largest of the linear transforms alone has no room.
  void expect_room(const ckks::Evaluator& ev, u32 batch) const;
  /// Slots (in a list also fewer), level and scale of an input; returns whether its scale is
  /// canonical.
  bool check_input(const ckks::Metadata& a, bool list) const;
  /// As Bootstrapper::operator() of error bounds.
  std::vector<ckks::ErrorBound> bounds(const ckks::ErrorModel& model,
                                       std::span<const ckks::ErrorBound> in, bool list) const;
  /// By the graph where there is one. A list, or what the other calls take.
  std::vector<Ct> called(const Bootstrapper& boot, const Ev& ev, Inputs in, bool list);
  /// Never by the graph.
  std::vector<Ct> eager(const Bootstrapper& boot, const Ev& ev, Inputs in, bool list);

  // The parts of a bootstrap with SlotToCoeff first, for what else may come between them.
  /// Slots at levels.input to coefficients at level 0: real parts, then imaginary ones, of the
  /// slots in bit-reversed order, a stride of N / (2 slots) apart.
  Ct to_coefficients(const Ev& ev, Ct a) const;
  /// Coefficients t q0 / 2^scale_up of level 0 to slots sin(2 pi t) / 2 pi, at the large scale and
  /// the level that EvalMod ends with; with join_halves() those of real parts, then those of
  /// imaginary ones. Other coefficients do not count, and with only_real() neither do imaginary
  /// parts.
  Ct sine_of_coefficients(const Ev& ev, const Ct& a) const;

 private:
  /// What one input of the recorded graph was, besides level, scale and bound.
  struct Signature {
    u64 slots;
    u32 batch;
    bool real;
    bool operator==(const Signature&) const = default;
  };

  u64 vectors() const;  ///< of one place of a pack: 1, or two real ones
  u64 packs(std::size_t inputs) const;
  void check_input(const Ev& ev, const Ct& a, bool list) const;
  void check_refinable(const Ct& a, bool canonical) const;
  void check_inputs(const Ev& ev, Inputs in, bool list) const;
  /// StateError where the bounds of a place are known and together larger than largest_message.
  void check_bounds(Inputs in) const;
  void check_bound(const Ct& a, double bound) const;
  /// f on inputs whose bound is not known, since the steps between are of other vectors than the
  /// messages; the results have theirs.
  template <class F>
  std::vector<Ct> with_bounds(const Ev& ev, Inputs in, bool list, const F& f) const;
  template <class F>
  std::vector<Ct> all(const Bootstrapper& boot, const Ev& ev, Inputs in, bool list, const F& f);
  std::vector<Ct> without_graph(const Ev& ev, Inputs in) const;
  std::vector<Ct> run(const Ev& ev, Inputs in);
  /// Everything but checks.
  std::vector<Ct> refreshed(const Ev& ev, Inputs in) const;
  Ct gathered(const Ev& ev, Inputs in) const;
  std::vector<Ct> scattered(const Ev& ev, Ct rows, Inputs in) const;

  /// Of rows as MonomialPacking has them.
  Ct once(const Ev& ev, const Ct& rows) const;
  Ct packed(const Ev& ev, const Ct& rows) const;
  Ct scaled_up(const Ev& ev, const Ct& a) const;
  Ct raise(const Ev& ev, const Ct& a) const;
  Ct traced(const Ev& ev, Ct a) const;
  Ct raise_to_slots(const Ev& ev, const Ct& a) const;
  Ct apply(const Ev& ev, const std::vector<LinearTransform>& factors, Ct a) const;
  Ct modular_reduction(const Ev& ev, Ct a) const;
  Ct back_to_slots(const Ev& ev, Ct a) const;
  Ct finish(const Ev& ev, Ct a) const;
  Ct refined(const Ev& ev, const Ct& rows) const;
  u64 steps() const;

  ForkMutex mutex_;                     ///< one recording or replay at a time
  std::unique_ptr<ckks::Graph> graph_;  ///< of the last signature; keys are its argument
  std::vector<Signature> graph_inputs_;
};

}  // namespace crenel::circuits
