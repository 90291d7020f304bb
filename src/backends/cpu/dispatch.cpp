#include "backends/cpu/dispatch.h"

#include "backends/cpu/poly/isa_tables.h"
#include "backends/cpu/torus/tables.h"

namespace crenel::backend::cpu {
namespace {

#define CRENEL_CPU_TABLE(isa)                                            \
  {&tables::arithmetic_##isa, &tables::fused_##isa, &tables::sums_##isa, \
   &tables::ntt_##isa,        &tables::basis_##isa, &tables::sample_##isa}
const IsaTable kScalar = CRENEL_CPU_TABLE(scalar);
#if defined(__wasm_simd128__)
const IsaTable kSimd128 = CRENEL_CPU_TABLE(simd128);
#endif
#if defined(CRENEL_CPU_X86)
const IsaTable kAvx2 = CRENEL_CPU_TABLE(avx2);
const IsaTable kAvx512 = CRENEL_CPU_TABLE(avx512);
#endif
#undef CRENEL_CPU_TABLE

}  // namespace

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "AVX-512";
    case Isa::avx2:
      return "AVX2";
    case Isa::simd128:
      return "WebAssembly SIMD";
    case Isa::scalar:
      break;
  }
  return "portable";
}

bool isa_available(Isa isa) {
#if defined(CRENEL_CPU_X86)
  __builtin_cpu_init();
  // the compiler's test includes that the operating system saves the registers
  if (isa == Isa::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2");
#endif
#if defined(__wasm_simd128__)
  // A machine without it does not load the module.
  if (isa == Isa::simd128) return true;
#endif
  return isa == Isa::scalar;
}

Isa best_isa() {
  static const Isa best = isa_available(Isa::avx512)    ? Isa::avx512
                          : isa_available(Isa::avx2)    ? Isa::avx2
                          : isa_available(Isa::simd128) ? Isa::simd128
                                                        : Isa::scalar;
  return best;
}

const IsaTable& isa_table(Isa isa) {
#if defined(__wasm_simd128__)
  if (isa == Isa::simd128) return kSimd128;
#endif
#if defined(CRENEL_CPU_X86)
  if (isa == Isa::avx512) return kAvx512;
  if (isa == Isa::avx2) return kAvx2;
#endif
  (void)isa;
  return kScalar;
}

#if !defined(CRENEL_CLIENT_ONLY)
const TorusTable& torus_table(Isa isa) {
#if defined(CRENEL_CPU_X86)
  if (isa == Isa::avx512) return tables::torus_avx512;
  if (isa == Isa::avx2 && __builtin_cpu_supports("fma")) return tables::torus_avx2;
#endif
  (void)isa;
  return tables::torus_scalar;
}
#endif

}  // namespace crenel::backend::cpu
