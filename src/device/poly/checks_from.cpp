// Arguments of the parts of ModUp and division that begin with sources (kernels.h).
#include "device/poly/checks.h"

namespace crenel::device::checks {
namespace {

void eval_view(const char* op, const ring::Ring& ring, const ConstView& v, const char* name) {
  view(op, ring, v, name);
  domain(op, v.domain, Domain::eval, name);
}

// Sources, what is read beside them, and the output; each of the same batch.
void from(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& sources,
          const ConstView& x, const LimbSet& input, const LimbSet& output) {
  eval_view(op, ring, out, "output");
  eval_view(op, ring, x, "input");
  view(op, ring, sources, "sources");
  domain(op, sources.domain, Domain::coeff, "sources");
  equal(op, "components of the input", x.shape.components, sources.shape.components);
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

}  // namespace

void sources(const ring::Ring& ring, const ConstView& out, const ConstView& in,
             const Prepared<rns::BaseConversion>& prepared) {
  const char* op = "sources";
  const rns::BaseConversion& table = table_of(op, prepared);
  view(op, ring, out, "output");
  domain(op, out.domain, Domain::coeff, "output");
  eval_view(op, ring, in, "input");
  equal(op, "components of the input", in.shape.components, out.shape.components);
  equal(op, "batch of the input", in.shape.batch, out.shape.batch);
  limbs(op, out.limbs, table.source, "output");
  if (!in.limbs.contains_all(out.limbs))
    limbs(op, in.limbs.intersect(out.limbs), out.limbs, "input");
  overlap(op, out, in, false);
}

void mod_up_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                 const ConstView& own, const Prepared<rns::ModUp>& prepared) {
  const char* op = "mod_up_from";
  const rns::ModUp& table = table_of(op, prepared);
  from(op, ring, out, sources, own, table.input, table.output);
  equal(op, "components of the sources", sources.shape.components, 1);
  equal(op, "components of the output", out.shape.components, table.digits.size());
}

void key_switch_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                     const ConstView& own, const Prepared<rns::ModUp>& prepared, const KeyView& key,
                     u32 first_digit, const ConstView* addend, const LimbScalars* factor) {
  const char* op = "key_switch_from";
  const rns::ModUp& table = table_of(op, prepared);
  from(op, ring, out, sources, own, table.input, table.output);
  equal(op, "components of the sources", sources.shape.components, 1);
  equal(op, "components of the output", out.shape.components, 2);
  switching_key(op, ring, key, out, first_digit, static_cast<u32>(table.digits.size()));
  if (addend == nullptr) return;
  if (factor == nullptr) throw StateError("key_switch_from: an addend without its factor");
  if (addend->limbs.size() > out.limbs.size())
    equal(op, "limbs of the addend", addend->limbs.size(), out.limbs.size());
  added(op, ring, out, *addend, out.limb_window(0, addend->limbs.size()).limbs);
}

void divide_from(const ring::Ring& ring, const ConstView& out, const ConstView& sources,
                 const ConstView& x, const Prepared<rns::Divide>& prepared,
                 const ConstView* addend) {
  const char* op = "divide_from";
  const rns::Divide& table = table_of(op, prepared);
  from(op, ring, out, sources, x, table.dropped, table.output);
  equal(op, "components of the sources", sources.shape.components, out.shape.components);
  if (addend != nullptr) added(op, ring, out, *addend, out.limbs);
}

}  // namespace crenel::device::checks
