// Blind rotation by groups and its key switch: which kernel serves a plan, and launches.
#include "backends/cuda/launch.cuh"
#include "backends/cuda/torus/host/kernels.h"
#include "backends/cuda/torus/kernels/bundle_rotate.cuh"
#include "backends/cuda/torus/kernels/product_switch.cuh"

namespace crenel::backend::cuda {
namespace {

using torus::bundle_rotate;
using torus::BundleArgs;

/// Rows of one call of the kernels: bounds the exponents in memory.
constexpr u32 kRowsAtOnce = 1 << 16;

device::LaunchRecord rotation_cost(const device::TorusPlan& plan, u32 rows, u32 outputs) {
  const u64 points = plan.ring_dim() / 2, polys = plan.polys();
  const u64 key = plan.key_polys() * points;
  device::LaunchRecord record;
  record.kernel = "bundle_rotate";
  record.work = device::Work::key_multiply;
  record.limbs = 1;
  record.polys = static_cast<u32>(polys * rows);
  record.streamed_bytes = u64(rows) * plan.steps() * key * sizeof(double2);
  record.read_bytes = record.streamed_bytes + u64(rows) * plan.read_words() * sizeof(u32);
  record.written_bytes = u64(rows) * outputs * plan.words() * sizeof(u32);
  record.butterflies = u64(rows) * plan.steps() * 2 * polys * (points / 2) * (plan.log_n - 1);
  record.multiply_adds =
      record.butterflies + u64(rows) * plan.steps() * (key + polys * polys * points);
  return record;
}

device::LaunchRecord plain_cost(const char* kernel, device::Work work, u64 read, u64 written) {
  device::LaunchRecord record;
  record.kernel = kernel;
  record.work = work;
  record.limbs = record.polys = 1;
  record.read_bytes = read;
  record.written_bytes = written;
  return record;
}

}  // namespace

CudaTorusKernels::Bundles CudaTorusKernels::bundles_for(const device::TorusPlan& plan,
                                                        std::size_t shared_bytes) {
  // log2 of the points, levels a pass, polynomials, threads
  Bundles b;
  if (plan.log_n == 11 && plan.polys() == 2)  // lut4-128g4
    b = {bundle_rotate<10, 4, 2, 256>, 4, 256, 0, "bundles-10-2"};
  else if (plan.log_n == 9 && plan.polys() == 4)  // bool128g4
    b = {bundle_rotate<8, 4, 4, 128>, 4, 128, 0, "bundles-8-4"};
  else
    b = {bundle_rotate<0, 1, 0, 256>, 1, 256, 0, "bundles-any"};
  const u32 log_points = plan.log_n - 1;
  const torus::PassPlan passes(log_points, b.rmax);
  const u32 twiddles = torus::twiddle_offset<true>(passes, passes.count);
  b.shared_bytes =
      (u64(plan.polys()) << plan.log_n) * (sizeof(double2) / 2 + sizeof(i32)) +
      torus::FftField<torus::Accumulator<true, i32>>::table_bytes(plan.log_n, twiddles);
  if (b.shared_bytes > shared_bytes || plan.modulus > u64(1) << 30)
    throw UnsupportedError(
        cat("no blind rotation by groups for ", plan.polys(), " accumulator polynomials of degree ",
            plan.ring_dim(), " modulo ", plan.modulus, ": they take ", b.shared_bytes,
            " bytes of shared memory, expected at most ", shared_bytes, ", and moduli up to 2^30"),
        {{"polys", plan.polys()}, {"ring_dim", plan.ring_dim()}, {"modulus", plan.modulus}});
  return b;
}

void CudaTorusKernels::allow_bundles() const {
  CRENEL_CUDA_TRY(cudaFuncSetAttribute(bundles_.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(device_->model().shared_bytes)));
}

void CudaTorusKernels::rotate_bundles(Stream& stream, const LweView& out, const ConstLweView& in,
                                      const void* key, const LutView& luts) {
  BundleArgs args = {};
  args.rotate = tables_.arguments(bundles_.rmax);
  args.rotate.key = key;
  args.rotate.luts = luts.polys;
  args.rotate.offsets = luts.offsets;
  args.rotate.outputs = luts.outputs;
  args.steps = plan().steps();
  args.log_keys = plan().group;
  args.log_rest_modulus = plan().log_lwe_modulus;
  const u32 batch = static_cast<u32>(in.shape.rows), most = std::min(batch, kRowsAtOnce);
  const device::Buffer exponents = stream.allocate(u64(most) * args.row_exponents() * sizeof(u16));
  args.exponents = exponents.as<u16>();
  for (u32 first = 0; first < batch; first += most) {
    const u32 rows = std::min(most, batch - first);
    args.rotate.in = in.as<const u32>() + u64(first) * plan().read_words();
    args.rotate.index = luts.index == nullptr ? nullptr : luts.index + first;
    args.rotate.batch = rows;
    args.out = out.as<u32>() + u64(first) * luts.outputs * plan().words();
    const auto cut_cost = [&] {
      return plain_cost("cut_exponents", device::Work::elementwise,
                        u64(rows) * plan().read_words() * sizeof(u32),
                        u64(rows) * args.row_exponents() * sizeof(u16));
    };
    launch(stream, cut_cost, torus::cut_exponents, dim3(rows), torus::kCutThreads, 0, args);
    launch(
        stream, [&] { return rotation_cost(plan(), rows, luts.outputs); }, bundles_.kernel,
        dim3(rows), bundles_.threads, bundles_.shared_bytes, args);
  }
}

void CudaTorusKernels::switch_by_products(Stream& stream, const SwitchShape& shape,
                                          const LweView& out, const ConstLweView& in,
                                          const ConstLweView& key) {
  torus::ProductSwitchArgs args = {};
  args.key = key.as<const u32>();
  args.in_dim = shape.in_dim;
  args.out_dim = shape.out_dim;
  args.slots = shape.slots;
  args.base_log = shape.base_log;
  args.digits = shape.digits;
  args.log_in_modulus = shape.log_in_modulus;
  args.log_modulus = shape.log_modulus;
  args.log_out_modulus = shape.log_out_modulus;
  for (u32 j = 0; j < shape.digits; ++j)
    args.middle += (u64(1) << (shape.base_log - 1)) << (shape.base_log * j);
  const u32 words = shape.out_words();
  constexpr u32 kMost = 65535 * torus::kProductRows;  // the grid's limit
  for (u64 first = 0; first < in.shape.rows; first += kMost) {
    args.batch = static_cast<u32>(std::min<u64>(kMost, in.shape.rows - first));
    args.in = in.as<const u32>() + first * in.shape.words();
    args.out = out.as<u32>() + first * words;
    const u32 tiles = divide_up(args.batch, torus::kProductRows);
    launch(
        stream,
        [&] {
          return plain_cost("product_switch", device::Work::key_multiply,
                            tiles * shape.key_bytes() + args.batch * in.shape.words() * sizeof(u32),
                            u64(args.batch) * words * sizeof(u32));
        },
        torus::product_switch, dim3(divide_up(words, torus::kProductWords), tiles),
        torus::kProductWords, 0, args);
  }
}

}  // namespace crenel::backend::cuda
