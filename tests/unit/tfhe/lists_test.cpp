// Storage in lists: equal to the bit on every device, refused where there are none.
#include "tfhe/lists.h"

#include "crenel/tfhe/serialize.h"
#include "support/tfhe_world.h"
#include "tfhe/compressed.h"

namespace crenel::tfhe {
namespace {

class TfheListsTest : public test::DeviceTest {};
CRENEL_DEVICE_SUITE(TfheListsTest);

const Params& toy() {
  static const Params params = Params::preset("toy-lut4g4", true);
  return params;
}

// Counts below, at and above a power of two and N = 256; the words are those of ref.
TEST_P(TfheListsTest, TheWordsOfRef) {
  auto rng = test::test_rng();
  const Context home(toy(), "ref"), there(toy(), device_);
  Client client = home.keygen();
  const auto keys = to_bytes(home, client.evaluation_keys({.lists = true}));
  const Evaluator one = home.evaluator(evaluation_keys_from_bytes(home, keys), {0.0});
  const Evaluator two = there.evaluator(evaluation_keys_from_bytes(there, keys), {0.0});
  EXPECT_EQ(to_bytes(there, two.keys()), keys);
  for (const u64 count : {1, 2, 3, 64, 255, 256, 257}) {
    const test::Messages m = test::random_messages(rng, count, 16);
    const auto file = to_bytes(home, client.encrypt(m));
    const Compressed a = one.compress(ciphertext_from_bytes(home, file), StoredForm::lists);
    const Compressed b = two.compress(ciphertext_from_bytes(there, file), StoredForm::lists);
    EXPECT_EQ(a.data().words, b.data().words) << count;
    EXPECT_EQ(b.bytes(), stored_bytes(there, count, StoredForm::lists));
    if (count > 3) continue;  // a rotation each
    const auto back = to_bytes(there, two.decompress(b));
    EXPECT_EQ(back, to_bytes(home, one.decompress(a)));
    EXPECT_EQ(client.decrypt(ciphertext_from_bytes(home, back)), m);
  }
}

TEST_P(TfheListsTest, WhereThereAreNone) {
  for (const char* name : {"toy-lut4", "toy-gadget"}) {
    const Context context(Params::preset(name, true), device_);
    EXPECT_THROW(key_bytes(context, {.lists = true}), UnsupportedError) << name;
    EXPECT_THROW(context.keygen().evaluation_keys({.lists = true}), UnsupportedError) << name;
  }
  Spec spec = toy().spec();
  spec.name = "test-two-polynomials", spec.glwe_dim = GlweDim(2);
  const Context wide(Params::from_spec(spec, true), device_);
  EXPECT_THROW(wide.keygen().evaluation_keys({.lists = true}), UnsupportedError);
  const Context context(toy(), device_);
  Client client = context.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys(), {0.0});
  const test::Messages m{1};
  EXPECT_THROW(ev.compress(client.encrypt(m), StoredForm::lists), KeyMissingError);
}

TEST(ListPlan, PrimesBelowTheRingsModulus) {
  for (const char* name : {"lut4-128", "toy-lut4g4"}) {
    const Context context(Params::preset(name, true), "cpu");
    const auto& plan = context.state().plan;
    const ListPlan lists = list_plan(plan);
    ASSERT_EQ(lists.digits(), 3u);
    EXPECT_LE(lists.modulus, plan.key_modulus());
    EXPECT_GT(lists.modulus, plan.key_modulus() / 64);
    EXPECT_EQ(lists.log_stored, plan.log_n + 5);
  }
  EXPECT_EQ(list_width(1), 1u);
  EXPECT_EQ(list_width(5), 8u);
  EXPECT_EQ(list_width(8), 8u);
}

}  // namespace
}  // namespace crenel::tfhe
