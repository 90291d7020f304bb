// ref's exact blind rotation against schoolbook products of 128-bit integers, written from the
// formulas of device/torus_kernels.h alone, and the error of approx against exact.
#include <cmath>

#include "support/torus_world.h"

namespace crenel::test {
namespace {

using Poly = std::vector<i128>;

i128 floor_divide(i128 a, i128 b) {  // b > 0
  const i128 q = a / b;
  return a % b < 0 ? q - 1 : q;
}
i128 positive(i128 a, i128 m) { return a - floor_divide(a, m) * m; }
i128 centre(i128 a, i128 m) {
  const i128 r = positive(a, m);
  return 2 * r >= m ? r - m : r;
}

// X^e a, modulo X^N + 1.
Poly shifted(const Poly& a, u64 e) {
  Poly out(a.size());
  for (u64 i = 0; i < a.size(); ++i) {
    const u64 to = (i + e) % (2 * a.size());
    out[to % a.size()] = to < a.size() ? a[i] : -a[i];
  }
  return out;
}

void add_product(Poly& sum, const Poly& a, const i64* b, i128 modulus) {
  const u64 n = a.size();
  for (u64 i = 0; i < n; ++i)
    for (u64 j = 0; j < n; ++j) {
      const i128 term = a[i] * b[j];
      sum[(i + j) % n] += i + j < n ? term : -term;
    }
  for (auto& x : sum) x = centre(x, modulus);
}

class Schoolbook {
 public:
  Schoolbook(const TorusPlan& plan, const RotationInput& in) : p_(plan), in_(in) {}

  std::vector<u64> blind_rotate() const {
    std::vector<u64> out;
    for (u32 row = 0; row < in_.batch; ++row) append_row(out, row);
    return out;
  }

 private:
  u64 exponent(u32 x) const {
    const u64 two_n = 2 * p_.ring_dim();
    const double exact = static_cast<double>(x) * static_cast<double>(two_n) /
                         std::ldexp(1.0, static_cast<int>(p_.log_lwe_modulus));
    return static_cast<u64>(std::floor(exact + 0.5)) % two_n;  // halves are powers of two: exact
  }
  u32 lut(u32 row, u32 slot) const {
    return in_.index.empty() ? 0 : in_.index[row * p_.slots + slot];
  }

  // digit j (1..) of the centred accumulator, by rounding the quotients.
  std::vector<Poly> operands(const std::vector<Poly>& acc) const {
    const i128 q = p_.modulus, base = i128(1) << p_.base_log;
    std::vector<Poly> out(p_.digits * acc.size(), Poly(p_.ring_dim()));
    for (u64 poly = 0; poly < acc.size(); ++poly)
      for (u64 c = 0; c < p_.ring_dim(); ++c) {
        i128 x = centre(acc[poly][c], q);
        if (p_.path == NoisePath::raising) {
          out[poly][c] = x;
          continue;
        }
        x = floor_divide(2 * x + base, 2 * base);
        for (u32 d = 0; d < p_.digits; ++d) {
          const i128 next = d + 1 < p_.digits ? floor_divide(2 * x + base, 2 * base) : 0;
          out[d * acc.size() + poly][c] = x - next * base;
          x = next;
        }
      }
    return out;
  }

  void step(std::vector<Poly>& acc, u32 element, u64 e) const {
    const i128 t = p_.key_modulus(), q = p_.modulus;
    const auto in = operands(acc);
    for (u32 out = 0; out < p_.polys(); ++out) {
      Poly total(p_.ring_dim(), 0);
      for (u32 k = 0; k < p_.keys_per_element(); ++k) {
        Poly sum(p_.ring_dim(), 0);
        for (u64 term = 0; term < in.size(); ++term) {
          const u64 poly =
              ((u64(element) * p_.keys_per_element() + k) * in.size() + term) * p_.polys() + out;
          add_product(sum, in[term], &in_.key[poly * p_.ring_dim()], t);
        }
        const Poly moved = shifted(sum, k == 0 ? e : 2 * p_.ring_dim() - e);
        for (u64 c = 0; c < total.size(); ++c) total[c] += moved[c] - sum[c];
      }
      for (u64 c = 0; c < total.size(); ++c) {
        i128 x = centre(total[c], t);
        if (p_.path == NoisePath::raising) x = floor_divide(2 * q * x + t, 2 * t);
        acc[out][c] = positive(acc[out][c] + x, q);
      }
    }
  }

  void append_row(std::vector<u64>& out, u32 row) const {
    const u64 n = p_.ring_dim();
    const u32* words = &in_.rows[u64(row) * p_.words()];
    std::vector<Poly> acc(p_.polys(), Poly(n, 0));
    for (u32 j = 0; j < p_.slots; ++j) {
      Poly table(n);
      for (u64 c = 0; c < n; ++c) table[c] = in_.tables[lut(row, j) * n + c];
      acc[p_.glwe_dim + j] = shifted(table, 2 * n - exponent(words[p_.lwe_dim + j]));
    }
    for (u32 i = 0; i < p_.lwe_dim; ++i) step(acc, i, exponent(words[i]));
    const i128 q = p_.modulus;
    const auto push = [&](i128 x) {
      const i128 switch_modulus = i128(1) << p_.log_switch_modulus;
      out.push_back(static_cast<u64>(
          positive(floor_divide(positive(x, q) * switch_modulus + q / 2, q), switch_modulus)));
    };
    for (u32 t = 0; t < p_.glwe_dim; ++t)
      for (u64 c = 0; c < n; ++c) push(c == 0 ? acc[t][0] : -acc[t][n - c]);
    for (u32 j = 0; j < p_.slots; ++j)
      push(acc[p_.glwe_dim + j][0] + i128(in_.offsets[lut(row, j)]));
  }

  const TorusPlan& p_;
  const RotationInput& in_;
};

void expect_schoolbook(const TorusPlan& plan, const RotationInput& in) {
  SCOPED_TRACE(describe(plan));
  const TorusWorld world(device::make_ref_device(), plan);
  ASSERT_EQ(first_difference(world.blind_rotate(in), Schoolbook(plan, in).blind_rotate()), "");
}

TEST(TorusSchoolbook, Exact) {
  Rng rng = test_rng();
  for (const u32 log_n : {3u, 5u, 7u})
    for (TorusPlan plan :
         {raising_plan(6, 1, 1, log_n, 17, 20), raising_plan(6, 2, 3, log_n, 54, 28),
          gadget_plan(6, 1, 1, log_n, 1, 27, 7, 3), gadget_plan(6, 1, 2, log_n, 2, 25, 25, 1),
          gadget_plan(6, 2, 1, log_n, 2, 27, 14, 3), gadget_plan(6, 1, 1, log_n, 1, 27, 1, 5)})
      for (const auto secret : {LweSecret::ternary, LweSecret::binary}) {
        plan.secret = secret;
        expect_schoolbook(plan, rotation_input(plan, 2, 2, true, rng));
      }
}

TEST(TorusSchoolbook, CiphertextAndSwitchModuli) {
  Rng rng = test_rng();
  for (const u32 log_q : {1u, 5u, 6u, 7u, 12u, 32u})
    for (const u32 log_switch : {32u, 40u})
      for (TorusPlan plan :
           {raising_plan(9, 1, 1, 5, 17, 20), gadget_plan(9, 1, 1, 5, 1, 27, 7, 3)}) {
        plan.log_lwe_modulus = log_q;
        plan.log_switch_modulus = log_switch, plan.switch_digits = 8;
        expect_schoolbook(plan, rotation_input(plan, 2, 1, false, rng));
      }
}

TEST(TorusSchoolbook, AwkwardInputs) {
  Rng rng = test_rng();
  for (const TorusPlan& plan :
       {raising_plan(6, 1, 1, 5, 17, 20), gadget_plan(6, 1, 1, 5, 1, 27, 7, 3),
        gadget_plan(6, 1, 1, 5, 2, 27, 18, 2)})
    for (const auto key : kTorusFills)
      for (const auto rows : kTorusFills)
        for (const auto tables : kTorusFills) {
          SCOPED_TRACE(cat(name_of(key), " key, ", name_of(rows), " rows, ", name_of(tables)));
          expect_schoolbook(plan, rotation_input(plan, 1, 1, false, rng, key, rows, tables));
          if (testing::Test::HasFatalFailure()) return;
        }
}

// Standard deviation of approx - exact after one external product, in units of Q's integers. All
// operands but the k masks are random; words of the output stand for coefficients.
double measured_error(TorusPlan plan, Rng& rng) {
  const u32 batch = 8;
  const auto in = rotation_input(plan, batch, 2, true, rng);
  plan.arithmetic = Arithmetic::exact;
  const auto exact = TorusWorld(device::make_ref_device(), plan).blind_rotate(in);
  plan.arithmetic = Arithmetic::approx;
  const auto approx = TorusWorld(device::make_ref_device(), plan).blind_rotate(in);
  const double unit = static_cast<double>(plan.modulus) /
                      std::ldexp(1.0, static_cast<int>(plan.log_switch_modulus));
  const i128 modulus = i128(1) << plan.log_switch_modulus;
  double squares = 0, size = 0;
  for (u64 i = 0; i < exact.size(); ++i) {
    const double d = static_cast<double>(centre(i128(approx[i]) - i128(exact[i]), modulus)) * unit;
    squares += d * d, size += std::abs(d);
  }
  const double count = static_cast<double>(exact.size());
  // Errors far below 1 show as rare differences of +-1, with probability E|error|.
  const double mean = size / count;
  return mean < 0.25 ? mean * std::sqrt(std::acos(-1.0) / 2) : std::sqrt(squares / count);
}

TEST(TorusError, ModelMeetsMeasurement) {
  Rng rng = test_rng();
  std::vector<TorusPlan> plans;
  for (const u32 log_n : {5u, 8u, 10u}) {
    for (const auto& [bits, base_log, digits] :
         {std::tuple{25u, 25u, 1u}, {27u, 18u, 2u}, {27u, 27u, 1u}}) {
      plans.push_back(gadget_plan(1, 1, 15, log_n, 2, bits, base_log, digits));
      plans.back().log_switch_modulus = 40, plans.back().switch_digits = 8;
    }
    if (log_n == 5) continue;                      // too few words for so rare differences
    const u32 log_modulus = log_n == 8 ? 22 : 21;  // the largest that check() allows
    plans.push_back(raising_plan(1, 1, 15, log_n, log_modulus, 26));
    plans.back().log_switch_modulus = log_modulus, plans.back().switch_digits = 8;
  }
  for (auto& plan : plans)
    for (const auto secret : {LweSecret::ternary, LweSecret::binary}) {
      plan.secret = secret;
      SCOPED_TRACE(describe(plan));
      const double measured = measured_error(plan, rng), model = device::transform_error_std(plan);
      EXPECT_GT(measured / model, 0.3) << measured << " against " << model;
      EXPECT_LT(measured / model, 3.0) << measured << " against " << model;
    }
}

TEST(TorusError, TransformIsExactForOnePrime) {
  for (const u32 log_n : {10u, 11u})
    for (const auto& [bits, base_log, digits] : {std::tuple{27u, 7u, 3u},
                                                 {27u, 9u, 2u},
                                                 {27u, 5u, 5u},
                                                 {25u, 4u, 6u},
                                                 {27u, 14u, 1u},
                                                 {28u, 10u, 2u}})
      EXPECT_TRUE(
          device::transform_is_exact(gadget_plan(503, 1, 1, log_n, 1, bits, base_log, digits)));
  EXPECT_FALSE(device::transform_is_exact(gadget_plan(600, 1, 1, 11, 2, 25, 25, 1)));
  EXPECT_FALSE(device::transform_is_exact(gadget_plan(600, 1, 1, 10, 2, 18, 7, 3)));
  EXPECT_FALSE(device::transform_is_exact(raising_plan(656, 3, 1, 9, 17, 20)));
}

}  // namespace
}  // namespace crenel::test
