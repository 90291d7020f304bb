// Random simulation of both forms of the element against each other, after every edge, and of every
// finished tile against the sum of its products in 128-bit integers. Build: test_equivalence.py.
//
// usage: pe_pair STEPS SEED WIDTH    Prints "steps tiles"; ends with 1 at the first difference.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>

#include "Vpe_pair.h"
#include "verilated.h"

using u64 = std::uint64_t;
using Wide = unsigned __int128;

namespace {

class Bench {
 public:
  Bench(u64 seed, unsigned width) : random_(seed), width_(width), top_((u64(1) << width) - 1) {}

  bool run(u64 steps) {
    load(0), load(1);
    dut_.rst = 1;
    if (!edge(false)) return false;
    dut_.rst = 0;
    while (steps_ < steps)
      if (!tile()) return false;
    for (int i = 0; i < 8; ++i)
      if (!idle()) return false;
    if (!due_.empty()) return std::printf("%zu tiles without result\n", due_.size()), false;
    std::printf("%llu %llu\n", (unsigned long long)steps_, (unsigned long long)tiles_);
    return true;
  }

 private:
  u64 word(u64 q) {
    switch (random_() & 15) {
      case 0:
        return 0;
      case 1:
        return top_;
      case 2:
        return q - 1;
      case 3:
        return q;
      case 4:
        return random_() % q;
      default:
        return random_() & top_;
    }
  }

  // Another modulus for a bank that no step in flight uses.
  void load(unsigned bank) {
    const u64 least = (u64(1) << (width_ - 4)) + 1;
    u64 q = random_() & top_;
    q >>= random_() & 3;
    if (q < least || (random_() & 7) == 0) q = random_() & 1 ? least : top_ - (random_() & 7);
    const u64 mu = u64((Wide(1) << (2 * width_ + 1)) / q);
    q_[bank] = q;
    if (bank)
      dut_.q1 = q, dut_.mu1 = mu;
    else
      dut_.q0 = q, dut_.mu0 = mu;
  }

  bool tile() {
    bank_ ^= 1;
    if (now_ >= last_use_[bank_] + 6 && (random_() & 3)) load(bank_);
    const u64 q = q_[bank_];
    const unsigned depth = 1 + unsigned(random_() % 16);
    Wide sum = 0;
    for (unsigned k = 0; k < depth; ++k) {
      while ((random_() & 15) == 0)
        if (!idle()) return false;
      dut_.a_in = word(q), dut_.b_in = word(q), dut_.c_in = word(q);
      sum += Wide(dut_.a_in) * dut_.b_in + (k ? 0 : dut_.c_in);
      dut_.valid_in = 1, dut_.first_in = k == 0, dut_.last_in = k + 1 == depth,
      dut_.bank_in = bank_;
      if (k + 1 == depth) due_.push_back({now_ + 6, u64(sum % q)});
      last_use_[bank_] = now_;
      ++steps_;
      if (!edge(true)) return false;
    }
    ++tiles_;
    return true;
  }

  bool idle() {
    dut_.valid_in = 0, dut_.first_in = random_() & 1, dut_.last_in = random_() & 1;
    dut_.bank_in = random_() & 1;
    dut_.a_in = random_() & top_, dut_.b_in = random_() & top_, dut_.c_in = random_() & top_;
    return edge(true);
  }

  bool edge(bool compare) {
    dut_.clk = 0, dut_.eval();
    dut_.clk = 1, dut_.eval();
    ++now_;
    if (!compare) return true;
    const unsigned mask =
        dut_.control & 8 ? 31 : 24;  // first, last and bank mean something with valid
    bool same = dut_.a_out == dut_.cs_a_out && dut_.b_out == dut_.cs_b_out &&
                (dut_.control & mask) == (dut_.cs_control & mask);
    if (steps_ > 8)
      same = same && dut_.acc == dut_.cs_acc;  // before that acc may never have been written
    if (!same) return differ("forms differ", dut_.acc, dut_.cs_acc);
    const bool done = dut_.control & 16;
    const bool expected = !due_.empty() && due_.front().first == now_;
    if (done != expected) return differ("done", expected, done);
    if (done && dut_.acc != due_.front().second)
      return differ("acc", due_.front().second, dut_.acc);
    if (done) due_.pop_front();
    return true;
  }

  bool differ(const char* what, u64 want, u64 got) {
    std::printf("cycle %llu: %s: expected %llx, got %llx\n", (unsigned long long)now_, what,
                (unsigned long long)want, (unsigned long long)got);
    return false;
  }

  VerilatedContext context_;
  Vpe_pair dut_{&context_};
  std::mt19937_64 random_;
  unsigned width_;
  u64 top_;
  u64 q_[2] = {1, 1};
  u64 last_use_[2] = {0, 0};
  unsigned bank_ = 0;
  u64 now_ = 0, steps_ = 0, tiles_ = 0;
  std::deque<std::pair<u64, u64>> due_;  // (cycle of the result, value)
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: pe_pair STEPS SEED WIDTH\n"), 2;
  Bench bench(std::strtoull(argv[2], nullptr, 0), unsigned(std::atoi(argv[3])));
  return bench.run(std::strtoull(argv[1], nullptr, 0)) ? 0 : 1;
}
