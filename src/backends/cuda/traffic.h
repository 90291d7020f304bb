// What launches state to an account: bytes between the first-level caches and L2, and core
// products.
//
// Counted are whole 32-byte sectors that a kernel asks for: its data, keys and twiddles, once a
// block where the first-level cache or shared memory serves the other uses within the block. Left
// out is what is small: constants of primes, arguments, instructions.
#pragma once

#include <vector>

#include "backends/cuda/poly/device/views.cuh"
#include "crenel/device/account.h"
#include "ring/poly_view.h"

namespace crenel::backend::cuda {

struct TransformArgs;
struct OwnLimbs;
struct DivideTail;
struct KeySwitchTail;
struct ConversionTables;
struct ColumnItem;

namespace traffic {

using device::LaunchRecord;
using device::Work;

/// Unit of what a first-level cache asks for.
inline constexpr u64 kSector = 32;

/// `limbs` limbs of `polys` polynomials of 2^log_n values.
struct Extent {
  u32 log_n, limbs, polys;
  u64 values() const { return (u64(limbs) * polys) << log_n; }
  u64 bytes() const { return values() * sizeof(u32); }
};
Extent extent(const ring::PolyView<u32>& out);

/// For every value of the output `reads` values are read and `products` multiplications made.
LaunchRecord elementwise(const char* kernel, Work work, const Extent& out, u32 reads, u32 products);
LaunchRecord tensor(const Extent& out);
LaunchRecord tensor_square(const Extent& out);
/// `gathered` values are read permuted, and with `add` the output in order. Coefficient form
/// gathers single words: value j comes from j * stride modulo 2N.
LaunchRecord automorphism(const Extent& out, u64 gathered, bool add, bool eval, u64 stride);
LaunchRecord key_multiply(const Extent& out, u32 digits);
/// Two words a coefficient are written.
LaunchRecord lift_signed(const Extent& in);
/// What is read of a coefficient, so many times.
LaunchRecord sampling(const char* kernel, const Extent& out, u32 read_bytes_per_coefficient,
                      u32 times);

/// A whole transform in one block a limb.
LaunchRecord small_transform(const char* kernel, const TransformArgs& args, u32 limbs);
/// `left_out`: per limb, the component without transform (kNone: none); `columns` of a block, those
/// of the plain passes where 0.
LaunchRecord column_pass(const char* kernel, const TransformArgs& args, u32 limbs,
                         const LimbBytes& left_out, u32 columns = 0);
LaunchRecord row_forward(const TransformArgs& args, u32 limbs, const OwnLimbs& own);
/// Polynomials that a source of rows reads besides the first, and its products a value.
struct RowWork {
  u32 reads = 0, products = 0;
};
LaunchRecord row_inverse(const TransformArgs& args, u32 limbs, const RowWork& work = {});
LaunchRecord row_divide(const TransformArgs& args, u32 limbs, const DivideTail& tail);
/// What a form of key_switch_rows reads besides: the output, or `factors` ciphertexts of so many
/// limbs, and with `sums` a polynomial that is added to the own digits.
struct SwitchWork {
  bool adds = false;
  u32 limbs = 0, factors = 0;
  bool sums = false;
};
/// Key values and twiddles come once for `entries` of the batch, for dropped limbs also those of
/// the inverse transform.
LaunchRecord key_switch_rows(const TransformArgs& args, u32 limbs, const KeySwitchTail& tail,
                             const SwitchWork& work, u32 entries);

/// Output limbs [first, last) of `polys` input polynomials; `outputs` destinations a block, of
/// `values` coefficients each; `held`: sources are read once a block.
LaunchRecord base_convert(const ConversionTables& tables, u32 log_n, u32 polys, u32 first, u32 last,
                          u32 outputs, u32 values, bool held);
/// The same with the column pass: sources are read once a cluster of so many blocks, which do
/// `items` with so many folded matrices.
LaunchRecord convert_columns(const ConversionTables& tables, u32 log_n, u32 polys, u32 first,
                             u32 last, const std::vector<ColumnItem>& items, u32 values, u32 folded,
                             u32 cluster);

}  // namespace traffic
}  // namespace crenel::backend::cuda
