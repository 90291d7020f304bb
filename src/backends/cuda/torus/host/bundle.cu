// Blind rotation by groups: launches, and what they move.
#include "backends/cuda/launch.cuh"
#include "backends/cuda/torus/host/arguments.h"
#include "backends/cuda/torus/host/bundle_forms.h"
#include "backends/cuda/torus/host/kernels.h"
#include "backends/cuda/torus/kernels/cut_exponents.cuh"
#include "backends/cuda/torus/tuning/bundles.h"

namespace crenel::backend::cuda {
namespace {

using device::LaunchRecord;
using torus::BundleArgs;
using torus::BundleForm;

/// Rows of one call of the kernels: bounds the exponents in memory.
constexpr u32 kRowsAtOnce = 1 << 16;

/// Points of a bundle, and of the keys of a step.
u64 bundle_points(const device::TorusPlan& plan) {
  return u64(plan.polys()) * plan.polys() * plan.ring_dim() / 2;
}
u64 step_points(const device::TorusPlan& plan) {
  return bundle_points(plan) * plan.keys_per_step();
}

/// Transforms and products of args.count steps, the last of which extracts.
void add_rotations(LaunchRecord& record, const device::TorusPlan& plan, const BundleArgs& args) {
  const u64 rows = args.rotate.batch, points = plan.ring_dim() / 2;
  if (args.count == 0) return;
  record.butterflies = rows * args.count * 2 * plan.polys() * (points / 2) * args.rotate.log_points;
  record.multiply_adds += record.butterflies;
  if (!plan.differences) record.multiply_adds += rows * args.count * bundle_points(plan);
  const u64 state = rows * plan.polys() * plan.ring_dim() * sizeof(i32);
  if (args.first != 0) record.read_bytes += state;
  if (args.first + args.count == args.steps)
    record.written_bytes += rows * args.rotate.outputs * plan.words() * sizeof(u32);
  else
    record.written_bytes += state;
}

/// Bundles of `steps` steps, or products by differences, whose keys are read once for `rows_each`
/// rows.
void add_bundles(LaunchRecord& record, const device::TorusPlan& plan, u64 rows, u64 steps,
                 u32 rows_each) {
  const u64 key = steps * divide_up(rows, rows_each) * step_points(plan) * sizeof(double2);
  record.read_bytes += key;
  record.streamed_bytes += key;
  record.multiply_adds += rows * steps * step_points(plan);
}

LaunchRecord rotation_record(const BundleForm& form, const device::TorusPlan& plan,
                             const BundleArgs& args) {
  const u64 rows = args.rotate.batch;
  LaunchRecord record = plain_record(form.differences    ? "difference_rotate"
                                     : form.cluster == 1 ? "bundle_rotate"
                                                         : "cluster_rotate",
                                     device::Work::key_multiply, 0, 0);
  record.polys = static_cast<u32>(plan.polys() * rows);
  const u64 bundle = bundle_points(plan) * sizeof(double2);
  if (form.ahead) {
    record.read_bytes += rows * args.count * bundle;
    record.written_bytes += rows * args.next * bundle;
    add_bundles(record, plan, rows, args.next, rows == 1 ? 1 : form.made_rows);
  } else {
    add_bundles(record, plan, rows, args.count, form.rows);
  }
  // Exponents are read where bundles are made, the body's where a row is rotated.
  const u64 exponents =
      (u64(form.ahead ? args.next : args.count) << plan.group) + (args.count != 0 ? plan.slots : 0);
  record.read_bytes += rows * exponents * sizeof(u16);
  add_rotations(record, plan, args);
  return record;
}

}  // namespace

void CudaTorusKernels::prepare_bundles() {
  const std::size_t shared = device_->model().shared_bytes;
  forms_ = torus::bundle_forms(plan(), device_->model());
  if (forms_.empty())
    throw UnsupportedError(
        cat("no blind rotation by groups for ", plan().polys(),
            " accumulator polynomials of degree ", plan().ring_dim(), " modulo ", plan().modulus,
            ", expected accumulators and their points within ", shared,
            " bytes of shared memory, and moduli up to 2^30"),
        {{"polys", plan().polys()}, {"ring_dim", plan().ring_dim()}, {"modulus", plan().modulus}});
  for (const BundleForm* form : forms_) tables_.prepare(form->rmax);
  if (device_->dry()) return;
  const DeviceGuard guard(device_->index());
  allow_products();
  // All that there is: a kernel of any degree serves other contexts, which need more than this one.
  for (const BundleForm* form : forms_) {
    cudaFuncAttributes attributes = {};
    CRENEL_CUDA_TRY(cudaFuncGetAttributes(&attributes, form->kernel));
    CRENEL_CUDA_TRY(cudaFuncSetAttribute(form->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(shared - attributes.sharedSizeBytes)));
  }
}

std::vector<device::RotationShape> CudaTorusKernels::bundle_shapes() const {
  std::vector<device::RotationShape> shapes;
  for (const BundleForm* form : forms_) {
    cudaFuncAttributes attributes = {};
    if (!device_->dry()) {
      const DeviceGuard guard(device_->index());
      CRENEL_CUDA_TRY(cudaFuncGetAttributes(&attributes, form->kernel));
    }
    device::RotationShape shape;
    shape.name = form->name;
    shape.rows = form->rows;
    shape.items_per_thread = 2u << form->rmax;
    shape.warps_per_poly = plan().ring_dim() / 32.0 / shape.items_per_thread;
    shape.threads = form->threads;
    shape.registers = static_cast<u32>(attributes.numRegs);
    shape.local_bytes = attributes.localSizeBytes;
    shape.shared_bytes = form->shared_bytes(plan());
    shapes.push_back(shape);
  }
  return shapes;
}

void CudaTorusKernels::rotate_bundles(Stream& stream, const LweView& out, const ConstLweView& in,
                                      const void* key, const LutView& luts) {
  const u32 batch = static_cast<u32>(in.shape.rows);
  BundleArgs args = {};
  args.steps = plan().steps();
  args.log_keys = plan().group;
  args.first_set = plan().first_set();
  args.rotate.slots = plan().slots;
  args.log_rest_modulus = plan().log_lwe_modulus;
  const device::Buffer exponents =
      stream.allocate(u64(std::min(batch, kRowsAtOnce)) * args.row_exponents() * sizeof(u16));
  args.exponents = exponents.as<u16>();
  for (u32 first = 0, rows = 0; first < batch; first += rows) {
    const u32 rest = std::min(batch - first, kRowsAtOnce);
    torus::FormChoice choice = {forced_form_, rest};
    if (choice.form == nullptr)
      choice = torus::choose_form(forms_, plan(), rest, device_->model().processors);
    const BundleForm& form = *choice.form;
    rows = choice.rows;
    args.rotate = rotation_arguments(form.rmax, in, key, luts);
    args.rotate.in = in.as<const u32>() + u64(first) * plan().read_words();
    args.rotate.index = luts.index == nullptr ? nullptr : luts.index + u64(first) * plan().slots;
    args.rotate.batch = rows;
    args.out = out.as<u32>() + u64(first) * luts.outputs * plan().words();
    const auto cut_cost = [&] {
      return plain_record("cut_exponents", device::Work::elementwise,
                          u64(rows) * plan().read_words() * sizeof(u32),
                          u64(rows) * args.row_exponents() * sizeof(u16));
    };
    launch(stream, cut_cost, torus::cut_exponents, dim3(rows), torus::kCutThreads, 0, args);
    form.ahead ? rotate_ahead(stream, form, args) : rotate_at_once(stream, form, args);
  }
}

void CudaTorusKernels::rotate_at_once(Stream& stream, const BundleForm& form,
                                      BundleArgs& args) const {
  args.first = 0;
  args.count = args.steps;
  args.rotators = divide_up(args.rotate.batch, form.rows) * form.cluster;
  launch(
      stream, [&] { return rotation_record(form, plan(), args); }, form.kernel, dim3(args.rotators),
      form.threads, form.shared_bytes(plan()), args);
}

void CudaTorusKernels::rotate_ahead(Stream& stream, const BundleForm& form,
                                    BundleArgs& args) const {
  const u64 rows = args.rotate.batch, bundle = bundle_points(plan()) * sizeof(double2);
  const u32 part = static_cast<u32>(std::clamp<u64>(torus::kAheadBytes / (rows * bundle), 1,
                                                    std::min(torus::kAheadSteps, args.steps)));
  const device::Buffer state =
      stream.allocate(rows * plan().polys() * plan().ring_dim() * sizeof(i32));
  const device::Buffer made[2] = {stream.allocate(part * rows * bundle),
                                  stream.allocate(part * rows * bundle)};
  args.state = state.as<i32>();
  // Blocks that fill the GPU twice, beside those that rotate.
  const u32 blocks = 2 * device_->model().processors;
  const u32 groups = divide_up(rows, rows == 1 ? 1 : form.made_rows);
  args.first = args.count = 0;
  for (u32 launched = 0; args.first + args.count < args.steps; ++launched) {
    args.first += args.count;
    args.count = args.next;
    args.next = std::min(part, args.steps - args.first - args.count);
    args.ready = made[(launched + 1) % 2].as<double2>();
    args.coming = made[launched % 2].as<double2>();
    args.rotators = args.count == 0 ? 0 : static_cast<u32>(rows) * form.cluster;
    const u64 items = u64(args.next) * groups * form.made_tiles;
    const u64 free = std::max(blocks, args.rotators + blocks / 2) - args.rotators;
    const u32 makers = divide_up(std::min(items, free), form.cluster) * form.cluster;
    launch(
        stream, [&] { return rotation_record(form, plan(), args); }, form.kernel,
        dim3(args.rotators + makers), form.threads, form.shared_bytes(plan()), args);
  }
}

}  // namespace crenel::backend::cuda
