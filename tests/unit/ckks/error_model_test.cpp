// Error bounds against measured errors: never exceeded, whatever the inputs are within their
// bounds, and not looser than stated.
#include "crenel/ckks/error_model.h"

#include "crenel/ckks/operand.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::expect_error;
using test::Values;

/// Inputs with |slot| <= 1 that an adversary may like.
enum class Input { uniform, constant, alternating, one_slot, few, rotated };
constexpr Input kInputs[] = {Input::uniform,  Input::constant, Input::alternating,
                             Input::one_slot, Input::few,      Input::rotated};

Values make_input(Input kind, test::Rng& rng, u64 slots, bool real) {
  Values v(slots);
  const Complex unit = real ? Complex(-1.0) : std::polar(1.0, 2.0);
  for (u64 i = 0; i < slots; ++i) switch (kind) {
      case Input::uniform:
        v[i] = test::random_values(rng, 1, 1 / std::sqrt(2.0))[0];
        break;
      case Input::constant:
        v[i] = unit;
        break;
      case Input::alternating:
        v[i] = i % 2 ? unit : -unit;
        break;
      case Input::one_slot:
        v[i] = i == slots / 2 ? unit : 0.0;
        break;
      case Input::few:
        v[i] = i % 64 == 5 ? unit : 0.0;
        break;
      case Input::rotated:
        v[i] = std::polar(1.0, 0.37 * static_cast<double>(i * i % 1009));
        break;
    }
  if (real)
    for (Complex& x : v) x = x.real();
  return v;
}

/// Slots in the clear with an operand's operations.
struct Clear {
  Values v;
  Clear rotate(i64 k) const { return {test::rolled(v, k)}; }
  Clear conjugate() const {
    return {test::map_values(v, [](Complex x) { return std::conj(x); })};
  }
  Clear sum(u64 count, i64 stride) const {
    Values out(v.size());
    for (u64 k = 0; k < count; ++k) {
      const Values r = test::rolled(v, stride * static_cast<i64>(k));
      for (u64 i = 0; i < v.size(); ++i) out[i] += r[i];
    }
    return {out};
  }
  Clear rotate_sum(const std::vector<i64>& steps) const {
    Values out(v.size());
    for (i64 k : steps)
      for (u64 i = 0; i < v.size(); ++i) out[i] += test::rolled(v, k)[i];
    return {out};
  }
  Clear at_level(u32) const { return *this; }
  Clear power(u64 k) const {
    return {test::map_values(v, [&](Complex x) { return std::pow(x, static_cast<int>(k)); })};
  }
  Clear polynomial(const std::vector<double>& c, PolynomialBasis basis, double a, double b) const {
    return {test::map_values(v, [&](Complex x) {
      const Complex t = basis == PolynomialBasis::power ? x : (2.0 * x - a - b) / (b - a);
      Complex low = 1.0, high = t, sum = c[0];
      for (u64 k = 1; k < c.size(); ++k) {
        sum += c[k] * high;
        const Complex next = basis == PolynomialBasis::power ? high * t : 2.0 * t * high - low;
        low = high, high = next;
      }
      return sum;
    })};
  }
};
template <class F>
Clear zip(const Clear& a, const Clear& b, F f) {
  return {test::zip_values(a.v, b.v, f)};
}
Clear operator+(const Clear& a, const Clear& b) { return zip(a, b, std::plus<Complex>()); }
Clear operator-(const Clear& a, const Clear& b) { return zip(a, b, std::minus<Complex>()); }
Clear operator*(const Clear& a, const Clear& b) { return zip(a, b, std::multiplies<Complex>()); }
Clear operator+(const Clear& a, Complex b) { return a + Clear{Values(a.v.size(), b)}; }
Clear operator*(const Clear& a, Complex b) { return a * Clear{Values(a.v.size(), b)}; }
Clear operator+(const Clear& a, const Values& b) { return a + Clear{b}; }
Clear operator*(const Clear& a, const Values& b) { return a * Clear{b}; }

struct MeasuredError {
  double rms = 0.0, max = 0.0, largest = 0.0;
};
MeasuredError error_of(const Values& found, const Values& exact) {
  MeasuredError e;
  for (u64 i = 0; i < found.size(); ++i) {
    const double d = std::abs(found[i] - exact[i]);
    e.rms += d * d / static_cast<double>(found.size());
    e.max = std::max(e.max, d);
    e.largest = std::max(e.largest, std::abs(exact[i]));
  }
  e.rms = std::sqrt(e.rms);
  return e;
}

class CkksErrorModel : public test::SchemeTest {
 protected:
  test::World& w() { return world("s40"); }
  ErrorModel model() { return ErrorModel(w().params()); }

  /// The circuit on every kind of input: bounds hold. The smallest ratio of bound and error, in
  /// bits, over the inputs.
  template <class Circuit>
  double slack(const Circuit& circuit, bool real = false, u64 slots = 0, u32 level = 8) {
    auto rng = test::test_rng();
    if (slots == 0) slots = w().slots();
    const ErrorModel m = model();
    const BoundOperand input(m, m.input(1.0, real, level, 0.0, slots));
    const ErrorBound bound = circuit(input, input).bound();
    EXPECT_GE(bound.max, bound.rms);
    EXPECT_LT(bound.failure, 0x1p-100);
    double least = 1e9;
    for (Input kind : kInputs) {
      const Values x = make_input(kind, rng, slots, real), y = make_input(kind, rng, slots, real);
      const auto encrypted = [&](const Values& v) {
        if (!real) return Operand(w().ev, w().client.encrypt(v, level, 0.0, slots));
        std::vector<double> parts;
        for (const Complex& z : v) parts.push_back(z.real());
        return Operand(w().ev, w().client.encrypt(parts, level, 0.0, slots));
      };
      const Operand found = circuit(encrypted(x), encrypted(y));
      EXPECT_EQ(found.level(), bound.level());
      EXPECT_NEAR(found.scale() / bound.scale(), 1.0, 1e-12);
      EXPECT_EQ(found.slots(), bound.slots());
      EXPECT_EQ(found.ciphertext().metadata().real, bound.meta.real);
      const MeasuredError e =
          error_of(w().client.decrypt(found.ciphertext()), circuit(Clear{x}, Clear{y}).v);
      EXPECT_LE(e.rms, bound.rms) << static_cast<int>(kind);
      EXPECT_LE(e.max, bound.max) << static_cast<int>(kind);
      EXPECT_LE(e.largest, bound.message * (1 + 1e-12)) << static_cast<int>(kind);
      least = std::min(least, std::log2(bound.rms / e.rms));
    }
    return least;
  }
};

/// Vectors of the circuits below, of absolute value at most 1.
Values weights(u64 slots) {
  Values v(slots);
  for (u64 i = 0; i < slots; ++i) v[i] = std::polar(1.0, static_cast<double>(i));
  return v;
}

TEST_P(CkksErrorModel, OneOperationIsWithinSixBits) {
  const u64 n = w().slots();
  const auto tight = [&](const char* name, double bits) {
    EXPECT_LT(bits, 6.0) << name;
    RecordProperty(name, std::to_string(bits));
    std::printf("  %-22s bound over error, bits: %.2f\n", name, bits);
  };
  tight("encryption", slack([](const auto& x, const auto&) { return x; }));
  tight("sum", slack([](const auto& x, const auto& y) { return x + y; }));
  tight("difference", slack([](const auto& x, const auto& y) { return x - y; }));
  tight("constant", slack([](const auto& x, const auto&) { return x + Complex(0.3, 0.1); }));
  tight("integer", slack([](const auto& x, const auto&) { return x * Complex(3.0, -2.0); }));
  tight("product", slack([](const auto& x, const auto& y) { return x * y; }));
  tight("square", slack([](const auto& x, const auto&) { return x * x; }));
  tight("constant factor", slack([](const auto& x, const auto&) { return x * Complex(0.7); }));
  tight("vector factor", slack([&](const auto& x, const auto&) { return x * weights(n); }));
  tight("vector summand", slack([&](const auto& x, const auto&) { return x + weights(n); }));
  tight("rotation", slack([](const auto& x, const auto&) { return x.rotate(3); }));
  tight("conjugation", slack([](const auto& x, const auto&) { return x.conjugate(); }));
  tight("lower level", slack([](const auto& x, const auto&) { return x.at_level(3); }));
  tight("sum of slots", slack([](const auto& x, const auto&) { return x.sum(8, 1); }));
  tight("sum of rotations", slack([](const auto& x, const auto&) {
          return x.rotate_sum(std::vector<i64>{0, 1, 2, -7});
        }));
  // In 16 slots a bound of 2^-128 is five standard deviations of 32 numbers.
  tight("16 slots", slack([](const auto& x, const auto& y) { return x * y; }, false, 16));
}

TEST_P(CkksErrorModel, PolynomialsAreBounded) {
  const std::vector<double> power{0.5, -0.25, 0.125, 0.0, 0.25, -0.1},
      chebyshev{0.1, 0.5, -0.3, 0.2, 0.0, 0.1, -0.05, 0.02, 0.01, 0.3};
  EXPECT_LT(slack([&](const auto& x, const auto&) {
              return x.polynomial(power, PolynomialBasis::power, -1.0, 1.0);
            }),
            9.0);
  EXPECT_LT(slack(
                [&](const auto& x, const auto&) {
                  return x.polynomial(chebyshev, PolynomialBasis::chebyshev, -1.0, 1.0);
                },
                true),
            12.0);
  EXPECT_LT(slack(
                [&](const auto& x, const auto&) {
                  return x.polynomial(chebyshev, PolynomialBasis::chebyshev, -2.0, 2.0);
                },
                true),
            14.0);
  // Complex slots of T_9 reach 1393: the bound knows.
  slack([&](const auto& x, const auto&) {
    return x.polynomial(chebyshev, PolynomialBasis::chebyshev, -1.0, 1.0);
  });
  slack([](const auto& x, const auto& y) { return x.power(7) * y; });
}

TEST_P(CkksErrorModel, RandomCircuitsStayWithinTheirBounds) {
  auto rng = test::test_rng();
  const int circuits = exhaustive() ? 24 : 3;
  for (int i = 0; i < circuits; ++i) {
    std::vector<u32> program(10);
    for (u32& op : program) op = static_cast<u32>(rng() % 10);
    const bool real = rng() % 2;
    const u64 slots = rng() % 2 ? w().slots() : u64(1) << (rng() % 11);
    SCOPED_TRACE(testing::Message() << "circuit " << i << ", slots " << slots);
    const auto circuit = [&](const auto& x, const auto& y) {
      auto a = x, b = y;
      u32 levels = 8;
      for (u32 op : program) {
        const i64 step = slots > 8 ? 3 : 0;
        if (op < 4 && levels < 2) op = 4 + op;  // no level left
        if (op < 4) --levels;
        if (op == 0) a = a * b;
        if (op == 1) b = b * b;
        if (op == 2) a = a * Complex(0.37);
        if (op == 3) a = (a + b) * Complex(0.4999);
        if (op == 4) a = a + b;
        if (op == 5) b = a - b;
        if (op == 6) a = a.rotate(step);
        if (op == 7) b = b.conjugate();
        if (op == 8) a = a + Complex(0.25);
        if (op == 9) b = b * Complex(-2.0);
        if (op == 1) std::swap(a, b);
      }
      return a + b;
    };
    slack(circuit, real, slots);
  }
}

TEST_P(CkksErrorModel, DependentErrorsAreAddedInFull) {
  // A sum of one ciphertext with itself: variances add as if its errors were independent, and claim
  // a fourth of the error. That is the gap that attacks on average-case estimates go through.
  const ErrorModel m = model();
  ErrorBound bound = m.input(1.0);
  Ciphertext c = w().client.encrypt(Values(w().slots(), 1.0));
  const Ciphertext one = c.clone();
  const ErrorBound single = bound;
  for (int i = 1; i < 16; ++i) {
    c = w().ev.add(c, one);
    bound = m.add(bound, single);
  }
  const MeasuredError e = error_of(w().client.decrypt(c), Values(w().slots(), 16.0));
  EXPECT_LE(e.rms, bound.rms);
  EXPECT_GT(e.rms, 2.0 * std::sqrt(bound.variance));
}

TEST_P(CkksErrorModel, PublicKeysAndUnusualScales) {
  const ErrorModel m = model();
  const PublicKey key = w().client.public_key();
  auto rng = test::test_rng();
  for (u64 slots : {w().slots(), u64(4)}) {
    const Values v = make_input(Input::uniform, rng, slots, false);
    const ErrorBound bound = m.input(1.0, false, 3u, 0x1p45, slots, Encryption::public_key);
    const Ciphertext c = key.encrypt(w().context.encode(v, 3u, 0x1p45, slots));
    const MeasuredError e = error_of(w().client.decrypt(c), v);
    EXPECT_LE(e.rms, bound.rms);
    EXPECT_LE(e.max, bound.max);
    EXPECT_LT(std::log2(bound.rms / e.rms), 6.0);
  }
  // Scales at which doubles, not integers, round the message.
  const double scale = 0x1p60;
  const Values one(w().slots(), 1.0);
  const Ciphertext c = w().client.encrypt(one, 8u, scale);
  EXPECT_LE(error_of(w().client.decrypt(c), one).rms, m.input(1.0, false, 8u, scale).rms * 4);
}

TEST_P(CkksErrorModel, ExplicitOperationsAgreeInTheirMetadata) {
  const ErrorModel m = model();
  const Evaluator& ev = w().ev;
  const Values v(w().slots(), 0.5);
  const auto same = [&](const Ciphertext& c, const ErrorBound& b) {
    EXPECT_EQ(c.level(), b.level());
    EXPECT_DOUBLE_EQ(c.scale(), b.scale());
    EXPECT_EQ(c.components(), b.components);
  };
  const Ciphertext c = w().client.encrypt(v);
  const ErrorBound b = m.input(0.5);
  same(ev.square_lazy(c), m.square_lazy(b));
  same(ev.relinearise(ev.square_lazy(c)), m.relinearise(m.square_lazy(b)));
  same(ev.relinearise_rescale(ev.square_lazy(c)), m.relinearise_rescale(m.square_lazy(b)));
  same(ev.rescale(ev.square(c)), m.rescale(m.square(b)));
  same(ev.multiply_rescale(c, c), m.multiply_rescale(b, b));
  same(ev.multiply(c, Complex(0.5), 0x1p30), m.multiply(b, Complex(0.5), 0x1p30));
  same(ev.adjust_level(c, 2), m.adjust_level(b, 2));
  same(ev.multiply(c, w().context.encode(v)), m.multiply(b, m.plaintext(0.5)));
  same(ev.polynomial(c, std::vector<double>{0.25}), m.polynomial(b, std::vector<double>{0.25}));
}

TEST_P(CkksErrorModel, RefusesWhatItDoesNotModel) {
  const ErrorModel m = model();
  const ErrorBound a = m.input(1.0), low = m.input(1.0, false, 0u);
  EXPECT_THROW(m.input(0.0), ParameterError);
  EXPECT_THROW(m.input(-1.0), ParameterError);
  EXPECT_THROW(m.input(std::numeric_limits<double>::infinity()), ParameterError);
  EXPECT_THROW(m.input(1.0, false, 99u), ParameterError);
  EXPECT_THROW(m.input(1.0, false, {}, 0.5), ParameterError);
  EXPECT_THROW(m.input(1.0, false, {}, 0.0, 3), ParameterError);
  EXPECT_THROW(m.rescale(m.square_lazy(a)), UnsupportedError);
  EXPECT_THROW(m.rotate(m.square_lazy(a), 1), StateError);
  EXPECT_THROW(m.rescale(low), StateError);
  EXPECT_THROW(m.add(a, low), StateError);
  EXPECT_THROW(m.add(a, ErrorModel(test::world_params("s50")).input(1.0)), StateError);
  EXPECT_THROW(m.polynomial(low, std::vector<double>{0.0, 1.0, 1.0}), StateError);
  // Messages that grow out of the modulus.
  ErrorBound large = low;
  const auto e = expect_error<StateError>([&] {
    for (int i = 0; i < 64; ++i) large = m.add(large, large);
  });
  EXPECT_NE(e.field("message"), "");
  EXPECT_NE(e.field("log_q"), "");
}

CRENEL_FAST_DEVICE_SUITE(CkksErrorModel);

}  // namespace
}  // namespace crenel::ckks
