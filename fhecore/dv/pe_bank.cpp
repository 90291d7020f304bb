// Elements side by side (bank.py makes the top module, pe_bank) on the products that their
// reduction finds hardest, checked by the module after every step: acc and done against `want`,
// which is % on integers here.
//
// usage: pe_bank exhaustive WIDTH             every modulus: every p that a b + c can be, with
//                                             acc = 0, and every a <= b with acc = q - 1
//        pe_bank aimed WIDTH MODULI SEED      products of worst_case.h for each estimate there
//
// Prints "# EXTRA LOW X" for each estimate aimed at, X the largest loss less remainder among its
// products; then for each element "NAME ok" or "NAME wrong: its first difference"; then "steps N".
// A step that is 2q too high shows only where acc is large: hence acc = q - 1.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "Vpe_bank.h"
#include "fhecore/dv/worst_case.h"
#include "pe_bank_names.h"  // kNames: of the elements, by bank.py
#include "verilated.h"

using namespace fhecore_dv;

namespace {

constexpr unsigned kLevels = 6;

struct Step {
  u64 q, acc, a, b, c, want;
};

class Bench {
 public:
  explicit Bench(unsigned width) : width_(width), top_((u64(1) << width) - 1) {
    dut_.rst = 1;
    for (int i = 0; i < 2; ++i) edge();
    dut_.rst = 0;
  }

  /// Constants into the bank that the modulus before did not use: free since its last step left.
  void modulus(u64 q) {
    bank_ ^= 1;
    while (now_ < last_use_[bank_] + kLevels) idle();
    q_ = q;
    const u64 mu = u64(mu_of(width_, q));
    if (bank_)
      dut_.q1 = q, dut_.mu1 = mu;
    else
      dut_.q0 = q, dut_.mu0 = mu;
  }

  /// One step of a tile; `first` starts at 0, and c counts then only.
  void step(u64 a, u64 b, u64 c, bool first, bool last) {
    const u64 before = first ? 0 : acc_;
    acc_ = u64((Wide(a) * b + (first ? c : 0) + before) % q_);
    dut_.a_in = a, dut_.b_in = b, dut_.c_in = c;
    dut_.valid_in = 1, dut_.first_in = first, dut_.last_in = last, dut_.bank_in = bank_;
    dut_.want = acc_;
    last_use_[bank_] = now_;
    recent_[now_ % recent_.size()] = {q_, before, a, b, first ? c : 0, acc_};
    ++steps_;
    edge();
  }

  /// acc = q - 1, then the product.
  void hardest(u64 a, u64 b) {
    step(0, 0, q_ - 1, true, false);
    step(a, b, top_, false, true);
  }

  bool finish() {
    for (unsigned i = 0; i < kLevels + 2; ++i) idle();
    for (std::size_t k = 0; k < std::size(kNames); ++k)
      std::printf("%s %s%s\n", kNames[k], said_[k].empty() ? "ok" : "wrong: ", said_[k].c_str());
    std::printf("steps %llu\n", (unsigned long long)steps_);
    return true;
  }

  u64 top() const { return top_; }

 private:
  void idle() {
    dut_.valid_in = 0;
    edge();
  }

  void edge() {
    dut_.clk = 0, dut_.eval();
    dut_.clk = 1, dut_.eval();
    ++now_;
    u64 fresh = dut_.wrong & ~seen_;
    if (fresh) note(fresh);
  }

  void note(u64 fresh) {
    const Step& s = recent_[(now_ - kLevels) % recent_.size()];
    char text[200];
    std::snprintf(text, sizeof text,
                  "q = %llx acc = %llx a = %llx b = %llx c = %llx, expected %llx",
                  (unsigned long long)s.q, (unsigned long long)s.acc, (unsigned long long)s.a,
                  (unsigned long long)s.b, (unsigned long long)s.c, (unsigned long long)s.want);
    for (std::size_t k = 0; k < std::size(kNames); ++k)
      if (fresh >> k & 1) said_[k] = text;
    seen_ |= fresh;
  }

  VerilatedContext context_;
  Vpe_bank dut_{&context_};
  unsigned width_;
  u64 top_;
  u64 q_ = 0, acc_ = 0;
  u64 now_ = kLevels, steps_ = 0, seen_ = 0;
  u64 last_use_[2] = {0, 0};
  unsigned bank_ = 0;
  std::array<Step, 16> recent_{};
  std::array<std::string, 64> said_;
};

void exhaustive(Bench& bench, unsigned w) {
  const u64 top = bench.top();
  for (u64 q = (u64(1) << (w - 4)) + 1; q <= top; ++q) {
    bench.modulus(q);
    for (u64 p = 0; p <= top * top + top; ++p) {
      const u64 b = std::min(top, p / top);
      bench.step(top, b, p - top * b, true, true);
    }
    for (u64 a = 0; a <= top; ++a)
      for (u64 b = a; b <= top; ++b) bench.hardest(a, b);
  }
}

// What a search for this form finds: its products are also driven into all others.
void aimed(Bench& bench, unsigned w, unsigned moduli, u64 seed) {
  for (const Form form : neighbours(w)) {
    Search search(w, seed);
    Product best;
    for (const u64 q : search.moduli(form, 100'000, moduli)) {
      bench.modulus(q);
      for (const Product& p : search.products(form, q, 2'000, 16)) {
        if (p.excess() > best.excess()) best = p;
        bench.hardest(p.a, p.b);
        bench.hardest(p.b, p.a);
      }
    }
    std::printf("# %u %u %.5f\n", form.extra, form.low, best.excess());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned w = argc > 2 ? unsigned(std::atoi(argv[2])) : 0;
  const bool all = argc == 3 && !std::strcmp(argv[1], "exhaustive") && w <= 8;
  if (!all && !(argc == 5 && !std::strcmp(argv[1], "aimed")))
    return std::fprintf(stderr, "usage: pe_bank exhaustive 6..8 | aimed WIDTH MODULI SEED\n"), 2;
  Bench bench(w);
  if (all)
    exhaustive(bench, w);
  else
    aimed(bench, w, unsigned(std::atoi(argv[3])), std::strtoull(argv[4], nullptr, 0));
  return bench.finish() ? 0 : 1;
}
