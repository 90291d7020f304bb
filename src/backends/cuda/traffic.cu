#include <algorithm>

#include "backends/cuda/poly/host/tables.h"
#include "backends/cuda/poly/kernels/base_convert.cuh"
#include "backends/cuda/poly/kernels/key_switch_rows.cuh"
#include "backends/cuda/poly/kernels/row_divide.cuh"
#include "backends/cuda/poly/tuning/convert_columns.h"
#include "backends/cuda/traffic.h"

namespace crenel::backend::cuda::traffic {
namespace {

constexpr u64 kWord = sizeof(u32), kPair = 2 * sizeof(u32);

LaunchRecord record_of(const char* kernel, Work work, const Extent& out) {
  LaunchRecord r;
  r.kernel = kernel;
  r.work = work;
  r.limbs = out.limbs;
  r.polys = out.polys;
  return r;
}

LaunchRecord& compute(LaunchRecord& r, u64 butterflies, u64 other_products) {
  r.butterflies = butterflies;
  r.multiply_adds = butterflies + other_products;
  return r;
}

u64 groups(u64 a, u64 b) { return (a + b - 1) / b; }

// Limbs, over all polynomials, that `component` names.
u64 named_limbs(const LimbBytes& component, const TransformArgs& args, u32 limbs) {
  u64 count = 0;
  for (u32 l = 0; l < limbs; ++l) count += component.at[l] < args.components;
  return count * (args.polys / args.components);
}

// Of `limbs` limbs from `first` on, those below `end`.
u32 limbs_below(u32 first, u32 limbs, u32 end) {
  return std::min(limbs, end - std::min(end, first));
}

// Of a row pass with `blocks` blocks a tile and limb: the first round of every row as pairs, the
// middle stage of rows of 512, of the last four stages what a thread makes the others of.
u64 row_twiddle_bytes(const TransformArgs& args, u32 limbs, u64 blocks) {
  const u32 bits = row_bits(args.log_n);
  const u64 rows = u64(1) << (args.log_n - bits);
  const u64 round = (1u << (bits < 8 ? bits - 4 : 4)) - 1, middle = bits == 9 ? 16 : 0;
  const u64 row = (round + middle) * kPair + (sizeof(uint4) << (bits - 4));
  return rows * limbs * blocks * row;
}

// And of it the products that make them.
u64 row_twiddle_products(const TransformArgs& args, u32 limbs, u64 blocks) {
  return (blocks * limbs << (args.log_n - 4)) * 11;
}

// The threads of a short row write less than a sector together.
u64 inverse_row_bytes(const TransformArgs& args, u64 bytes) {
  const u32 bits = row_bits(args.log_n);
  return bytes << (bits < 7 ? 7 - bits : 0);
}

u64 row_butterflies(const TransformArgs& args, u64 transformed) {
  return (transformed << args.log_n) / 2 * row_bits(args.log_n);
}

}  // namespace

Extent extent(const ring::PolyView<u32>& out) {
  return {out.shape.log_n, out.limbs.size(), out.shape.polys()};
}

LaunchRecord elementwise(const char* kernel, Work work, const Extent& out, u32 reads,
                         u32 products) {
  LaunchRecord r = record_of(kernel, work, out);
  r.read_bytes = reads * out.bytes();
  r.written_bytes = out.bytes();
  return compute(r, 0, products * out.values());
}

// Three components of two times two.
LaunchRecord tensor(const Extent& out) {
  LaunchRecord r = record_of("tensor", Work::elementwise, out);
  r.read_bytes = 4 * (out.bytes() / 3);
  r.written_bytes = out.bytes();
  return compute(r, 0, 4 * (out.values() / 3));
}

LaunchRecord tensor_square(const Extent& out) {
  LaunchRecord r = record_of("tensor_square", Work::elementwise, out);
  r.read_bytes = 2 * (out.bytes() / 3);
  r.written_bytes = out.bytes();
  return compute(r, 0, out.values());
}

LaunchRecord automorphism(const Extent& out, u64 gathered, bool add, bool eval, u64 stride) {
  LaunchRecord r = record_of(add ? "automorphism_add" : "automorphism", Work::automorphism, out);
  const u64 two_n = u64(2) << out.log_n;
  const u64 value = eval ? kWord : std::min(kSector, kWord * std::min(stride, two_n - stride));
  r.read_bytes = gathered * value + (add ? out.bytes() : 0);
  r.written_bytes = out.bytes();
  return r;
}

LaunchRecord key_multiply(const Extent& out, u32 digits) {
  LaunchRecord r = record_of("key_multiply", Work::key_multiply, out);
  const u64 one = out.bytes() / 2;  // of one component
  r.streamed_bytes = 2 * digits * one;
  r.read_bytes = r.streamed_bytes + digits * one;
  r.written_bytes = out.bytes();
  return compute(r, 0, digits * out.values());
}

LaunchRecord lift_signed(const Extent& in) {
  LaunchRecord r = record_of("lift_signed", Work::elementwise, in);
  r.read_bytes = in.bytes();
  // A thread writes its sector in two halves, and each half counts.
  r.written_bytes = 2 * (u64(in.polys) << in.log_n) * sizeof(i64);
  return compute(r, 0, in.values() - (u64(in.polys) << in.log_n));
}

LaunchRecord sampling(const char* kernel, const Extent& out, u32 read_bytes_per_coefficient,
                      u32 times) {
  LaunchRecord r = record_of(kernel, Work::sampling, out);
  const u64 once = (u64(out.polys) << out.log_n) * read_bytes_per_coefficient;
  r.read_bytes = times * once;
  r.repeated_bytes = r.read_bytes - once;
  r.written_bytes = out.bytes();
  return r;
}

LaunchRecord small_transform(const char* kernel, const TransformArgs& args, u32 limbs) {
  const Extent out{args.log_n, limbs, args.polys};
  LaunchRecord r = record_of(kernel, Work::ntt, out);
  r.read_bytes = 2 * out.bytes();  // data, and twiddles for every polynomial
  r.repeated_bytes = out.bytes();
  r.written_bytes = out.bytes();
  return compute(r, out.values() / 2 * args.log_n, 0);
}

LaunchRecord column_pass(const char* kernel, const TransformArgs& args, u32 limbs,
                         const LimbBytes& left_out, u32 columns) {
  const u32 bits = column_bits(args.log_n);
  const u64 tiles = (u64(1) << (args.log_n - bits)) / (columns != 0 ? columns : tile_columns(bits));
  const u64 transformed = u64(limbs) * args.polys - named_limbs(left_out, args, limbs);
  LaunchRecord r = record_of(kernel, Work::ntt, {args.log_n, limbs, args.polys});
  r.written_bytes = (transformed << args.log_n) * kWord;
  r.repeated_bytes = tiles * transformed * (kPair << bits);
  r.read_bytes = r.written_bytes + r.repeated_bytes;
  return compute(r, (transformed << args.log_n) / 2 * bits, 0);
}

// A component's own limb is copied, which moves as many bytes as its transform.
LaunchRecord row_forward(const TransformArgs& args, u32 limbs, const OwnLimbs& own) {
  const Extent out{args.log_n, limbs, args.polys};
  LaunchRecord r = record_of("row_forward", Work::ntt, out);
  r.written_bytes = out.bytes();
  const u64 blocks = groups(args.polys, args.polys_per_block);
  r.repeated_bytes = row_twiddle_bytes(args, limbs, blocks);
  r.read_bytes = out.bytes() + r.repeated_bytes;
  const u64 transformed = u64(limbs) * args.polys - named_limbs(own.component, args, limbs);
  return compute(r, row_butterflies(args, transformed), row_twiddle_products(args, limbs, blocks));
}

LaunchRecord row_inverse(const TransformArgs& args, u32 limbs, const RowWork& work) {
  const Extent out{args.log_n, limbs, args.polys};
  LaunchRecord r = record_of("row_inverse", Work::ntt, out);
  r.written_bytes = inverse_row_bytes(args, out.bytes());
  const u64 blocks = groups(args.polys, args.polys_per_block);
  r.repeated_bytes = row_twiddle_bytes(args, limbs, blocks);
  r.read_bytes = (1 + work.reads) * out.bytes() + r.repeated_bytes;
  return compute(r, row_butterflies(args, u64(limbs) * args.polys),
                 work.products * out.values() + row_twiddle_products(args, limbs, blocks));
}

LaunchRecord row_divide(const TransformArgs& args, u32 limbs, const DivideTail& tail) {
  const Extent out{args.log_n, limbs, args.polys};
  const u32 batch = args.polys / args.components;
  u64 x_limbs = 0;
  for (u32 l = 0; l < limbs; ++l) x_limbs += tail.x_position.at[l] != kNone;
  x_limbs *= args.polys;
  const u64 addend_limbs = u64(std::min(tail.addend_components, args.components)) * batch * limbs;
  LaunchRecord r = record_of("row_divide", Work::ntt, out);
  r.written_bytes = out.bytes();
  r.repeated_bytes = row_twiddle_bytes(args, limbs, args.polys);
  r.read_bytes = out.bytes() + ((x_limbs + addend_limbs) << args.log_n) * kWord + r.repeated_bytes;
  return compute(r, row_butterflies(args, u64(limbs) * args.polys),
                 (x_limbs << args.log_n) + row_twiddle_products(args, limbs, args.polys));
}

LaunchRecord key_switch_rows(const TransformArgs& args, u32 limbs, const KeySwitchTail& tail,
                             const SwitchWork& work, u32 entries) {
  const u32 digits = args.components, batch = args.polys / digits;
  const u64 readers = groups(batch, entries);
  const Extent out{args.log_n, limbs, 2 * batch}, raised{args.log_n, limbs, args.polys};
  LaunchRecord r = record_of("key_switch_rows", Work::key_multiply, out);
  u32 dropped = 0;
  for (u32 l = 0; l < limbs; ++l) dropped += tail.dropped.has(l);
  const Extent inverted{args.log_n, dropped, 2 * batch};
  r.written_bytes = out.bytes() - inverted.bytes() + inverse_row_bytes(args, inverted.bytes());
  r.streamed_bytes = 2 * raised.bytes() / batch * readers;
  r.repeated_bytes = row_twiddle_bytes(args, limbs + dropped, readers);
  r.read_bytes = raised.bytes() + r.streamed_bytes + r.repeated_bytes;
  const Extent addend{args.log_n, limbs_below(tail.first_limb, limbs, tail.addend_limbs),
                      tail.addend_components * batch};
  r.read_bytes += addend.bytes() + (work.adds ? out.bytes() : 0);
  // Both components of the factors, of which own digits are made.
  const u64 own = named_limbs(tail.own.component, args, limbs) << args.log_n;
  const Extent product{args.log_n, limbs_below(tail.first_limb, limbs, work.limbs), batch};
  if (work.factors != 0) {
    r.read_bytes += 2 * work.factors * product.bytes() + (work.sums ? own * kWord : 0);
    r.read_bytes -= own * kWord;
  }
  const u64 transformed = u64(limbs) * args.polys - named_limbs(tail.own.component, args, limbs);
  u64 products = 2 * raised.values() + addend.values() + (work.adds ? out.values() : 0);
  if (work.factors != 0)
    products += (work.factors == 1 ? 3 : 5) * product.values() + (work.sums ? 3 : 2) * own;
  // the entries of a block read a row's roots once, and each makes its own of them
  products += row_twiddle_products(args, limbs + dropped, batch);
  return compute(r, row_butterflies(args, transformed + u64(dropped) * 2 * batch), products);
}

LaunchRecord base_convert(const ConversionTables& tables, u32 log_n, u32 polys, u32 first, u32 last,
                          u32 outputs, u32 values, bool held) {
  const u64 tiles = groups(u64(1) << log_n, values) * polys;
  u32 limbs = 0, sources = 0;
  u64 read = 0, converted = 0, products = 0;
  for (const ConversionTable& t : tables.host) {
    const u32 begin = t.destinations_below(first), end = t.destinations_below(last);
    limbs = std::max(limbs, std::min(last, t.output_limbs) - std::min(first, t.output_limbs));
    converted += end - begin;
    sources += end > begin ? t.sources : 0;
    products += u64(end - begin) * (t.sources + (t.shift != 0));
    for (u32 at = begin; at < end; at += outputs) {
      const u32 count = std::min(outputs, end - at);
      u64 uses = held ? 1 : groups(count, kConvertTogether);
      if (t.shift != 0) {  // the quotient, in every block
        products += t.sources;
        uses += !held;
        read += t.padded * kWord;
      }
      read += uses * t.sources * values * kWord;
      read += count * (t.padded * sizeof(uint4) + sizeof(ConversionTarget)) + 6 * kSector;
    }
  }
  const u32 components = static_cast<u32>(tables.host.size()) * polys;
  LaunchRecord r = record_of("base_convert", Work::base_conversion, {log_n, limbs, components});
  r.read_bytes = tiles * read;
  r.repeated_bytes = r.read_bytes - ((u64(sources) * polys) << log_n) * kWord;
  r.written_bytes = ((converted * polys) << log_n) * kWord;
  return compute(r, 0, (products * polys) << log_n);
}

LaunchRecord convert_columns(const ConversionTables& tables, u32 log_n, u32 polys, u32 first,
                             u32 last, const std::vector<ColumnItem>& items, u32 values, u32 folded,
                             u32 cluster) {
  u32 limbs = 0, sources = 0;
  for (const ConversionTable& t : tables.host) {
    limbs = std::max(limbs, std::min(last, t.output_limbs) - std::min(first, t.output_limbs));
    sources += t.destinations_below(last) > t.destinations_below(first) ? t.sources : 0;
  }
  const u64 tiles = groups(u64(1) << log_n, values) * polys;
  u64 read = 0, converted = 0, products = 0;
  for (const ColumnItem& item : items) {
    const ConversionTable& t = tables.host[item.digit];
    const u64 entries = folded != 0 ? folded_words(t.padded) / kQuarters * folded : t.padded;
    read += u64(t.sources) * values * kWord / cluster + (t.shift != 0 ? t.padded * kWord : 0);
    read += item.count *
            (entries * sizeof(uint4) + sizeof(ColumnTarget) + (kPair << column_bits(log_n)));
    converted += item.count;
    products += u64(item.count) * (t.sources + (t.shift != 0)) + (t.shift != 0 ? t.sources : 0);
  }
  LaunchRecord r = record_of("convert_columns", Work::base_conversion,
                             {log_n, limbs, static_cast<u32>(tables.host.size()) * polys});
  r.read_bytes = tiles * read;
  r.repeated_bytes = r.read_bytes - ((u64(sources) * polys) << log_n) * kWord;
  r.written_bytes = ((converted * polys) << log_n) * kWord;
  return compute(r, (converted * polys << log_n) / 2 * column_bits(log_n),
                 (products * polys) << log_n);
}

}  // namespace crenel::backend::cuda::traffic
