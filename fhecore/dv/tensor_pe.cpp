// Random simulation of the tensor core's element with the modular one beside it: six tiles in
// turn, of every format, with modular tiles between. Sums are computed with the host's fused
// multiply-add, which rounds once, and in 128-bit integers. Build: test_tensor.py.
//
// usage: tensor_pe STEPS SEED SINGLE_M
// Prints "steps tiles subnormal overflow nan vanished once": how many results were subnormal,
// infinite from finite operands, NaN, zero by cancellation, and not what two roundings give. Ends
// with 1 at the first difference.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>

#include "Vtensor_pe_fhe.h"
#include "verilated.h"

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Wide = unsigned __int128;

namespace {

enum Format { kInt8, kHalf, kSingle, kDouble };

// Exponent and fraction bits of operands and sums.
struct Shape {
  unsigned e, m, ea, ma;
};

float from_half(u32 bits) {
  const u32 exponent = bits >> 10 & 31, fraction = bits & 1023;
  float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                              : std::ldexp(float(exponent ? fraction + 1024 : fraction),
                                           int(exponent ? exponent : 1) - 25);
  return bits >> 15 ? -size : size;
}

class Bench {
 public:
  Bench(u64 seed, unsigned single_m) : random_(seed), single_m_(single_m) {}

  bool run(u64 steps) {
    load(0), load(1);
    dut_.rst = 1;
    for (int i = 0; i < 2; ++i)
      if (!idle()) return false;
    dut_.rst = 0;
    while (steps_ < steps)
      if (!cycle()) return false;
    for (int i = 0; i < 8; ++i)
      if (!idle()) return false;
    if (!due_.empty()) return std::printf("%zu tiles without result\n", due_.size()), false;
    std::printf("%llu %llu", (unsigned long long)steps_, (unsigned long long)tiles_);
    for (u64 n : seen_) std::printf(" %llu", (unsigned long long)n);
    std::printf("\n");
    return true;
  }

 private:
  struct Slot {
    unsigned left = 0;  // steps of its tile
    Format format = kInt8;
    u64 sum = 0;
  };
  enum Seen { kSubnormal, kOverflow, kNan, kVanished, kOnce, kKinds };

  Shape shape(Format f) const {
    if (f == kDouble) return {11, 52, 11, 52};
    return f == kSingle ? Shape{8, single_m_, 8, 23} : Shape{5, 10, 8, 23};
  }

  u64 bits(unsigned n) { return n ? random_() >> (64 - n) : 0; }

  // Any pattern of a format, those at its edges often; `near`: exponents close to it.
  u64 number(unsigned e, unsigned m, int near) {
    const u64 sign = bits(1) << (e + m), top = (u64(1) << e) - 1;
    u64 fraction = bits(m), exponent = bits(e);
    switch (random_() & 7) {
      case 0:
        fraction = bits(1) ? 0 : (u64(1) << m) - 1;
        break;
      case 1:
        fraction = u64(1) << random_() % m;
        break;
      case 2:
        fraction = ((u64(1) << m) - 1) ^ (u64(1) << random_() % m);
        break;
    }
    if (random_() & 7) {
      const int close = near + int(random_() % 9) - 4;
      exponent = close < 0 ? 0 : close > int(top) ? top : u64(close);
    }
    if ((random_() & 31) == 0) exponent = bits(1) ? 0 : 1;
    if ((random_() & 127) == 0) exponent = top - bits(1), fraction = bits(1) ? 0 : fraction;
    return sign | exponent << m | fraction;
  }

  u64 multiply_add(Format f, u64 a, u64 b, u64 c) {
    if (f == kInt8) return u32(std::int8_t(a) * std::int8_t(b)) + u32(c) & 0xffffffffu;
    if (f == kDouble) {
      const double x = std::bit_cast<double>(a), y = std::bit_cast<double>(b),
                   z = std::bit_cast<double>(c);
      return note(std::fma(x, y, z), x, y, z);
    }
    const auto operand = [&](u64 w) {
      return f == kHalf ? from_half(u32(w)) : std::bit_cast<float>(u32(w) << (23 - single_m_));
    };
    const float x = operand(a), y = operand(b), z = std::bit_cast<float>(u32(c));
    return note(std::fma(x, y, z), x, y, z);
  }

  template <class Float>
  u64 note(Float d, Float x, Float y, Float z) {
    using Word = std::conditional_t<sizeof(Float) == 8, u64, u32>;
    const bool finite = std::isfinite(x) && std::isfinite(y) && std::isfinite(z);
    seen_[kSubnormal] += std::fpclassify(d) == FP_SUBNORMAL;
    seen_[kOverflow] += finite && std::isinf(d);
    seen_[kNan] += std::isnan(d);
    seen_[kVanished] += d == 0 && z != 0;
    volatile Float product = x * y;  // rounded by itself
    seen_[kOnce] += finite && std::isfinite(d) && product + z != d;
    if (std::isnan(d)) return sizeof(Float) == 8 ? 0x7ff8000000000000u : 0x7fc00000u;
    return std::bit_cast<Word>(d);
  }

  // A step of a tensor tile in the slot whose turn it is; the first one too.
  void tensor_step(Slot& slot) {
    dut_.first_in = slot.left == 0;
    if (slot.left == 0) {
      slot.left = 1 + (random_() & 1 ? 0 : unsigned(random_() % 6));
      slot.format = Format(random_() & 3);
    }
    const Format f = slot.format;
    u64 a, b, c = slot.sum;
    if (f == kInt8) {
      a = bits(8), b = bits(8);
      if (dut_.first_in) c = bits(32);
    } else {
      const Shape s = shape(f);
      const int bias = (1 << (s.e - 1)) - 1, sum_bias = (1 << (s.ea - 1)) - 1;
      const int ea = int(random_() % (2 * unsigned(bias) + 2));
      a = number(s.e, s.m, ea);
      // The product next to the sum, next to the least or the greatest number, or anywhere.
      const int sum = int(c >> s.ma & ((u64(1) << s.ea) - 1));
      const int aims[] = {sum, sum,          sum + int(s.ma), sum - int(s.ma),
                          0,   2 * sum_bias, int(bits(s.ea))};
      b = number(s.e, s.m, aims[random_() % 7] - sum_bias - (ea - bias) + bias);
      // Both subnormal, with few bits: in the wider sums' format the product is far from it.
      if (f == kHalf && (random_() & 7) == 0) a = a & 0x8000 | 1 << random_() % 3, b = b & 0x8003;
      if (dut_.first_in) {
        const int product = int(a >> s.m & ((1u << s.e) - 1)) - bias +
                            int(b >> s.m & ((1u << s.e) - 1)) - bias + sum_bias;
        c = number(s.ea, s.ma, product + int(random_() % (4 * s.ma)) - 2 * int(s.ma));
        if ((random_() & 3) == 0) {  // less the product, or nearly
          c = multiply_add(f, a, b, 0) ^ u64(1) << (s.ea + s.ma);
          if (random_() & 1) c ^= u64(1) << random_() % s.ma;
        }
      }
    }
    const unsigned used = f == kInt8 ? 8 : f == kDouble ? 64 : f == kHalf ? 16 : 9 + single_m_;
    const u64 above = used == 64 ? 0 : bits(64) << used;
    dut_.a_in = a | above, dut_.b_in = b | above;
    dut_.c_in = dut_.first_in ? (f == kDouble ? c : c & 0xffffffffu) : bits(64);
    dut_.valid_in = 1, dut_.modular_in = 0;
    dut_.format_in = dut_.first_in ? unsigned(f) : unsigned(random_() & 3);
    slot.sum = multiply_add(f, a, b, dut_.first_in ? dut_.c_in : slot.sum);
    dut_.last_in = --slot.left == 0;
    if (dut_.last_in) due_.push_back({now_ + 6, slot.sum}), ++tiles_;
  }

  void load(unsigned bank) {
    const u64 q = ((bits(32) | 1u << 31) >> (random_() & 3)) | 1;
    const u64 mu = u64((Wide(1) << 65) / q);
    q_[bank] = q;
    if (bank)
      dut_.q1 = u32(q), dut_.mu1 = mu;
    else
      dut_.q0 = u32(q), dut_.mu0 = mu;
  }

  void modular_step() {
    dut_.first_in = modular_left_ == 0;
    if (modular_left_ == 0) {
      modular_left_ = 1 + unsigned(random_() % 20), bank_ ^= 1, modular_sum_ = 0;
      if (now_ >= last_use_[bank_] + 6) load(bank_);
    }
    dut_.a_in = bits(64), dut_.b_in = bits(64), dut_.c_in = bits(64);
    modular_sum_ += Wide(u32(dut_.a_in)) * u32(dut_.b_in) + (dut_.first_in ? u32(dut_.c_in) : 0);
    dut_.valid_in = 1, dut_.modular_in = 1, dut_.bank_in = bank_, dut_.format_in = random_() & 3;
    last_use_[bank_] = now_;
    dut_.last_in = --modular_left_ == 0;
    if (dut_.last_in) due_.push_back({now_ + 6, u64(modular_sum_ % q_[bank_])}), ++tiles_;
  }

  bool cycle() {
    Slot& slot = slots_[now_ % 6];
    const u64 choice = random_() & 15;
    if (choice == 0) return idle();
    if (choice < 4)
      modular_step();
    else
      tensor_step(slot);
    ++steps_;
    return edge();
  }

  bool idle() {
    dut_.valid_in = 0, dut_.first_in = bits(1), dut_.last_in = bits(1), dut_.format_in = bits(2);
    dut_.modular_in = bits(1), dut_.bank_in = bits(1);
    dut_.a_in = bits(64), dut_.b_in = bits(64), dut_.c_in = bits(64);
    return edge();
  }

  bool edge() {
    dut_.clk = 0, dut_.eval();
    dut_.clk = 1, dut_.eval();
    ++now_;
    if (dut_.a_out != dut_.a_in || dut_.b_out != dut_.b_in)
      return differ("operands for the neighbours", dut_.a_in, dut_.a_out);
    if (dut_.valid_out != (dut_.valid_in && !dut_.rst))
      return differ("valid", dut_.valid_in, dut_.valid_out);
    if (dut_.valid_in && !dut_.rst &&
        (dut_.first_out != dut_.first_in || dut_.last_out != dut_.last_in ||
         dut_.format_out != dut_.format_in || dut_.modular_out != dut_.modular_in))
      return differ("control for the neighbours", 0, 0);
    const bool expected = !due_.empty() && due_.front().first == now_;
    if (bool(dut_.done) != expected) return differ("done", expected, dut_.done);
    if (expected && dut_.sum != due_.front().second)
      return differ("sum", due_.front().second, dut_.sum);
    if (expected) due_.pop_front();
    return true;
  }

  bool differ(const char* what, u64 want, u64 got) {
    std::printf("cycle %llu: %s: expected %llx, got %llx\n", (unsigned long long)now_, what,
                (unsigned long long)want, (unsigned long long)got);
    return false;
  }

  VerilatedContext context_;
  Vtensor_pe_fhe dut_{&context_};
  std::mt19937_64 random_;
  unsigned single_m_;
  Slot slots_[6];
  u64 q_[2] = {1, 1}, last_use_[2] = {0, 0};
  unsigned bank_ = 0, modular_left_ = 0;
  Wide modular_sum_ = 0;
  u64 now_ = 0, steps_ = 0, tiles_ = 0, seen_[kKinds] = {};
  std::deque<std::pair<u64, u64>> due_;  // (cycle of the result, value)
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: tensor_pe STEPS SEED SINGLE_M\n"), 2;
  Bench bench(std::strtoull(argv[2], nullptr, 0), unsigned(std::atoi(argv[3])));
  return bench.run(std::strtoull(argv[1], nullptr, 0)) ? 0 : 1;
}
