// The first factor of CoeffToSlot under the sparse secret: against the ordinary way through keys of
// the same call, the same words on every device, and what it refuses.
#include "circuits/linear_transform/raised_transform.h"

#include "support/boot_world.h"

namespace crenel::circuits {
namespace {

using test::Complex;
using test::expect_error;
using test::Values;

/// `count` diagonals of entries within 1/4; the first is that of no rotation.
DiagonalMatrix some_diagonals(test::Rng& rng, u64 slots, u64 count) {
  std::uniform_real_distribution<double> u(-0.25, 0.25);
  DiagonalMatrix m{slots, {}};
  for (u64 k = 0; m.diagonals.size() < count; k = rng() % slots) {
    auto& diagonal = m.diagonals[k];
    diagonal.clear();
    for (u64 i = 0; i < slots; ++i) diagonal.emplace_back(u(rng), u(rng));
  }
  return m;
}

struct World {
  World(const std::string& device, const char* params)
      : context(ckks::Params::preset(params, true), device),
        client(test::seeded_client(context, test::run_seed())),
        encapsulation(*context.state().ring) {}

  ckks::Evaluator evaluator(const DiagonalMatrix& m) {
    ckks::KeyRequest request;
    request.relinearisation = false;
    request.encapsulation = true;
    for (const auto& [k, values] : m.diagonals)
      request.encapsulation_rotations.push_back(static_cast<i64>(k));
    return context.evaluator(client.evaluation_keys(request));
  }
  rlwe::Poly sparse(const ckks::Evaluator& ev, const ckks::Ciphertext& c) {
    const auto& s = ev.state();
    return encapsulation.to_sparse(*s.stream, c.data().poly.view(),
                                   s.lease(rlwe::kDenseToSparse)[0]);
  }
  Values decrypt(const ckks::Evaluator& ev, rlwe::Poly poly, u32 level, double scale) {
    ckks::Metadata meta;
    meta.level = level, meta.scale = scale, meta.slots = context.params().slots();
    meta.secret_key = client.secret_key_id();
    return client.decrypt(ev.state().wrap(std::move(poly), meta));
  }

  ckks::Context context;
  ckks::Client client;
  rlwe::Encapsulation encapsulation;
};

class RaisedTransforms : public test::SchemeTest {};

TEST_P(RaisedTransforms, AreTheMatrixOfWhatIsRaised) {
  if (GetParam() == "ref") GTEST_SKIP() << "compared with the other devices";
  auto rng = test::test_rng();
  for (const char* params : {"toy-boot40", "toy-boot45"}) {
    World w(GetParam(), params);
    const u64 slots = w.context.params().slots();
    const double q0 = std::exp2(w.context.params().log_q(0));
    for (u64 count : {u64(1), u64(5), kMostRaisedDiagonals}) {
      SCOPED_TRACE(cat(params, ", ", count, " diagonals"));
      const u32 level = w.context.params().normal_top_level() + static_cast<u32>(rng() % 9);
      const DiagonalMatrix m = some_diagonals(rng, slots, count);
      const RaisedTransform t(w.context, m, level);
      EXPECT_EQ(t.plaintext_bytes(), raised_plaintext_bytes(w.context, m, level));
      const auto ev = w.evaluator(m);
      const auto c = w.client.encrypt(test::random_values(rng, 2 * slots), 0, 0.0, slots, 2);
      const rlwe::Poly sparse = w.sparse(ev, c);
      // The polynomial of every entry is m + q0 I: the scale makes its slots about 1.
      const Values raised =
          w.decrypt(ev,
                    w.encapsulation.raise(*ev.state().stream, sparse.view(),
                                          ev.state().lease(rlwe::kSparseToDense)[0], level),
                    level, q0);
      const Values found =
          w.decrypt(ev, t(ev, w.encapsulation.over_raise(*ev.state().stream, sparse.view(), level)),
                    level, q0);
      // What a key and a division add is below 2^-36 of q0; doubles decode to 2^-44 of the largest.
      Values expected;
      for (u64 row = 0; row < 2; ++row) {
        const auto first = raised.begin() + static_cast<i64>(row * slots);
        const Values part = test::apply(m, Values(first, first + static_cast<i64>(slots)));
        expected.insert(expected.end(), part.begin(), part.end());
      }
      double largest = 0.0;
      for (const Complex& x : expected) largest = std::max(largest, std::abs(x));
      EXPECT_GT(largest, 1.0) << "nothing was raised";
      EXPECT_LT(test::max_error(found, expected), 0x1p-30 * largest);
    }
  }
}

TEST_P(RaisedTransforms, HaveTheSameWordsEverywhere) {
  if (GetParam() == "ref") GTEST_SKIP() << "compared with the other devices";
  World ref("ref", "toy-boot40"), w(GetParam(), "toy-boot40");
  auto rng = test::test_rng();
  const u64 slots = w.context.params().slots();
  const DiagonalMatrix m = some_diagonals(rng, slots, 4);
  const Values values = test::random_values(rng, slots);
  std::vector<std::vector<u32>> words;
  for (World* world : {&ref, &w}) {
    const RaisedTransform t(world->context, m, world->context.params().max_level());
    const auto ev = world->evaluator(m);
    const auto c = world->client.encrypt(values, 0, 0.0, slots);
    const rlwe::Poly out = t(ev, world->encapsulation.over_raise(
                                     *ev.state().stream, world->sparse(ev, c).view(), t.level()));
    std::vector<u32> all(out.words());
    ev.stream().copy_out(all.data(), out.data(), out.bytes());
    words.push_back(std::move(all));
  }
  EXPECT_TRUE(words[0] == words[1]);
}

TEST_P(RaisedTransforms, Refuse) {
  World w(GetParam(), "toy-boot40");
  auto rng = test::test_rng();
  const u64 slots = w.context.params().slots();
  const u32 level = w.context.params().max_level();
  expect_error<ParameterError>([&] {
    RaisedTransform(w.context, some_diagonals(rng, slots, kMostRaisedDiagonals + 1), level);
  });
  expect_error<ParameterError>([&] { RaisedTransform(w.context, {slots, {}}, level); });
  const DiagonalMatrix m = some_diagonals(rng, slots, 3);
  const RaisedTransform t(w.context, m, level);
  // Keys of other rotations, and none at all.
  DiagonalMatrix other = m;
  other.diagonals.erase(std::prev(other.diagonals.end()));
  const auto ev = w.evaluator(other);
  const rlwe::Poly sparse = w.sparse(ev, w.client.encrypt(Values{1.0}, 0));
  const auto raised = w.encapsulation.over_raise(*ev.state().stream, sparse.view(), level);
  expect_error<KeyMissingError>([&] { t(ev, raised); });
  ckks::KeyRequest request;
  request.encapsulation_rotations = {1};
  expect_error<ParameterError>([&] { w.client.evaluation_keys(request); });
}

CRENEL_DEVICE_SUITE(RaisedTransforms);

}  // namespace
}  // namespace crenel::circuits
