#include "device/torus/checks.h"

#include "crenel/core/error.h"

namespace crenel::device::torus_checks {
namespace {

void range(const char* op, const char* field, u64 value, u64 low, u64 high) {
  if (value >= low && value <= high) return;
  throw ParameterError(cat(op, ": ", field, " = ", value, ", expected ", low, "..", high),
                       {{"operation", op}, {field, cat(value)}});
}

void present(const char* op, const char* field, const void* pointer) {
  if (pointer != nullptr) return;
  throw ParameterError(cat(op, ": ", field, " is null, expected device memory"),
                       {{"operation", op}, {field, "null"}});
}

}  // namespace

void load_bootstrap_key(const TorusPlan& plan, const void* key, u32 first, u32 count,
                        const i64* polys) {
  const char* op = "load_bootstrap_key";
  range(op, "first", first, 0, plan.lwe_dim);
  range(op, "count", count, 0, plan.lwe_dim - first);
  if (count == 0) return;
  present(op, "key", key);
  present(op, "polys", polys);
}

void blind_rotate(const u64* out, const u32* in, u32 batch, const void* key, const LutView& luts) {
  const char* op = "blind_rotate";
  if (batch == 0) return;
  present(op, "out", out);
  present(op, "in", in);
  present(op, "key", key);
  range(op, "count", luts.count, 1, ~u32(0));
  present(op, "polys", luts.polys);
  present(op, "offsets", luts.offsets);
}

void key_switch(const SwitchShape& shape, const u32* out, const u64* in, u32 batch,
                const void* key) {
  const char* op = "key_switch";
  range(op, "in_dim", shape.in_dim, 1, u32(1) << 24);
  range(op, "out_dim", shape.out_dim, 1, u32(1) << 24);
  range(op, "slots", shape.slots, 1, u32(1) << 16);
  range(op, "log_modulus", shape.log_modulus, 1, 40);
  range(op, "log_out_modulus", shape.log_out_modulus, 1,
        shape.log_modulus < 32 ? shape.log_modulus : 32);
  range(op, "base_log", shape.base_log, 1, 16);
  range(op, "digits", shape.digits, 1, 40);
  // Every digit lies within the words of 64 bits.
  range(op, "base_log * digits", u64(shape.base_log) * shape.digits, shape.log_modulus,
        63 + shape.base_log);
  if (batch == 0) return;
  present(op, "out", out);
  present(op, "in", in);
  present(op, "key", key);
}

void linear(const u32* out, std::span<const LweTerm> terms, u32 batch, u32 log_modulus) {
  const char* op = "linear";
  range(op, "terms", terms.size(), 1, ~u32(0));
  range(op, "log_modulus", log_modulus, 1, 32);
  if (batch == 0) return;
  present(op, "out", out);
  for (const LweTerm& term : terms) present(op, "data", term.data);
}

void mod_switch(const u32* out, u32 log_to, const u32* in, u32 log_from, u32 batch) {
  const char* op = "mod_switch";
  range(op, "log_to", log_to, 1, 32);
  range(op, "log_from", log_from, 1, 32);
  if (batch == 0) return;
  present(op, "out", out);
  present(op, "in", in);
}

void rows(const char* op, const void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
          const void* input) {
  range(op, "dim", dim, 1, u32(1) << 24);
  range(op, "slots", slots, 1, u32(1) << 16);
  range(op, "log_modulus", log_modulus, 1, 64);
  if (rows == 0) return;
  present(op, "out", out);
  present(op, "input", input);
}

void phase(const u32* out, const u32* in, u64 rows, u32 dim, u32 slots, u32 log_modulus,
           const i8* secrets) {
  const char* op = "phase";
  range(op, "dim", dim, 1, u32(1) << 24);
  range(op, "slots", slots, 1, u32(1) << 16);
  range(op, "log_modulus", log_modulus, 1, 32);
  if (rows == 0) return;
  present(op, "out", out);
  present(op, "in", in);
  present(op, "secrets", secrets);
}

}  // namespace crenel::device::torus_checks
