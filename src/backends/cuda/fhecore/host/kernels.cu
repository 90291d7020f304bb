#include "backends/cuda/fhecore/host/kernels.h"
#include "backends/cuda/fhecore/kernels/fhecore.cuh"
#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_view.h"

namespace crenel::backend::cuda {
namespace {

using crenel::fhecore::FragmentConstants;
using device::FhecoreConversion;
using device::FhecoreCounts;
using device::FhecoreTransform;
using device::Work;
using Shoup = math::ShoupConstant<u32>;

static_assert(sizeof(FhecoreCounts) == 5 * sizeof(unsigned long long));

/// Shared memory that a block gets without asking.
constexpr std::size_t kPlainShared = 48 << 10;

struct TransformTables final : device::DeviceTable {
  struct Direction {
    const u32* matrices;
    const Shoup* twiddles;
  };
  std::unique_ptr<DeviceBytes> memory;
  Direction forward, inverse;
  const FragmentConstants* constants;
  const u32* moduli;
};

struct ConversionMemory final : device::DeviceTable {
  std::unique_ptr<DeviceBytes> memory;
  const u32 *matrix, *offset, *half, *moduli;
  const Shoup* scale;
  const FragmentConstants* constants;
};

template <class T>
const T* at(const DeviceBytes& memory, std::size_t offset) {
  return reinterpret_cast<const T*>(memory.data() + offset);
}

// Bytes are those of the operands, once each; products those of the instructions.
auto cost_of(const char* kernel, Work work, u32 limbs, u32 polys, u64 read, u64 written, u64 fhec) {
  return [=] {
    device::LaunchRecord record;
    record.kernel = kernel;
    record.work = work;
    record.limbs = limbs;
    record.polys = polys;
    record.read_bytes = read;
    record.written_bytes = written;
    record.multiply_adds = fhec * 2048;
    return record;
  };
}

}  // namespace

CudaFhecoreKernels::CudaFhecoreKernels(std::shared_ptr<CudaDevice> device)
    : device_(std::move(device)),
      counters_(device_, std::vector<u64>(5).data(), sizeof(FhecoreCounts)) {}

unsigned long long* CudaFhecoreKernels::counters() const {
  return reinterpret_cast<unsigned long long*>(const_cast<u8*>(counters_.data()));
}

FhecoreCounts CudaFhecoreKernels::counts(Stream& stream) {
  FhecoreCounts counts;
  stream.copy_out(&counts, counters(), sizeof counts);
  return counts;
}

void CudaFhecoreKernels::reset_counts(Stream& stream) {
  stream.fill_zero(counters(), sizeof(FhecoreCounts));
}

std::shared_ptr<const device::DeviceTable> CudaFhecoreKernels::do_prepare(
    const FhecoreTransform& table) {
  std::vector<u32> moduli;
  for (u32 id = 0; id < table.ring->prime_count(); ++id)
    moduli.push_back(table.ring->modulus(id).q);
  TableBuilder builder;
  std::size_t matrices[2], twiddles[2];
  const FhecoreTransform::Direction* directions[] = {&table.forward, &table.inverse};
  for (u32 i = 0; i < 2; ++i) {
    matrices[i] = builder.add(directions[i]->matrices);
    twiddles[i] = builder.add(directions[i]->twiddles);
  }
  const std::size_t constants = builder.add(table.constants), q = builder.add(moduli);
  auto t = std::make_shared<TransformTables>();
  t->memory =
      std::make_unique<DeviceBytes>(device_, builder.bytes().data(), builder.bytes().size());
  t->forward = {at<u32>(*t->memory, matrices[0]), at<Shoup>(*t->memory, twiddles[0])};
  t->inverse = {at<u32>(*t->memory, matrices[1]), at<Shoup>(*t->memory, twiddles[1])};
  t->constants = at<FragmentConstants>(*t->memory, constants);
  t->moduli = at<u32>(*t->memory, q);
  return t;
}

std::shared_ptr<const device::DeviceTable> CudaFhecoreKernels::do_prepare(
    const FhecoreConversion& table) {
  TableBuilder builder;
  const std::size_t matrix = builder.add(table.matrix), offset = builder.add(table.offset),
                    half = builder.add(table.table.half), moduli = builder.add(table.source_moduli),
                    scale = builder.add(table.table.source_scale),
                    constants = builder.add(table.constants);
  auto t = std::make_shared<ConversionMemory>();
  t->memory =
      std::make_unique<DeviceBytes>(device_, builder.bytes().data(), builder.bytes().size());
  const DeviceBytes& m = *t->memory;
  t->matrix = at<u32>(m, matrix);
  t->offset = at<u32>(m, offset);
  t->half = at<u32>(m, half);
  t->moduli = at<u32>(m, moduli);
  t->scale = at<Shoup>(m, scale);
  t->constants = at<FragmentConstants>(m, constants);
  return t;
}

void CudaFhecoreKernels::do_fhe_sync(Stream& stream, const device::FhecoreTiles& tiles) {
  const u64 bytes = u64(tiles.count) * 256 * sizeof(u32);
  launch(stream,
         cost_of("fhecore_tiles", Work::elementwise, 1, tiles.count,
                 (tiles.c != nullptr ? 3 : 2) * bytes, bytes, 2 * u64(tiles.count)),
         fhecore_tiles, dim3(divide_up(tiles.count, kFhecoreWarps)), 32 * kFhecoreWarps, 0,
         FhecoreTilesArgs{tiles, counters()});
}

void CudaFhecoreKernels::do_transform(Stream& stream, View out, ConstView in,
                                      const Prepared<FhecoreTransform>& table, bool inverse) {
  const auto& t = table.on_device<TransformTables>();
  const auto& direction = inverse ? t.inverse : t.forward;
  const u32 limbs = out.limbs.size(), polys = out.shape.polys();
  FhecorePassArgs args = {};
  args.in = poly(in);
  args.out = poly(out);
  args.matrices = direction.matrices;
  args.twiddles = direction.twiddles;
  args.constants = t.constants;
  args.moduli = t.moduli;
  args.matrix_words = table->matrix_words;
  args.components = out.shape.components;
  args.inverse = inverse;
  args.prime = prime_bytes(out.limbs);
  args.counters = counters();
  const std::size_t passes = table->passes.size();
  for (std::size_t step = 0; step < passes; ++step) {
    const device::FhecorePass& pass = args.pass = table->passes[inverse ? passes - 1 - step : step];
    const std::size_t warp_bytes = fhecore_strip_words(pass.depth_tiles()) * sizeof(u32);
    const u32 warps =
        static_cast<u32>(std::min<std::size_t>(kFhecoreWarps, kPlainShared / warp_bytes));
    const u64 data = u64(limbs) * polys * (sizeof(u32) << pass.log_n);
    const u64 fhec =
        u64(limbs) * polys * 2 * pass.strips() * pass.depth_tiles() * pass.depth_tiles();
    launch(stream,
           cost_of("fhecore_pass", Work::ntt, limbs, polys,
                   data + limbs * (pass.matrix_words() * sizeof(u32) +
                                   (pass.twiddles ? sizeof(Shoup) << pass.log_n : 0)),
                   data, fhec),
           fhecore_pass, dim3(divide_up(pass.warps(), warps), limbs, polys), 32 * warps,
           warps * warp_bytes, args);
    args.in = poly(ConstView(out));
  }
}

void CudaFhecoreKernels::do_base_convert(Stream& stream, View out, ConstView in,
                                         const Prepared<FhecoreConversion>& table) {
  const auto& t = table.on_device<ConversionMemory>();
  const u32 log_n = in.shape.log_n, polys = in.shape.polys(), sources = in.limbs.size();
  const u64 limb_bytes = sizeof(u32) << log_n;
  const device::Buffer z = stream.allocate(u64(polys) * sources * limb_bytes);
  FhecoreScaleArgs scale = {};
  scale.in = poly(in);
  scale.z = z.as<u32>();
  scale.scale = t.scale;
  scale.half = t.half;
  scale.moduli = t.moduli;
  scale.log_n = log_n;
  scale.sources = sources;
  scale.components = in.shape.components;
  scale.counters = counters();
  const u64 source_bytes = u64(polys) * sources * limb_bytes;
  launch(stream,
         cost_of("fhecore_scale", Work::elementwise, sources, polys, source_bytes, source_bytes, 0),
         fhecore_scale, dim3(divide_up(in.ring_dim(), kFhecoreScaleThreads), sources, polys),
         kFhecoreScaleThreads, 0, scale);
  FhecoreConvertArgs args = {};
  args.z = z.as<u32>();
  args.out = poly(out);
  args.matrix = t.matrix;
  args.offset = t.offset;
  args.constants = t.constants;
  args.log_n = log_n;
  args.sources = sources;
  args.destinations = out.limbs.size();
  args.components = out.shape.components;
  args.depth_tiles = table->depth_tiles;
  args.halves = table->halves;
  args.counters = counters();
  const u32 groups = divide_up(in.ring_dim() / 16, device::kFhecoreCoefficientTiles);
  const auto work = device::fhecore_conversion_work(log_n, sources, args.destinations);
  launch(stream,
         cost_of("fhecore_convert", Work::base_conversion, args.destinations, polys,
                 table->halves * source_bytes, u64(polys) * args.destinations * limb_bytes,
                 polys * work.counts.fhec),
         fhecore_convert, dim3(divide_up(groups, kFhecoreWarps), table->halves, polys),
         32 * kFhecoreWarps, 0, args);
}

std::unique_ptr<device::FhecoreKernels> CudaDevice::make_fhecore_kernels() {
  return std::make_unique<CudaFhecoreKernels>(
      std::static_pointer_cast<CudaDevice>(shared_from_this()));
}

}  // namespace crenel::backend::cuda
