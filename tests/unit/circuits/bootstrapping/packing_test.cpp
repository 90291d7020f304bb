// Several ciphertexts in one bootstrap: each has its own message back, within the model of a
// member, however many there are, and with exactly the keys that are asked for.
#include "circuits/bootstrapping/packing.h"

#include "crenel/ckks/error_model.h"
#include "support/boot_world.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using test::BootWorld;
using test::Complex;
using test::expect_error;
using test::Values;

using Inputs = std::vector<const Ciphertext*>;

BootstrapOptions packed(u64 slots, u32 pack) {
  BootstrapOptions o;
  o.slots = slots;
  o.pack = pack;
  o.message_ratio = 5;
  return o;
}

Inputs pointers(const std::vector<Ciphertext>& list) {
  Inputs p;
  for (const Ciphertext& c : list) p.push_back(&c);
  return p;
}

class BootstrapPacking : public test::SchemeTest {
 protected:
  void SetUp() override {
    SchemeTest::SetUp();
    if (!IsSkipped() && GetParam() == "ref") GTEST_SKIP() << "compared with the other devices";
  }
  BootWorld& world() { return test::boot_world(GetParam(), "toy-boot40"); }
};

TEST_P(BootstrapPacking, UnpackingIsTheInverseUpToTheFactor) {
  auto& w = world();
  auto rng = test::test_rng();
  const u32 level = 4;
  for (const auto& [slots, count] :
       {std::pair<u64, u32>{32, 8}, {1, 4}, {w.slots() / 4, 4}, {8, 1}}) {
    SCOPED_TRACE(cat(slots, " slots, ", count));
    const MonomialPacking packing(*w.context.state().ring, slots, count, level, level);
    const auto ev =
        w.context.evaluator(w.client.evaluation_keys({MonomialPacking::rotations(slots, count)}));
    const Values x = test::random_values(rng, slots * count * 2);  // two packs
    const Ciphertext rows = w.client.encrypt(x, level, 0.0, slots, 2 * count);
    const Ciphertext one = packing.pack(ev, rows);
    EXPECT_EQ(one.batch(), 2u);
    EXPECT_EQ(one.slots(), slots * count);
    const Values back = w.client.decrypt(packing.unpack(ev, one.clone()));
    EXPECT_LT(test::max_error(
                  back, test::map_values(x, [n = double(count)](Complex v) { return v * n; })),
              count * 4 * test::tolerance(w.params()));
  }
}

// Every order and kind of message; lists of fewer than a pack, of several packs, of a batch.
TEST_P(BootstrapPacking, EveryMemberHasItsOwnMessageWithinTheModel) {
  auto& w = world();
  auto rng = test::test_rng();
  struct Case {
    u64 slots;
    u32 pack, members, batch;
    BootstrapMessage message = BootstrapMessage::complex;
    BootstrapOrder order = BootstrapOrder::coeff_to_slot_first;
    u32 ratio = 5;
  };
  const auto first = BootstrapOrder::slot_to_coeff_first;
  for (const Case& c : {Case{32, 8, 8, 1},
                        {32, 8, 3, 2},
                        {16, 2, 5, 1},
                        {w.slots() / 4, 4, 4, 1},
                        {w.slots(), 1, 2, 1},
                        {1, 4, 4, 1},
                        {32, 4, 4, 1, BootstrapMessage::real},
                        {32, 4, 7, 1, BootstrapMessage::pair},
                        {w.slots(), 1, 3, 1, BootstrapMessage::pair},
                        {32, 4, 4, 1, BootstrapMessage::complex, first, 8},
                        {32, 4, 4, 1, BootstrapMessage::real, first, 8}}) {
    SCOPED_TRACE(cat(c.members, " members of ", c.slots, " slots, ", c.pack, " in one, message ",
                     int(c.message), ", order ", int(c.order)));
    auto o = packed(c.slots, c.pack);
    o.message = c.message, o.order = c.order, o.message_ratio = c.ratio;
    const Bootstrapper boot(w.context, w.keys_for(o), o);
    const bool real = c.message != BootstrapMessage::complex;
    std::vector<Values> values;
    std::vector<Ciphertext> in;
    for (u32 k = 0; k < c.members; ++k) {
      const Message kind{real ? MessageKind::uniform_real : MessageKind::uniform_complex};
      values.push_back(test::draw(kind, rng, c.slots * c.batch));
      in.push_back(w.client.encrypt(values.back(), boot.levels().input, 0.0, c.slots, c.batch));
    }
    const auto before = test::bits(in[0]);
    auto& stream = w.context.stream();
    const u64 held = stream.bytes_in_use();
    stream.reset_peak();
    const std::vector<Ciphertext> out = boot(pointers(in));
    u64 results = 0;
    for (const Ciphertext& c : out) results += c.bytes();
    const u64 packs = (in.size() + c.pack - 1) / c.pack;
    EXPECT_LE(stream.peak_bytes() - held,
              c.batch * packs * boot.describe().workspace_bytes + results);
    EXPECT_EQ(test::bits(in[0]), before) << "an input has changed";
    ASSERT_EQ(out.size(), in.size());
    const auto plan = plan_bootstrap(w.params(), boot.options());
    // A pair's coefficients are those of u + i v.
    const Message model{real && c.message == BootstrapMessage::real ? MessageKind::uniform_real
                                                                    : MessageKind::uniform_complex};
    const PrecisionEstimate e = estimate_precision(model_of(w.params(), plan), model);
    const double expected = c.order == first ? boot.expected_error(model) : e.total.max;
    double square = 0.0;
    for (u32 k = 0; k < c.members; ++k) {
      EXPECT_EQ(out[k].level(), boot.levels().output);
      EXPECT_EQ(out[k].scale(), w.params().scale(out[k].level()));
      EXPECT_EQ(out[k].slots(), c.slots);
      EXPECT_EQ(out[k].batch(), c.batch);
      EXPECT_EQ(out[k].metadata().real, real);
      const Values found = w.client.decrypt(out[k]);
      EXPECT_LT(test::max_error(found, values[k]), 5.0 * (expected + 3.0 * e.total.rms)) << k;
      square += std::pow(test::rms_error(found, values[k]), 2.0) / c.members;
    }
    // The sine's error is the message's cube: the largest message has 2.65 times its rms, and of
    // four numbers all may be large.
    EXPECT_LT(std::sqrt(square), (c.slots * c.members < 32 ? 3.0 : 2.0) * expected);
    std::printf("  %s: rms error 2^%.1f, model 2^%.1f\n",
                cat(c.members, " of ", c.slots, ", pack ", c.pack).c_str(), std::log2(square) / 2,
                std::log2(e.total.rms));
  }
}

// What is left beside the sine is noise, and it must be the model's.
TEST_P(BootstrapPacking, NoiseOfAMemberIsTheModels) {
  auto& w = world();
  auto rng = test::test_rng();
  const u64 slots = 64;
  auto noise = [&](u32 pack) {
    auto o = packed(slots, pack);
    o.message_ratio = 10;
    const Bootstrapper boot(w.context, w.keys_for(o), o);
    const auto plan = plan_bootstrap(w.params(), boot.options());
    double square = 0.0;
    u32 members = 0;
    for (; members < 16; members += pack) {
      std::vector<Ciphertext> in;
      std::vector<Values> values;
      for (u32 k = 0; k < pack; ++k) {
        values.push_back(test::random_values(rng, slots));
        in.push_back(w.client.encrypt(values.back(), 0u, 0.0, slots));
      }
      const auto out = boot(pointers(in));
      for (u32 k = 0; k < pack; ++k)
        square += std::pow(
            test::rms_error(w.client.decrypt(out[k]), test::after_sine(w.context, plan, values[k])),
            2.0);
    }
    const double model = test::noise_of(estimate_precision(model_of(w.params(), plan),
                                                           {MessageKind::uniform_complex}))
                             .rms;
    const double found = std::sqrt(square / members);
    std::printf("  pack %u: rms 2^%.2f, model 2^%.2f\n", pack, std::log2(found), std::log2(model));
    EXPECT_LT(found, 1.5 * model) << pack;
    EXPECT_GT(found, 0.2 * model) << pack << ": of few slots an upper bound";
    return found;
  };
  const double two = noise(2), eight = noise(8);
  EXPECT_GT(eight, two) << "the last rounding, which the sums of unpacking enlarge";
}

TEST_P(BootstrapPacking, CopiesThatDriftedApartComeBackAsTheirMean) {
  auto& w = world();
  auto rng = test::test_rng();
  const u64 slots = 32;
  const auto o = packed(slots, 4);
  const Bootstrapper boot(w.context, w.keys_for(o), o);
  const auto ev = w.context.evaluator(w.keys());
  const double drift = 0.25;
  std::vector<Ciphertext> in;
  std::vector<Values> mean;
  for (u32 k = 0; k < 4; ++k) {
    Values copies(w.slots());
    const Values x = test::random_values(rng, slots, 0.5);
    mean.emplace_back(slots);
    for (u64 i = 0; i < copies.size(); ++i) {
      // One member drifts by far more than noise: the mean must be exact for it.
      copies[i] = x[i % slots] + (k == 1 ? test::random_values(rng, 1, drift)[0] : Complex(0.0));
      mean[k][i % slots] += copies[i] * double(slots) / double(copies.size());
    }
    in.push_back(ev.with_slots(w.client.encrypt(copies, 0u), slots, true));
  }
  const auto out = boot(pointers(in));
  const double fits = 4.0 * boot.describe().worst_error;
  EXPECT_LT(test::max_error(w.client.decrypt(out[1]), mean[1]), fits);
  // The copies of the result agree, in the whole ring.
  const auto up = w.context.evaluator(w.keys());
  for (const u32 k : {0u, 1u}) {
    const Values full = w.client.decrypt(up.with_slots(out[k], w.slots()));
    for (u64 i = 0; i < full.size(); ++i)
      ASSERT_LT(std::abs(full[i] - full[i % slots]), fits) << k << " slot " << i;
  }
  // What does not repeat reaches the others as its mean over N / (2 n K) copies.
  const double copies = double(w.slots()) / double(slots * 4);
  for (const u32 k : {0u, 2u, 3u})
    EXPECT_LT(test::rms_error(w.client.decrypt(out[k]), mean[k]),
              3.0 * drift / std::sqrt(copies) + fits);
}

TEST_P(BootstrapPacking, FewerSlotsAreKeptAndSameBitsAnyWay) {
  auto& w = world();
  auto rng = test::test_rng();
  const auto o = packed(32, 4);
  const Bootstrapper boot(w.context, w.keys_for(o), o);
  const Values x = test::random_values(rng, 8), y = test::random_values(rng, 32);
  std::vector<Ciphertext> in;
  in.push_back(w.client.encrypt(x, 0u, 0.0, 8));
  in.push_back(w.client.encrypt(y, 0u, 0.0, 32));
  const auto out = boot(pointers(in)), eager = boot.eager(pointers(in));
  EXPECT_EQ(out[0].slots(), 8u);
  EXPECT_LT(test::max_error(w.client.decrypt(out[0]), x), 4.0 * boot.describe().worst_error);
  EXPECT_LT(test::max_error(w.client.decrypt(out[1]), y), 4.0 * boot.describe().worst_error);
  for (int k : {0, 1}) EXPECT_EQ(test::bits(out[k]), test::bits(eager[k]));
  // One ciphertext is a list of one; the other places are empty.
  const Ciphertext* one = &in[1];
  EXPECT_EQ(test::bits(boot(in[1])), test::bits(boot({&one, 1})[0]));
  // Without packing, a list is a batch.
  const Bootstrapper plain = [&] {
    const auto single = packed(32, 1);
    return Bootstrapper(w.context, w.keys_for(single), single);
  }();
  std::vector<Ciphertext> two;
  for (int k : {0, 1}) two.push_back(w.client.encrypt(k ? x : y, 0u, 0.0, k ? 8 : 32));
  const auto apart = plain(pointers(two));
  EXPECT_EQ(test::bits(apart[0]), test::bits(plain(two[0])));
}

TEST_P(BootstrapPacking, TwoIterations) {
  auto& w = world();
  auto rng = test::test_rng();
  auto o = packed(32, 4);
  o.message_ratio = 8;
  const double once = Bootstrapper(w.context, o).describe().worst_error;
  o.iterations = 2;
  const Bootstrapper boot(w.context, w.keys_for(o), o);
  std::vector<Ciphertext> in;
  std::vector<Values> x;
  for (int k = 0; k < 3; ++k) {
    x.push_back(test::random_values(rng, 32));
    in.push_back(w.client.encrypt(x.back(), 1u, 0.0, 32));
  }
  const auto out = boot(pointers(in));
  for (int k = 0; k < 3; ++k)
    EXPECT_LT(test::max_error(w.client.decrypt(out[k]), x[k]), once / 4.0) << k;
}

TEST_P(BootstrapPacking, WhatDoesNotFitIsRefusedBeforeAnyWork) {
  auto& w = world();
  auto rng = test::test_rng();
  for (const auto& [slots, pack] :
       {std::pair<u64, u32>{32, 3}, {32, 0}, {w.slots(), 2}, {0, u32(2 * w.slots())}}) {
    const auto e = expect_error<ParameterError>(
        [&w, slots = slots, pack = pack] { Bootstrapper(w.context, packed(slots, pack)); });
    EXPECT_EQ(e.field("pack"), cat(pack));
    EXPECT_FALSE(e.field("max_pack").empty());
  }
  EXPECT_EQ(Bootstrapper(w.context, packed(0, 4)).options().slots, w.slots() / 4);
  const auto o = packed(32, 4);
  const auto keys = w.keys_for(o);
  const Bootstrapper boot(w.context, keys, o);
  const auto fresh = [&](u32 level, u64 slots, u32 batch = 1, double bound = ckks::kUnknownBound) {
    return w.client.encrypt(test::random_values(rng, slots * batch), level, 0.0, slots, batch,
                            bound);
  };
  const Ciphertext good = fresh(0, 32), level = fresh(2, 32), wide = fresh(0, 64),
                   batch = fresh(0, 32, 2), large = fresh(0, 32, 1, 5.0);
  const auto refused = [&](const Ciphertext& bad) {
    const Ciphertext* in[] = {&good, &bad};
    return expect_error<StateError>([&] { boot(in); });
  };
  EXPECT_EQ(refused(level).field("level"), "2");
  EXPECT_EQ(refused(wide).field("slots"), "64");
  EXPECT_EQ(refused(batch).field("batch"), "2");
  EXPECT_EQ(refused(large).field("bound"), "5");
  EXPECT_THROW(boot(Inputs{}), ParameterError);
  // Only the last stage's rotation is missing, which the trace does not need.
  auto few = bootstrap_key_request(w.params(), o);
  EXPECT_EQ(std::erase(few.rotations, 32), 1u);
  const auto e = expect_error<KeyMissingError>(
      [&] { Bootstrapper(w.context, w.client.evaluation_keys(few), o); });
  EXPECT_NE(std::string(e.what()).find("pack=4"), std::string::npos) << e.what();
  EXPECT_NE(boot.describe().text().find("4 ciphertexts in one bootstrap of 128"),
            std::string::npos);
  EXPECT_EQ(boot.describe().pack, 4u);
}

TEST_P(BootstrapPacking, BoundsAreKeptAndErrorsBoundedMemberByMember) {
  auto& w = world();
  auto rng = test::test_rng();
  const auto o = packed(32, 4);
  const Bootstrapper boot(w.context, w.keys_for(o), o);
  const ckks::ErrorModel model(w.params());
  std::vector<Ciphertext> in;
  std::vector<Values> x;
  std::vector<ckks::ErrorBound> bounds;
  for (double size : {0.5, 2.0, 1.0}) {
    x.push_back(test::random_values(rng, 32, size / 2));
    in.push_back(w.client.encrypt(x.back(), 0u, 0.0, 32, 1, size));
    bounds.push_back(model.input(size, false, 0u, 0.0, 32));
  }
  const auto checked = w.context.evaluator(w.keys_for(o)).checked(w.client);
  const auto out = boot(checked, pointers(in));
  const auto predicted = boot(model, bounds);
  ASSERT_EQ(predicted.size(), out.size());
  for (std::size_t k = 0; k < out.size(); ++k) {
    EXPECT_EQ(out[k].bound(), in[k].bound());
    EXPECT_EQ(predicted[k].message, bounds[k].message);
    EXPECT_EQ(predicted[k].level(), out[k].level());
    EXPECT_EQ(predicted[k].scale(), out[k].scale());
    EXPECT_EQ(predicted[k].slots(), 32u);
    EXPECT_LE(test::max_error(w.client.decrypt(out[k]), x[k]), predicted[k].max);
  }
  bounds[1].ring += 1e-3;  // another member's error reaches this one
  EXPECT_GT(boot(model, bounds)[0].max, predicted[0].max + 0.9e-3);
  bounds[1].message = 10.0;
  EXPECT_THROW(boot(model, bounds), StateError);
}

// A member has its own coefficients of the packed vector; EvalMod's errors in the others are none
// of its. Only SlotToCoeff's roundings grow.
TEST(BootstrapPackingModel, ErrorsOfCoefficientsAreSharedOut) {
  BootstrapModel together, shared;
  together.slots = 256, shared.slots = 256, shared.pack = 8;
  for (BootstrapModel* m : {&together, &shared}) {
    m->cts = {{2, 49.973, 2}, {2, 49.978, 2}, {2, 59.998, 2}, {2, 60.0, 2}};
    m->stc = {{3, 40.002, 3}, {3, 39.995, 3}, {2, 40.003, 2}};
  }
  const Message unknown{MessageKind::uniform_complex};
  const auto all = estimate_precision(together, unknown), one = estimate_precision(shared, unknown);
  for (auto part :
       {&PrecisionEstimate::raise, &PrecisionEstimate::cts, &PrecisionEstimate::eval_mod})
    EXPECT_NEAR((one.*part).rms, (all.*part).rms / std::sqrt(8.0), 1e-9 * (all.*part).rms);
  EXPECT_GT(one.output.rms, std::sqrt(8.0) * all.output.rms);
  // What it rests on of its message is its own: the sine's error is that of a vector of 32 slots.
  BootstrapModel alone = together;
  alone.slots = 32;
  EXPECT_EQ(one.sine.rms, sine_error(alone, unknown).rms);
  shared.pack = 3;
  EXPECT_THROW(estimate_precision(shared, unknown), ParameterError);
}

CRENEL_DEVICE_SUITE(BootstrapPacking);

}  // namespace
}  // namespace crenel::circuits
