// The CUDA kernels of FHECore on the host, lane by lane, against ref: values, faults and counts.
// What is left for a GPU to show is that the compiler and the launches are right.
#include "support/host_warp.h"

//
#include "backends/cuda/fhecore/kernels/fhecore.cuh"
#include "backends/cuda/poly/host/convert_view.h"
#include "support/chains.h"
#include "support/fhecore_world.h"

namespace crenel::backend::cuda {
u32 shared[kFhecoreWarps * fhecore_strip_words(16)];
}  // namespace crenel::backend::cuda

namespace crenel::test {
namespace {

using namespace backend::cuda;
using fhecore::FragmentConstants;

class FhecoreWarp : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "fibers: not under AddressSanitizer";
#endif
  }
  std::shared_ptr<device::Device> device_ = device::open("ref");
  std::shared_ptr<device::Stream> stream_ = device_->make_stream();
  std::unique_ptr<device::FhecoreKernels> ref_ = fhecore_of(*device_);
  unsigned long long counters_[5] = {};

  void expect_same_counts() {
    expect_counts(*ref_, *stream_,
                  {counters_[0], counters_[1], counters_[2], counters_[3], counters_[4]});
    std::fill_n(counters_, 5, 0);
  }
};

TEST_F(FhecoreWarp, Tiles) {
  Rng rng = test_rng();
  const u32 count = 21;  // not a multiple of the warps of a block
  const auto buffer = [&](std::size_t words) {
    auto b = stream_->allocate(words * sizeof(u32));
    for (std::size_t i = 0; i < words; ++i) b.as<u32>()[i] = static_cast<u32>(rng());
    return b;
  };
  const std::size_t words = count * 256;
  const auto a = buffer(words), b = buffer(words), c = buffer(words), d = buffer(words),
             expected = buffer(words), constants = buffer(count * 64), faults = buffer(count),
             expected_faults = buffer(count);
  for (u32 set = 0; set < 2 * count; ++set) {
    fhecore::ColumnConstants columns[8];
    for (auto& col : columns) col = fhecore::column_constants(random_modulus(rng));
    auto f = fhecore::to_fragment(columns);
    if (set % 5 == 1) f.at[rng() % 32] ^= u32(1) << (rng() % 32);
    std::copy_n(f.at, 32, constants.as<u32>() + set * 32);
    for (u32 e = 0; e < 128; ++e) {  // some words stay too large for their column
      const u32 at = set / 2 * 256 + e / 8 * 16 + set % 2 * 8 + e % 8;
      const u32 q = columns[e % 8].q >> columns[e % 8].shift;
      if (rng() % 300 != 0) b.as<u32>()[at] %= q;
      if (rng() % 300 != 0) c.as<u32>()[at] %= q;
    }
  }
  for (const bool with_c : {true, false}) {
    device::FhecoreTiles tiles{expected.as<u32>(),
                               a.as<u32>(),
                               b.as<u32>(),
                               with_c ? c.as<u32>() : nullptr,
                               constants.as<u32>(),
                               count,
                               expected_faults.as<u32>(),
                               count};
    ref_->fhe_sync(*stream_, tiles);
    tiles.d = d.as<u32>();
    tiles.faults = faults.as<u32>();
    launch_on_host(fhecore_tiles, {(count + 3) / 4}, 32 * kFhecoreWarps,
                   FhecoreTilesArgs{tiles, counters_});
    EXPECT_TRUE(std::equal(d.as<u32>(), d.as<u32>() + words, expected.as<u32>()));
    EXPECT_TRUE(std::equal(faults.as<u32>(), faults.as<u32>() + count, expected_faults.as<u32>()));
    EXPECT_GT(counters_[4], 0u);
    expect_same_counts();
  }
}

TEST_F(FhecoreWarp, Passes) {
  Rng rng = test_rng();
  struct Case {
    std::vector<u32> log_radices;
    u32 limbs, components, batch;
  };
  // The sizes of the decomposition 16^4, and passes of radix 256 on a ring small enough for fibers.
  for (const Case& k : {Case{{4, 4}, 2, 2, 2}, Case{{1, 4, 4}, 2, 1, 1}, Case{{2, 4, 4}, 1, 1, 1},
                        Case{{3, 4, 4}, 1, 1, 1}, Case{{4, 4, 4}, 1, 1, 1}, Case{{8, 4}, 1, 1, 1},
                        Case{{4, 8}, 1, 1, 1}}) {
    const auto plan = device::fhecore_passes(k.log_radices);
    const u32 log_n = plan[0].log_n;
    const auto ring = shared_ring(log_n, mixed_primes(log_n, 3));
    const auto table = ref_->prepare(device::make_fhecore_transform(ring, plan));
    LimbSet limbs;
    for (u32 l = 0; l < k.limbs; ++l) limbs.push_back(2 - l);
    const ring::PolyShape shape{log_n, k.components, k.batch};
    std::vector<u32> moduli;
    for (u32 id = 0; id < 3; ++id) moduli.push_back(ring->modulus(id).q);
    for (const bool inverse : {false, true}) {
      SCOPED_TRACE(
          cat("2^", log_n, ", first radix 2^", k.log_radices[0], inverse ? ", inverse" : ""));
      auto in = random_poly(*ring, rng, shape, limbs, inverse ? Domain::eval : Domain::coeff);
      auto out = empty_poly(shape, limbs, inverse ? Domain::coeff : Domain::eval);
      if (inverse)
        ref_->intt(*stream_, out.host(), in.host(), table);
      else
        ref_->ntt(*stream_, out.host(), in.host(), table);
      auto library = empty_poly(shape, limbs, out.view.domain);
      const auto kernels = device::backend_of(*device_).make_poly_kernels(ring);
      if (inverse)
        kernels->intt(*stream_, library.host(), in.host());
      else
        kernels->ntt(*stream_, library.host(), in.host());
      EXPECT_EQ(out.words, library.words);
      const auto& direction = inverse ? table->inverse : table->forward;
      FhecorePassArgs args = {};
      args.in = poly(ring::PolyView<const u32>(in.host()));
      args.out = poly(in.host());  // in place
      args.matrices = direction.matrices.data();
      args.twiddles = direction.twiddles.data();
      args.constants = table->constants.data();
      args.moduli = moduli.data();
      args.matrix_words = table->matrix_words;
      args.components = k.components;
      args.inverse = inverse;
      args.prime = prime_bytes(limbs);
      args.counters = counters_;
      const std::size_t passes = table->passes.size();
      for (std::size_t step = 0; step < passes; ++step) {
        args.pass = table->passes[inverse ? passes - 1 - step : step];
        const u32 warps = args.pass.depth_tiles() == 16 ? 3 : kFhecoreWarps;
        launch_on_host(fhecore_pass,
                       {(args.pass.warps() + warps - 1) / warps, k.limbs, shape.polys()},
                       32 * warps, args);
      }
      EXPECT_EQ(in.words, out.words);
      expect_same_counts();
    }
  }
}

TEST_F(FhecoreWarp, Conversions) {
  Rng rng = test_rng();
  struct Case {
    u32 log_n, sources, destinations;
  };
  for (const Case& k : {Case{8, 9, 27}, Case{4, 1, 1}, Case{5, 17, 8}, Case{9, 12, 17}}) {
    SCOPED_TRACE(cat(k.sources, " to ", k.destinations));
    const auto ring = shared_ring(9, mixed_primes(9, k.sources + k.destinations));
    const auto moduli = moduli_of(*ring);
    const auto table = ref_->prepare(device::make_fhecore_conversion(
        moduli, rns::make_base_conversion(moduli, LimbSet::range(0, k.sources),
                                          LimbSet::range(k.sources, k.sources + k.destinations))));
    const auto& t = table->table;
    const ring::PolyShape shape{k.log_n, 2, 1};
    auto in = random_poly(*ring, rng, shape, t.source, Domain::coeff);
    auto expected = empty_poly(shape, t.destination, Domain::coeff);
    auto out = garbage_poly(rng, shape, t.destination, Domain::coeff);
    ref_->base_convert(*stream_, expected.host(), in.host(), table);
    std::vector<u32> z(in.words.size());
    FhecoreScaleArgs scale = {};
    scale.in = poly(ring::PolyView<const u32>(in.host()));
    scale.z = z.data();
    scale.scale = t.source_scale.data();
    scale.half = t.half.data();
    scale.moduli = table->source_moduli.data();
    scale.log_n = k.log_n;
    scale.sources = k.sources;
    scale.components = 2;
    scale.counters = counters_;
    const u32 n = 1u << k.log_n;
    launch_on_host(fhecore_scale, {(n + 255) / 256, k.sources, 2}, kFhecoreScaleThreads, scale);
    FhecoreConvertArgs args = {};
    args.z = z.data();
    args.out = poly(out.host());
    args.matrix = table->matrix.data();
    args.offset = table->offset.data();
    args.constants = table->constants.data();
    args.log_n = k.log_n;
    args.sources = k.sources;
    args.destinations = k.destinations;
    args.components = 2;
    args.depth_tiles = table->depth_tiles;
    args.halves = table->halves;
    args.counters = counters_;
    const u32 groups =
        (n / 16 + device::kFhecoreCoefficientTiles - 1) / device::kFhecoreCoefficientTiles;
    launch_on_host(fhecore_convert,
                   {(groups + kFhecoreWarps - 1) / kFhecoreWarps, table->halves, 2},
                   32 * kFhecoreWarps, args);
    EXPECT_EQ(out.words, expected.words);
    expect_same_counts();
  }
}

}  // namespace
}  // namespace crenel::test
