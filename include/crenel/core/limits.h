// How much memory a loader of untrusted bytes may take.
#pragma once

#include <algorithm>
#include <optional>

#include "crenel/core/types.h"

namespace crenel {

/// Bound on the memory that one load takes, in host and device memory together: the object, the
/// temporary copies beside it, and the tables of the file's header; for parameters, the tables of a
/// context made of them. The file itself does not count. It is compared with what the header
/// states before any of that memory is taken; SerializationError names both numbers. A header whose
/// tables take no more than kReadHeader is read in any case, so that they are those of the whole
/// load; of a larger one the first refusal names the tables alone.
///
/// The default of arrays and parameters is 256 MiB, which holds one ciphertext of the largest CKKS
/// parameters that exist; that of evaluation keys is 16 GiB, which holds the keys of every TFHE
/// set without packing. Larger files may take four times their size, which is what CKKS objects
/// need at most: a seed stands for half of them. A seed of TFHE stands for several hundred times
/// what is sent with it, so there the sender alone would say what a load costs.
struct LoadLimits {
  static constexpr u64 kArrayBytes = u64{256} << 20;
  static constexpr u64 kKeyBytes = u64{16} << 30;
  static constexpr u64 kFileFactor = 4;
  static constexpr u64 kReadHeader = u64{4} << 20;

  std::optional<u64> max_bytes;  ///< exactly this, instead of the default

  /// The bound for a file of `file_bytes` whose kind has the default `usual`.
  u64 bound(u64 usual, u64 file_bytes) const {
    if (max_bytes) return *max_bytes;
    return file_bytes > ~u64{0} / kFileFactor ? ~u64{0} : std::max(usual, kFileFactor * file_bytes);
  }
};

}  // namespace crenel
