// Kernels of the proposed unit (marks instead of its instructions) and of today's tensor cores, for
// the profiler:
//
//   unit --check       tensor-core products against sums on the host; exit code 1 if one differs
//   unit --list FILE   the cases as JSON, in order
//   unit --profile     every case once between cudaProfilerStart and Stop
//
// The stubs' values mean nothing; instructions, addresses and register allocation do.
#include <cuda_profiler_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fused.cuh"
#include "host.cuh"

using namespace crenel::fhecore::sim;

namespace {

constexpr u32 kN = 1u << kLogN, kMaxLimbs = 63, kMaxPolys = 4;

struct Case {
  std::string name, kernel;
  u32 limbs, polys, sources, destinations;
};

// The parts of HEMult, Rotate and Rescale at `l` limbs (12 special ones, digits of 12) that change.
void add_operation(std::vector<Case>& cases, u32 l) {
  const u32 extended = l + 12, digits = (l + 11) / 12;
  const std::string s = "_" + std::to_string(l);
  const u32 raised = extended * digits - l;  // limbs to transform: the own ones are there already
  const u32 share = raised % 3 == 0 ? 3 : 1;
  cases.push_back({"up_rows" + s, "rows", l, 1, 0, 0});
  cases.push_back({"up_columns" + s, "columns", l, 1, 0, 0});
  cases.push_back({"up_convert" + s, "convert", 0, digits, 12, l});
  cases.push_back({"raised_columns" + s, "columns", raised / share, share, 0, 0});
  cases.push_back({"key_rows" + s, "key_rows", extended, digits, 0, 0});
  cases.push_back({"down_rows" + s, "rows", 12, 2, 0, 0});
  cases.push_back({"down_columns" + s, "columns", 12, 2, 0, 0});
  cases.push_back({"down_convert" + s, "convert", 0, 2, 12, l});
  cases.push_back({"kept_columns" + s, "columns", l, 2, 0, 0});
  cases.push_back({"divide_add" + s, "divide_add", l, 2, 0, 0});
  cases.push_back({"rescale_rows" + s, "rows", 2, 2, 0, 0});
  cases.push_back({"rescale_columns" + s, "columns", 2, 2, 0, 0});
  cases.push_back({"rescale_convert" + s, "convert", 0, 2, 2, l - 2});
  cases.push_back({"rescaled_columns" + s, "columns", l - 2, 2, 0, 0});
  cases.push_back({"divide" + s, "divide", l - 2, 2, 0, 0});
}

std::vector<Case> all_cases() {
  std::vector<Case> cases = {{"imma_columns", "imma_columns", 24, 2, 0, 0},
                             {"imma_rows", "imma_rows", 24, 2, 0, 0},
                             {"ntt_columns", "columns", 24, 2, 0, 0},
                             {"ntt_rows", "rows", 24, 2, 0, 0},
                             {"convert_18", "convert", 0, 2, 18, 12}};
  for (const u32 l : {47u, 23u}) add_operation(cases, l);
  return cases;
}

struct Memory {
  // A buffer an operand: two that share one would share its sectors in the caches too.
  u32 *in, *out, *key, *own, *subtrahend, *addend, *outer, *matrices, *second, *inner, *constants,
      *scales, *convert;
  Prime* primes;

  static u32* words(std::size_t count, u32 below, u32 seed) {
    std::vector<u32> host(count);
    std::mt19937 random(seed);
    for (u32& x : host) x = below ? random() % below : 0;
    u32* device;
    TRY(cudaMalloc(&device, count * sizeof(u32)));
    TRY(cudaMemcpy(device, host.data(), count * sizeof(u32), cudaMemcpyHostToDevice));
    return device;
  }
  Memory() {
    const std::size_t limbs = std::size_t(kMaxLimbs) * kMaxPolys * kN;
    in = words(limbs, kQ, 1), out = words(limbs, kQ, 2), key = words(2 * limbs, kQ, 3);
    own = words(std::size_t(kMaxLimbs) * kN, kQ, 11), subtrahend = words(limbs, kQ, 12),
    addend = words(limbs, kQ, 13);
    outer = words(std::size_t(kMaxLimbs) * kN, kQ, 4);
    matrices = words(kMaxLimbs * 256, 0xffffffff, 5),
    second = words(kMaxLimbs * 256, 0xffffffff, 6);
    inner = words(kMaxLimbs * 256, kQ, 7), scales = words(kMaxLimbs, kQ, 8);
    convert = words(16 * 2 * 128, kQ, 9), constants = words(kMaxLimbs * 32, 0, 10);
    std::vector<Prime> p(kMaxLimbs, prime());
    TRY(cudaMalloc(&primes, p.size() * sizeof(Prime)));
    TRY(cudaMemcpy(primes, p.data(), p.size() * sizeof(Prime), cudaMemcpyHostToDevice));
  }
  static constexpr u32 kQ = 998244353;
  static Prime prime() {
    u32 inverse = 1;  // Newton: -q^-1 mod 2^32
    for (int i = 0; i < 5; ++i) inverse *= 2 - kQ * inverse;
    const u64 r = (u64(1) << 32) % kQ;
    return {kQ, 0u - inverse, static_cast<u32>(r * r % kQ), 0};
  }
  TransformArgs transform(u32 limbs, u32 polys) const {
    return {in, out, primes, constants, matrices, second, inner, outer, limbs, polys, 1};
  }
};

void launch(const Case& c, const Memory& m) {
  const TransformArgs t = m.transform(c.limbs, c.polys);
  const dim3 grid(16, c.polys, c.limbs);
  const KeyArgs key = {t, m.key, nullptr, m.own, 12, c.limbs - 12};
  const DivideArgs divide = {t, m.subtrahend, m.scales, m.addend};
  const ConvertArgs convert_args = {m.in,      m.out,          m.convert, m.constants,
                                    c.sources, c.destinations, kLogN};
  const dim3 tiles(kN / 512, c.polys);
  if (c.kernel == "columns")
    columns<StubUnit><<<grid, kThreads>>>(t);
  else if (c.kernel == "rows")
    rows<StubUnit><<<grid, kThreads>>>(t);
  else if (c.kernel == "imma_columns")
    columns<TensorUnit><<<grid, kThreads>>>(t);
  else if (c.kernel == "imma_rows")
    rows<TensorUnit><<<grid, kThreads>>>(t);
  else if (c.kernel == "key_rows")
    key_rows<StubUnit><<<dim3(16, 1, c.limbs), kThreads>>>(key);
  else if (c.kernel == "divide_add")
    divide_rows<StubUnit, true><<<grid, kThreads>>>(divide);
  else if (c.kernel == "divide")
    divide_rows<StubUnit, false><<<grid, kThreads>>>(divide);
  else if (c.sources <= 16)
    convert<StubUnit, 1><<<tiles, kThreads>>>(convert_args);
  else
    convert<StubUnit, 2><<<tiles, kThreads>>>(convert_args);
  TRY(cudaGetLastError());
}

// Byte planes of a 16 x 16 matrix (times 2^64) as TensorUnit wants its left operand.
std::vector<u32> left_planes(const std::vector<u64>& matrix) {
  std::vector<u32> words(32 * 8, 0);
  for (u32 lane = 0; lane < 32; ++lane)
    for (u32 plane = 0; plane < 4; ++plane)
      for (u32 h = 0; h < 2; ++h)
        for (u32 b = 0; b < 4; ++b) {
          const u32 k = 2 * (lane & 3) + (b & 1) + 8 * (b >> 1);
          const u32 byte = matrix[((lane >> 2) + 8 * h) * 16 + k] >> (8 * plane) & 255;
          words[lane * 8 + 2 * plane + h] |= byte << (8 * b);
        }
  return words;
}

std::vector<u32> fetch(const u32* from, std::size_t count) {
  std::vector<u32> host(count);
  TRY(cudaMemcpy(host.data(), from, count * sizeof(u32), cudaMemcpyDeviceToHost));
  return host;
}

// The column pass of one limb, whole: out[16 k2 + k1] = sum_j M2[k2][j] F[k1][j] sum_k M1[k1][k]
// in[16 k + j].
int check(const Memory& m) {
  constexpr u64 q = Memory::kQ;
  std::mt19937 random(11);
  std::vector<u64> first(256), second(256), first_scaled(256), second_scaled(256);
  const u64 r2 = Memory::prime().r2, r = (u64(1) << 32) % q;
  for (u32 i = 0; i < 256; ++i) {
    first[i] = random() % q, second[i] = random() % q;
    first_scaled[i] = first[i] * r2 % q, second_scaled[i] = second[i] * r2 % q;
  }
  const auto planes1 = left_planes(first_scaled), planes2 = left_planes(second_scaled);
  TRY(cudaMemcpy(m.matrices, planes1.data(), planes1.size() * 4, cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(m.second, planes2.data(), planes2.size() * 4, cudaMemcpyHostToDevice));
  launch({"check", "imma_columns", 1, 1, 0, 0}, m);
  TRY(cudaDeviceSynchronize());
  const auto in = fetch(m.in, kN), out = fetch(m.out, kN), factor = fetch(m.inner, 256);
  u64 inverse_r = 1;  // r^(q-2)
  for (u64 base = r, e = q - 2; e; e >>= 1, base = base * base % q)
    if (e & 1) inverse_r = inverse_r * base % q;
  u32 wrong = 0;
  for (u32 column = 0; column < 256; ++column) {
    u64 inner[16][16] = {};
    for (u32 k1 = 0; k1 < 16; ++k1)
      for (u32 j = 0; j < 16; ++j) {
        u64 sum = 0;
        for (u32 k = 0; k < 16; ++k)
          sum += first[k1 * 16 + k] * in[(16 * k + j) * 256 + column] % q;
        inner[k1][j] = sum % q * factor[k1 * 16 + j] % q * inverse_r % q;
      }
    for (u32 k1 = 0; k1 < 16; ++k1)
      for (u32 k2 = 0; k2 < 16; ++k2) {
        u64 sum = 0;
        for (u32 j = 0; j < 16; ++j) sum += second[k2 * 16 + j] * inner[k1][j] % q;
        wrong += sum % q != out[(16 * k2 + k1) * 256 + column];
      }
  }
  std::printf("{\"check\": \"imma_columns\", \"values\": %u, \"wrong\": %u}\n", kN, wrong);
  return wrong != 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto cases = all_cases();
  if (mode == "--list" && argc == 3) {
    std::FILE* file = std::fopen(argv[2], "w");
    if (file == nullptr) return 1;
    std::fprintf(file, "{\"kind\": \"fhecore-cases\", \"cases\": [");
    for (std::size_t i = 0; i < cases.size(); ++i)
      std::fprintf(file,
                   "%s\n {\"name\": \"%s\", \"kernel\": \"%s\", \"limbs\": %u, \"polys\": %u, "
                   "\"sources\": %u, "
                   "\"destinations\": %u}",
                   i ? "," : "", cases[i].name.c_str(), cases[i].kernel.c_str(), cases[i].limbs,
                   cases[i].polys, cases[i].sources, cases[i].destinations);
    std::fprintf(file, "\n]}\n");
    return std::fclose(file) != 0;
  }
  if (mode != "--profile" && mode != "--check") {
    std::fprintf(stderr, "usage: %s --check | --list FILE | --profile\n", argv[0]);
    return 2;
  }
  const Memory memory;
  if (mode == "--check") return check(memory);
  for (const Case& c : cases) launch(c, memory);
  TRY(cudaDeviceSynchronize());
  TRY(cudaProfilerStart());
  for (const Case& c : cases) {
    launch(c, memory);
    TRY(cudaDeviceSynchronize());
  }
  TRY(cudaProfilerStop());
  return 0;
}
