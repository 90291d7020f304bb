// The FHECore unit in software: what is counted, how transforms are cut, what a mapping costs.
#pragma once

#include <string>

#include "crenel/core/types.h"

namespace crenel::device {

/// What was executed, counted where it was executed. Instructions are those of a warp.
struct FhecoreCounts {
  u64 fhe_sync = 0;  ///< m16n16k16 tile products: left halves; the right half is left out where
                     ///< none of its columns is live
  u64 fhec = 0;      ///< FHEC.16816 instructions, at most two a tile product
  u64 setc = 0;      ///< FHEC.SETC instructions
  u64 multiplications = 0;  ///< element-wise modular multiplications, on the ordinary cores
  u64 faults = 0;           ///< columns of FHEC results that were faulty

  /// Count by count.
  FhecoreCounts& operator+=(const FhecoreCounts& o) {
    fhe_sync += o.fhe_sync;
    fhec += o.fhec;
    setc += o.setc;
    multiplications += o.multiplications;
    faults += o.faults;
    return *this;
  }
  friend FhecoreCounts operator*(u64 times, FhecoreCounts c) {
    return {times * c.fhe_sync, times * c.fhec, times * c.setc, times * c.multiplications,
            times * c.faults};
  }
  friend bool operator==(const FhecoreCounts&, const FhecoreCounts&) = default;
};

/// How a transform becomes matrix products. radix16: DFTs of 16, one K tile each, after a first
/// pass of radix 2, 4 or 8 when 4 does not divide log N; log N = 8..17. radix256: two passes of
/// radix 256 with sums over 16 K tiles; log N = 16.
enum class FhecoreDecomposition : u8 { radix16, radix256 };
/// "16^4", "256x256"
const char* name_of(FhecoreDecomposition decomposition);
/// The inverse of name_of; ParameterError for another text.
FhecoreDecomposition fhecore_decomposition(const std::string& name);

/// What a mapping executes by formula, and which part of the offered work is mathematics.
struct FhecoreWork {
  FhecoreCounts counts;
  u64 useful_products = 0;   ///< a b that the result needs
  u64 offered_products = 0;  ///< 2048 an FHEC
  double depth_use = 0;      ///< part of the K steps that carry a source
  double column_use = 0;     ///< part of the columns that carry a result
  /// Useful over offered products, 0 to 1.
  double use() const { return offered_products ? double(useful_products) / offered_products : 0; }
};

/// One limb of a transform, either direction. ParameterError for a size that the decomposition does
/// not serve.
FhecoreWork fhecore_transform_work(u32 log_n, FhecoreDecomposition decomposition);
/// Base conversion of 2^log_n coefficients, log_n 4..17, at least one source and destination.
FhecoreWork fhecore_conversion_work(u32 log_n, u32 sources, u32 destinations);

}  // namespace crenel::device
