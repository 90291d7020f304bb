// Evaluator of TFHE: gates, look-up tables, functions of OpenFHE's binfhe. Everything works on
// arrays of equal size, message by message; one call is one batched bootstrap (or as many as
// stated).
//
// Ciphertexts carry the noise that they gathered (Ciphertext::noise_variance), and a bootstrap is
// judged by that of its input before it is computed: ParameterError, with the fields `operation`,
// `p_fail_log2` and `max_p_fail_log2`, where it would fail more often than
// EvaluatorOptions allow (docs/theory/tfhe.md, "Noise that ciphertexts carry"). A graph is judged
// when it is recorded, by the ciphertexts it is recorded with.
//
// Capturable, that is fit for Stream::capture and then without a copy from the host, a wait for the
// device or an allocation of its memory: every operation but `trivial`, `compress`, `decompress`,
// and `lut` of tables by value, which may have to bring them to the device (prepare them
// before). Also Ciphertext::clone, Ciphertext::slice and concatenate. What the operations need
// beside keys and prepared tables stays in the context. Other threads may go on while one records:
// their work is no part of it.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "crenel/tfhe/compressed.h"
#include "crenel/tfhe/context.h"

namespace crenel::tfhe {

/// Gates of one bootstrap. p = 4 for two inputs and majority; inputs of AND3, OR3 have p = 6, of
/// AND4, OR4 p = 8 (OpenFHE's constants, docs/theory/tfhe.md "Gates"). On padded sets bits may as
/// well be messages 0 and 1 modulo the set's p, of which every gate that p / 2 has room for takes
/// the table of the number of ones. NOT costs nothing.
enum class Gate : u8 { and_, or_, nand, nor, xor_, xnor, majority, and3, or3, and4, or4 };
/// "and", "nand", "majority", ...: what gate_from_string reads.
const char* name_of(Gate gate);
/// The gate of this name; ParameterError for any other text.
Gate gate_from_string(std::string_view name);
/// Inputs that a gate takes, 2 to 4, and the p that they are encrypted with on sets without
/// padding.
u32 fan_in(Gate gate);
u32 plain_modulus_of(Gate gate);
/// The p to encrypt bits with: the set's own on padded sets, else 4, or with `inputs` = 3 or 4 what
/// AND3, OR3 or AND4, OR4 take. ParameterError for other numbers, and for any but 2 with padding,
/// where one p serves all gates.
u32 bit_modulus(const Params& params, u32 inputs = 2);

/// Compressed::bytes() of so many messages, exact. UnsupportedError for sets that are not stored
/// so.
u64 stored_bytes(const Context& context, u64 size, StoredForm form);

/// One addend of a linear combination.
struct Term {
  const Ciphertext* input = nullptr;
  i64 factor = 1;
};

/// Copies are cheap and equal. Any number of threads may compute with one evaluator, and with the
/// ciphertexts, keys and prepared tables that they share.
class Evaluator {
 public:
  struct State;
  explicit Evaluator(std::shared_ptr<const State> state);
  /// What it was made of (Context::evaluator).
  const Context& context() const;
  const EvaluationKeys& keys() const;
  /// The bound in force (EvaluatorOptions).
  double max_p_fail_log2() const;
  /// Steps that batches may be rotated by, ascending (EvaluatorOptions::steps); of sets without
  /// groups none.
  std::vector<u32> steps() const;
  /// Which batch takes which; empty where all take the parameters' own.
  const StepTable& step_table() const;

  /// log2 of the bound on the failure probability of each bootstrap of an operation, the worst of
  /// them: a gate by name, "mux", "refresh" or "lut" (of a table without symmetry at the set's p).
  /// For independent inputs that come from a bootstrap or from an encryption, whichever has more
  /// noise. ParameterError for any other name.
  double p_fail_log2(std::string_view operation) const;
  double p_fail_log2(Gate gate) const;

  // ---- without a bootstrap ----------------------------------------------------------------------
  Ciphertext not_(const Ciphertext& a) const;  ///< 1 - a, of bits
  /// sum factor_t input_t + constant (a message modulo p). The result has the inputs' plain
  /// modulus, or `plain_modulus` when not 0: the same phases read on another scale. StateError for
  /// inputs that differ in size, context or plain modulus.
  Ciphertext linear(std::span<const Term> terms, i64 constant = 0, u32 plain_modulus = 0) const;
  /// Encryption of known messages without noise or key (mask zero).
  Ciphertext trivial(std::span<const u64> messages, u32 plain_modulus = 0) const;

  // ---- gates ------------------------------------------------------------------------------------
  /// One bootstrap a message. Sets promise what two inputs need: AND3, OR3, AND4, OR4 and majority
  /// have failure probabilities of their own, which most sets refuse. Throws StateError for sizes,
  /// contexts or plain moduli that differ, and when both inputs are the same object (OpenFHE: their
  /// noise would double, not add).
  Ciphertext gate(Gate gate, std::span<const Ciphertext* const> inputs) const;
  Ciphertext gate(Gate gate, const Ciphertext& a, const Ciphertext& b) const;
  /// condition ? a : b, three NANDs; of bits modulo a padded set's p two tables.
  Ciphertext mux(const Ciphertext& condition, const Ciphertext& a, const Ciphertext& b) const;
  /// The bit again with fresh noise; of a padded set's p, any message.
  Ciphertext refresh(const Ciphertext& a) const;

  // ---- look-up tables ---------------------------------------------------------------------------
  /// luts.size() == 1: that table for every message; otherwise luts[index[i]] for message i.
  /// Padded sets: any table, one bootstrap. Others: EvalFunc of OpenFHE (negacyclic tables one
  /// bootstrap; periodic ones and arbitrary ones two, docs/theory/tfhe.md "Functions of messages").
  /// Throws ParameterError for tables of another length, entries >= out_modulus (>= half of it,
  /// padded) or an index that does not fit; UnsupportedError for an arbitrary table where 2 q > 2
  /// N. The context keeps tables and index by content for the next call, within bounds.
  Ciphertext lut(const Ciphertext& a, const Lut& lut) const;
  Ciphertext lut(const Ciphertext& a, std::span<const Lut> luts, std::span<const u32> index) const;
  /// The same tables read at `outputs` = S places by one rotation, for messages m below L / S, L =
  /// p / 2 entries: element S i + s of the result is entry m + s L / S of message i's table, so
  /// that a table of L entries holds S functions of a message. One key switch an output. Errors of
  /// one rotation's results may depend on each other, and are judged so where they are added up.
  /// Padded sets whose rows hold one message, UnsupportedError otherwise; S a power of two up to L
  /// (ParameterError). Whether messages are below L / S cannot be known without the key: of others
  /// an output is a negated entry.
  Ciphertext lut(const Ciphertext& a, std::span<const Lut> luts, std::span<const u32> index,
                 u32 outputs) const;
  /// The same by tables made ready before (Context::prepare). StateError where their parameters,
  /// device or plain modulus are not those of `a`, ParameterError for an index of another size.
  Ciphertext lut(const Ciphertext& a, const PreparedLut& lut) const;

  // ---- of messages modulo a power of two p, which may be larger than the set's ------------------
  // Throw ParameterError for another p, UnsupportedError where one bootstrap cannot read the bits
  // asked for or the results' modulus leaves no room for their noise.
  /// Clears the low `bits` of messages modulo p (EvalFloor), 0 < bits < log2 p. Two bootstraps.
  Ciphertext floor(const Ciphertext& a, u32 bits) const;
  /// 1 where the message is in the upper half of [0, p), else 0, modulo 4 (EvalSign). One
  /// bootstrap, and two for every log2(q / 2 beta) bits that p has more than the set's.
  Ciphertext sign(const Ciphertext& a) const;
  /// Digits of the message to base 2^base_bits, least significant first (EvalDecomp), each modulo
  /// 2^base_bits, the last modulo what remains of p. Two bootstraps a digit but the last.
  std::vector<Ciphertext> decompose(const Ciphertext& a, u32 base_bits) const;

  // ---- packing ----------------------------------------------------------------------------------
  /// From single messages of the same secret keys (a context with slots = 1 made from this client)
  /// to r under a mask: Client::single gives such a context. KeyMissingError without a packing key.
  Ciphertext pack(const Ciphertext& single) const;

  // ---- storage (sets with groups; UnsupportedError for others) ----------------------------------
  /// The messages in host memory, a fraction of their size: what may be stored or sent. Its
  /// rounding is noise, which decompression reads: ParameterError where that would fail too often.
  /// In lists a message of many takes a few bytes, and packing a switch of the ring:
  /// KeyMissingError without the key for it (KeyRequest::lists), UnsupportedError for sets that
  /// rest under more than one polynomial. StateError for plain moduli that refresh does not take.
  /// Waits for the device; not capturable.
  Compressed compress(const Ciphertext& a, StoredForm form = StoredForm::switched) const;
  /// The messages again, with the noise of a bootstrap: one rotation each, in the order in which
  /// they were. StateError for another context's or other secret keys' array. Not capturable.
  Ciphertext decompress(const Compressed& compressed) const;

  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace crenel::tfhe
