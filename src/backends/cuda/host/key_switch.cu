// mod_up, key_multiply, divide: the parts of hybrid key switching.
#include "backends/cuda/host/base_convert_launch.h"
#include "backends/cuda/host/convert_view.h"
#include "backends/cuda/host/cuda_kernels.h"
#include "backends/cuda/host/launch.cuh"
#include "backends/cuda/host/transform_launch.h"
#include "backends/cuda/kernels/key_multiply.cuh"
#include "device/checks.h"

namespace crenel::backend::cuda {
namespace {

const ConversionTables& conversions(const std::shared_ptr<void>& device) {
  if (device == nullptr) throw StateError("table was not prepared by these kernels");
  return *static_cast<const ConversionTables*>(device.get());
}

// Limbs `limbs` of `in`, to coefficient form, scaled for the conversion and centred, into
// `workspace`.
void inverse_centred(Stream& stream, const RingTables& tables, const ConversionTables& conversion,
                     const ring::PolyView<const u32>& in, const LimbSet& limbs,
                     Poly<u32> workspace) {
  TransformArgs args = {};
  args.primes = tables.primes;
  args.roots = tables.inverse_roots;
  args.in = poly(in);
  args.out = workspace;
  args.log_n = in.shape.log_n;
  args.components = in.shape.components;
  args.polys = in.shape.polys();
  args.prime = prime_bytes(limbs);
  args.in_position = position_bytes(limbs, in.limbs);
  launch_row_inverse(stream, args, limbs.size());
  launch_column_inverse(stream, in_place(args), limbs.size(), InverseTail::centred,
                        conversion.inverse);
}

// Dense memory for `polys` polynomials.
Poly<u32> dense(const device::Buffer& buffer, const ring::PolyShape& shape, u32 limbs) {
  const u64 component = u64(limbs) << shape.log_n;
  return {buffer.as<u32>(), component, component * shape.components};
}

Poly<const u32> read_only(const Poly<u32>& p) {
  return {p.data, p.component_stride, p.batch_stride};
}

// Both forward passes in place on `out`.
void forward_in_place(Stream& stream, const RingTables& tables, const ring::PolyView<u32>& out,
                      ForwardTail column_tail, ForwardTail row_tail, const ForwardExtra& extra) {
  TransformArgs args = {};
  args.primes = tables.primes;
  args.roots = tables.roots;
  args.out = poly(out);
  args.log_n = out.shape.log_n;
  args.components = out.shape.components;
  args.polys = out.shape.polys();
  args.prime = prime_bytes(out.limbs);
  args = in_place(args);
  launch_column_forward(stream, args, out.limbs.size(), column_tail, extra);
  launch_row_forward(stream, args, out.limbs.size(), row_tail, extra);
}

}  // namespace

void CudaKernels::mod_up(Stream& stream, View out, ConstView in,
                         const Prepared<rns::ModUp<u32>>& table) {
  if (!fast()) return Base::mod_up(stream, out, in, table);
  device::checks::mod_up<u32>(ring(), out, in, *table);
  const ConversionTables& conversion = conversions(table.device);
  const std::size_t bytes = u64(in.shape.batch) * in.limbs.size() * sizeof(u32) << in.shape.log_n;
  const device::Buffer workspace = stream.allocate(bytes);
  const Poly<u32> centred = dense(workspace, in.shape, in.limbs.size());
  inverse_centred(stream, tables_, conversion, in, in.limbs, centred);
  launch_base_convert(stream, tables_, conversion, read_only(centred), poly(out), in.shape, false);
  ForwardExtra extra = {};
  for (u8& own : extra.own.at) own = kNone;
  for (u32 d = 0; d < table->digits.size(); ++d)
    for (u32 l = 0; l < table->digits[d].count; ++l)
      extra.own.at[table->digits[d].first + l] = static_cast<u8>(d);
  extra.copy = poly(in);
  extra.copy_position = position_bytes(out.limbs, in.limbs);
  forward_in_place(stream, tables_, out, ForwardTail::copy_own, ForwardTail::copy_own, extra);
}

void CudaKernels::key_multiply(Stream& stream, View out, ConstView digits, ConstView key,
                               u32 first_digit) {
  device::checks::key_multiply<u32>(ring(), out, digits, key, first_digit);
  KeyArgs args = {};
  args.primes = tables_.primes;
  args.out = poly(out);
  args.digits = poly(digits);
  args.key = poly(key);
  args.key.data += first_digit * key.batch_stride;
  args.log_n = out.shape.log_n;
  args.count = digits.shape.components;
  args.prime = prime_bytes(out.limbs);
  // The kernel addresses key limbs by prime id: checks made sure that the key has all of them.
  launch(stream, cuda::key_multiply,
         dim3(divide_up(out.ring_dim(), 4 * kElementThreads), out.limbs.size(), out.shape.batch),
         kElementThreads, 0, args);
}

void CudaKernels::divide(Stream& stream, View out, ConstView in,
                         const Prepared<rns::Divide<u32>>& table, const ConstView* addend) {
  if (!fast() || table->dropped.empty()) return Base::divide(stream, out, in, table, addend);
  device::checks::divide<u32>(ring(), out, in, *table, addend);
  const ConversionTables& conversion = conversions(table.device);
  const u32 dropped = table->dropped.size();
  const std::size_t bytes = u64(in.shape.polys()) * dropped * sizeof(u32) << in.shape.log_n;
  const device::Buffer workspace = stream.allocate(bytes);
  const Poly<u32> centred = dense(workspace, in.shape, dropped);
  inverse_centred(stream, tables_, conversion, in, table->dropped, centred);
  launch_base_convert(stream, tables_, conversion, read_only(centred), poly(out), in.shape, false);
  ForwardExtra extra = {};
  extra.x = poly(in);
  extra.x_position = position_bytes(out.limbs, in.limbs);
  extra.x_scale = conversion.x_scale;
  if (addend != nullptr) {
    extra.addend = poly(*addend);
    extra.addend_components = addend->shape.components;
  }
  forward_in_place(stream, tables_, out, ForwardTail::plain, ForwardTail::divide, extra);
}

}  // namespace crenel::backend::cuda
