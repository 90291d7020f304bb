// What TorusKernels checks on entry to an operation: shapes, moduli, null pointers. Throws
// ParameterError naming the value and what was expected. Host arithmetic only.
#pragma once

#include "device/torus/kernels.h"

namespace crenel::device::torus_checks {

/// Elements [first, first + count) of the plan.
void load_bootstrap_key(const TorusPlan& plan, const void* key, u32 first, u32 count,
                        const i64* polys);
void blind_rotate(const TorusKernels& kernels, const ConstLweView& out, const ConstLweView& in,
                  const void* key, const LutView& luts);
void key_switch(const SwitchShape& shape, const ConstLweView& out, const ConstLweView& in,
                const ConstLweView& key);
void linear(const ConstLweView& out, std::span<const LweTerm> terms);
void sums(const ConstLweView& out, std::span<const LweSum> sums);
void mod_switch(const ConstLweView& out, const ConstLweView& in);
void extract(const ConstLweView& out, const RingView& in, const u32* positions);
void embed(const i64* out, u32 log_degree, u32 count, const ConstLweView& in, const u32* rows);
/// sample_lwe, expand_lwe: log_modulus 1..64, rows of 1..2^24 words of mask.
void sampled(const char* op, const ConstLweView& out, const char* name, const void* input);
void phase(const u32* out, const ConstLweView& in, const i8* secrets);

}  // namespace crenel::device::torus_checks
