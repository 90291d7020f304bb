// Bad input of a bootstrap: options, keys and ciphertexts that it cannot serve are refused with the
// value and what was expected, before any work.
#include "support/boot_world.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using test::expect_error;
using test::Values;

template <class F>
ParameterError refused(F set, const char* params = "toy-boot40") {
  BootstrapOptions o;
  set(o);
  const auto p = ckks::Params::preset(params, true);
  return expect_error<ParameterError>([&] { bootstrap_key_request(p, o); });
}

TEST(BootstrapOptions, LeveledParametersHaveNoLevelsForIt) {
  const auto e = refused([](auto&) {}, "toy-leveled-n13-s40");
  EXPECT_NE(e.field("levels"), "");
  EXPECT_NE(e.field("expected"), "");
  // The constructor says the same.
  const ckks::Context context(ckks::Params::preset("toy-leveled-n13-s40", true), "cpu");
  const auto made =
      expect_error<ParameterError>([&] { Bootstrapper(context, ckks::EvaluationKeys()); });
  EXPECT_STREQ(made.what(), e.what());
}

TEST(BootstrapOptions, MessageRatio) {
  for (const char* name :
       {"toy-boot30", "toy-boot35", "toy-boot40", "toy-boot45", "toy-boot50", "toy-boot48dr"}) {
    const auto p = ckks::Params::preset(name, true);
    for (u32 rho : {0u, static_cast<u32>(p.log_q(0)) - p.spec().log_scale + 2, 64u, u32(-1)}) {
      const auto e = refused([&](auto& o) { o.message_ratio = rho; }, name);
      EXPECT_EQ(e.field("message_ratio"), cat(rho)) << name;
      EXPECT_NE(e.field("highest"), "");
    }
  }
}

TEST(BootstrapOptions, Slots) {
  for (u64 slots : {u64(3), u64(2048), u64(1) << 63, u64(-1)}) {
    const auto e = refused([&](auto& o) { o.slots = slots; });
    EXPECT_EQ(e.field("slots"), cat(slots));
    EXPECT_EQ(e.field("max_slots"), "1024");
  }
}

TEST(BootstrapOptions, Arcsine) {
  for (u32 degree : {1u, 2u, 4u, 5u, 7u, 99u})
    EXPECT_EQ(refused([&](auto& o) { o.arcsine_degree = degree; }).field("arcsine_degree"),
              cat(degree));
}

TEST(BootstrapOptions, Iterations) {
  for (u32 n : {0u, 3u, u32(-1)})
    EXPECT_EQ(refused([&](auto& o) { o.iterations = n; }).field("iterations"), cat(n));
}

TEST(BootstrapOptions, Stages) {
  const std::vector<std::vector<u32>> wrong{
      {4, 4},              // too few
      {4, 4, 4},           // too many
      {2, 2, 2, 2, 1, 1},  // more factors than levels
  };
  for (const auto& stages : wrong) {
    SCOPED_TRACE(testing::PrintToString(stages));
    EXPECT_NE(refused([&](auto& o) { o.coeff_to_slot_stages = stages; }).field("stages"), "");
    EXPECT_NE(refused([&](auto& o) { o.slot_to_coeff_stages = stages; }).field("stages"), "");
  }
  EXPECT_NE(refused([](auto& o) { o.slot_to_coeff_stages = {3, 3, 2, 2}; }).field("factors"), "");
  // What adds up for all slots does not for fewer.
  EXPECT_NE(refused([](auto& o) { o.slots = 64, o.coeff_to_slot_stages = {5, 5}; }).field("stages"),
            "");
}

TEST(BootstrapOptions, StagesWhoseSumOverflows) {
  const std::vector<u32> ten_modulo_2_32{u32(-1), 11};
  EXPECT_NE(refused([&](auto& o) { o.coeff_to_slot_stages = ten_modulo_2_32; }).field("stages"),
            "");
  EXPECT_NE(refused([&](auto& o) { o.slot_to_coeff_stages = ten_modulo_2_32; }).field("stages"),
            "");
}

TEST(BootstrapOptions, TargetLevel) {
  for (u32 level : {14u, 16u, 28u, u32(-1)}) {
    const auto e = refused([&](auto& o) { o.target_level = level; });
    EXPECT_EQ(e.field("target_level"), cat(level));
    EXPECT_EQ(e.field("highest"), "13");
  }
  // The arcsine leaves fewer.
  EXPECT_EQ(refused([](auto& o) { o.target_level = 11, o.arcsine_degree = 3; }).field("highest"),
            "10");
  // StC first there are more, but not any number.
  const auto e = refused([](auto& o) {
    o.order = BootstrapOrder::slot_to_coeff_first;
    o.target_level = 17;
  });
  EXPECT_EQ(e.field("target_level"), "17");
}

TEST(BootstrapOptions, CombinationsThatDoNotGoTogether) {
  const auto order = refused([](auto& o) {
    o.message = BootstrapMessage::pair;
    o.order = BootstrapOrder::slot_to_coeff_first;
  });
  EXPECT_FALSE(order.fields().empty());
  const auto twice = refused([](auto& o) {
    o.message = BootstrapMessage::pair;
    o.iterations = 2;
  });
  EXPECT_FALSE(twice.fields().empty());
}

TEST(BootstrapOptions, SavingsThatArePossible) {
  const auto refused_saving = [](auto set) {
    return refused([&](auto& o) {
      o.savings.over_mod_raise = true;
      set(o);
    });
  };
  for (const auto& e : {refused_saving([](auto& o) { o.keys = KeyMode::minimal; }),
                        refused_saving([](auto& o) { o.coeff_to_slot_stages = {10}; }),
                        refused_saving([](auto& o) { o.coeff_to_slot_stages = {6, 4}; })})
    EXPECT_EQ(e.field("over_mod_raise"), "true");
  // A factor more than without it, and no more than that.
  EXPECT_EQ(
      refused_saving([](auto& o) { o.coeff_to_slot_stages = {2, 2, 2, 2, 1, 1}; }).field("factors"),
      "6");
  EXPECT_EQ(refused([](auto& o) {
              o.savings.over_mod_raise = false;
              o.coeff_to_slot_stages = {2, 2, 2, 2, 2};
            }).field("factors"),
            "5");
  // Where it is left open, what is possible.
  const auto p = ckks::Params::preset("toy-boot40", true);
  BootstrapOptions o;
  EXPECT_TRUE(plan_bootstrap(p, o).over_mod_raise());
  o.keys = KeyMode::minimal;
  EXPECT_FALSE(plan_bootstrap(p, o).over_mod_raise());
  EXPECT_TRUE(bootstrap_key_request(p, o).encapsulation_rotations.empty());
}

TEST(BootstrapOptions, RequestNamesEveryKindOfKey) {
  const auto p = ckks::Params::preset("toy-boot40", true);
  const auto r = bootstrap_key_request(p);
  EXPECT_TRUE(r.conjugate && r.relinearisation && r.encapsulation);
  EXPECT_FALSE(r.rotations.empty());
  EXPECT_EQ(std::count(r.encapsulation_rotations.begin(), r.encapsulation_rotations.end(), 0), 1);
  EXPECT_EQ(std::count(r.rotations.begin(), r.rotations.end(), 0), 0);
}

// Eight slots: the cheapest keys.
class BootstrapInput : public testing::Test {
 protected:
  static BootstrapOptions few() {
    BootstrapOptions o;
    o.slots = 8;
    return o;
  }
  static test::BootWorld& world() { return test::boot_world("cpu"); }
  static const ckks::EvaluationKeys& keys() {
    static const auto* made = new ckks::EvaluationKeys(world().keys_for(few()));
    return *made;
  }
  static std::multiset<std::string> names(const ckks::KeyRequest& r) {
    std::multiset<std::string> all;
    for (i64 k : r.rotations) all.insert(cat(k));
    if (r.conjugate) all.insert("conjugate");
    if (r.relinearisation) all.insert("relinearisation");
    if (r.encapsulation) all.insert("encapsulation");
    return all;
  }
  /// The StateError of a call, which took no memory to speak of: a bootstrap takes 14 MiB or more.
  template <class F>
  static StateError refused_at_once(F call) {
    auto& stream = world().context.stream();
    const u64 held = stream.bytes_in_use();
    stream.reset_peak();
    const auto e = expect_error<StateError>(call);
    EXPECT_LT(stream.peak_bytes() - held, u64(1) << 20) << "work was done before: " << e.what();
    return e;
  }
  /// Of the mode that is asked for: with none, keys that serve the minimal one would do.
  KeyMissingError missing(const ckks::EvaluationKeys& keys, BootstrapOptions o) {
    o.keys = KeyMode::hoisted;
    return expect_error<KeyMissingError>([&] { Bootstrapper(world().context, keys, o); });
  }
};

TEST_F(BootstrapInput, KeysDecideTheModeThatNobodyAskedFor) {
  auto& w = world();
  BootstrapOptions minimal = few();
  minimal.keys = KeyMode::minimal;
  const auto keys = w.client.evaluation_keys(bootstrap_key_request(w.params(), minimal));
  const Bootstrapper decided(w.context, keys, few());
  EXPECT_EQ(decided.options().keys, KeyMode::minimal);
  EXPECT_TRUE(decided.describe().keys_decided);
  const Bootstrapper asked(w.context, keys, minimal);
  EXPECT_FALSE(asked.describe().keys_decided);
  EXPECT_EQ(Bootstrapper(w.context, few()).options().keys, KeyMode::hoisted);
  EXPECT_NE(missing(keys, few()).field("rotations"), "");
}

TEST_F(BootstrapInput, KeysDecideTheSlotsThatNobodyAskedFor) {
  // Keys for few slots serve all of them with minimal keys, and slowly: nobody wants that unasked.
  auto& w = world();
  const auto with_slots = [](u64 slots) {
    BootstrapOptions o;
    o.slots = slots;
    return o;
  };
  for (const u64 made : {u64(256), u64(64)}) {
    const auto keys = w.keys_for(with_slots(made));
    const auto report = Bootstrapper(w.context, keys, {}).describe();
    EXPECT_EQ(report.slots, made);
    EXPECT_EQ(report.keys, KeyMode::hoisted);
    EXPECT_TRUE(report.keys_decided);
    EXPECT_NE(report.text().find(cat("slots           ", made)), std::string::npos);
    EXPECT_FALSE(Bootstrapper(w.context, keys, with_slots(made)).describe().keys_decided);
    // Asked for in so many words: what the keys cannot serve is refused with the call that can.
    BootstrapOptions fast = with_slots(w.params().slots());
    fast.keys = KeyMode::hoisted;
    const auto e = expect_error<KeyMissingError>([&] { Bootstrapper(w.context, keys, fast); });
    EXPECT_NE(std::string(e.what()).find("client.evaluation_keys(bootstrap=True)"),
              std::string::npos)
        << e.what();
    fast.slots = 512;
    const auto few_slots =
        expect_error<KeyMissingError>([&] { Bootstrapper(w.context, keys, fast); });
    EXPECT_NE(std::string(few_slots.what()).find("bootstrap=ckks.BootstrapOptions(slots=512)"),
              std::string::npos)
        << few_slots.what();
  }
  // All slots asked for, the mode left open: it is what the keys serve, and the report says so.
  BootstrapOptions plain = with_slots(256);
  plain.savings.over_mod_raise = false;  // whose keys are all of rotations
  const auto keys = w.keys_for(plain);
  const auto slow = Bootstrapper(w.context, keys, with_slots(w.params().slots())).describe();
  EXPECT_EQ(slow.keys, KeyMode::minimal);
  EXPECT_NE(slow.notice.find("256 slots with hoisted keys"), std::string::npos) << slow.notice;
  EXPECT_NE(slow.text().find(slow.notice), std::string::npos);
  EXPECT_EQ(Bootstrapper(w.context, w.keys_for({}), {}).describe().notice, "");
}

TEST_F(BootstrapInput, EveryMissingKeyIsNamedAtOnce) {
  auto& w = world();
  for (const BootstrapOptions& o : {few(), BootstrapOptions()}) {
    const auto request = bootstrap_key_request(w.params(), o);
    const auto none = missing({}, o);
    EXPECT_EQ(test::names_in(none), names(request)) << none.what();
    for (const auto& name : names(request))
      EXPECT_NE(std::string(none.what()).find(name), std::string::npos) << none.what();
  }
  const auto request = bootstrap_key_request(w.params(), few());
  const auto without = [&](auto change) {
    auto fewer = request;
    change(fewer);
    const auto e = missing(w.client.evaluation_keys(fewer), few());
    return test::names_in(e);
  };
  using Names = std::multiset<std::string>;
  EXPECT_EQ(without([](auto& r) {
              r.encapsulation = false;
              r.encapsulation_rotations.clear();
            }),
            Names{"encapsulation"});
  EXPECT_EQ(without([](auto& r) { r.conjugate = false; }), Names{"conjugate"});
  EXPECT_EQ(without([](auto& r) { r.relinearisation = false; }), Names{"relinearisation"});
  const auto erase = [](auto& r, std::size_t i) {  // of both kinds
    r.aligned_rotations.erase(r.rotations[i]);
    r.rotations.erase(r.rotations.begin() + static_cast<i64>(i));
  };
  for (std::size_t i = 0; i < request.rotations.size(); ++i)
    EXPECT_EQ(without([&](auto& r) { erase(r, i); }), Names{cat(request.rotations[i])});
  EXPECT_EQ(without([&](auto& r) {
              erase(r, 0);
              r.conjugate = false;
            }),
            (Names{"conjugate", cat(request.rotations[0])}));
}

TEST_F(BootstrapInput, KeysOfAnotherContext) {
  auto& other = test::boot_world("cpu", "toy-boot35");
  const auto keys = other.keys_for(few());
  const auto e = expect_error<StateError>([&] { Bootstrapper(world().context, keys, few()); });
  EXPECT_NE(e.field("found"), "");
  EXPECT_NE(e.field("expected"), "");
  // The same parameters on another device.
  const ckks::Context ref(world().params(), "ref");
  EXPECT_NE(
      expect_error<StateError>([&] { Bootstrapper(ref, this->keys(), few()); }).field("found"), "");
}

TEST_F(BootstrapInput, Ciphertexts) {
  auto& w = world();
  Bootstrapper boot(w.context, keys(), few());
  const auto refused = [&](const Ciphertext& c) {
    const auto eager = refused_at_once([&] { boot.eager(c); });
    const auto e = refused_at_once([&] { boot(c); });
    EXPECT_STREQ(eager.what(), e.what());
    return e;
  };
  const Values x(8, 0.5);
  const auto level = refused(w.client.encrypt(x, 2u, 0.0, 8));
  EXPECT_EQ(level.field("level"), "2");
  EXPECT_EQ(level.field("expected"), "0");
  const auto scale = refused(w.client.encrypt(x, 0u, 0x1p39, 8));
  EXPECT_NE(scale.field("scale"), "");
  EXPECT_NE(scale.field("expected"), "");
  const auto slots = refused(w.client.encrypt(x, 0u, 0.0, 16));
  EXPECT_EQ(slots.field("slots"), "16");
  EXPECT_EQ(slots.field("expected"), "8");
  const auto ev = w.context.evaluator(keys());
  Ciphertext three = ev.square_lazy(w.client.encrypt(x, 1u, 0.0, 8));
  EXPECT_EQ(refused(three).field("components"), "3");
  auto& other = test::boot_world("cpu", "toy-boot35");
  EXPECT_NE(refused(other.client.encrypt(x, 0u, 0.0, 8)).field("found"), "");
  // Still as good as new.
  EXPECT_LT(test::max_error(w.client.decrypt(boot(w.client.encrypt(x, 0u, 0.0, 8))), x), 0x1p-7);
}

TEST_F(BootstrapInput, OfTheOtherOrder) {
  auto& w = world();
  auto o = few();
  o.order = BootstrapOrder::slot_to_coeff_first;
  Bootstrapper boot(w.context, keys(), o);
  const auto e =
      expect_error<StateError>([&] { boot(w.client.encrypt(Values(8, 0.5), 0u, 0.0, 8)); });
  EXPECT_EQ(e.field("level"), "0");
  EXPECT_EQ(e.field("expected"), "3");
}

TEST_F(BootstrapInput, OfTwoIterations) {
  auto& w = world();
  auto o = few();
  o.iterations = 2;
  Bootstrapper boot(w.context, keys(), o);
  const Values x(8, 0.5);
  const auto refused = [&](const Ciphertext& c) { return refused_at_once([&] { boot(c); }); };
  EXPECT_EQ(refused(w.client.encrypt(x, 1u, 0x1p60, 16)).field("slots"), "16");
  const auto ev = w.context.evaluator(keys());
  EXPECT_EQ(refused(ev.square_lazy(w.client.encrypt(x, 1u, 0.0, 8))).field("components"), "3");
  auto& other = test::boot_world("cpu", "toy-boot35");
  EXPECT_NE(refused(other.client.encrypt(x, 1u, 0.0, 8)).field("found"), "");
  // A scale that no level below has room for.
  EXPECT_FALSE(refused(ev.square(w.client.encrypt(x, 1u, 0.0, 8))).fields().empty());
}

TEST_F(BootstrapInput, OfTwoIterationsAboveTheResult) {
  // The first result is compared with the input, at the input's level and scale.
  auto& w = world();
  auto o = few();
  o.iterations = 2;
  o.target_level = 1;
  Bootstrapper boot(w.context, keys(), o);
  for (u32 level : {1u, 3u}) {
    const Ciphertext in = w.client.encrypt(Values(8, 0.5), level, level == 1 ? 0x1p60 : 0.0, 8);
    EXPECT_FALSE(refused_at_once([&] { boot(in); }).fields().empty()) << level;
  }
}

TEST_F(BootstrapInput, Pairs) {
  auto& w = world();
  const Ciphertext u = w.client.encrypt(Values(8, 0.5), 0u, 0.0, 8);
  Bootstrapper single(w.context, keys(), few());
  EXPECT_NE(expect_error<StateError>([&] { single.pair(u, u); }).field("expected"), "");
  auto o = few();
  o.message = BootstrapMessage::pair;
  Bootstrapper pair(w.context, keys(), o);
  const auto refused = [&](const Ciphertext& v) {
    return refused_at_once([&] { pair.pair(u, v); });
  };
  EXPECT_FALSE(refused(w.client.encrypt(Values(8, 0.5), 1u, 0.0, 8)).fields().empty());
  EXPECT_FALSE(refused(w.client.encrypt(Values(8, 0.5), 0u, 0.0, 16)).fields().empty());
  EXPECT_FALSE(refused(w.client.encrypt(Values(16, 0.5), 0u, 0.0, 8, 2)).fields().empty());
  const Ciphertext high = w.client.encrypt(Values(8, 0.5), 1u, 0.0, 8);
  EXPECT_EQ(expect_error<StateError>([&] { pair.pair(high, high); }).field("level"), "1");
}

}  // namespace
}  // namespace crenel::circuits
