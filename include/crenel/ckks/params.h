// CKKS parameters: what a user asks for (Spec), and what was checked (Params).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::ckks {

/// Every prime lies in [kPrimeMin, kPrimeMax).
inline constexpr u64 kPrimeMin = u64{1} << 19;
inline constexpr u64 kPrimeMax = u64{1} << 31;
/// Most primes of a parameter set, special ones included.
inline constexpr u32 kMaxLimbs = 128;
/// Most special primes: beyond, hardly any choice keeps the sums of base conversion below 2^64.
inline constexpr u32 kMaxAlpha = 14;

/// Modulus of one level in the 25-30 prime system: how many main (~2^30) and terminal (~2^25)
/// primes are in use. The chain holds main primes q_0..q_{m-1} and terminal primes
/// tau_0..tau_{t-1}.
struct LevelModulus {
  u32 main = 0;
  u32 terminal = 0;
  bool operator==(const LevelModulus&) const = default;
};

/// Unchecked parameters, as read from TOML or assembled by hand.
struct Spec {
  std::string name;                  ///< e.g. "boot40"; empty for generated ones
  u32 log_n = 0;                     ///< log2 of the ring degree, 10..17
  u32 log_scale = 0;                 ///< target log2 of the scale of levels 0..normal_top_level
  std::vector<u64> main;             ///< q_0, q_1, ...
  std::vector<u64> terminal;         ///< tau_0, tau_1, ...
  std::vector<u64> auxiliary;        ///< p_0..p_{alpha-1}, the special modulus P
  std::vector<LevelModulus> levels;  ///< levels[l] is the modulus of level l; level 0 is the last
  /// Highest level with the canonical scale; above it: bootstrapping levels.
  u32 normal_top_level = 0;
  u32 hamming_weight = 0;  ///< 0: dense ternary secret; otherwise the exact weight of a sparse one
  std::string provenance;  ///< where these numbers come from
};

/// One thing that is wrong with a Spec.
enum class SpecProblemKind {
  log_n_out_of_range,
  prime_not_prime,
  prime_not_ntt_friendly,
  prime_out_of_range,
  prime_repeated,
  level_out_of_chain,
  level_not_increasing,
  chain_top_incomplete,
  too_many_limbs,
  scale_deviation,
  special_modulus_too_small,
  base_conversion_overflow,
  hamming_weight_out_of_range,
  empty_chain,
  security_below_128,
  base_modulus_too_small,
};
/// The identifier of a kind, e.g. "prime_not_prime".
std::string_view to_string(SpecProblemKind kind);

/// Something that is wrong with a Spec.
struct SpecProblem {
  SpecProblemKind kind;
  std::string message;  ///< names the value and what was expected
};

/// Immutable, checked parameters. Cheap to copy (shared state).
///
/// Limb order of the chain ("position", also the prime id everywhere in the library),
/// inverted-terminal layout of Cheddar 3.3:  tau_{T-1} .. tau_0 q_0 .. q_{M-1}  p_0 .. p_{alpha-1}.
/// Level l with (m, t) is the contiguous window [T - t, T + m) of positions.
class Params {
 public:
  /// Every problem of `spec`, or none. Never throws. `allow_insecure` leaves out
  /// security_below_128.
  static std::vector<SpecProblem> validate(const Spec& spec, bool allow_insecure = false);
  /// Checked parameters; throws ParameterError listing all problems.
  static Params from_spec(Spec spec, bool allow_insecure = false);
  /// Leveled parameters found by search: `depth` rescalings (levels 0..depth) at scale 2^log_scale.
  /// log_n 10..17, scale_bits one of 28 30 35 40 45 50, depth >= 1; alpha 0 picks the number of
  /// special primes. Throws ParameterError (naming log PQ and the bound) when no secure chain
  /// exists.
  static Params generate(u32 log_n, u32 scale_bits, u32 depth, bool allow_insecure = false,
                         u32 alpha = 0);
  /// A named set of params/*.toml; "toy-*" sets need allow_insecure. Throws ParameterError naming
  /// the known names.
  static Params preset(const std::string& name, bool allow_insecure = false);
  static std::vector<std::string> preset_names();  ///< sorted
  /// One line about a named set, toy sets included.
  static std::string preset_description(const std::string& name);

  /// All numbers of the set, its name ("" where it has none), and log2 of the ring degree N, 10 to
  /// 17.
  const Spec& spec() const;
  const std::string& name() const;
  u32 log_n() const;
  u64 ring_dim() const;   ///< N
  u64 slots() const;      ///< N/2
  u32 max_level() const;  ///< index of the top level
  /// The highest level whose canonical scale is near 2^log_scale: fresh ciphertexts have it. Levels
  /// above it, if any, are a bootstrap's.
  u32 normal_top_level() const;
  u32 alpha() const;  ///< special primes = limbs per key-switching digit
  /// Digits of a key-switching key: ceil(chain_limbs / alpha). Also the digits at the top level,
  /// unless the top level leaves a whole digit block out.
  u32 dnum() const;
  u32 chain_limbs() const;                 ///< L = M + T, without the special primes
  const std::vector<u64>& primes() const;  ///< all L + alpha primes in position order
  u32 window_begin(u32 level) const;       ///< first position of level's window
  u32 window_end(u32 level) const;         ///< one past the last position
  u32 limb_count(u32 level) const;         ///< primes of the level
  /// Whether the primes of this normal level can stand below those of the levels above
  /// normal_top_level() in place of all normal ones: a bootstrap to a low level then computes with
  /// fewer primes (docs/theory/bootstrapping.md, "Fewer levels").
  bool is_short_base(u32 level) const;
  /// The highest level up to `level` at which keys of their own save a digit of key switching
  /// (KeyRequest::aligned_rotations); nothing where there is none.
  std::optional<u32> highest_aligned(u32 level) const;
  /// Canonical scale: s_0 = 2^log_scale, s_l = sqrt(s_{l-1} rp(l)) (docs/theory/ckks-primes.md).
  /// Above normal_top_level the scale path of the bootstrapping levels is not defined here, and
  /// 2^log_scale is returned.
  double scale(u32 level) const;
  /// rp(l) = Q_l / Q_{l-1}, l >= 1.
  double rescale_ratio(u32 level) const;
  double log_q(u32 level) const;  ///< log2 Q_level
  /// Largest |slot| that surely decrypts at this level and scale (0: the canonical one):
  /// Q_level / (2 scale) less 2^-10 of it, which is left for errors (docs/theory/precision.md, "How
  /// large values may be"); at most 2^1023. Beyond, a result may wrap around, and nothing tells but
  /// a stated bound (Client::encrypt) or Evaluator::checked. ParameterError for a level that is not
  /// there, and for a scale outside of [1, modulus of the level].
  double max_value(u32 level, double scale = 0.0) const;
  /// log2 of P, the product of the special primes.
  double log_p() const;
  double log_pq() const;           ///< log2 of P times the product of every chain prime
  double security_bits() const;    ///< estimate from the tables, see SECURITY.md; interpolated
  bool insecure() const;           ///< below 128 bits (toy sets)
  double scale_deviation() const;  ///< max |log2 scale(l) - log_scale| over the normal levels
  /// 16 bytes: a content hash carried by every object and file.
  const std::string& id() const;  ///< 32 hex digits
  bool operator==(const Params& other) const;

 private:
  struct State;
  explicit Params(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// Largest log2(PQ) with `bits` (128, 192 or 256) of classical security for ring degree 2^log_n;
/// hamming_weight 0 is the dense ternary secret. nullopt when the tables have no entry.
std::optional<double> max_log_pq(u32 log_n, u32 bits, u32 hamming_weight);

/// The security estimate, and the bound that the parameters are checked against.
std::string security_text(const Params& params);
/// Level, limbs, log Q, log scale, log of the rescale ratio, largest value that surely decrypts.
using LevelText = std::array<std::string, 6>;
/// A header, then one row a level, the top first.
std::vector<LevelText> level_table(const Params& params);
/// What the parameters offer and cost, in words, with the table of levels.
std::string explain(const Params& params);

}  // namespace crenel::ckks
