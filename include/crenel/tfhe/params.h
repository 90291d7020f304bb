// TFHE parameters: what a user asks for (Spec), and what was checked (Params).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crenel/tfhe/sizes.h"

namespace crenel::tfhe {

/// How a product with a key keeps its noise small: by digits, or by a raised modulus.
enum class NoisePath : u8 { gadget, raising };
/// Entries of the LWE secret: -1, 0, 1, or 0, 1.
enum class LweSecret : u8 { ternary, binary };

/// How external products are computed. Each gives the same bits on every device; what one encrypted
/// under a set is not for the same set with another (their ids differ).
enum class Arithmetic : u8 {
  exact,   ///< integers
  approx,  ///< double-precision transforms, whose error is part of the noise
  split,   ///< ... of digits in two pieces, each with a key of its own: more products, of smaller
           ///< numbers and so with a smaller error. Gadget decomposition only, for sets where
           ///< approx errs too much (G4)
};
/// "exact", "approx" or "split".
const char* to_string(Arithmetic arithmetic);
/// The reverse; ParameterError for any other text.
Arithmetic arithmetic_from_string(std::string_view name);

/// Unchecked parameters, as read from params/tfhe-*.toml or assembled by hand. Symbols in brackets
/// are those of BOLT-FHE, table 2.
struct Spec {
  std::string name;
  /// What a set of the library was called when its id was first made, which covers names: files of
  /// that name and of these numbers are of this set. "" for others. Params fill it in themselves.
  std::string former_name;
  std::string description;
  LweDim lwe_dim;           ///< [n]
  GlweDim glwe_dim;         ///< [k]
  PolySize poly_size;       ///< [N]
  u32 log_lwe_modulus = 0;  ///< log2 [q]: ciphertexts at rest
  NoisePath path = NoisePath::gadget;
  LweSecret secret = LweSecret::ternary;
  u32 log_modulus = 0;         ///< log2 [Q] of the accumulator
  u32 log_raised_modulus = 0;  ///< log2 [T], raising only (0 otherwise)
  DecompBaseLog base_log;  ///< log2 [B_g], gadget only: ceil(log Q / base_log) - 1 digits are used
  u32 log_switch_modulus = 0;     ///< log2 [Q_KS]
  DecompBaseLog switch_base_log;  ///< log2 [B_KS]
  /// [g] Elements of a binary LWE secret that one step of the blind rotation takes, by a bundle of
  /// 2^g keys or by differences: 1..6, dividing n. Ciphertexts then rest under the extracted key,
  /// before the key switch, whose noise no sum multiplies. 0: one element a step, rest behind the
  /// key switch.
  u32 group = 0;
  /// Groups: elements of a group of the keys on this side, where they are not the set's `group`: a
  /// request of its own, of other keys for the same secret. Not part of the id. 0: `group`.
  u32 key_group = 0;
  /// Groups: elements of a step on this side, a divisor of made_group(): its keys are sums of the
  /// ones that were sent. Not part of the id. 0 without groups.
  u32 step = 0;
  /// Groups: a step adds products with X^c - 1, c the exponent of each value of a group but 0, in
  /// place of one product with a whole bundle. A group then has 2^g - 1 keys: less to read where
  /// several messages share a mask.
  bool differences = false;
  /// Groups: digits that the key switch keeps, from the top. 0 without groups: all.
  u32 switch_digits = 0;
  u32 plain_modulus = 4;  ///< p: a message m is encoded as m q / p; 4 for gates
  bool padded = false;    ///< the upper half of the p messages is kept free (programmable LUTs)
  /// Sum of squared factors of inputs that p_fail is stated for. Less than a gate's 2 states
  /// nothing better: p_fail covers gates always.
  double max_norm2 = 2.0;
  Arithmetic arithmetic = Arithmetic::exact;  ///< the faster safe choice, by measurement
  /// Claimed, by the lattice estimator or interpolated from it (0: nothing). Of sets that are not
  /// the library's own, Params::security_bits believes no more than the estimate.
  double security_bits = 0.0;
  bool paper = false;  ///< a label: for reproduction of published figures
  std::string provenance;

  /// Secret bits in a group of the keys that are made: `key_group`, or `group` where it is 0.
  u32 made_group() const { return key_group != 0 ? key_group : group; }
};

/// Immutable, checked parameters with their slots. Cheap to copy.
class Params {
 public:
  /// Every problem of `spec`, one sentence each naming the value and what was expected. Never
  /// throws. `allow_insecure` leaves out below_norm(), which is a problem of every set but the
  /// library's published ones: those are known by their numbers, whatever they are called, and
  /// warn.
  static std::vector<std::string> validate(const Spec& spec, bool allow_insecure = false);
  /// Throws ParameterError listing all problems. With allow_insecure, sets made from this one
  /// (with_slots, with_arithmetic) may be below the norm too.
  static Params from_spec(Spec spec, bool allow_insecure = false);
  /// A set of params/tfhe-*.toml by name: "bool128", "lut4-128", "M3", "G1", "STD128", or by the
  /// name that it had, where no other has it now; "toy-..." need allow_insecure. Throws
  /// ParameterError naming the known names.
  static Params preset(const std::string& name, bool allow_insecure = false);
  static std::vector<std::string> preset_names();  ///< sorted
  /// One line about a named set, toy sets included.
  static std::string preset_description(const std::string& name);
  /// The name of the set of params/tfhe-*.toml, with any number of slots and any
  /// arithmetic, whose id this is, or "".
  static std::string preset_of_id(const std::string& id);
  /// The same set with r messages under each mask (1..16, else ParameterError); p_fail is restated,
  /// and ParameterError where that needs allow_insecure. Throws UnsupportedError where `approx`
  /// cannot round the products of so many rows, or where its error is no longer small against the
  /// noise (lut4-128-classic above 10), as with_arithmetic does.
  Params with_slots(SlotCount slots) const;
  /// The same set with another arithmetic. Throws UnsupportedError for approx where the transform's
  /// error is not small against the set's noise (G4), and for split with modulus raising or where
  /// whole digits give exact products already (moduli of one prime), naming set and arithmetic.
  Params with_arithmetic(Arithmetic arithmetic) const;
  /// The same set, keys and ciphertexts with `step` secret bits a step of the rotation: results
  /// differ within their noise, and p_fail is restated (ParameterError where that needs
  /// allow_insecure). ParameterError for a step that does not divide the keys' group,
  /// UnsupportedError for sets without groups.
  Params with_step(u32 step) const;
  /// The same set and secret keys with evaluation keys of another group size, 1 to 6, and of
  /// another length (key_wire_bytes and key_bytes say which before any is made): keys of 3 or 6
  /// serve steps of 3. The step stays where it divides the new size, else it becomes that size.
  /// ParameterError for a size that does not divide n and as with_step, UnsupportedError for sets
  /// without groups.
  Params with_key_group(u32 group) const;

  /// All numbers of the set, and its name ("" where it has none).
  const Spec& spec() const;
  const std::string& name() const;
  const std::string& former_name() const;  ///< Spec::former_name
  /// Messages under a mask, 1 to 16, and how external products are computed.
  SlotCount slots() const;
  Arithmetic arithmetic() const;
  u64 modulus() const;                     ///< Q: a power of two, or the product of primes
  const std::vector<u64>& primes() const;  ///< of Q (gadget) or of T (raising)
  DecompLevels digits() const;             ///< gadget digits in use; 1 for raising
  DecompLevels switch_digits() const;      ///< [d_KS]
  /// log2 of the bound on the failure probability of one bootstrap whose inputs come from
  /// bootstraps or from an encryption: of gates of two inputs, of sums up to max_norm2 and, where
  /// messages are neither padded nor bits (p > 4), of tables, which take two bootstraps. What other
  /// operations have: Evaluator::p_fail_log2.
  double p_fail_log2() const;
  /// What the set claims, but no more than the library itself knows of these numbers: the lattice
  /// estimator's figure for its own sets, the interpolated one for others.
  double security_bits() const;
  bool below_norm() const;      ///< p_fail above 2^-128 or security below 128 bits
  std::string warning() const;  ///< "" or what is below today's norm, in one sentence
  /// 32 hex digits: a content hash carried by every object and file. Numbers, name and what the set
  /// claims of itself (max_norm2, security_bits, paper) all count; prose does not.
  const std::string& id() const;
  bool operator==(const Params& other) const;

  struct State;

 private:
  explicit Params(std::shared_ptr<const State> state);
  static Params checked(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// Messages modulo p = plain_modulus (0: the set's) are below it: p, or p / 2 with padding.
/// ParameterError for a p that Client::encrypt refuses.
u32 message_bound(const Params& params, u32 plain_modulus = 0);

/// Variances of the noise of one bootstrap, each at the modulus where it arises, in squared units
/// of that modulus' integers (standard deviations squared, NOT subgaussian parameters).
struct NoiseBudget {
  double blind_rotation = 0.0;     ///< at Q, key noise and rounding of n external products
  double transform = 0.0;          ///< at Q, error of the double-precision transform (0 when exact)
  double switch_rounding = 0.0;    ///< at Q_KS, modulus switch Q -> Q_KS; groups: q -> Q_KS
  double key_switch = 0.0;         ///< at Q_KS
  double rest_rounding = 0.0;      ///< at q, modulus switch Q_KS -> q; groups: Q -> q
  double rotation_rounding = 0.0;  ///< at 2N, when q > 2N: modulus switch to 2N; groups: cuts
};

/// BOLT-FHE appendix A and WLX+25 theorem 4.2 (raising); the gadget path by the standard variance
/// of OpenFHE's decomposition: docs/theory/tfhe.md "Noise of a bootstrap". `sigma`: of key errors
/// (the library's sampler: sqrt(10.5)).
NoiseBudget noise_budget(const Params& params, double sigma);
/// Standard deviation at q of a bootstrapped ciphertext's phase error.
double fresh_std(const Params& params, double sigma);
/// log2 of the bound p_fail <= 2 exp(-margin^2 / (2 std^2)) (the subgaussian bound of eq. 17 in
/// terms of standard deviations) for a sum of bootstrapped inputs with squared factors norm2 and
/// messages q / plain_modulus apart (padded as the set says).
double failure_log2(const Params& params, double sigma, double norm2, u32 plain_modulus);
/// Equation 14 of BOLT-FHE, appendix A, to the letter: sigma_tot with r = slots, sigma = 3.19,
/// nominal moduli. Table 7 prints it.
double paper_sigma_total(const Params& params);
/// Equation 17: -log2 p_fail for the sum of two.
double paper_failure_bits(const Params& params);

}  // namespace crenel::tfhe
