#include "device/poly/checks.h"

#include "crenel/core/error.h"

namespace crenel::device::checks {
namespace {

std::string text(const LimbSet& set) {
  std::string s = "{";
  for (u32 i = 0; i < set.size(); ++i) s += cat(i ? "," : "", set[i]);
  return s + "}";
}

const char* text(Domain d) { return d == Domain::coeff ? "coeff" : "eval"; }

void shape(const char* op, const ConstView& got, const ConstView& expected) {
  equal(op, "components", got.shape.components, expected.shape.components);
  equal(op, "batch", got.shape.batch, expected.shape.batch);
}

void broadcast(const char* op, const char* what, u64 got, u64 expected) {
  if (got != 1) equal(op, what, got, expected);
}

// One past the last word.
const u32* end_of(const ConstView& v) {
  return v.limb(v.shape.batch - 1, v.shape.components - 1, 0) +
         (u64(v.limbs.size()) << v.shape.log_n);
}

bool same_view(const ConstView& a, const ConstView& b) {
  return a.data == b.data && a.shape == b.shape && a.limbs == b.limbs &&
         (a.shape.components == 1 || a.component_stride == b.component_stride) &&
         (a.shape.batch == 1 || a.batch_stride == b.batch_stride);
}

// Exact test for interleaved views, such as windows of one polynomial: poly against poly.
bool share_words(const ConstView& x, const ConstView& y) {
  if (x.words() == 0 || y.words() == 0) return false;
  if (end_of(x) <= y.data || end_of(y) <= x.data) return false;
  const u64 x_words = u64(x.limbs.size()) << x.shape.log_n, y_words = u64(y.limbs.size())
                                                                      << y.shape.log_n;
  for (u32 i = 0; i < x.shape.polys(); ++i)
    for (u32 j = 0; j < y.shape.polys(); ++j) {
      const u32* p = x.limb(i / x.shape.components, i % x.shape.components, 0);
      const u32* q = y.limb(j / y.shape.components, j % y.shape.components, 0);
      if (p < q + y_words && q < p + x_words) return true;
    }
  return false;
}

}  // namespace

void view(const char* op, const ring::Ring& ring, const ConstView& v, const char* name) {
  if (v.shape.log_n != ring.log_n())
    throw StateError(
        cat(op, ": ", name, " has log_n ", v.shape.log_n, ", the ring has ", ring.log_n()),
        {{"got", v.shape.log_n}, {"expected", ring.log_n()}});
  for (u32 i = 0; i < v.limbs.size(); ++i)
    if (v.limbs[i] >= ring.prime_count())
      throw StateError(cat(op, ": ", name, " has prime id ", v.limbs[i], ", the ring has ",
                           ring.prime_count(), " primes"),
                       {{"got", v.limbs[i]}, {"expected", ring.prime_count()}});
  if (v.shape.components == 0 || v.shape.batch == 0 || (v.data == nullptr && !v.limbs.empty()))
    throw StateError(cat(op, ": ", name, " is empty"));
}

void limbs(const char* op, const LimbSet& got, const LimbSet& expected, const char* name) {
  if (!(got == expected))
    throw StateError(cat(op, ": ", name, " has limbs ", text(got), ", expected ", text(expected)),
                     {{"got", text(got)}, {"expected", text(expected)}});
}

void equal(const char* op, const char* what, u64 got, u64 expected) {
  if (got != expected)
    throw StateError(cat(op, ": ", what, " ", got, ", expected ", expected),
                     {{"got", got}, {"expected", expected}});
}

void domain(const char* op, Domain got, Domain expected, const char* name) {
  if (got != expected)
    throw StateError(cat(op, ": ", name, " is in ", text(got), " form, expected ", text(expected)),
                     {{"got", text(got)}, {"expected", text(expected)}});
}

void eval_view(const char* op, const ring::Ring& ring, const ConstView& v, const char* name) {
  view(op, ring, v, name);
  domain(op, v.domain, Domain::eval, name);
}

void element(const char* op, u64 element, u32 log_n) {
  if (element % 2 == 0 || element >= (u64(2) << log_n))
    throw StateError(
        cat(op, ": Galois element ", element, ", expected odd and below ", u64(2) << log_n),
        {{"got", element}, {"expected", "odd, below 2N"}});
}

void overlap(const char* op, const ConstView& out, const ConstView& in, bool in_place) {
  if (in_place && same_view(out, in)) return;
  if (share_words(out, in))
    throw StateError(
        cat(op, ": output and input overlap", in_place ? " without being the same view" : ""));
}

void unary(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& a) {
  view(op, ring, out, "output");
  view(op, ring, a, "input");
  shape(op, a, out);
  limbs(op, a.limbs, out.limbs, "input");
  domain(op, a.domain, out.domain, "input");
  overlap(op, out, a, true);
}

void binary(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& a,
            const ConstView& b) {
  unary(op, ring, out, a);
  view(op, ring, b, "second input");
  broadcast(op, "components of the second input", b.shape.components, out.shape.components);
  broadcast(op, "batch of the second input", b.shape.batch, out.shape.batch);
  limbs(op, b.limbs, out.limbs, "second input");
  domain(op, b.domain, out.domain, "second input");
  overlap(op, out, b, true);
}

void transform(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& in,
               Domain from, Domain to) {
  view(op, ring, out, "output");
  view(op, ring, in, "input");
  shape(op, in, out);
  limbs(op, in.limbs, out.limbs, "input");
  domain(op, in.domain, from, "input");
  domain(op, out.domain, to, "output");
  overlap(op, out, in, true);
}

void automorphism(const char* op, const ring::Ring& ring, const ConstView& out, const ConstView& in,
                  u64 galois_element) {
  transform(op, ring, out, in, in.domain, in.domain);
  element(op, galois_element, ring.log_n());
  overlap(op, out, in, false);
}

void automorphism_add(const ring::Ring& ring, const ConstView& out, const ConstView& in,
                      u64 galois_element, const ConstView* addend) {
  const char* op = "automorphism_add";
  automorphism(op, ring, out, in, galois_element);
  if (addend == nullptr) return;
  view(op, ring, *addend, "addend");
  equal(op, "batch of the addend", addend->shape.batch, out.shape.batch);
  limbs(op, addend->limbs, out.limbs, "addend");
  domain(op, addend->domain, out.domain, "addend");
  if (addend->shape.components > out.shape.components)
    equal(op, "components of the addend", addend->shape.components, out.shape.components);
  overlap(op, out, *addend, false);
}

void base_convert(const ring::Ring& ring, const ConstView& out, const ConstView& in,
                  const Prepared<rns::BaseConversion>& prepared) {
  const char* op = "base_convert";
  const rns::BaseConversion& table = table_of(op, prepared);
  view(op, ring, out, "output");
  view(op, ring, in, "input");
  shape(op, in, out);
  limbs(op, in.limbs, table.source, "input");
  limbs(op, out.limbs, table.destination, "output");
  domain(op, in.domain, Domain::coeff, "input");
  domain(op, out.domain, Domain::coeff, "output");
  overlap(op, out, in, false);
}

void source(const char* op, const ring::Ring& ring, const ConstView& out, Domain wanted) {
  source(op, ring, out);
  domain(op, out.domain, wanted, "output");
}

void source(const char* op, const ring::Ring& ring, const ConstView& out) {
  view(op, ring, out, "output");
}

void lift_signed(const ring::Ring& ring, const i64* values, const ConstView& in) {
  const char* op = "lift_signed";
  view(op, ring, in, "input");
  domain(op, in.domain, Domain::coeff, "input");
  if (in.limbs.size() != 1) equal(op, "limbs", in.limbs.size(), 2);
  const u64 d0 = ring.modulus(in.limbs[0]).q;
  const u64 d1 = in.limbs.size() == 2 ? ring.modulus(in.limbs[1]).q : 1;
  if (d0 == d1) throw StateError(cat(op, ": two limbs of the same prime ", d0), {{"got", d0}});
  if (d0 >= (u64(1) << 62) || d1 > ((u64(1) << 62) - 1) / d0)
    throw StateError(cat(op, ": product of the primes ", d0, " and ", d1, ", expected below 2^62"),
                     {{"got", cat(d0, " * ", d1)}, {"expected", "below 2^62"}});
  if (values == nullptr) throw StateError(cat(op, ": output is empty"));
  // The words of `values`, dense, as one limb of 64-bit coefficients.
  PolyShape words = in.shape;
  ++words.log_n;
  const ConstView target(reinterpret_cast<const u32*>(values), words, LimbSet::range(0, 1),
                         Domain::coeff);
  overlap(op, target, in, false);
}

void linear_combination(const ring::Ring& ring, const ConstView& out, std::span<const ConstView> in,
                        std::span<const LimbScalars> scalars) {
  const char* op = "linear_combination";
  if (in.empty()) throw StateError(cat(op, ": no input"), {{"got", 0}});
  equal(op, "scalars", scalars.size(), in.size());
  for (const auto& v : in) unary(op, ring, out, v);
}

}  // namespace crenel::device::checks
