// Rows out of rings of larger degree and into them: every device gives the bits of ref, and phases
// are the coefficients that they are said to be.
#include "support/devices.h"
#include "support/torus_world.h"

namespace crenel::test {
namespace {

class TorusRingRows : public DeviceTest {
 protected:
  static TorusPlan plan() { return raising_plan(6, 1, 1, 5, 17, 20); }
  template <class T, class F>
  std::vector<T> on(const std::shared_ptr<device::Device>& d, u64 words, const F& operation) const {
    const TorusWorld world(d, plan());
    const auto out = world.upload(std::vector<T>(words, static_cast<T>(0xa5a5a5a5a5a5a5a5u)));
    operation(world, out.template as<T>());
    return world.download<T>(out, words);
  }
};
CRENEL_DEVICE_SUITE(TorusRingRows);

struct Case {
  u32 log_degree, log_dim;
};
constexpr Case kCases[] = {{0, 0}, {1, 0}, {1, 1}, {5, 0}, {5, 3}, {7, 7}, {11, 8}};

/// z(X^D) times a, modulo the ring's degree: integers, schoolbook.
std::vector<i128> times_secret(const std::vector<i64>& a, const std::vector<i8>& z) {
  const u64 degree = a.size(), stride = degree / z.size();
  std::vector<i128> out(degree);
  for (u64 i = 0; i < degree; ++i)
    for (u64 j = 0; j < z.size(); ++j) {
      const u64 at = i + j * stride;
      out[at % degree] += (at < degree ? 1 : -1) * i128(a[i]) * z[j];
    }
  return out;
}

TEST_P(TorusRingRows, Extract) {
  Rng rng = test_rng();
  for (const Case& c : kCases)
    for (const u32 log_modulus : {1u, 9u, 23u, 31u, 32u})
      for (const u32 modulus : {3u, 33550337u, 0xffffffffu, static_cast<u32>(rng() | 0x1000001)})
        for (const auto fill : kTorusFills) {
          SCOPED_TRACE(cat("degree 2^", c.log_degree, " by 2^", c.log_dim, ", 2^", log_modulus,
                           " of ", modulus, ", ", name_of(fill)));
          const u64 degree = u64(1) << c.log_degree, dim = u64(1) << c.log_dim;
          std::vector<u32> polys(2 * degree), positions;
          for (u64 i = 0; i < polys.size(); ++i)
            polys[i] = static_cast<u32>(fill_word(fill, i, modulus, rng));
          for (u64 y = 0; y < 5; ++y) positions.push_back(static_cast<u32>(rng() % degree));
          positions[0] = 0, positions[1] = static_cast<u32>(degree - 1);
          const device::LweShape shape{positions.size(), static_cast<u32>(dim), 1, log_modulus};
          const u64 words = shape.rows * shape.words();
          const auto run = [&](const TorusWorld& w, u32* out) {
            const auto p = w.upload(polys), at = w.upload(positions);
            w.kernels->extract(*w.stream, {out, shape}, {p.as<u32>(), c.log_degree, modulus},
                               at.as<u32>());
            w.stream->synchronize();
          };
          const auto found = on<u32>(device_, words, run);
          ASSERT_EQ(first_difference(found, on<u32>(device::make_ref_device(), words, run)), "");
          if (fill != TorusFill::random) continue;
          const auto z = torus_secrets(dim, rng);
          const auto product = times_secret(
              std::vector<i64>(polys.begin() + static_cast<i64>(degree), polys.end()), z);
          for (u64 y = 0; y < shape.rows; ++y) {
            double phase = found[y * (dim + 1) + dim];
            for (u64 j = 0; j < dim; ++j) phase -= double(z[j]) * found[y * (dim + 1) + j];
            const i128 sum = product[positions[y]] + polys[positions[y]];
            const double wanted = static_cast<double>(((sum % modulus) + modulus) % modulus) /
                                  modulus * std::exp2(log_modulus);
            // Each word is rounded by half a unit at most.
            const double off = std::remainder(phase - wanted, std::exp2(log_modulus));
            ASSERT_LE(std::abs(off), 0.5 * double(dim + 1) + 1e-3) << "row " << y;
          }
        }
}

TEST_P(TorusRingRows, Embed) {
  Rng rng = test_rng();
  for (const Case& c : kCases)
    for (const u32 log_modulus : {1u, 9u, 23u, 32u})
      for (const u32 count : {1u, 3u})
        for (const auto fill : kTorusFills) {
          SCOPED_TRACE(cat("degree 2^", c.log_degree, " by 2^", c.log_dim, ", 2^", log_modulus,
                           ", ", name_of(fill)));
          const u64 degree = u64(1) << c.log_degree, dim = u64(1) << c.log_dim;
          const u64 stride = degree / dim;
          const device::LweShape shape{7, static_cast<u32>(dim), 1, log_modulus};
          std::vector<u32> rows(shape.rows * shape.words()), which(count * stride);
          for (u64 i = 0; i < rows.size(); ++i)
            rows[i] = static_cast<u32>(fill_word(fill, i, u64(1) << log_modulus, rng));
          for (u32& y : which)
            y = rng() % 4 == 0 ? device::kNoRow : static_cast<u32>(rng() % shape.rows);
          const auto run = [&](const TorusWorld& w, i64* out) {
            const auto r = w.upload(rows), y = w.upload(which);
            w.kernels->embed(*w.stream, out, c.log_degree, count, {r.as<const u32>(), shape},
                             y.as<u32>());
            w.stream->synchronize();
          };
          const u64 words = 2 * count * degree;
          const auto found = on<i64>(device_, words, run);
          ASSERT_EQ(first_difference(found, on<i64>(device::make_ref_device(), words, run)), "");
          if (fill != TorusFill::random) continue;
          const auto z = torus_secrets(dim, rng);
          const u64 mask = (u64(1) << log_modulus) - 1;
          for (u32 e = 0; e < count; ++e) {
            const auto at = found.begin() + static_cast<i64>(2 * e * degree);
            const std::vector<i64> b(at, at + static_cast<i64>(degree));
            const auto product =
                times_secret({at + static_cast<i64>(degree), at + static_cast<i64>(2 * degree)}, z);
            for (u64 v = 0; v < stride; ++v) {
              const u32 y = which[e * stride + v];
              u64 phase = 0;
              if (y != device::kNoRow) {
                phase = rows[y * (dim + 1) + dim];
                for (u64 j = 0; j < dim; ++j)
                  phase -= static_cast<u64>(i64(z[j])) * rows[y * (dim + 1) + j];
              }
              ASSERT_EQ(static_cast<u64>(b[v] + static_cast<i64>(product[v])) & mask, phase & mask);
            }
            for (u64 i = stride; i < degree; ++i) ASSERT_EQ(b[i], 0);
          }
        }
}

TEST_P(TorusRingRows, Refusals) {
  const TorusWorld w(device_, plan());
  const auto memory = w.upload(std::vector<u64>(64));
  u32* const words = memory.as<u32>();
  const auto extract = [&](device::LweShape shape, device::RingView in, const u32* at) {
    w.kernels->extract(*w.stream, {words, shape}, in, at);
  };
  const device::LweShape good{1, 4, 1, 9};
  EXPECT_THROW(extract({1, 3, 1, 9}, {words, 4, 17}, words), ParameterError);
  EXPECT_THROW(extract({1, 32, 1, 9}, {words, 4, 17}, words), ParameterError);
  EXPECT_THROW(extract({1, 4, 2, 9}, {words, 4, 17}, words), ParameterError);
  EXPECT_THROW(extract({1, 4, 1, 33}, {words, 4, 17}, words), ParameterError);
  EXPECT_THROW(extract(good, {words, 21, 17}, words), ParameterError);
  EXPECT_THROW(extract(good, {words, 4, 16}, words), ParameterError);
  EXPECT_THROW(extract(good, {words, 4, 1}, words), ParameterError);
  EXPECT_THROW(extract(good, {nullptr, 4, 17}, words), ParameterError);
  EXPECT_THROW(extract(good, {words, 4, 17}, nullptr), ParameterError);
  const auto embed = [&](device::LweShape shape, u32 log_degree, const u32* rows, i64* out) {
    w.kernels->embed(*w.stream, out, log_degree, 1, {static_cast<const u32*>(words), shape}, rows);
  };
  i64* const out = memory.as<i64>();
  EXPECT_THROW(embed({1, 3, 1, 9}, 4, words, out), ParameterError);
  EXPECT_THROW(embed({1, 4, 1, 9}, 1, words, out), ParameterError);
  EXPECT_THROW(embed({1, 4, 1, 0}, 4, words, out), ParameterError);
  EXPECT_THROW(embed(good, 4, nullptr, out), ParameterError);
  EXPECT_THROW(embed(good, 4, words, nullptr), ParameterError);
}

}  // namespace
}  // namespace crenel::test
