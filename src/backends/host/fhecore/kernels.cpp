#include "backends/host/fhecore/kernels.h"

#include <algorithm>
#include <bit>

#include "fhecore/model/fhe_sync.h"

namespace crenel::backend::host {
namespace {

using device::FhecorePass;
using device::FhecoreStrip;
using device::FhecoreTiles;
using device::kFhecoreCoefficientTiles;
using fhecore::Column;
using fhecore::FragmentConstants;
using fhecore::kCols;
using fhecore::kDepth;
using fhecore::kRows;

// What a warp sees of its unit: one set of column constants, and counted instructions on dense
// tiles a [16][16], b [16][8], c and d [16][8].
class Warp {
 public:
  explicit Warp(FhecoreCounts& counts) : counts_(counts) {}

  void setc(const FragmentConstants& constants) {
    columns_ = fhecore::decode(constants);
    ++counts_.setc;
  }
  /// `half` 0 or 1 of a tile product; c may be null or d. Returns the fault bits.
  u32 fhec(u32 half, u32* d, const u32* a, const u32* b, const u32* c) {
    const u32 faults = fhecore::fhec(d, a, b, c, columns_.data());
    counts_.fhe_sync += half == 0;
    ++counts_.fhec;
    counts_.faults += std::popcount(faults);
    return faults;
  }
  u32 multiply(u32 x, const math::ShoupConstant<u32>& c, u32 q) {
    ++counts_.multiplications;
    return math::mul_shoup<u32>(x, c, q);
  }

 private:
  FhecoreCounts& counts_;
  std::array<Column, kCols> columns_{};
};

void copy_tile(u32* to, const u32* from, u32 rows, u32 cols, u64 stride) {
  for (u32 r = 0; r < rows; ++r) std::copy_n(from + r * stride, cols, to + r * cols);
}

// One limb of a pass.
struct PassLimb {
  const FhecorePass& pass;
  const u32* matrices;                       // of the pass
  const math::ShoupConstant<u32>* twiddles;  // of the prime, null where the pass has none
  const FragmentConstants& constants;
  u32 q;
  bool inverse;
};

// 16 columns of a pass: all of them are read before any is written, so `out` may be `in`.
void run_strip(Warp& warp, const PassLimb& limb, u32 index, u32* out, const u32* in) {
  const FhecorePass& p = limb.pass;
  const FhecoreStrip strip(p, index);
  const u32 side = p.side(), depth = p.depth_tiles();
  const bool before = limb.twiddles != nullptr && !limb.inverse;
  const bool after = limb.twiddles != nullptr && limb.inverse;
  std::vector<u32> b(u64(side) * 16);  // [depth tile][half][16][8]
  for (u32 row = 0; row < side; ++row)
    for (u32 col = 0; col < 16; ++col) {
      const u64 at = strip.at(row, col);
      u32 x = in[at];
      if (before) x = warp.multiply(x, limb.twiddles[at], limb.q);
      b[(row / 16 * 2 + col / 8) * 128 + row % 16 * 8 + col % 8] = x;
    }
  const u32* matrix = limb.matrices + strip.matrix;
  u32 a[kRows * kDepth], d[2][kRows * kCols];
  for (u32 i = 0; i < depth; ++i) {
    for (u32 k = 0; k < depth; ++k) {
      copy_tile(a, matrix + (u64(i) * side + k) * 16, 16, 16, side);
      for (u32 half = 0; half < 2; ++half)
        warp.fhec(half, d[half], a, b.data() + (2 * k + half) * 128, k == 0 ? nullptr : d[half]);
    }
    for (u32 row = 0; row < 16; ++row)
      for (u32 col = 0; col < 16; ++col) {
        const u64 at = strip.at(16 * i + row, col);
        u32 x = d[col / 8][row * 8 + col % 8];
        if (after) x = warp.multiply(x, limb.twiddles[at], limb.q);
        out[at] = x;
      }
  }
}

}  // namespace

template <class Body>
void HostFhecoreKernels::for_each(u64 count, const Body& body) {
  std::vector<FhecoreCounts> counts(count);
  loop_(count, [&](u64 i) { body(i, counts[i]); });
  for (const auto& c : counts) counts_ += c;
}

void HostFhecoreKernels::do_fhe_sync(Stream&, const FhecoreTiles& t) {
  for_each(t.count, [&](u64 tile, FhecoreCounts& counts) {
    Warp warp(counts);
    u32 b[kDepth * kCols], c[kRows * kCols], d[2][kRows * kCols], faults = 0;
    for (u32 half = 0; half < 2; ++half) {
      FragmentConstants constants;
      std::copy_n(t.constants + ((t.sets == 1 ? 0 : tile) * 2 + half) * 32, 32, constants.at);
      warp.setc(constants);
      copy_tile(b, t.b + tile * 256 + half * 8, 16, 8, 16);
      if (t.c != nullptr) copy_tile(c, t.c + tile * 256 + half * 8, 16, 8, 16);
      faults |= warp.fhec(half, d[half], t.a + tile * 256, b, t.c != nullptr ? c : nullptr)
                << (8 * half);
    }
    for (u32 row = 0; row < 16; ++row)
      for (u32 col = 0; col < 16; ++col)
        t.d[tile * 256 + row * 16 + col] = d[col / 8][row * 8 + col % 8];
    if (t.faults != nullptr) t.faults[tile] = faults;
  });
}

void HostFhecoreKernels::do_transform(Stream&, View out, ConstView in,
                                      const Prepared<FhecoreTransform>& prepared, bool inverse) {
  const FhecoreTransform& table = *prepared;
  const auto& direction = inverse ? table.inverse : table.forward;
  const u64 n = out.ring_dim();
  const u32 limbs = out.limbs.size(), passes = static_cast<u32>(table.passes.size());
  for (u32 step = 0; step < passes; ++step) {
    const FhecorePass& pass = table.passes[inverse ? passes - 1 - step : step];
    const u64 units = u64(out.shape.polys()) * limbs * pass.warps();
    for_each(units, [&](u64 unit, FhecoreCounts& counts) {
      const u32 part = static_cast<u32>(unit % pass.warps());
      const u32 l = static_cast<u32>(unit / pass.warps() % limbs);
      const u32 poly = static_cast<u32>(unit / pass.warps() / limbs);
      const u32 b = poly / out.shape.components, c = poly % out.shape.components;
      const u32 id = out.limbs[l];
      const PassLimb limb{pass,
                          direction.matrices.data() + id * table.matrix_words + pass.matrix_at,
                          pass.twiddles ? direction.twiddles.data() + id * n : nullptr,
                          table.constants[id],
                          table.ring->modulus(id).q,
                          inverse};
      Warp warp(counts);
      warp.setc(limb.constants);
      const u32* from = step == 0 ? in.limb(b, c, l) : out.limb(b, c, l);
      const u32 first = part * pass.strips_per_warp();
      const u32 last = std::min(first + pass.strips_per_warp(), pass.strips());
      for (u32 s = first; s < last; ++s) run_strip(warp, limb, s, out.limb(b, c, l), from);
    });
  }
}

void HostFhecoreKernels::do_base_convert(Stream&, View out, ConstView in,
                                         const Prepared<FhecoreConversion>& prepared) {
  const FhecoreConversion& t = *prepared;
  const u64 n = in.ring_dim(), tiles = n / 16;
  const u32 sources = in.limbs.size(), destinations = out.limbs.size(), width = 8 * t.halves;
  const u64 groups = (tiles + kFhecoreCoefficientTiles - 1) / kFhecoreCoefficientTiles;
  std::vector<u32> z(sources * n);  // [source][coefficient]
  for (u32 poly = 0; poly < in.shape.polys(); ++poly) {
    const u32 batch = poly / in.shape.components, component = poly % in.shape.components;
    for_each(sources, [&](u64 j, FhecoreCounts& counts) {
      Warp warp(counts);
      const u32* x = in.limb(batch, component, static_cast<u32>(j));
      const u32 d = t.source_moduli[j], half = t.table.half[j];
      for (u64 k = 0; k < n; ++k)
        z[j * n + k] = math::add_mod<u32>(warp.multiply(x[k], t.table.source_scale[j], d), half, d);
    });
    for_each(groups * t.halves, [&](u64 unit, FhecoreCounts& counts) {
      const u32 half = static_cast<u32>(unit / groups);
      Warp warp(counts);
      warp.setc(t.constants[half]);
      u32 a[kRows * kDepth], b[kDepth * kCols], d[kRows * kCols];
      const u64 first = unit % groups * kFhecoreCoefficientTiles;
      for (u64 tile = first; tile < std::min<u64>(tiles, first + kFhecoreCoefficientTiles);
           ++tile) {
        for (u32 e = 0; e < kRows * kCols; ++e) d[e] = t.offset[half * 8 + e % 8];
        for (u32 k = 0; k < t.depth_tiles; ++k) {
          for (u32 e = 0; e < kRows * kDepth; ++e) {
            const u32 source = 16 * k + e % 16;
            a[e] = source < sources ? z[source * n + tile * 16 + e / 16] : 0;
          }
          copy_tile(b, t.matrix.data() + u64(k) * 16 * width + half * 8, 16, 8, width);
          warp.fhec(half % 2, d, a, b, d);
        }
        for (u32 col = 0; col < 8 && half * 8 + col < destinations; ++col)
          for (u32 row = 0; row < 16; ++row)
            out.limb(batch, component, half * 8 + col)[tile * 16 + row] = d[row * 8 + col];
      }
    });
  }
}

}  // namespace crenel::backend::host
