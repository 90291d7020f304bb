// Arithmetic ceilings of butterfly variants on one GPU: sixteen values a thread, four stages a
// round, everything in registers. Prints 10^12 butterflies a second.
//   nvcc -std=c++20 -arch=sm_90 -O3 -I../../src -I../../include butterfly_probe.cu -o probe &&
//   ./probe
#include <cstdio>

#include "backends/cuda/modular.cuh"
#include "math/word.h"

using namespace crenel;
using namespace crenel::backend::cuda;

struct Constants {
  u32 q, q_inv, w[15], w_quotient[15];
};

// The library's: Montgomery, [0, 2q) in and out.
struct Montgomery {
  __device__ static void run(u32& a, u32& b, u32 w, u32, const Constants& c) {
    const u32 t = mont_mul(b, w, c.q, c.q_inv);
    const u32 s = reduce_once(a, c.q);
    a = s + t;
    b = s - t + c.q;
  }
};
struct MontgomeryMin {  // plain minimum instead of the DPX intrinsic
  __device__ static u32 red(u32 x, u32 q) { return min(x, x - q); }
  __device__ static void run(u32& a, u32& b, u32 w, u32, const Constants& c) {
    u32 lo, hi;
    mul_wide(b, w, lo, hi);
    u32 t = hi - mul_hi_wide(lo * c.q_inv, c.q);
    t = min(t, t + c.q);
    const u32 s = red(a, c.q);
    a = s + t;
    b = s - t + c.q;
  }
};
struct MontgomeryMulhi {
  __device__ static void run(u32& a, u32& b, u32 w, u32, const Constants& c) {
    const u32 t = lift_once(__umulhi(b, w) - __umulhi(b * w * c.q_inv, c.q), c.q);
    const u32 s = reduce_once(a, c.q);
    a = s + t;
    b = s - t + c.q;
  }
};
struct ShoupWide {
  __device__ static void run(u32& a, u32& b, u32 w, u32 wq, const Constants& c) {
    const u32 t = reduce_once(b * w - mul_hi_wide(b, wq) * c.q, c.q);
    const u32 s = reduce_once(a, c.q);
    a = s + t;
    b = s - t + c.q;
  }
};
struct ShoupMulhi {
  __device__ static void run(u32& a, u32& b, u32 w, u32 wq, const Constants& c) {
    const u32 t = reduce_once(b * w - __umulhi(b, wq) * c.q, c.q);
    const u32 s = reduce_once(a, c.q);
    a = s + t;
    b = s - t + c.q;
  }
};
struct ShoupLazy {  // q < 2^30, [0, 4q)
  __device__ static void run(u32& a, u32& b, u32 w, u32 wq, const Constants& c) {
    const u32 t = b * w - mul_hi_wide(b, wq) * c.q;
    const u32 s = reduce_once(a, 2 * c.q);
    a = s + t;
    b = s - t + 2 * c.q;
  }
};
struct SignedMontgomery {  // no range reduction at all: the lower bound of the Montgomery form
  __device__ static void run(u32& a, u32& b, u32 w, u32, const Constants& c) {
    u32 lo, hi;
    mul_wide(b, w, lo, hi);
    const u32 m = mul_hi_wide(lo * c.q_inv, c.q), s = a;
    a = s + hi - m;
    b = s - hi + m;
  }
};
struct WideOnly {
  __device__ static void run(u32& a, u32& b, u32 w, u32, const Constants& c) {
    b = mul_hi_wide(b, w);
    a = mul_hi_wide(a, w);
  }
};
struct MulhiOnly {
  __device__ static void run(u32& a, u32& b, u32 w, u32, const Constants&) {
    b = __umulhi(b, w);
    a = __umulhi(a, w);
  }
};
struct MulLoOnly {
  __device__ static void run(u32& a, u32& b, u32 w, u32, const Constants& c) {
    b = b * w + c.q;
    a = a * w + c.q;
  }
};
struct AddMinOnly {
  __device__ static void run(u32& a, u32& b, u32 w, u32, const Constants& c) {
    b = __viaddmin_u32(b, w, a);
    a = __viaddmin_u32(a, w, b);
  }
};

template <class B>
__global__ void __launch_bounds__(256, 4) rounds(u32* data, const Constants* constants, int count) {
  __shared__ Constants c;
  if (threadIdx.x == 0) c = *constants;
  __syncthreads();
  Constants r = c;
  u32 x[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) x[i] = data[threadIdx.x + i * 256];
  for (int k = 0; k < count; ++k) {
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const int half = 8 >> t;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int block = i / half, low = block * 2 * half + i % half, node = 0;
        B::run(x[low], x[low + half], r.w[node + t], r.w_quotient[node + t], r);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) data[threadIdx.x + i * 256] = x[i];
}

template <class B>
void measure(const char* name, u32* data, const Constants* c) {
  const int blocks = 132 * 16, count = 64;
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  float best = 1e9f;
  for (int i = 0; i < 5; ++i) {
    cudaEventRecord(begin);
    rounds<B><<<blocks, 256>>>(data, c, count);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    best = ms < best ? ms : best;
  }
  std::printf("%-18s %6.2f T butterflies/s  (%s)\n", name,
              double(blocks) * 256 * 32 * count / best / 1e9,
              cudaGetErrorString(cudaGetLastError()));
}

int main() {
  Constants h = {};
  h.q = 1073479681, h.q_inv = math::inverse_mod_word<u32>(h.q);
  for (int i = 0; i < 15; ++i)
    h.w[i] = 123456789u + 1000003u * i, h.w_quotient[i] = u32((u64(h.w[i]) << 32) / h.q);
  Constants* c;
  u32* data;
  cudaMalloc(&c, sizeof h);
  cudaMalloc(&data, 4096 * 4);
  cudaMemset(data, 37, 4096 * 4);
  cudaMemcpy(c, &h, sizeof h, cudaMemcpyHostToDevice);
  measure<Montgomery>("montgomery", data, c);
  measure<MontgomeryMin>("montgomery min", data, c);
  measure<MontgomeryMulhi>("montgomery mulhi", data, c);
  measure<ShoupWide>("shoup wide", data, c);
  measure<ShoupMulhi>("shoup mulhi", data, c);
  measure<ShoupLazy>("shoup lazy wide", data, c);
  measure<SignedMontgomery>("montgomery bare", data, c);
  measure<WideOnly>("2 mul.wide", data, c);
  measure<MulhiOnly>("2 mulhi", data, c);
  measure<MulLoOnly>("2 mad.lo", data, c);
  measure<AddMinOnly>("2 viaddmin", data, c);
}
