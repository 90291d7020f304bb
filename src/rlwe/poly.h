// Poly: a batch of RNS polynomials with its memory.
#pragma once

#include "device/apart.h"
#include "device/poly/kernels.h"

namespace crenel::rlwe {

using Word = u32;  // the residue word of the 25-30 prime system (docs/design/0001)
using View = ring::PolyView<Word>;
using ConstView = ring::PolyView<const Word>;
using Scalars = device::LimbScalars;
using KeyView = device::KeyView;
using ring::Domain;
using ring::LimbSet;
using ring::PolyShape;

class Poly {
 public:
  Poly() = default;
  /// Uninitialised memory from the stream's pool; `secret` memory is wiped when released.
  Poly(device::Stream& stream, PolyShape shape, const LimbSet& limbs, Domain domain,
       bool secret = false)
      : shape_(shape), limbs_(limbs), domain_(domain) {
    buffer_ = stream.allocate_limbs(limbs_, rows(secret, false));
  }

  /// Uninitialised memory of just its size, for evaluation keys.
  static Poly kept(device::Stream& stream, PolyShape shape, const LimbSet& limbs, Domain domain) {
    Poly p;
    p.shape_ = shape, p.limbs_ = limbs, p.domain_ = domain;
    p.buffer_ = stream.allocate_limbs(limbs, p.rows(false, true));
    return p;
  }

  /// A copy that operations on memory of either kind read (device/apart.h).
  Poly shared_between_groups() const {
    Poly p;
    p.shape_ = shape_, p.limbs_ = limbs_, p.domain_ = domain_;
    p.buffer_ = device::share_between_groups(stream(), data());
    return p;
  }

  explicit operator bool() const { return static_cast<bool>(buffer_); }
  const PolyShape& shape() const { return shape_; }
  const LimbSet& limbs() const { return limbs_; }
  Domain domain() const { return domain_; }
  u64 words() const { return u64(shape_.polys()) * limbs_.size() * shape_.ring_dim(); }
  std::size_t bytes() const { return words() * sizeof(Word); }
  /// More than bytes() where groups of parts share them.
  std::size_t memory_bytes() const { return buffer_.bytes(); }
  Word* data() const { return buffer_.as<Word>(); }
  device::Stream& stream() const { return *buffer_.stream(); }

  View view() { return View(data(), shape_, limbs_, domain_); }
  ConstView view() const { return ConstView(data(), shape_, limbs_, domain_); }
  /// A view that claims the other domain: for in-place transforms.
  View view_as(Domain domain) { return View(data(), shape_, limbs_, domain); }
  void set_domain(Domain domain) { domain_ = domain; }

  Poly clone(device::Stream& stream) const {
    Poly copy(stream, shape_, limbs_, domain_);
    stream.copy(copy.data(), data(), bytes());
    return copy;
  }

 private:
  device::Stream::LimbRows rows(bool secret, bool exact) const {
    return {shape_.polys(), sizeof(Word) << shape_.log_n, secret, exact};
  }

  device::Buffer buffer_;
  PolyShape shape_;
  LimbSet limbs_;
  Domain domain_ = Domain::eval;
};

}  // namespace crenel::rlwe
