// Switches of what makes operations fast, one an optimisation: what an ablation turns off.
#pragma once

#include <initializer_list>
#include <string>

#include "crenel/device/device.h"

namespace crenel::device {

/// All are on unless somebody turns them off. Only `merged_rescale` changes bits, within errors.
enum class Optimisation : u8 {
  // Fused operations of PolyKernels; without one its default composition runs.
  tensor,              ///< the products of two ciphertexts in one launch
  tensor_square,       ///< the same of a square, each input read once
  doubling,            ///< 2 x^2 + constant at the end of tensor_square
  linear_combination,  ///< sums of multiples in one launch, partial sums in registers
  plain_sums,          ///< sums of products with plaintexts, likewise
  automorphism_add,    ///< a rotation added to a sum as it is read
  mod_up,              ///< scaling in the inverse transform, a digit's own limbs copied by a pass
  key_multiply,        ///< products with a key and their sum in one launch
  key_switch,          ///< products with the key in the last transform pass of ModUp
  lift,                ///< P times another ciphertext added in that pass
  division,            ///< ModDown and rescale end in the last transform pass
  division_addend,     ///< what is added to a quotient is added there
  hoisted_sums,        ///< baby steps of a linear transform are never stored
  shared_keys,         ///< a word of a key is read once for several ciphertexts of a batch
  rotated_rows,        ///< a rotation where the key switch before it writes its result
  product_rows,        ///< products that are relinearised are made by the passes that read them
  divided_rows,        ///< what a division drops leaves a key switch through its inverse transform
  // Forms of base conversion.
  held_sources,      ///< a block of a base conversion reads its sources once
  conversion_shape,  ///< destinations a block by the size of the grid; otherwise 16
  convert_columns,   ///< what is converted passes on to the column pass in registers
  // Working sets by the size of the cache.
  multi_polynomial,  ///< all digits, and all components of a division, in the launches of one
  // Devices of several parts.
  entries_apart,  ///< EvalMod's halves on halves of the parts: of keys that are made with it on
  // Launches.
  graphs,          ///< recordings are replayed as graphs; otherwise queued again
  launch_overlap,  ///< a launch begins while the one before it ends
  // Algorithms.
  hoisting,        ///< baby steps of a linear transform share one ModUp
  merged_rescale,  ///< ModDown and the rescale after it are one division
};
inline constexpr u32 kOptimisations = u32(Optimisation::merged_rescale) + 1;

/// "tensor", "tensor_square", ...
const char* name_of(Optimisation optimisation);
/// What it does, in one line.
const char* meaning_of(Optimisation optimisation);
/// ParameterError, naming the known ones, for another name.
Optimisation optimisation_of(const std::string& name);

/// Which optimisations are on.
class Optimisations {
 public:
  constexpr Optimisations() = default;  ///< all
  /// None, those of a list, or those of bits() of another set (bits beyond the last are ignored).
  static constexpr Optimisations none() { return Optimisations(0); }
  static constexpr Optimisations only(std::initializer_list<Optimisation> which) {
    Optimisations set(0);
    for (const Optimisation o : which) set = set.with(o);
    return set;
  }
  static constexpr Optimisations of_bits(u32 bits) { return Optimisations(bits & kAll); }

  /// Whether one is on, and the same set with one on or off.
  constexpr bool has(Optimisation o) const { return (bits_ >> u32(o) & 1) != 0; }
  constexpr Optimisations with(Optimisation o) const { return Optimisations(bits_ | bit(o)); }
  constexpr Optimisations without(Optimisation o) const { return Optimisations(bits_ & ~bit(o)); }
  /// Bit i is that of the i-th Optimisation.
  constexpr u32 bits() const { return bits_; }
  constexpr bool operator==(const Optimisations&) const = default;

 private:
  static constexpr u32 kAll = (u32(1) << kOptimisations) - 1;
  static constexpr u32 bit(Optimisation o) { return u32(1) << u32(o); }
  constexpr explicit Optimisations(u32 bits) : bits_(bits) {}
  u32 bits_ = kAll;
};

/// Those of operations that are queued on this device from now on. Recorded graphs keep what they
/// were recorded with. Any thread may ask.
Optimisations optimisations(const Device& device);
/// Also from any thread; operations of other threads that are being queued may use either.
/// Workspace is estimated for all optimisations: without some of them operations take more.
void set_optimisations(Device& device, Optimisations wanted);
/// open(name), then set_optimisations().
std::shared_ptr<Device> open(const std::string& name, Optimisations wanted);

}  // namespace crenel::device
