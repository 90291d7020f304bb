// Construction and prepared tables.
#include "backends/cuda/modular.cuh"
#include "backends/cuda/poly/host/convert_columns.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/host/transform_launch.h"
#include "backends/cuda/poly/tuning/ntt.h"

namespace crenel::backend::cuda {
namespace {

std::vector<u32> values_of(const std::vector<math::ShoupConstant<u32>>& constants) {
  std::vector<u32> values;
  for (const auto& c : constants) values.push_back(c.value);
  return values;
}

}  // namespace

CudaPolyKernels::CudaPolyKernels(std::shared_ptr<CudaDevice> device,
                                 std::shared_ptr<const ring::Ring> ring)
    : PolyKernels(std::move(ring)), device_(std::move(device)) {
  const u32 log_n = this->ring().log_n();
  if (log_n < 3 || log_n > kMaxLogN)
    throw UnsupportedError(cat("CUDA kernels for log_n ", log_n, ", expected 3..", kMaxLogN),
                           {{"log_n", log_n}});
  tables_ = upload_ring(device_, this->ring());
  fused_key_switch_ = fast() && allow_shared_memory(log_n, device_->model());
  allow_convert_columns(log_n, device_->model());
}

CudaPolyKernels::~CudaPolyKernels() = default;

bool CudaPolyKernels::fast() const { return ring().log_n() >= kMinFastLogN; }

u32 CudaPolyKernels::mont(u32 value, u32 id) const {
  const math::Modulus<u32>& m = ring().modulus(id);
  return math::mul_mod<u32>(value, m.r, m);
}

std::shared_ptr<const device::DeviceTable> CudaPolyKernels::upload(
    const std::vector<ConversionInput>& inputs, const std::vector<u32>& x_scale) const {
  return std::make_shared<const ConversionTables>(
      upload_conversions(device_, ring(), inputs, x_scale));
}

std::shared_ptr<const device::DeviceTable> CudaPolyKernels::do_prepare(
    const rns::BaseConversion& table) {
  return upload({{&table, 0, &table.destination, nullptr}});
}

std::shared_ptr<const device::DeviceTable> CudaPolyKernels::do_prepare(const rns::ModUp& table) {
  if (!fast()) return nullptr;
  std::vector<ConversionInput> inputs;
  for (const auto& digit : table.digits)
    inputs.push_back({&digit.conversion, digit.first, &table.output, nullptr});
  return upload(inputs);
}

// The result of the conversion is multiplied by -1/B, so that the transform only adds x A/B to it.
std::shared_ptr<const device::DeviceTable> CudaPolyKernels::do_prepare(const rns::Divide& table) {
  if (!fast() || table.dropped.empty()) return nullptr;
  std::vector<u32> factors = values_of(table.result_scale);
  std::vector<u32> x_scale = values_of(table.input_scale);
  for (u32 l = 0; l < table.output.size(); ++l) {
    const u32 id = table.output[l];
    factors[l] = math::neg_mod<u32>(factors[l], ring().modulus(id).q);
    x_scale[l] = mont(x_scale[l], id);
  }
  return upload({{&table.conversion, 0, &table.output, &factors}}, x_scale);
}

}  // namespace crenel::backend::cuda
