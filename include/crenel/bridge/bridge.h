// The bridge between CKKS and TFHE: encrypted numbers to encrypted messages and back
// (docs/theory/bridge.md). It goes through the middle of a bootstrap with SlotToCoeff first, where
// a ciphertext holds its message in coefficients: each is an LWE ciphertext, which look-up tables
// of TFHE read, and what they give is packed into coefficients again, which EvalMod brings to
// slots.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "crenel/circuits/bootstrapping.h"
#include "crenel/tfhe/evaluator.h"

namespace crenel::bridge {

/// What a server needs beside the keys of both schemes: switching keys between their secrets. No
/// secret. Cheap to copy.
class Keys {
 public:
  struct Data;
  explicit Keys(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  u64 bytes() const;       ///< on the device
  u64 wire_bytes() const;  ///< serialised (uniform halves are seeds)
  /// Of the clients that they lead between.
  const SecretKeyId& ckks_secret_key_id() const;
  const SecretKeyId& tfhe_secret_key_id() const;
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

/// By whoever holds both secrets. Errors of Bridge's constructor for parameters and devices that do
/// not fit together.
Keys make_keys(const ckks::Client& ckks, const tfhe::Client& tfhe);

/// Which numbers messages stand for: m for low + m step.
struct Grid {
  double low = 0.0;
  double step = 1.0;  ///< positive
};

/// Standard deviations by the model of docs/theory/bridge.md, of phases on a circle of length 1.
struct Noise {
  double extracted = 0.0;  ///< what to_messages adds to a number, from SlotToCoeff on
  double reading = 0.0;    ///< of a look-up table or comparison, that reads it
  double looked_up = 0.0;  ///< of what a table gives
  double packed = 0.0;     ///< what packing adds to that
};

/// What the bridge's keys are, without a key or a client. Moduli with special primes, in bits.
struct KeyFacts {
  u64 bytes = 0;            ///< Keys::bytes
  u64 wire_bytes = 0;       ///< Keys::wire_bytes
  u64 middle_dim = 0;       ///< degree of the ring that most of packing computes in
  double log_down = 0.0;    ///< of the key to the TFHE secret, at the degree of its ring
  double log_middle = 0.0;  ///< of keys under the secret between, at degree middle_dim
  double log_last = 0.0;    ///< of those under the CKKS secret, at the degree of its ring
};

/// Made once for two contexts on one device and a number of slots; cheap to copy. Clients' keys are
/// arguments: any number of threads may call it. `ckks` evaluators need the keys of key_request(),
/// `tfhe` evaluators their evaluation keys. Of evaluators that check (ckks::Evaluator::checked)
/// nothing is compared here: messages leave CKKS. Not for recordings.
class Bridge {
 public:
  struct State;
  /// `slots`: of the CKKS ciphertexts, a power of two; 0: all N/2. UnsupportedError for sets that
  /// do not fit: of CKKS other than two primes at level 0, or more than the TFHE ring's security
  /// allows; of TFHE a set that rests under anything but one ring of degree up to N, without
  /// padding, or with packing. ParameterError for CKKS parameters without bootstrapping, StateError
  /// for contexts of two Device objects.
  Bridge(const ckks::Context& ckks, const tfhe::Context& tfhe, u64 slots = 0);

  /// Of the ciphertexts that are taken and given.
  u64 slots() const;
  u32 messages() const;      ///< that a table has entries for, half of the plain modulus
  u32 level() const;         ///< the lowest of ciphertexts that are taken
  u32 output_level() const;  ///< of ciphertexts that are given
  /// The bootstrap whose keys serve the bridge: SlotToCoeff first, real slots.
  const circuits::BootstrapOptions& bootstrap() const;
  /// That bootstrap's keys, as a request for ckks::Client::evaluation_keys. What packing needs
  /// beside them is among the bridge's own.
  ckks::KeyRequest key_request() const;
  /// The bridge's own keys.
  KeyFacts key_facts() const;
  /// What to_messages adds depends on the grid's step. Tables read and answer as by the step of the
  /// TFHE context; an evaluator with keys of further ones (tfhe::EvaluatorOptions) by that with the
  /// most noise.
  Noise noise(const Grid& grid) const;
  /// Of sign(a, threshold, bound).
  Noise noise(double bound) const;

  /// The real parts of the slots as messages modulo the set's p: message j is slot j's nearest
  /// number of the grid, read when a table reads it, and the result carries the noise that the
  /// bridge adds; errors that slots have move numbers. What lies outside of the grid, by more than
  /// half a step, is read as another message: StateError where the ciphertext's bound does not
  /// exclude it and is known. ParameterError for a grid that is none, StateError for level, slots,
  /// batch, components, parameters, device or secret keys that are not those expected.
  tfhe::Ciphertext to_messages(const ckks::Evaluator& ckks, const Keys& keys,
                               const ckks::Ciphertext& a, const Grid& grid) const;
  /// values[m] in slot j for message m in place j: a table of reals, one bootstrap a message, and a
  /// bootstrap of CKKS. The noise of a value is that of the table on the slope of the sine: none,
  /// to first order, for the largest and smallest value. ParameterError unless there are messages()
  /// values, finite, and apart by 1/8 at least; StateError and KeyMissingError as above, and what
  /// tfhe::Evaluator::lut throws.
  ckks::Ciphertext to_slots(const ckks::Evaluator& ckks, const tfhe::Evaluator& tfhe,
                            const Keys& keys, const tfhe::Ciphertext& a,
                            std::span<const double> values) const;
  /// to_slots(to_messages(a)).
  ckks::Ciphertext lut(const ckks::Evaluator& ckks, const tfhe::Evaluator& tfhe, const Keys& keys,
                       const ckks::Ciphertext& a, const Grid& grid,
                       std::span<const double> values) const;
  /// values[1] where a slot is at least `threshold`, values[0] where it is less: on the whole
  /// circle, so finer than a table. `bound`: the largest |slot - threshold|, positive; StateError
  /// where the ciphertext's own allows more. Slots nearer to the threshold than noise(bound) moves
  /// them come out as either.
  ckks::Ciphertext compare(const ckks::Evaluator& ckks, const tfhe::Evaluator& tfhe,
                           const Keys& keys, const ckks::Ciphertext& a, double threshold,
                           double bound, std::span<const double> values) const;

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace crenel::bridge
