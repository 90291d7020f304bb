#include "backends/cuda/launch.cuh"
#include "backends/cuda/torus/host/kernels.h"
#include "backends/cuda/torus/kernels/load_key.cuh"
#include "backends/cuda/torus/tuning/rotation.h"

namespace crenel::backend::cuda {
namespace {

using device::Arithmetic;
using torus::RotateArgs;
using torus::RotateInstance;

/// Levels a pass when keys are loaded: speed does not matter there.
constexpr u32 kLoadLevels = 1;

bool uses_fft(const device::TorusPlan& plan) {
  return plan.arithmetic != Arithmetic::exact || device::transform_is_exact(plan);
}

u64 key_points(const device::TorusPlan& plan, bool by_fft) {
  return plan.key_polys() * plan.digit_pieces() << (by_fft ? plan.log_n - 1 : plan.log_n);
}
u64 element_bytes(const device::TorusPlan& plan, bool by_fft) {
  return by_fft ? sizeof(double2) : 4 * plan.primes.size();
}

device::LaunchRecord rotation_cost(const RotateInstance& instance, const RotateArgs& args,
                                   const device::TorusPlan& plan) {
  const u64 blocks = divide_up(args.batch, args.group), rows = args.batch;
  const u64 points = u64(1) << args.log_points;
  const u64 products = plan.key_polys() * plan.digit_pieces() * points;
  const u64 key = u64(plan.lwe_dim) * products * instance.element_bytes;
  // Every row of parts that shares a thread's key words reads the key once.
  const u64 readers = args.group / instance.bt;
  device::LaunchRecord record;
  record.kernel = "blind_rotate";
  record.work = device::Work::key_multiply;
  record.limbs = 1;
  record.polys = plan.polys() * args.batch;
  record.read_bytes = blocks * readers * key + rows * plan.words() * sizeof(u32);
  record.streamed_bytes = blocks * readers * key;
  record.written_bytes = rows * args.outputs * plan.extracted_words() * sizeof(u64);
  const u64 transforms = rows * plan.lwe_dim * plan.polys() * (plan.operands() + 1);
  record.butterflies = transforms * (points / 2) * args.log_points;
  record.multiply_adds = record.butterflies + rows * plan.lwe_dim * products;
  return record;
}

}  // namespace

// Production shapes first, those for any size and those of the study last: the first is preferred.
std::vector<CudaTorusKernels::Choice> CudaTorusKernels::choices_for(const device::TorusPlan& plan,
                                                                    bool by_fft,
                                                                    std::size_t shared) {
  std::vector<Choice> choices;
  if (plan.group != 0) return choices;
  const std::span<const RotateInstance> all[] = {
      torus::raising_instances(), torus::gadget_instances(),
      torus::exact_instances(),   torus::generic_instances(),
#if defined(CRENEL_TORUS_STUDY)
      torus::study_instances(),
#endif
  };
  for (const auto instances : all)
    for (const RotateInstance& instance : instances)
      if (instance.serves(plan, by_fft)) {
        const u32 group = instance.largest_group(plan, shared);
        if (group != 0)
          choices.push_back({&instance, group, false});
        else if (instance.lp == 0 && instance.shared_bytes(plan, 1, true) <= shared)
          choices.push_back({&instance, 1, true});
      }
  return choices;
}

CudaTorusKernels::CudaTorusKernels(std::shared_ptr<CudaDevice> device, device::TorusPlan plan)
    : TorusKernels(std::move(plan)),
      device_(std::move(device)),
      by_fft_(uses_fft(this->plan())),
      tables_(device_, this->plan(), by_fft_),
      choices_(choices_for(this->plan(), by_fft_, device_->model().shared_bytes)) {
  const auto& p = this->plan();
  tables_.prepare(kLoadLevels);
  if (p.group != 0) {
    prepare_bundles();
    return;
  }
  if (choices_.empty())
    throw UnsupportedError(
        cat(device_->info().name, ": no blind rotation for ", p.polys(),
            " accumulator polynomials of degree ", p.ring_dim(), " modulo ", p.modulus,
            ", expected words of the double-precision path below 2^30, and accumulators within ",
            device_->model().shared_bytes, " bytes of shared memory"),
        {{"polys", p.polys()}, {"ring_dim", p.ring_dim()}, {"modulus", p.modulus}});
  if (u64(p.polys()) * p.operands() > 128)
    throw UnsupportedError(
        cat(p.polys() * p.operands(), " rows of a bootstrapping key, expected at most 128"),
        {{"rows", p.polys() * p.operands()}});
  for (const Choice& c : choices_) tables_.prepare(c.instance->rmax);
  if (device_->dry()) return;
  const DeviceGuard guard(device_->index());
  allow_large_tiles();
  allow_products();
  for (const Choice& c : choices_)
    CRENEL_CUDA_TRY(cudaFuncSetAttribute(c.instance->kernel,
                                         cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(device_->model().shared_bytes)));
}

u64 CudaTorusKernels::bootstrap_key_bytes() const {
  return plan().steps() * key_points(plan(), by_fft_) * element_bytes(plan(), by_fft_);
}

void CudaTorusKernels::do_load_bootstrap_key(Stream& stream, void* key, u32 first, u32 count,
                                             const i64* polys) {
  if (plan().group != 0) return load_bundle_keys(stream, key, first, count, polys);
  torus::LoadArgs args = {tables_.arguments(kLoadLevels), polys, nullptr};
  const u64 element = key_points(plan(), by_fft_) * element_bytes(plan(), by_fft_);
  args.key = static_cast<u8*>(key) + first * element;
  const dim3 grid(plan().polys() * plan().polys(), plan().operands(), count);
  const std::size_t shared = element_bytes(plan(), by_fft_) << args.tables.log_points;
  const auto cost = [&] {
    device::LaunchRecord record;
    record.kernel = "load_bootstrap_key";
    record.work = device::Work::ntt;
    record.polys = static_cast<u32>(count * plan().key_polys());
    record.limbs = 1;
    record.read_bytes = count * plan().key_polys() * plan().ring_dim() * sizeof(i64);
    record.written_bytes = count * element;
    return record;
  };
  if (by_fft_)
    launch(stream, cost, torus::load_key_fft, grid, torus::kLoadThreads, shared, args);
  else if (plan().primes.size() == 1)
    launch(stream, cost, torus::load_key_ntt<1>, grid, torus::kLoadThreads, shared, args);
  else
    launch(stream, cost, torus::load_key_ntt<2>, grid, torus::kLoadThreads, shared, args);
}

// Keys of a step as if each were the only one of an element: [step][S][row][out][f].
void CudaTorusKernels::load_bundle_keys(Stream& stream, void* key, u32 first, u32 count,
                                        const i64* polys) {
  const u64 square = u64(plan().polys()) * plan().polys(), points = plan().ring_dim() / 2;
  const u64 step_points = plan().key_polys() * points;
  const u64 step_words = plan().key_polys() * plan().ring_dim();
  const u32 keys = plan().keys_per_step(), most = 65535 / keys;  // the grid's limit
  for (u32 done = 0; done < count; done += most) {
    const u32 now = std::min(most, count - done);
    const torus::LoadArgs args = {tables_.arguments(kLoadLevels), polys + done * step_words,
                                  static_cast<double2*>(key) + (first + done) * step_points};
    const auto cost = [&] {
      device::LaunchRecord record;
      record.kernel = "load_bootstrap_key";
      record.work = device::Work::ntt;
      record.polys = static_cast<u32>(now * plan().key_polys());
      record.limbs = 1;
      record.read_bytes = now * step_words * sizeof(i64);
      record.written_bytes = now * step_points * sizeof(double2);
      return record;
    };
    launch(stream, cost, torus::load_key_fft, dim3(static_cast<u32>(square), 1, now * keys),
           torus::kLoadThreads, points * sizeof(double2), args);
  }
}

CudaTorusKernels::Choice CudaTorusKernels::choose(u32 batch) const {
  if (forced_.instance != nullptr) return forced_;
  // Few rows: one a block, for latency. Otherwise the first shape, with no larger groups than it
  // takes to give every multiprocessor a block.
  const u32 processors = device_->model().processors;
  Choice best = choices_.front();
  if (best.spilled) return best;
  if (batch <= processors)
    for (const Choice& c : choices_)
      if (c.instance->bt == 1 && c.instance->lp != 0) best = c;
  const u32 bt = best.instance->bt;
  const u32 wanted = divide_up(divide_up(batch, processors), bt) * bt;
  best.group = std::min(best.group, std::max(bt, wanted));
  return best;
}

std::vector<device::RotationShape> CudaTorusKernels::shapes() const {
  std::vector<device::RotationShape> shapes;
  if (plan().group != 0) return bundle_shapes();
  for (const Choice& c : choices_) {
    const RotateInstance& instance = *c.instance;
    cudaFuncAttributes attributes = {};
    if (!device_->dry()) {
      const DeviceGuard guard(device_->index());
      CRENEL_CUDA_TRY(cudaFuncGetAttributes(&attributes, instance.kernel));
    }
    device::RotationShape shape;
    shape.name = instance.name;
    shape.rows = c.group;
    shape.items_per_thread = (instance.fft ? 2u : 1u) << instance.rmax;
    shape.warps_per_poly = plan().ring_dim() / 32.0 / shape.items_per_thread;
    shape.threads = instance.threads;
    shape.registers = static_cast<u32>(attributes.numRegs);
    shape.local_bytes = attributes.localSizeBytes;
    shape.shared_bytes = instance.shared_bytes(plan(), c.group, c.spilled);
    shapes.push_back(shape);
  }
  return shapes;
}

void CudaTorusKernels::use_shape(std::size_t index, u32 rows) {
  const std::size_t known = plan().group != 0 ? forms_.size() : choices_.size();
  if (index >= known || (plan().group != 0 && rows > bundle_shapes()[index].rows))
    throw UnsupportedError(
        cat("shape ", index, " with ", rows, " rows, expected a shape below ", known),
        {{"shape", index}, {"rows", rows}});
  if (plan().group != 0) {
    forced_form_ = forms_[index];
    return;
  }
  const Choice& c = choices_[index];
  if (rows > c.group || rows % c.instance->bt != 0)
    throw UnsupportedError(
        cat(rows, " rows a block, expected a multiple of ", c.instance->bt, " up to ", c.group),
        {{"rows", rows}});
  forced_ = {c.instance, rows == 0 ? c.group : rows, c.spilled};
}

RotateArgs CudaTorusKernels::rotation_arguments(u32 rmax, const ConstLweView& in, const void* key,
                                                const LutView& luts) const {
  RotateArgs args = tables_.arguments(rmax);
  args.in = in.as<const u32>();
  args.key = key;
  args.luts = luts.polys;
  args.offsets = luts.offsets;
  args.index = luts.index;
  args.batch = static_cast<u32>(in.shape.rows);
  args.outputs = luts.outputs;
  return args;
}

void CudaTorusKernels::do_blind_rotate(Stream& stream, const LweView& out, const ConstLweView& in,
                                       const void* key, const LutView& luts) {
  if (plan().group != 0) return rotate_bundles(stream, out, in, key, luts);
  const u32 batch = static_cast<u32>(in.shape.rows);
  const Choice choice = choose(batch);
  RotateArgs args = rotation_arguments(choice.instance->rmax, in, key, luts);
  args.out = out.as<u64>();
  args.group = choice.group;
  args.log_tile = choice.instance->log_tile(plan(), choice.group);
  if (!choice.spilled) return rotate(stream, choice, args);
  // As many rows at a time as there is room for their points.
  const u32 rows = std::min(batch, 2 * device_->model().processors);
  const device::Buffer points = stream.allocate(rows * choice.instance->work_bytes(plan(), 1));
  args.spill = points.as<u8>();
  for (u32 first = 0; first < batch; first += rows) {
    RotateArgs some = args;
    some.batch = std::min(rows, batch - first);
    some.in += u64(first) * plan().words();
    some.out += u64(first) * luts.outputs * plan().extracted_words();
    if (some.index != nullptr) some.index += u64(first) * plan().slots;
    rotate(stream, choice, some);
  }
}

void CudaTorusKernels::rotate(Stream& stream, const Choice& choice, RotateArgs args) {
  const RotateInstance& instance = *choice.instance;
  launch(
      stream, [&] { return rotation_cost(instance, args, plan()); }, instance.kernel,
      dim3(divide_up(args.batch, choice.group)), instance.threads,
      instance.shared_bytes(plan(), choice.group, choice.spilled), args);
}

std::unique_ptr<device::TorusKernels> CudaDevice::make_torus_kernels(device::TorusPlan plan) {
  return std::make_unique<CudaTorusKernels>(
      std::static_pointer_cast<CudaDevice>(shared_from_this()), std::move(plan));
}

}  // namespace crenel::backend::cuda
