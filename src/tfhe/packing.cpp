// From single messages to r under a mask: a key switch whose input is r ciphertexts side by side.
#include <algorithm>
#include <cmath>

#include "crenel/core/error.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/keygen.h"

namespace crenel::tfhe {

Ciphertext Evaluator::pack(const Ciphertext& single) const {
  const State& s = *state_;
  const auto& home = s.home();
  const auto& in = single.data();
  if (!s.keys.has_packing())
    throw KeyMissingError("pack needs the key for packing: client.evaluation_keys(packing=True)",
                          {{"operation", "pack"}, {"key", "packing"}});
  const std::string expected = s.params().with_slots(SlotCount(1)).id();
  if (in.params_id != expected)
    throw StateError(cat("packing of a ciphertext of parameters ", in.params_id, ", expected ",
                         expected, " (this set with slots = 1)"),
                     {{"found", in.params_id}, {"expected", expected}});
  expect_device(in.payload, *home.device, "ciphertext");
  expect_same_secret_key(in.secret_key, s.keys.secret_key_id(), "ciphertext", "these keys");
  s.check_log_modulus(single, s.log_q(), "pack");

  auto& stream = s.stream();
  const auto shape = packing_shape(s.plan());
  const u32 n = s.plan().lwe_dim, r = s.plan().slots;
  const u64 wide = sizeof(u64), in_words = n + 1, out_words = shape.in_dim + r;
  device::Buffer out = s.allocate_rows((in.size + r - 1) / r);
  const u64 total_rows = (in.size + r - 1) / r;
  const u64 most = std::clamp<u64>(s.chunk_bytes / (out_words * wide), 1, total_rows);
  for (u64 first = 0; first < total_rows; first += most) {
    const u64 rows = std::min(most, total_rows - first);
    const u64 messages = std::min(rows * r, in.size - first * r);
    // Phases to the key's modulus, exactly; then words of 64 bits (little-endian: the low half).
    device::Buffer raised = stream.allocate(messages * in_words * sizeof(u32));
    home.torus->mod_switch(
        stream, {raised.as<u32>(), {messages, n, 1, shape.log_modulus}},
        {in.payload.as<const u32>() + first * r * in_words, {messages, n, 1, s.log_q()}});
    device::Buffer words = stream.allocate(messages * in_words * wide);
    stream.fill_zero(words.data(), words.bytes());
    stream.copy_rows(words.data(), wide, raised.data(), sizeof(u32), sizeof(u32),
                     messages * in_words);
    device::Buffer side_by_side = stream.allocate(rows * out_words * wide);
    stream.fill_zero(side_by_side.data(), side_by_side.bytes());
    for (u32 slot = 0; slot < r && slot < messages; ++slot) {
      const u64 count = (messages - slot + r - 1) / r;
      const u64* source = words.as<const u64>() + slot * in_words;
      u64* target = side_by_side.as<u64>();
      stream.copy_rows(target + u64(slot) * n, out_words * wide, source, r * in_words * wide,
                       n * wide, count);
      stream.copy_rows(target + shape.in_dim + slot, out_words * wide, source + n,
                       r * in_words * wide, wide, count);
    }
    home.torus->key_switch(
        stream, shape, {out.as<u32>() + first * s.plan().words(), shape.out(rows)},
        {side_by_side.as<const u64>(), shape.in(rows)}, shape.key(s.keys.data()->packing.data()));
  }
  Noise noise = in.noise;
  noise.add(Noise(in.size, packing_variance(s.plan(), shape, std::sqrt(kErrorVariance))), 1);
  return s.wrap(std::move(out), in.size, in.plain_modulus, s.log_q(), std::move(noise));
}

}  // namespace crenel::tfhe
