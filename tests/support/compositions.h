// The default compositions of PolyKernels over a backend's own primitives, also where the backend
// overrides them: what an override is compared with.
#pragma once

#include <utility>

#include "device/poly/kernels.h"

namespace crenel::device {

/// Arguments are not checked: they must be such that the public operation takes them. A composition
/// of key products reads keys that are given directly, on devices whose memory is not the host's.
struct Compositions {
  using View = PolyKernels::View;
  using ConstView = PolyKernels::ConstView;

  PolyKernels& kernels;

  // Those with default arguments in the public operation.
  void automorphism_add(Stream& stream, const View& out, const ConstView& in, u64 element,
                        const ConstView* addend = nullptr) {
    kernels.PolyKernels::do_automorphism_add(stream, out, in, element, addend);
  }
  void key_switch_extended(Stream& stream, const View& out, const ConstView& in,
                           const Prepared<rns::ModUp>& table, const KeyView& key, u32 first_digit,
                           const ConstView* addend = nullptr, const LimbScalars* factor = nullptr) {
    kernels.PolyKernels::do_key_switch_extended(stream, out, in, table, key, first_digit, addend,
                                                factor);
  }

#define CRENEL_COMPOSITION(op)                                 \
  template <class... Args>                                     \
  void op(Args&&... args) {                                    \
    kernels.PolyKernels::do_##op(std::forward<Args>(args)...); \
  }
  CRENEL_COMPOSITION(tensor)
  CRENEL_COMPOSITION(tensor_square)
  CRENEL_COMPOSITION(linear_combination)
  CRENEL_COMPOSITION(plain_multiply_sum)
  CRENEL_COMPOSITION(mod_up)
  CRENEL_COMPOSITION(key_multiply)
  CRENEL_COMPOSITION(key_switch_rotated)
  CRENEL_COMPOSITION(key_switch_product)
  CRENEL_COMPOSITION(divide)
  CRENEL_COMPOSITION(hoisted_rotate_sum)
  CRENEL_COMPOSITION(hoisted_plain_sums)
#undef CRENEL_COMPOSITION
};

}  // namespace crenel::device

namespace crenel::test {

inline device::Compositions compositions(device::PolyKernels& kernels) { return {kernels}; }

}  // namespace crenel::test
