// Integers that are uniform and known to nobody without the secret key: rows of a public seed whose
// phases, which the secret decides, are looked up.
#include <algorithm>
#include <array>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "crenel/tfhe/integer.h"
#include "random/chacha20.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/integer/checks.h"

namespace crenel::tfhe {
namespace {

/// Rows that are uniform modulo q, mask and body, as public as their seed. Their masks are those of
/// serial y, their bodies the words of serials behind them.
Ciphertext uniform_rows(const Evaluator::State& s, u64 rows, const random::Seed& seed) {
  auto data = empty_ciphertext(s.home(), rows, s.params().spec().plain_modulus, s.log_q());
  data->secret_key = s.keys.secret_key_id();
  data->noise = Noise(rows);  // no message stands in them: whatever phase they have is theirs
  data->payload = s.allocate_rows(rows);
  std::vector<u64> bodies(rows);
  constexpr u64 kBodies = u64(1) << 63;
  const u64 mask = (u64(1) << s.log_q()) - 1;
  for (u64 i = 0; i < rows; i += 16) {
    const auto block = random::chacha20_block(
        random::chacha20_state(seed, {random::Purpose::uniform, kBodies + i / 16}), 0);
    for (u64 j = i; j < std::min(rows, i + 16); ++j) bodies[j] = block.word[j - i] & mask;
  }
  device::Buffer on_device = s.stream().allocate(rows * sizeof(u64));
  s.stream().copy_in(on_device.data(), bodies.data(), rows * sizeof(u64));
  s.home().torus->expand_lwe(s.stream(), data->view(), {seed}, on_device.as<const u64>());
  return Ciphertext(std::move(data));
}

}  // namespace

std::array<u8, 32> random_seed() { return random::seed_from_os(); }

Integers IntegerEvaluator::random(u64 count, u32 bits, bool is_signed,
                                  const std::array<u8, 32>& seed) const {
  radix::check_bits(bits);
  const u32 n = bits / 2, p = evaluator_.context().params().spec().plain_modulus;  // 32
  if (count == 0 || count > (u64(1) << 32) / n)
    throw ParameterError(cat("random: ", count, " integers, expected 1 to ", (u64(1) << 32) / n),
                         {{"count", count}});
  const Evaluator::State& s = evaluator_.state();
  s.bootstrap_keys();
  const Ciphertext rows = uniform_rows(s, count * n, seed);
  // Halves of messages, 1 and 3 modulo 2p: the circle's other half reads them negated, so that each
  // of -3, -1, 1, 3 has a quarter of all phases. With 3 on top they are twice a block.
  const auto halves = s.function(ContentKey("random").add(p), [&] {
    std::vector<u64> table;
    for (u32 m = 0; m < p / 2; ++m) table.push_back(m % 2 == 0 ? 1 : 3);
    return table_polynomial(s.plan(), p, table, 2 * p);
  });
  const watch::Task task(s.units(rows.size()), "bootstraps");
  device::Buffer drawn = s.bootstrapped(rows.data().payload.as<const u32>(), rows.size(), halves);
  const device::LweTerm term{drawn.as<const u32>(), 1};
  const u64 three = (u64(3) << s.log_q()) / (2 * p);
  Ciphertext blocks = s.wrap(s.combined({&term, 1}, three, rows.size(), s.log_q()), rows.size(), p,
                             s.log_q(), s.bootstrap_noise(rows.size(), s.log_q()));
  blocks.data().bound = 4;
  std::vector<Ciphertext> parts;
  for (u32 j = 0; j < n; ++j) parts.push_back(blocks.slice(j * count, count));
  return Integers(std::move(parts), bits, is_signed);
}

}  // namespace crenel::tfhe
