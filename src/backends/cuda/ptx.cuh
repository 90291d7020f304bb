// Instructions that the compiler would not choose by itself.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

// In every kernel, before its first write and its first read of what the launch before it or the
// one before that may have written: waits until the previous kernel of the stream has finished and
// its writes are visible. The launch asks for this (launch.cuh), so that blocks are scheduled while
// the previous kernel drains; a kernel without this call would break the order. Tables, keys and
// operands that are older may be fetched before it: a block starts when all blocks of the previous
// kernel have ended or called release_next, which they do after their own wait. Not all kernels
// call release_next: it lets the next grid pile up on the multiprocessors that drain first, which
// cost 4 % (48 limbs) to 12 % (12 limbs) of HMult (H200, dev/kernels/README.md v9).
__device__ __forceinline__ void begin_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel of the stream start its blocks, as far as there is room, when all blocks of
// this one have come here; it still waits in begin_kernel for all that this one does. To be called
// after begin_kernel, where the next kernel finds room for all its blocks or fills the GPU.
__device__ __forceinline__ void release_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#if defined(__CUDACC__)
// High word of a * b by IMAD.WIDE. __umulhi becomes IMAD.HI: both run at half rate on sm_90, but
// butterflies by wide products are faster (docs/theory/gpu.md, "Arithmetic").
__device__ __forceinline__ u32 mul_hi_wide(u32 a, u32 b) {
  u32 hi;
  asm("{\n\t.reg .u64 p;\n\t.reg .u32 l;\n\tmul.wide.u32 p, %1, %2;\n\tmov.b64 {l, %0}, p;\n\t}"
      : "=r"(hi)
      : "r"(a), "r"(b));
  return hi;
}

// a * b as two words.
__device__ __forceinline__ void mul_wide(u32 a, u32 b, u32& lo, u32& hi) {
  asm("{\n\t.reg .u64 p;\n\tmul.wide.u32 p, %2, %3;\n\tmov.b64 {%0, %1}, p;\n\t}"
      : "=r"(lo), "=r"(hi)
      : "r"(a), "r"(b));
}

// acc + a * b as one IMAD.WIDE. Written apart: ptxas 13.0 takes mad.wide (of either sign) to pieces
// where it can, IMAD.WIDE, IADD3 and IMAD.X; and of acc + u64(a) * b the compiler may carry the
// extended a into a loop, where it becomes a product of 64 bits.
__device__ __forceinline__ u64 mad_wide(u32 a, u32 b, u64 acc) {
  u64 product;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return acc + product;
}

// l + 2^16 h + 2^32 top as two words. Halves of words are moved by permutations: of shifts ptxas
// makes wide products, and the multiplier pipe is what butterflies wait for.
__device__ __forceinline__ void add_halves(u32 l, u32 h, u32 top, u32& lo, u32& hi) {
  asm("{\n\t.reg .u32 s, t;\n\tprmt.b32 s, %2, 0, 0x1044;\n\tprmt.b32 t, %2, 0, 0x4432;\n\t"
      "add.cc.u32 %0, s, %3;\n\taddc.u32 %1, t, %4;\n\t}"
      : "=r"(lo), "=r"(hi)
      : "r"(h), "r"(l), "r"(top));
}
#else  // in tests that run kernels on the host
inline u32 mul_hi_wide(u32 a, u32 b) { return static_cast<u32>(u64(a) * b >> 32); }
inline void mul_wide(u32 a, u32 b, u32& lo, u32& hi) { lo = a * b, hi = mul_hi_wide(a, b); }
inline u64 mad_wide(u32 a, u32 b, u64 acc) { return acc + u64(a) * b; }
inline void add_halves(u32 l, u32 h, u32 top, u32& lo, u32& hi) {
  const u64 sum = l + (u64(h) << 16) + (u64(top) << 32);
  lo = static_cast<u32>(sum), hi = static_cast<u32>(sum >> 32);
}
#endif

#if defined(__CUDACC__)  // such a test brings its own
// All warps of the block have come to one of its barriers, not necessarily the same.
__device__ __forceinline__ void barrier() { asm volatile("barrier.sync.aligned 0;" ::: "memory"); }

// Matrix units: d = c + A B on unsigned bytes, A 16 rows of 32 (16) bytes, B 8 columns of as many.
// Of this thread: of A rows lane / 4 (a0, a2) and 8 more (a1, a3), bytes 4 (lane % 4) on, and (a2,
// a3) 16 further on; of B column lane / 4, the same bytes; of c and d rows lane / 4 (d0, d1) and 8
// more (d2, d3), columns 2 (lane % 4) and one more.
__device__ __forceinline__ void multiply_bytes(u32 (&d)[4], const u32 (&c)[4], u32 a0, u32 a1,
                                               u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %11, %12, %13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]), "r"(c[2]),
        "r"(c[3]));
}
__device__ __forceinline__ void multiply_bytes(u32 (&d)[4], const u32 (&c)[4], u32 a0, u32 a1,
                                               u32 b0) {
  asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%7, %8, %9, %10};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a0), "r"(a1), "r"(b0), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}

#endif

// L2 policy of data that nothing will read again soon (switching keys): first to leave the cache.
__device__ __forceinline__ u64 streaming_policy() {
  u64 policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// The policy of all other data, for loads that take one.
__device__ __forceinline__ u64 ordinary_policy() {
  u64 policy;
  asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// 16 read-only bytes, not kept in L1, under an L2 policy.
__device__ __forceinline__ uint4 load_streaming(const u32* p, u64 policy) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p), "l"(policy));
  return v;
}

// The same for 8 bytes.
__device__ __forceinline__ uint2 load_streaming2(const u32* p, u64 policy) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
               : "=r"(v.x), "=r"(v.y)
               : "l"(p), "l"(policy));
  return v;
}

// What a test that runs kernels on the host brings its own of: dynamic shared memory, a whole store
// and copies in the background.
#if defined(__CUDACC__)
__device__ __forceinline__ u32* dynamic_shared() {
  extern __shared__ __align__(16) u32 shared[];
  return shared;
}
// One store of 16 bytes, also where the compiler would rather select values for stores of words.
__device__ __forceinline__ void store_whole(u32* p, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z),
               "r"(v.w)
               : "memory");
}
// `Bytes` (4, 8 or 16) from global to shared memory, in the background, with no register between;
// 16 pass by L1.
template <u32 Bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(to));
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(Bytes)
                 : "memory");
}
// The copies of this thread are there, for this thread.
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}
// 128 bytes, from a multiple of 128 on, that nobody will read any more leave L2 without a way to
// the memory. What they are is undefined until they are written again.
__device__ __forceinline__ void discard_line(const u32* p) {
#if __CUDA_ARCH__ >= 800
  asm volatile("discard.global.L2 [%0], 128;" ::"l"(__cvta_generic_to_global(p)) : "memory");
#endif
}
// Closes a group of copies.
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// All closed groups but the last `Pending` are there.
template <u32 Pending>
__device__ __forceinline__ void wait_for_copies_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}
#endif

__device__ __forceinline__ uint4 load4(const u32* p) { return *reinterpret_cast<const uint4*>(p); }
__device__ __forceinline__ void store4(u32* p, uint4 v) { *reinterpret_cast<uint4*>(p) = v; }
__device__ __forceinline__ uint2 load2(const u32* p) { return *reinterpret_cast<const uint2*>(p); }
__device__ __forceinline__ void store2(u32* p, uint2 v) { *reinterpret_cast<uint2*>(p) = v; }

}  // namespace crenel::backend::cuda
