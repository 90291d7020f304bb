// Construction and prepared tables.
#include "backends/cuda/modular.cuh"
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

CudaKernels::CudaKernels(std::shared_ptr<CudaDevice> device,
                         std::shared_ptr<const ring::Ring<u32>> ring)
    : Base(std::move(ring)), device_(std::move(device)) {
  const u32 log_n = this->ring().log_n();
  if (log_n < 3 || log_n > kMaxLogN)
    throw UnsupportedError(cat("CUDA kernels for log_n ", log_n, ", expected 3..", kMaxLogN),
                           {{"log_n", cat(log_n)}});
  tables_ = upload_ring(device_, this->ring());
  fused_key_switch_ = fast() && allow_shared_memory(log_n, device_->model());
}

CudaKernels::~CudaKernels() = default;

bool CudaKernels::fast() const { return ring().log_n() >= kMinFastLogN; }

u32 CudaKernels::mont(u32 value, u32 id) const {
  const math::Modulus<u32>& m = ring().modulus(id);
  return math::mul_mod<u32>(value, m.r, m);
}

Prepared<rns::BaseConversion<u32>> CudaKernels::prepare(rns::BaseConversion<u32> table) {
  auto prepared = Base::prepare(std::move(table));
  prepared.device = std::make_shared<ConversionTables>(upload_conversions(
      device_, ring(), {{&*prepared.table, 0, &prepared.table->destination, nullptr}}, {}));
  return prepared;
}

Prepared<rns::ModUp<u32>> CudaKernels::prepare(rns::ModUp<u32> table) {
  auto prepared = Base::prepare(std::move(table));
  if (!fast()) return prepared;
  std::vector<ConversionInput> inputs;
  for (const auto& digit : prepared->digits)
    inputs.push_back({&digit.conversion, digit.first, &prepared->output, nullptr});
  prepared.device =
      std::make_shared<ConversionTables>(upload_conversions(device_, ring(), inputs, {}));
  return prepared;
}

// The result of the conversion is multiplied by -1/B, so that the transform only adds x A/B to it.
Prepared<rns::Divide<u32>> CudaKernels::prepare(rns::Divide<u32> table) {
  auto prepared = Base::prepare(std::move(table));
  if (!fast() || prepared->dropped.empty()) return prepared;
  std::vector<u32> factors = values_of(prepared->result_scale);
  std::vector<u32> x_scale = values_of(prepared->input_scale);
  for (u32 l = 0; l < prepared->output.size(); ++l) {
    const u32 id = prepared->output[l];
    factors[l] = math::neg_mod<u32>(factors[l], ring().modulus(id).q);
    x_scale[l] = mont(x_scale[l], id);
  }
  prepared.device = std::make_shared<ConversionTables>(upload_conversions(
      device_, ring(), {{&prepared->conversion, 0, &prepared->output, &factors}}, x_scale));
  return prepared;
}

}  // namespace crenel::backend::cuda
