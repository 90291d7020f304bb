#include "core/sha256.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace crenel {
namespace {

// First 32 bits of the fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::array<u32, 64> kRound{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#if defined(__x86_64__)
// Two rounds an instruction; the state is held as (a b e f) and (c d g h).
__attribute__((target("sha,sse4.1,ssse3"))) void compress_sha_ni(std::array<u32, 8>& state,
                                                                 const u8* data,
                                                                 std::size_t blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  auto* words = reinterpret_cast<__m128i*>(state.data());
  const __m128i dcba = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(dcba, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, dcba, 0xf0);
  for (; blocks > 0; --blocks, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 16; ++i) {
      __m128i& now = w[i & 3];  // words 4i .. 4i+3 of the schedule replace those 16 words earlier
      if (i < 4) {
        now = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data) + i),
                               big_endian);
      } else {
        const __m128i last = w[(i + 3) & 3];
        const __m128i middle = _mm_alignr_epi8(last, w[(i + 2) & 3], 4);
        now = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) & 3]), middle);
        now = _mm_sha256msg2_epu32(now, last);
      }
      const auto* constants = reinterpret_cast<const __m128i*>(kRound.data());
      __m128i sum = _mm_add_epi32(now, _mm_load_si128(constants + i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      sum = _mm_shuffle_epi32(sum, 0x0e);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, sum);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha_ni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && ((ebx >> 29) & 1u) != 0 &&
         __builtin_cpu_supports("sse4.1");
}
#endif

}  // namespace

void sha256_compress_portable(std::array<u32, 8>& state, const u8* data, std::size_t blocks) {
  for (; blocks > 0; --blocks, data += 64) {
    std::array<u32, 64> w;
    for (std::size_t i = 0; i < 16; ++i)
      w[i] = static_cast<u32>(data[4 * i]) << 24 | static_cast<u32>(data[4 * i + 1]) << 16 |
             static_cast<u32>(data[4 * i + 2]) << 8 | data[4 * i + 3];
    for (std::size_t i = 16; i < 64; ++i) {
      const u32 s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const u32 s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
      const u32 s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const u32 t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
      const u32 s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const u32 t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<u32, 8> add{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += add[i];
  }
}

void sha256_compress(std::array<u32, 8>& state, const u8* data, std::size_t blocks) {
#if defined(__x86_64__)
  static const bool accelerated = has_sha_ni();
  if (accelerated) return compress_sha_ni(state, data, blocks);
#endif
  sha256_compress_portable(state, data, blocks);
}

Sha256& Sha256::update(std::span<const u8> bytes) {
  length_ += bytes.size();
  if (filled_ != 0) {
    const std::size_t take = std::min(bytes.size(), block_.size() - filled_);
    std::copy_n(bytes.begin(), take, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += take;
    bytes = bytes.subspan(take);
    if (filled_ < block_.size()) return *this;
    sha256_compress(state_, block_.data(), 1);
    filled_ = 0;
  }
  const std::size_t whole = bytes.size() / block_.size();
  sha256_compress(state_, bytes.data(), whole);
  bytes = bytes.subspan(whole * block_.size());
  std::copy(bytes.begin(), bytes.end(), block_.begin());
  filled_ = bytes.size();
  return *this;
}

}  // namespace crenel
