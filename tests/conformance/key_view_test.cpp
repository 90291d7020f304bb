// Switching keys as operations read them: given directly or behind a slot, which a recorded graph
// reads anew at every replay, and with their limbs in any order and number.
#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

class KeyViews : public DeviceTest {};
CRENEL_SUITE_OVER(KeyViews, with_split(test_devices()));

using device::KeyView;
using device::PlainGrid;
using View = PolyView<u32>;
using ConstView = PolyView<const u32>;
using Keys = std::vector<KeyView>;  // two of them

// Every operation that reads keys, on one set of inputs: a window that starts in a later digit.
class Products {
 public:
  Products(const std::shared_ptr<device::Device>& device, u32 log_n, Rng& rng)
      : chain_(toy_chain(2, 9, 3)),
        c_(make_context(device, log_n, chain_.primes)),
        window_(LimbSet::range(4, 9)),
        extended_(window_.concat(LimbSet::range(11, 14))),
        mod_up_(c_.kernels->prepare(
            rns::make_mod_up(moduli_of(*c_.ring), window_, LimbSet::range(11, 14), chain_.alpha))) {
    for (u32 i = 0; i < window_.size(); ++i)
      special_.low[i] = special_.high[i] = static_cast<u32>(rng() % c_.ring->modulus(window_[i]).q);
    digits_ = input(rng, {log_n, 2, kBatch}, extended_);
    in_ = input(rng, {log_n, 1, kBatch}, window_);
    a_ = input(rng, {log_n, 1, kBatch}, window_);
    plain_ = input(rng, {log_n, kElements, kGiants}, extended_);
    for (auto& key : keys_)
      key = random_poly(*c_.ring, rng, {log_n, 2, chain_.digits()}, all(), Domain::eval);
    out_ = c_.stream->allocate_limbs(
        extended_, {.rows = kGiants * 2 * kBatch, .limb_bytes = sizeof(u32) << log_n});
  }

  /// Limbs of a whole key, and of one that holds those of the window in another order, with others
  /// between them.
  static LimbSet all() { return LimbSet::range(0, 14); }
  static LimbSet scattered() { return set({13, 0, 6, 4, 12, 5, 2, 8, 7, 11}); }
  static LimbSet cropped() { return set({3, 4, 5, 6, 7, 8, 11, 12, 13}); }
  static LimbSet lacking() { return set({13, 0, 6, 4, 12, 5, 2, 7, 11}); }

  /// Key `k` on the device with these limbs; it lives as long as this object.
  ConstView key(u32 k, const LimbSet& limbs) {
    const auto from = keys_[k].host();
    auto to = empty_poly(from.shape, limbs, Domain::eval);
    for (u32 d = 0; d < from.shape.batch; ++d)
      for (u32 c = 0; c < 2; ++c)
        for (u32 l = 0; l < limbs.size(); ++l)
          std::copy_n(from.limb(d, c, limbs[l]), from.ring_dim(), to.host().limb(d, c, l));
    return upload(to);
  }

  static constexpr const char* kOperations[] = {"key_multiply", "key_switch_extended",
                                                "hoisted_rotate_sum", "hoisted_plain_sums"};

  void queue(u32 operation, const Keys& keys) {
    auto& k = *c_.kernels;
    auto& s = *c_.stream;
    const std::vector<KeyView> three{keys[0], KeyView(), keys[1]};
    const std::vector<u64> elements{5, 1, 2 * c_.ring->ring_dim() - 1};
    const u32 first = 1;
    switch (operation) {
      case 0:
        k.key_multiply(s, out(0), digits_, keys[0], first);
        return k.key_multiply(s, out(1), digits_, keys[1], first);
      case 1:
        k.key_switch_extended(s, out(0), in_, mod_up_, keys[0], first, &a_, &special_);
        return k.key_switch_extended(s, out(1), in_, mod_up_, keys[1], first);
      case 2:
        k.hoisted_rotate_sum(s, out(0), digits_, in_, a_, three, elements, special_, first);
        return k.automorphism(s, out(1), out(0), 3);
      default: {
        const std::vector<u8> present(kElements * kGiants, 1);
        const PlainGrid grid{plain_.data, extended_, c_.ring->log_n(),
                             kGiants,     kElements, present.data()};
        const std::vector<View> outs{out(0), out(1)};
        return k.hoisted_plain_sums(s, outs, digits_, in_, a_, three, elements, grid, special_,
                                    first);
      }
    }
  }

  std::vector<u32> result() {
    std::vector<u32> words(out_.bytes() / sizeof(u32));
    c_.stream->copy_out(words.data(), out_.data(), out_.bytes());
    return words;
  }
  std::vector<u32> run(u32 operation, const Keys& keys) {
    c_.stream->fill_zero(out_.data(), out_.bytes());
    queue(operation, keys);
    return result();
  }
  device::Stream& stream() { return *c_.stream; }

 private:
  static constexpr u32 kBatch = 2, kGiants = 2, kElements = 3;

  static LimbSet set(std::initializer_list<u32> ids) {
    LimbSet s;
    for (const u32 id : ids) s.push_back(id);
    return s;
  }
  View upload(const TestPoly& p) {
    memory_.push_back(memory_for(*c_.stream, p));
    c_.stream->copy_in(memory_.back().data(), p.words.data(), memory_.back().bytes());
    return p.at(memory_.back().as<u32>());
  }
  View input(Rng& rng, const PolyShape& shape, const LimbSet& limbs) {
    return upload(random_poly(*c_.ring, rng, shape, limbs, Domain::eval));
  }
  View out(u32 i) const {
    const View v(out_.as<u32>(), {c_.ring->log_n(), 2, kBatch * kGiants}, extended_, Domain::eval);
    return v.rows(i * kBatch, kBatch);
  }

  Chain chain_;
  Context c_;
  LimbSet window_, extended_;
  device::Prepared<rns::ModUp> mod_up_;
  device::LimbScalars special_;
  std::vector<device::Buffer> memory_;
  View digits_, in_;
  ConstView a_, plain_;
  TestPoly keys_[2];
  device::Buffer out_;
};

// Two addresses of keys in device memory.
class Slots {
 public:
  explicit Slots(device::Stream& stream)
      : stream_(stream), memory_(stream.allocate(2 * sizeof(u32*))) {}

  void set(const ConstView& first, const ConstView& second) {
    const void* addresses[] = {first.data, second.data};
    stream_.upload_addresses(memory_.data(), addresses, 2);
    stream_.synchronize();
  }
  /// Keys of the shape of `key` behind the slots; the address of `key` itself is not used.
  Keys keys(ConstView key, u32 first_digit = 0) const {
    key.data = nullptr;
    const auto* slot = memory_.as<const u32* const>();
    return {KeyView(key, slot, first_digit), KeyView(key, slot + 1, first_digit)};
  }

 private:
  device::Stream& stream_;
  device::Buffer memory_;
};

// f(products, operation) on a ring that backends have fast transforms for, and on a small one.
template <class F>
void for_each_operation(const std::shared_ptr<device::Device>& device, const F& f) {
  Rng rng = test_rng();
  for (const u32 log_n : {6u, 10u}) {
    Products products(device, log_n, rng);
    for (u32 op = 0; op < std::size(Products::kOperations); ++op) {
      SCOPED_TRACE(cat(Products::kOperations[op], ", log_n ", log_n));
      f(products, op);
    }
  }
}

TEST_P(KeyViews, SlotIsTheKey) {
  for_each_operation(device_, [](Products& p, u32 op) {
    const auto a = p.key(0, Products::all()), b = p.key(1, Products::all());
    const auto direct = p.run(op, {a, b}), swapped = p.run(op, {b, a});
    EXPECT_FALSE(direct == swapped);
    Slots slots(p.stream());
    slots.set(a, b);
    EXPECT_TRUE(p.run(op, slots.keys(a)) == direct);
    slots.set(b, a);
    EXPECT_TRUE(p.run(op, slots.keys(a)) == swapped);
  });
}

TEST_P(KeyViews, OneGraphManyKeys) {
  for_each_operation(device_, [](Products& p, u32 op) {
    const auto a = p.key(0, Products::all()), b = p.key(1, Products::all());
    const auto direct = p.run(op, {a, b}), swapped = p.run(op, {b, a});
    Slots slots(p.stream());
    slots.set(a, b);
    const Keys keys = slots.keys(a);
    p.run(op, keys);  // the stream keeps the workspace
    const auto graph = p.stream().capture([&] { p.queue(op, keys); });
    for (const bool swap : {false, true, false}) {
      slots.set(swap ? b : a, swap ? a : b);
      graph->launch(p.stream());
      EXPECT_TRUE(p.result() == (swap ? swapped : direct)) << (swap ? "swapped" : "as recorded");
    }
  });
}

TEST_P(KeyViews, LimbsInAnyOrder) {
  for_each_operation(device_, [](Products& p, u32 op) {
    const auto expected = p.run(op, {p.key(0, Products::all()), p.key(1, Products::all())});
    const auto a = p.key(0, Products::scattered()), b = p.key(1, Products::scattered());
    EXPECT_TRUE(p.run(op, {a, b}) == expected);
    Slots slots(p.stream());
    slots.set(a, b);
    EXPECT_TRUE(p.run(op, slots.keys(a)) == expected);
  });
}

TEST_P(KeyViews, RefusesKeysThatDoNotFit) {
  for_each_operation(device_, [](Products& p, u32 op) {
    const auto fine = p.key(0, Products::all());
    const auto refused = [&](const KeyView& key) {
      EXPECT_THROW(p.queue(op, {key, key}), StateError);
    };
    const auto lacking = p.key(0, Products::lacking());
    refused(lacking);
    try {
      p.queue(op, {lacking, lacking});
    } catch (const StateError& e) {
      EXPECT_EQ(e.field("expected"), "{4,5,6,7,8,11,12,13}");
      EXPECT_EQ(e.field("got"), "{13,6,4,12,5,7,11}");
    }
    Slots slots(p.stream());
    slots.set(lacking, lacking);
    refused(slots.keys(lacking)[0]);
    refused(fine.components(0, 1));
    refused(fine.rows(0, 2));
    auto coefficients = fine;
    coefficients.domain = Domain::coeff;
    refused(coefficients);
    auto nothing = fine;
    nothing.data = nullptr;
    refused(nothing);
    refused(KeyView(fine, 2));             // the digits before it are not there
    refused(KeyView(fine.rows(1, 1), 1));  // nor those after it
    refused(slots.keys(fine.rows(1, 1), 1)[0]);
  });
}

// Keys of some digits and limbs only: those that the operation reads.
TEST_P(KeyViews, CroppedKeysAreTheWholeOnes) {
  for_each_operation(device_, [](Products& p, u32 op) {
    const auto a = p.key(0, Products::all()), b = p.key(1, Products::all());
    const auto expected = p.run(op, {a, b});
    const auto digits = [](const ConstView& key) { return KeyView(key.rows(1, 2), 1); };
    EXPECT_TRUE(p.run(op, {digits(a), digits(b)}) == expected);
    const auto c = p.key(0, Products::cropped()), d = p.key(1, Products::cropped());
    EXPECT_TRUE(p.run(op, {digits(c), digits(d)}) == expected);
    // Of different digits and limbs in one call.
    EXPECT_TRUE(p.run(op, {a, digits(d)}) == expected);
    EXPECT_TRUE(p.run(op, {digits(c), b}) == expected);
    EXPECT_TRUE(p.run(op, {p.key(0, Products::scattered()), digits(d)}) == expected);
    Slots slots(p.stream());
    const auto e = c.rows(1, 2), f = d.rows(1, 2);
    slots.set(e, f);
    EXPECT_TRUE(p.run(op, slots.keys(e, 1)) == expected);
  });
}

}  // namespace
}  // namespace crenel::test
