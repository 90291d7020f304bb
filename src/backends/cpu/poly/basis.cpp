// Base conversion and division by dropped primes.
#include <algorithm>

#include "backends/cpu/parallel.h"
#include "backends/cpu/poly/kernels.h"

namespace crenel::backend::cpu {

namespace {

// Coefficients of one conversion task: enough to amortise its start, few enough to balance threads.
constexpr u64 kConvertPiece = 3072;

}  // namespace

// `factors`, when given, multiply the outputs: one a destination.
std::shared_ptr<const ConvertTable> CpuPolyKernels::convert_table(
    const rns::BaseConversion& c, const std::vector<u32>* factors) const {
  auto table = std::make_shared<ConvertTable>();
  const u32 n = c.source_size();
  for (u32 j = 0; j < n; ++j) {
    const auto& t = ring().prime(c.source[j]);
    const u32 scale = math::mul_mod<u32>(c.source_scale[j].value, t.n_inv.value, t.modulus);
    const u32 root = math::mul_mod<u32>(scale, t.inverse_roots[1].value, t.modulus);
    table->intt_scale.push_back(shoup(scale, c.source[j]));
    table->intt_scale_root.push_back(shoup(root, c.source[j]));
  }
  const u64 most = c.largest_quotient();
  if (c.rounded()) {
    table->reciprocal.assign(c.reciprocal.begin(), c.reciprocal.end());
    u64 start = (2 * most + 1) << (c.shift - 1);  // `most`, and half of one to round
    for (u32 j = 0; j < n; ++j) start -= u64(c.half[j]) * c.reciprocal[j];
    table->reciprocal_start = start;
    table->reciprocal_unit = u32(1) << (64 - c.shift);
  }
  std::vector<u128> sums;
  for (u32 i = 0; i < c.destination.size(); ++i) {
    const auto& m = ring().modulus(c.destination[i]);
    const u32 factor = factors ? math::mul_mod<u32>((*factors)[i], m.r, m) : m.r;
    u64 offset = math::mul_mod<u32>(c.offset[i], factor, m);
    u32 multiple = 0;  // the quotient comes as u + most >= 0
    if (c.rounded()) {
      multiple = math::mul_mod<u32>(c.product[i], factor, m);
      offset = (offset + most * multiple) % m.q;
      multiple = math::neg_mod<u32>(multiple, m.q);
    }
    u128 sum = offset + 2 * most * multiple;
    for (u32 j = 0; j < n; ++j) {
      table->matrix.push_back(math::mul_mod<u32>(c.matrix[u64(i) * n + j], factor, m));
      sum += static_cast<u128>(table->matrix.back()) * (prime(c.source[j]).q - 1);
    }
    if (c.rounded()) table->matrix.push_back(multiple);
    sums.push_back(sum);
    table->lazy = table->lazy && sum >> 64 == 0;
    table->targets.push_back({m.q, m.q_inv, offset, nullptr, {}});
  }
  for (u32 i = 0; i < c.destination.size(); ++i) {
    ConvertTarget& t = table->targets[i];
    t.matrix = table->matrix.data() + u64(i) * table->rows();
    // folded sums stay below 2 p * 2^32
    const u128 bound = table->lazy ? sums[i] + 1 : static_cast<u128>(t.p) << 33;
    for (u32 k = 0; static_cast<u128>(t.p) << (32 + k) < bound; ++k) {
      t.fold[k] = t.p << k;
      table->folds = std::max(table->folds, k + 1);
    }
  }
  return table;
}

std::shared_ptr<const device::DeviceTable> CpuPolyKernels::do_prepare(
    const rns::BaseConversion& table) {
  return convert_table(table, nullptr);
}

std::shared_ptr<const device::DeviceTable> CpuPolyKernels::do_prepare(const rns::Divide& table) {
  // the conversion gives -r / B at once
  std::vector<u32> factors;
  for (u32 i = 0; i < table.output.size(); ++i)
    factors.push_back(math::neg_mod<u32>(table.result_scale[i].value, prime(table.output[i]).q));
  return convert_table(table.conversion, &factors);
}

u64 CpuPolyKernels::convert_pieces() const {
  return (ring().ring_dim() + kConvertPiece - 1) / kConvertPiece;
}

void CpuPolyKernels::convert_piece(const ConvertTable& table, u32* z, u32* const* out,
                                   u64 piece) const {
  const u64 n = ring().ring_dim(), begin = piece * kConvertPiece;
  ConvertArgs args = {};
  args.z = z, args.z_stride = z_stride();
  args.sources = static_cast<u32>(table.intt_scale.size());
  if (!table.reciprocal.empty()) {
    args.reciprocal = table.reciprocal.data();
    args.reciprocal_start = table.reciprocal_start;
    args.reciprocal_unit = table.reciprocal_unit;
  }
  args.targets = static_cast<u32>(table.targets.size());
  args.target = table.targets.data();
  args.out = out;
  args.folds = table.folds, args.lazy = table.lazy;
  args.begin = begin, args.count = std::min(kConvertPiece, n - begin);
  isa_.basis->convert(args);
}

void CpuPolyKernels::do_base_convert(Stream& stream, View out, ConstView in,
                                     const Prepared<rns::BaseConversion>& table) {
  const ConvertTable& fast = table.on_device<ConvertTable>();
  const u32 sources = in.limbs.size();
  const u64 n = ring().ring_dim();
  const auto buffer = stream.allocate(fast.rows() * z_stride() * sizeof(u32));
  u32* const z = buffer.as<u32>();
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c) {
      parallel_for(sources, sources * n, [&](u64 j) {
        const u32 l = static_cast<u32>(j);
        isa_.arithmetic->scale_shift(z + j * z_stride(), in.limb(b, c, l), n,
                                     table->source_scale[j], table->half[j], prime(in.limbs[l]).q);
      });
      u32* rows[rns::kMaxLimbs];
      for (u32 l = 0; l < out.limbs.size(); ++l) rows[l] = out.limb(b, c, l);
      parallel_for(convert_pieces(), n * (sources + out.limbs.size()),
                   [&](u64 piece) { convert_piece(fast, z, rows, piece); });
    }
}

void CpuPolyKernels::do_divide(Stream& stream, View out, ConstView in,
                               const Prepared<rns::Divide>& table, const ConstView* addend) {
  const ConvertTable& fast = table.on_device<ConvertTable>();
  const u64 n = ring().ring_dim();
  const u32 components = out.shape.components, dropped = table->dropped.size(),
            rows_of_z = fast.rows();
  const u64 words = std::max<u64>(u64(rows_of_z) * components, 1) * z_stride();
  const auto buffer = stream.allocate(words * sizeof(u32));
  u32* const z = buffer.as<u32>();
  for (u32 b = 0; b < out.shape.batch; ++b) {
    parallel_for(
        u64(dropped) * components, 16 * u64(dropped) * components * n,
        [&](u64 i) {
          const u32 j = static_cast<u32>(i / components), c = static_cast<u32>(i % components);
          const u32 id = table->dropped[j], l = static_cast<u32>(table->input.find(id));
          inverse_row(z + (c * rows_of_z + j) * z_stride(), in.limb(b, c, l), id,
                      fast.intt_scale[j], fast.intt_scale_root[j], table->conversion.half[j]);
        },
        components);
    const u64 pieces = convert_pieces();
    parallel_for(components * pieces, out.words(), [&](u64 i) {
      const u32 c = static_cast<u32>(i / pieces);
      u32* rows[rns::kMaxLimbs];
      for (u32 l = 0; l < out.limbs.size(); ++l) rows[l] = out.limb(b, c, l);
      convert_piece(fast, z + c * rows_of_z * z_stride(), rows, i % pieces);
    });
    parallel_for(
        u64(out.limbs.size()) * components, 16 * out.words(),
        [&](u64 i) {
          const u32 l = static_cast<u32>(i / components), c = static_cast<u32>(i % components);
          const int from = table->input.find(out.limbs[l]);
          const bool add = addend != nullptr && c < addend->shape.components;
          forward_row(out.limb(b, c, l), out.limb(b, c, l), out.limbs[l],
                      from < 0 ? nullptr : in.limb(b, c, static_cast<u32>(from)),
                      table->input_scale[l], add ? addend->limb(b, c, l) : nullptr);
        },
        components);
  }
}

}  // namespace crenel::backend::cpu
