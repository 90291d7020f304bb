// The last passes of CUDA's key switches and divisions on the host, all threads of a block, and the
// rows of products: every form has the residues of its definition, in whatever order threads come
// to barriers. What is left for a GPU to show is that launches are right.
#include "support/host_block.h"

//
#include <bit>

#define __syncwarp() crenel::test::HostBlocks::current().sync_warp()
static int __clz(unsigned x) { return std::countl_zero(x); }
template <class T>
static T __ldg(const T* p) {
  return *p;
}
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// The instructions of a GPU get other names, and never run.
#define mul_hi_wide device_mul_hi_wide
#define mul_wide device_mul_wide
#define mad_wide device_mad_wide
#include "backends/cuda/ptx.cuh"
#undef mul_hi_wide
#undef mul_wide
#undef mad_wide

namespace crenel::backend::cuda {
inline u32 mul_hi_wide(u32 a, u32 b) { return static_cast<u32>(u64(a) * b >> 32); }
inline void mul_wide(u32 a, u32 b, u32& lo, u32& hi) { lo = a * b, hi = mul_hi_wide(a, b); }
inline u64 mad_wide(u32 a, u32 b, u64 acc) { return acc + u64(a) * b; }
inline void barrier() { __syncthreads(); }
inline u32* dynamic_shared() { return reinterpret_cast<u32*>(block_memory()); }
inline void store_whole(u32* p, uint4 v) { store4(p, v); }
}  // namespace crenel::backend::cuda

#include "backends/cuda/poly/host/last_roots.h"
#include "backends/cuda/poly/kernels/key_switch_rows.cuh"
#include "backends/cuda/poly/kernels/ntt_rows.cuh"
#include "backends/cuda/poly/kernels/row_divide.cuh"
#include "support/chains.h"
#include "support/same.h"

namespace crenel::test {
namespace {

using namespace backend::cuda;

constexpr u32 kWindow = 2, kLimbs = 3;  // limbs of ciphertexts, and one special limb

// A dense polynomial with limbs [0, limbs).
struct Words {
  u32 log_n, components, limbs;
  std::vector<u32> words;

  u32& at(u32 b, u32 c, u32 l, u32 i) {
    return words[((u64(b) * components + c) * limbs + l) << log_n | i];
  }
  Poly<u32> poly(u32 first = 0) {
    const u64 component = u64(limbs) << log_n;
    return {words.data() + first * component, component, components * component};
  }
  Poly<const u32> input(u32 first = 0) {
    const auto p = poly(first);
    return {p.data, p.component_stride, p.batch_stride};
  }
};

template <u32 LogN>
struct Case {
  static constexpr u32 kBits = kRowBits<LogN>, kN = 1u << LogN;

  ring::Ring ring{LogN, largest_primes(LogN, kLimbs)};  // the largest: sums have the least room
  u32 digits, batch;
  bool entries_in_pairs = false;  ///< two batch entries a block
  bool drops = false;             ///< limbs 0 and 2 go on to the inverse transform
  Rng rng = test_rng();
  std::vector<PrimeConstants> primes;
  std::vector<uint4> last[2];  // forward, inverse
  std::vector<uint2> pairs[2];
  Words raised, evaluated, key, own, x, y, z, addend, before, out;
  std::vector<u32> factor, lift, weight, low, high;  // by limb

  Case(u32 d, u32 b) : digits(d), batch(b) {
    for (u32 id = 0; id < kLimbs; ++id) {
      const ring::PrimeTables& p = ring.prime(id);
      primes.push_back({p.modulus.q, p.modulus.q_inv, p.modulus.r, p.modulus.r2, {}, {}});
      for (u32 way = 0; way < 2; ++way) {
        const auto& roots = way == 0 ? p.roots : p.inverse_roots;
        append_last_roots(roots, p.modulus, last[way]);
        for (u32 i = 0; i < kN / 16; ++i) pairs[way].push_back({roots[i].value, roots[i].quotient});
      }
      for (auto* list : {&factor, &lift, &weight, &low, &high})
        list->push_back(static_cast<u32>(rng() % q(id)));
    }
    raised = random(batch, digits, kLimbs), key = random(digits, 2, kLimbs);
    own = random(batch, 1, kWindow), z = random(batch, 1, kWindow);
    x = random(batch, 2, kWindow), y = random(batch, 2, kWindow);
    addend = random(batch, 2, kLimbs), before = random(batch, 2, kLimbs);
    evaluated = raised;
    TransformArgs args = arguments(0, raised.input(), evaluated.poly(), digits);
    OwnLimbs none = {};
    for (u8& at : none.component.at) at = kNone;
    launch_blocks([&](const TransformArgs& a) { row_forward<kBits>(a, none); },
                  grid(args.polys, kLimbs), 1, kRowThreads<kBits>, args);
  }

  u32 q(u32 l) const { return ring.modulus(l).q; }
  u32 times(u32 l, u64 a, u64 b) const { return static_cast<u32>(a * b % q(l)); }
  Words random(u32 b, u32 components, u32 limbs) {
    Words p{LogN, components, limbs, std::vector<u32>(u64(b) * components * limbs << LogN)};
    for (u64 i = 0; i < p.words.size(); ++i) {
      const u32 modulus = q((i >> LogN) % limbs);
      p.words[i] = rng() % 16 == 0 ? modulus - 1 : static_cast<u32>(rng() % modulus);
    }
    return p;
  }
  TransformArgs arguments(u32 way, Poly<const u32> in, Poly<u32> to, u32 components) {
    TransformArgs args = {};
    args.primes = primes.data(), args.roots = pairs[way].data(), args.last_roots = last[way].data();
    args.in = in, args.out = to, args.log_n = LogN;
    args.components = components, args.polys = components * batch, args.polys_per_block = 1;
    for (u32 l = 0; l < kLimbs; ++l) args.prime.at[l] = args.in_position.at[l] = static_cast<u8>(l);
    return args;
  }
  dim3 grid(u32 polys, u32 limbs) const { return {(kN >> kBits) / kTileRows<kBits>, polys, limbs}; }

  template <u32 Entries, class Form>
  void launch(const TransformArgs& args, const KeySwitchTail& tail, const Form& form) const {
    constexpr u32 kThreads = kKeySwitchThreads<kBits, Entries>;
    const dim3 blocks = {(kN >> kBits) / kKeySwitchRows<kBits, Entries>,
                         (batch + Entries - 1) / Entries, kLimbs};
    launch_blocks([&](const TransformArgs& a) { key_switch_rows<kBits, Entries>(a, tail, form); },
                  blocks, 1, Entries * kThreads, args, kThreads);
  }
  // With an addend of so many components and limbs.
  template <class Form>
  void run(const Form& form, u32 components, u32 limbs) {
    KeySwitchTail tail = {};
    tail.digits_end = rng() % 2;
    for (u8& at : tail.own.component.at) at = kNone;
    for (u32 l = 0; l < kWindow; ++l) tail.own.component.at[l] = static_cast<u8>(l % digits);
    for (u32 l = 0; l < kLimbs; ++l)
      tail.own.position.at[l] = tail.in_key.at[l] = static_cast<u8>(l), tail.factor[l] = factor[l];
    tail.own.from = own.input(), tail.addend = addend.input();
    tail.addend_components = components, tail.addend_limbs = limbs;
    const u64 component = u64(kLimbs) << LogN;
    tail.key = {key.words.data(), nullptr, 0, component, 2 * component};
    tail.dropped = {pairs[1].data(), last[1].data(), {drops ? 5u : 0u}};
    tail.order.moved = static_cast<u32>(rng() % (kLimbs + 1));
    tail.order.passed = static_cast<u32>(rng() % (kLimbs + 1 - tail.order.moved));
    out = before;
    Words read = raised;
    const TransformArgs args = arguments(0, read.input(), out.poly(), digits);
    if (entries_in_pairs)
      launch<2>(args, tail, form);
    else
      launch<1>(args, tail, form);
    // Of digits that end all rows that were read are gone, and no others.
    u64 wrong = 0;
    for (u32 b = 0; b < batch; ++b)
      for (u32 d = 0; d < digits; ++d)
        for (u32 l = 0; l < kLimbs; ++l)
          for (u32 i = 0; i < kN; ++i) {
            const bool gone = tail.digits_end != 0 && tail.own.component.at[l] != d;
            wrong += read.at(b, d, l, i) != (gone ? 0xa5a5a5a5u : raised.at(b, d, l, i));
          }
    EXPECT_EQ(wrong, 0u) << "rows that end, 2^" << LogN;
  }
  // Digits times the key and the addend, with these own limbs.
  u32 switched(u32 b, u32 c, u32 l, u32 i, Words& of, u32 components, u32 limbs) {
    u64 sum = c < components && l < limbs ? times(l, factor[l], addend.at(b, c, l, i)) : 0;
    for (u32 d = 0; d < digits; ++d) {
      const bool mine = l < kWindow && l % digits == d;
      sum += times(l, mine ? of.at(b, 0, l, i) : evaluated.at(b, d, l, i), key.at(d, c, l, i));
    }
    return static_cast<u32>(sum % q(l));
  }
  template <class Source>
  void first_inverse_pass(Poly<const u32> in, Words& to, const Source& rows, u32 components,
                          u32 limbs) {
    TransformArgs args = arguments(1, in, to.poly(), components);
    args.polys_per_block = 2;
    launch_blocks([&](const TransformArgs& a) { row_inverse<kBits>(a, rows); },
                  grid((args.polys + 1) / 2, limbs), 1, kRowThreads<kBits>, args);
  }
  template <class F>
  void expect(const char* what, const F& value) {
    u64 wrong = 0;
    Words expected = out;
    for (u32 b = 0; b < batch; ++b)
      for (u32 c = 0; c < 2; ++c)
        for (u32 l = 0; l < kLimbs; ++l)
          for (u32 i = 0; i < kN; ++i) expected.at(b, c, l, i) = value(b, c, l, i);
    Words inverted = expected;
    if (drops) first_inverse_pass(expected.input(), inverted, PlainRows(), 2, kLimbs);
    for (u32 b = 0; b < batch; ++b)
      for (u32 c = 0; c < 2; ++c)
        for (u32 l = 0; l < kLimbs; ++l)
          for (u32 i = 0; i < kN; ++i)
            wrong += out.at(b, c, l, i) != (l != 1 ? inverted : expected).at(b, c, l, i);
    EXPECT_EQ(wrong, 0u) << what << (drops ? ", dropped" : "") << ", 2^" << LogN << ", " << digits
                         << " digits, batch " << batch
                         << "; repeat with CRENEL_SEED=" << run_seed();
  }

  void turned(bool adds) {
    const u32 element = static_cast<u32>(rng() % (2 * kN)) | 1;
    const u32 inverse = static_cast<u32>(ring::galois_inverse(element, LogN));
    run(TurnedSwitch{element, inverse, adds ? 1u : 0u}, 1, kLimbs);
    expect(adds ? "turned, added" : "turned", [&](u32 b, u32 c, u32 l, u32 i) {
      const u32 from = ring::galois_eval_source(i, element, LogN);
      const u64 sum = switched(b, c, l, from, own, 1, kLimbs);
      return static_cast<u32>((sum + (adds ? before.at(b, c, l, i) : 0)) % q(l));
    });
  }

  // s x y + (constant, 0, weight z)
  u32 component(u32 b, u32 c, u32 l, u32 i, Words& other, u32 s, bool third) {
    const u64 cross = u64(times(l, x.at(b, 0, l, i), other.at(b, 1, l, i))) +
                      times(l, x.at(b, 1, l, i), other.at(b, 0, l, i));
    const u64 square = times(l, x.at(b, c / 2, l, i), other.at(b, c / 2, l, i));
    u64 sum = s * (c == 1 ? cross : square);
    if (c == 0) sum += i < kN / 2 ? low[l] : high[l];
    if (c == 2 && third) sum += times(l, weight[l], z.at(b, 0, l, i));
    return static_cast<u32>(sum % q(l));
  }
  template <bool Square>
  void product(u32 s, bool third) {
    Words& other = Square ? x : y;
    ProductSwitch<Square> form = {};
    ProductRows<Square> rows = {};
    form.x = x.input(), form.y = other.input(), rows.y = other.input(1);
    if (third) form.z = rows.z = z.input();
    form.limbs = kWindow, form.doubled = rows.doubled = s - 1;
    for (u32 l = 0; l < kWindow; ++l) {
      const u32 r = ring.modulus(l).r;
      form.lift[l] = times(l, times(l, s, lift[l]), r);
      form.factor[l] = rows.factor[l] = times(l, weight[l], r);
      form.low[l] = times(l, lift[l], low[l]), form.high[l] = times(l, lift[l], high[l]);
    }
    Words made = own;
    for (u32 b = 0; b < batch; ++b)
      for (u32 l = 0; l < kWindow; ++l)
        for (u32 i = 0; i < kN; ++i) made.at(b, 0, l, i) = component(b, 2, l, i, other, s, third);
    run(form, 2, kWindow);
    expect(Square ? "square" : "product", [&](u32 b, u32 c, u32 l, u32 i) {
      u64 sum = switched(b, c, l, i, made, 2, kWindow);
      if (l < kWindow) sum += times(l, lift[l], component(b, c, l, i, other, s, third));
      return static_cast<u32>(sum % q(l));
    });
    inverse(rows, made);
  }
  // The first pass over rows that a source makes is that over the rows themselves.
  template <class Source>
  void inverse(const Source& source, Words& made) {
    Words expected = made, found = made;
    first_inverse_pass(made.input(), expected, PlainRows(), 1, kWindow);
    first_inverse_pass(x.input(1), found, source, 1, kWindow);
    EXPECT_EQ(found.words, expected.words) << "rows, 2^" << LogN;
  }

  // The transform of a polynomial, plus x scale, plus the addend, in place; limb 2 has no x.
  void divided(bool x_ends) {
    const u32 components = 2;
    Words made = random(batch, components, kLimbs), rows = made, divisor = x;
    std::vector<u32> scale(factor);
    for (u32 l = 0; l < kLimbs; ++l) scale[l] = times(l, factor[l], ring.modulus(l).r);
    DivideTail tail = {};
    tail.x = divisor.input(), tail.x_scale = scale.data(), tail.x_ends = x_ends ? 1 : 0;
    for (u32 l = 0; l < kLimbs; ++l)
      tail.x_position.at[l] = l < kWindow ? static_cast<u8>(l) : kNone;
    tail.addend = addend.input(), tail.addend_components = 1;
    const TransformArgs args = arguments(0, rows.input(), rows.poly(), components);
    launch_blocks([&](const TransformArgs& a) { row_divide<kBits>(a, tail); },
                  grid(args.polys, kLimbs), 1, kRowThreads<kBits>, args);
    OwnLimbs none = {};
    for (u8& at : none.component.at) at = kNone;
    const TransformArgs plain = arguments(0, made.input(), made.poly(), components);
    launch_blocks([&](const TransformArgs& a) { row_forward<kBits>(a, none); },
                  grid(plain.polys, kLimbs), 1, kRowThreads<kBits>, plain);
    u64 wrong = 0, kept = 0;
    for (u32 b = 0; b < batch; ++b)
      for (u32 c = 0; c < components; ++c)
        for (u32 l = 0; l < kLimbs; ++l)
          for (u32 i = 0; i < kN; ++i) {
            u64 sum = made.at(b, c, l, i);
            if (l < kWindow) sum += times(l, factor[l], x.at(b, c, l, i));
            if (c == 0) sum += addend.at(b, c, l, i);
            wrong += rows.at(b, c, l, i) != sum % q(l);
            if (l < kWindow)
              kept += divisor.at(b, c, l, i) == (x_ends ? 0xa5a5a5a5u : x.at(b, c, l, i));
          }
    EXPECT_EQ(wrong, 0u) << "2^" << LogN << "; repeat with CRENEL_SEED=" << run_seed();
    EXPECT_EQ(kept, divisor.words.size()) << "rows that end, 2^" << LogN;
  }

  void every_form() {
    for (const bool two : {false, true}) {
      entries_in_pairs = two;
      drops = true;
      run(PlainSwitch(), 1, kLimbs);
      expect("plain",
             [&](u32 b, u32 c, u32 l, u32 i) { return switched(b, c, l, i, own, 1, kLimbs); });
      turned(false), product<true>(2, false), product<false>(2, true);
      drops = false;
      run(PlainSwitch(), 2, kWindow);
      expect("plain",
             [&](u32 b, u32 c, u32 l, u32 i) { return switched(b, c, l, i, own, 2, kWindow); });
      turned(false), turned(true);
      product<true>(1, false), product<true>(2, false);
      product<false>(1, false), product<false>(2, true);
    }
  }
};

// Dropped limbs at the end of a launch come before its last round, or first where it has but one;
// every limb comes once.
TEST(KeySwitchOnTheHost, DroppedLimbsComeBeforeTheLastRound) {
  const auto order = [](u32 moved, u32 limbs, u64 blocks, u64 resident) {
    const LimbOrder of = LimbOrder::before_last_round(moved, limbs, blocks, resident);
    std::vector<u32> list;
    for (u32 z = 0; z < limbs; ++z) list.push_back(of.limb(z, limbs));
    return list;
  };
  EXPECT_EQ(order(0, 4, 32, 64), (std::vector<u32>{0, 1, 2, 3}));
  EXPECT_EQ(order(2, 6, 32, 64), (std::vector<u32>{0, 1, 4, 5, 2, 3}));
  EXPECT_EQ(order(2, 6, 32, 65), (std::vector<u32>{0, 4, 5, 1, 2, 3}));
  EXPECT_EQ(order(2, 6, 1, 1000), (std::vector<u32>{4, 5, 0, 1, 2, 3}));
  EXPECT_EQ(order(3, 3, 32, 64), (std::vector<u32>{0, 1, 2}));
  EXPECT_EQ(order(1, 2, 64, 64), (std::vector<u32>{1, 0}));
  Rng rng = test_rng();
  for (u32 round = 0; round < 200; ++round) {
    const u32 limbs = 1 + static_cast<u32>(rng() % 70),
              moved = static_cast<u32>(rng()) % (limbs + 1);
    auto list = order(moved, limbs, 1 + rng() % 100, 1 + rng() % 400);
    const auto first = std::find(list.begin(), list.end(), limbs - moved);
    for (u32 i = 0; i < moved; ++i) EXPECT_EQ(first[i], limbs - moved + i);
    std::sort(list.begin(), list.end());
    for (u32 i = 0; i < limbs; ++i) EXPECT_EQ(list[i], i) << limbs << ", " << moved;
  }
}

TEST(KeySwitchOnTheHost, EveryForm) {
  Case<10>(1, 2).every_form();
  Case<11>(3, 1).every_form();
  Case<12>(2, 3).every_form();
#if !defined(CRENEL_TEST_ADDRESS)  // minutes there, of rows of the same forms
  Case<14>(3, 1).every_form();
  Case<16>(2, 1).every_form();
  Case<17>(1, 1).every_form();
#endif
}

TEST(DivideOnTheHost, RowsEndOrStay) {
  for (const bool ends : {false, true}) {
    Case<10>(1, 2).divided(ends);
    Case<12>(1, 1).divided(ends);
#if !defined(CRENEL_TEST_ADDRESS)
    Case<16>(1, 1).divided(ends);
    Case<17>(1, 1).divided(ends);
#endif
  }
}

}  // namespace
}  // namespace crenel::test
