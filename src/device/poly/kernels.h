// PolyKernels: THE interface between schemes and backends. Whole batched RNS polynomials, no
// ciphertexts.
//
// Rules that hold for every operation, and are not repeated below:
//  * inputs and outputs are canonical residues in [0, q) of their limb's prime;
//  * exactness class `exact`: the result is a mathematical function of the inputs, so every
//    backend produces the same bits; the ref backend is the specification;
//  * operations are queued on `stream`, decide nothing from device data, and neither allocate from
//    the device (workspace comes from the stream's pool) nor synchronise: all are capturable;
//  * out must not overlap an input except where "in place" is said, then only with identical views;
//  * a, b, out have equal shapes and limbs; an input of 1 component or of batch 1 is broadcast
//    along that axis where "broadcast" is said.
// The public operations check all that (device/poly/checks.h: StateError that names both values)
// and call their virtual do_*, which may rely on it. Notation: x^(b,c,l) is limb l of component c
// of batch entry b, q_l its prime.
#pragma once

#include <memory>
#include <span>

#include "crenel/device/device.h"
#include "device/prepared.h"
#include "random/seed.h"
#include "ring/poly_view.h"
#include "ring/ring.h"

namespace crenel::device {

using ring::Domain;
using ring::LimbSet;
using ring::PolyShape;
using ring::PolyView;

/// One scalar per limb for each half of the evaluation points, canonical. A real constant has low
/// == high; a + b*X^(N/2) (the complex constant a + bi in every slot) has low = a + b*I, high = a -
/// b*I with I = psi^(N/2): element i of a limb in evaluation form uses low when i < N/2, else high.
struct LimbScalars {
  u32 low[rns::kMaxLimbs] = {};
  u32 high[rns::kMaxLimbs] = {};
};

/// The plaintexts of a linear transform, row by row: entry (g, b) multiplies baby step b in giant
/// step g. A plaintext of 2^log_words / 2 distinct slot values that repeat is a polynomial in X^(N
/// / 2^log_words): in evaluation form every run of N / 2^log_words neighbours is one value, and
/// only that is stored, so that element i of a limb is word i >> (log_n - log_words).
struct PlainGrid {
  const u32* data = nullptr;  ///< [giant][baby][limb][2^log_words], canonical; absent entries too
  LimbSet limbs;
  u32 log_words = 0;  ///< at most log_n
  u32 giants = 0, babies = 0;
  const u8* present = nullptr;  ///< host memory, [giant][baby]: 0 where the plaintext is zero

  u64 entry_words() const { return u64(limbs.size()) << log_words; }
  const u32* entry(u32 giant, u32 baby) const {
    return data + (u64(giant) * babies + baby) * entry_words();
  }
  bool has(u32 giant, u32 baby) const { return present[u64(giant) * babies + baby] != 0; }
};

/// A switching key as an operation reads it: one batch entry a gadget digit from `first_digit` on,
/// 2 components, at least the digits and limbs that the operation reads. Its words lie at
/// pairs.data or, where `slot` is set, at the address that stands in *slot, memory of the device,
/// when the operation runs: what was recorded once then serves every key of this shape.
struct KeyView {
  PolyView<const u32> pairs;
  const u32* const* slot = nullptr;
  u32 first_digit = 0;  ///< gadget digit of the first batch entry
  u32 shared_by = 1;    ///< groups of parts of a device that have what they need (device/apart.h)

  KeyView() = default;
  template <class Word>
  KeyView(const PolyView<Word>& direct, u32 first = 0)  // NOLINT: implicit on purpose
      : pairs(direct), first_digit(first) {}
  KeyView(const PolyView<const u32>& shape, const u32* const* where, u32 first = 0)
      : pairs(shape), slot(where), first_digit(first) {}

  /// Batch entry of a gadget digit, one that the key has.
  u32 entry(u32 digit) const { return digit - first_digit; }

  /// The key behind the slot, for backends whose memory is the host's.
  PolyView<const u32> resolved() const {
    PolyView<const u32> v = pairs;
    if (slot != nullptr) v.data = *slot;
    return v;
  }
};

/// What is made of a product d = tensor(a, b): s d + (constant, 0, 0) + sum_k factors[k] addends[k]
/// with s = 1, or 2 with `doubled`. Scalars as in mul_scalar.
struct ProductSum {
  bool doubled = false;
  const LimbScalars* constant = nullptr;              ///< may be null
  std::span<const PolyView<const u32>> addends = {};  ///< all of 2 components, or all of 3
  std::span<const LimbScalars> factors = {};          ///< one an addend
};

/// What sources of a base conversion are made of: a view, or with `other` the third component that
/// `sum` makes of tensor(in, other).
struct SourcesOf {
  PolyView<const u32> in;
  PolyView<const u32> other = {};  ///< data null: none
  ProductSum sum = {};

  template <class Word>
  SourcesOf(const PolyView<Word>& view) : in(view) {}  // NOLINT: implicit on purpose
  SourcesOf(const PolyView<const u32>& a, const PolyView<const u32>& b, const ProductSum& s)
      : in(a), other(b), sum(s) {}
  bool product() const { return other.data != nullptr; }
  /// Of the sources.
  PolyShape shape() const {
    return {in.shape.log_n, product() ? 1 : in.shape.components, in.shape.batch};
  }
};

/// Sources of a base conversion, as sources() leaves them or spread_sources() does (several.h).
struct SourcesView {
  PolyView<const u32> view;
  bool tiled = false;  ///< not limb by limb, but as the backend's conversions bring them

  template <class Word>
  SourcesView(const PolyView<Word>& of, bool in_tiles = false)  // NOLINT: implicit on purpose
      : view(of), tiled(in_tiles) {}
  /// The view of those that are not tiled; StateError for others.
  const PolyView<const u32>& limbs() const;
};

/// A key switch of whose result only a division is wanted: key_switch_product of `in` and `other`
/// where there is one, with the lift `factor`; else key_switch_rotated of `in`, added to nothing,
/// or with element 1 key_switch_extended.
struct SwitchOf {
  PolyView<const u32> in;
  PolyView<const u32> other = {};  ///< data null: none
  u64 element = 1;
  const PolyView<const u32>* addend = nullptr;  ///< of no product
  const LimbScalars* factor = nullptr;
  ProductSum sum = {};  ///< of a product

  bool product() const { return other.data != nullptr; }
};

class PolyKernels {
 public:
  using Ring = ring::Ring;
  using View = PolyView<u32>;
  using ConstView = PolyView<const u32>;
  using Scalars = LimbScalars;
  using Grid = PlainGrid;
  using Key = KeyView;

  explicit PolyKernels(std::shared_ptr<const Ring> ring) : ring_(std::move(ring)) {}
  virtual ~PolyKernels() = default;
  const Ring& ring() const { return *ring_; }

  // ---- tables
  Prepared<rns::BaseConversion> prepare(rns::BaseConversion table);
  Prepared<rns::ModUp> prepare(rns::ModUp table);
  Prepared<rns::Divide> prepare(rns::Divide table);

  // ---- arithmetic: element-wise, either domain, in place allowed, b broadcast
  /// out = a + b mod q_l
  void add(Stream& stream, const View& out, const ConstView& a, const ConstView& b);
  /// out = a - b mod q_l
  void sub(Stream& stream, const View& out, const ConstView& a, const ConstView& b);
  /// out = -a mod q_l
  void neg(Stream& stream, const View& out, const ConstView& a);
  /// out = a * b mod q_l, element by element
  void mul(Stream& stream, const View& out, const ConstView& a, const ConstView& b);
  /// out = out + a * b mod q_l
  void mul_add(Stream& stream, const View& out, const ConstView& a, const ConstView& b);
  /// out[i] = a[i] * s(i), s(i) = scalars.low[l] for i < N/2, scalars.high[l] otherwise; scalars
  /// are indexed by limb position in the view
  void mul_scalar(Stream& stream, const View& out, const ConstView& a, const Scalars& scalars);
  /// out[i] = out[i] + a[i] * s(i)
  void mul_add_scalar(Stream& stream, const View& out, const ConstView& a, const Scalars& scalars);
  /// out[i] = a[i] + s(i)
  void add_scalar(Stream& stream, const View& out, const ConstView& a, const Scalars& scalars);

  // ---- transform
  /// Negacyclic NTT, coefficient to evaluation form (bit-reversed, see ring::Domain); in place
  /// allowed.
  void ntt(Stream& stream, const View& out, const ConstView& in);
  /// Inverse of ntt, including the factor 1/N; in place allowed.
  void intt(Stream& stream, const View& out, const ConstView& in);
  /// X -> X^element, element odd in [1, 2N). coeff: a_i goes to index i*element mod N with the sign
  /// of X^N = -1. eval: out[i] = in[ring::galois_eval_source(i)]. Domain of out = domain of in.
  void automorphism(Stream& stream, const View& out, const ConstView& in, u64 element);

  // ---- basis
  /// Centred base conversion (rns::BaseConversion), coefficient form; in.limbs = source,
  /// out.limbs = destination.
  void base_convert(Stream& stream, const View& out, const ConstView& in,
                    const Prepared<rns::BaseConversion>& table);
  /// out = coefficients mod q_l: `values` is device memory, [batch][component][N] int64; domain
  /// coeff.
  void reduce_signed(Stream& stream, const View& out, const i64* values);
  /// Exact lift: the integer in (-D/2, D/2) with these residues, D < 2^62 the product of in's one
  /// or two primes: `values` is device memory, [batch][component][N] int64; in has coefficient
  /// form.
  void lift_signed(Stream& stream, i64* values, const ConstView& in);

  // ---- sample: counter-based ChaCha20 (random/chacha20.h), whoever computes
  /// Uniform residues: element i of the limb of prime id p is 128 bits mod q: words 4(i mod 4)..+3,
  /// little-endian, of ChaCha20 block p * (N/4) + i/4 (bias below 2^-96). Batch entry b, component
  /// c use nonce.serial + b * components + c.
  void sample_uniform(Stream& stream, const View& out, const random::Seed& seed,
                      random::Nonce nonce);
  /// One ternary polynomial per (batch, component), the same integers modulo every limb, coeff
  /// form: coefficient i is bit 2(i mod 256) minus bit 2(i mod 256)+1 of block i/256: P(+-1) = 1/4.
  void sample_ternary(Stream& stream, const View& out, const random::Seed& seed,
                      random::Nonce nonce);
  /// Centred binomial errors, 21 pairs of coins (variance 10.5), coeff form: coefficient i is
  /// popcount(x & m) - popcount((x >> 21) & m), m = 2^21 - 1, x the 64-bit word i mod 8 of block
  /// i/8.
  void sample_error(Stream& stream, const View& out, const random::Seed& seed, random::Nonce nonce);

  // ---- fused: the default do_* is a composition (device/poly/compose); backends override what
  // pays
  /// out = (a0 b0, a0 b1 + a1 b0, a1 b1), eval; out has 3 components, a and b have 2; equal batch.
  void tensor(Stream& stream, const View& out, const ConstView& a, const ConstView& b);
  /// tensor(out, a, a); when doubled is not null, 2 tensor(out, a, a) + (doubled, 0, 0): the step
  /// from T_k to T_2k, and the double angle. Scalars as in mul_scalar.
  void tensor_square(Stream& stream, const View& out, const ConstView& a,
                     const Scalars* doubled = nullptr);
  /// out = sum_k scalars[k] in[k] + constant, either domain; ins of out's shape; at least one, out
  /// may be one of them. `constant` may be null. Scalars as in mul_scalar.
  void linear_combination(Stream& stream, const View& out, std::span<const ConstView> in,
                          std::span<const Scalars> scalars, const Scalars* constant);
  /// out[g] = sum_b plain(g, b) in[b], eval, over the entries present (zero where a row has none);
  /// `in` one view a baby step, `out` one a giant step, all of equal shape and of plain's limbs.
  void plain_multiply_sum(Stream& stream, std::span<const View> out, std::span<const ConstView> in,
                          const Grid& plain);
  /// out += automorphism(in), of in_c + addend_c for the components that addend (may be null) has
  void automorphism_add(Stream& stream, const View& out, const ConstView& in, u64 element,
                        const ConstView* addend = nullptr);
  /// ModUp of hybrid key switching, eval to eval: in has 1 component and limbs table.input, out has
  /// one component a digit and limbs table.output. A digit's own limbs are copied, the others are
  /// ntt(base_convert(intt(in digit))).
  void mod_up(Stream& stream, const View& out, const ConstView& in,
              const Prepared<rns::ModUp>& table);
  /// out_c = sum_d digits_d * key^(first_digit + d, c), c = 0, 1, eval; digits has one component a
  /// digit. first_digit counts gadget digits, of which the key may hold a part (KeyView).
  void key_multiply(Stream& stream, const View& out, const ConstView& digits, const Key& key,
                    u32 first_digit);
  /// Key switching up to ModDown, the result in the extended basis: key_multiply of the digits that
  /// mod_up makes of `in`, for callers that need the digits only once: a backend need not store
  /// them. out has 2 components and limbs table.output. When addend is not null (limbs table.input,
  /// the batch of in, 1 or 2 components), out_c += factor * addend_c on its limbs; factor as in
  /// mul_scalar.
  void key_switch_extended(Stream& stream, const View& out, const ConstView& in,
                           const Prepared<rns::ModUp>& table, const Key& key, u32 first_digit,
                           const ConstView* addend = nullptr, const Scalars* factor = nullptr);
  /// Key switching and a rotation up to ModDown:
  ///   out = automorphism_element( key_switch_extended(in) + (factor * addend, 0) ),
  /// added to what out holds with `add`. The addend (may be null) has the leading limbs of out, 1
  /// or 2 components; no factor is a factor of 1. A backend need not store what is rotated.
  void key_switch_rotated(Stream& stream, const View& out, const ConstView& in,
                          const Prepared<rns::ModUp>& table, const Key& key, u32 first_digit,
                          u64 element, bool add, const ConstView* addend = nullptr,
                          const Scalars* factor = nullptr);
  /// A product and its relinearisation up to ModDown: with d the three components that `sum` makes
  /// of tensor(a, b), key_switch_extended of d_2 with the addend (d_0, d_1) and the factor lift. a
  /// and b have 2 components, and they and the addends have limbs table.input; where they are the
  /// same view it is a square. A backend need not store d.
  void key_switch_product(Stream& stream, const View& out, const ConstView& a, const ConstView& b,
                          const Prepared<rns::ModUp>& table, const Key& key, u32 first_digit,
                          const Scalars& lift, const ProductSum& sum = {});
  /// The three components that `sum` makes of tensor(a, b), stored: a composition on every backend.
  void product_sum(Stream& stream, const View& out, const ConstView& a, const ConstView& b,
                   const ProductSum& sum);
  /// Division by dropped primes (rns::Divide), eval to eval; when addend is not null (same batch
  /// and limbs as out, components <= out's), out_c += addend_c for c < addend components, after the
  /// division. out serves as workspace on the way. Covers ModDown, rational rescale and both
  /// merged.
  void divide(Stream& stream, const View& out, const ConstView& in,
              const Prepared<rns::Divide>& table, const ConstView* addend = nullptr);
  /// divide of what `of` says, by a table whose input are the limbs of that. A backend need not
  /// store the limbs that are dropped.
  void key_switch_divided(Stream& stream, const View& out, const SwitchOf& of,
                          const Prepared<rns::ModUp>& raised, const Key& key, u32 first_digit,
                          const Prepared<rns::Divide>& table, const ConstView* addend = nullptr);
  /// The same in the caller's room for the sum, of which nothing is left.
  void key_switch_divided(Stream& stream, const View& out, const View& sum, const SwitchOf& of,
                          const Prepared<rns::ModUp>& raised, const Key& key, u32 first_digit,
                          const Prepared<rns::Divide>& table, const ConstView* addend);
  // ---- parts of mod_up, key_switch_extended and divide, for devices that share the limbs of a
  // polynomial: each transforms the sources that it has, gets those of the others, and goes on to
  // the limbs that it keeps. Words between `sources` and what goes on from them have a form that is
  // the backend's own.
  /// Limbs of what `of` says (eval), which may have more, as sources of a base conversion:
  /// scales.source. A product's inputs have 2 components, and its addends their limbs.
  void sources(Stream& stream, const View& out, const SourcesOf& of,
               const Prepared<rns::BaseConversion>& scales);
  /// mod_up of the sources table.input (coeff, of `sources`), where `own` (eval) holds those of
  /// them that table.output has: any order of the sources inside a digit, any limbs of the output.
  void mod_up_from(Stream& stream, const View& out, const SourcesView& sources,
                   const ConstView& own, const Prepared<rns::ModUp>& table);
  /// key_switch_extended likewise; the addend has the leading limbs of out.
  void key_switch_from(Stream& stream, const View& out, const SourcesView& sources,
                       const ConstView& own, const Prepared<rns::ModUp>& table, const Key& key,
                       u32 first_digit, const ConstView* addend = nullptr,
                       const Scalars* factor = nullptr);
  /// key_switch_rotated likewise.
  void key_switch_rotated_from(Stream& stream, const View& out, const SourcesView& sources,
                               const ConstView& own, const Prepared<rns::ModUp>& table,
                               const Key& key, u32 first_digit, u64 element, bool add,
                               const ConstView* addend = nullptr, const Scalars* factor = nullptr);
  /// key_switch_product likewise, of the sources of its third component: a, b and the addends have
  /// the leading limbs of out.
  void key_switch_product_from(Stream& stream, const View& out, const SourcesView& sources,
                               const ConstView& a, const ConstView& b,
                               const Prepared<rns::ModUp>& table, const Key& key, u32 first_digit,
                               const Scalars& lift, const ProductSum& sum = {});
  /// divide with the sources table.dropped; x (eval) holds the limbs of the input that table.output
  /// has, and any others.
  void divide_from(Stream& stream, const View& out, const SourcesView& sources, const ConstView& x,
                   const Prepared<rns::Divide>& table, const ConstView* addend = nullptr);

  // ---- hoisted
  /// Hoisted rotate-and-sum in the extended basis, eval:
  ///   out = sum_r automorphism_{e_r}( key_multiply(digits, key_r) + (special * b, 0) )
  /// b has 1 component and the leading limbs of out (the window); special = P mod q_l per limb of
  /// b; the special limbs get no b. An element 1 takes no key: it contributes special * (b, a) with
  /// `a` the polynomial whose digits are given (window limbs), keys[r] is then ignored; without
  /// such an element `a` may be empty. Keys may hold different digits and limbs.
  void hoisted_rotate_sum(Stream& stream, const View& out, const ConstView& digits,
                          const ConstView& b, const ConstView& a, std::span<const Key> keys,
                          std::span<const u64> elements, const Scalars& special, u32 first_digit);
  /// Inner sums of a double-hoisted linear transform in the extended basis, eval:
  /// plain_multiply_sum of the baby steps
  ///   in[b] = automorphism_{e_b}( key_multiply(digits, key_b) + (special * b, 0) )
  /// with arguments as in hoisted_rotate_sum, but that without an `a` elements 1 have keys, too;
  /// `out` one view a giant step. A backend need not store the baby steps.
  void hoisted_plain_sums(Stream& stream, std::span<const View> out, const ConstView& digits,
                          const ConstView& b, const ConstView& a, std::span<const Key> keys,
                          std::span<const u64> elements, const Grid& plain, const Scalars& special,
                          u32 first_digit);

 protected:
  friend struct Compositions;  // of the tests: overrides against the default do_*

  virtual std::shared_ptr<const DeviceTable> do_prepare(const rns::BaseConversion& table);
  virtual std::shared_ptr<const DeviceTable> do_prepare(const rns::ModUp& table);
  virtual std::shared_ptr<const DeviceTable> do_prepare(const rns::Divide& table);

  virtual void do_add(Stream& stream, View out, ConstView a, ConstView b) = 0;
  virtual void do_sub(Stream& stream, View out, ConstView a, ConstView b) = 0;
  virtual void do_neg(Stream& stream, View out, ConstView a) = 0;
  virtual void do_mul(Stream& stream, View out, ConstView a, ConstView b) = 0;
  virtual void do_mul_add(Stream& stream, View out, ConstView a, ConstView b) = 0;
  virtual void do_mul_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) = 0;
  virtual void do_mul_add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) = 0;
  virtual void do_add_scalar(Stream& stream, View out, ConstView a, const Scalars& scalars) = 0;
  virtual void do_ntt(Stream& stream, View out, ConstView in) = 0;
  virtual void do_intt(Stream& stream, View out, ConstView in) = 0;
  virtual void do_automorphism(Stream& stream, View out, ConstView in, u64 element) = 0;
  virtual void do_base_convert(Stream& stream, View out, ConstView in,
                               const Prepared<rns::BaseConversion>& table) = 0;
  virtual void do_reduce_signed(Stream& stream, View out, const i64* values) = 0;
  virtual void do_lift_signed(Stream& stream, i64* values, ConstView in) = 0;
  virtual void do_sample_uniform(Stream& stream, View out, const random::Seed& seed,
                                 random::Nonce nonce) = 0;
  virtual void do_sample_ternary(Stream& stream, View out, const random::Seed& seed,
                                 random::Nonce nonce) = 0;
  virtual void do_sample_error(Stream& stream, View out, const random::Seed& seed,
                               random::Nonce nonce) = 0;
  virtual void do_tensor(Stream& stream, View out, ConstView a, ConstView b);
  virtual void do_tensor_square(Stream& stream, View out, ConstView a, const Scalars* doubled);
  virtual void do_linear_combination(Stream& stream, View out, std::span<const ConstView> in,
                                     std::span<const Scalars> scalars, const Scalars* constant);
  virtual void do_plain_multiply_sum(Stream& stream, std::span<const View> out,
                                     std::span<const ConstView> in, const Grid& plain);
  virtual void do_automorphism_add(Stream& stream, View out, ConstView in, u64 element,
                                   const ConstView* addend);
  virtual void do_mod_up(Stream& stream, View out, ConstView in, const Prepared<rns::ModUp>& table);
  virtual void do_key_multiply(Stream& stream, View out, ConstView digits, const Key& key,
                               u32 first_digit);
  virtual void do_key_switch_extended(Stream& stream, View out, ConstView in,
                                      const Prepared<rns::ModUp>& table, const Key& key,
                                      u32 first_digit, const ConstView* addend,
                                      const Scalars* factor);
  virtual void do_key_switch_rotated(Stream& stream, View out, ConstView in,
                                     const Prepared<rns::ModUp>& table, const Key& key,
                                     u32 first_digit, u64 element, bool add,
                                     const ConstView* addend, const Scalars* factor);
  virtual void do_key_switch_product(Stream& stream, View out, ConstView a, ConstView b,
                                     const Prepared<rns::ModUp>& table, const Key& key,
                                     u32 first_digit, const Scalars& lift, const ProductSum& sum);
  virtual void do_divide(Stream& stream, View out, ConstView in, const Prepared<rns::Divide>& table,
                         const ConstView* addend);
  /// `sum`: room for the result of the switch, that nobody reads afterwards.
  virtual void do_key_switch_divided(Stream& stream, View out, View sum, const SwitchOf& of,
                                     const Prepared<rns::ModUp>& raised, const Key& key,
                                     u32 first_digit, const Prepared<rns::Divide>& table,
                                     const ConstView* addend);
  virtual void do_sources(Stream& stream, View out, const SourcesOf& of,
                          const Prepared<rns::BaseConversion>& scales);
  virtual void do_mod_up_from(Stream& stream, View out, SourcesView sources, ConstView own,
                              const Prepared<rns::ModUp>& table);
  virtual void do_key_switch_from(Stream& stream, View out, SourcesView sources, ConstView own,
                                  const Prepared<rns::ModUp>& table, const Key& key,
                                  u32 first_digit, const ConstView* addend, const Scalars* factor);
  virtual void do_key_switch_rotated_from(Stream& stream, View out, SourcesView sources,
                                          ConstView own, const Prepared<rns::ModUp>& table,
                                          const Key& key, u32 first_digit, u64 element, bool add,
                                          const ConstView* addend, const Scalars* factor);
  virtual void do_key_switch_product_from(Stream& stream, View out, SourcesView sources,
                                          ConstView a, ConstView b,
                                          const Prepared<rns::ModUp>& table, const Key& key,
                                          u32 first_digit, const Scalars& lift,
                                          const ProductSum& sum);
  virtual void do_divide_from(Stream& stream, View out, SourcesView sources, ConstView x,
                              const Prepared<rns::Divide>& table, const ConstView* addend);
  virtual void do_hoisted_rotate_sum(Stream& stream, View out, ConstView digits, ConstView b,
                                     ConstView a, std::span<const Key> keys,
                                     std::span<const u64> elements, const Scalars& special,
                                     u32 first_digit);
  virtual void do_hoisted_plain_sums(Stream& stream, std::span<const View> out, ConstView digits,
                                     ConstView b, ConstView a, std::span<const Key> keys,
                                     std::span<const u64> elements, const Grid& plain,
                                     const Scalars& special, u32 first_digit);

 private:
  std::shared_ptr<const Ring> ring_;
};

}  // namespace crenel::device
