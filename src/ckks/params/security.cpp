#include "ckks/params/security.h"

#include <algorithm>
#include <array>

namespace crenel::ckks {
namespace {

constexpr u32 kDenseMinLogN = 10;

// Largest log2(PQ) for a dense ternary secret, sigma 3.19, classical attacks: Table 5.2 of Bossuat
// et al., "Security Guidelines for Implementing Homomorphic Encryption" (ePrint 2024/463), rows N =
// 2^10..2^17. It is nowhere above the 2018 standard (27 54 109 218 438 881 at 128 bits, 152/118 at
// 2^13 for 192/256). The guideline's secret is uniform in {-1,0,1}; ours takes 0 with probability
// 1/2, h about N/2, for which the lattice estimator gives 128.2 bits at 2^16, log PQ 1746. 0: no
// entry.
struct DenseRow {
  double bits128, bits192, bits256;
};
constexpr std::array<DenseRow, 8> kDense{{{26, 0, 0},
                                          {53, 36, 27},
                                          {106, 73, 56},
                                          {214, 147, 114},
                                          {430, 297, 230},
                                          {868, 597, 462},
                                          {1747, 1199, 929},
                                          {3523, 2411, 1866}}};

constexpr u32 kSparseMinLogN = 12;
constexpr std::array<u32, 7> kSparseWeights{32, 64, 128, 192, 256, 512, 1024};

// Largest log2(PQ) with 128 bits for a ternary secret of exact Hamming weight, rows N = 2^12..2^16:
// rotated primal hybrid estimate, Ogilvie (ePrint 2026/279).
constexpr std::array<std::array<double, 7>, 5> kSparse128{
    {{19, 58, 86, 96, 101, 106, 111},
     {37, 113, 167, 187, 197, 209, 214},
     {77, 229, 333, 370, 388, 416, 426},
     {164, 468, 669, 739, 774, 829, 854},
     {349, 961, 1351, 1481, 1553, 1659, 1714}}};

std::optional<double> dense_bound(u32 log_n, u32 bits) {
  if (log_n < kDenseMinLogN || log_n >= kDenseMinLogN + kDense.size()) return std::nullopt;
  const DenseRow& row = kDense[log_n - kDenseMinLogN];
  const double bound = bits == 128   ? row.bits128
                       : bits == 192 ? row.bits192
                       : bits == 256 ? row.bits256
                                     : 0;
  return bound > 0 ? std::optional(bound) : std::nullopt;
}

std::optional<double> sparse_bound(u32 log_n, u32 bits, u32 weight) {
  if (bits != 128 || log_n < kSparseMinLogN || log_n >= kSparseMinLogN + kSparse128.size())
    return std::nullopt;
  // A lighter secret is weaker, so a weight between two columns takes the lighter one.
  const auto above = std::upper_bound(kSparseWeights.begin(), kSparseWeights.end(), weight);
  if (above == kSparseWeights.begin()) return std::nullopt;
  const auto column = static_cast<std::size_t>(above - kSparseWeights.begin()) - 1;
  const double bound = kSparse128[log_n - kSparseMinLogN][column];
  // The two tables are of different years and attacks; a sparse secret never gets more than a dense
  // one (at 2^12 the sparse table ends above the dense one).
  const std::optional<double> dense = dense_bound(log_n, bits);
  return dense ? std::optional(std::min(bound, *dense)) : std::nullopt;
}

}  // namespace

std::optional<double> max_log_pq(u32 log_n, u32 bits, u32 hamming_weight) {
  return hamming_weight == 0 ? dense_bound(log_n, bits) : sparse_bound(log_n, bits, hamming_weight);
}

std::string security_source(u32 hamming_weight) {
  return hamming_weight == 0 ? "dense ternary secret, 2024 guideline (ePrint 2024/463), Table 5.2"
                             : "sparse ternary secret of weight " + std::to_string(hamming_weight) +
                                   ", rotated primal hybrid estimate (ePrint 2026/279)";
}

double estimate_security_bits(u32 log_n, double log_pq, u32 hamming_weight) {
  const auto bound128 = max_log_pq(log_n, 128, hamming_weight);
  if (!bound128 || log_pq <= 0) return 0;
  if (log_pq > *bound128) return std::min(128 * *bound128 / log_pq, 127.99);
  if (hamming_weight != 0) return 128;
  double low_bits = 128, low_bound = *bound128;
  for (const u32 bits : {192u, 256u}) {
    const auto bound = max_log_pq(log_n, bits, 0);
    if (!bound) break;
    if (log_pq > *bound) {
      const double share = (1 / log_pq - 1 / low_bound) / (1 / *bound - 1 / low_bound);
      return low_bits + (bits - low_bits) * share;
    }
    low_bits = bits, low_bound = *bound;
  }
  return std::min(low_bits * low_bound / log_pq, 256.0);
}

}  // namespace crenel::ckks
