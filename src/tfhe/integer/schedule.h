// Which rotations a circuit runs: look-ups of one argument share one where the argument is small,
// and of two circuits that compute the same the one is taken that a device finishes first.
#pragma once

#include <vector>

#include "crenel/tfhe/integer.h"
#include "tfhe/integer/circuit.h"

namespace crenel::tfhe::radix {

/// One rotation: the nodes whose functions of one argument it evaluates. With S outputs the
/// argument is below 16 / S; S is 1, 2 or 4.
struct Rotation {
  std::vector<u32> nodes;
  u32 outputs = 1;
};

/// Rotations of a circuit, round by round (rounds[0] has none).
struct Schedule {
  std::vector<std::vector<Rotation>> rounds;

  u64 rotations() const;
  u64 outputs() const;  ///< key switches
  u32 depth() const { return static_cast<u32>(rounds.size()) - 1; }
  /// How often `processors` of them take up a rotation of `size` integers, one each, where every
  /// round waits for the one before: the measure by which forms are compared.
  u64 turns(u64 size, u32 processors) const;
};

/// Errors of one rotation's results may depend on each other, so results that meet in one sum count
/// as one error there; where that would exceed max_norm2(), and among `outputs`, whose further use
/// is not known, they get rotations of their own.
/// `few_calls`: rotations of a round that have the room take as many outputs as the others, so that
/// they are one call; what is not used costs a key switch where ciphertexts rest behind it.
Schedule schedule(const Circuit& circuit, const Blocks& outputs, bool few_calls = false);

/// A circuit, what it gives, and its schedule.
struct Program {
  Circuit circuit;
  Blocks outputs;
  Schedule plan;
};

/// build(circuit, form) -> outputs: the form asked for, or of all the one with fewest turns, at
/// equal turns with fewest rotations.
template <class Build>
Program compose(CircuitForm form, u64 size, u32 processors, double max_norm2, const Build& build) {
  const auto made = [&](Form f) {
    Program program{Circuit(max_norm2), {}, {}};
    program.outputs = build(program.circuit, f);
    program.plan = schedule(program.circuit, program.outputs, f != Form::lean);
    return program;
  };
  if (form == CircuitForm::lean) return made(Form::lean);
  if (form == CircuitForm::fast) return made(Form::fast);
  Program best = made(Form::lean);
  for (const Form f : {Form::middle, Form::fast}) {
    Program other = made(f);
    const u64 a = best.plan.turns(size, processors), b = other.plan.turns(size, processors);
    if (b < a || (b == a && other.plan.rotations() < best.plan.rotations()))
      best = std::move(other);
  }
  return best;
}

}  // namespace crenel::tfhe::radix
