// The checked entry points: one place an operation.
#include "device/fhecore/kernels.h"

#include "crenel/core/error.h"
#include "device/poly/checks.h"

namespace crenel::device {
namespace {

void aligned(const char* name, const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (pointer == nullptr || address % 32 != 0)
    throw ParameterError(
        cat("fhe_sync: ", name, " at address ", address, ", expected a multiple of 32, not null"),
        {{name, address}});
}

void not_empty(const char* op, const char* name, const checks::ConstView& v) {
  if (v.shape.components == 0 || v.shape.batch == 0 || v.data == nullptr)
    throw StateError(cat(op, ": ", name, " is empty"));
}

void check_tiles(const FhecoreTiles& t) {
  if (t.count == 0) return;
  aligned("d", t.d);
  aligned("a", t.a);
  aligned("b", t.b);
  if (t.c != nullptr) aligned("c", t.c);
  aligned("constants", t.constants);
  if (t.sets != 1 && t.sets != t.count)
    throw ParameterError(cat("fhe_sync: ", t.sets, " sets of constants for ", t.count,
                             " tiles, expected 1 or ", t.count),
                         {{"sets", t.sets}});
}

void check_conversion(const checks::ConstView& out, const checks::ConstView& in,
                      const FhecoreConversion& table) {
  const char* op = "base_convert";
  not_empty(op, "output", out);
  not_empty(op, "input", in);
  if (in.shape.log_n < 4 || in.shape.log_n > 17)
    throw ParameterError(cat(op, ": log_n = ", in.shape.log_n, ", expected 4..17"),
                         {{"log_n", in.shape.log_n}});
  checks::equal(op, "log_n", in.shape.log_n, out.shape.log_n);
  checks::equal(op, "components", in.shape.components, out.shape.components);
  checks::equal(op, "batch", in.shape.batch, out.shape.batch);
  checks::limbs(op, in.limbs, table.table.source, "input");
  checks::limbs(op, out.limbs, table.table.destination, "output");
  checks::domain(op, in.domain, Domain::coeff, "input");
  checks::domain(op, out.domain, Domain::coeff, "output");
  checks::overlap(op, out, in, false);
}

}  // namespace

Prepared<FhecoreTransform> FhecoreKernels::prepare(FhecoreTransform table) {
  auto device = do_prepare(table);
  return {std::make_shared<const FhecoreTransform>(std::move(table)), std::move(device)};
}

Prepared<FhecoreConversion> FhecoreKernels::prepare(FhecoreConversion table) {
  auto device = do_prepare(table);
  return {std::make_shared<const FhecoreConversion>(std::move(table)), std::move(device)};
}

void FhecoreKernels::fhe_sync(Stream& stream, const FhecoreTiles& tiles) {
  check_tiles(tiles);
  do_fhe_sync(stream, tiles);
}

void FhecoreKernels::ntt(Stream& stream, const View& out, const ConstView& in,
                         const Prepared<FhecoreTransform>& table) {
  const ring::Ring& ring = *checks::table_of("ntt", table).ring;
  checks::transform("ntt", ring, out, in, Domain::coeff, Domain::eval);
  do_transform(stream, out, in, table, false);
}

void FhecoreKernels::intt(Stream& stream, const View& out, const ConstView& in,
                          const Prepared<FhecoreTransform>& table) {
  const ring::Ring& ring = *checks::table_of("intt", table).ring;
  checks::transform("intt", ring, out, in, Domain::eval, Domain::coeff);
  do_transform(stream, out, in, table, true);
}

void FhecoreKernels::base_convert(Stream& stream, const View& out, const ConstView& in,
                                  const Prepared<FhecoreConversion>& table) {
  check_conversion(out, in, checks::table_of("base_convert", table));
  do_base_convert(stream, out, in, table);
}

}  // namespace crenel::device
