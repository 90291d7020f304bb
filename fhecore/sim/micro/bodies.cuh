// What each microbenchmark repeats. A body is one round of the timed loop; `chain` bodies depend on
// themselves from instruction to instruction, `wide` ones are eight independent chains.
#pragma once

#include <cstdint>

namespace micro {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct State {
  u32 x[8], k[8];
  u64 y[8];
  u32 a, b;
  u32* shared;
  const u32* global;
  u32* out;
  u32 mask;
};

#define MICRO_EACH(n) _Pragma("unroll") for (int i = 0; i < (n); ++i)

template <int Chains>
struct Lop3 {
  static constexpr int kOps = 64;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps)
    asm volatile("lop3.b32 %0, %0, %1, %2, 0xe8;" : "+r"(s.x[i % Chains]) : "r"(s.a), "r"(s.b));
  }
};
template <int Chains>
struct MinAdd {  // VIADDMNMX, the kernels' conditional subtraction
  static constexpr int kOps = 64;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps) s.x[i % Chains] = __viaddmin_u32(s.x[i % Chains], s.a, s.x[i % Chains]);
  }
};
template <int Chains>
struct Add3 {
  static constexpr int kOps = 64;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps) s.x[i % Chains] = (s.x[i % Chains] + s.a) + s.x[(i + 1) % Chains];
  }
};
template <int Chains>
struct Shift {
  static constexpr int kOps = 64;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps)
    asm volatile("shf.l.wrap.b32 %0, %0, %1, 5;" : "+r"(s.x[i % Chains]) : "r"(s.a));
  }
};
template <int Chains>
struct Mad {
  static constexpr int kOps = 64;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps)
    asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(s.x[i % Chains]) : "r"(s.a), "r"(s.b));
  }
};
template <int Chains>
struct MadWide {  // sums of products, as base conversion has them
  static constexpr int kOps = 64;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps) {
      long long& y = reinterpret_cast<long long&>(s.y[i % Chains]);
      asm volatile("mad.wide.s32 %0, %1, %2, %0;" : "+l"(y) : "r"(s.x[i / 8]), "r"(s.k[i % 8]));
    }
    MICRO_EACH(8) s.x[i] ^= s.k[i];  // or the products would be taken out of the loop
  }
};
template <int Chains>
struct MulHi {
  static constexpr int kOps = 64;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps)
    asm volatile("mad.hi.u32 %0, %0, %1, %2;" : "+r"(s.x[i % Chains]) : "r"(s.a), "r"(s.b));
  }
};
// The mix of a butterfly: does the model overlap the two pipes as the hardware does?
struct Butterfly {
  static constexpr int kOps = 8 * 5;
  __device__ static void round(State& s) {
    MICRO_EACH(8) {
      u32& x = s.x[i];
      const u32 h = static_cast<u32>((u64(x) * s.a) >> 32);
      x = x * s.b - h * s.mask;
      x = __viaddmin_u32(x, s.a, x);
    }
  }
};
// Both pipes full at once: an instruction a cycle.
struct DualIssue {
  static constexpr int kOps = 64;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps / 2) {
      asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(s.x[i % 4]) : "r"(s.a), "r"(s.b));
      asm volatile("lop3.b32 %0, %0, %1, %2, 0xe8;" : "+r"(s.x[4 + i % 4]) : "r"(s.a), "r"(s.b));
    }
  }
};
// The high half of a product and three instructions of the ALU pipe, whose time it shares.
struct HighMix {
  static constexpr int kOps = 16 * 4;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps / 4) {
      asm volatile("mul.hi.u32 %0, %0, %1;" : "+r"(s.x[i % 4]) : "r"(s.a));
#pragma unroll
      for (int j = 0; j < 3; ++j)
        asm volatile("shf.l.wrap.b32 %0, %0, %1, 5;" : "+r"(s.x[4 + (3 * i + j) % 4]) : "r"(s.b));
    }
  }
};
template <int Chains>
struct Imma16816 {
  static constexpr int kOps = 16;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps) {
      u32* d = s.x + 4 * (i % Chains);
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, "
          "%1, %2, %3};"
          : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
          : "r"(s.a), "r"(s.b), "r"(s.mask));
    }
  }
};
template <int Chains>
struct Imma16832 {
  static constexpr int kOps = 16;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps) {
      u32* d = s.x + 4 * (i % Chains);
      asm volatile(
          "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %4, %5}, "
          "{%6, %6}, "
          "{%0, %1, %2, %3};"
          : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
          : "r"(s.a), "r"(s.b), "r"(s.mask));
    }
  }
};
// A tensor instruction, then four of the multipliers (Mad) or of the ALU pipe.
template <bool Mad>
struct ImmaMix {
  static constexpr int kOps = 16;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps) {
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, "
          "%1, %2, %3};"
          : "+r"(s.x[0]), "+r"(s.x[1]), "+r"(s.x[2]), "+r"(s.x[3])
          : "r"(s.a), "r"(s.b), "r"(s.mask));
#pragma unroll
      for (int j = 4; j < 8; ++j)
        if constexpr (Mad)
          asm volatile("mad.lo.u32 %0, %0, %1, %0;" : "+r"(s.x[j]) : "r"(s.a));
        else
          asm volatile("shf.l.wrap.b32 %0, %0, %1, 5;" : "+r"(s.x[j]) : "r"(s.a));
    }
  }
};
// Shared memory holds its own byte addresses: x = shared[x] stays where it is.
__device__ __forceinline__ u32 load_shared(u32 at) {
  u32 v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  return v;
}
struct SharedChain {
  static constexpr int kOps = 32;
  __device__ static void round(State& s) { MICRO_EACH(kOps) s.x[0] = load_shared(s.x[0]); }
};
struct SharedLoads {  // lane stride a: conflicts = min(32, a)
  static constexpr int kOps = 32;
  __device__ static void round(State& s) { MICRO_EACH(kOps) s.x[i % 8] = load_shared(s.x[i % 8]); }
};
struct SharedWideLoads {
  static constexpr int kOps = 16;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps) {
      u32* d = s.x + 4 * (i % 2);
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%0];"
                   : "+r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                   :
                   : "memory");
      s.y[i % 2] ^= d[1] ^ d[2] ^ d[3];  // or only the first word would be loaded
    }
  }
};
struct SharedStores {
  static constexpr int kOps = 32;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps)
    asm volatile("st.shared.u32 [%0], %1;" : : "r"(s.b + 128 * i), "r"(s.x[i % 8]) : "memory");
  }
};
// Global memory holds offsets: x = global[x] walks a permutation made by the host.
struct L1Chain {
  static constexpr int kOps = 16;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps)
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(s.x[0]) : "l"(s.global + s.x[0]) : "memory");
  }
};
struct L2Chain {
  static constexpr int kOps = 16;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps)
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(s.x[0]) : "l"(s.global + s.x[0]) : "memory");
  }
};
template <bool L1>
struct Stream {  // 16 bytes a lane, eight loads in flight; b words from round to round
  static constexpr int kOps = 8;
  __device__ static void round(State& s) {
    u32 v[8][4];
    MICRO_EACH(8) {
      const u32* p = s.global + ((s.a + static_cast<u32>(i) * s.b) & s.mask);
      if constexpr (L1)
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[i][0]), "=r"(v[i][1]), "=r"(v[i][2]), "=r"(v[i][3])
                     : "l"(p)
                     : "memory");
      else
        asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[i][0]), "=r"(v[i][1]), "=r"(v[i][2]), "=r"(v[i][3])
                     : "l"(p)
                     : "memory");
    }
    s.a += 8 * s.b;
    MICRO_EACH(8) s.x[i] ^= v[i][0] ^ v[i][1] ^ v[i][2] ^ v[i][3];
  }
};
struct StreamWrite {
  static constexpr int kOps = 8;
  __device__ static void round(State& s) {
    MICRO_EACH(8) {
      u32* p = s.out + ((s.a + static_cast<u32>(i) * s.b) & s.mask);
      asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                   :
                   : "l"(p), "r"(s.x[0]), "r"(s.x[1]), "r"(s.x[2]), "r"(s.x[3])
                   : "memory");
    }
    s.a += 8 * s.b;
  }
};
struct StreamCopy {  // from the lower to the upper half of the words
  static constexpr int kOps = 8;
  __device__ static void round(State& s) {
    u32 v[4][4];
    const u32 half = (s.mask >> 1) & ~3u;
    MICRO_EACH(4)
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[i][0]), "=r"(v[i][1]), "=r"(v[i][2]), "=r"(v[i][3])
                 : "l"(s.global + ((s.a + static_cast<u32>(i) * s.b) & half))
                 : "memory");
    MICRO_EACH(4)
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(s.out + half + 4 + ((s.a + static_cast<u32>(i) * s.b) & half)), "r"(v[i][0]),
                   "r"(v[i][1]), "r"(v[i][2]), "r"(v[i][3])
                 : "memory");
    s.a += 4 * s.b;
  }
};
template <int Chains>
struct RootMufu {
  static constexpr int kOps = 32;
  __device__ static void round(State& s) {
    MICRO_EACH(kOps)
    asm volatile("{.reg .f32 t; mov.b32 t, %0; rsqrt.approx.ftz.f32 t, t; mov.b32 %0, t;}"
                 : "+r"(s.x[i % Chains]));
  }
};
__constant__ u32 kZeros[64] = {};
struct ConstantChain {  // an index from the table is the next index
  static constexpr int kOps = 32;
  __device__ static void round(State& s) { MICRO_EACH(kOps) s.x[0] = kZeros[s.x[0] & 63]; }
};
struct Barrier {
  static constexpr int kOps = 16;
  __device__ static void round(State&) { MICRO_EACH(kOps) __syncthreads(); }
};
// A load, work on what it brought, a barrier: do blocks of a multiprocessor fill each other's gaps?
struct Phases {
  static constexpr int kOps = 64;
  __device__ static void round(State& s) {
    u32 v;
    asm volatile("ld.global.cg.u32 %0, [%1];"
                 : "=r"(v)
                 : "l"(s.global + ((s.x[0] + blockIdx.x * 1024) & s.mask))
                 : "memory");
    MICRO_EACH(6) s.x[2 + i] += v;
    MICRO_EACH(kOps / 2) {
      asm volatile("mad.lo.u32 %0, %0, %1, %0;" : "+r"(s.x[2 + i % 3]) : "r"(s.a));
      asm volatile("shf.l.wrap.b32 %0, %0, %1, 5;" : "+r"(s.x[5 + i % 3]) : "r"(s.b));
    }
    s.x[0] = v;
    __syncthreads();
  }
};
struct Branch {  // nothing but the loop
  static constexpr int kOps = 1;
  __device__ static void round(State& s) {
    asm volatile("lop3.b32 %0, %0, %1, %2, 0xe8;" : "+r"(s.x[0]) : "r"(s.a), "r"(s.b));
  }
};

}  // namespace micro
