// Device copies of the ring's tables and of prepared base conversions.
#pragma once

#include "backends/cuda/memory.h"
#include "backends/cuda/poly/host/conversion_rows.h"
#include "device/poly/kernels.h"

namespace crenel::backend::cuda {

struct PrimeConstants;
struct InverseScale;

/// Everything a ring needs on the device.
struct RingTables {
  std::unique_ptr<DeviceBytes> memory;
  const PrimeConstants* primes = nullptr;
  const math::Modulus<u32>* moduli = nullptr;
  /// One direction: Shoup pairs for all stages but the last four, and what those are made of
  /// (last_roots.h), [prime][N / 16]; of small rings words times R for all stages, [prime][N].
  struct Twiddles {
    const uint2* pairs = nullptr;
    const uint4* last = nullptr;
    const u32* words = nullptr;
  };
  Twiddles forward, inverse;
};

RingTables upload_ring(const std::shared_ptr<CudaDevice>& device, const ring::Ring& ring);

/// Conversions that run in one launch (the digits of a ModUp), with what is fused around them.
struct ConversionTables final : device::DeviceTable {
  std::unique_ptr<DeviceBytes> memory;
  std::vector<ConversionTable> host;  ///< what `tables` points to
  const ConversionTable* tables = nullptr;
  const uint4* matrices = nullptr;
  const ConversionTarget* targets = nullptr;
  const ColumnTarget* column_targets = nullptr;  ///< as many, of the same conversions
  const uint4* folded = nullptr;  ///< [destination][folded_words()], null where none are folded
  const u32* source_scales = nullptr;
  const u32* reciprocals = nullptr;
  const InverseScale* inverse = nullptr;  ///< per limb of the inverse transform in front
  const u32* x_scale = nullptr;           ///< divide: A/B times R per output limb
  u32 count = 0;
  u32 max_sources = 0;  ///< a rounded quotient counts as one
  u32 max_destinations = 0;
};

ConversionTables upload_conversions(const std::shared_ptr<CudaDevice>& device,
                                    const ring::Ring& ring,
                                    const std::vector<ConversionInput>& inputs,
                                    const std::vector<u32>& x_scale);

}  // namespace crenel::backend::cuda
