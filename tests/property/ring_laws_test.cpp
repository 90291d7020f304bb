// Algebra that has to hold whatever the implementation.
#include "property/fixture.h"

namespace crenel::test {
namespace {

class RingLaws : public PropertyTest {};
CRENEL_DEVICE_SUITE(RingLaws);

using C = Context;
using V = Views;

TEST_P(RingLaws, AdditionIsAnAbelianGroup) {
  EXPECT_TRUE(rc::check([this](u64 seed) {
    const auto a = random(seed, limbs_, Domain::eval), b = random(seed + 1, limbs_, Domain::eval),
               c = random(seed + 2, limbs_, Domain::eval), out = blank(limbs_, Domain::eval);
    const auto left = run({out, a, b, c}, [](C& x, const V& v) {
      x.kernels->add(*x.stream, v[0], v[1], v[2]);
      x.kernels->add(*x.stream, v[0], v[0], v[3]);
    });
    const auto right = run({out, a, b, c}, [](C& x, const V& v) {
      x.kernels->add(*x.stream, v[0], v[3], v[2]);
      x.kernels->add(*x.stream, v[0], v[1], v[0]);
    });
    RC_ASSERT(left == right);
    const auto back = run({out, a, b}, [](C& x, const V& v) {
      x.kernels->sub(*x.stream, v[0], v[1], v[2]);
      x.kernels->add(*x.stream, v[0], v[0], v[2]);
      x.kernels->neg(*x.stream, v[0], v[0]);
      x.kernels->neg(*x.stream, v[0], v[0]);
    });
    RC_ASSERT(back == a.words);
  }));
}

TEST_P(RingLaws, MultiplicationDistributes) {
  EXPECT_TRUE(rc::check([this](u64 seed) {
    const auto a = random(seed, limbs_, Domain::eval), b = random(seed + 1, limbs_, Domain::eval),
               c = random(seed + 2, limbs_, Domain::eval), out = blank(limbs_, Domain::eval);
    const auto factored = run({out, a, b, c}, [](C& x, const V& v) {
      x.kernels->add(*x.stream, v[0], v[2], v[3]);
      x.kernels->mul(*x.stream, v[0], v[0], v[1]);
    });
    const auto expanded = run({out, a, b, c}, [](C& x, const V& v) {
      x.kernels->mul(*x.stream, v[0], v[3], v[1]);
      x.kernels->mul_add(*x.stream, v[0], v[1], v[2]);
    });
    RC_ASSERT(factored == expanded);
  }));
}

TEST_P(RingLaws, TransformsAreInverse) {
  EXPECT_TRUE(rc::check([this](u64 seed, bool from_coeff) {
    const Domain first = from_coeff ? Domain::coeff : Domain::eval;
    const auto a = random(seed, limbs_, first);
    const auto back = run({a}, [=](C& x, const V& v) {
      auto other = v[0];
      other.domain = from_coeff ? Domain::eval : Domain::coeff;
      if (from_coeff) {
        x.kernels->ntt(*x.stream, other, v[0]);
        x.kernels->intt(*x.stream, v[0], other);
      } else {
        x.kernels->intt(*x.stream, other, v[0]);
        x.kernels->ntt(*x.stream, v[0], other);
      }
    });
    RC_ASSERT(back == a.words);
  }));
}

// c_k = sum_{i+j=k} a_i b_j - sum_{i+j=k+N} a_i b_j.
std::vector<u32> negacyclic_product(const std::vector<u32>& a, const std::vector<u32>& b, u64 n,
                                    const ring::Ring& ring, const LimbSet& limbs) {
  std::vector<u32> out(a.size());
  for (u32 l = 0; l < limbs.size(); ++l) {
    const u64 q = ring.modulus(limbs[l]).q;
    std::vector<u64> c(n, 0);
    for (u64 i = 0; i < n; ++i)
      for (u64 j = 0; j < n; ++j) {
        const u64 term = u64(a[l * n + i]) * b[l * n + j] % q;
        u64& to = c[(i + j) % n];
        to = (to + (i + j < n ? term : q - term)) % q;
      }
    std::copy(c.begin(), c.end(), out.begin() + static_cast<std::ptrdiff_t>(l * n));
  }
  return out;
}

TEST_P(RingLaws, ProductIsNegacyclicConvolution) {
  const int rounds = log_n_ > 6 ? 3 : 50;  // quadratic time
  Rng rng = test_rng();
  for (int round = 0; round < rounds; ++round) {
    const auto a = random(rng(), limbs_, Domain::coeff), b = random(rng(), limbs_, Domain::coeff);
    const auto product = run({a, b}, [](C& x, const V& v) {
      V eval = v;
      for (int i : {0, 1}) {
        eval[i].domain = Domain::eval;
        x.kernels->ntt(*x.stream, eval[i], v[i]);
      }
      x.kernels->mul(*x.stream, eval[0], eval[0], eval[1]);
      x.kernels->intt(*x.stream, v[0], eval[0]);
    });
    ASSERT_EQ(product, negacyclic_product(a.words, b.words, two_n() / 2, ring(), limbs_));
  }
}

TEST_P(RingLaws, AutomorphismsAreAGroup) {
  EXPECT_TRUE(rc::check([this](u64 seed, u64 e, u64 f, bool coeff) {
    e = e % two_n() | 1, f = f % two_n() | 1;
    const Domain d = coeff ? Domain::coeff : Domain::eval;
    const auto a = random(seed, limbs_, d), out = blank(limbs_, d);
    const auto twice = run({out, a, out}, [=](C& x, const V& v) {
      x.kernels->automorphism(*x.stream, v[2], v[1], e);
      x.kernels->automorphism(*x.stream, v[0], v[2], f);
    });
    const auto once = run({out, a}, [=, this](C& x, const V& v) {
      x.kernels->automorphism(*x.stream, v[0], v[1], e * f % two_n());
    });
    RC_ASSERT(twice == once);
    const u64 inverse = ring::galois_inverse(e, log_n_);
    const auto back = run({out, a, out}, [=](C& x, const V& v) {
      x.kernels->automorphism(*x.stream, v[2], v[1], e);
      x.kernels->automorphism(*x.stream, v[0], v[2], inverse);
    });
    RC_ASSERT(back == a.words);
  }));
}

TEST_P(RingLaws, AutomorphismsCommuteWithTheTransformAndProducts) {
  EXPECT_TRUE(rc::check([this](u64 seed, u64 e) {
    e = e % two_n() | 1;
    const auto a = random(seed, limbs_, Domain::coeff), b = random(seed + 1, limbs_, Domain::eval);
    const auto coeff = blank(limbs_, Domain::coeff), eval = blank(limbs_, Domain::eval);
    const auto first = run({eval, a, coeff}, [=](C& x, const V& v) {
      x.kernels->automorphism(*x.stream, v[2], v[1], e);
      x.kernels->ntt(*x.stream, v[0], v[2]);
    });
    const auto last = run({eval, a, eval}, [=](C& x, const V& v) {
      x.kernels->ntt(*x.stream, v[2], v[1]);
      x.kernels->automorphism(*x.stream, v[0], v[2], e);
    });
    RC_ASSERT(first == last);
    auto c = eval;
    c.words = first;
    const auto image_of_product = run({eval, b, c, eval}, [=](C& x, const V& v) {
      x.kernels->mul(*x.stream, v[3], v[1], v[2]);
      x.kernels->automorphism(*x.stream, v[0], v[3], e);
    });
    const auto product_of_images = run({eval, b, c, eval, eval}, [=](C& x, const V& v) {
      x.kernels->automorphism(*x.stream, v[3], v[1], e);
      x.kernels->automorphism(*x.stream, v[4], v[2], e);
      x.kernels->mul(*x.stream, v[0], v[3], v[4]);
    });
    RC_ASSERT(image_of_product == product_of_images);
  }));
}

// Multiplying by X^(N/2) is what the two halves of LimbScalars mean.
TEST_P(RingLaws, ComplexScalarIsAPolynomial) {
  EXPECT_TRUE(rc::check([this](u64 seed, u32 real, u32 imaginary) {
    const auto a = random(seed, limbs_, Domain::eval), out = blank(limbs_, Domain::eval);
    auto constant = blank(limbs_, Domain::coeff);
    device::LimbScalars scalars;
    for (u32 l = 0; l < limbs_.size(); ++l) {
      const auto& m = ring().modulus(limbs_[l]);
      const u32 re = real % m.q, im = imaginary % m.q;
      const u32 unit = math::pow_mod<u32>(ring().prime(limbs_[l]).psi, two_n() / 4, m);
      const u32 turned = math::mul_mod<u32>(im, unit, m);
      scalars.low[l] = math::add_mod<u32>(re, turned, m.q);
      scalars.high[l] = math::sub_mod<u32>(re, turned, m.q);
      constant.host().limb(0, 0, l)[0] = re;
      constant.host().limb(0, 0, l)[two_n() / 4] = im;
    }
    const auto scaled = run(
        {out, a}, [&](C& x, const V& v) { x.kernels->mul_scalar(*x.stream, v[0], v[1], scalars); });
    const auto multiplied = run({out, a, constant}, [](C& x, const V& v) {
      x.kernels->ntt(*x.stream, v[0], v[2]);
      x.kernels->mul(*x.stream, v[0], v[0], v[1]);
    });
    RC_ASSERT(scaled == multiplied);
  }));
}

}  // namespace
}  // namespace crenel::test
