// What a bootstrap does at which level, decided from parameters and options alone.
#pragma once

#include "circuits/mod1/arcsine.h"
#include "circuits/mod1/sine_fit.h"
#include "crenel/circuits/bootstrapping.h"
#include "rlwe/key_levels.h"

namespace crenel::circuits {

/// Levels that EvalMod has in every bootstrapping set: 5 for the polynomial, 3 double angles.
inline constexpr u32 kEvalModLevels = 8;

struct BootstrapPlan {
  BootstrapOptions options;   ///< with every default filled in
  bool ratio_chosen = false;  ///< the message ratio among them
  BootstrapLevels levels;
  Mod1Params mod1;
  bool joined = false;     ///< real and imaginary parts share one ciphertext: slots < N/2, not real
                           ///< coefficients alone
  bool symmetric = false;  ///< BootstrapSavings::real_symmetry: the first half of the coefficients
                           ///< is all that goes through EvalMod
  double q0 = 0.0;         ///< Q_0
  u32 scale_up = 0;        ///< log2 of the integer the message is multiplied by before ModRaise
  double eval_scale = 0.0;            ///< E: scale at the start of EvalMod
  ArcsinePlan reduced;                ///< level and scale after EvalMod and the arcsine
  double coeff_to_slot_factor = 1.0;  ///< of each CoeffToSlot matrix
  double slot_to_coeff_factor = 1.0;  ///< of each SlotToCoeff matrix
  double output_scale = 0.0;          ///< SlotToCoeff first: not used
  double read_scale = 0.0;            ///< SlotToCoeff first: that EvalMod's result is read at
  double halves_scale = 0.0;          ///< of join_halves(): of the plaintexts that join them

  /// The level, above the normal ones, as CoeffToSlot and EvalMod have it.
  u32 upper(u32 level) const {
    return levels.short_base ? rlwe::short_level(*levels.short_base, level) : level;
  }
  u32 raised() const { return upper(levels.raised); }
  u32 eval_mod() const { return upper(levels.eval_mod); }

  u64 slots() const { return options.slots * options.pack; }  ///< of what is bootstrapped at once
  bool slot_to_coeff_first() const { return options.order == BootstrapOrder::slot_to_coeff_first; }
  /// SlotToCoeff first, real slots become real coefficients: there is no imaginary half. Packed
  /// ones are not real.
  bool only_real() const {
    return slot_to_coeff_first() && options.message == BootstrapMessage::real && options.pack == 1;
  }
  /// EvalMod runs on one ciphertext, not on a real and an imaginary one.
  bool one_part() const { return joined || symmetric || only_real(); }
  /// SlotToCoeff first, what EvalMod leaves in two halves is joined with the last rescale.
  bool join_halves() const { return joined && slot_to_coeff_first(); }
  /// OverModRaise: the first factor of CoeffToSlot takes no level.
  bool over_mod_raise() const { return options.savings.over_mod_raise.value(); }
  /// The real part is taken at the end.
  bool real_part() const { return options.message == BootstrapMessage::real && !only_real(); }
};

/// ParameterError for parameters without bootstrapping levels and for options they cannot serve.
BootstrapPlan plan_bootstrap(const ckks::Params& params, BootstrapOptions options);

/// The matrices of a plan.
std::vector<DiagonalMatrix> coeff_to_slot_matrices(const BootstrapPlan& plan);
std::vector<DiagonalMatrix> slot_to_coeff_matrices(const BootstrapPlan& plan);

}  // namespace crenel::circuits
