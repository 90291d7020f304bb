// Evaluator: homomorphic operations. Explicit: nothing rescales or changes level behind your back.
#pragma once

#include <complex>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "crenel/ckks/client.h"

namespace crenel::ckks {

/// Basis of polynomial coefficients: powers of x, or Chebyshev polynomials on [a, b].
enum class PolynomialBasis : u8 { power, chebyshev };

/// Bound to a context, keys and a stream. Operands of one call must share context and secret key
/// (also with the keys), and where not said otherwise level, scale (relative difference <= 1e-12)
/// and slot count; StateError names both values. Copies are cheap and equal; any number of threads
/// may compute with one evaluator, and with operands and keys that they share.
///
/// Operands whose bound is known (Ciphertext::bound) give results whose bound is known. Where it
/// exceeds Params::max_value of the result's level and scale, StateError names the operation, the
/// level, the bound that would result and what fits, before any work. Operands without a bound are
/// not checked.
class Evaluator {
 public:
  struct State;
  /// Operations with these keys (empty keys: everything that needs none). StateError for keys of
  /// other parameters or of another device.
  Evaluator(const Context& context, EvaluationKeys keys);
  /// What it was made of.
  const Context& context() const;
  const EvaluationKeys& keys() const;
  /// The same evaluator on another stream of the context's device, which waits for what this
  /// evaluator's stream has queued so far. Operands that another stream works on later need
  /// Stream::wait_for first; an operand made on another stream, or the keys, must not be destroyed
  /// before that stream waits for this one (memory goes back to the pool of the stream that made
  /// it).
  Evaluator on(std::shared_ptr<device::Stream> stream) const;
  /// The stream that operations queue on.
  device::Stream& stream() const;
  /// For tests: the same evaluator, whose every operation also decrypts its operands and its result
  /// and compares with the same operation in the clear. StateError names the first operation whose
  /// result left the range of its level, with the level and the factor, or whose error is far
  /// beyond what its model allows. It tells of decrypted magnitudes, and holds the secret key:
  /// never for a server. Slow; inside recordings StateError on devices with graphs, and recordings
  /// whose keys are an argument are not checked. StateError for another context's or secret key's
  /// client.
  Evaluator checked(const Client& client) const;

  // -- linear: level l -> l, scale s -> s ---------------------------------------------------------
  /// Slot by slot. Errors add up; a known bound is the sum of both.
  Ciphertext add(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext sub(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext negate(const Ciphertext& a) const;
  /// With an encoded vector of the same level, scale and slots.
  Ciphertext add(const Ciphertext& a, const Plaintext& b) const;
  Ciphertext sub(const Ciphertext& a, const Plaintext& b) const;
  /// Adds the constant to every slot.
  Ciphertext add(const Ciphertext& a, std::complex<double> b) const;
  /// By an integer (complex: Gaussian integer re + im i): level and scale stay, the noise grows by
  /// |b|.
  Ciphertext multiply_integer(const Ciphertext& a, i64 re, i64 im = 0) const;
  /// By X^power (X^N = -1, so that power counts modulo 2N and may be negative): slot j is times
  /// e^(pi i power 5^j / N). Level, scale and noise stay; no key. X^N is -1 and X^(N/2) is i. Of
  /// n slots, a multiple of N / 2n keeps n; any other power, of which 2^v is the largest power of
  /// two that divides it, makes N / 2^(v + 1) of them, since that often the product repeats.
  /// Every power is prepared once for a context, which keeps it: N / 2^v words for each prime.
  Ciphertext multiply_monomial(const Ciphertext& a, i64 power) const;

  // -- products: scale s_a s_b (rescale to return to a canonical scale) ---------------------------
  //    StateError when that scale is not below the level's modulus (a product at level 0, say)
  /// By an encoded vector, slot by slot; no key.
  Ciphertext multiply(const Ciphertext& a, const Plaintext& b) const;
  /// By a constant encoded at `scale` (default: the level's rescale ratio times the canonical scale
  /// of the level below over a's scale, so that rescale() lands on the canonical scale; at level 0
  /// the canonical scale). StateError where the default is below 2^10: rescale a first.
  Ciphertext multiply(const Ciphertext& a, std::complex<double> b, double scale = 0.0) const;
  /// With relinearisation: 2 components. KeyMissingError without its key.
  Ciphertext multiply(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext square(const Ciphertext& a) const;
  /// Without: 3 components; sums of such products need one relinearisation.
  Ciphertext multiply_lazy(const Ciphertext& a, const Ciphertext& b) const;
  Ciphertext square_lazy(const Ciphertext& a) const;
  /// Three components to two, level and scale stay. KeyMissingError without a relinearisation key.
  Ciphertext relinearise(const Ciphertext& a) const;
  /// rescale(multiply(a, b)) with ModDown and rescale merged into one division.
  Ciphertext multiply_rescale(const Ciphertext& a, const Ciphertext& b) const;
  /// rescale(relinearise(a)), merged likewise.
  Ciphertext relinearise_rescale(const Ciphertext& a) const;

  // -- levels -------------------------------------------------------------------------------------
  /// Level l -> l-1, scale s -> s / rp(l). StateError at level 0, and for a scale below
  /// rp(l) / 2^10, whose message rounding would take.
  Ciphertext rescale(const Ciphertext& a) const;
  /// To a lower level and (default: that level's canonical) scale, of at least 1 and at most that
  /// level's modulus (ParameterError); the message is unchanged. Costs
  /// a constant product and a rescale where the target's primes are not a part of the source's.
  Ciphertext adjust_level(const Ciphertext& a, u32 level, double scale = 0.0) const;

  // -- slots: level and scale stay ----------------------------------------------------------------
  /// Slot i of the result is slot (i + steps) mod slots of a. KeyMissingError names the rotation.
  Ciphertext rotate(const Ciphertext& a, i64 steps) const;
  /// Every slot becomes its complex conjugate. KeyMissingError without the key of conjugation.
  Ciphertext conjugate(const Ciphertext& a) const;
  /// All rotations of one ciphertext with one ModUp (hoisting).
  std::vector<Ciphertext> rotate_many(const Ciphertext& a, std::span<const i64> steps) const;
  /// Sum of rotations (step 0 allowed) with one ModUp and one ModDown.
  Ciphertext rotate_sum(const Ciphertext& a, std::span<const i64> steps) const;
  /// Sum over `count` (a power of two) slots at distance `stride`: slot i becomes
  /// sum_k a[i + k stride]. Needs the rotations of sum_slots_rotations(count, stride).
  Ciphertext sum_slots(const Ciphertext& a, u64 count, i64 stride = 1) const;
  /// The same ciphertext as a vector of `slots` slots (a power of two up to N/2: ParameterError).
  /// More: slot i is slot i mod a.slots() of `a`, as fewer slots repeat in the full vector. Fewer:
  /// slot i is slot i of `a`, which must repeat with that period, as a sum over its other slots
  /// does. A ciphertext does not show whether it does: StateError unless `repeating` says so.
  Ciphertext with_slots(const Ciphertext& a, u64 slots, bool repeating = false) const;

  // -- polynomials --------------------------------------------------------------------------------
  /// sum_k coefficients[k] x^k (lowest first) or sum_k coefficients[k] T_k((2x - a - b)/(b - a)),
  /// by Paterson-Stockmeyer with depth ceil(log2(degree + 1)), one more for an interval other than
  /// [-1, 1], and lazy relinearisation. The result has the canonical scale of its level; a
  /// polynomial of degree 0 keeps level and scale. StateError when the level is too low, naming
  /// both.
  Ciphertext polynomial(const Ciphertext& x, std::span<const double> coefficients,
                        PolynomialBasis basis = PolynomialBasis::power, double a = -1.0,
                        double b = 1.0) const;

  const State& state() const { return *state_; }

 private:
  friend class Graph;
  explicit Evaluator(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Rotations whose keys Evaluator::sum_slots needs: stride * 2^j, j < log2 count. ParameterError
/// for a count that is not a power of two, and for rotations that do not fit 64 bits.
std::vector<i64> sum_slots_rotations(u64 count, i64 stride = 1);

/// Levels that polynomial() consumes for coefficients of this degree.
u32 polynomial_depth(u32 degree);
/// Chebyshev interpolation coefficients of f on [a, b] with the given degree.
std::vector<double> chebyshev_coefficients(const std::function<double(double)>& f, double a,
                                           double b, u32 degree);

/// A recorded evaluation: run once to record, replayed on new inputs of the same signature, and
/// with the keys of any client where they are an argument. A whole program may be one: with linear
/// transforms, packed lists and bootstraps, which are recorded as they would run without a graph of
/// their own.
///
/// Any number of threads may replay one recording: each gets the results of its own inputs and
/// keys, which no later replay changes. Replays are queued one after the other. A Graph must not be
/// moved from or destroyed while another thread uses it.
class Graph {
 public:
  using Function = std::function<std::vector<Ciphertext>(std::span<const Ciphertext>)>;
  /// Uses no keys but those of the evaluator that it is given.
  using KeyedFunction =
      std::function<std::vector<Ciphertext>(const Evaluator&, std::span<const Ciphertext>)>;
  /// The same of functions that take plaintexts too.
  using PlainFunction = std::function<std::vector<Ciphertext>(std::span<const Ciphertext>,
                                                              std::span<const Plaintext>)>;
  using KeyedPlainFunction = std::function<std::vector<Ciphertext>(
      const Evaluator&, std::span<const Ciphertext>, std::span<const Plaintext>)>;
  using Inputs = std::span<const Ciphertext* const>;
  using Plaintexts = std::span<const Plaintext* const>;

  /// Records f on copies of `inputs` (level, scale, slots, components, batch and secret key of each
  /// are the signature, that the slots are real when they are, and their bounds, which those of
  /// later inputs may not exceed). Keys that f uses are those it
  /// used while it was recorded. f works on the evaluator's stream from the calling thread; other
  /// threads may use that stream meanwhile, and none of their work is recorded. On backends without
  /// graphs f is called in every replay, by one thread at a time. StateError where f replays a
  /// graph or records one itself, or synchronises.
  Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, const Function& f);
  /// The same with keys as an argument of the replay: `evaluator` lends its own for the recording,
  /// which happens on a stream of its own. The secret key is no part of the signature: f works on
  /// its inputs and on nobody's ciphertexts else (StateError). StateError also for keys that have
  /// no lasting address (EvaluationKeys::staged, and those of another recording's argument).
  Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, const KeyedFunction& f);
  /// Both with plaintexts as arguments of the replay (StateError for one that a decryption made):
  /// level, scale, slots and batch of each are part of the signature, that the slots are real when
  /// they are, and the bound where one was stated. f sees no bound of the others: their largest
  /// slot is not that of a later replay.
  Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, Plaintexts plaintexts,
        const PlainFunction& f);
  Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, Plaintexts plaintexts,
        const KeyedPlainFunction& f);
  Graph(Graph&&) noexcept;
  ~Graph();
  /// Copies the inputs in, replays, and copies the outputs out, in the order of the evaluator's
  /// stream. StateError names the first difference between an input or a plaintext and the
  /// signature; it is also thrown where keys are an argument, and while the calling thread records
  /// on that stream.
  std::vector<Ciphertext> replay(std::span<const Ciphertext> inputs);
  /// The same for inputs that do not lie in one array.
  std::vector<Ciphertext> replay(Inputs inputs, Plaintexts plaintexts = {});
  /// Whether keys are an argument, `evaluator` has all that the recording used, and a recording
  /// with it would use the same.
  bool serves(const Evaluator& evaluator) const;
  /// Replays with the keys of `evaluator`, on its stream, where the results are made as by any
  /// operation of it. KeyMissingError names every key that the recording used and it lacks;
  /// StateError where keys are no argument, for an evaluator of other parameters or of another
  /// device, and while the calling thread records on its stream.
  std::vector<Ciphertext> replay(const Evaluator& evaluator, std::span<const Ciphertext> inputs);
  std::vector<Ciphertext> replay(const Evaluator& evaluator, Inputs inputs,
                                 Plaintexts plaintexts = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crenel::ckks
