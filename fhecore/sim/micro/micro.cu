// Microbenchmarks of one multiprocessor's parts and of the memory system:
//
//   micro [--only NAME]      one JSON object a line: name, launch, cycles by SM
//
// Every warp stores its clock before and after `rounds` rounds of a body (bodies.cuh). The figure
// is, a multiprocessor, the last end less the first begin; reported are the median over
// multiprocessors and the extremes, best of five launches after one warm-up. micro.py holds the
// same table for the model.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "../host.cuh"
#include "bodies.cuh"

using namespace micro;

struct Args {
  u32* memory;
  u32 mask, start, step, rounds;  ///< words
  u32 a, b, lane_stride, warm;
  u64* stamps;  ///< [warp][3]: multiprocessor, begin, end
  u32* sink;
};

template <class Body>
__global__ void run(const __grid_constant__ Args args) {
  extern __shared__ u32 shared[];
  const u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
  const u32 base = static_cast<u32>(__cvta_generic_to_shared(shared));
  for (u32 i = threadIdx.x; i < 4096; i += blockDim.x) shared[i] = base + 4 * i;
  State s;
  const u32 own = base + 4 * ((threadIdx.x % 32) * args.lane_stride % 4096);
  for (int i = 0; i < 8; ++i)
    s.x[i] = args.lane_stride ? own : args.a * i + 1, s.k[i] = args.b * (thread + i),
    s.y[i] = args.b + i;
  s.a = args.step ? thread * 4 : args.a, s.b = args.step ? args.step : args.b;
  if (args.lane_stride) {
    s.b = base + 4 * (threadIdx.x % 32);
    if (args.lane_stride == 4) s.x[4] = own;  // loads of four words
  }
  if (args.step == 0 && args.lane_stride == 0 && args.memory) s.x[0] = args.start;
  s.shared = shared, s.global = args.memory, s.out = args.memory, s.mask = args.mask;
#pragma unroll 1
  for (u32 r = 0; r < args.warm; ++r) Body::round(s);
  __syncthreads();
  const u64 begin = clock64();
#pragma unroll 1
  for (u32 r = 0; r < args.rounds; ++r) Body::round(s);
  // The end waits for all results.
  u32 sum = s.shared[threadIdx.x % 32];
  for (int i = 0; i < 8; ++i)
    sum += s.x[i] + static_cast<u32>(s.y[i]) + static_cast<u32>(s.y[i] >> 32);
  asm volatile("" : "+r"(sum) : : "memory");
  if (sum == 0x9e3779b9) args.sink[0] = sum;
  const u64 end = clock64();
  if (threadIdx.x % 32 == 0) {
    u32 sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    u64* stamp = args.stamps + thread / 32 * 3;
    stamp[0] = sm, stamp[1] = begin, stamp[2] = end;
  }
}

__global__ void nothing() {}
// Constants that a multiprocessor reads for the first time in a launch: a chain through a table.
struct Table {
  u64* stamps;
  u32 next[960];
};
__global__ void cold_constants(const __grid_constant__ Table args) {
  const u64 begin = clock64();
  u32 at = threadIdx.y;  // 0
#pragma unroll
  for (int i = 0; i < 8; ++i) at = args.next[at];
  asm volatile("" : "+r"(at) : : "memory");
  const u64 end = clock64();
  u32 sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  u64* stamp = args.stamps + 3 * blockIdx.x;
  if (threadIdx.x == 0) stamp[0] = sm, stamp[1] = begin, stamp[2] = end + (at == 1);
}
// As the library's kernels start (begin_kernel): launched while the former one ends, then waiting.
__global__ void nothing_overlapped() { asm volatile("griddepcontrol.wait;" : : : "memory"); }

struct Bench {
  const char* name;
  void (*kernel)(Args);
  u32 blocks, threads, rounds;  ///< blocks a multiprocessor; 0: one block on the GPU
  u32 a = 3, b = 5, lane_stride = 0;
  u32 log_words = 0;  ///< of the memory touched; 0: none
  u32 walk = 0;       ///< words from element to element of a permutation
  bool stream = false;
  u32 shared = 16384;  ///< bytes a block
  u32 warm = 4;        ///< rounds before the clock
};

// The same table, what the model needs to know of it: micro.py.
const Bench kBenches[] = {
    {"alu_chain", run<Lop3<1>>, 1, 32, 64},
    {"alu_throughput", run<Lop3<8>>, 1, 512, 64},
    {"addmin_throughput", run<MinAdd<8>>, 1, 512, 64},
    {"add3_throughput", run<Add3<8>>, 1, 512, 64},
    {"shift_throughput", run<Shift<8>>, 1, 512, 64},
    {"imad_chain", run<Mad<1>>, 1, 32, 64},
    {"imad_throughput", run<Mad<8>>, 1, 512, 64},
    {"wide_throughput", run<MadWide<8>>, 1, 512, 64},
    {"hi_chain", run<MulHi<1>>, 1, 32, 64},
    {"hi_throughput", run<MulHi<8>>, 1, 512, 64},
    {"butterfly_mix", run<Butterfly>, 1, 512, 64},
    {"butterfly_full", run<Butterfly>, 1, 1024, 64},
    {"dual_issue", run<DualIssue>, 1, 512, 64},
    {"high_mix", run<HighMix>, 1, 512, 64},
    {"warp_order", run<Butterfly>, 1, 1024, 64},
    {"phases_one", run<Phases>, 1, 256, 64, 3, 5, 0, 18, 32},
    {"phases_four", run<Phases>, 4, 256, 64, 3, 5, 0, 18, 32},
    {"mufu_chain", run<RootMufu<1>>, 1, 32, 64},
    {"mufu_throughput", run<RootMufu<8>>, 1, 512, 64},
    {"ldc_chain", run<ConstantChain>, 1, 32, 64},
    {"imma_chain", run<Imma16816<1>>, 1, 32, 64},
    {"imma_throughput", run<Imma16816<2>>, 1, 1024, 64},
    {"imma32_throughput", run<Imma16832<2>>, 1, 1024, 64},
    {"imma_alu", run<ImmaMix<false>>, 1, 1024, 64},
    {"imma_mad", run<ImmaMix<true>>, 1, 1024, 64},
    {"lds_chain", run<SharedChain>, 1, 32, 64, 3, 5, 1},
    {"lds_throughput", run<SharedLoads>, 1, 512, 64, 3, 5, 1},
    {"lds_conflict", run<SharedLoads>, 1, 512, 16, 3, 5, 8},
    {"lds_wide", run<SharedWideLoads>, 1, 512, 64, 3, 5, 4},
    {"sts_throughput", run<SharedStores>, 1, 512, 64, 3, 5, 1},
    {"l1_chain", run<L1Chain>, 0, 32, 64, 3, 5, 0, 11, 32},
    {"l2_chain", run<L2Chain>, 0, 32, 64, 3, 5, 0, 18, 32},
    {"dram_chain", run<L2Chain>, 0, 32, 64, 3, 5, 0, 26, 1024},
    {"l1_bandwidth", run<Stream<true>>, 1, 512, 64, 3, 5, 0, 12, 0, true},
    {"l2_bandwidth", run<Stream<false>>, 4, 256, 64, 3, 5, 0, 22, 0, true},
    {"dram_bandwidth", run<Stream<false>>, 4, 256, 64, 3, 5, 0, 29, 0, true},
    {"dram_cold", run<Stream<false>>, 4, 256, 2, 3, 5, 0, 26, 0, true, 16384, 0},
    {"l2_write", run<StreamWrite>, 4, 256, 64, 3, 5, 0, 22, 0, true},
    {"l2_copy", run<StreamCopy>, 4, 256, 64, 3, 5, 0, 22, 0, true},
    {"dram_copy", run<StreamCopy>, 4, 256, 64, 3, 5, 0, 28, 0, true},
    {"bar_throughput", run<Barrier>, 1, 256, 64},
    {"branch_chain", run<Branch>, 1, 32, 256},
    {"cta_waves", run<Branch>, 64, 256, 16},
    {"cta_serial", run<Branch>, 16, 256, 16, 3, 5, 0, 0, 0, false, 196608},  // one at a time
};

// A cycle through all elements `step` words apart, in random order.
void make_walk(u32* device, u32 words, u32 step) {
  std::vector<u32> order(words / step), memory(words, 0);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin() + 1, order.end(), std::mt19937(7));
  for (std::size_t i = 0; i < order.size(); ++i)
    memory[std::size_t(order[i]) * step] = order[(i + 1) % order.size()] * step;
  TRY(cudaMemcpy(device, memory.data(), words * sizeof(u32), cudaMemcpyHostToDevice));
}

void measure(const Bench& bench, const cudaDeviceProp& gpu, u32* memory, u64* stamps, u32* sink) {
  Args args = {};
  const u32 blocks = bench.blocks ? bench.blocks * static_cast<u32>(gpu.multiProcessorCount) : 1;
  const u32 warps = blocks * bench.threads / 32;
  args.memory = bench.log_words ? memory : nullptr, args.warm = bench.warm;
  args.stamps = stamps, args.sink = sink, args.rounds = bench.rounds;
  args.a = bench.a, args.b = bench.b, args.lane_stride = bench.lane_stride;
  args.mask = bench.log_words ? (1u << bench.log_words) - 1 : 0x55555555;
  if (bench.walk) make_walk(memory, 1u << bench.log_words, bench.walk);
  if (bench.stream) args.step = blocks * bench.threads * 4, args.mask &= ~3u;
  // The block's own 8 KiB stay in L1.
  if (std::strcmp(bench.name, "l1_bandwidth") == 0) args.step = bench.threads * 4;
  TRY(cudaFuncSetAttribute(bench.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bench.shared)));
  const bool first_end =
      std::strcmp(bench.name, "warp_order") == 0;  // of all warps: who goes first?
  std::vector<u64> host(3 * warps), best;
  for (int launch = 0; launch < 6; ++launch) {
    // A chain in L2 is brought there by the launch before, one in L1 by the warm rounds; one in
    // DRAM starts somewhere else every time, after other words have taken its place in L2.
    if (bench.log_words > 24 && bench.log_words < 28) {
      if (bench.walk) args.start = static_cast<u32>(launch) * 7919 * bench.walk & args.mask;
      Args other = args;
      other.memory = memory + (std::size_t(1) << 28), other.mask = (1u << 28) - 4;
      other.step = 132 * 4 * 256 * 4, other.warm = 0;
      run<Stream<false>><<<528, 256, 16384>>>(other);
    }
    bench.kernel<<<blocks, bench.threads, bench.shared>>>(args);
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());
    if (launch == 0) continue;
    TRY(cudaMemcpy(host.data(), stamps, host.size() * sizeof(u64), cudaMemcpyDeviceToHost));
    std::map<u64, std::pair<u64, u64>> by_sm;
    for (u32 w = 0; w < warps; ++w) {
      auto [it, fresh] = by_sm.try_emplace(host[3 * w], host[3 * w + 1], host[3 * w + 2]);
      it->second.first = std::min(it->second.first, host[3 * w + 1]);
      it->second.second = first_end ? std::min(it->second.second, host[3 * w + 2])
                                    : std::max(it->second.second, host[3 * w + 2]);
    }
    std::vector<u64> spans;
    for (const auto& [sm, span] : by_sm) spans.push_back(span.second - span.first);
    std::sort(spans.begin(), spans.end());
    if (best.empty() || spans[spans.size() / 2] < best[best.size() / 2]) best = spans;
  }
  std::printf(
      "{\"name\": \"%s\", \"blocks\": %u, \"threads\": %u, \"rounds\": %u, \"cycles\": %llu, "
      "\"min\": %llu, "
      "\"max\": %llu, \"sms\": %zu}\n",
      bench.name, blocks, bench.threads, bench.rounds,
      static_cast<unsigned long long>(best[best.size() / 2]),
      static_cast<unsigned long long>(best.front()), static_cast<unsigned long long>(best.back()),
      best.size());
}

void measure_cold(const char* name, u32 step, const cudaDeviceProp& gpu, u64* stamps) {
  Table table = {};
  table.stamps = stamps;
  for (u32 i = 0; i < 960; ++i) table.next[i] = (i + step) % 960;
  const u32 blocks = static_cast<u32>(gpu.multiProcessorCount);
  std::vector<u64> host(3 * blocks), best;
  for (int launch = 0; launch < 6; ++launch) {
    cold_constants<<<blocks, 32>>>(table);
    TRY(cudaDeviceSynchronize());
    TRY(cudaMemcpy(host.data(), stamps, host.size() * sizeof(u64), cudaMemcpyDeviceToHost));
    std::vector<u64> spans;
    for (u32 b = 0; b < blocks; ++b) spans.push_back(host[3 * b + 2] - host[3 * b + 1]);
    std::sort(spans.begin(), spans.end());
    if (best.empty() || spans[blocks / 2] < best[blocks / 2]) best = spans;
  }
  std::printf(
      "{\"name\": \"%s\", \"blocks\": %u, \"threads\": 32, \"rounds\": 1, \"cycles\": %llu, "
      "\"min\": %llu, \"max\": %llu, \"sms\": %u}\n",
      name, blocks, static_cast<unsigned long long>(best[blocks / 2]),
      static_cast<unsigned long long>(best.front()), static_cast<unsigned long long>(best.back()),
      blocks);
}

// Microseconds a kernel of a chain of empty ones, replayed from a graph: best of ten replays.
double chain_us(bool overlap) {
  constexpr int kLength = 512, kReplays = 10;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t replay;
  cudaEvent_t begin, end;
  TRY(cudaStreamCreate(&stream));
  TRY(cudaEventCreate(&begin));
  TRY(cudaEventCreate(&end));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1), config.blockDim = dim3(32), config.stream = stream;
  config.attrs = &attribute, config.numAttrs = overlap ? 1 : 0;
  TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kLength; ++i)
    TRY(overlap ? cudaLaunchKernelEx(&config, nothing_overlapped)
                : cudaLaunchKernelEx(&config, nothing));
  TRY(cudaStreamEndCapture(stream, &graph));
  TRY(cudaGraphInstantiate(&replay, graph, 0));
  float best = 0;
  for (int k = 0; k <= kReplays; ++k) {
    TRY(cudaEventRecord(begin, stream));
    TRY(cudaGraphLaunch(replay, stream));
    TRY(cudaEventRecord(end, stream));
    TRY(cudaEventSynchronize(end));
    float ms;
    TRY(cudaEventElapsedTime(&ms, begin, end));
    if (k == 1 || (k > 1 && ms < best)) best = ms;  // the first replay uploads the graph
  }
  TRY(cudaGraphExecDestroy(replay));
  TRY(cudaGraphDestroy(graph));
  TRY(cudaEventDestroy(begin));
  TRY(cudaEventDestroy(end));
  TRY(cudaStreamDestroy(stream));
  return 1e3 * best / kLength;
}

int main(int argc, char** argv) {
  const char* only = argc == 3 && std::strcmp(argv[1], "--only") == 0 ? argv[2] : nullptr;
  if (argc != 1 && only == nullptr) {
    std::fprintf(stderr, "usage: %s [--only NAME]\n", argv[0]);
    return 2;
  }
  cudaDeviceProp gpu;
  TRY(cudaGetDeviceProperties(&gpu, 0));
  u32 *memory, *sink;
  u64* stamps;
  TRY(cudaMalloc(&memory, (std::size_t(1) << 29) * sizeof(u32)));
  TRY(cudaMemset(memory, 0x11, (std::size_t(1) << 29) * sizeof(u32)));
  TRY(cudaMalloc(&stamps, 1 << 24));
  TRY(cudaMalloc(&sink, 64));
  std::printf("{\"device\": \"%s\", \"sms\": %d}\n", gpu.name, gpu.multiProcessorCount);
  for (const Bench& bench : kBenches)
    if (only == nullptr || std::strcmp(only, bench.name) == 0)
      measure(bench, gpu, memory, stamps, sink);
  if (only == nullptr) {
    measure_cold("constants_far", 64, gpu, stamps);  // 256 bytes from one to the next
    measure_cold("constants_near", 4, gpu, stamps);  // 16 bytes
  }
  if (only == nullptr)
    std::printf("{\"chain\": \"graph\", \"us_each\": %.5f, \"overlapped_us_each\": %.5f}\n",
                chain_us(false), chain_us(true));
  // For the profiler: what a launch costs that does nothing.
  for (int i = 0; i < 3; ++i) nothing<<<1, 32>>>();
  TRY(cudaDeviceSynchronize());
  return 0;
}
