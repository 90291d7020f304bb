// The CPU device: which instruction sets there are, and a factory that forces one (for tests).
#pragma once

#include "device/backend.h"

namespace crenel::backend::cpu {

/// Instruction-set paths, slowest first; all give the same bits.
enum class Isa : u8 { scalar, simd128, avx2, avx512 };

inline constexpr Isa kAllIsas[] = {Isa::scalar, Isa::avx2, Isa::avx512};

const char* isa_name(Isa isa);
/// Whether this build has the path and this processor can run it.
bool isa_available(Isa isa);
/// The fastest available path; decided once.
Isa best_isa();

/// The device "cpu" on a given path; DeviceError when it is not available.
/// device::make_cpu_device() is make_cpu_device(best_isa()).
std::shared_ptr<device::Backend> make_cpu_device(Isa isa);

}  // namespace crenel::backend::cpu
