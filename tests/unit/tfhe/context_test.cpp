// Contexts, evaluation keys as objects, ciphertext arrays: clone, slice, concatenate.
#include "support/tfhe_world.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

class TfheContext : public test::TfheTest {};

TEST_P(TfheContext, StatesItsParametersAndDevice) {
  auto& w = world("gadget:r3");
  EXPECT_EQ(w.context.device().info().name, GetParam());
  EXPECT_EQ(w.context.params().slots(), SlotCount(3));
  EXPECT_EQ(w.client.context().params().id(), w.params().id());
  EXPECT_EQ(w.ev.context().params().id(), w.params().id());
  const auto& plan = w.context.state().plan;
  EXPECT_EQ(plan.ring_dim(), w.params().spec().poly_size.value);
  EXPECT_EQ(plan.slots, 3u);
  EXPECT_EQ(plan.modulus, w.params().modulus());
}

TEST_P(TfheContext, UnknownDeviceIsRefused) {
  EXPECT_THROW(Context(test::tfhe_params("gadget"), "abacus"), DeviceError);
}

TEST_P(TfheContext, VariantsAreMadeOnce) {
  const auto& state = world("gadget").context.state();
  EXPECT_EQ(&state.variant(state.plan.log_lwe_modulus, state.plan.slots), state.torus.get());
  auto& doubled = state.variant(state.plan.log_lwe_modulus + 1, state.plan.slots);
  EXPECT_EQ(&doubled, &state.variant(state.plan.log_lwe_modulus + 1, state.plan.slots));
  EXPECT_EQ(doubled.plan().log_lwe_modulus, state.plan.log_lwe_modulus + 1);
}

TEST_P(TfheContext, KeysStateTheirSize) {
  auto& w = world("gadget:r3", true);
  const auto& state = w.context.state();
  const auto shape = state.torus->switch_shape();
  EXPECT_TRUE(w.keys.has_packing());
  EXPECT_FALSE(world("gadget:r3").keys.has_packing());
  EXPECT_GT(w.keys.bytes(), state.torus->bootstrap_key_bytes() + shape.key_bytes());
  EXPECT_EQ(world("gadget:r3").keys.bytes(),
            state.torus->bootstrap_key_bytes() + shape.key_bytes());
  EXPECT_LT(w.keys.wire_bytes(), w.keys.bytes());
}

TEST_P(TfheContext, ClonesAreIndependent) {
  auto& w = world("gadget:r3");
  const Messages x{1, 2, 3, 0, 1};
  auto a = std::make_unique<Ciphertext>(w.client.encrypt(x));
  const Ciphertext copy = a->clone();
  EXPECT_EQ(test::words_of(*a), test::words_of(copy));
  EXPECT_EQ(copy.data().seed, a->data().seed);
  a.reset();
  EXPECT_EQ(w.client.decrypt(copy), x);
}

TEST_P(TfheContext, RowsHoldSlotsMessagesEach) {
  for (const char* name : {"gadget", "gadget:r3"}) {
    auto& w = world(name);
    const u32 r = w.params().slots().value, n = w.params().spec().lwe_dim.value;
    for (u64 size : {1, 2, 3, 4, 7}) {
      const Ciphertext c = w.client.encrypt(Messages(size, 1));
      EXPECT_EQ(c.size(), size);
      EXPECT_EQ(c.plain_modulus(), 4u);
      EXPECT_EQ(c.bytes(), (size + r - 1) / r * (n + r) * sizeof(u32));
    }
  }
}

TEST_P(TfheContext, SliceAndConcatenateAreInverse) {
  auto rng = test::test_rng();
  for (const char* name : {"gadget", "gadget:r3"}) {
    auto& w = world(name);
    const Messages x = test::random_messages(rng, 17, 4);
    const Ciphertext c = w.client.encrypt(x);
    const Ciphertext a = c.slice(0, 6), b = c.slice(6, 9), d = c.slice(15, 2);
    EXPECT_EQ(w.client.decrypt(b), Messages(x.begin() + 6, x.begin() + 15));
    EXPECT_FALSE(b.data().seed.has_value());  // its masks start at another serial
    const Ciphertext* parts[] = {&a, &b, &d};
    const Ciphertext whole = concatenate(parts);
    EXPECT_EQ(whole.size(), 17u);
    EXPECT_EQ(test::words_of(whole), test::words_of(c));
    EXPECT_EQ(w.client.decrypt(whole), x);
  }
}

TEST_P(TfheContext, SliceRefusesWhatDoesNotExist) {
  auto& w = world("gadget:r3");
  const Ciphertext c = w.client.encrypt(Messages(7, 1));
  EXPECT_THROW(c.slice(0, 0), ParameterError);
  EXPECT_THROW(c.slice(0, 8), ParameterError);
  EXPECT_THROW(c.slice(9, 1), ParameterError);
  EXPECT_THROW(c.slice(3, ~u64(0)), ParameterError);
  EXPECT_THROW(c.slice(1, 3), ParameterError);
  EXPECT_EQ(c.slice(6, 1).size(), 1u);
}

TEST_P(TfheContext, ConcatenateRefusesWhatDoesNotFit) {
  auto& w = world("gadget:r3");
  EXPECT_THROW(concatenate({}), ParameterError);
  const Ciphertext c = w.client.encrypt(Messages(6, 1)), odd = w.client.encrypt(Messages(4, 1));
  const Ciphertext eight = w.client.encrypt(Messages(6, 1), 8);
  const Ciphertext large = w.client.encrypt(Messages(6, 1), 64);
  const Ciphertext other = world("gadget").client.encrypt(Messages(6, 1));
  for (const Ciphertext* second : {&eight, &large, &other}) {
    const Ciphertext* parts[] = {&c, second};
    EXPECT_THROW(concatenate(parts), StateError);
  }
  const Ciphertext* ragged[] = {&odd, &c};
  EXPECT_THROW(concatenate(ragged), ParameterError);
  const Ciphertext* last[] = {&c, &odd};
  EXPECT_EQ(concatenate(last).size(), 10u);
}

CRENEL_DEVICE_SUITE(TfheContext);

}  // namespace
}  // namespace crenel::tfhe
