// The private half of a Bridge: everything but keys.
#pragma once

#include "bridge/keys.h"
#include "bridge/packing.h"
#include "circuits/bootstrapping/state.h"
#include "tfhe/evaluator_state.h"

namespace crenel::bridge {

struct Bridge::State {
  using Bootstrap = circuits::Bootstrapper::State;
  using Ct = ckks::Ciphertext;

  ckks::Context ckks;
  tfhe::Context tfhe;
  std::shared_ptr<Bootstrap> boot;
  rlwe::RingSwitch rings;
  Packing packing;
  device::Buffer positions;  ///< [slots] coefficients of the slots

  State(const ckks::Context& c, const tfhe::Context& t, u64 slots);

  u64 slots() const { return boot->plan.slots(); }
  u32 plain_modulus() const { return tfhe.params().spec().plain_modulus; }
  u32 log_q() const { return tfhe.state().plan.log_lwe_modulus; }
  u32 level() const { return boot->plan.levels.input + 1; }
  u32 output_level() const { return boot->plan.levels.output; }
  double q0() const { return boot->plan.q0; }

  /// Numbers as phases: (slot - zero) / circle, on a circle of length 1.
  struct Circle {
    double zero = 0.0;
    double length = 1.0;  ///< positive
  };
  Circle circle(const Grid& grid) const;
  Circle circle(double threshold, double bound) const;
  /// log2 of the integer that coefficients are multiplied by at level 0.
  u32 scale_up(const Circle& circle) const;
  /// Of phases of extracted rows, in squared units of q.
  double extracted_variance(const Circle& circle) const;
  /// Of phases of packed rows, in squared units of the modulus of level 0.
  double packed_variance() const;

  void check(const ckks::Evaluator& ev, const Keys& keys, const Ct& a) const;
  void check(const Keys& keys) const;
  void check(const tfhe::Evaluator& ev, const Keys& keys) const;
  void check_keys(const ckks::Evaluator& ev) const;
  /// Rows at rest, one a slot.
  device::Buffer extracted(const ckks::Evaluator& ev, const Keys& keys, const Ct& a,
                           const Circle& circle) const;
  /// The values middle + reach sin(2 pi t) of rows whose phases are t, in slots.
  Ct slots_of(const ckks::Evaluator& ev, const Keys& keys, const u32* rows, double middle,
              double reach) const;
};

}  // namespace crenel::bridge
