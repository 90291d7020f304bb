// CKKS bootstrapping: a ciphertext of the last level to one with levels to spend.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crenel/circuits/linear_transform.h"

namespace crenel::circuits {

/// What the slots hold.
enum class BootstrapMessage : u8 {
  complex,  ///< anything
  real,     ///< real numbers: the imaginary part of the result is removed (one more key switch)
  pair,     ///< u + i v of two real vectors: Bootstrapper::pair refreshes both at once
};

/// Which transform comes first.
enum class BootstrapOrder : u8 {
  coeff_to_slot_first,  ///< level 0 in; the message ratio holds for coefficients
  slot_to_coeff_first,  ///< cheap SlotToCoeff on the last levels; the message ratio holds for slots
};

/// What the slots' values are like, all within 1: what a message ratio is chosen for.
enum class BootstrapValues : u8 {
  unknown,       ///< anything
  centred,       ///< around zero, without a pattern that repeats: their coefficients are small
  non_negative,  ///< spread over [0, 1]: pixels, probabilities
  constant,      ///< the same number everywhere, or nearly
};

/// Work that a bootstrap saves, each on its own: what an ablation turns off. None: wherever the
/// parameters and the other options allow it. true: ParameterError where they do not.
struct BootstrapSavings {
  /// The modulus is raised beyond that of the level by two special primes, and the first factor of
  /// CoeffToSlot works on what is raised: it takes no level, its keys are a dnum-th of the size and
  /// lead back from the sparse secret at once, and nothing is decomposed. CoeffToSlot may have a
  /// factor more. Needs hoisted keys, two factors of CoeffToSlot, up to 5 stages in the first,
  /// enough special primes, and matrices of CoeffToSlot whose factors multiply by 1 at most.
  std::optional<bool> over_mod_raise;
  /// EvalMod's sums are made in the memory of their first term, and limbs of higher levels read
  /// where they lie: no copies, the same bits.
  bool folded_sums = true;
  /// With a target_level the modulus is raised only as far as that needs: CoeffToSlot and EvalMod
  /// compute with the primes of a low level and their own, without those between. Where the
  /// parameters have such a level (ckks::Params::is_short_base) and the target is low enough.
  bool short_raise = true;
  /// CoeffToSlot first, a real vector of all slots: its polynomial is symmetric, so half of the
  /// coefficients are all of it, and EvalMod runs on one ciphertext in place of two. Not for packs,
  /// and where the message ratio leaves at least one bit to scale the message up by.
  bool real_symmetry = true;
  /// Of key requests: products and rotations at aligned levels (ckks::Params::highest_aligned) get
  /// keys of their own, which save a digit there. Rotations by other keys that are wanted at such a
  /// level and below it serve those below.
  bool aligned_keys = true;

  bool operator==(const BootstrapSavings&) const = default;
};

/// What a bootstrap takes and gives, and how it computes. What is left open is as Bootstrapper's
/// constructors say; options that the parameters cannot serve are its ParameterError.
struct BootstrapOptions {
  /// Of a ciphertext: power of two; 0: all N/2 (N/2 over pack), or as many as the keys at hand were
  /// made for.
  u64 slots = 0;
  /// Ciphertexts that share one bootstrap, of pack * slots slots: a power of two, at most N/2 over
  /// slots. Without level, mask or loss of message ratio, by monomials; a rotation a doubling takes
  /// them apart. SlotToCoeff first, where slots count and not coefficients, the range of
  /// messages is smaller by the factor pack.
  u32 pack = 1;
  /// log2 of q0 / (scale * largest coefficient that is resolved): precision against the size of
  /// messages, see docs/guide/bootstrap_precision.md. 1..log2(q0 / scale). Default: with which the
  /// expected largest error for `values` is least.
  std::optional<u32> message_ratio;
  BootstrapValues values = BootstrapValues::unknown;
  BootstrapMessage message = BootstrapMessage::complex;
  BootstrapOrder order = BootstrapOrder::coeff_to_slot_first;
  /// Degree of the arcsine correction after the sine: 0 (none) or 3, which takes three normal
  /// levels (two at scales of 48 bits and more).
  u32 arcsine_degree = 0;
  /// Level of the result; the lower, the fewer primes everything after ModRaise computes with, and
  /// the smaller the keys. Default: the highest.
  std::optional<u32> target_level;
  /// 2: Meta-BTS: the error of the first bootstrap is bootstrapped too. The result's scale is then
  /// larger by 2^correction_bits().
  u32 iterations = 1;
  /// Default: hoisted, or minimal where the keys at hand serve nothing else. Slots are as many as
  /// the keys were made for only where neither mode nor stages are given.
  std::optional<KeyMode> keys;
  /// Butterfly stages of each factor; empty: 4 (5 with OverModRaise) and 3 factors of about equal
  /// size.
  std::vector<u32> coeff_to_slot_stages, slot_to_coeff_stages;
  BootstrapSavings savings;
  /// Replay a recorded graph where the device has them; eager results are the same bits.
  bool graph = true;
};

/// Levels of one bootstrap, from the input to the output.
struct BootstrapLevels {
  u32 input;          ///< level the input must have
  u32 raised;         ///< after ModRaise
  u32 eval_mod;       ///< start of EvalMod
  u32 eval_mod_end;   ///< its end: eight levels lower, or `short_base` where there is one
  u32 slot_to_coeff;  ///< start of SlotToCoeff
  u32 output;
  /// A target_level's saving: levels from eval_mod_end on have the primes of this normal level in
  /// place of all normal ones.
  std::optional<u32> short_base = {};
};

/// What is known of the slots. What counts is how large their polynomial's coefficients are.
enum class MessageKind {
  uniform_complex,  ///< real and imaginary parts uniform on [-B, B]
  uniform_real,     ///< uniform on [-B, B]
  uniform_unit,     ///< uniform on [0, B]
  constant,         ///< B in every slot
  one_hot,          ///< B in one slot, 0 in the others
  periodic,         ///< `period` numbers uniform on [-B, B], repeated
  bound,            ///< the worst of all messages with every |slot| <= B (it is the constant)
};

/// What is known of the slots of a message, for Bootstrapper::expected_error.
struct Message {
  MessageKind kind = MessageKind::uniform_complex;
  double bound = 1.0;  ///< B
  u32 period = 16;     ///< of `periodic`: a power of two
};

/// What a bootstrap needs and delivers, known before anything runs.
struct BootstrapReport {
  BootstrapLevels levels;
  u32 iterations = 1;
  u32 correction_bits = 0;
  u32 key_count = 0;
  u64 key_bytes = 0;          ///< on the device
  bool aligned_keys = false;  ///< BootstrapSavings: that some of them are for aligned levels
  u64 plaintext_bytes = 0;    ///< on the device
  u64 workspace_bytes = 0;    ///< at most, for one ciphertext, or one pack of them
  u32 message_ratio = 0;
  bool ratio_chosen = false;  ///< that, for the values: the options left it open
  BootstrapMessage message = BootstrapMessage::complex;
  BootstrapValues values = BootstrapValues::unknown;
  double values_error = 0.0;  ///< expected largest slot error for such values within 1
  /// ... for values uniform in [-1, 1]^2, or in [-1, 1] where the message is real; its rms.
  double expected_error = 0.0, expected_rms = 0.0;
  double worst_error = 0.0;   ///< largest slot error for any values bounded by 1
  double log2_failure = 0.0;  ///< of one bootstrap
  KeyMode keys = KeyMode::hoisted;
  bool keys_decided = false;    ///< that, or the slots, by the keys at hand: they serve no other
  bool over_mod_raise = false;  ///< BootstrapSavings: that it is done
  bool real_symmetry = false;   ///< BootstrapSavings: that it is used
  /// Primes of a ciphertext at levels.raised and at levels.eval_mod; without short_raise.
  u32 raised_limbs = 0, eval_mod_limbs = 0, full_raised_limbs = 0, full_eval_mod_limbs = 0;
  /// Groups of the device's parts of which each has one of EvalMod's two vectors (of a ciphertext),
  /// by the keys at hand or by such as they would share; 1: parts have limbs of all there are.
  u32 eval_mod_groups = 1;
  u64 slots = 0;       ///< of the ciphertexts that it takes
  u32 pack = 1;        ///< how many share one bootstrap
  std::string notice;  ///< that the keys at hand were made for another bootstrap, or nothing
  std::string text() const;
};

/// Which keys a bootstrap with these options needs. ParameterError as the Bootstrapper throws it.
ckks::KeyRequest bootstrap_key_request(const ckks::Params& params,
                                       const BootstrapOptions& options = {});

/// Bossuat et al. 2021 with sparse-secret encapsulation (2022): docs/theory/bootstrapping.md. What
/// it holds (plan, plaintexts, workspace, recorded graph) is made once for a context and options,
/// however many clients' keys it is used with: keys are an argument of the call. Cheap to copy. Any
/// number of threads may call it, with the same or with other evaluators: where a graph is replayed
/// they are served one after the other. Inside a recording of the caller it runs eagerly.
class Bootstrapper {
 public:
  struct State;
  /// Encodes all plaintexts, or shares those of a bootstrapper with the same options.
  /// ParameterError for options that the parameters cannot serve.
  explicit Bootstrapper(const ckks::Context& context, const BootstrapOptions& options = {});
  /// The same with keys at hand, for calls that name none. What the options leave open is as the
  /// keys serve it best: the key mode, and the slots where neither mode nor stages are given;
  /// options() and describe() say what it is. KeyMissingError that names every missing key and the
  /// call that makes them; StateError for keys of other parameters.
  Bootstrapper(const ckks::Context& context, ckks::EvaluationKeys keys,
               const BootstrapOptions& options = {});

  const BootstrapOptions& options() const;  ///< with every default filled in
  /// Levels from the input to the output, and what the bootstrap needs and delivers: known before
  /// anything runs.
  const BootstrapLevels& levels() const;
  BootstrapReport describe() const;
  /// That the keys at hand were made for another bootstrap than the one asked for, and serve it
  /// slowly; empty where they were not.
  const std::string& notice() const { return notice_; }
  /// Expected largest slot error of one iteration for messages of this kind, by the model that
  /// docs/guide/bootstrap_precision.md explains. ParameterError for a bound or period out of range.
  double expected_error(const Message& message) const;
  /// log2 of the factor by which a second iteration enlarges the scale; 0 with one iteration.
  u32 correction_bits() const;

  /// Refreshes a ciphertext (any batch) at levels().input with the canonical scale of that level,
  /// by the keys of `evaluator` and on its stream. StateError names level, scale or slots and what
  /// was expected, or the evaluator's parameters or device; KeyMissingError every missing key. A
  /// known bound is kept; StateError where it is beyond an eighth of 2^message_ratio (as the primes
  /// have it), the range of messages, which two real vectors of a pair share.
  ckks::Ciphertext operator()(const ckks::Evaluator& evaluator,
                              const ckks::Ciphertext& ciphertext) const;
  /// The same of error bounds, by the model behind describe(): its noises in the worst case of the
  /// message, each with a Gaussian's tail of 2^-128, doubled, since their propagation through
  /// EvalMod is of first order; the method's error at its largest. `failure` grows by that of the
  /// bootstrap. UnsupportedError with two iterations and for pairs; StateError as for ciphertexts,
  /// and for messages that come near the base modulus.
  ckks::ErrorBound operator()(const ckks::ErrorModel& model, const ckks::ErrorBound& a) const;
  /// As many results as there are ciphertexts, in their order: options().pack of them share a
  /// bootstrap (twice as many real vectors with message == pair), and all bootstraps are one batch.
  /// They share level, scale, batch and secret key (StateError names both values); each has
  /// options().slots or, as a vector that repeats, fewer, which it keeps. A bound that is known is
  /// kept, too. What copies of a vector of n slots differ by is averaged over N/(2 n pack) of
  /// them, and the rest of it reaches the vectors of the same pack. ParameterError for none.
  std::vector<ckks::Ciphertext> operator()(
      const ckks::Evaluator& evaluator, std::span<const ckks::Ciphertext* const> ciphertexts) const;
  std::vector<ckks::ErrorBound> operator()(const ckks::ErrorModel& model,
                                           std::span<const ckks::ErrorBound> bounds) const;
  /// The same without a graph: the same bits.
  std::vector<ckks::Ciphertext> eager(const ckks::Evaluator& evaluator,
                                      std::span<const ckks::Ciphertext* const> ciphertexts) const;
  /// Never uses a graph; the same bits.
  ckks::Ciphertext eager(const ckks::Evaluator& evaluator,
                         const ckks::Ciphertext& ciphertext) const;
  /// Two real vectors at once (options().message == pair).
  std::pair<ckks::Ciphertext, ckks::Ciphertext> pair(const ckks::Evaluator& evaluator,
                                                     const ckks::Ciphertext& u,
                                                     const ckks::Ciphertext& v) const;

  /// With the keys at hand; StateError where there are none.
  ckks::Ciphertext operator()(const ckks::Ciphertext& ciphertext) const;
  ckks::Ciphertext eager(const ckks::Ciphertext& ciphertext) const;
  std::vector<ckks::Ciphertext> operator()(
      std::span<const ckks::Ciphertext* const> ciphertexts) const;
  std::vector<ckks::Ciphertext> eager(std::span<const ckks::Ciphertext* const> ciphertexts) const;
  std::pair<ckks::Ciphertext, ckks::Ciphertext> pair(const ckks::Ciphertext& u,
                                                     const ckks::Ciphertext& v) const;

 private:
  const ckks::Evaluator& own() const;

  std::shared_ptr<State> state_;
  std::optional<ckks::Evaluator> own_;
  bool keys_decided_ = false;
  std::string notice_;
};

}  // namespace crenel::circuits
