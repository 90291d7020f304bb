// The FHECore instruction as the code of a warp: FHEC.SETC and FHEC.16816 on fragments with the
// lane map of the ISA (fhecore/model/fragment.h), exchanged by shuffles. What hardware does in one
// instruction costs about 1500 here: an emulation for results and counts, not for speed.
#pragma once

#include "crenel/device/fhecore.h"
#include "fhecore/model/fragment.h"
#include "math/shoup.h"

namespace crenel::backend::cuda {

using crenel::fhecore::MapA;
using crenel::fhecore::MapB;
using crenel::fhecore::MapC;

inline constexpr u32 kAllLanes = 0xffffffffu;

/// This lane's registers of a fragment.
template <class Map>
struct Registers {
  u32 at[Map::registers] = {};

  /// The element of register `reg` in this lane.
  static __device__ __forceinline__ crenel::fhecore::Element element(u32 reg) {
    return Map::element({threadIdx.x % 32, reg});
  }
};

/// A warp's unit: the constants of 8 columns, and what was executed. All 32 lanes call together.
class WarpUnit {
 public:
  __device__ __forceinline__ WarpUnit() : lane_(threadIdx.x % 32) {}

  /// FHEC.SETC: one register of a constants fragment.
  __device__ __forceinline__ void setc(u32 word) {
    const crenel::fhecore::Column own = column(word, lane_ >> 2);
    own_shift_ = own.constants.shift;
    invalid_ = __ballot_sync(kAllLanes, !own.valid);
#pragma unroll
    for (u32 j = 0; j < 2; ++j) result_[j] = column(word, 2 * (lane_ & 3) + j).constants;
    ++setc_;
  }

  /// FHEC.16816.u32: d = a b + c, c only with `use_c`; d may be c. `half` 0 or 1 of a tile product.
  /// Returns the fault bits of the 8 columns.
  __device__ __forceinline__ u32 fhec(u32 half, Registers<MapC>& d, const Registers<MapA>& a,
                                      const Registers<MapB>& b, const Registers<MapC>& c,
                                      bool use_c) {
    const u32 faults = fault_bits(b, c, use_c);
    // Registers 0 and 2 hold column 2t, 1 and 3 column 2t + 1; 0 and 1 row g, 2 and 3 row g + 8.
    u32 acc[4] = {};
    const u32 row = lane_ >> 2, col = 2 * (lane_ & 3);
#pragma unroll
    for (u32 k = 0; k < crenel::fhecore::kDepth; ++k) {
      u32 left[2], right[2];
#pragma unroll
      for (u32 h = 0; h < 2; ++h) {
        left[h] = __shfl_sync(kAllLanes, a.at[MapA::place({8 * h, k}).reg],
                              static_cast<int>(MapA::place({row, k}).lane));
        right[h] = __shfl_sync(kAllLanes, b.at[MapB::place({k, 0}).reg],
                               static_cast<int>(MapB::place({k, col + h}).lane))
                   << result_[h].shift;
      }
#pragma unroll
      for (u32 e = 0; e < 4; ++e) {
        const auto& m = result_[e & 1];
        const u32 addend = k == 0 && use_c ? c.at[e] << m.shift : 0;
        acc[e] =
            crenel::fhecore::pe_step<32>(acc[e], left[e >> 1], right[e & 1], addend, m.q, m.mu);
      }
    }
#pragma unroll
    for (u32 e = 0; e < 4; ++e)
      d.at[e] = (faults >> (col + (e & 1)) & 1) != 0 ? 0 : acc[e] >> result_[e & 1].shift;
    sync_ += half == 0;
    ++fhec_;
    faults_ += __popc(faults);
    return faults;
  }

  /// An element-wise multiplication of this lane, on its ordinary core.
  __device__ __forceinline__ u32 multiply(u32 x, const math::ShoupConstant<u32>& c, u32 q) {
    ++multiplications_;
    return math::mul_shoup<u32>(x, c, q);
  }

  /// Adds what was executed to the counters, in the order of device::FhecoreCounts.
  __device__ __forceinline__ void finish(unsigned long long* counters) const {
    const u32 multiplications = __reduce_add_sync(kAllLanes, multiplications_);
    if (lane_ != 0) return;
    const u32 values[5] = {sync_, fhec_, setc_, multiplications, faults_};
#pragma unroll
    for (u32 i = 0; i < 5; ++i)
      if (values[i] != 0) atomicAdd(counters + i, values[i]);
  }

 private:
  static __device__ __forceinline__ crenel::fhecore::Column column(u32 word, u32 col) {
    u32 words[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i)
      words[i] = __shfl_sync(kAllLanes, word, static_cast<int>(8 * i + col));
    return crenel::fhecore::decode(words[0], words[1], words[2], words[3]);
  }

  static __device__ __forceinline__ bool overflows(u32 word, u32 shift) {
    return static_cast<u64>(word) << shift >> 32 != 0;
  }

  __device__ __forceinline__ u32 fault_bits(const Registers<MapB>& b, const Registers<MapC>& c,
                                            bool use_c) const {
    bool right = false, even = false, odd = false;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      right |= overflows(b.at[i], own_shift_);
      const bool addend = use_c && overflows(c.at[i], result_[i & 1].shift);
      ((i & 1) != 0 ? odd : even) |= addend;
    }
    // Column j of B lies in lanes 4j..4j+3, columns 2t and 2t+1 of C in the lanes t modulo 4.
    const u32 of_b = __ballot_sync(kAllLanes, right) | invalid_;
    const u32 of_c[2] = {__ballot_sync(kAllLanes, even), __ballot_sync(kAllLanes, odd)};
    u32 faults = 0;
#pragma unroll
    for (u32 j = 0; j < crenel::fhecore::kCols; ++j) {
      const bool faulty =
          (of_b >> (4 * j) & 0xf) != 0 || (of_c[j & 1] & (0x11111111u << (j >> 1))) != 0;
      faults |= static_cast<u32>(faulty) << j;
    }
    return faults;
  }

  u32 lane_;
  u32 own_shift_ = 0;  ///< of the column whose elements of B this lane holds
  u32 invalid_ = 0;    ///< lanes whose column of B has no valid constants
  crenel::fhecore::ColumnConstants result_[2] = {};  ///< of the columns of this lane's results
  u32 sync_ = 0, fhec_ = 0, setc_ = 0, multiplications_ = 0, faults_ = 0;
};

}  // namespace crenel::backend::cuda
