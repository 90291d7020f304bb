// Arguments of the parts of ModUp and division that begin with sources (kernels.h).
#include "device/poly/checks.h"

namespace crenel::device::checks {
namespace {

// Sources, what is read beside them, and the output; each of the same batch.
void from(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& sources,
          const ConstView& x, u32 components, const LimbSet& input, const LimbSet& output) {
  eval_view(op, ring, out, "output");
  eval_view(op, ring, x, "input");
  view(op, ring, sources, "sources");
  domain(op, sources.domain, Domain::coeff, "sources");
  equal(op, "components of the input", x.shape.components, components);
  equal(op, "batch of the input", x.shape.batch, out.shape.batch);
  equal(op, "batch of the sources", sources.shape.batch, out.shape.batch);
  limbs(op, sources.limbs, input, "sources");
  limbs(op, out.limbs, output, "output");
  overlap(op, out, sources, false);
  overlap(op, out, x, false);
}

void added(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& addend,
           const LimbSet& expected) {
  eval_view(op, ring, addend, "addend");
  limbs(op, addend.limbs, expected, "addend");
  equal(op, "batch of the addend", addend.shape.batch, out.shape.batch);
  if (addend.shape.components > out.shape.components)
    equal(op, "components of the addend", addend.shape.components, out.shape.components);
  overlap(op, out, addend, false);
}

// The leading limbs of the output.
void leading(const char* op, const ring::Ring& ring, const ConstView& out,
             const ConstView& addend) {
  if (addend.limbs.size() > out.limbs.size())
    equal(op, "limbs of the addend", addend.limbs.size(), out.limbs.size());
  added(op, ring, out, addend, out.limb_window(0, addend.limbs.size()).limbs);
}

// A key switch that begins with sources, of an input with some number of components.
void switched(const char* op, const ring::Ring& ring, const ConstView& out,
              const ConstView& sources, const ConstView& own, u32 components,
              const Prepared<rns::ModUp>& prepared, const KeyView& key, u32 first_digit) {
  const rns::ModUp& table = table_of(op, prepared);
  from(op, ring, out, sources, own, components, table.input, table.output);
  equal(op, "components of the sources", sources.shape.components, 1);
  equal(op, "components of the output", out.shape.components, 2);
  switching_key(op, ring, key, out, first_digit, static_cast<u32>(table.digits.size()));
}

// Factors of a product: two components each, of the same limbs.
void factors(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& a,
             const ConstView& b) {
  eval_view(op, ring, b, "input");
  for (const auto* v : {&a, &b}) equal(op, "components of an input", v->shape.components, 2);
  equal(op, "batch of an input", b.shape.batch, a.shape.batch);
  limbs(op, b.limbs, a.limbs, "input");
  overlap(op, out, b, false);
}

}  // namespace

void sources(const ring::Ring& ring, const ConstView& out, const SourcesOf& of,
             const Prepared<rns::BaseConversion>& prepared) {
  const char* op = "sources";
  const rns::BaseConversion& table = table_of(op, prepared);
  const ConstView& in = of.in;
  view(op, ring, out, "output");
  domain(op, out.domain, Domain::coeff, "output");
  eval_view(op, ring, in, "input");
  equal(op, "components of the output", out.shape.components, of.shape().components);
  equal(op, "batch of the input", in.shape.batch, out.shape.batch);
  limbs(op, out.limbs, table.source, "output");
  if (!in.limbs.contains_all(out.limbs))
    limbs(op, in.limbs.intersect(out.limbs), out.limbs, "input");
  overlap(op, out, in, false);
  if (!of.product()) return;
  factors(op, ring, out, in, of.other);
  addends(op, ring, out, in.limbs, of.sum);
}

void mod_up_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                 const ConstView& own, const Prepared<rns::ModUp>& prepared) {
  const char* op = "mod_up_from";
  const rns::ModUp& table = table_of(op, prepared);
  from(op, ring, out, sources, own, 1, table.input, table.output);
  equal(op, "components of the sources", sources.shape.components, 1);
  equal(op, "components of the output", out.shape.components, table.digits.size());
}

void key_switch_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                     const ConstView& own, const Prepared<rns::ModUp>& prepared, const KeyView& key,
                     u32 first_digit, const ConstView* addend, const LimbScalars* factor) {
  const char* op = "key_switch_from";
  switched(op, ring, out, sources, own, 1, prepared, key, first_digit);
  if (addend == nullptr) return;
  if (factor == nullptr) throw StateError("key_switch_from: an addend without its factor");
  leading(op, ring, out, *addend);
}

void key_switch_rotated_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                             const ConstView& own, const Prepared<rns::ModUp>& prepared,
                             const KeyView& key, u32 first_digit, u64 galois_element,
                             const ConstView* addend) {
  const char* op = "key_switch_rotated_from";
  element(op, galois_element, ring.log_n());
  switched(op, ring, out, sources, own, 1, prepared, key, first_digit);
  if (addend != nullptr) leading(op, ring, out, *addend);
}

void key_switch_product_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                             const ConstView& a, const ConstView& b,
                             const Prepared<rns::ModUp>& prepared, const KeyView& key,
                             u32 first_digit, const ProductSum& sum) {
  const char* op = "key_switch_product_from";
  switched(op, ring, out, sources, a, 2, prepared, key, first_digit);
  factors(op, ring, out, a, b);
  if (a.limbs.size() > out.limbs.size())
    equal(op, "limbs of an input", a.limbs.size(), out.limbs.size());
  limbs(op, a.limbs, out.limb_window(0, a.limbs.size()).limbs, "input");
  addends(op, ring, out, a.limbs, sum);
}

void divide_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                 const ConstView& x, const Prepared<rns::Divide>& prepared,
                 const ConstView* addend) {
  const char* op = "divide_from";
  const rns::Divide& table = table_of(op, prepared);
  from(op, ring, out, sources, x, sources.shape.components, table.dropped, table.output);
  equal(op, "components of the sources", sources.shape.components, out.shape.components);
  if (addend != nullptr) added(op, ring, out, *addend, out.limbs);
}

}  // namespace crenel::device::checks
