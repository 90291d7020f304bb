// What every backend checks on entry to an operation of TorusKernels: shapes, moduli, null
// pointers. Throws ParameterError naming the value and what was expected. Host arithmetic only.
#pragma once

#include "device/torus/kernels.h"

namespace crenel::device::torus_checks {

/// Elements [first, first + count) of the plan.
void load_bootstrap_key(const TorusPlan& plan, const void* key, u32 first, u32 count,
                        const i64* polys);
void blind_rotate(const u64* out, const u32* in, u32 batch, const void* key, const LutView& luts);
void key_switch(const SwitchShape& shape, const u32* out, const u64* in, u32 batch,
                const void* key);
void linear(const u32* out, std::span<const LweTerm> terms, u32 batch, u32 log_modulus);
void mod_switch(const u32* out, u32 log_to, const u32* in, u32 log_from, u32 batch);
/// sample_lwe, expand_lwe: log_modulus 1..64, rows of 1..2^24 words of mask.
void rows(const char* op, const void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
          const void* input);
void phase(const u32* out, const u32* in, u64 rows, u32 dim, u32 slots, u32 log_modulus,
           const i8* secrets);

}  // namespace crenel::device::torus_checks
