// Ceilings of one GPU as a file for --ceilings (python/crenel/ceilings.py): memory and second-level
// cache over the working set, butterflies and wide products, launches; by the method of
// docs/theory/gpu.md. A minute, on an otherwise idle GPU.
//   nvcc -std=c++20 -arch=native -O3 -I../../src -I../../include -o ceilings_probe
//     ceilings_probe.cu
//   ./ceilings_probe [index] > ceilings.json
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/modular.cuh"

using namespace crenel;
using namespace crenel::backend::cuda;

#define TRY(call)                                                        \
  if (const cudaError_t status = (call); status != cudaSuccess) {        \
    std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status)); \
    std::exit(1);                                                        \
  }

enum class Way { read, write, in_place };

__device__ __forceinline__ uint4 load(const uint4* from) {
  uint4 x;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from)
               : "memory");
  return x;
}
__device__ __forceinline__ void store(uint4* to, uint4 x) {
  asm volatile("st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x.x), "r"(x.y),
               "r"(x.z), "r"(x.w)
               : "memory");
}

// `times` times over `count` values of 16 bytes, four of a thread in flight; loads and stores are
// volatile and pass by the first-level cache.
template <Way W>
__global__ void __launch_bounds__(256) go(uint4* data, u64 count, u32 times) {
  const u64 stride = u64(gridDim.x) * 256;
  u32 sum = 0;
  for (u32 turn = 0; turn < times; ++turn)
    for (u64 i = u64(blockIdx.x) * 256 + threadIdx.x; i < count; i += 4 * stride) {
      uint4 x[4] = {};
#pragma unroll
      for (u32 k = 0; k < 4; ++k)
        if (W != Way::write && i + k * stride < count) x[k] = load(data + i + k * stride);
#pragma unroll
      for (u32 k = 0; k < 4; ++k) {
        if (W == Way::read) sum += x[k].x ^ x[k].y ^ x[k].z ^ x[k].w;
        if (W == Way::read || i + k * stride >= count) continue;
        store(data + i + k * stride, make_uint4(x[k].x + 1, x[k].y + 1, x[k].z + 1, x[k].w + turn));
      }
    }
  if (W == Way::read && sum == 0x9e3779b9u) data[0].x = sum;  // or nothing would be read
}

// Eight chains a thread of acc + u64(a) * b.
__global__ void __launch_bounds__(256) wide(u64* out, u32 factor, u32 steps) {
  u64 acc[8];
  for (u32 k = 0; k < 8; ++k) acc[k] = threadIdx.x * 8 + k + 1;
  for (u32 i = 0; i < steps; ++i)
#pragma unroll
    for (u32 k = 0; k < 8; ++k) acc[k] += u64(static_cast<u32>(acc[k])) * factor;
  u64 sum = 0;
  for (u32 k = 0; k < 8; ++k) sum ^= acc[k];
  if (sum == 0) out[threadIdx.x] = sum;
}

// Four stages of butterflies over sixteen values a thread, Shoup constants by wide products, as
// ShoupWide of butterfly_probe.cu.
__global__ void __launch_bounds__(256, 4) butterflies(u32* data, const uint2* w, u32 q, u32 count) {
  u32 x[16];
  uint2 c[4];
#pragma unroll
  for (u32 i = 0; i < 16; ++i) x[i] = data[threadIdx.x + i * 256];
#pragma unroll
  for (u32 i = 0; i < 4; ++i) c[i] = w[i];
  for (u32 k = 0; k < count; ++k)
#pragma unroll
    for (u32 t = 0; t < 4; ++t) {
      const u32 half = 8 >> t;
#pragma unroll
      for (u32 i = 0; i < 8; ++i) {
        u32 &a = x[i / half * 2 * half + i % half], &b = x[i / half * 2 * half + i % half + half];
        const u32 product = reduce_once(b * c[t].x - mul_hi_wide(b, c[t].y) * q, q);
        const u32 s = reduce_once(a, q);
        a = s + product;
        b = s - product + q;
      }
    }
#pragma unroll
  for (u32 i = 0; i < 16; ++i) data[threadIdx.x + i * 256] = x[i];
}

__global__ void nothing() {}

// Median seconds of nine, between two events, after one to warm up.
double seconds(cudaStream_t stream, const std::function<void()>& work) {
  cudaEvent_t begin, end;
  TRY(cudaEventCreate(&begin));
  TRY(cudaEventCreate(&end));
  std::vector<float> ms(10);
  for (float& each : ms) {
    TRY(cudaEventRecord(begin, stream));
    work();
    TRY(cudaGetLastError());
    TRY(cudaEventRecord(end, stream));
    TRY(cudaEventSynchronize(end));
    TRY(cudaEventElapsedTime(&each, begin, end));
  }
  TRY(cudaEventDestroy(begin));
  TRY(cudaEventDestroy(end));
  std::sort(ms.begin() + 1, ms.end());
  return ms[5] / 1e3;
}

struct Probe {
  cudaStream_t stream;
  u32 processors;
  uint4* data;
  u64 bytes;  ///< of it

  /// Bytes a second that are moved over a working set, as often as makes `bytes`.
  template <Way W>
  double rate(u64 working_set) const {
    const u64 count = working_set / sizeof(uint4);
    const u32 times = static_cast<u32>(std::max<u64>(1, bytes / working_set));
    const double moved = double(count) * sizeof(uint4) * times * (W == Way::in_place ? 2 : 1);
    return moved /
           seconds(stream, [&] { go<W><<<processors * 8, 256, 0, stream>>>(data, count, times); });
  }
};

double wide_products(const Probe& p) {
  constexpr u32 kSteps = 4096;
  auto* out = reinterpret_cast<u64*>(p.data);
  const double s = seconds(
      p.stream, [&] { wide<<<p.processors * 8, 256, 0, p.stream>>>(out, 2654435761u, kSteps); });
  return double(p.processors) * 8 * 256 * 8 * kSteps / s;
}

double butterfly_rate(const Probe& p) {
  constexpr u32 kPrime = 1073479681, kCount = 64;
  uint2 constants[4];
  for (u32 i = 0; i < 4; ++i) {
    constants[i].x = 123456789u + 1000003u * i;
    constants[i].y = static_cast<u32>((u64(constants[i].x) << 32) / kPrime);
  }
  auto* w = reinterpret_cast<uint2*>(p.data + 4096);
  TRY(cudaMemcpy(w, constants, sizeof constants, cudaMemcpyHostToDevice));
  TRY(cudaMemset(p.data, 37, 4096 * sizeof(u32)));
  const double s = seconds(p.stream, [&] {
    butterflies<<<p.processors * 16, 256, 0, p.stream>>>(reinterpret_cast<u32*>(p.data), w, kPrime,
                                                         kCount);
  });
  return double(p.processors) * 16 * 256 * 32 * kCount / s;
}

// Seconds of one of a thousand empty launches: (replayed as a graph, queued).
std::pair<double, double> launches(const Probe& p) {
  constexpr u32 kMany = 1000;
  const auto queue = [&] {
    for (u32 i = 0; i < kMany; ++i) nothing<<<1, 32, 0, p.stream>>>();
  };
  const double queued = seconds(p.stream, queue) / kMany;
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  TRY(cudaStreamBeginCapture(p.stream, cudaStreamCaptureModeThreadLocal));
  queue();
  TRY(cudaStreamEndCapture(p.stream, &graph));
  TRY(cudaGraphInstantiate(&replay, graph, 0));
  const double graphed = seconds(p.stream, [&] { TRY(cudaGraphLaunch(replay, p.stream)); }) / kMany;
  TRY(cudaGraphExecDestroy(replay));
  TRY(cudaGraphDestroy(graph));
  return {graphed, queued};
}

void print_rate(const char* name, double value, const char* unit, const char* what,
                const std::string& more = "") {
  std::printf("  \"%s\": {\"value\": %.4g, \"unit\": \"%s\", \"what\": \"%s\"%s}", name, value,
              unit, what, more.c_str());
}

using Points = std::vector<std::pair<u64, double>>;

std::string pairs(const Points& points) {
  std::string text = "[";
  for (const auto& [bytes, rate] : points) {
    char pair[64];
    std::snprintf(pair, sizeof pair, "%s[%llu, %.4g]", text.size() == 1 ? "" : ", ",
                  static_cast<unsigned long long>(bytes), rate);
    text += pair;
  }
  return text + "]";
}

// In-place rates over the working set.
struct Cache {
  double plateau;  // what holds at all smaller sets
  Points curve;    // from the last set of the plateau on
  Points measured;
};

// cache: bytes of L2; dram: the memory's rate.
Cache working_sets(Probe& p, u64 cache, double dram) {
  Points measured;
  for (const u32 sixteenths : {4, 6, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 24, 28, 32}) {
    const u64 bytes = (cache * sixteenths / 16) >> 20 << 20;
    if (!measured.empty() && bytes == measured.back().first) continue;
    measured.emplace_back(bytes, p.rate<Way::in_place>(bytes));
  }
  // What holds at all smaller sets, and from there on no rate above one before, nor below the
  // memory's: measured points scatter by a per cent.
  double plateau = 0;
  for (std::size_t i = 0; i < 4; ++i) plateau = std::max(plateau, measured[i].second);
  std::size_t last = 0;
  while (last + 1 < measured.size() && measured[last + 1].second > 0.97 * plateau) ++last;
  Points curve = {{measured[last].first, plateau}};
  for (std::size_t i = last + 1; i < measured.size(); ++i)
    curve.emplace_back(measured[i].first,
                       std::max(dram, std::min(measured[i].second, curve.back().second)));
  return {plateau, curve, measured};
}

int main(int arguments, char** argument) {
  const int index = arguments > 1 ? std::atoi(argument[1]) : 0;
  cudaDeviceProp card = {};
  int driver = 0, clock_khz = 0;
  TRY(cudaGetDeviceProperties(&card, index));
  TRY(cudaSetDevice(index));
  TRY(cudaDriverGetVersion(&driver));
  TRY(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, index));
  Probe p = {nullptr, static_cast<u32>(card.multiProcessorCount), nullptr,
             std::min<u64>(u64(4) << 30, card.totalGlobalMem / 4)};
  TRY(cudaStreamCreate(&p.stream));
  TRY(cudaMalloc(&p.data, p.bytes));
  TRY(cudaMemset(p.data, 0, p.bytes));

  const double dram_read = p.rate<Way::read>(p.bytes), dram_write = p.rate<Way::write>(p.bytes),
               dram = p.rate<Way::in_place>(p.bytes);
  const u64 cache = static_cast<u64>(card.l2CacheSize);
  const auto [plateau, curve, measured] = working_sets(p, cache, dram);
  const double l2_write = p.rate<Way::write>(cache / 2 >> 20 << 20);
  const auto [graphed, queued] = launches(p);

  std::printf("{\n \"kind\": \"crenel-rates\",\n \"format\": 1,\n \"device\": \"%s\",\n",
              card.name);
  std::printf(
      " \"provenance\": {\"measured_by\": \"dev/kernels/ceilings_probe.cu\", \"processors\": %u, "
      "\"clock_mhz\": %d, \"l2_bytes\": %llu, \"driver_cuda\": %d, \"compiled_cuda\": %d},\n",
      p.processors, clock_khz / 1000, static_cast<unsigned long long>(cache), driver,
      CUDART_VERSION);
  std::printf(" \"rates\": {\n");
  print_rate("l2", plateau, "byte/s", "second-level cache, read and written together, in place",
             ", \"by_working_set\": " + pairs(curve) + ", \"measured\": " + pairs(measured));
  std::printf(",\n");
  print_rate("l2_write", l2_write, "byte/s", "second-level cache, written");
  std::printf(",\n");
  print_rate("dram_read", dram_read, "byte/s", "memory, read");
  std::printf(",\n");
  print_rate("dram_write", dram_write, "byte/s", "memory, written");
  std::printf(",\n");
  print_rate("dram", dram, "byte/s", "memory, read and written together, in place");
  std::printf(",\n");
  print_rate("butterfly", butterfly_rate(p), "1/s",
             "butterflies with Shoup constants by wide products");
  std::printf(",\n");
  print_rate("multiply_add", wide_products(p), "1/s", "wide multiply-adds, 32 x 32 + 64 bits");
  std::printf(",\n");
  print_rate("launch", graphed, "s", "one launch inside a graph, where nothing hides it");
  std::printf(",\n");
  print_rate("launch_queued", queued, "s", "one launch in a stream, where nothing hides it");
  std::printf("\n }\n}\n");
}
