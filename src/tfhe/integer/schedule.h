// Which rotations a circuit runs: look-ups of one argument share one where the argument is small,
// and of circuits that compute the same the one is taken that a device finishes first.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "crenel/tfhe/integer.h"
#include "tfhe/integer/circuit.h"

namespace crenel::tfhe::radix {

/// One rotation: the nodes whose functions of one argument it evaluates. With S outputs the
/// argument is below 16 / S; S is 1, 2 or 4.
struct Rotation {
  std::vector<u32> nodes;
  u32 outputs = 1;
  u32 call_outputs = 1;  ///< of the call that it is part of: as many or more

  /// The result of the call's that the n-th node is.
  u32 result(std::size_t n) const { return static_cast<u32>(n) * (call_outputs / outputs); }
};

/// What rotations of a round are one call of the device. `equal`: those with as many outputs.
/// `filled`: where all of fewer outputs have the room, they take as many as the others; what is not
/// used costs a key switch where ciphertexts rest behind it. `one`: all; what is not used costs
/// nothing where ciphertexts rest under the extracted key.
enum class Calls : u8 { equal, filled, one };

/// Calls of a round by their number of results: 1, 2, 4.
inline constexpr std::size_t kCalls = 3;
constexpr std::size_t call_of(u32 outputs) { return outputs / 2; }

/// How many rotations a circuit has, and when: what forms are compared by.
struct Shape {
  std::vector<std::array<u32, kCalls>> rounds;

  u64 rotations() const;
  /// How often `processors` of them take up a rotation of `size` integers, one each, where every
  /// round waits for the one before, and every call of a round.
  u64 turns(u64 size, u32 processors) const;
  u64 bytes() const { return sizeof *this + rounds.capacity() * sizeof rounds[0]; }
};

/// Rotations of a circuit, round by round (rounds[0] has none).
struct Schedule {
  std::vector<std::vector<Rotation>> rounds;

  u64 rotations() const;
  u64 outputs() const;  ///< key switches
  u32 depth() const { return static_cast<u32>(rounds.size()) - 1; }
  Shape shape() const;
};

/// Errors of one rotation's results may depend on each other, so results that meet in one sum count
/// as one error there; where that would exceed max_norm2(), and among `outputs`, whose further use
/// is not known, they get rotations of their own.
Schedule schedule(const Circuit& circuit, const Blocks& outputs, Calls calls);

/// A circuit, what it gives, and its schedule.
struct Program {
  Circuit circuit;
  Blocks outputs;
  Schedule plan;

  u64 bytes() const;  ///< of host memory, about
};

/// Of several forms' shapes the one with fewest turns, at equal turns with fewest rotations.
Form choose(std::span<const std::shared_ptr<const Shape>, kFormCount> shapes, u64 size,
            u32 processors);

/// What of a set circuits depend on.
struct Room {
  double max_norm2 = kMaxNorm2;
  bool free_outputs = false;  ///< its ciphertexts rest under the extracted key

  static Room of(const Params& params);
};

/// build(circuit, form) -> outputs, in one form.
template <class Build>
Program made(Form form, const Room& room, const Build& build) {
  Program program{Circuit(room.max_norm2), {}, {}};
  program.outputs = build(program.circuit, form);
  program.circuit.finish();
  program.plan = schedule(program.circuit, program.outputs,
                          room.free_outputs    ? Calls::one
                          : form == Form::lean ? Calls::equal
                                               : Calls::filled);
  return program;
}

}  // namespace crenel::tfhe::radix
