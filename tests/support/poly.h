// Polynomials of tests: host words with a view that may be a window of a larger polynomial.
#pragma once

#include "ring/poly_view.h"
#include "ring/ring.h"
#include "support/random.h"

namespace crenel::test {

using ring::Domain;
using ring::LimbSet;
using ring::PolyShape;
using ring::PolyView;

/// What surrounds the viewed part inside its allocation.
struct Padding {
  u32 limbs_before = 0, limbs_after = 0;
  u32 components_before = 0, components_after = 0;
};

/// `words` is the whole allocation, padding included; the view's data is null plus `offset` words.
struct TestPoly {
  std::vector<u32> words;
  u64 offset = 0;
  PolyView<u32> view;

  PolyView<u32> at(u32* memory) const {
    PolyView<u32> v = view;
    v.data = memory + offset;
    return v;
  }
  PolyView<u32> host() { return at(words.data()); }
};

inline TestPoly empty_poly(PolyShape shape, const LimbSet& limbs, Domain domain, Padding pad = {}) {
  TestPoly p;
  p.view = PolyView<u32>(nullptr, shape, limbs, domain);
  const u64 all_limbs = pad.limbs_before + limbs.size() + pad.limbs_after;
  const u64 all_components = pad.components_before + shape.components + pad.components_after;
  p.view.component_stride = all_limbs << shape.log_n;
  p.view.batch_stride = p.view.component_stride * all_components;
  p.offset =
      (u64(pad.limbs_before) << shape.log_n) + pad.components_before * p.view.component_stride;
  p.words.resize(p.view.batch_stride * shape.batch);
  return p;
}

/// Not canonical, not anything: what an output holds before the operation.
inline void fill_garbage(TestPoly& p, Rng& rng) {
  for (auto& word : p.words) word = static_cast<u32>(rng());
}

inline void fill_canonical(TestPoly& p, const ring::Ring& ring, Rng& rng,
                           Fill fill = Fill::random) {
  auto v = p.host();
  for (u32 b = 0; b < v.shape.batch; ++b)
    for (u32 c = 0; c < v.shape.components; ++c)
      for (u32 l = 0; l < v.limbs.size(); ++l)
        fill_limb<u32>(v.limb(b, c, l), v.ring_dim(), ring.modulus(v.limbs[l]).q, fill, rng);
}

/// An output before the operation.
inline TestPoly garbage_poly(Rng& rng, PolyShape shape, const LimbSet& limbs, Domain domain,
                             Padding pad = {}) {
  auto p = empty_poly(shape, limbs, domain, pad);
  fill_garbage(p, rng);
  return p;
}

/// An input: canonical inside the view, garbage around it.
inline TestPoly random_poly(const ring::Ring& ring, Rng& rng, PolyShape shape, const LimbSet& limbs,
                            Domain domain, Padding pad = {}, Fill fill = Fill::random) {
  auto p = garbage_poly(rng, shape, limbs, domain, pad);
  fill_canonical(p, ring, rng, fill);
  return p;
}

/// A shape with everything around it, for loops over shapes.
struct ShapeCase {
  const char* name;
  u32 log_n;
  u32 components;
  u32 batch;
  u32 first_limb, limb_count;
  Padding pad;

  PolyShape shape() const { return {log_n, components, batch}; }
  LimbSet limbs() const { return LimbSet::range(first_limb, first_limb + limb_count); }
};

}  // namespace crenel::test
