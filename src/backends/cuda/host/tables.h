// Device copies of the ring's tables and of prepared base conversions.
#pragma once

#include "backends/cuda/host/memory.h"
#include "ring/ring.h"
#include "rns/tables.h"

namespace crenel::backend::cuda {

struct PrimeConstants;
struct ConversionTable;
struct InverseScale;

/// Everything a ring needs on the device.
struct RingTables {
  RingTables(std::shared_ptr<CudaDevice> device, const ring::Ring<u32>& ring);

  DeviceBytes memory;
  const PrimeConstants* primes = nullptr;
  const math::Modulus<u32>* moduli = nullptr;
  const u32* roots = nullptr;          ///< [prime][N], times R
  const u32* inverse_roots = nullptr;  ///< [prime][N], times R
};

/// A list of conversions that run in one launch, with what is fused around them.
struct ConversionTables {
  ConversionTables(std::shared_ptr<CudaDevice> device, const TableBuilder& builder)
      : memory(std::move(device), builder.bytes().data(), builder.bytes().size()) {}

  DeviceBytes memory;
  const ConversionTable* tables = nullptr;
  u32 count = 0;
  u32 max_sources = 0;
  u32 max_destinations = 0;
  const InverseScale* source = nullptr;  ///< per limb of the inverse transform in front
  const u32* x_scale = nullptr;          ///< divide: per output limb, A/B times R
};

}  // namespace crenel::backend::cuda
