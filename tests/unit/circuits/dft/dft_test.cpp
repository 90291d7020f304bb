// CoeffToSlot and SlotToCoeff factors as matrices in the clear, against the encoder's transform.
#include "circuits/dft/dft.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "circuits/linear_transform/bsgs.h"
#include "circuits/linear_transform/plaintexts.h"
#include "ckks/encoder.h"
#include "crenel/core/error.h"
#include "support/random.h"

namespace crenel::circuits {
namespace {

using Complex = std::complex<double>;
using Vector = std::vector<Complex>;

Vector image(const DiagonalMatrix& m, const Vector& v) {
  Vector out(m.slots);
  for (const auto& [k, d] : m.diagonals)
    for (u64 i = 0; i < m.slots; ++i) out[i] += d[i] * v[(i + k) % v.size()];
  return out;
}

Vector image(const std::vector<DiagonalMatrix>& factors, Vector v) {
  for (const auto& m : factors) v = image(m, v);
  return v;
}

u64 bit_reversed(u64 i, u32 bits) {
  u64 r = 0;
  for (u32 b = 0; b < bits; ++b) r |= (i >> b & 1) << (bits - 1 - b);
  return r;
}

// A random vector of slots and its folded coefficients m_k + i m_(k + slots) in bit-reversed order.
struct Sample {
  Vector slots, folded;
};

Sample sample(u32 log_slots) {
  auto rng = test::test_rng();
  std::uniform_real_distribution<double> u(-1.0, 1.0);
  const u64 n = u64(1) << log_slots;
  const ckks::Encoder encoder(log_slots + 1);
  Sample s{Vector(n), Vector(n)};
  for (auto& x : s.slots) x = {u(rng), u(rng)};
  const auto c = encoder.to_coefficients(s.slots);
  for (u64 i = 0; i < n; ++i) {
    const u64 k = bit_reversed(i, log_slots);
    s.folded[i] = {c[k], c[n + k]};
  }
  return s;
}

double distance(const Vector& a, const Vector& b) {
  double d = a.size() == b.size() ? 0.0 : 1e9;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    d = std::max(d, std::abs(a[i] - b[i]));
  return d;
}

TEST(Dft, FactorsAreTheTransformForEverySplit) {
  for (u32 log_slots = 0; log_slots <= 10; ++log_slots) {
    const Sample s = sample(log_slots);
    const double n = std::exp2(log_slots);
    for (u32 factors = 1; factors <= 4; ++factors) {
      const auto stages = split_stages(log_slots, factors);
      ASSERT_EQ(std::accumulate(stages.begin(), stages.end(), 0u), log_slots);
      Vector back = s.slots;
      for (auto& x : back) x /= n;
      EXPECT_LT(
          distance(image(coeff_to_slot_factors(u64(1) << log_slots, stages, 1.0, false), back),
                   s.folded),
          1e-12)
          << log_slots << " stages in " << factors;
      EXPECT_LT(
          distance(image(slot_to_coeff_factors(u64(1) << log_slots, stages, 1.0, false), s.folded),
                   s.slots),
          1e-11);
    }
  }
}

TEST(Dft, JoinedFactorsCarryRealAndImaginaryHalves) {
  for (u32 log_slots : {1u, 2u, 5u, 8u}) {
    const Sample s = sample(log_slots);
    const u64 n = u64(1) << log_slots;
    const auto down = split_stages(log_slots, 4), up = split_stages(log_slots, 3);
    Vector back = s.slots;
    for (auto& x : back) x /= static_cast<double>(n);
    back.insert(back.end(), back.begin(), back.end());
    Vector half = image(coeff_to_slot_factors(n, down, 1.0, true), back);
    ASSERT_EQ(half.size(), 2 * n);
    Vector doubled(2 * n), parts(2 * n), twice = s.slots;
    for (u64 i = 0; i < 2 * n; ++i) {
      doubled[i] = half[i] + std::conj(half[i]);
      parts[i] = 2.0 * (i < n ? s.folded[i].real() : s.folded[i - n].imag());
    }
    EXPECT_LT(distance(doubled, parts), 1e-12);
    Vector slots = image(slot_to_coeff_factors(n, up, 0.5, true), doubled);
    const double factor = 2.0 * std::pow(0.5, 3.0);
    for (auto& x : twice) x *= factor;
    slots.resize(n);
    EXPECT_LT(distance(slots, twice), 1e-11);
  }
}

TEST(Dft, FactorMultipliesEachMatrix) {
  const Sample s = sample(6);
  const std::vector<u32> stages{2, 2, 2};
  Vector expected = s.slots;
  for (auto& x : expected) x *= 0.125;
  EXPECT_LT(distance(image(slot_to_coeff_factors(64, stages, 0.5, false), s.folded), expected),
            1e-12);
}

// docs/theory/bootstrapping.md, "CoeffToSlot and SlotToCoeff": diagonals, strides, steps and
// periods of 4+3+4+4 and 5+5+5 stages.
TEST(Dft, FullSizeStructure) {
  struct Row {
    u64 diagonals, stride, babies, giants, rotations, period;
  };
  const u64 n = 1u << 15;
  const auto check = [&](const std::vector<DiagonalMatrix>& factors, const std::vector<Row>& rows) {
    ASSERT_EQ(factors.size(), rows.size());
    for (std::size_t f = 0; f < rows.size(); ++f) {
      std::vector<u64> offsets;
      u64 period = 1;
      for (const auto& [k, values] : factors[f].diagonals) {
        offsets.push_back(k);
        period = std::max(period, period_of(values));
      }
      const Bsgs plan = plan_bsgs(offsets, n, 0, KeyMode::hoisted);
      EXPECT_EQ(offsets.size(), rows[f].diagonals) << f;
      EXPECT_EQ(plan.stride, rows[f].stride) << f;
      EXPECT_EQ(plan.babies.size(), rows[f].babies) << f;
      EXPECT_EQ(plan.giants.size(), rows[f].giants) << f;
      EXPECT_EQ(plan.rotations.size(), rows[f].rotations) << f;
      EXPECT_EQ(period, rows[f].period) << f;
    }
  };
  check(coeff_to_slot_factors(n, split_stages(15, 4), 1.0, false), {{16, 2048, 8, 2, 8, 32768},
                                                                    {15, 256, 8, 2, 8, 2048},
                                                                    {31, 16, 16, 2, 16, 256},
                                                                    {31, 1, 16, 2, 16, 16}});
  check(slot_to_coeff_factors(n, split_stages(15, 3), 1.0, false),
        {{63, 1, 16, 4, 18, 32}, {63, 32, 16, 4, 18, 1024}, {32, 1024, 16, 2, 16, 32768}});
}

TEST(Dft, RefusesStagesThatDoNotAddUp) {
  const std::vector<u32> stages{2, 2};
  try {
    slot_to_coeff_factors(32, stages, 1.0, false);
    FAIL() << "accepted";
  } catch (const ParameterError& e) {
    EXPECT_EQ(e.field("stages"), "4");
  }
}

}  // namespace
}  // namespace crenel::circuits
