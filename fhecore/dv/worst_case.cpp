// The functional model (fhecore/model/barrett.h) on the products of worst_case.h, and how much an
// estimate can lose.
//
// usage: worst_case W MODULI SEED     W: 6, 8, 16, 17, 19, 22, 24, 28 or 32
// Prints a line for each estimate, "extra low bound largest": the bound as modmul_pe_cs has it, and
// the largest loss less remainder that was found (above 1: off by two). Then "model N steps" or its
// first wrong step, exit code 1.
#include "fhecore/dv/worst_case.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "fhecore/model/barrett.h"

using namespace fhecore_dv;

namespace {

/// Upper bound of an estimate's loss: cut of p, fraction of mu, columns.
double bound(unsigned w, Form form) {
  const double columns =
      form.low ? std::ldexp((form.low + 1) / 2, int(form.low) - int(w + 1 + form.extra)) : 0;
  return std::ldexp(1.0, 4 - int(form.extra)) + 0.5 + columns;
}

template <unsigned W>
int check(unsigned moduli, u64 seed) {
  using crenel::fhecore::pe_step;
  u64 steps = 0;
  for (const Form form : neighbours(W)) {
    Search search(W, seed);
    double largest = 0;
    for (const u64 q : search.moduli(form, 100'000, moduli))
      for (const Product& p : search.products(form, q, 2'000, 16)) {
        largest = std::max(largest, p.excess());
        const u64 want = u64((Wide(p.a) * p.b + q - 1) % q);
        const u64 got = pe_step<W>(std::uint32_t(q - 1), std::uint32_t(p.a), std::uint32_t(p.b), 0,
                                   std::uint32_t(q), u64(mu_of(W, q)));
        ++steps;
        if (got != want)
          return std::printf("model: q = %llx a = %llx b = %llx: %llx, expected %llx\n",
                             (unsigned long long)q, (unsigned long long)p.a,
                             (unsigned long long)p.b, (unsigned long long)got,
                             (unsigned long long)want),
                 1;
      }
    std::printf("%u %u %.5f %.5f\n", form.extra, form.low, bound(W, form), largest);
  }
  return std::printf("model %llu steps\n", (unsigned long long)steps), 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: worst_case W MODULI SEED\n"), 2;
  const unsigned moduli = unsigned(std::atoi(argv[2]));
  const u64 seed = std::strtoull(argv[3], nullptr, 0);
  switch (std::atoi(argv[1])) {
    case 6:
      return check<6>(moduli, seed);
    case 8:
      return check<8>(moduli, seed);
    case 16:
      return check<16>(moduli, seed);
    case 17:
      return check<17>(moduli, seed);
    case 19:
      return check<19>(moduli, seed);
    case 22:
      return check<22>(moduli, seed);
    case 24:
      return check<24>(moduli, seed);
    case 28:
      return check<28>(moduli, seed);
    case 32:
      return check<32>(moduli, seed);
    default:
      return std::fprintf(stderr, "worst_case: W = %s, expected one of the usage's\n", argv[1]), 2;
  }
}
