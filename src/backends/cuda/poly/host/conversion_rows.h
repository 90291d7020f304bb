// Matrices and destinations of base conversions, as kernels take them.
#pragma once

#include <algorithm>
#include <vector>

#include "backends/cuda/poly/device/folded.cuh"
#include "backends/cuda/poly/host/folded_constants.h"
#include "backends/cuda/poly/host/last_roots.h"
#include "ring/ring.h"
#include "rns/tables.h"

namespace crenel::backend::cuda {

/// One conversion as the host knows it.
struct ConversionInput {
  const rns::BaseConversion* conversion;
  u32 first;                        ///< position of its first source limb in the input
  const rns::LimbSet* output;       ///< limbs of the output component
  const std::vector<u32>* factors;  ///< per destination, multiplies the result; null: 1
};

/// Entry m of a matrix modulo p as the matrix units take it (kernels/base_convert.cuh): byte b of
/// word c is byte c of m 2^8b mod p.
inline uint4 bytes_of(u32 m, const math::Modulus<u32>& p) {
  u32 words[4] = {};
  for (u32 b = 0; b < 4; ++b) {
    const u32 shifted = math::mul_mod<u32>(m, (u32(1) << 8 * b) % p.q, p);
    for (u32 c = 0; c < 4; ++c) words[c] |= (shifted >> 8 * c & 0xff) << 8 * b;
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

/// Sources, and the rounded quotient as one more.
inline u32 columns_of(const rns::BaseConversion& conversion) {
  return conversion.source.size() + (conversion.rounded() ? 1 : 0);
}

/// One destination of a conversion: entries of all sources, with a rounded quotient as one more
/// (what it says is taken off by minus the product of the sources' primes), and the offset.
struct Row {
  std::vector<u32> entries;  ///< padded
  u32 offset;
};

inline Row row_of(const ConversionInput& input, const math::Modulus<u32>& m, u32 i, u32 padded) {
  const auto& conversion = *input.conversion;
  const u32 sources = conversion.source.size();
  Row row = {std::vector<u32>(padded), conversion.offset[i]};
  std::copy_n(&conversion.matrix[i * sources], sources, row.entries.begin());
  if (conversion.rounded()) {
    row.entries[sources] = math::neg_mod<u32>(conversion.product[i], m.q);
    const u32 bias = math::mul_mod<u32>(kQuotientBias % m.q, conversion.product[i], m);
    row.offset = math::add_mod<u32>(row.offset, bias, m.q);
  }
  if (input.factors == nullptr) return row;
  const u32 factor = (*input.factors)[i];
  for (u32& entry : row.entries) entry = math::mul_mod<u32>(entry, factor, m);
  row.offset = math::mul_mod<u32>(row.offset, factor, m);
  return row;
}

/// What the tables of one launch are put together from.
struct Rows {
  std::vector<uint4> matrices, folded;
  std::vector<ConversionTarget> targets;
  std::vector<ColumnTarget> column_targets;
};

/// The folded matrices of a row (device/folded.cuh), false where its prime has no constants.
inline bool append_folded(const Row& row, const ring::PrimeTables& p, ColumnTarget& target,
                          Rows& to) {
  const auto constants = folded_constants(p.modulus.q);
  if (!constants) return false;
  target.scale = constants->scale, target.shift = constants->shift;
  const u32 padded = static_cast<u32>(row.entries.size()), pairs = (padded + 4) / 8;
  for (u32 k = 0; k < kQuarters; ++k) {
    const auto times = [&](u32 x) {
      return k == 0 ? x : math::mul_mod<u32>(x, p.roots[folded_root(k)].value, p.modulus);
    };
    target.start[k] = times(row.offset) + constants->excess;
    std::vector<uint4> bytes(8 * pairs);
    for (u32 j = 0; j < padded; ++j) bytes[j] = bytes_of(times(row.entries[j]), p.modulus);
    for (u32 half = 0; half < 2; ++half)
      for (u32 pair = 0; pair < pairs; ++pair)
        for (u32 quad = 0; quad < 4; ++quad) {
          const uint4 a = bytes[8 * pair + quad], b = bytes[8 * pair + 4 + quad];
          to.folded.push_back(half == 0 ? make_uint4(a.x, a.y, b.x, b.y)
                                        : make_uint4(a.z, a.w, b.z, b.w));
        }
  }
  return true;
}

/// The rows of one conversion, and its destinations. Results of the matrices that are not folded
/// come divided by R. `folded` tells whether there are folded ones, and becomes false where a row
/// has none.
inline void append_rows(const ConversionInput& input, const ring::Ring& ring, u32 padded,
                        bool& folded, Rows& to) {
  const auto& conversion = *input.conversion;
  for (u32 i = 0; i < conversion.destination.size(); ++i) {
    const u32 id = conversion.destination[i];
    const ring::PrimeTables& p = ring.prime(id);
    const math::Modulus<u32>& m = p.modulus;
    const Row row = row_of(input, m, i, padded);
    for (const u32 entry : row.entries) to.matrices.push_back(bytes_of(times_r(entry, m), m));
    const u32 position = static_cast<u32>(input.output->find(id)), offset = times_r(row.offset, m);
    to.targets.push_back({m.q, m.q_inv, offset, position});
    ColumnTarget target = {};
    target.q = m.q, target.q_inv = m.q_inv, target.offset = offset;
    target.position = static_cast<u16>(position), target.prime = static_cast<u16>(id);
    if (folded) folded = append_folded(row, p, target, to);
    to.column_targets.push_back(target);
  }
}

/// What the sum of z_j reciprocal_j begins with, so that shifted it is the rounded quotient:
/// z_j is y_j plus half.
inline i64 rounding_of(const rns::BaseConversion& conversion) {
  if (!conversion.rounded()) return 0;
  i64 rounding = i64(1) << (conversion.shift - 1);
  for (u32 j = 0; j < conversion.source.size(); ++j)
    rounding -= static_cast<i64>(u64(conversion.half[j]) * conversion.reciprocal[j]);
  return rounding;
}

}  // namespace crenel::backend::cuda
