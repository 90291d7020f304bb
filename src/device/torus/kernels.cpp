// The checked entry points: one place an operation, and a place where work may stop.
#include "device/torus/kernels.h"

#include "crenel/core/watch.h"
#include "device/torus/checks.h"

namespace crenel::device {

SwitchShape TorusKernels::switch_shape() const {
  return {.in_dim = plan_.extracted_dim(),
          .out_dim = plan_.lwe_dim,
          .slots = plan_.slots,
          .log_modulus = plan_.log_switch_modulus,
          .log_out_modulus = plan_.log_read_modulus(),
          .base_log = plan_.switch_base_log,
          .digits = plan_.switch_digits,
          .products = plan_.rests_extracted(),
          .log_in_modulus = plan_.rests_extracted() ? plan_.log_lwe_modulus : 0};
}

LweShape TorusKernels::at_rest(u64 rows) const {
  return {rows, plan_.rest_dim(), plan_.slots, plan_.log_lwe_modulus};
}

LweShape TorusKernels::read(u64 rows) const {
  return {rows, plan_.lwe_dim, plan_.slots, plan_.log_read_modulus()};
}

LweShape TorusKernels::extracted(u64 rows) const {
  return {rows, plan_.extracted_dim(), plan_.slots,
          plan_.rests_extracted() ? plan_.log_lwe_modulus : plan_.log_switch_modulus};
}

void TorusKernels::load_bootstrap_key(Stream& stream, void* key, u32 first, u32 count,
                                      const i64* polys) {
  watch::point();
  torus_checks::load_bootstrap_key(plan_, key, first, count, polys);
  if (count != 0) do_load_bootstrap_key(stream, key, first, count, polys);
}

void TorusKernels::blind_rotate(Stream& stream, const LweView& out, const ConstLweView& in,
                                const void* key, const LutView& luts) {
  watch::point();
  torus_checks::blind_rotate(*this, out, in, key, luts);
  if (out.shape.rows != 0) do_blind_rotate(stream, out, in, key, luts);
}

void TorusKernels::key_switch(Stream& stream, const SwitchShape& shape, const LweView& out,
                              const ConstLweView& in, const ConstLweView& key) {
  watch::point();
  torus_checks::key_switch(shape, out, in, key);
  if (out.shape.rows != 0) do_key_switch(stream, shape, out, in, key);
}

void TorusKernels::linear(Stream& stream, const LweView& out, std::span<const LweTerm> terms,
                          u32 constant) {
  watch::point();
  torus_checks::linear(out, terms);
  if (out.shape.rows != 0) do_linear(stream, out, terms, constant);
}

void TorusKernels::sums(Stream& stream, const LweView& out, std::span<const LweSum> sums) {
  watch::point();
  torus_checks::sums(out, sums);
  if (out.shape.rows != 0) do_sums(stream, out, sums);
}

void TorusKernels::mod_switch(Stream& stream, const LweView& out, const ConstLweView& in) {
  watch::point();
  torus_checks::mod_switch(out, in);
  if (out.shape.rows != 0) do_mod_switch(stream, out, in);
}

void TorusKernels::extract(Stream& stream, const LweView& out, const RingView& in,
                           const u32* positions) {
  watch::point();
  torus_checks::extract(out, in, positions);
  if (out.shape.rows != 0) do_extract(stream, out, in, positions);
}

void TorusKernels::embed(Stream& stream, i64* out, u32 log_degree, u32 count,
                         const ConstLweView& in, const u32* rows) {
  watch::point();
  torus_checks::embed(out, log_degree, count, in, rows);
  if (count != 0) do_embed(stream, out, log_degree, count, in, rows);
}

void TorusKernels::sample_lwe(Stream& stream, const LweView& out, const RowSeed& masks,
                              const RowSeed& errors, const i8* secrets, const u64* messages) {
  watch::point();
  torus_checks::sampled("sample_lwe", out, "secrets", secrets);
  if (out.shape.rows != 0) do_sample_lwe(stream, out, masks, errors, secrets, messages);
}

void TorusKernels::expand_lwe(Stream& stream, const LweView& out, const RowSeed& masks,
                              const u64* bodies) {
  watch::point();
  torus_checks::sampled("expand_lwe", out, "bodies", bodies);
  if (out.shape.rows != 0) do_expand_lwe(stream, out, masks, bodies);
}

void TorusKernels::phase(Stream& stream, u32* out, const ConstLweView& in, const i8* secrets) {
  watch::point();
  torus_checks::phase(out, in, secrets);
  if (in.shape.rows != 0) do_phase(stream, out, in, secrets);
}

}  // namespace crenel::device
