// Encrypted integers and look-up tables: the price of a sealed-bid auction with a reserve.
//
// The set toy-lut4 is INSECURE and finishes at once; "lut4-128" is the same for real use.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "crenel/crenel.h"

using namespace crenel;

int main() {
  constexpr u64 kReserve = 1000;
  constexpr u32 kBits = 16;
  const tfhe::Context context(tfhe::Params::preset("toy-lut4", /*allow_insecure=*/true));
  auto client = context.keygen();
  const auto keys = tfhe::to_bytes(context, client.evaluation_keys());

  // Eight auctions of two bidders.
  std::mt19937 rng(1);
  std::vector<u64> first(8), second(8);
  for (auto& bid : first) bid = rng() % 2000;
  for (auto& bid : second) bid = rng() % 2000;
  const auto a = tfhe::to_bytes(context, tfhe::encrypt_unsigned(client, first, kBits));
  const auto b = tfhe::to_bytes(context, tfhe::encrypt_unsigned(client, second, kBits));

  // The server: bytes in, bytes out.
  const auto server = context.evaluator(tfhe::evaluation_keys_from_bytes(context, keys));
  const tfhe::IntegerEvaluator ev(server);
  const auto best =
      ev.max(tfhe::integers_from_bytes(context, a), tfhe::integers_from_bytes(context, b));
  const auto sold = ev.compare(tfhe::Comparison::greater_equal, best, kReserve);
  const auto nothing = ev.trivial(std::vector<u64>(best.size(), 0), kBits, false);
  const auto reply = tfhe::to_bytes(context, ev.select(sold, best, nothing));

  const auto prices = tfhe::decrypt_unsigned(client, tfhe::integers_from_bytes(context, reply));
  bool right = true;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    const u64 highest = std::max(first[i], second[i]);
    std::printf("bids %d and %d: sold for %d\n", int(first[i]), int(second[i]), int(prices[i]));
    right &= prices[i] == (highest >= kReserve ? highest : 0);
  }

  // Any function of a message of 4 bits is one bootstrap.
  std::vector<u64> m(16), table(16);
  for (u64 i = 0; i < 16; ++i) m[i] = i, table[i] = (i * i + 1) % 16;
  right &= client.decrypt(server.lut(client.encrypt(m), {table})) == table;
  return right ? 0 : 1;
}
