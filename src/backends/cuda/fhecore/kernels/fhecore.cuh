// Tile products, passes of transforms and base conversions as code for FHECore units: load
// fragments, FHEC, store. One warp a run of tiles that share their column constants.
#pragma once

#include "backends/cuda/fhecore/device/fhecore.cuh"
#include "backends/cuda/poly/device/views.cuh"
#include "device/fhecore/kernels.h"

namespace crenel::backend::cuda {

inline constexpr u32 kFhecoreWarps = 4;           ///< of a block
inline constexpr u32 kFhecoreScaleThreads = 256;  ///< of the element-wise kernel
/// Words of shared memory of a warp: the columns of a strip as fragments of B.
CRENEL_HD constexpr u32 fhecore_strip_words(u32 depth_tiles) { return depth_tiles * 256; }

struct FhecoreTilesArgs {
  device::FhecoreTiles tiles;
  unsigned long long* counters;
};

struct FhecorePassArgs {
  Poly<const u32> in;
  Poly<u32> out;
  const u32* matrices;                                  ///< [prime][matrix_words]
  const math::ShoupConstant<u32>* twiddles;             ///< [prime][N]
  const crenel::fhecore::FragmentConstants* constants;  ///< [prime]
  const u32* moduli;                                    ///< [prime]
  u64 matrix_words;
  device::FhecorePass pass;
  u32 components;
  bool inverse;
  LimbBytes prime;
  unsigned long long* counters;
};

struct FhecoreScaleArgs {
  Poly<const u32> in;
  u32* z;                                 ///< [poly][source][N]
  const math::ShoupConstant<u32>* scale;  ///< [source]
  const u32* half;
  const u32* moduli;
  u32 log_n, sources, components;
  unsigned long long* counters;
};

struct FhecoreConvertArgs {
  const u32* z;
  Poly<u32> out;
  const u32* matrix;                                    ///< [16 depth_tiles][8 halves]
  const u32* offset;                                    ///< [8 halves]
  const crenel::fhecore::FragmentConstants* constants;  ///< [half]
  u32 log_n, sources, destinations, components, depth_tiles, halves;
  unsigned long long* counters;
};

/// register i of the fragment = read(row, column of the element that it holds)
template <class Map, class Read>
__device__ __forceinline__ void load_fragment(Registers<Map>& f, const Read& read) {
#pragma unroll
  for (u32 i = 0; i < Map::registers; ++i) {
    const auto e = Registers<Map>::element(i);
    f.at[i] = read(e.row, e.col);
  }
}
template <class Map, class Write>
__device__ __forceinline__ void store_fragment(const Registers<Map>& f, const Write& write) {
#pragma unroll
  for (u32 i = 0; i < Map::registers; ++i) {
    const auto e = Registers<Map>::element(i);
    write(e.row, e.col, f.at[i]);
  }
}

__global__ void __launch_bounds__(32 * kFhecoreWarps)
    fhecore_tiles(const __grid_constant__ FhecoreTilesArgs args) {
  begin_kernel();
  const auto& t = args.tiles;
  const u32 tile = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (tile >= t.count) return;
  const u64 at = static_cast<u64>(tile) * 256;
  WarpUnit unit;
  Registers<MapA> a;
  load_fragment(a, [&](u32 row, u32 k) { return t.a[at + row * 16 + k]; });
  u32 faults = 0;
#pragma unroll 1
  for (u32 half = 0; half < 2; ++half) {
    unit.setc(t.constants[((t.sets == 1 ? 0 : static_cast<u64>(tile)) * 2 + half) * 32 + lane]);
    const auto word = [&](u32 row, u32 col) { return at + row * 16 + half * 8 + col; };
    Registers<MapB> b;
    Registers<MapC> c;
    load_fragment(b, [&](u32 k, u32 col) { return t.b[word(k, col)]; });
    if (t.c != nullptr) load_fragment(c, [&](u32 row, u32 col) { return t.c[word(row, col)]; });
    faults |= unit.fhec(half, c, a, b, c, t.c != nullptr) << (8 * half);
    store_fragment(c, [&](u32 row, u32 col, u32 x) { t.d[word(row, col)] = x; });
  }
  if (t.faults != nullptr && lane == 0) t.faults[tile] = faults;
  unit.finish(args.counters);
}

__global__ void __launch_bounds__(32 * kFhecoreWarps)
    fhecore_pass(const __grid_constant__ FhecorePassArgs args) {
  extern __shared__ u32 shared[];
  begin_kernel();
  const device::FhecorePass& pass = args.pass;
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const u32 part = blockIdx.x * (blockDim.x / 32) + warp;
  if (part >= pass.warps()) return;
  const u32 depth = pass.depth_tiles(), side = pass.side(), id = args.prime.at[blockIdx.y];
  const u32 batch = blockIdx.z / args.components, component = blockIdx.z % args.components;
  const u32* in = args.in.limb(batch, component, blockIdx.y, pass.log_n);
  u32* out = args.out.limb(batch, component, blockIdx.y, pass.log_n);
  const auto* twiddles = args.twiddles + (static_cast<u64>(id) << pass.log_n);
  const u32 q = args.moduli[id];
  u32* columns = shared + warp * fhecore_strip_words(depth) + lane;
  WarpUnit unit;
  unit.setc(args.constants[id].at[lane]);
  const u32 first = part * pass.strips_per_warp();
  const u32 last = min(first + pass.strips_per_warp(), pass.strips());
  for (u32 index = first; index < last; ++index) {
    const device::FhecoreStrip strip(pass, index);
    // The strip in fragment order: every lane writes and reads its own registers only.
    for (u32 k = 0; k < 2 * depth; ++k) {
      Registers<MapB> b;
      load_fragment(b, [&](u32 row, u32 col) {
        const u64 at = strip.at(16 * (k / 2) + row, 8 * (k % 2) + col);
        return pass.twiddles && !args.inverse ? unit.multiply(in[at], twiddles[at], q) : in[at];
      });
#pragma unroll
      for (u32 i = 0; i < MapB::registers; ++i) columns[(4 * k + i) * 32] = b.at[i];
    }
    __syncwarp();  // all of the strip is read before any of it is written, should out be in
    const u32* matrix = args.matrices + id * args.matrix_words + pass.matrix_at + strip.matrix;
    for (u32 i = 0; i < depth; ++i) {
      Registers<MapC> d[2];
      for (u32 k = 0; k < depth; ++k) {
        Registers<MapA> a;
        load_fragment(a, [&](u32 row, u32 col) {
          return matrix[static_cast<u64>(16 * i + row) * side + 16 * k + col];
        });
#pragma unroll
        for (u32 half = 0; half < 2; ++half) {
          Registers<MapB> b;
#pragma unroll
          for (u32 r = 0; r < MapB::registers; ++r)
            b.at[r] = columns[(4 * (2 * k + half) + r) * 32];
          unit.fhec(half, d[half], a, b, d[half], k != 0);
        }
      }
#pragma unroll
      for (u32 half = 0; half < 2; ++half)
        store_fragment(d[half], [&](u32 row, u32 col, u32 x) {
          const u64 at = strip.at(16 * i + row, 8 * half + col);
          out[at] = pass.twiddles && args.inverse ? unit.multiply(x, twiddles[at], q) : x;
        });
    }
  }
  unit.finish(args.counters);
}

/// z_j = (x_j scale_j + half_j) mod d_j
__global__ void __launch_bounds__(kFhecoreScaleThreads)
    fhecore_scale(const __grid_constant__ FhecoreScaleArgs args) {
  begin_kernel();
  const u64 n = u64(1) << args.log_n;
  const u64 k = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
  const u32 j = blockIdx.y, poly = blockIdx.z;
  WarpUnit unit;
  if (k < n) {
    const u32* x = args.in.limb(poly / args.components, poly % args.components, j, args.log_n);
    const u32 d = args.moduli[j];
    args.z[((static_cast<u64>(poly) * args.sources + j) << args.log_n) + k] =
        math::add_mod<u32>(unit.multiply(x[k], args.scale[j], d), args.half[j], d);
  }
  __syncwarp();
  unit.finish(args.counters);
}

__global__ void __launch_bounds__(32 * kFhecoreWarps)
    fhecore_convert(const __grid_constant__ FhecoreConvertArgs args) {
  begin_kernel();
  const u32 tiles = 1u << (args.log_n - 4), lane = threadIdx.x % 32, half = blockIdx.y;
  const u32 group = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const u32 first = group * device::kFhecoreCoefficientTiles;
  if (first >= tiles) return;
  const u32 last = min(first + device::kFhecoreCoefficientTiles, tiles);
  const u32 width = 8 * args.halves;
  const u32* z = args.z + ((static_cast<u64>(blockIdx.z) * args.sources) << args.log_n);
  u32* out =
      args.out.limb(blockIdx.z / args.components, blockIdx.z % args.components, 0, args.log_n);
  WarpUnit unit;
  unit.setc(args.constants[half].at[lane]);
  for (u32 tile = first; tile < last; ++tile) {
    Registers<MapC> d;
    load_fragment(d, [&](u32, u32 col) { return args.offset[half * 8 + col]; });
    for (u32 k = 0; k < args.depth_tiles; ++k) {
      Registers<MapA> a;
      Registers<MapB> b;
      load_fragment(a, [&](u32 row, u32 col) {
        const u32 source = 16 * k + col;
        if (source >= args.sources) return 0u;
        return z[(static_cast<u64>(source) << args.log_n) + tile * 16 + row];
      });
      load_fragment(b, [&](u32 row, u32 col) {
        return args.matrix[(16 * k + row) * width + half * 8 + col];
      });
      unit.fhec(half % 2, d, a, b, d, true);
    }
    store_fragment(d, [&](u32 row, u32 col, u32 x) {
      const u32 limb = half * 8 + col;
      if (limb < args.destinations)
        out[(static_cast<u64>(limb) << args.log_n) + tile * 16 + row] = x;
    });
  }
  unit.finish(args.counters);
}

}  // namespace crenel::backend::cuda
