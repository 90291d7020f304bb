// The tables that the per-ISA translation units define.
#pragma once

#include "backends/cpu/poly/isa_table.h"

namespace crenel::backend::cpu::tables {

#define CRENEL_CPU_TABLES(isa)                   \
  extern const ArithmeticTable arithmetic_##isa; \
  extern const FusedTable fused_##isa;           \
  extern const SumsTable sums_##isa;             \
  extern const NttTable ntt_##isa;               \
  extern const BasisTable basis_##isa;           \
  extern const SampleTable sample_##isa;
CRENEL_CPU_TABLES(scalar)
CRENEL_CPU_TABLES(simd128)
CRENEL_CPU_TABLES(avx2)
CRENEL_CPU_TABLES(avx512)
#undef CRENEL_CPU_TABLES

}  // namespace crenel::backend::cpu::tables
