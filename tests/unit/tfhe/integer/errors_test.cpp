// Radix integers: what is refused, and how.
#include "crenel/core/error.h"
#include "support/integer_world.h"

namespace crenel::tfhe {
namespace {

class TfheIntegerErrors : public test::IntegerTest {};

TEST_P(TfheIntegerErrors, ValuesOutOfRangeAreRefused) {
  auto& client = toy().client;
  const IntegerEvaluator ev = integers();
  const std::vector<u64> words{1, 256};
  try {
    encrypt_unsigned(client, words, 8);
    FAIL();
  } catch (const ParameterError& error) {
    EXPECT_EQ(error.field("value"), "");  // a message is nobody's business
    EXPECT_EQ(error.field("bits"), "8");
  }
  for (const i64 bad : {i64(128), i64(-129)}) {
    const std::vector<i64> numbers{bad};
    try {
      encrypt_signed(client, numbers, 8);
      FAIL();
    } catch (const ParameterError& error) {
      EXPECT_EQ(error.field("value"), "");
    }
  }
  EXPECT_THROW(ev.trivial(words, 8, false), ParameterError);
  const std::vector<u64> one{1};
  for (const u32 bits : {0u, 1u, 3u, 7u, 65u, 255u, 258u}) {
    EXPECT_THROW(encrypt_unsigned(client, one, bits), ParameterError) << bits;
    EXPECT_THROW(ev.trivial(one, bits, false), ParameterError) << bits;
  }
  EXPECT_THROW(encrypt_unsigned(client, std::vector<u64>{}, 8), ParameterError);
  const Integers a = encrypt(one, 8, false);
  EXPECT_THROW(ev.compare(Comparison::less, a, u64(256)), ParameterError);
  const Integers s = encrypt(one, 8, true);
  EXPECT_THROW(ev.compare(Comparison::less, s, u64(128)), ParameterError);
  EXPECT_EQ(client.decrypt(ev.compare(Comparison::less, s, static_cast<u64>(-128)))[0], 0u);
  // Modulo 2^bits any value has a meaning, elsewhere it is one of the type's.
  EXPECT_EQ(decrypt_unsigned(client, ev.add(a, 256))[0], 1u);
  EXPECT_THROW(ev.min(a, 256), ParameterError);
  EXPECT_THROW(ev.bit_and(256, a), ParameterError);
  EXPECT_THROW(ev.select(client.encrypt(one), a, 256), ParameterError);
  EXPECT_THROW(ev.max(s, static_cast<u64>(-129)), ParameterError);
  EXPECT_THROW(ev.add(1, 2), ParameterError);
  EXPECT_THROW(ev.sub(1, 2), ParameterError);
  EXPECT_THROW(ev.mul(1, 2), ParameterError);
  EXPECT_THROW(ev.compare(Comparison::less, 1, 2), ParameterError);
  EXPECT_THROW(ev.select(client.encrypt(one), 1, 2), ParameterError);
  for (const u32 count : {8u, 9u, 64u}) {
    EXPECT_THROW(ev.shift_left(a, count), ParameterError) << count;
    EXPECT_THROW(ev.shift_right(a, count), ParameterError) << count;
  }
}

TEST_P(TfheIntegerErrors, OperandsThatDisagreeAreRefused) {
  const IntegerEvaluator ev = integers();
  const Integers a = encrypt({1, 2, 3}, 8, false);
  try {
    ev.add(a, encrypt({1, 2, 3}, 10, false));
    FAIL();
  } catch (const StateError& error) {
    EXPECT_EQ(error.field("bits"), "10");
    EXPECT_EQ(error.field("expected"), "8");
  }
  try {
    ev.mul(a, encrypt({1, 2, 3}, 8, true));
    FAIL();
  } catch (const StateError& error) {
    EXPECT_EQ(error.field("found"), "signed");
  }
  try {
    ev.compare(Comparison::equal, a, encrypt({1, 2}, 8, false));
    FAIL();
  } catch (const StateError& error) {
    EXPECT_EQ(error.field("size"), "2");
    EXPECT_EQ(error.field("expected"), "3");
  }
  auto& client = toy().client;
  const std::vector<u64> two{0, 1}, three{0, 1, 1};
  EXPECT_THROW(ev.select(client.encrypt(two), a, a), StateError);
  EXPECT_THROW(ev.select(client.encrypt(three, 8), a, a), StateError);
  EXPECT_THROW(decrypt_signed(client, a), StateError);
  EXPECT_THROW(decrypt_unsigned(client, encrypt({1}, 8, true)), StateError);
  // the operands are unharmed
  EXPECT_EQ(open(a), (std::vector<u64>{1, 2, 3}));
}

TEST_P(TfheIntegerErrors, BlocksThatDoNotFitAreRefused) {
  auto& client = toy().client;
  const std::vector<u64> one{1}, two{1, 2};
  const auto blocks = [&](auto... sizes) {
    std::vector<Ciphertext> out;
    (out.push_back(client.encrypt(sizes)), ...);
    return out;
  };
  EXPECT_THROW(Integers(blocks(one), 4, false), ParameterError);
  EXPECT_THROW(Integers(blocks(one), 3, false), ParameterError);
  EXPECT_THROW(Integers(blocks(one, two), 4, false), StateError);
  std::vector<Ciphertext> other;
  other.push_back(client.encrypt(one, 8));
  EXPECT_THROW(Integers(std::move(other), 2, false), StateError);
}

TEST_P(TfheIntegerErrors, SetsWithoutRoomForBlocksAreRefused) {
  auto& gates = world("raising");
  try {
    IntegerEvaluator refused(gates.ev);
    FAIL();
  } catch (const ParameterError& error) {
    EXPECT_EQ(error.field("plain_modulus"), "4");
  }
  const std::vector<u64> one{1};
  EXPECT_THROW(encrypt_unsigned(gates.client, one, 8), ParameterError);
  Spec spec = Params::preset("toy-lut4", true).spec();
  spec.max_norm2 = 24;
  const Context tight(Params::from_spec(spec, true), GetParam());
  Client client = tight.keygen();
  EXPECT_THROW(encrypt_unsigned(client, one, 8), ParameterError);
}

CRENEL_DEVICE_SUITE(TfheIntegerErrors);

}  // namespace
}  // namespace crenel::tfhe
