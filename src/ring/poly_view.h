// PolyView: a batch of RNS polynomials in host or device memory, without ownership.
#pragma once

#include <type_traits>

#include "rns/limb_set.h"

namespace crenel::ring {

using rns::kMaxLimbs;
using rns::LimbSet;

/// Coefficient form, or evaluation form in bit-reversed order: element i of a limb modulo q holds
/// a(psi^(2 brev(i) + 1)), psi the ring's primitive 2N-th root modulo q, brev on log_n bits.
enum class Domain : u8 { coeff, eval };

struct PolyShape {
  u32 log_n = 0;
  u32 components = 1;  ///< polynomials of one ciphertext, or key-switching digits
  u32 batch = 1;

  u64 ring_dim() const { return u64(1) << log_n; }
  u32 polys() const { return components * batch; }
  friend bool operator==(const PolyShape&, const PolyShape&) = default;
};

/// Layout [batch][component][limb][coefficient]; limbs are contiguous inside a component and
/// coefficients inside a limb; the two outer strides are free (in words), so that a window of the
/// limbs of a larger polynomial is a view too. Word is const for inputs.
template <class Word>
struct PolyView {
  Word* data = nullptr;
  PolyShape shape;
  LimbSet limbs;
  Domain domain = Domain::eval;
  u64 component_stride = 0;
  u64 batch_stride = 0;

  PolyView() = default;
  /// Dense view.
  PolyView(Word* d, PolyShape s, const LimbSet& l, Domain dom)
      : data(d),
        shape(s),
        limbs(l),
        domain(dom),
        component_stride(u64(l.size()) << s.log_n),
        batch_stride((u64(l.size()) << s.log_n) * s.components) {}

  /// Mutable to const.
  template <class Other, class = std::enable_if_t<std::is_same_v<const Other, Word> &&
                                                  !std::is_same_v<Other, Word>>>
  PolyView(const PolyView<Other>& v)  // NOLINT: implicit on purpose
      : data(v.data),
        shape(v.shape),
        limbs(v.limbs),
        domain(v.domain),
        component_stride(v.component_stride),
        batch_stride(v.batch_stride) {}

  u64 ring_dim() const { return shape.ring_dim(); }
  u64 words() const { return u64(shape.polys()) * limbs.size() * ring_dim(); }
  Word* limb(u32 batch, u32 component, u32 limb_index) const {
    return data + batch * batch_stride + component * component_stride +
           (u64(limb_index) << shape.log_n);
  }
  /// The components [first, first + count).
  PolyView components(u32 first, u32 count) const {
    PolyView v = *this;
    v.data = data + first * component_stride;
    v.shape.components = count;
    return v;
  }
  /// The batch entries [first, first + count).
  PolyView rows(u32 first, u32 count) const {
    PolyView v = *this;
    v.data = data + first * batch_stride;
    v.shape.batch = count;
    return v;
  }
  /// The limbs at positions [first, first + count) of this view.
  PolyView limb_window(u32 first, u32 count) const {
    PolyView v = *this;
    v.data = data + (u64(first) << shape.log_n);
    v.limbs = LimbSet();
    for (u32 i = 0; i < count; ++i) v.limbs.push_back(limbs[first + i]);
    return v;
  }
  /// The contiguous run of limbs named by `wanted`; throws StateError when it is not one.
  PolyView restrict_to(const LimbSet& wanted) const {
    const int first = wanted.empty() ? 0 : limbs.find(wanted[0]);
    bool ok = first >= 0 && first + wanted.size() <= limbs.size();
    for (u32 i = 0; ok && i < wanted.size(); ++i) ok = limbs[first + i] == wanted[i];
    if (!ok) throw StateError("limb window is not a contiguous part of the polynomial");
    return limb_window(static_cast<u32>(first), wanted.size());
  }
};

}  // namespace crenel::ring
