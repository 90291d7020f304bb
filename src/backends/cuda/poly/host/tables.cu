#include <algorithm>
#include <array>

#include "backends/cuda/poly/device/transform.cuh"
#include "backends/cuda/poly/host/conversion_rows.h"
#include "backends/cuda/poly/host/last_roots.h"
#include "backends/cuda/poly/host/tables.h"
#include "backends/cuda/poly/kernels/base_convert.cuh"
#include "backends/cuda/poly/tuning/convert_columns.h"

namespace crenel::backend::cuda {
namespace {

Pair shoup(u32 x, const math::Modulus<u32>& m) {
  const auto c = math::make_shoup<u32>(x, m.q);
  return {c.value, c.quotient};
}

template <class T>
const T* at(const DeviceBytes& memory, std::size_t offset) {
  return reinterpret_cast<const T*>(memory.data() + offset);
}

PrimeConstants constants_of(const ring::PrimeTables& p) {
  const math::Modulus<u32>& m = p.modulus;
  PrimeConstants c = {};
  c.q = m.q;
  c.q_inv = m.q_inv;
  c.r = m.r;
  c.r2 = m.r2;
  c.n_inv = shoup(p.n_inv.value, m);
  c.n_inv_root = shoup(math::mul_mod<u32>(p.n_inv.value, p.inverse_roots[1].value, m), m);
  return c;
}

// Twiddles of one direction (RingTables::Twiddles).
struct Roots {
  std::vector<uint2> pairs;
  std::vector<uint4> last;
  std::vector<u32> words;

  void append(const std::vector<math::ShoupConstant<u32>>& roots, const math::Modulus<u32>& m) {
    for (std::size_t i = 0; i < roots.size() / 16; ++i)
      pairs.push_back(make_uint2(roots[i].value, roots[i].quotient));
    if (roots.size() >> kMinFastLogN != 0)
      append_last_roots(roots, m, last);
    else
      for (const auto& root : roots) words.push_back(times_r(root.value, m));
  }
};

void append_inverse(const ConversionInput& input, const ring::Ring& ring,
                    std::vector<InverseScale>& scales) {
  const auto& conversion = *input.conversion;
  for (u32 j = 0; j < conversion.source.size(); ++j) {
    const ring::PrimeTables& p = ring.prime(conversion.source[j]);
    const math::Modulus<u32>& m = p.modulus;
    InverseScale s = {};
    const u32 c = math::mul_mod<u32>(conversion.source_scale[j].value, p.n_inv.value, m);
    s.c = shoup(c, m);
    s.c_root = shoup(math::mul_mod<u32>(c, p.inverse_roots[1].value, m), m);
    scales.push_back(s);
  }
}

}  // namespace

RingTables upload_ring(const std::shared_ptr<CudaDevice>& device, const ring::Ring& ring) {
  std::vector<PrimeConstants> primes;
  std::vector<math::Modulus<u32>> moduli;
  Roots forward, inverse;
  for (u32 id = 0; id < ring.prime_count(); ++id) {
    const ring::PrimeTables& p = ring.prime(id);
    primes.push_back(constants_of(p));
    moduli.push_back(p.modulus);
    forward.append(p.roots, p.modulus);
    inverse.append(p.inverse_roots, p.modulus);
  }
  TableBuilder builder;
  const std::size_t primes_at = builder.add(primes), moduli_at = builder.add(moduli);
  const auto add = [&](const Roots& roots) {
    return std::array{builder.add(roots.pairs), builder.add(roots.last), builder.add(roots.words)};
  };
  const auto forward_at = add(forward), inverse_at = add(inverse);
  RingTables t;
  t.memory = std::make_unique<DeviceBytes>(device, builder.bytes().data(), builder.bytes().size());
  t.primes = at<PrimeConstants>(*t.memory, primes_at);
  t.moduli = at<math::Modulus<u32>>(*t.memory, moduli_at);
  const auto twiddles = [&](const std::array<std::size_t, 3>& offset) {
    return RingTables::Twiddles{at<uint2>(*t.memory, offset[0]), at<uint4>(*t.memory, offset[1]),
                                at<u32>(*t.memory, offset[2])};
  };
  t.forward = twiddles(forward_at), t.inverse = twiddles(inverse_at);
  return t;
}

ConversionTables upload_conversions(const std::shared_ptr<CudaDevice>& device,
                                    const ring::Ring& ring,
                                    const std::vector<ConversionInput>& inputs,
                                    const std::vector<u32>& x_scale) {
  ConversionTables t;
  std::vector<ConversionTable> tables;
  Rows rows;
  std::vector<u32> source_scales, reciprocals;
  std::vector<InverseScale> inverse;
  for (const ConversionInput& input : inputs)
    t.max_sources = std::max(t.max_sources, columns_of(*input.conversion));
  bool folded = t.max_sources <= kMaxFusedSources && ring.log_n() >= kMinFastLogN;
  for (const ConversionInput& input : inputs) {
    const auto& conversion = *input.conversion;
    ConversionTable table = {};
    table.matrix = static_cast<u32>(rows.matrices.size());
    table.target = static_cast<u32>(rows.targets.size());
    table.scale = static_cast<u32>(source_scales.size());
    table.first = input.first;
    table.sources = conversion.source.size();
    table.padded = padded_sources(t.max_sources);  // a launch has one instance for all of them
    table.shift = conversion.shift;
    table.rounding = rounding_of(conversion);
    table.reciprocal = static_cast<u32>(reciprocals.size());
    for (u32 j = 0; j < table.padded && conversion.rounded(); ++j)
      reciprocals.push_back(j < table.sources ? conversion.reciprocal[j] : 0);
    table.destinations = conversion.destination.size();
    append_rows(input, ring, table.padded, folded, rows);
    for (u32 j = 0; j < table.sources; ++j) {
      table.source_prime.at[j] = static_cast<u8>(conversion.source[j]);
      source_scales.push_back(
          times_r(conversion.source_scale[j].value, ring.modulus(conversion.source[j])));
    }
    table.output_limbs = input.output->size();
    for (u32 l = 0, before = 0; l < table.output_limbs && l < rns::kMaxLimbs; ++l) {
      table.before.at[l] = static_cast<u8>(before);
      before += before < table.destinations && rows.targets[table.target + before].position == l;
    }
    append_inverse(input, ring, inverse);
    tables.push_back(table);
    t.max_destinations = std::max(t.max_destinations, table.destinations);
  }
  t.count = static_cast<u32>(tables.size());
  TableBuilder builder;
  const std::size_t tables_at = builder.add(tables), matrices_at = builder.add(rows.matrices);
  const std::size_t targets_at = builder.add(rows.targets);
  const std::size_t column_targets_at = builder.add(rows.column_targets);
  if (!folded) rows.folded.clear();
  const std::size_t folded_at = builder.add(rows.folded);
  const std::size_t scales_at = builder.add(source_scales), inverse_at = builder.add(inverse);
  const std::size_t x_at = builder.add(x_scale), reciprocals_at = builder.add(reciprocals);
  t.memory = std::make_unique<DeviceBytes>(device, builder.bytes().data(), builder.bytes().size());
  t.tables = at<ConversionTable>(*t.memory, tables_at);
  t.matrices = at<uint4>(*t.memory, matrices_at);
  t.targets = at<ConversionTarget>(*t.memory, targets_at);
  t.column_targets = at<ColumnTarget>(*t.memory, column_targets_at);
  if (folded) t.folded = at<uint4>(*t.memory, folded_at);
  t.source_scales = at<u32>(*t.memory, scales_at);
  t.reciprocals = at<u32>(*t.memory, reciprocals_at);
  t.inverse = at<InverseScale>(*t.memory, inverse_at);
  t.x_scale = at<u32>(*t.memory, x_at);
  t.host = std::move(tables);
  return t;
}

}  // namespace crenel::backend::cuda
