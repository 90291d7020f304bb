// Key switch by products: which kernel serves a shape, and launches.
#include "backends/cuda/launch.cuh"
#include "backends/cuda/torus/host/arguments.h"
#include "backends/cuda/torus/host/kernels.h"
#include "backends/cuda/torus/tuning/product_switch.h"

namespace crenel::backend::cuda {
namespace {

using torus::ProductSwitchArgs;

/// A compiled kernel and its tile.
struct SwitchTile {
  const char* name;
  void (*kernel)(ProductSwitchArgs);
  u32 rows, words, threads, shared_bytes = 0;
};

template <class Shape>
constexpr SwitchTile unit_tile() {
  return {"product_switch_units",
          torus::product_switch_units<Shape>,
          Shape::Rows,
          Shape::Words,
          Shape::Threads,
          Shape::kBytes};
}

SwitchTile tile_for(const SwitchShape& shape, u64 rows) {
  if (shape.base_log > torus::kUnitBaseLog)
    return {"product_switch", torus::product_switch, torus::kProductRows, torus::kProductWords,
            torus::kProductWords};
  const bool small = rows <= torus::kUnitSmallRows;
  if (shape.log_modulus <= 24)
    return small ? unit_tile<torus::UnitSmall<3>>() : unit_tile<torus::UnitLarge<3>>();
  return small ? unit_tile<torus::UnitSmall<4>>() : unit_tile<torus::UnitLarge<4>>();
}

template <class Shape>
void allow_all() {
  CRENEL_CUDA_TRY(cudaFuncSetAttribute(torus::product_switch_units<Shape>,
                                       cudaFuncAttributeMaxDynamicSharedMemorySize,
                                       static_cast<int>(Shape::kBytes)));
}

}  // namespace

void CudaTorusKernels::allow_products() const {
  allow_all<torus::UnitLarge<3>>();
  allow_all<torus::UnitLarge<4>>();
}

void CudaTorusKernels::switch_by_products(Stream& stream, const SwitchShape& shape,
                                          const LweView& out, const ConstLweView& in,
                                          const ConstLweView& key) {
  ProductSwitchArgs args = {};
  fill_shape(args, shape);
  args.key = key.as<const u32>();
  args.log_in_modulus = shape.log_in_modulus;
  for (u32 j = 0; j < shape.digits; ++j)
    args.middle += (u64(1) << (shape.base_log - 1)) << (shape.base_log * j);
  const SwitchTile tile = tile_for(shape, in.shape.rows);
  const u32 words = shape.out_words(), columns = divide_up(words, tile.words);
  const u64 most = u64(65535) * tile.rows;  // the grid's limit
  for (u64 first = 0; first < in.shape.rows; first += most) {
    args.batch = static_cast<u32>(std::min(most, in.shape.rows - first));
    args.in = in.as<const u32>() + first * in.shape.words();
    args.out = out.as<u32>() + first * words;
    const u32 tiles = divide_up(args.batch, tile.rows);
    const u64 blocks = u64(cuda_stream(stream).processors()) * torus::kUnitBlocksEach;
    args.part = part_of(shape.in_dim, blocks / (u64(columns) * tiles), torus::kProductPart);
    const u32 parts = divide_up(shape.in_dim, args.part);
    const u64 in_bytes = args.batch * in.shape.words() * sizeof(u32);
    const u64 out_bytes = u64(args.batch) * words * sizeof(u32);
    device::Buffer sums;
    args.sums = nullptr;
    if (parts != 1) {
      sums = stream.allocate(out_bytes);
      args.sums = sums.as<u32>();
      stream.fill_zero(args.sums, out_bytes);
    }
    launch(
        stream,
        [&] {
          auto record =
              plain_record(tile.name, device::Work::key_multiply,
                           tiles * shape.key_bytes() + columns * in_bytes, parts * out_bytes);
          record.streamed_bytes = tiles * shape.key_bytes();
          return record;
        },
        tile.kernel, dim3(columns, tiles, parts), tile.threads, tile.shared_bytes, args);
    if (parts == 1) continue;
    launch(
        stream,
        [&] {
          return plain_record("product_switch_finish", device::Work::elementwise,
                              out_bytes + args.batch * shape.slots * sizeof(u32), out_bytes);
        },
        torus::product_switch_finish, dim3(divide_up(u64(args.batch) * words, 256)), 256, 0, args);
  }
}

}  // namespace crenel::backend::cuda
