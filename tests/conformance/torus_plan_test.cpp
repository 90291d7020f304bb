// What plans and arguments are refused, and that a refusal names the field.
#include "support/devices.h"
#include "support/torus_world.h"

namespace crenel::test {
namespace {

template <class F>
void expect_refused(const std::string& field, const F& call) {
  try {
    call();
    ADD_FAILURE() << field << " was accepted";
  } catch (const ParameterError& e) {
    EXPECT_NE(e.field(field), "") << e.what() << ", expected field " << field;
    EXPECT_NE(std::string(e.what()).find(field), std::string::npos) << e.what();
  }
}

using Change = std::function<void(TorusPlan&)>;

TEST(TorusPlan, Accepts) {
  for (const TorusPlan& plan :
       {gadget_plan(556, 1, 1, 10, 1, 27, 7, 3), gadget_plan(600, 1, 1, 11, 2, 25, 25, 1),
        gadget_plan(1305, 1, 1, 11, 2, 27, 27, 1), raising_plan(656, 3, 5, 9, 17, 20),
        gadget_plan(1, 1, 1, 3, 1, 10, 1, 1)})
    EXPECT_NO_THROW(device::check(plan)) << describe(plan);
}

TEST(TorusPlan, RefusesEveryFieldOutOfRange) {
  const auto gadget = gadget_plan(6, 1, 1, 6, 1, 27, 7, 3),
             raising = raising_plan(6, 1, 1, 6, 17, 20);
  const std::vector<std::pair<const char*, Change>> common = {
      {"lwe_dim", [](TorusPlan& p) { p.lwe_dim = 0; }},
      {"lwe_dim", [](TorusPlan& p) { p.lwe_dim = 1u << 31; }},
      {"glwe_dim", [](TorusPlan& p) { p.glwe_dim = 0; }},
      {"glwe_dim", [](TorusPlan& p) { p.glwe_dim = 1000; }},
      {"slots", [](TorusPlan& p) { p.slots = 0; }},
      {"slots", [](TorusPlan& p) { p.slots = 100000; }},
      {"log_n", [](TorusPlan& p) { p.log_n = 2; }},
      {"log_n", [](TorusPlan& p) { p.log_n = 13; }},
      {"log_lwe_modulus", [](TorusPlan& p) { p.log_lwe_modulus = 0; }},
      {"log_lwe_modulus", [](TorusPlan& p) { p.log_lwe_modulus = 33; }},
      {"primes", [](TorusPlan& p) { p.primes.clear(); }},
      {"primes", [](TorusPlan& p) { p.primes = torus_primes(3, 18, 6); }},
      {"prime", [](TorusPlan& p) { p.primes = {129}; }},  // 3 * 43, but 1 modulo 128
      {"prime", [](TorusPlan& p) { p.primes = {257, 257}; }},
      {"prime", [](TorusPlan& p) { p.primes = {97}; }},  // 1 modulo 32 only
      {"prime", [](TorusPlan& p) { p.primes = torus_primes(1, 30, 6); }},
      {"log_switch_modulus", [](TorusPlan& p) { p.log_switch_modulus = 0; }},
      {"log_switch_modulus", [](TorusPlan& p) { p.log_switch_modulus = 41; }},
      {"log_switch_modulus", [](TorusPlan& p) { p.log_lwe_modulus = p.log_switch_modulus + 1; }},
      {"switch_base_log", [](TorusPlan& p) { p.switch_base_log = 0; }},
      {"switch_base_log", [](TorusPlan& p) { p.switch_base_log = 17; }},
      {"switch_digits", [](TorusPlan& p) { p.switch_digits = 0; }},
      {"switch_digits", [](TorusPlan& p) { p.switch_digits = 2; }}};
  for (const auto& base : {gadget, raising})
    for (const auto& [field, change] : common) {
      TorusPlan plan = base;
      change(plan);
      expect_refused(field, [&] { device::check(plan); });
    }
  const std::vector<std::pair<const char*, Change>> of_gadget = {
      {"modulus", [](TorusPlan& p) { p.modulus -= 2; }},
      {"modulus", [](TorusPlan& p) { p.modulus = 1u << 17; }},
      {"base_log", [](TorusPlan& p) { p.base_log = 0; }},
      {"base_log", [](TorusPlan& p) { p.base_log = 64; }},
      {"digits", [](TorusPlan& p) { p.digits = 0; }},
      {"digits", [](TorusPlan& p) { p.digits = 4; }},
      {"digits", [](TorusPlan& p) { p.base_log = 27, p.digits = 1; }}};
  for (const auto& [field, change] : of_gadget) {
    TorusPlan plan = gadget;
    change(plan);
    expect_refused(field, [&] { device::check(plan); });
  }
  const std::vector<std::pair<const char*, Change>> of_raising = {
      {"modulus", [](TorusPlan& p) { p.modulus = 0; }},
      {"modulus", [](TorusPlan& p) { p.modulus = 1; }},
      {"modulus", [](TorusPlan& p) { p.modulus = 3u << 15; }},
      {"modulus", [](TorusPlan& p) { p.modulus = u64(1) << 40; }},  // above T
      {"digits", [](TorusPlan& p) { p.digits = 2; }}};
  for (const auto& [field, change] : of_raising) {
    TorusPlan plan = raising;
    change(plan);
    expect_refused(field, [&] { device::check(plan); });
  }
}

TEST(TorusPlan, SplitIsForGadgetsOfTwoPrimes) {
  for (TorusPlan plan :
       {gadget_plan(600, 1, 1, 11, 2, 25, 25, 1), gadget_plan(1305, 1, 16, 11, 2, 27, 27, 1),
        gadget_plan(6, 1, 1, 7, 2, 27, 1, 53), gadget_plan(6, 1, 1, 3, 2, 8, 3, 1)}) {
    plan.arithmetic = device::Arithmetic::split;
    EXPECT_NO_THROW(device::check(plan)) << describe(plan);
  }
  for (TorusPlan plan :
       {raising_plan(656, 3, 5, 9, 17, 20), raising_plan(6, 1, 1, 11, 22, 26),
        gadget_plan(556, 1, 1, 10, 1, 27, 7, 3), gadget_plan(556, 1, 16, 11, 1, 25, 4, 6)}) {
    plan.arithmetic = device::Arithmetic::split;
    expect_refused("arithmetic", [&] { device::check(plan); });
  }
}

// The widest digit: a base, or what the others leave.
TEST(TorusPlan, PiecesAreHalvesOfTheWidestDigit) {
  for (const auto& [base_log, digits, log] : {std::tuple{27u, 1u, 14u},
                                              {26u, 1u, 14u},
                                              {14u, 3u, 7u},
                                              {18u, 2u, 9u},
                                              {17u, 2u, 10u},
                                              {5u, 9u, 5u},
                                              {1u, 53u, 1u}}) {
    TorusPlan plan = gadget_plan(6, 1, 1, 7, 2, 27, base_log, digits);
    plan.arithmetic = device::Arithmetic::split;
    EXPECT_EQ(device::piece_log(plan), log) << describe(plan);
    EXPECT_EQ(plan.operands(), 2 * digits);
    plan.arithmetic = device::Arithmetic::exact;
    EXPECT_EQ(plan.operands(), digits);
  }
}

// Sums of products that the rounding of doubles cannot hold.
TEST(TorusPlan, RefusesApproxBeyondDoubles) {
  for (const u32 log_modulus : {46u, 54u}) {
    TorusPlan plan = raising_plan(6, 1, 1, 10, log_modulus, 28);
    EXPECT_NO_THROW(device::check(plan));
    plan.arithmetic = device::Arithmetic::approx;
    expect_refused("modulus", [&] { device::check(plan); });
  }
}

class TorusRefusal : public DeviceTest {};
CRENEL_DEVICE_SUITE(TorusRefusal);

TEST_P(TorusRefusal, Plans) {
  auto plan = raising_plan(6, 1, 1, 6, 17, 20);
  plan.slots = 0;
  expect_refused("slots", [&] { device::backend_of(*device_).make_torus_kernels(plan); });
}

// Nothing is touched when an argument is refused: the pointers here are not even device memory.
TEST_P(TorusRefusal, Arguments) {
  const TorusWorld world(device_, raising_plan(6, 1, 1, 6, 17, 20));
  auto& k = *world.kernels;
  auto& s = *world.stream;
  u64 wide[4] = {};
  u32 narrow[4] = {};
  i64 polys[4] = {};
  i8 secrets[4] = {};
  const random::Seed seed{};
  const device::LutView luts{wide, wide, 1, nullptr};
  const auto shape = k.switch_shape();
  const auto with = [](auto value, auto change) {
    change(value);
    return value;
  };
  expect_refused("first", [&] { k.load_bootstrap_key(s, wide, 7, 0, polys); });
  expect_refused("count", [&] { k.load_bootstrap_key(s, wide, 4, 3, polys); });
  expect_refused("key", [&] { k.load_bootstrap_key(s, nullptr, 0, 1, polys); });
  expect_refused("polys", [&] { k.load_bootstrap_key(s, wide, 0, 1, nullptr); });
  const device::LweView fresh{narrow, k.at_rest(1)}, extracted{wide, k.extracted(1)};
  const auto no_data = [](auto& v) { v.data = nullptr; };
  const auto other_rows = [](auto& v) { v.shape.rows = 2; };
  const auto other_dim = [](auto& v) { ++v.shape.dim; };
  const auto other_slots = [](auto& v) { ++v.shape.slots; };
  const auto other_modulus = [](auto& v) { --v.shape.log_modulus; };
  const auto other_words = [](auto& v) { v.word_bytes = 12 - v.word_bytes; };
  const auto rotate = [&](const char* field, const device::LweView& out, const device::LweView& in,
                          void* key, const device::LutView& tables) {
    expect_refused(field, [&] { k.blind_rotate(s, out, in, key, tables); });
  };
  rotate("out", with(extracted, no_data), fresh, wide, luts);
  rotate("rows", with(extracted, other_rows), fresh, wide, luts);
  rotate("dim", with(extracted, other_dim), fresh, wide, luts);
  rotate("slots", with(extracted, other_slots), fresh, wide, luts);
  rotate("log_modulus", with(extracted, other_modulus), fresh, wide, luts);
  rotate("word_bytes", with(extracted, other_words), fresh, wide, luts);
  rotate("in", extracted, with(fresh, no_data), wide, luts);
  rotate("rows", extracted, with(fresh, other_rows), wide, luts);
  rotate("dim", extracted, with(fresh, other_dim), wide, luts);
  rotate("slots", extracted, with(fresh, other_slots), wide, luts);
  rotate("log_modulus", extracted, with(fresh, other_modulus), wide, luts);
  rotate("word_bytes", extracted, with(fresh, other_words), wide, luts);
  rotate("key", extracted, fresh, nullptr, luts);
  rotate("count", extracted, fresh, wide, with(luts, [](auto& l) { l.count = 0; }));
  for (const u32 outputs : {0u, 3u, 128u})
    rotate("outputs", extracted, fresh, wide, with(luts, [=](auto& l) { l.outputs = outputs; }));
  rotate("rows", extracted, fresh, wide, with(luts, [](auto& l) { l.outputs = 2; }));
  rotate("offsets", extracted, fresh, wide, with(luts, [](auto& l) { l.offsets = nullptr; }));
  const auto key = shape.key<void>(wide);
  const auto refused_shape = [&](const char* field, auto change) {
    const auto changed = with(shape, change);
    expect_refused(field, [&] {
      k.key_switch(s, changed, {narrow, changed.out(1)}, {wide, changed.in(1)},
                   changed.key(static_cast<void*>(wide)));
    });
  };
  refused_shape("in_dim", [](auto& x) { x.in_dim = 0; });
  refused_shape("out_dim", [](auto& x) { x.out_dim = 0; });
  refused_shape("slots", [](auto& x) { x.slots = 0; });
  refused_shape("log_modulus", [](auto& x) { x.log_modulus = 41; });
  refused_shape("log_out_modulus", [](auto& x) { x.log_out_modulus = 18; });
  refused_shape("base_log", [](auto& x) { x.base_log = 0; });
  refused_shape("digits", [](auto& x) { x.digits = 0; });
  refused_shape("base_log * digits", [](auto& x) { x.digits = 2; });
  const auto refused_switch = [&](const char* field, const device::LweView& out,
                                  const device::LweView& in, const device::LweView& rows) {
    expect_refused(field, [&] { k.key_switch(s, shape, out, in, rows); });
  };
  refused_switch("in", fresh, with(extracted, no_data), key);
  refused_switch("word_bytes", fresh, with(extracted, other_words), key);
  refused_switch("dim", with(fresh, other_dim), extracted, key);
  refused_switch("rows", with(fresh, other_rows), extracted, key);
  refused_switch("key", fresh, extracted, with(key, no_data));
  refused_switch("rows", fresh, extracted, with(key, other_rows));
  refused_switch("word_bytes", fresh, extracted, with(key, other_words));
  expect_refused("terms", [&] { k.linear(s, fresh, {}, 0); });
  const device::LweTerm null_term{nullptr, 1}, term{narrow, 1};
  const auto modulo = [&](u32 log_modulus) {
    return with(fresh, [&](auto& v) { v.shape.log_modulus = log_modulus; });
  };
  expect_refused("data", [&] { k.linear(s, fresh, {&null_term, 1}, 0); });
  expect_refused("log_modulus", [&] { k.linear(s, modulo(33), {&term, 1}, 0); });
  expect_refused("word_bytes", [&] { k.linear(s, with(fresh, other_words), {&term, 1}, 0); });
  expect_refused("log_modulus", [&] { k.mod_switch(s, modulo(0), fresh); });
  expect_refused("log_modulus", [&] { k.mod_switch(s, fresh, modulo(33)); });
  expect_refused("dim", [&] { k.mod_switch(s, fresh, with(fresh, other_dim)); });
  const auto sample = [&](const char* field, const device::LweView& out, const i8* secret_words) {
    expect_refused(field, [&] { k.sample_lwe(s, out, {seed}, {seed}, secret_words, nullptr); });
  };
  sample("dim", with(fresh, [](auto& v) { v.shape.dim = 0; }), secrets);
  sample("log_modulus", modulo(65), secrets);
  sample("word_bytes", modulo(33), secrets);
  sample("secrets", fresh, nullptr);
  const auto no_slots = with(fresh, [](auto& v) { v.shape.slots = 0; });
  expect_refused("slots", [&] { k.expand_lwe(s, no_slots, {seed}, wide); });
  expect_refused("out", [&] { k.expand_lwe(s, with(fresh, no_data), {seed}, wide); });
  expect_refused("bodies", [&] { k.expand_lwe(s, fresh, {seed}, nullptr); });
  expect_refused("secrets", [&] { k.phase(s, narrow, fresh, nullptr); });
  expect_refused("log_modulus", [&] { k.phase(s, narrow, modulo(0), secrets); });
}

// The switch of a plan is the one its fields say.
TEST_P(TorusRefusal, SwitchShape) {
  const TorusWorld world(device_, raising_plan(6, 2, 3, 6, 17, 20));
  EXPECT_EQ(world.kernels->switch_shape(), (device::SwitchShape{128, 6, 3, 17, 7, 6, 3}));
}

}  // namespace
}  // namespace crenel::test
