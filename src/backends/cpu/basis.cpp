// Base conversion, ModUp and division by dropped primes.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/parallel.h"
#include "device/checks.h"
#include "device/compose/workspace.h"

namespace crenel::backend::cpu {

namespace checks = device::checks;

namespace {

// Coefficients of one conversion task: enough to amortise its start, few enough to balance threads.
constexpr u64 kConvertPiece = 3072;

const ConvertTable& convert_table_of(const std::shared_ptr<void>& device) {
  if (device == nullptr) throw StateError("table was not prepared by this device");
  return *static_cast<const ConvertTable*>(device.get());
}

}  // namespace

// `factors`, when given, multiply the outputs: one a destination.
std::shared_ptr<ConvertTable> CpuKernels::convert_table(const rns::BaseConversion<u32>& c,
                                                        const std::vector<u32>* factors) const {
  auto table = std::make_shared<ConvertTable>();
  const u32 n = c.source_size();
  for (u32 j = 0; j < n; ++j) {
    const auto& t = ring().prime(c.source[j]);
    const u32 scale = math::mul_mod<u32>(c.source_scale[j].value, t.n_inv.value, t.modulus);
    const u32 root = math::mul_mod<u32>(scale, t.inverse_roots[1].value, t.modulus);
    table->intt_scale.push_back(shoup(scale, c.source[j]));
    table->intt_scale_root.push_back(shoup(root, c.source[j]));
  }
  std::vector<u128> sums;
  for (u32 i = 0; i < c.destination.size(); ++i) {
    const auto& m = ring().modulus(c.destination[i]);
    const u32 factor = factors ? math::mul_mod<u32>((*factors)[i], m.r, m) : m.r;
    const u64 offset = math::mul_mod<u32>(c.offset[i], factor, m);
    u128 sum = offset;
    for (u32 j = 0; j < n; ++j) {
      table->matrix.push_back(math::mul_mod<u32>(c.matrix[u64(i) * n + j], factor, m));
      sum += static_cast<u128>(table->matrix.back()) * (prime(c.source[j]).q - 1);
    }
    sums.push_back(sum);
    table->lazy = table->lazy && sum >> 64 == 0;
    table->targets.push_back({m.q, m.q_inv, offset, nullptr, {}});
  }
  for (u32 i = 0; i < c.destination.size(); ++i) {
    ConvertTarget& t = table->targets[i];
    t.matrix = table->matrix.data() + u64(i) * n;
    // folded sums stay below 2 p * 2^32
    const u128 bound = table->lazy ? sums[i] + 1 : static_cast<u128>(t.p) << 33;
    for (u32 k = 0; static_cast<u128>(t.p) << (32 + k) < bound; ++k) {
      t.fold[k] = t.p << k;
      table->folds = std::max(table->folds, k + 1);
    }
  }
  return table;
}

Prepared<rns::BaseConversion<u32>> CpuKernels::prepare(rns::BaseConversion<u32> table) {
  auto prepared = Base::prepare(std::move(table));
  prepared.device = convert_table(*prepared, nullptr);
  return prepared;
}

Prepared<rns::ModUp<u32>> CpuKernels::prepare(rns::ModUp<u32> table) {
  return Base::prepare(std::move(table));
}

Prepared<rns::Divide<u32>> CpuKernels::prepare(rns::Divide<u32> table) {
  auto prepared = Base::prepare(std::move(table));
  // the conversion gives -r / B at once
  std::vector<u32> factors;
  for (u32 i = 0; i < prepared->output.size(); ++i)
    factors.push_back(math::neg_mod<u32>(prepared->result_scale[i].value,
                                         prime(prepared->output[i]).q));
  prepared.device = convert_table(prepared->conversion, &factors);
  return prepared;
}

void CpuKernels::convert(const ConvertTable& table, const u32* z, u32* const* out) const {
  const u64 n = ring().ring_dim(), pieces = (n + kConvertPiece - 1) / kConvertPiece;
  const auto sources = static_cast<u32>(table.intt_scale.size());
  const auto targets = static_cast<u32>(table.targets.size());
  parallel_for(pieces, n * (sources + targets), [&](u64 i) {
    const u64 begin = i * kConvertPiece;
    isa_.basis->convert({z, z_stride(), sources, targets, table.targets.data(), out, table.folds, table.lazy, begin,
                         std::min(kConvertPiece, n - begin)});
  });
}

void CpuKernels::base_convert(Stream& stream, View out, ConstView in,
                              const Prepared<rns::BaseConversion<u32>>& table) {
  checks::base_convert<u32>(ring(), out, in, *table);
  const ConvertTable& fast = convert_table_of(table.device);
  const u32 sources = in.limbs.size();
  const u64 n = ring().ring_dim();
  const auto buffer = stream.allocate(sources * z_stride() * sizeof(u32));
  u32* const z = buffer.as<u32>();
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 c = 0; c < out.shape.components; ++c) {
      parallel_for(sources, sources * n, [&](u64 j) {
        const u32 l = static_cast<u32>(j);
        isa_.arithmetic->scale_shift(z + j * z_stride(), in.limb(b, c, l), n, table->source_scale[j],
                                     table->half[j], prime(in.limbs[l]).q);
      });
      u32* rows[rns::kMaxLimbs];
      for (u32 l = 0; l < out.limbs.size(); ++l) rows[l] = out.limb(b, c, l);
      convert(fast, z, rows);
    }
}

void CpuKernels::mod_up(Stream& stream, View out, ConstView in,
                        const Prepared<rns::ModUp<u32>>& table) {
  checks::mod_up<u32>(ring(), out, in, *table);
  const u64 n = ring().ring_dim();
  u32 widest = 0;
  for (const auto& digit : table->digits) widest = std::max(widest, digit.count);
  const auto buffer = stream.allocate(widest * z_stride() * sizeof(u32));
  u32* const z = buffer.as<u32>();
  for (u32 b = 0; b < out.shape.batch; ++b)
    for (u32 d = 0; d < table->digits.size(); ++d) {
      const auto& digit = table->digits[d];
      const auto& conversion = device::compose::conversion_of<u32>(table, d);
      const ConvertTable& fast = convert_table_of(conversion.device);
      parallel_for(digit.count, 16 * digit.count * n, [&](u64 j) {
        const u32 l = digit.first + static_cast<u32>(j);
        inverse_row(z + j * z_stride(), in.limb(b, 0, l), in.limbs[l], fast.intt_scale[j],
                    fast.intt_scale_root[j], conversion->half[j]);
        std::memcpy(out.limb(b, d, l), in.limb(b, 0, l), n * sizeof(u32));
      });
      // the output is the window followed by others: the digit's own limbs are in between
      u32* rows[rns::kMaxLimbs];
      const LimbSet& targets = conversion->destination;
      for (u32 i = 0; i < targets.size(); ++i)
        rows[i] = out.limb(b, d, i < digit.first ? i : i + digit.count);
      convert(fast, z, rows);
      parallel_for(targets.size(), 16 * targets.size() * n,
                   [&](u64 i) { forward_row(rows[i], rows[i], targets[static_cast<u32>(i)]); });
    }
}

void CpuKernels::divide(Stream& stream, View out, ConstView in,
                        const Prepared<rns::Divide<u32>>& table, const ConstView* addend) {
  checks::divide<u32>(ring(), out, in, *table, addend);
  const ConvertTable& fast = convert_table_of(table.device);
  const u64 n = ring().ring_dim();
  const u32 components = out.shape.components, dropped = table->dropped.size();
  const auto buffer = stream.allocate(std::max<u64>(dropped, 1) * z_stride() * sizeof(u32));
  u32* const z = buffer.as<u32>();
  for (u32 b = 0; b < out.shape.batch; ++b) {
    for (u32 c = 0; c < components; ++c) {
      parallel_for(dropped, 16 * dropped * n, [&](u64 j) {
        const u32 id = table->dropped[static_cast<u32>(j)];
        const u32 l = static_cast<u32>(table->input.find(id));
        inverse_row(z + j * z_stride(), in.limb(b, c, l), id, fast.intt_scale[j],
                    fast.intt_scale_root[j], table->conversion.half[j]);
      });
      u32* rows[rns::kMaxLimbs];
      for (u32 l = 0; l < out.limbs.size(); ++l) rows[l] = out.limb(b, c, l);
      convert(fast, z, rows);
    }
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
