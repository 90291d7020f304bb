// Batches whose entries lie on different parts of a device, against ref: what goes there and comes
// back, every operation that EvalMod queues between, keys that both kinds of operations read.
#include "crenel/core/watch.h"
#include "device/apart.h"
#include "device/poly/compose/workspace.h"
#include "support/chain_level.h"
#include "support/devices.h"

namespace crenel::test {
namespace {

using device::EntriesApart;
using device::LimbScalars;
using device::compose::Temporary;
using ConstView = ring::PolyView<const u32>;
using View = ring::PolyView<u32>;

class ApartEntries : public DeviceTest {};
CRENEL_SUITE_OVER(ApartEntries, divided_devices({"ref+ref", "cpu+cpu", "cpu+cpu+cpu+cpu",
                                                 "ref+ref+ref+ref+ref+ref"}));

bool apart(const Context& c) { return device::entry_groups(*c.stream) > 1; }

// A view's polynomials dealt out, or the view where nothing is.
class Dealt {
 public:
  Dealt(Context& c, const ConstView& from) : view_(from) {
    if (!apart(c)) return;
    const EntriesApart scope(*c.stream);
    memory_.emplace(*c.stream, from.shape, from.limbs, from.domain);
    device::regroup(*c.stream, memory_->view(), from);
    view_ = memory_->view();
  }
  operator ConstView() const { return view_; }  // NOLINT: implicit on purpose

 private:
  std::optional<Temporary> memory_;
  ConstView view_;
};

// f writes to a view that is dealt out, or to this one.
template <class F>
void into(Context& c, const View& out, const F& f) {
  if (!apart(c)) return f(out);
  std::optional<Temporary> memory;
  {
    const EntriesApart scope(*c.stream);
    memory.emplace(*c.stream, out.shape, out.limbs, out.domain);
    f(memory->view());
  }
  device::regroup(*c.stream, out, memory->view());
}

// Of an even batch.
struct ApartLevel : ChainLevel {
  ApartLevel(const std::shared_ptr<device::Device>& device, Rng& r)
      : ChainLevel(device, r, even(r)) {}
  static ChainCase even(Rng& rng) {
    ChainCase s = drawn_case(rng);
    s.batch = 2 * (1 + u32(rng() % 2));
    return s;
  }
};

// Shared where entries are dealt out, by address or behind a slot.
struct SharedKey {
  device::Buffer memory, slot;
  device::KeyView view;

  SharedKey(Context& c, const View& pairs, u32 first_digit, bool behind_slot) {
    ConstView direct = pairs;
    if (apart(c)) {
      memory = device::share_between_groups(*c.stream, pairs.data);
      direct.data = memory.as<const u32>();
    }
    view = device::KeyView(direct, first_digit);
    if (behind_slot) {
      slot = c.stream->allocate(sizeof(void*));
      const void* const address = direct.data;
      c.stream->upload_addresses(slot.data(), &address, 1);
      c.stream->synchronize();
      view = device::KeyView(direct, slot.as<const u32* const>(), first_digit);
    }
    view.shared_by = device::entry_groups(*c.stream);
  }
};

TEST_P(ApartEntries, GoAndComeBack) {
  Rng rng = test_rng();
  for (int turn = 0; turn < 24; ++turn) {
    ApartLevel level(device_, rng);
    SCOPED_TRACE(level.name());
    const LimbSet limbs = rng() % 2 == 0 ? level.s.extended() : level.s.window();
    const u32 components = 1 + u32(rng() % 3);
    expect_same(level.pair, {level.poly(components, limbs), level.poly(components, limbs)}, 1,
                [&](Context& c, const Views& v) {
                  into(c, v[0],
                       [&](const View& out) { c.kernels->neg(*c.stream, out, Dealt(c, v[1])); });
                });
  }
}

TEST_P(ApartEntries, LimbwiseOperations) {
  Rng rng = test_rng();
  for (int turn = 0; turn < 12; ++turn) {
    ApartLevel level(device_, rng);
    SCOPED_TRACE(level.name());
    const LimbSet limbs = level.s.window();
    const LimbScalars x = level.scalars(limbs), y = level.scalars(limbs);
    const u64 element = rng() % (u64(2) << level.s.log_n) | 1;
    expect_same(level.pair, {level.poly(2, limbs), level.poly(2, limbs), level.poly(2, limbs)}, 1,
                [&](Context& c, const Views& v) {
                  const Dealt a(c, v[1]), b(c, v[2]);
                  into(c, v[0], [&](const View& out) {
                    const ConstView terms[] = {a, b};
                    const LimbScalars scalars[] = {x, y};
                    auto& k = *c.kernels;
                    k.linear_combination(*c.stream, out, terms, scalars, &y);
                    k.mul_add(*c.stream, out, a, b);
                    k.mul_scalar(*c.stream, out, out, x);
                    k.add_scalar(*c.stream, out.components(0, 1), out.components(0, 1), y);
                    Temporary turned(*c.stream, out.shape, out.limbs, out.domain);
                    k.automorphism(*c.stream, turned.view(), out, element);
                    k.sub(*c.stream, out, turned.view(), a);
                  });
                });
  }
}

// The tensor product, relinearised and divided, by a key that a plain key switch reads, too.
TEST_P(ApartEntries, KeySwitches) {
  Rng rng = test_rng();
  for (int turn = 0; turn < 24; ++turn) {
    ApartLevel level(device_, rng);
    const ChainCase& s = level.s;
    SCOPED_TRACE(level.name());
    const LimbScalars lift = random_scalars(level.pair.ring(), rng, s.window(), true);
    const LimbScalars constant = random_scalars(level.pair.ring(), rng, s.window(), false);
    const bool square = rng() % 2 == 0, slot = rng() % 2 == 0, recorded = rng() % 2 == 0;
    const u64 element = rng() % (u64(2) << s.log_n) | 1;
    expect_same(level.pair,
                {level.poly(2, s.window()), level.poly(2, s.extended()), level.poly(2, s.window()),
                 level.poly(2, s.window()), level.key()},
                2, [&](Context& c, const Views& v) {
                  const SharedKey key(c, v[4], s.first_digit(), slot);
                  const auto& tables = level.tables(c);
                  auto& k = *c.kernels;
                  const auto work = [&] {
                    const Dealt a(c, v[2]), b(c, v[3]);
                    into(c, v[0], [&](const View& out) {
                      Temporary extended(*c.stream, s.shape(2), s.extended(), Domain::eval);
                      k.key_switch_product(*c.stream, extended.view(), a, square ? a : b, tables.up,
                                           key.view, s.first_digit(), lift,
                                           {true, &constant, {}, {}});
                      k.divide(*c.stream, out, extended.view(), tables.down);
                    });
                    k.key_switch_rotated(*c.stream, v[1], ConstView(v[2]).components(1, 1),
                                         tables.up, key.view, s.first_digit(), element, false);
                  };
                  if (!recorded) return work();
                  const auto graph = c.stream->capture(work);
                  for (int i = 0; i < 2; ++i) graph->launch(*c.stream);
                  c.stream->synchronize();
                });
  }
}

// What parts that are groups by themselves do whole, in every form that a division may follow.
TEST_P(ApartEntries, OperationsWithTheirDivision) {
  Rng rng = test_rng();
  for (int turn = 0; turn < 36; ++turn) {
    ApartLevel level(device_, rng);
    const ChainCase& s = level.s;
    const int form = turn % 6;
    SCOPED_TRACE(cat(level.name(), ", form ", form));
    const LimbScalars lift = random_scalars(level.pair.ring(), rng, s.window(), true);
    const LimbScalars factors[] = {random_scalars(level.pair.ring(), rng, s.window(), true),
                                   random_scalars(level.pair.ring(), rng, s.window(), true)};
    const LimbScalars constant = random_scalars(level.pair.ring(), rng, s.window(), false);
    const bool slot = rng() % 2 == 0, recorded = rng() % 2 == 0, adds = rng() % 2 == 0;
    const u64 element = rng() % (u64(2) << s.log_n) | 1;
    const auto window = [&] { return level.poly(2, s.window()); };
    expect_same(level.pair,
                {window(), window(), window(), window(), window(), window(), level.key()}, 1,
                [&](Context& c, const Views& v) {
                  const SharedKey key(c, v[6], s.first_digit(), slot);
                  const auto& tables = level.tables(c);
                  auto& k = *c.kernels;
                  const auto work = [&] {
                    const Dealt a(c, v[1]), b(c, v[2]), y(c, v[3]), z(c, v[4]), added(c, v[5]);
                    const ConstView one = ConstView(a).components(1, 1), low = ConstView(y);
                    const ConstView last = added, *addend = adds ? &last : nullptr;
                    const ConstView both[] = {y, z};
                    into(c, v[0], [&](const View& out) {
                      const auto divided = [&](const device::SwitchOf& of) {
                        k.key_switch_divided(*c.stream, out, of, tables.up, key.view,
                                             s.first_digit(), tables.down, addend);
                      };
                      device::SwitchOf of{form < 4 ? one : ConstView(a)};
                      if (form < 2) {
                        of.element = form == 1 ? element : 1;
                        if (adds) of.addend = &low, of.factor = &lift;
                        return divided(of);
                      }
                      if (form >= 4) {
                        of.other = form == 4 ? ConstView(a) : ConstView(b), of.factor = &lift;
                        of.sum = {adds, &constant, std::span(both, form == 4 ? 1 : 2),
                                  std::span(factors, form == 4 ? 1 : 2)};
                        return divided(of);
                      }
                      Temporary extended(*c.stream, out.shape, s.extended(), Domain::eval);
                      if (form == 2) {
                        k.key_switch_extended(*c.stream, extended.view(), one, tables.up, key.view,
                                              s.first_digit(), &low, &lift);
                        k.key_switch_rotated(*c.stream, extended.view(), one, tables.up, key.view,
                                             s.first_digit(), element, true, &low, &lift);
                      } else {
                        const u32 count = static_cast<u32>(tables.up->digits.size());
                        Temporary digits(*c.stream, {s.log_n, count, out.shape.batch}, s.extended(),
                                         Domain::eval);
                        k.mod_up(*c.stream, digits.view(), one, tables.up);
                        k.key_multiply(*c.stream, extended.view(), digits.view(), key.view,
                                       s.first_digit());
                      }
                      k.divide(*c.stream, out, extended.view(), tables.down, addend);
                    });
                  };
                  if (!recorded) return work();
                  const auto graph = c.stream->capture(work);
                  for (int i = 0; i < 2; ++i) graph->launch(*c.stream);
                  c.stream->synchronize();
                });
  }
}

// What is called while EvalMod runs, to poll or to tell progress, may compute on the same stream.
TEST_P(ApartEntries, CallbacksHaveTheirOwnMemory) {
  Rng rng = test_rng();
  ApartLevel level(device_, rng);
  device::Stream& stream = *level.pair.candidate.stream;
  const auto alone = [&] {  // a batch of one, which is no batch of groups
    Temporary one(stream, {level.s.log_n, 2, 1}, level.s.window(), Domain::eval);
    stream.fill_zero(one.view().data, one.view().words() * sizeof(u32));
    level.pair.candidate.kernels->neg(stream, one.view(), one.view());
  };
  Watch watched({});
  const EntriesApart scope(stream);
  EXPECT_TRUE(EntriesApart::on(stream));
  EXPECT_THROW(alone(), StateError);
  {
    const watch::Shield callback;
    EXPECT_FALSE(EntriesApart::on(stream));
    alone();
    const EntriesApart own(stream);
    EXPECT_TRUE(EntriesApart::on(stream));
  }
  EXPECT_TRUE(EntriesApart::on(stream));
}

// Each names what was expected, and leaves the stream as it was.
TEST_P(ApartEntries, Refusals) {
  Rng rng = test_rng();
  ApartLevel level(device_, rng);
  Context& c = level.pair.candidate;
  const ChainCase& s = level.s;
  const LimbSet limbs = s.window();
  auto& k = *c.kernels;
  Temporary whole(*c.stream, s.shape(2), limbs, Domain::eval);
  Temporary key(*c.stream, {s.log_n, 2, s.digits()}, s.extended(), Domain::eval);
  {
    const EntriesApart scope(*c.stream);
    EXPECT_THROW(Temporary(*c.stream, {s.log_n, 1, 1}, limbs, Domain::eval), StateError);
    Temporary dealt(*c.stream, s.shape(2), limbs, Domain::eval);
    EXPECT_THROW(k.neg(*c.stream, dealt.view().rows(0, 1), dealt.view().rows(0, 1)), StateError)
        << "one entry";
    EXPECT_THROW(k.add(*c.stream, dealt.view(), dealt.view(), whole.view()), StateError)
        << "memory of both kinds";
    EXPECT_THROW(c.stream->copy(dealt.view().data, whole.view().data, dealt.view().words() * 4),
                 StateError);
    Temporary extended(*c.stream, s.shape(2), s.extended(), Domain::eval);
    EXPECT_THROW(
        k.key_switch_extended(*c.stream, extended.view(), dealt.view().components(1, 1),
                              level.candidate.up, {key.view(), s.first_digit()}, s.first_digit()),
        StateError)
        << "a key that groups do not share";
    Temporary coefficients(*c.stream, s.shape(2), LimbSet::range(limbs[0], limbs[0] + 1),
                           Domain::coeff);
    const View coeff = coefficients.view();
    const device::Buffer values = c.stream->allocate(coeff.words() * sizeof(i64));
    EXPECT_THROW(k.reduce_signed(*c.stream, coeff, values.as<const i64>()), StateError);
    EXPECT_THROW(k.lift_signed(*c.stream, values.as<i64>(), coeff), StateError);
    EXPECT_THROW(k.sample_uniform(*c.stream, coeff, {}, {}), StateError);
    EXPECT_THROW(k.sample_ternary(*c.stream, coeff, {}, {}), StateError);
    EXPECT_THROW(k.sample_error(*c.stream, coeff, {}, {}), StateError);
  }
  const device::Buffer shared = device::share_between_groups(*c.stream, key.view().data);
  std::vector<u8> bytes(64);
  EXPECT_THROW(c.stream->copy_in(shared.data(), bytes.data(), bytes.size()), StateError);
  EXPECT_THROW(c.stream->copy(shared.data(), key.view().data, bytes.size()), StateError);
  for (const char* name : {"cpu", "cpu+cpu+cpu"}) {
    const auto stream = device::open(name)->make_stream();
    EXPECT_EQ(device::entry_groups(*stream), 1u);
    EXPECT_THROW(device::share_between_groups(*stream, key.view().data), StateError) << name;
  }
  Temporary again(*c.stream, s.shape(2), limbs, Domain::eval);
  EXPECT_THROW(device::regroup(*c.stream, again.view().components(0, 1), whole.view()), StateError);
  c.stream->fill_zero(whole.view().data, whole.view().words() * sizeof(u32));
  k.neg(*c.stream, again.view(), whole.view());
  c.stream->synchronize();
}

}  // namespace
}  // namespace crenel::test
