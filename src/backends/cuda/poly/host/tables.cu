#include <algorithm>

#include "backends/cuda/poly/device/transform.cuh"
#include "backends/cuda/poly/host/tables.h"
#include "backends/cuda/poly/kernels/base_convert.cuh"

namespace crenel::backend::cuda {
namespace {

// x R mod q
u32 mont(u32 x, const math::Modulus<u32>& m) { return math::mul_mod<u32>(x, m.r, m); }

Pair shoup(u32 x, const math::Modulus<u32>& m) {
  const auto c = math::make_shoup<u32>(x, m.q);
  return {c.value, c.quotient};
}

i32 centred(u32 x, u32 q) { return static_cast<i32>(x > q / 2 ? x - q : x); }

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
  c.r_centred = centred(m.r, m.q);
  c.n_inv = shoup(p.n_inv.value, m);
  c.n_inv_root = shoup(math::mul_mod<u32>(p.n_inv.value, p.inverse_roots[1].value, m), m);
  return c;
}

// The rows of one conversion; returns whether sums must be reduced on the way.
bool append_matrix(const ConversionInput& input, const ring::Ring& ring, u32 padded,
                   std::vector<i32>& matrices) {
  const auto& conversion = *input.conversion;
  const u32 sources = conversion.source.size();
  bool fold_often = false;
  for (u32 i = 0; i < conversion.destination.size(); ++i) {
    const math::Modulus<u32>& m = ring.modulus(conversion.destination[i]);
    u128 bound = u128(conversion.largest_quotient()) << 30;
    for (u32 j = 0; j < padded; ++j) {
      u32 value = j < sources ? mont(conversion.matrix[i * sources + j], m) : 0;
      if (input.factors) value = math::mul_mod<u32>(value, (*input.factors)[i], m);
      const i32 entry = centred(value, m.q);
      matrices.push_back(entry);
      if (j < sources) bound += u128(conversion.half[j]) * static_cast<u32>(std::abs(entry));
    }
    fold_often |= bound >> 63 != 0;
  }
  return fold_often;
}

// What rounds the quotient, after the rows.
void append_quotient(const ConversionInput& input, const ring::Ring& ring, u32 padded,
                     std::vector<i32>& matrices) {
  const auto& conversion = *input.conversion;
  for (u32 j = 0; j < padded; ++j)
    matrices.push_back(j < conversion.reciprocal.size() ? static_cast<i32>(conversion.reciprocal[j])
                                                        : 0);
  for (u32 i = 0; i < conversion.product.size(); ++i) {
    const math::Modulus<u32>& m = ring.modulus(conversion.destination[i]);
    u32 value = mont(math::neg_mod<u32>(conversion.product[i], m.q), m);
    if (input.factors) value = math::mul_mod<u32>(value, (*input.factors)[i], m);
    matrices.push_back(centred(value, m.q));
  }
}

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
  std::vector<u32> words, inverse_words;
  std::vector<uint2> pairs, inverse_pairs;
  const std::size_t early = ring.ring_dim() / 16;
  const auto append = [&](const auto& roots, const math::Modulus<u32>& m,
                          std::vector<u32>& to_words, std::vector<uint2>& to_pairs) {
    for (const auto& root : roots) to_words.push_back(mont(root.value, m));
    for (std::size_t i = 0; i < early; ++i)
      to_pairs.push_back(make_uint2(roots[i].value, roots[i].quotient));
  };
  for (u32 id = 0; id < ring.prime_count(); ++id) {
    const ring::PrimeTables& p = ring.prime(id);
    primes.push_back(constants_of(p));
    moduli.push_back(p.modulus);
    append(p.roots, p.modulus, words, pairs);
    append(p.inverse_roots, p.modulus, inverse_words, inverse_pairs);
  }
  TableBuilder builder;
  const std::size_t primes_at = builder.add(primes), moduli_at = builder.add(moduli);
  const std::size_t words_at = builder.add(words), inverse_words_at = builder.add(inverse_words);
  const std::size_t pairs_at = builder.add(pairs), inverse_pairs_at = builder.add(inverse_pairs);
  RingTables t;
  t.memory = std::make_unique<DeviceBytes>(device, builder.bytes().data(), builder.bytes().size());
  t.primes = at<PrimeConstants>(*t.memory, primes_at);
  t.moduli = at<math::Modulus<u32>>(*t.memory, moduli_at);
  t.forward = {at<uint2>(*t.memory, pairs_at), at<u32>(*t.memory, words_at)};
  t.inverse = {at<uint2>(*t.memory, inverse_pairs_at), at<u32>(*t.memory, inverse_words_at)};
  return t;
}

ConversionTables upload_conversions(const std::shared_ptr<CudaDevice>& device,
                                    const ring::Ring& ring,
                                    const std::vector<ConversionInput>& inputs,
                                    const std::vector<u32>& x_scale) {
  ConversionTables t;
  std::vector<ConversionTable> tables;
  std::vector<i32> matrices;
  std::vector<u32> source_scales;
  std::vector<InverseScale> inverse;
  for (const ConversionInput& input : inputs) {
    const auto& conversion = *input.conversion;
    ConversionTable table = {};
    table.matrix = static_cast<u32>(matrices.size());
    table.scale = static_cast<u32>(source_scales.size());
    table.first = input.first;
    table.sources = conversion.source.size();
    table.padded = padded_sources(table.sources);
    table.destinations = conversion.destination.size();
    t.fold_often |= append_matrix(input, ring, table.padded, matrices);
    table.shift = conversion.shift;
    table.quotient = static_cast<u32>(matrices.size());
    t.rounded |= conversion.rounded();
    if (conversion.rounded()) append_quotient(input, ring, table.padded, matrices);
    for (u32 j = 0; j < table.sources; ++j) {
      table.source_prime.at[j] = static_cast<u8>(conversion.source[j]);
      source_scales.push_back(
          mont(conversion.source_scale[j].value, ring.modulus(conversion.source[j])));
    }
    for (u32 i = 0; i < table.destinations; ++i) {
      table.prime.at[i] = static_cast<u8>(conversion.destination[i]);
      table.position.at[i] = static_cast<u8>(input.output->find(conversion.destination[i]));
    }
    table.output_limbs = input.output->size();
    for (u32 l = 0, before = 0; l < table.output_limbs && l < rns::kMaxLimbs; ++l) {
      table.before.at[l] = static_cast<u8>(before);
      before += before < table.destinations && table.position.at[before] == l;
    }
    append_inverse(input, ring, inverse);
    tables.push_back(table);
    t.max_sources = std::max(t.max_sources, table.sources);
    t.max_destinations = std::max(t.max_destinations, table.destinations);
  }
  t.count = static_cast<u32>(tables.size());
  TableBuilder builder;
  const std::size_t tables_at = builder.add(tables), matrices_at = builder.add(matrices);
  const std::size_t scales_at = builder.add(source_scales), inverse_at = builder.add(inverse);
  const std::size_t x_at = builder.add(x_scale);
  t.memory = std::make_unique<DeviceBytes>(device, builder.bytes().data(), builder.bytes().size());
  t.tables = at<ConversionTable>(*t.memory, tables_at);
  t.matrices = at<i32>(*t.memory, matrices_at);
  t.source_scales = at<u32>(*t.memory, scales_at);
  t.inverse = at<InverseScale>(*t.memory, inverse_at);
  t.x_scale = at<u32>(*t.memory, x_at);
  t.host = std::move(tables);
  return t;
}

}  // namespace crenel::backend::cuda
