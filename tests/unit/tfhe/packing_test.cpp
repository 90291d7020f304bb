// From single ciphertexts to r under a mask.
#include "support/tfhe_world.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/keygen.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

class TfhePacking : public test::TfheTest {
 protected:
  std::vector<const char*> names() const {
    if (!exhaustive()) return {"gadget:r3"};
    return {"gadget:r3", "gadget2:binary:r2", "raising:approx:r5",
            "large:r4",  "rounded:r2",        "gadget"};
  }
};

TEST_P(TfhePacking, PackedMessagesAreThoseOfTheSingles) {
  auto rng = test::test_rng();
  for (const char* name : names()) {
    auto& w = world(name, true);
    Client one = w.client.single();
    const u32 r = w.params().slots().value;
    for (u64 size : {u64(1), u64(r), u64(r + 1), u64(4 * r - 1), u64(20)}) {
      const Messages x = test::random_messages(rng, size, 4);
      const Ciphertext packed = w.ev.pack(one.encrypt(x, 4));
      EXPECT_EQ(packed.size(), size);
      EXPECT_EQ(packed.params_id(), w.params().id());
      EXPECT_EQ(w.client.decrypt(packed), x) << name << " size " << size;
    }
  }
}

TEST_P(TfhePacking, PackedCiphertextsEvaluate) {
  auto rng = test::test_rng();
  for (const char* name : names()) {
    auto& w = world(name, true);
    Client one = w.client.single();
    const Messages x = test::random_messages(rng, 11, 2), y = test::random_messages(rng, 11, 2);
    Messages both(11);
    for (u64 i = 0; i < 11; ++i) both[i] = x[i] & y[i];
    const Ciphertext a = w.ev.pack(one.encrypt(x, 4)), b = w.client.encrypt(y, 4);
    EXPECT_EQ(w.client.decrypt(w.ev.gate(Gate::and_, a, b)), both) << name;
  }
}

TEST_P(TfhePacking, ResultsOfTheSingleContextPack) {
  auto& w = world("gadget:r3", true);
  Client one = w.client.single();
  const Evaluator single = one.context().evaluator(one.evaluation_keys(), {0.0});
  const Messages x{0, 1, 0, 1, 1}, y{0, 0, 1, 1, 0};
  const Ciphertext z = single.gate(Gate::xor_, one.encrypt(x), one.encrypt(y));
  EXPECT_EQ(w.client.decrypt(w.ev.pack(z)), (Messages{0, 1, 1, 0, 1}));
}

TEST_P(TfhePacking, ChunksGiveTheSameBits) {
  auto rng = test::test_rng();
  auto& w = world("gadget:r3", true);
  auto state = std::make_shared<Evaluator::State>(w.context, w.keys, EvaluatorOptions{0.0});
  const auto& plan = w.context.state().plan;
  state->chunk_bytes = 2 * plan.extracted_words() * sizeof(u64);  // two rows
  const Evaluator small(state);
  Client one = w.client.single();
  const u64 size = exhaustive() ? 2003 : 17;
  const Ciphertext single = one.encrypt(test::random_messages(rng, size, 2), 4);
  const Ciphertext a = w.ev.pack(single), b = w.client.encrypt(test::random_messages(rng, size, 2));
  EXPECT_EQ(test::words_of(small.pack(single)), test::words_of(a));
  const Ciphertext first = a.slice(0, 17), second = b.slice(0, 17);
  EXPECT_EQ(test::words_of(small.gate(Gate::xor_, first, second)),
            test::words_of(w.ev.gate(Gate::xor_, first, second)));
  // Two periodic tables, by index.
  std::vector<Lut> luts(2);
  for (Lut& f : luts)
    for (u64 m = 0; m < 4; ++m) f.table.push_back(m < 2 ? rng() % 4 : f.table[m - 2]);
  std::vector<u32> index;
  for (int i = 0; i < 17; ++i) index.push_back(u32(rng() % 2));
  EXPECT_EQ(test::words_of(small.lut(first, luts, index)),
            test::words_of(w.ev.lut(first, luts, index)));
}

TEST_P(TfhePacking, NoiseIsThatOfItsKeySwitch) {
  auto& w = world("raising:approx:r5", true);
  Client one = w.client.single();
  const u64 count = exhaustive() ? 20000 : 4000;  // five deviations of the mean square: 11 %
  const Messages x(count, 1);
  const auto& plan = w.context.state().plan;
  const auto shape = packing_shape(plan);
  double squares = 0;
  for (i64 e : w.client.phase_errors(w.ev.pack(one.encrypt(x, 4)), x)) squares += double(e * e);
  // input, rows for non-zero digits, rounding of all words by the secret's two thirds
  const double scale = std::exp2(2.0 * (double(plan.log_lwe_modulus) - shape.log_modulus));
  const double rows =
      double(shape.in_dim) * shape.digits * (1 - std::exp2(-double(shape.base_log)));
  const double model = 10.5 + scale * 10.5 * rows + (1 + plan.lwe_dim * 2.0 / 3) / 12;
  // The secret has 8 entries: its weight and the key's own errors move the figure by a few tenths.
  EXPECT_GT(squares / double(count), 0.8 * model - 0.5);
  EXPECT_LT(squares / double(count), 1.25 * model + 0.5);
}

TEST_P(TfhePacking, RefusesWhatItCannotPack) {
  auto& w = world("gadget:r3", true);
  Client one = w.client.single();
  const Ciphertext fine = one.encrypt(Messages{1, 0});
  try {
    world("gadget:r3").ev.pack(fine);
    FAIL() << "there is no packing key";
  } catch (const KeyMissingError& e) {
    EXPECT_EQ(e.field("key"), "packing");
  }
  EXPECT_THROW(w.ev.pack(w.client.encrypt(Messages{1, 0})), StateError);  // packed already
  EXPECT_THROW(w.ev.pack(world("raising").client.encrypt(Messages{1})), StateError);
  EXPECT_THROW(w.ev.pack(one.encrypt(Messages{1, 0}, 64)), StateError);  // modulo more than q
}

CRENEL_DEVICE_SUITE(TfhePacking);

}  // namespace
}  // namespace crenel::tfhe
