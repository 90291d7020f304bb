#include "device/torus/checks.h"

#include <bit>

#include "crenel/core/error.h"

namespace crenel::device::torus_checks {
namespace {

void range(const char* op, const char* field, u64 value, u64 low, u64 high) {
  if (value >= low && value <= high) return;
  throw ParameterError(cat(op, ": ", field, " = ", value, ", expected ", low, "..", high),
                       {{"operation", op}, {field, value}});
}

void present(const char* op, const char* field, const void* pointer) {
  if (pointer != nullptr) return;
  throw ParameterError(cat(op, ": ", field, " is null, expected device memory"),
                       {{"operation", op}, {field, "null"}});
}

// Rows of exactly this shape, in words of `word_bytes`; memory where there are rows.
void array(const char* op, const char* name, const ConstLweView& v, const LweShape& expected,
           u32 word_bytes) {
  const auto field = [&](const char* what, u64 got, u64 wanted) {
    if (got == wanted) return;
    throw ParameterError(cat(op, ": ", what, " of ", name, " = ", got, ", expected ", wanted),
                         {{"operation", op}, {what, got}, {"expected", wanted}});
  };
  field("rows", v.shape.rows, expected.rows);
  field("dim", v.shape.dim, expected.dim);
  field("slots", v.shape.slots, expected.slots);
  field("log_modulus", v.shape.log_modulus, expected.log_modulus);
  field("word_bytes", v.word_bytes, word_bytes);
  if (v.shape.rows != 0) present(op, name, v.data);
}

// Rows of any shape within the limits.
void any_array(const char* op, const char* name, const ConstLweView& v, u32 most_log_modulus) {
  range(op, "dim", v.shape.dim, 1, u32(1) << 24);
  range(op, "slots", v.shape.slots, 1, u32(1) << 16);
  range(op, "log_modulus", v.shape.log_modulus, 1, most_log_modulus);
  array(op, name, v, v.shape, v.shape.log_modulus <= 32 ? 4 : 8);
}

constexpr u32 kMaxLogDegree = 20;

// Rows of words of 32 bits whose dimension divides the ring's degree.
void ring_rows(const char* op, const char* name, const ConstLweView& v, u32 log_degree) {
  any_array(op, name, v, 32);
  range(op, "log_degree", log_degree, 0, kMaxLogDegree);
  range(op, "slots", v.shape.slots, 1, 1);
  range(op, "dim", v.shape.dim, 1, u64(1) << log_degree);
  range(op, "rows", v.shape.rows, 0, ~u32(0));
  if (!std::has_single_bit(v.shape.dim))
    throw ParameterError(cat(op, ": dim = ", v.shape.dim, ", expected a power of two"),
                         {{"operation", op}, {"dim", v.shape.dim}});
}

}  // namespace

void load_bootstrap_key(const TorusPlan& plan, const void* key, u32 first, u32 count,
                        const i64* polys) {
  const char* op = "load_bootstrap_key";
  range(op, "first", first, 0, plan.steps());
  range(op, "count", count, 0, plan.steps() - first);
  if (count == 0) return;
  present(op, "key", key);
  present(op, "polys", polys);
}

void blind_rotate(const TorusKernels& kernels, const ConstLweView& out, const ConstLweView& in,
                  const void* key, const LutView& luts) {
  const char* op = "blind_rotate";
  array(op, "in", in, kernels.read(in.shape.rows), sizeof(u32));
  range(op, "outputs", luts.outputs, 1, kernels.plan().ring_dim());
  if (!std::has_single_bit(luts.outputs))
    throw ParameterError(cat(op, ": outputs = ", luts.outputs, ", expected a power of two"),
                         {{"operation", op}, {"outputs", luts.outputs}});
  range(op, "rows", in.shape.rows, 0, ~u32(0) / luts.outputs);
  array(op, "out", out, kernels.extracted(in.shape.rows * luts.outputs),
        kernels.extracted_word_bytes());
  if (in.shape.rows == 0) return;
  present(op, "key", key);
  range(op, "count", luts.count, 1, ~u32(0));
  present(op, "polys", luts.polys);
  present(op, "offsets", luts.offsets);
}

void key_switch(const SwitchShape& shape, const ConstLweView& out, const ConstLweView& in,
                const ConstLweView& key) {
  const char* op = "key_switch";
  range(op, "in_dim", shape.in_dim, 1, u32(1) << 24);
  range(op, "out_dim", shape.out_dim, 1, u32(1) << 24);
  range(op, "slots", shape.slots, 1, u32(1) << 16);
  range(op, "log_modulus", shape.log_modulus, 1, 40);
  range(op, "log_out_modulus", shape.log_out_modulus, 1,
        shape.log_modulus < 32 ? shape.log_modulus : 32);
  range(op, "base_log", shape.base_log, 1, 16);
  range(op, "digits", shape.digits, 1, 40);
  const u64 kept = u64(shape.base_log) * shape.digits;
  if (shape.products) {
    range(op, "log_modulus", shape.log_modulus, 1, 32);
    range(op, "log_in_modulus", shape.log_in_modulus, shape.log_modulus, 32);
    range(op, "base_log * digits", kept, 1, shape.log_modulus);
  } else {
    // Every digit lies within the words of 64 bits.
    range(op, "base_log * digits", kept, shape.log_modulus, 63 + shape.base_log);
  }
  range(op, "rows", in.shape.rows, 0, ~u32(0));
  array(op, "in", in, shape.in(in.shape.rows), shape.in_word_bytes());
  array(op, "out", out, shape.out(in.shape.rows), sizeof(u32));
  if (in.shape.rows == 0) return;
  const ConstLweView expected = shape.key(key.data);
  array(op, "key", key, expected.shape, expected.word_bytes);
}

void linear(const ConstLweView& out, std::span<const LweTerm> terms) {
  const char* op = "linear";
  range(op, "terms", terms.size(), 1, ~u32(0));
  any_array(op, "out", out, 32);
  if (out.shape.rows == 0) return;
  for (const LweTerm& term : terms) present(op, "data", term.data);
}

void sums(const ConstLweView& out, std::span<const LweSum> sums) {
  const char* op = "sums";
  range(op, "sums", sums.size(), 1, ~u32(0));
  any_array(op, "out", out, 32);
  if (out.shape.rows % sums.size() != 0)
    throw ParameterError(cat(op, ": ", out.shape.rows, " rows for ", sums.size(),
                             " sums, expected as many for each"),
                         {{"rows", out.shape.rows}, {"sums", sums.size()}});
  if (out.shape.rows == 0) return;
  for (const LweSum& sum : sums)
    for (const LweRowsTerm& term : sum.terms) {
      present(op, "data", term.data);
      range(op, "row_step", term.row_step, 1, ~u32(0));
    }
}

void mod_switch(const ConstLweView& out, const ConstLweView& in) {
  const char* op = "mod_switch";
  any_array(op, "in", in, 32);
  any_array(op, "out", out, 32);
  LweShape expected = in.shape;
  expected.log_modulus = out.shape.log_modulus;
  array(op, "out", out, expected, sizeof(u32));
}

void extract(const ConstLweView& out, const RingView& in, const u32* positions) {
  const char* op = "extract";
  ring_rows(op, "out", out, in.log_degree);
  range(op, "modulus", in.modulus, 3, ~u32(0));
  if (in.modulus % 2 == 0)
    throw ParameterError(cat(op, ": modulus = ", in.modulus, ", expected an odd number"),
                         {{"operation", op}, {"modulus", in.modulus}});
  if (out.shape.rows == 0) return;
  present(op, "polys", in.polys);
  present(op, "positions", positions);
}

void embed(const i64* out, u32 log_degree, u32 count, const ConstLweView& in, const u32* rows) {
  const char* op = "embed";
  ring_rows(op, "in", in, log_degree);
  range(op, "count", count, 0, u32(1) << 20);
  if (count == 0) return;
  present(op, "out", out);
  present(op, "rows", rows);
}

void sampled(const char* op, const ConstLweView& out, const char* name, const void* input) {
  any_array(op, "out", out, 64);
  if (out.shape.rows != 0) present(op, name, input);
}

void phase(const u32* out, const ConstLweView& in, const i8* secrets) {
  const char* op = "phase";
  any_array(op, "in", in, 32);
  if (in.shape.rows == 0) return;
  present(op, "out", out);
  present(op, "secrets", secrets);
}

}  // namespace crenel::device::torus_checks
