// TorusKernels: what TFHE asks of a backend. Arrays of LWE ciphertexts under shared masks and one
// bootstrapping key; nothing here knows what a message means.
//
// Ciphertexts (LweView). A row of dimension d with r slots is d + r words, (a_0..a_{d-1},
// b_0..b_{r-1}), residues modulo 2^m: b_j = <a, s_j> + e_j + message_j, phase_j = b_j - <a, s_j>.
// At rest: d = n, modulus q, u32 words. Extracted: d = kN, modulus Q_KS, u64 words. Of plans with
// groups: at rest and extracted: d = kN, modulus q; what a blind rotation reads: d = n, modulus
// Q_KS; all u32 words.
//
// The rules of device/poly/kernels.h hold (stream order, no allocation, no synchronisation; out
// must not overlap an input except where said; the public operations check and call do_*, here with
// ParameterError that names value and expectation, and do_* gets at least one row). Exactness: with
// Arithmetic::exact every result is a mathematical function of the inputs. With approx and split
// the blind rotation is the sequence of IEEE double operations stated at blind_rotate, without
// contraction or reordering, so that it has the same bits on every backend too.
#pragma once

#include <memory>
#include <span>

#include "crenel/device/device.h"
#include "device/torus/lwe_view.h"
#include "device/torus/plan.h"
#include "random/seed.h"

namespace crenel::device {

/// Look-up tables as test polynomials, device memory.
struct LutView {
  const u64* polys = nullptr;    ///< [count][N], canonical modulo Q
  const u64* offsets = nullptr;  ///< [count], canonical modulo Q: added to the extracted body
  u32 count = 0;
  const u32* index = nullptr;  ///< [batch][slots], each < count; null: table 0 for every message
  u32 outputs = 1;             ///< [S] rows of a rotation, a power of two up to N
};

/// A key switch from `in_dim` words of mask to `out_dim`. Packing r rows of dimension d into one is
/// the switch with in_dim = r d (masks one after the other).
struct SwitchShape {
  u32 in_dim = 0;
  u32 out_dim = 0;
  u32 slots = 1;
  u32 log_modulus = 0;      ///< of the input and of the key
  u32 log_out_modulus = 0;  ///< of the output, at most 32 and at most log_modulus
  u32 base_log = 0;
  u32 digits = 0;
  /// A key row for every digit, which multiplies it, in place of one for each of its values.
  bool products = false;
  u32 log_in_modulus = 0;  ///< products: of the input, at most 32; otherwise it is log_modulus

  u32 out_words() const { return out_dim + slots; }
  LweShape in(u64 rows) const {
    return {rows, in_dim, slots, products ? log_in_modulus : log_modulus};
  }
  u32 in_word_bytes() const { return products ? 4 : 8; }
  LweShape out(u64 rows) const { return {rows, out_dim, slots, log_out_modulus}; }
  /// Key rows of a digit.
  u64 digit_rows() const { return products ? 1 : (u64(1) << base_log) - 1; }
  u64 key_rows() const { return u64(in_dim) * digits * digit_rows(); }
  /// log2 of the lowest digit's weight.
  u32 log_weight() const { return products ? log_modulus - base_log * digits : 0; }
  /// Bytes of a word of the key: 4 when log_modulus <= 32, else 8.
  u32 key_word_bytes() const { return log_modulus <= 32 ? 4 : 8; }
  u64 key_bytes() const { return key_rows() * out_words() * key_word_bytes(); }
  /// All rows of the key, in device memory.
  template <class Void>
  LweArray<Void> key(Void* memory) const {
    return {memory, {key_rows(), out_dim, slots, log_modulus}, key_word_bytes()};
  }
  bool operator==(const SwitchShape&) const = default;
};

/// One addend of a linear combination: an array of the output's shape.
struct LweTerm {
  const u32* data = nullptr;
  i64 factor = 1;
};

/// One addend of one of several sums: rows that lie `row_step` rows of the output's width apart.
struct LweRowsTerm {
  const u32* data = nullptr;
  u32 row_step = 1;
  i64 factor = 1;
};
struct LweSum {
  std::span<const LweRowsTerm> terms;
  u32 constant = 0;
};

/// A ring ciphertext (b, a) that decrypts to b + a s, s = z(X^D) in a subring: device memory
/// [2][M], b before a, coefficient form, canonical modulo one prime; D = M / dim, dim the degree of
/// z.
struct RingView {
  const u32* polys = nullptr;
  u32 log_degree = 0;  ///< log2 of the degree [M], at most 20
  u32 modulus = 0;     ///< odd
};
/// Of TorusKernels::embed: no row.
inline constexpr u32 kNoRow = ~u32(0);

/// Where fresh rows take masks or errors from: row y has the serial `serial` + y.
struct RowSeed {
  const random::Seed& seed;
  u64 serial = 0;
};

class TorusKernels {
 public:
  explicit TorusKernels(TorusPlan plan) : plan_(std::move(plan)) { check(plan_); }
  virtual ~TorusKernels() = default;
  const TorusPlan& plan() const { return plan_; }
  /// The switch from extracted ciphertexts to those that a blind rotation reads.
  SwitchShape switch_shape() const;
  LweShape at_rest(u64 rows) const;
  /// What a blind rotation reads: rows at rest, but with groups those behind the switch.
  LweShape read(u64 rows) const;
  /// What it gives: with groups rows at rest.
  LweShape extracted(u64 rows) const;
  u32 extracted_word_bytes() const { return plan_.rests_extracted() ? 4 : 8; }

  // ---- bootstrapping
  /// Device bytes of a bootstrapping key in this backend's order.
  virtual u64 bootstrap_key_bytes() const = 0;
  /// Brings the keys of the steps [first, first + count) into this backend's order.
  /// `polys`: device memory, [count][key][digit][row][out][N] centred integers modulo the product
  /// of the primes (|x| <= product / 2), with rows and outs in the accumulator's order (k masks,
  /// then r bodies). Key 0 encrypts [s_i = 1], key 1 (ternary) [s_i = -1]. With groups key S < 2^g
  /// encrypts [s_(g i + l) = bit l of S for all l < g]; of plans by differences those of S > 0 are
  /// there.
  void load_bootstrap_key(Stream& stream, void* key, u32 first, u32 count, const i64* polys);
  /// Blind rotation, sample extraction and modulus switch to Q_KS (BOLT-FHE algorithms 1-3): rows
  /// at rest to luts.outputs = S times as many extracted ones, those of row y at [S y, S y + S).
  ///
  /// Exponents: E(x) = x 2N / q when q <= 2N, else floor((x 2N + q/2) / q), modulo 2N.
  /// Start: ACC = (0, ..., 0, X^(-E(b_j)) v_j), v_j the table of slot j. Then for i = 0..n-1, with
  /// e = E(a_i), and (x) the external product with element i's key 0 and key 1:
  ///   ACC += (X^e - 1) (ACC (x) K0) + (X^-e - 1) (ACC (x) K1)        (binary: the first term only)
  /// where the whole sum is formed modulo the key's modulus before one rounding:
  ///   raising: c = centred ACC in [-Q/2, Q/2), sum modulo T, then round(Q sum / T) modulo Q;
  ///   gadget:  digits of c = centred ACC in (-Q/2, Q/2): x_0 = c, d_j = the residue of x_j modulo
  ///     2^base_log in [-B/2, B/2), x_(j+1) = (x_j - d_j) / B; d_0 is dropped; digit j of the key
  ///     multiplies d_(j+1), the last digit is x_digits itself (all that is left).
  /// End: output s < S is the coefficient i = s N / S. Words t N + j of its mask are a_t's
  /// coefficients (a_i, a_(i-1), ..., a_0, -a_(N-1), ..., -a_(i+1)), body j is its coefficient i
  /// plus the table's offset; each word x becomes floor((x Q_KS + floor(Q / 2)) / Q) modulo Q_KS.
  ///
  /// approx: operands enter the transform of ring/fft.h as doubles. Forward butterfly at a node,
  /// halves lo and hi, w its twiddle:
  ///   x.re = fma(-w.im, hi.im, fma(w.re, hi.re, lo.re)), x.im = fma(w.im, hi.re, fma(w.re, hi.im,
  ///   lo.im)); y = fma(2, lo, -x) by parts; (lo, hi) = (x, y).
  /// load_bootstrap_key transforms P = K0 + K1 and D = K0 - K1 (ternary; sums of integers, exact in
  /// 64 bits before conversion) or P = K0 (binary). Per point f, for each output o, over digits
  /// then rows ascending, from zero:
  ///   A.re = fma(-in.im, P.im, fma(in.re, P.re, A.re)), A.im = fma(in.im, P.re, fma(in.re, P.im,
  ///   A.im)), the same for B with D. Then with (c, s) = roots[e exponents[f] mod 2N], u = c - 1:
  ///   ternary: z.re = fma(u, A.re, -(s * B.im)), z.im = fma(u, A.im, s * B.re);
  ///   binary:  z.re = fma(u, A.re, -(s * A.im)), z.im = fma(u, A.im, s * A.re).
  /// Inverse butterfly: d = lo - hi, lo' = lo + hi, hi'.re = fma(w.im, d.im, w.re * d.re),
  /// hi'.im = fma(-w.im, d.re, w.re * d.im). z_j then holds M times the coefficients j (re) and j +
  /// M (im). With magic = 1.5 * 2^52:
  ///   short (raising, unless reduces_product(plan)): delta = fma(z, (double(Q) / double(T)) / M,
  ///     magic) - magic (an integer);
  ///   otherwise: v = z * (1 / M), raising z * ((double(Q) / double(T)) / M); t = fma(v, 1 /
  ///     double(Q), magic) - magic; r = fma(-t, double(Q), v); delta = (r + magic) - magic,
  ///     truncated to an integer (for Q above 2^52 it may be a half);
  ///   ACC += delta modulo Q.
  ///
  /// Groups (plan.group = g > 0), m = 2^g, D = 2^(log Q_KS - log 2N). For every step i: x_S = sum
  /// of the a_(g i + l) with bit l of S set, modulo Q_KS; f_S = x_S modulo D. Cuts are tried in the
  /// order T = 0..m-1: u_S = f_S where f_S <= f_T, else f_S - D; the first with the least m sum u^2
  /// - (sum u)^2 is taken. c_S = (x_S - u_S) / D modulo 2N. The exponent of body j is
  ///   E = floor((m b_j - sum of all u of all steps + m D / 2) / (m D)) modulo 2N,
  /// and a step sets, rounded once,
  ///   ACC = ACC (x) sum_S X^(c_S) K_S.
  /// approx: load_bootstrap_key transforms every K_S. Per point f, row t and output o, with w_S =
  /// roots[c_S exponents[f] mod 2N]: B = K_0 (c_0 is 0), then for S = 1..m-1
  ///   B.re = fma(-w.im, K.im, fma(w.re, K.re, B.re)), B.im = fma(w.im, K.re, fma(w.re, K.im,
  ///   B.im));
  /// z = 0, then over rows ascending z.re = fma(-in.im, B.im, fma(in.re, B.re, z.re)), z.im =
  /// fma(in.im, B.re, fma(in.re, B.im, z.im)). The inverse transform and delta as above; ACC =
  /// delta modulo Q. Words of the output: modulo q, floor((x q + floor(Q / 2)) / Q).
  ///
  /// Groups by differences (plan.differences): a step adds, rounded once,
  ///   ACC += sum over S > 0 of (X^(c_S) - 1) (ACC (x) K_S)
  /// and approx has, per point f and output o, A_S over rows ascending from zero as A above, then
  /// with (c, s) = w_S, u = c - 1, S = 1: z as of a binary secret above; for S = 2..m-1
  ///   z.re = fma(-s, A_S.im, fma(u, A_S.re, z.re)), z.im = fma(s, A_S.re, fma(u, A_S.im, z.im));
  /// ACC += delta modulo Q.
  ///
  /// split: as approx, with two operands in place of every digit x, in this order: its residue lo
  /// modulo 2^p in [-2^(p-1), 2^(p-1)), p = piece_log(plan), and hi = (x - lo) / 2^p. Where lo
  /// multiplies a key K, hi multiplies 2^p K modulo Q, centred: what sums P and D are formed of.
  void blind_rotate(Stream& stream, const LweView& out, const ConstLweView& in, const void* key,
                    const LutView& luts);

  // ---- LWE
  /// Key switch (BOLT-FHE algorithm 4) and modulus switch: shape.in(rows) of u64 words to
  /// shape.out(rows) of u32 words. Key rows (shape.key) [in_dim][digits][2^base_log - 1]; row (i,
  /// j, v - 1) encrypts v 2^(base_log j) times the i-th word of the input's secrets:
  ///   out = (0, b) - sum_(i, j) row(i, j, digit j of a_i), digits in [0, 2^base_log), none for 0;
  /// then x becomes floor((x + half) / 2^(log_modulus - log_out_modulus)) modulo the output's
  /// modulus, half = half of that divisor (0 when it is 1).
  /// Products: u32 words of input, [in_dim][digits] key rows; row (i, j) encrypts 2^(log_weight +
  /// base_log j) times the word. a_i is rounded as x above to base_log * digits bits and cut into
  /// digits in [-B/2, B/2), lowest first, what is carried out of the last one dropped; b is rounded
  /// to log_modulus bits: out = (0, b) - sum_(i, j) digit_j(a_i) row(i, j).
  void key_switch(Stream& stream, const SwitchShape& shape, const LweView& out,
                  const ConstLweView& in, const ConstLweView& key);
  /// out = sum_t factor_t data_t + (0, constant, ..., constant) modulo 2^log_modulus, u32 words;
  /// out may be one of the inputs. At least one term.
  void linear(Stream& stream, const LweView& out, std::span<const LweTerm> terms, u32 constant);
  /// Several of them at once: rows [R i, R (i + 1)) of `out` are the i-th sum, of R rows each, u32
  /// words. A sum of no terms is its constant. `out` must not overlap an input.
  void sums(Stream& stream, const LweView& out, std::span<const LweSum> sums);
  /// To the output's modulus, u32 words: downwards rounding as in key_switch, upwards multiplying
  /// by the quotient. In place allowed.
  void mod_switch(Stream& stream, const LweView& out, const ConstLweView& in);

  // ---- to and from rings of larger degree; rows of u32 words, 1 slot, dim a power of two
  /// Row y is an encryption under z of coefficient p = positions[y] (device memory, each below M)
  /// of what `in` decrypts to. With p = D u + v word j of its mask is -a_(D (u - j) + v) for j <= u
  /// and a_(D (dim + u - j) + v) beyond, its body is b_p; of each word's residue x in [0, modulus)
  /// becomes floor((x 2^m + floor(modulus / 2)) / modulus) modulo 2^m, m = log_modulus of `out`.
  void extract(Stream& stream, const LweView& out, const RingView& in, const u32* positions);
  /// D rows in the ring of degree M = 2^log_degree, `count` times: device memory [count][2][M], b
  /// before a, such that coefficient v of b + a z(X^D) is the phase of row y = rows[c D + v]
  /// (device memory, [count][D]), modulo the rows' 2^m, and its words x are centred, c(x) in
  /// [-2^(m-1), 2^(m-1)): b_v = c(b), a_v = -c(word 0), a_(D i + v) = c(word dim - i) for i > 0;
  /// all else is 0, also where y = kNoRow. Other coefficients than those below D mean nothing.
  void embed(Stream& stream, i64* out, u32 log_degree, u32 count, const ConstLweView& in,
             const u32* rows);

  // ---- sample
  /// Fresh encryptions, in u32 words when log_modulus <= 32, else u64. Mask word i of a row: the
  /// low bits of word i mod 16 of ChaCha20 block i / 16 of (masks.seed, {uniform, serial}); for u64
  /// words, of the 64-bit word i mod 8 of block i / 8. Error of slot j: random::error_value number
  /// j mod 8 of block j / 8 of (errors.seed, {error, serial}). `secrets`: device memory
  /// [slots][dim], entries -1, 0, 1. `messages`: device memory [rows][slots] or null (zeros).
  void sample_lwe(Stream& stream, const LweView& out, const RowSeed& masks, const RowSeed& errors,
                  const i8* secrets, const u64* messages);
  /// Rows with the masks of sample_lwe and the given bodies ([rows][slots] u64, device memory).
  void expand_lwe(Stream& stream, const LweView& out, const RowSeed& masks, const u64* bodies);
  /// out[row][slot] = phase of rows of u32 words, modulo their 2^log_modulus.
  void phase(Stream& stream, u32* out, const ConstLweView& in, const i8* secrets);

 protected:
  virtual void do_load_bootstrap_key(Stream& stream, void* key, u32 first, u32 count,
                                     const i64* polys) = 0;
  virtual void do_blind_rotate(Stream& stream, const LweView& out, const ConstLweView& in,
                               const void* key, const LutView& luts) = 0;
  virtual void do_key_switch(Stream& stream, const SwitchShape& shape, const LweView& out,
                             const ConstLweView& in, const ConstLweView& key) = 0;
  virtual void do_linear(Stream& stream, const LweView& out, std::span<const LweTerm> terms,
                         u32 constant) = 0;
  virtual void do_sums(Stream& stream, const LweView& out, std::span<const LweSum> sums) = 0;
  virtual void do_mod_switch(Stream& stream, const LweView& out, const ConstLweView& in) = 0;
  virtual void do_extract(Stream& stream, const LweView& out, const RingView& in,
                          const u32* positions) = 0;
  virtual void do_embed(Stream& stream, i64* out, u32 log_degree, u32 count, const ConstLweView& in,
                        const u32* rows) = 0;
  virtual void do_sample_lwe(Stream& stream, const LweView& out, const RowSeed& masks,
                             const RowSeed& errors, const i8* secrets, const u64* messages) = 0;
  virtual void do_expand_lwe(Stream& stream, const LweView& out, const RowSeed& masks,
                             const u64* bodies) = 0;
  virtual void do_phase(Stream& stream, u32* out, const ConstLweView& in, const i8* secrets) = 0;

 private:
  TorusPlan plan_;
};

}  // namespace crenel::device
