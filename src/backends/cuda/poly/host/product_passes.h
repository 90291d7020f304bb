// The passes of a key switch that make a product of two ciphertexts where they read it.
#pragma once

#include "backends/cuda/poly/host/transform_launch.h"
#include "device/poly/kernels.h"

namespace crenel::backend::cuda {

/// The passes know one factor a limb: real ones.
bool is_real(const ring::PolyView<const u32>* addend, const device::LimbScalars* factor);
/// Whether there are passes for a product with this sum: real factors, at most one addend.
bool has_passes(const device::ProductSum& sum, u32 limbs);

/// The rows of what sources are made of; of a product that has passes.
RowSource rows_of(const ring::Ring& ring, const device::SourcesOf& of);
/// The first of the views that these rows are made of.
ring::PolyView<const u32> first_rows(const device::SourcesOf& of);
/// The last pass of the switch of a product that has passes; the one addend's low components are
/// the tail's (lifted_factor).
KeySwitchForm switch_of(const ring::Ring& ring, const ring::PolyView<const u32>& a,
                        const ring::PolyView<const u32>& b, const device::LimbScalars& lift,
                        const device::ProductSum& sum);
/// The lift times the factor of the one addend.
device::LimbScalars lifted_factor(const ring::Ring& ring, const rns::LimbSet& limbs,
                                  const device::LimbScalars& lift,
                                  const device::LimbScalars& factor);

}  // namespace crenel::backend::cuda
