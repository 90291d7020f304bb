// The FHECore instruction on host arrays, emulated on a device: tile products, transforms and base
// conversions with the count of what a GPU with such units would execute.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "crenel/device/device.h"
#include "crenel/device/fhecore.h"

namespace crenel::fhecore {

using Counts = device::FhecoreCounts;
using Decomposition = device::FhecoreDecomposition;
using Work = device::FhecoreWork;

/// Cheap to copy: shared state (device, stream, tables of the rings used so far). Calls from
/// several threads wait for one another. Every call returns what it executed.
class Unit {
 public:
  /// A name for device::open. Throws DeviceError.
  explicit Unit(const std::string& device = "auto");
  /// The device that it computes on.
  const device::DeviceInfo& device() const;

  /// D = A B + C modulo the column's modulus, for `tiles` tiles of 16 x 16, row-major, one after
  /// the other; c may be empty for zeros. moduli: 1, 16 (one a column) or 16 a tile, each in [1,
  /// 2^32). a: any words. b and c: any words where the modulus is above 2^28, otherwise below 2^(32
  /// - s), s the shift of the column's constants; residues always are. ParameterError names the
  /// first value that is not so.
  Counts fhe_sync(std::span<u32> d, std::span<const u32> a, std::span<const u32> b,
                  std::span<const u32> c, std::span<const u64> moduli, u32 tiles) const;

  /// Negacyclic transforms of [rows][primes][2^log_n] residues in [0, q), evaluation form in
  /// bit-reversed order (as ckks uses); out may be in. Primes are distinct, 1 modulo 2^(log_n + 1)
  /// and below 2^31; sizes as in Decomposition. Throws ParameterError.
  Counts ntt(std::span<u32> out, std::span<const u32> in, u32 log_n, const std::vector<u64>& primes,
             Decomposition decomposition = Decomposition::radix16) const;
  Counts intt(std::span<u32> out, std::span<const u32> in, u32 log_n,
              const std::vector<u64>& primes,
              Decomposition decomposition = Decomposition::radix16) const;

  /// Centred base conversion of [rows][sources][2^log_n] residues, log_n 4..17, to
  /// [rows][destinations][2^log_n]: x + u D modulo every destination, D the product of the sources,
  /// u an integer of zero mean with |u| at most half the number of sources. Distinct odd primes
  /// below 2^31, together at most 128. Throws ParameterError.
  Counts base_convert(std::span<u32> out, std::span<const u32> in, u32 log_n,
                      const std::vector<u64>& sources, const std::vector<u64>& destinations) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace crenel::fhecore
