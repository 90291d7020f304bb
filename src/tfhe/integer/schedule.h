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
/// as one error there; where that would exceed kMaxNorm2, and among `outputs`, whose further use is
/// not known, they get rotations of their own.
Schedule schedule(const Circuit& circuit, const Blocks& outputs);

/// A circuit, what it gives, and its schedule.
struct Program {
  Circuit circuit;
  Blocks outputs;
  Schedule plan;
};

/// build(circuit, form) -> outputs: the form asked for, or of both the one with fewer turns, at
/// equal turns with fewer rotations.
template <class Build>
Program compose(CircuitForm form, u64 size, u32 processors, const Build& build) {
  const auto made = [&](Form f) {
    Program program;
    program.outputs = build(program.circuit, f);
    program.plan = schedule(program.circuit, program.outputs);
    return program;
  };
  if (form == CircuitForm::lean) return made(Form::lean);
  if (form == CircuitForm::fast) return made(Form::fast);
  Program lean = made(Form::lean), fast = made(Form::fast);
  const u64 a = lean.plan.turns(size, processors), b = fast.plan.turns(size, processors);
  const bool takes_fast = b < a || (b == a && fast.plan.rotations() < lean.plan.rotations());
  return takes_fast ? std::move(fast) : std::move(lean);
}

}  // namespace crenel::tfhe::radix
