// Barrett with fixed shifts, counted: every q' and every p at small word widths; at 32 bits random
// q' with p at and next to multiples of q', where the estimate errs. Both estimates of the unit:
// the exact one (modmul_pe) and the one with low columns left out (modmul_pe_cs, here at its worst
// case: each row loses the most). The Verilog itself runs in pe_bank.cpp.
//
// usage: exhaustive W           every q', every p
//        exhaustive 32 N SEED   N random products
// Prints "W q' products error0 error1" and ends with 1 at the first error other than 0 or 1.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

using Wide = unsigned __int128;
using u64 = std::uint64_t;

namespace {

struct Count {
  u64 products = 0;
  u64 error[2] = {0, 0};
};

// Estimates of floor(p / q), low..high: the exact form gives one; dropping columns below W+2 of the
// (W+3)/2 rows that start there can lower the sum by at most rows * 2^(W+2) before the shift, so
// the least estimate takes all of that away.
bool check(unsigned w, u64 q, Wide mu, Wide p, Count& count) {
  const Wide exact = ((p >> (w - 5)) * mu) >> (w + 6);
  const Wide x = w >= 7 ? p >> (w - 7) : p << (7 - w);
  const Wide loss = Wide((w + 3) / 2) << (w + 2);
  const Wide sum = x * mu;
  const Wide least = sum < loss ? 0 : (sum - loss) >> (w + 8);
  const Wide most = sum >> (w + 8);
  const Wide quotient = p / q;
  for (const Wide estimate : {exact, least, most}) {
    if (estimate > quotient || quotient - estimate > 1) {
      std::printf("W = %u q = %llu p = %llx%016llx: estimate off by %lld\n", w,
                  (unsigned long long)q, (unsigned long long)(p >> 64), (unsigned long long)p,
                  (long long)(quotient - estimate));
      return false;
    }
  }
  ++count.products;
  ++count.error[unsigned(quotient - exact)];
  return true;
}

bool report(unsigned w, u64 moduli, const Count& c) {
  std::printf("%u %llu %llu %llu %llu\n", w, (unsigned long long)moduli,
              (unsigned long long)c.products, (unsigned long long)c.error[0],
              (unsigned long long)c.error[1]);
  return true;
}

bool all(unsigned w) {
  Count count;
  const u64 least = (u64(1) << (w - 4)) + 1, end = u64(1) << w;
  for (u64 q = least; q < end; ++q) {
    const Wide mu = (Wide(1) << (2 * w + 1)) / q;
    for (u64 p = 0; p < u64(1) << (2 * w); ++p)
      if (!check(w, q, mu, p, count)) return false;
  }
  return report(w, end - least, count);
}

bool aimed(u64 n, u64 seed) {
  constexpr unsigned w = 32;
  constexpr u64 edges[] = {(1ull << 28) + 1, (1ull << 28) + 3, (1ull << 29) - 1,
                           1ull << 29,       1ull << 30,       (1ull << 31) - 1,
                           1ull << 31,       (1ull << 32) - 5, (1ull << 32) - 1};
  std::mt19937_64 random(seed);
  Count count;
  u64 moduli = 0;
  for (u64 done = 0; done < n; ++moduli) {
    u64 q = moduli < std::size(edges) ? edges[moduli] : random() >> (32 + random() % 4);
    if (q <= 1ull << 28) continue;
    const Wide mu = (Wide(1) << 65) / q;
    const u64 largest = ~u64(0) / q;
    for (unsigned i = 0; i < 4096 && done < n; ++i, ++done) {
      const u64 multiple = (i & 1) ? largest - random() % 1024 : random() % (largest + 1);
      u64 p = multiple * q + (i & 2 ? 0 : random() % 5) - (i & 4 ? 1 : 0);
      if (i & 8) p |= (1ull << 27) - 1;  // the cut of p costs most
      if (!check(w, q, mu, p, count)) return false;
    }
  }
  return report(w, moduli, count);
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned w = argc > 1 ? unsigned(std::atoi(argv[1])) : 0;
  if (w == 32 && argc == 4)
    return aimed(std::strtoull(argv[2], nullptr, 0), std::strtoull(argv[3], nullptr, 0)) ? 0 : 1;
  if (w < 6 || w > 10 || argc != 2)
    return std::fprintf(stderr, "usage: exhaustive 6..10 | 32 N SEED\n"), 2;
  return all(w) ? 0 : 1;
}
