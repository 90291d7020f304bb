// What the evaluator's files share: state, checks, result construction.
#pragma once

#include <string_view>

#include "ckks/key_demand.h"
#include "ckks/objects.h"

namespace crenel::ckks {

class Observer;  // ckks/observer.h

/// Two scales are equal when they differ by rounding of the bookkeeping only.
inline constexpr double kScaleTolerance = 1e-12;
bool scales_agree(double a, double b);

// Rules of metadata, of ciphertexts and of their error bounds alike.

/// StateError for an operation that needs a higher level than what it is given has: fields
/// operation, level, needed, and `more`; the message says what to do. `why` follows the levels.
[[noreturn]] void refuse_level(const Params& params, std::string_view operation, u32 level,
                               u32 needed, std::vector<ErrorField> more = {},
                               const std::string& why = {});
/// StateError unless level and slots agree; with `scale` also the scales.
void check_metadata(const Metadata& a, const Metadata& b, bool scale);
/// Metadata of a product: refuses a scale that leaves the modulus of the level no room for a
/// message.
Metadata product_metadata(const Params& params, Metadata meta, double factor_scale, bool real);
/// Metadata after rescaling: the scale snaps to the canonical one where it is one. StateError at
/// level 0, naming `operation`, and where the scale would be below 2^-10: the message is lost in
/// rounding long before.
Metadata rescaled_metadata(const Params& params, Metadata meta,
                           std::string_view operation = "rescale");
/// Scale of a constant whose product with a message of this level (>= 1) and scale, rescaled, is
/// canonical. StateError when the scale leaves no room for a constant: an unrescaled product, say.
double constant_scale(const Params& params, u32 level, double scale);
/// Metadata of a sum or difference, and of a product before its rescale; `operation` is refused.
Metadata sum_metadata(const Evaluator::State& s, const Metadata& a, const Metadata& b,
                      const char* operation);
Metadata product_of(const Evaluator::State& s, const Metadata& a, const Metadata& b,
                    const char* operation);
/// Steps in [0, slots).
u64 reduced_steps(i64 steps, u64 slots);
/// Refuses a relabelling of `slots` slots as `wanted` that Evaluator::with_slots refuses.
void check_relabelling(const Params& params, u64 slots, u64 wanted, bool repeating);
/// Refuses a sum over `count` slots that is none.
void check_sum(u64 count, u64 slots);

struct Evaluator::State {
  Context context;
  EvaluationKeys keys;
  std::shared_ptr<device::Stream> stream;
  std::shared_ptr<rlwe::KeySource> source;  ///< where the keys are read; null without keys
  /// Of Evaluator::checked: every public operation is handed to it. Null otherwise.
  std::shared_ptr<const Observer> observer = {};

  const Params& params() const { return context.params(); }
  const rlwe::RingContext& ring() const { return *context.state().ring; }
  device::PolyKernels& kernels() const { return ring().kernels(); }
  rlwe::KeySwitcher switcher() const { return rlwe::KeySwitcher(ring(), *stream); }

  /// Uninitialised polynomial on the window of `level`.
  rlwe::Poly poly(u32 components, u32 batch, u32 level) const {
    return rlwe::Poly(*stream, {ring().log_n(), components, batch}, ring().window(level),
                      ring::Domain::eval);
  }
  Ciphertext wrap(rlwe::Poly poly, Metadata meta) const;
  /// A copy made on this evaluator's stream.
  Ciphertext copy(const Ciphertext& a) const {
    return wrap(a.data().poly.clone(*stream), a.metadata());
  }

  /// StateError when this is no evaluator for what `made` made (a transform, a recording).
  void check_serves(const Context& made) const {
    expect_home(params().id(), stream->device(), made.state(), "evaluator");
  }
  void check(const Ciphertext& a) const;  ///< context, and the secret key where there are keys
  void check(const Plaintext& a) const;
  void check_components(const Ciphertext& a, u32 expected, const char* operation) const;
  /// Everything two ciphertexts must share.
  void check_pair(const Ciphertext& a, const Ciphertext& b, bool scale) const;
  /// Likewise; a plaintext of batch 1 serves every row of a.
  void check_pair(const Ciphertext& a, const Plaintext& b, bool scale) const;
  Metadata product_metadata(Metadata meta, double factor_scale, bool real) const {
    return ckks::product_metadata(params(), meta, factor_scale, real);
  }
  void check_can_rescale(const Ciphertext& a, std::string_view operation) const;

  /// The highest level that the key serves, rlwe::SwitchKey::kAny for all; nothing without it.
  std::optional<u32> key_level(rlwe::KeyId id) const {
    return source ? source->max_level(id) : std::nullopt;
  }
  /// Whether there is one for it, aligned or not.
  bool has_key(rlwe::KeyId id, u32 level) const { return serves(choice(id, level)); }
  /// A key, and the level that operations with it are at: aligned where there is such a key, whose
  /// digits are fewer, the ordinary one else, whether it is there or not.
  struct KeyChoice {
    rlwe::KeyId id;
    u32 level;
  };
  KeyChoice choice(rlwe::KeyId id, u32 level) const;
  /// Of keys that share the digits of one operand: aligned where all of them are there, ordinary
  /// where those are, nothing else. rlwe::kNoKey is both.
  struct KeyChoices {
    std::vector<rlwe::KeyId> ids;
    u32 level;
  };
  std::optional<KeyChoices> choices(std::span<const rlwe::KeyId> ids, u32 level) const;
  bool serves(const KeyChoice& key) const {
    const auto highest = key_level(key.id);
    return highest && rlwe::serves(*highest, key.level);
  }
  /// For work on this stream; ids of keys that are there, or rlwe::kNoKey.
  rlwe::KeyLease lease(std::span<const rlwe::KeyId> ids) const;
  rlwe::KeyLease lease(rlwe::KeyId id) const { return lease(std::span(&id, 1)); }
  /// KeyMissingError that names every key that is not there for this level; `what` asks for them.
  void expect_keys(std::span<const rlwe::KeyId> ids, u32 level, const char* what) const;
  /// KeyMissingError unless the relinearisation key is there for this level.
  void require_relinearisation(u32 level, const char* operation) const;
  /// Element of a rotation of vectors with `slots` slots for which a key of this level exists
  /// (rotations that agree modulo `slots` are interchangeable); 1 when no key is needed, 0 when
  /// there is none.
  u64 find_rotation(i64 steps, u64 slots, u32 level) const;
  /// SwitchKey::kAny where find_rotation() finds a key, aligned or not; else the highest level that
  /// keys which are not aligned serve, nothing where there is none.
  std::optional<u32> rotation_level(i64 steps, u64 slots, u32 level) const;
  /// Elements of all of them; KeyMissingError names every one without a key of this level.
  std::vector<u64> rotation_elements(std::span<const i64> steps, u64 slots, u32 level,
                                     const char* operation) const;
  u64 rotation_element(i64 steps, u64 slots, u32 level, const char* operation = "rotate") const {
    const u64 element = find_rotation(steps, slots, level);
    if (element != 0) return element;
    return rotation_elements(std::span(&steps, 1), slots, level, operation)[0];
  }
  u64 conjugation_element(u32 level) const;

  /// Scale after dividing by rp(level); snaps to the canonical scale where it is one.
  double rescaled(double scale, u32 level) const {
    return rescaled_metadata(params(), {level, scale, 0, false, {}}).scale;
  }
  double constant_scale(const Ciphertext& a) const {
    return ckks::constant_scale(params(), a.level(), a.scale());
  }
};

}  // namespace crenel::ckks
