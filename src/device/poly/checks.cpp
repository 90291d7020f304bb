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

template <class W>
void shape(const char* op, const ConstView<W>& got, const ConstView<W>& expected) {
  equal(op, "components", got.shape.components, expected.shape.components);
  equal(op, "batch", got.shape.batch, expected.shape.batch);
}

void broadcast(const char* op, const char* what, u64 got, u64 expected) {
  if (got != 1) equal(op, what, got, expected);
}

// One past the last word.
template <class W>
const W* end_of(const ConstView<W>& v) {
  return v.limb(v.shape.batch - 1, v.shape.components - 1, 0) +
         (u64(v.limbs.size()) << v.shape.log_n);
}

template <class W>
bool same_view(const ConstView<W>& a, const ConstView<W>& b) {
  return a.data == b.data && a.shape == b.shape && a.limbs == b.limbs &&
         (a.shape.components == 1 || a.component_stride == b.component_stride) &&
         (a.shape.batch == 1 || a.batch_stride == b.batch_stride);
}

// Exact test for interleaved views, such as windows of one polynomial: poly against poly.
template <class W>
bool share_words(const ConstView<W>& x, const ConstView<W>& y) {
  if (x.words() == 0 || y.words() == 0) return false;
  if (end_of(x) <= y.data || end_of(y) <= x.data) return false;
  const u64 x_words = u64(x.limbs.size()) << x.shape.log_n, y_words = u64(y.limbs.size())
                                                                      << y.shape.log_n;
  for (u32 i = 0; i < x.shape.polys(); ++i)
    for (u32 j = 0; j < y.shape.polys(); ++j) {
      const W* p = x.limb(i / x.shape.components, i % x.shape.components, 0);
      const W* q = y.limb(j / y.shape.components, j % y.shape.components, 0);
      if (p < q + y_words && q < p + x_words) return true;
    }
  return false;
}

}  // namespace

template <class W>
void view(const char* op, const ring::Ring<W>& ring, const ConstView<W>& v, const char* name) {
  if (v.shape.log_n != ring.log_n())
    throw StateError(
        cat(op, ": ", name, " has log_n ", v.shape.log_n, ", the ring has ", ring.log_n()),
        {{"got", cat(v.shape.log_n)}, {"expected", cat(ring.log_n())}});
  for (u32 i = 0; i < v.limbs.size(); ++i)
    if (v.limbs[i] >= ring.prime_count())
      throw StateError(cat(op, ": ", name, " has prime id ", v.limbs[i], ", the ring has ",
                           ring.prime_count(), " primes"),
                       {{"got", cat(v.limbs[i])}, {"expected", cat(ring.prime_count())}});
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
                     {{"got", cat(got)}, {"expected", cat(expected)}});
}

void domain(const char* op, Domain got, Domain expected, const char* name) {
  if (got != expected)
    throw StateError(cat(op, ": ", name, " is in ", text(got), " form, expected ", text(expected)),
                     {{"got", text(got)}, {"expected", text(expected)}});
}

void element(const char* op, u64 element, u32 log_n) {
  if (element % 2 == 0 || element >= (u64(2) << log_n))
    throw StateError(
        cat(op, ": Galois element ", element, ", expected odd and below ", u64(2) << log_n),
        {{"got", cat(element)}, {"expected", "odd, below 2N"}});
}

template <class W>
void overlap(const char* op, const ConstView<W>& out, const ConstView<W>& in, bool in_place) {
  if (in_place && same_view(out, in)) return;
  if (share_words(out, in))
    throw StateError(
        cat(op, ": output and input overlap", in_place ? " without being the same view" : ""));
}

template <class W>
void unary(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out,
           const ConstView<W>& a) {
  view<W>(op, ring, out, "output");
  view<W>(op, ring, a, "input");
  shape<W>(op, a, out);
  limbs(op, a.limbs, out.limbs, "input");
  domain(op, a.domain, out.domain, "input");
  overlap<W>(op, out, a, true);
}

template <class W>
void binary(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out,
            const ConstView<W>& a, const ConstView<W>& b) {
  unary<W>(op, ring, out, a);
  view<W>(op, ring, b, "second input");
  broadcast(op, "components of the second input", b.shape.components, out.shape.components);
  broadcast(op, "batch of the second input", b.shape.batch, out.shape.batch);
  limbs(op, b.limbs, out.limbs, "second input");
  domain(op, b.domain, out.domain, "second input");
  overlap<W>(op, out, b, true);
}

template <class W>
void transform(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out,
               const ConstView<W>& in, Domain from, Domain to) {
  view<W>(op, ring, out, "output");
  view<W>(op, ring, in, "input");
  shape<W>(op, in, out);
  limbs(op, in.limbs, out.limbs, "input");
  domain(op, in.domain, from, "input");
  domain(op, out.domain, to, "output");
  overlap<W>(op, out, in, true);
}

template <class W>
void automorphism(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out,
                  const ConstView<W>& in, u64 galois_element) {
  transform<W>(op, ring, out, in, in.domain, in.domain);
  element(op, galois_element, ring.log_n());
  overlap<W>(op, out, in, false);
}

template <class W>
void automorphism_add(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
                      u64 galois_element, const ConstView<W>* addend) {
  const char* op = "automorphism_add";
  automorphism<W>(op, ring, out, in, galois_element);
  if (addend == nullptr) return;
  view<W>(op, ring, *addend, "addend");
  equal(op, "batch of the addend", addend->shape.batch, out.shape.batch);
  limbs(op, addend->limbs, out.limbs, "addend");
  domain(op, addend->domain, out.domain, "addend");
  if (addend->shape.components > out.shape.components)
    equal(op, "components of the addend", addend->shape.components, out.shape.components);
  overlap<W>(op, out, *addend, false);
}

template <class W>
void base_convert(const ring::Ring<W>& ring, const ConstView<W>& out, const ConstView<W>& in,
                  const rns::BaseConversion<W>& table) {
  const char* op = "base_convert";
  view<W>(op, ring, out, "output");
  view<W>(op, ring, in, "input");
  shape<W>(op, in, out);
  limbs(op, in.limbs, table.source, "input");
  limbs(op, out.limbs, table.destination, "output");
  domain(op, in.domain, Domain::coeff, "input");
  domain(op, out.domain, Domain::coeff, "output");
  overlap<W>(op, out, in, false);
}

template <class W>
void source(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out, Domain wanted) {
  source<W>(op, ring, out);
  domain(op, out.domain, wanted, "output");
}

template <class W>
void source(const char* op, const ring::Ring<W>& ring, const ConstView<W>& out) {
  view<W>(op, ring, out, "output");
}

template <class W>
void lift_signed(const ring::Ring<W>& ring, const i64* values, const ConstView<W>& in) {
  const char* op = "lift_signed";
  view<W>(op, ring, in, "input");
  domain(op, in.domain, Domain::coeff, "input");
  if (in.limbs.size() != 1) equal(op, "limbs", in.limbs.size(), 2);
  const u64 d0 = ring.modulus(in.limbs[0]).q;
  const u64 d1 = in.limbs.size() == 2 ? ring.modulus(in.limbs[1]).q : 1;
  if (d0 == d1) throw StateError(cat(op, ": two limbs of the same prime ", d0), {{"got", cat(d0)}});
  if (d0 >= (u64(1) << 62) || d1 > ((u64(1) << 62) - 1) / d0)
    throw StateError(cat(op, ": product of the primes ", d0, " and ", d1, ", expected below 2^62"),
                     {{"got", cat(d0, " * ", d1)}, {"expected", "below 2^62"}});
  if (values == nullptr) throw StateError(cat(op, ": output is empty"));
  // The words of `values`, dense, as one limb of 64-bit coefficients.
  PolyShape words = in.shape;
  if (sizeof(W) < sizeof(i64)) ++words.log_n;
  const ConstView<W> target(reinterpret_cast<const W*>(values), words, LimbSet::range(0, 1),
                            Domain::coeff);
  overlap<W>(op, target, in, false);
}

template <class W>
void linear_combination(const ring::Ring<W>& ring, const ConstView<W>& out,
                        std::span<const ConstView<W>> in, std::span<const LimbScalars<W>> scalars) {
  const char* op = "linear_combination";
  if (in.empty()) throw StateError(cat(op, ": no input"), {{"got", "0"}});
  equal(op, "scalars", scalars.size(), in.size());
  for (const auto& v : in) unary<W>(op, ring, out, v);
}

#define CRENEL_INSTANTIATE(W)                                                                   \
  template void view<W>(const char*, const ring::Ring<W>&, const ConstView<W>&, const char*);   \
  template void overlap<W>(const char*, const ConstView<W>&, const ConstView<W>&, bool);        \
  template void unary<W>(const char*, const ring::Ring<W>&, const ConstView<W>&,                \
                         const ConstView<W>&);                                                  \
  template void binary<W>(const char*, const ring::Ring<W>&, const ConstView<W>&,               \
                          const ConstView<W>&, const ConstView<W>&);                            \
  template void transform<W>(const char*, const ring::Ring<W>&, const ConstView<W>&,            \
                             const ConstView<W>&, Domain, Domain);                              \
  template void automorphism<W>(const char*, const ring::Ring<W>&, const ConstView<W>&,         \
                                const ConstView<W>&, u64);                                      \
  template void automorphism_add<W>(const ring::Ring<W>&, const ConstView<W>&,                  \
                                    const ConstView<W>&, u64, const ConstView<W>*);             \
  template void lift_signed<W>(const ring::Ring<W>&, const i64*, const ConstView<W>&);          \
  template void linear_combination<W>(const ring::Ring<W>&, const ConstView<W>&,                \
                                      std::span<const ConstView<W>>,                            \
                                      std::span<const LimbScalars<W>>);                         \
  template void base_convert<W>(const ring::Ring<W>&, const ConstView<W>&, const ConstView<W>&, \
                                const rns::BaseConversion<W>&);                                 \
  template void source<W>(const char*, const ring::Ring<W>&, const ConstView<W>&, Domain);      \
  template void source<W>(const char*, const ring::Ring<W>&, const ConstView<W>&);
CRENEL_INSTANTIATE(u32)
CRENEL_INSTANTIATE(u64)
#undef CRENEL_INSTANTIATE

}  // namespace crenel::device::checks
