// CUDA's kernels of groups of secret bits on the host, all threads of a block or a cluster: their
// bits are those of ref, in whatever order threads come to barriers. What is left for a GPU to show
// is that launches are right.
#include "support/host_block.h"

//
#include <bit>
#include <cmath>
#include <cstring>

struct double2 {
  double x, y;
};
static double2 make_double2(double x, double y) { return {x, y}; }
static double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static double __dadd_rn(double a, double b) { return a + b; }
static double __dsub_rn(double a, double b) { return a - b; }
static double __dmul_rn(double a, double b) { return a * b; }
static int __double2hiint(double x) {
  return static_cast<int>(std::bit_cast<unsigned long long>(x) >> 32);
}
static int __double2loint(double x) {
  return static_cast<int>(std::bit_cast<unsigned long long>(x));
}
static double __hiloint2double(int hi, int lo) {
  return std::bit_cast<double>(static_cast<unsigned long long>(static_cast<unsigned>(hi)) << 32 |
                               static_cast<unsigned>(lo));
}
[[maybe_unused]] static long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
[[maybe_unused]] static long long __double2ll_rz(double x) { return static_cast<long long>(x); }
[[maybe_unused]] static double __ll2double_rn(long long x) { return static_cast<double>(x); }
static unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
  return reversed;
}
static void atomicAdd(unsigned long long* sum, unsigned long long x) { *sum += x; }

#include "backends/cuda/torus/host/arguments.h"
#include "backends/cuda/torus/kernels/cut_exponents.cuh"
#include "backends/cuda/torus/tuning/bundles.h"
#include "backends/cuda/torus/tuning/product_switch.h"
#include "ring/fft.h"
#include "support/torus_world.h"

namespace crenel::test {
namespace {

using namespace backend::cuda::torus;

// Tables and keys as the host makes them.
struct Rotation {
  Rotation(const TorusPlan& plan, const RotationInput& in, u32 rmax)
      : passes(plan.log_n - 1, rmax), fft(plan.log_n) {
    for (const auto& w : fft.twiddles) tree.push_back({w.re, w.im});
    for (u32 j = 0; j <= plan.ring_dim() / 2; ++j) cosines.push_back(fft.roots[j].re);
    order_twiddles();
    RotateArgs& r = args.rotate;
    r.lwe_dim = plan.lwe_dim, r.glwe_dim = plan.glwe_dim, r.slots = plan.slots;
    r.polys = plan.polys();
    r.log_n = plan.log_n, r.log_points = plan.log_n - 1;
    r.log_switch_modulus = plan.log_switch_modulus, r.digits = r.operands = 1;
    r.modulus = plan.modulus, r.log_modulus = static_cast<u32>(std::countr_zero(plan.modulus));
    const double q = static_cast<double>(plan.modulus);
    r.scale = q / static_cast<double>(plan.key_modulus()) / fft.points();
    r.reduces = device::reduces_product(plan), r.q = q, r.q_inverse = 1 / q;
    r.cosines = cosines.data(), r.twiddles = twiddles.data();
    r.twiddle_count = static_cast<u32>(twiddles.size());
    std::copy_n(twiddles.begin(), twiddle_slots<true>(passes.bits[0]), r.first);
    r.luts = in.tables.data(), r.offsets = in.offsets.data(), r.index = in.index.data();
    r.outputs = in.outputs, r.batch = in.batch, r.in = in.rows.data();
    args.steps = plan.steps(), args.log_keys = plan.group, args.first_set = plan.first_set();
    args.log_rest_modulus = plan.log_lwe_modulus;
    transform_key(plan, in.key);
    r.key = key.data();
    exponents.resize(u64(in.batch) * args.row_exponents());
    out.resize(u64(in.batch) * in.outputs * plan.words());
    args.exponents = exponents.data(), args.out = out.data();
  }

  void order_twiddles() {
    twiddles.resize(twiddle_offset<true>(passes, passes.count));
    for (u32 p = 0; p < passes.count; ++p)
      for (u32 t = 0; t < passes.bits[p]; ++t)
        for (u32 s = 0; s < 1u << t; s += 2)
          for (u32 b = 0; b < 1u << passes.depth[p]; ++b)
            twiddles[twiddle_offset<true>(passes, p) +
                     (twiddle_slot<true>(t, s) << passes.depth[p]) + b] =
                tree[(std::size_t(1) << (passes.depth[p] + t)) + (b << t) + s];
  }
  void transform_key(const TorusPlan& plan, const std::vector<i64>& polys) {
    const u32 points = fft.points();
    const FftPoints field{nullptr, args.rotate};
    for (u64 at = 0; at < polys.size(); at += plan.ring_dim()) {
      std::vector<double2> z;
      for (u32 j = 0; j < points; ++j)
        z.push_back(
            {static_cast<double>(polys[at + j]), static_cast<double>(polys[at + j + points])});
      for (u32 width = 1; width < points; width *= 2)
        for (u32 b = 0, half = points / width / 2; b < width; ++b)
          for (u32 j = 2 * half * b; j < 2 * half * b + half; ++j)
            field.forward(z[j], z[j + half], tree[width + b]);
      key.insert(key.end(), z.begin(), z.end());
    }
  }

  PassPlan passes;
  ring::NegacyclicFft fft;
  std::vector<double2> tree, twiddles, key;
  std::vector<double> cosines;
  std::vector<u16> exponents;
  std::vector<u32> out;
  BundleArgs args = {};
};

void expect_ref(const TorusPlan& plan, u32 rmax, u32 batch, u32 outputs, Rng& rng,
                const std::function<void(BundleArgs&)>& rotate) {
  auto in = rotation_input(plan, batch, 2, true, rng);
  in.outputs = outputs;
  Rotation rotation(plan, in, rmax);
  launch_blocks(cut_exponents, {batch, 1, 1}, 1, kCutThreads, rotation.args);
  rotate(rotation.args);
  const std::vector<u64> found(rotation.out.begin(), rotation.out.end());
  EXPECT_EQ(first_difference(found, TorusWorld(device::make_ref_device(), plan).blind_rotate(in)),
            "")
      << describe(plan);
}

/// All steps in one launch.
template <class Shape>
void expect_whole(void (*kernel)(BundleArgs), const TorusPlan& plan, u32 batch, u32 outputs,
                  Rng& rng) {
  expect_ref(plan, Shape::RMax, batch, outputs, rng, [&](BundleArgs& args) {
    args.count = args.steps;
    launch_blocks(kernel, {(batch + Shape::Rows - 1) / Shape::Rows, 1, 1}, 1, Shape::Threads, args);
  });
}

template <class Shape>
void expect_blocks(const TorusPlan& plan, u32 batch, u32 outputs, Rng& rng) {
  expect_whole<Shape>(bundle_rotate<Shape>, plan, batch, outputs, rng);
}
template <class Shape>
void expect_differences(const TorusPlan& plan, u32 batch, u32 outputs, Rng& rng) {
  expect_whole<Shape>(difference_rotate<Shape>, plan, batch, outputs, rng);
}

/// A part of one step, then the others, as rotate_ahead launches them.
template <class Shape>
void expect_ahead(void (*kernel)(BundleArgs), u32 cluster, const TorusPlan& plan, u32 batch,
                  u32 outputs, Rng& rng) {
  expect_ref(plan, Shape::RMax, batch, outputs, rng, [&](BundleArgs& args) {
    std::vector<i32> state(u64(batch) * plan.polys() * plan.ring_dim());
    std::vector<double2> made[2];
    for (auto& m : made)
      m.resize(u64(batch) * plan.steps() * plan.polys() * plan.polys() * plan.ring_dim() / 2);
    const auto take = [&](u32 first, u32 count, u32 next, u32 makers) {
      args.first = first, args.count = count, args.next = next;
      args.rotators = count == 0 ? 0 : batch * cluster;
      args.ready = made[0].data(), args.coming = made[1].data();
      launch_blocks(kernel, {args.rotators + makers, 1, 1}, cluster, Shape::Threads, args);
      std::swap(made[0], made[1]);
    };
    args.state = state.data();
    take(0, 0, 1, cluster);
    take(0, 1, plan.steps() - 1, 2 * cluster);
    take(1, plan.steps() - 1, 0, 0);
  });
}

template <class Shape>
void expect_clusters(const TorusPlan& plan, u32 batch, u32 outputs, Rng& rng) {
  expect_ahead<Shape>(cluster_rotate<Shape>, Shape::Polys, plan, batch, outputs, rng);
}
template <class Shape>
void expect_singles(const TorusPlan& plan, u32 batch, u32 outputs, Rng& rng) {
  expect_ahead<Shape>(bundle_rotate<Shape>, 1, plan, batch, outputs, rng);
}

TEST(CudaBundles, GiveTheBitsOfRef) {
  Rng rng = test_rng();
  for (const u32 group : {1u, 2u, 4u}) {
    for (const u32 log_n : {3u, 6u, 9u})
      expect_blocks<AnyBundle>(group_plan(group, 2, 2, log_n, 17, 20), 2, 4, rng);
    // the shapes of lut4-128 and bool128
    TorusPlan tables = group_plan(group, 3, 1, 11, 23, 26),
              gates = group_plan(group, 3, 3, 9, 17, 20);
    tables.log_switch_modulus = 21, gates.log_switch_modulus = 16;
    expect_blocks<Bundle10>(tables, 2, 16, rng);
    expect_blocks<Bundle10Rows>(tables, 5, 1, rng);
    expect_clusters<Ahead10>(tables, 1, 4, rng);
    expect_clusters<Ahead10Joint>(tables, 1, 4, rng);
    expect_singles<Single10>(tables, 5, 4, rng);
    expect_blocks<Bundle8>(gates, 2, 1, rng);
    expect_blocks<Bundle8Rows>(gates, 5, 16, rng);
    expect_clusters<Ahead8>(gates, 6, 1, rng);
    TorusPlan coarse = group_plan(group, 2, 2, 7, 20, 24);  // rest coarser than Q, whole places
    coarse.log_lwe_modulus = 17, coarse.log_switch_modulus = 8, coarse.switch_digits = 4;
    expect_blocks<AnyBundle>(coarse, 2, 1, rng);
  }
}

// The shapes of bool128-packed, with five messages a mask and with others; sets of one message a
// mask with two; the shape for any size by differences.
TEST(CudaBundles, GiveTheBitsOfRefForSeveralMessages) {
  Rng rng = test_rng();
  TorusPlan gates = group_plan(1, 3, 3, 9, 17, 20);
  gates.log_switch_modulus = 16;
  const TorusPlan five = packed_plan(gates, 5, true);
  expect_differences<Difference8>(five, 5, 1, rng);
  expect_differences<Difference8Two>(five, 2, 4, rng);
  expect_differences<Difference8One>(five, 2, 2, rng);
  expect_differences<Difference8Any>(packed_plan(gates, 4, true), 5, 2, rng);
  expect_differences<Difference8Any>(packed_plan(gates, 1, true), 1, 1, rng);
  for (const u32 group : {1u, 2u, 3u}) {
    const TorusPlan any = group_plan(group, 2, 2, 6, 17, 20);
    expect_blocks<AnyBundle>(packed_plan(any, 5, true), 2, 4, rng);
    expect_blocks<AnyBundle>(packed_plan(any, 3, false), 2, 2, rng);
  }
  const TorusPlan two = packed_plan(group_plan(2, 2, 2, 9, 17, 20), 2, false);
  expect_blocks<Bundle8Rows>(two, 5, 2, rng);
  expect_clusters<Ahead8>(two, 2, 2, rng);
}

TEST(CudaBundles, SwitchByProductsGivesTheBitsOfRef) {
  Rng rng = test_rng();
  constexpr u32 kBatch = 37;  // not a multiple of the rows of a tile
  const device::SwitchShape shapes[] = {{33, 61, 1, 21, 21, 2, 10, true, 23},
                                        {16, 7, 3, 32, 20, 8, 4, true, 32},
                                        {20, 7, 3, 30, 20, 9, 3, true, 32},
                                        {7, 130, 1, 20, 20, 1, 20, true, 20},
                                        {40, 6, 1, 5, 3, 5, 1, true, 5}};
  for (const auto& s : shapes) {
    std::vector<u32> key(s.key_rows() * s.out_words()), in(kBatch * (s.in_dim + s.slots));
    for (u32& x : key) x = static_cast<u32>(rng() & ((u64(1) << s.log_modulus) - 1));
    for (u32& x : in) x = static_cast<u32>(rng() & ((u64(1) << s.log_in_modulus) - 1));
    std::vector<u32> expected(kBatch * s.out_words());
    const TorusWorld ref(device::make_ref_device(), raising_plan(6, 1, 1, 5, 17, 20));
    const u32* const rows = in.data();
    ref.kernels->key_switch(*ref.stream, s, {expected.data(), s.out(kBatch)}, {rows, s.in(kBatch)},
                            s.key<const void>(key.data()));
    ProductSwitchArgs args = {};
    backend::cuda::fill_shape(args, s);
    args.in = rows, args.key = key.data(), args.batch = kBatch;
    args.log_in_modulus = s.log_in_modulus;
    for (u32 j = 0; j < s.digits; ++j) args.middle += u64(1) << (s.base_log * (j + 1) - 1);
    const auto check = [&](auto kernel, u32 tile_rows, u32 tile_words, u32 threads, u32 part) {
      std::vector<u32> sums(expected.size()), found(expected.size());
      args.part = part, args.out = found.data();
      args.sums = part < s.in_dim ? sums.data() : nullptr;
      const auto tiles = [](u64 all, u32 each) {
        return static_cast<u32>((all + each - 1) / each);
      };
      const dim3 grid = {tiles(s.out_words(), tile_words), tiles(kBatch, tile_rows),
                         tiles(s.in_dim, part)};
      launch_blocks(kernel, grid, 1, threads, args);
      if (args.sums != nullptr)
        launch_blocks(product_switch_finish, {tiles(found.size(), 256), 1, 1}, 1, 256, args);
      EXPECT_EQ(first_difference(found, expected), "") << s.log_modulus << ", part " << part;
    };
    const auto check_units = [&]<class Shape>(Shape, u32 part) {
      check(product_switch_units<Shape>, Shape::Rows, Shape::Words, Shape::Threads, part);
    };
    for (const u32 part : {s.in_dim, kProductPart}) {
      check(product_switch, kProductRows, kProductWords, kProductWords, part);
      if (s.base_log > kUnitBaseLog) continue;
      check_units(UnitSmall<4>{}, part);
      check_units(UnitLarge<4>{}, part);
      if (s.log_modulus > 24) continue;
      check_units(UnitSmall<3>{}, part);
      check_units(UnitLarge<3>{}, part);
    }
  }
}

}  // namespace
}  // namespace crenel::test
