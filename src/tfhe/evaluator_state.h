// What the evaluator's files share: state, checks, the bootstrap.
#pragma once

#include "crenel/tfhe/evaluator.h"
#include "tfhe/objects.h"
#include "tfhe/params/noise.h"
#include "tfhe/test_polynomial.h"

namespace crenel::tfhe {

/// How far a phase modulo q may be off for tables on messages modulo p, the steps included where
/// p's halves do not begin at one.
double table_margin(const device::TorusPlan& plan, u32 p);

/// How Evaluator::refresh reads messages of one modulus.
struct RefreshFunction {
  bool is_message = false;  ///< by the identity's table; otherwise a bit, by AND with a known 1
  u32 plain_modulus = 0;    ///< that messages stand modulo
  double margin = 0;        ///< how far a phase modulo q may be off
  /// Added to the phase modulo 2^log_modulus before it is read.
  u64 constant(u32 log_modulus) const;
};

/// Bytes of switched rows that compression holds at a time, on the device and on the host.
inline constexpr u64 kStoredChunk = u64(64) << 20;

/// Some messages of an array, with their noise: `first`, first + step, ... Where step is not 1,
/// rows hold one message each.
struct Selected {
  const Ciphertext* from = nullptr;
  u64 first = 0;
  u32 step = 1;
  Noise noise;
};

/// A linear combination of selected messages, `constant` a message.
struct SelectedSum {
  std::vector<std::pair<const Selected*, i64>> terms;
  i64 constant = 0;
};

struct Evaluator::State {
  State(Context context, EvaluationKeys keys, const EvaluatorOptions& options);

  Context context;
  EvaluationKeys keys;
  double max_p_fail_log2 = 0;
  NoiseBudget budget;  ///< of several steps the most of each
  /// Keys of one step, with the kernels that read them.
  struct Form {
    u32 step = 0;
    device::TorusKernels* kernels = nullptr;
    StepKeys::Key key;  ///< null: the keys' own
  };
  std::vector<Form> forms;         ///< with keys: the context's step, then others; each step once
  StepTable step_table;            ///< of several forms, naming theirs alone
  u64 chunk_bytes = u64(1) << 30;  ///< bound on a call's extracted ciphertexts

  const Context::State& home() const { return context.state(); }
  device::Stream& stream() const { return context.stream(); }
  const device::TorusPlan& plan() const { return home().plan; }
  const Params& params() const { return context.params(); }
  u32 log_q() const { return plan().log_lwe_modulus; }

  // ---- checks: StateError names both values in the fields `found` and `expected`
  void check(const Ciphertext& a) const;  ///< parameters, device, secret keys of these keys
  void check_size(const Ciphertext& a, u64 expected) const;
  void check_plain_modulus(const Ciphertext& a, u32 expected, const char* operation) const;
  void check_log_modulus(const Ciphertext& a, u32 expected, const char* operation) const;
  /// Context, size, plain modulus and modulus of all inputs, and that no two are one object.
  void check_inputs(std::span<const Ciphertext* const> inputs, u32 plain_modulus,
                    const char* operation) const;
  /// That the input is not known to hold anything but bits (Ciphertext::bound).
  void check_bits(const Ciphertext& a, const char* operation) const;
  /// The keys, or KeyMissingError.
  const EvaluationKeys::Data& bootstrap_keys() const;

  // ---- noise
  /// What reading phases modulo 2^log_modulus adds, by the form with the most.
  double reading(u32 log_modulus) const { return reading_variance(plan(), budget, log_modulus); }
  /// ParameterError where a phase modulo 2^log_modulus with this noise is read wrongly, that is off
  /// by more than `margin`, with more than the probability allowed.
  void judge(const Noise& noise, u32 log_modulus, double margin, const char* operation) const;
  /// The same of what decompression reads of a compressed array whose messages had this noise.
  void judge_stored(const Noise& noise, u32 plain_modulus, const char* operation) const;
  /// The same of an array of `size` messages in lists.
  void judge_listed(u64 size, const Noise& noise, u32 plain_modulus, const char* operation) const;
  /// What storage in lists adds to each of so many messages, at rest.
  double listed_variance(u64 size) const;
  /// ParameterError where a phase with this variance when it is read is off by more than `margin`
  /// too often.
  void judge_reading(double variance, const Noise& noise, double margin,
                     const char* operation) const;
  /// log2 of the bound that judge compares.
  double failure(const Noise& noise, u32 log_modulus, double margin) const;
  /// Of the result of a bootstrap of `size` messages, modulo 2^log_modulus: a source of its own.
  Noise bootstrap_noise(u64 size, u32 log_modulus) const;
  /// The same where each of `size` messages gave `outputs` results of one rotation, which follow
  /// one another and whose errors may depend on each other.
  Noise bootstrap_noise(u64 size, u32 outputs, u32 log_modulus) const;
  /// Of one message from a bootstrap or an encryption modulo q, whichever has more.
  Noise input_noise() const;

  // ---- rows at rest
  device::Buffer allocate_rows(u64 rows) const;
  /// Under the secret keys of these keys.
  Ciphertext wrap(device::Buffer rows, u64 size, u32 plain_modulus, u32 log_modulus,
                  Noise noise) const;
  /// sum factor_t data_t + (0, constant, ...) modulo 2^log_modulus.
  void combine(u32* out, std::span<const device::LweTerm> terms, u64 constant, u64 rows,
               u32 log_modulus) const;
  device::Buffer combined(std::span<const device::LweTerm> terms, u64 constant, u64 rows,
                          u32 log_modulus) const;

  /// Sums of selections from arrays that check() passed, of the evaluator's own p and modulus, one
  /// behind the other: as linear() and concatenate() give them, by one call of the device.
  Ciphertext sums(std::span<const SelectedSum> sums, u64 size) const;

  /// Prepared tables of a padded set on messages that check() passed: `outputs` results of each,
  /// one after the other, of which those mean something that its table has the room for.
  Ciphertext looked_up(const Ciphertext& a, const PreparedLut& lut, u32 outputs) const;

  /// The view of one test polynomial, made by `make` on first use and kept by the context.
  template <class Make>
  device::LutView function(const ContentKey& key, Make make) const {
    const auto array = home().functions.get(
        stream(), key, [&] { return table_words(std::vector<TestPolynomial>{make()}); });
    return lut_view(plan(), *array);
  }

  /// Blind rotation, extraction and key switch of rows modulo 2^log_in, to rows modulo 2^log_out,
  /// at most Q_KS. log_in other than q's: the phase is read modulo that power of two. Of every row
  /// `luts.outputs` rows, one after the other.
  void bootstrap(u32* out, u32 log_out, const u32* in, u32 log_in, u64 rows,
                 const device::LutView& luts) const;
  /// The same where ciphertexts rest under the extracted key: the switch first, once for all
  /// outputs of a row; rows modulo q only.
  void bootstrap_groups(u32* out, const u32* in, u64 rows, const device::LutView& luts) const;
  /// Its halves: from rows at rest to read_words() words a row, and from these. A batch goes by one
  /// form from its first row to its last, which form_of() its whole size is.
  void switch_groups(u32* switched, const u32* in, u64 rows) const;
  const Form& form_of(u64 rows) const;
  void rotate_groups(const Form& form, u32* out, const u32* switched, u64 rows,
                     const device::LutView& luts) const;
  /// An array as rows of stored_row_bytes; and all its messages again, refreshed, at `out`.
  std::vector<u8> stored(const Ciphertext& a) const;
  void refresh_stored(u32* out, const Compressed::Data& c, const RefreshFunction& function) const;
  /// An array as the bytes of its lists.
  std::vector<u8> listed(const Ciphertext& a) const;
  /// Rows at rest of one list, before their noise is taken off.
  device::Buffer unlisted(const u8* from, u64 count) const;
  /// All messages of an array in lists, refreshed: its rows at `out`.
  void refresh_lists(u32* out, const Compressed::Data& c, const RefreshFunction& function) const;
  /// ParameterError for a modulus that refresh does not take.
  RefreshFunction refresh_function(u32 plain_modulus) const;
  device::LutView refresh_view(const RefreshFunction& function) const;
  /// The same for rows modulo q into a new buffer.
  device::Buffer bootstrapped(const u32* in, u64 rows, const device::LutView& luts) const;
  /// Units of a watch::Task for bootstraps of so many rows: messages, the last row's padding too.
  u64 units(u64 rows) const { return rows * plan().slots; }
  /// Rows of a call, of `rows` in all, where somebody is told how far the work is.
  u64 reported_rows(u64 rows) const;

 private:
  void take_steps(const EvaluatorOptions& options);
};

}  // namespace crenel::tfhe
