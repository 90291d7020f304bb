// FHECore kernels of a device beside the library's, and raw tiles in device memory.
#pragma once

#include "device/fhecore/kernels.h"
#include "fhecore/model/fhe_sync.h"
#include "support/same.h"

namespace crenel::test {

using device::FhecoreCounts;
using device::FhecoreDecomposition;

/// Moduli around the borders of the shift rule and of the word.
inline constexpr u64 kEdgeModuli[] = {1,
                                      2,
                                      3,
                                      4,
                                      65537,
                                      (1u << 27) - 1,
                                      1u << 27,
                                      (1u << 28) - 1,
                                      1u << 28,
                                      (1u << 28) + 1,
                                      (1u << 29) + 1,
                                      2147352577,
                                      2147483647,
                                      (u64(1) << 31) + 11,
                                      4294967291,
                                      4294967295};

/// Of any length.
inline u64 random_modulus(Rng& rng) { return std::max<u64>(1, (rng() >> 32) >> (rng() % 32)); }

inline std::unique_ptr<device::FhecoreKernels> fhecore_of(device::Device& device) {
  return device::backend_of(device).make_fhecore_kernels();
}

inline std::string text(const FhecoreCounts& c) {
  return cat("fhe_sync ", c.fhe_sync, ", fhec ", c.fhec, ", setc ", c.setc, ", multiplications ",
             c.multiplications, ", faults ", c.faults);
}

/// What was executed since the last call equals `expected`.
inline void expect_counts(device::FhecoreKernels& kernels, device::Stream& stream,
                          const FhecoreCounts& expected) {
  const FhecoreCounts got = kernels.counts(stream);
  EXPECT_TRUE(got == expected) << "got " << text(got) << "; expected " << text(expected);
  kernels.reset_counts(stream);
}

/// sum_k a_k b_k + c modulo q, in integers of 128 bits: a row of 16, a column of a 16 x 16 tile.
inline u32 tile_element(const u32* a, const u32* b, u32 c, u64 q) {
  u128 sum = c;
  for (u32 k = 0; k < 16; ++k) sum += u128(a[k]) * b[16 * k];
  return static_cast<u32>(sum % q);
}

}  // namespace crenel::test
