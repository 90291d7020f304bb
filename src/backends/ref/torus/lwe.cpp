// LWE rows: key switch, linear combinations, sampling.
#include "backends/ref/torus/kernels.h"
#include "device/torus/checks.h"
#include "random/samplers.h"

namespace crenel::backend::ref {
namespace {

namespace checks = device::torus_checks;

// round(x / 2^(from - to)), halves up, modulo 2^to; from >= to.
u32 switched(u64 x, u32 from, u32 to) {
  const u64 half = from == to ? 0 : u64(1) << (from - to - 1);
  return static_cast<u32>(low_bits((x + half) >> (from - to), to));
}

u64 load_word(const void* data, u64 at, u32 log_modulus) {
  return log_modulus <= 32 ? static_cast<const u32*>(data)[at] : static_cast<const u64*>(data)[at];
}

void store_word(void* data, u64 at, u64 value, u32 log_modulus) {
  value = low_bits(value, log_modulus);
  if (log_modulus <= 32)
    static_cast<u32*>(data)[at] = static_cast<u32>(value);
  else
    static_cast<u64*>(data)[at] = value;
}

// Word i of the mask of row y.
u64 mask_word(const random::ChaChaState& state, u32 i, u32 log_modulus) {
  if (log_modulus <= 32) return random::chacha20_block(state, i / 16).word[i % 16];
  const auto block = random::chacha20_block(state, i / 8);
  return u64(block.word[2 * (i % 8) + 1]) << 32 | block.word[2 * (i % 8)];
}

random::ChaChaState mask_state(const random::Seed& seed, u64 serial) {
  return random::chacha20_state(seed, {random::Purpose::uniform, serial});
}

}  // namespace

void RefTorusKernels::key_switch(Stream&, const SwitchShape& shape, u32* out, const u64* in,
                                 u32 batch, const void* key) {
  checks::key_switch(shape, out, in, batch, key);
  const u32 words = shape.out_words();
  const u64 rows_a_digit = (u64(1) << shape.base_log) - 1;
  std::vector<u64> sum(words);
  for (u64 row = 0; row < batch; ++row) {
    const u64* a = in + row * (shape.in_dim + shape.slots);
    for (u32 w = 0; w < words; ++w)
      sum[w] = w < shape.out_dim ? 0 : a[shape.in_dim + w - shape.out_dim];
    for (u32 i = 0; i < shape.in_dim; ++i)
      for (u32 j = 0; j < shape.digits; ++j) {
        const u32 shift = shape.base_log * j;
        const u64 digit = low_bits(a[i] >> shift, shape.base_log);
        if (digit == 0) continue;
        const u64 at = ((u64(i) * shape.digits + j) * rows_a_digit + digit - 1) * words;
        for (u32 w = 0; w < words; ++w) sum[w] -= load_word(key, at + w, shape.log_modulus);
      }
    for (u32 w = 0; w < words; ++w)
      out[row * words + w] =
          switched(low_bits(sum[w], shape.log_modulus), shape.log_modulus, shape.log_out_modulus);
  }
}

void RefTorusKernels::linear(Stream&, u32* out, std::span<const LweTerm> terms, u32 constant,
                             u32 batch, u32 log_modulus) {
  checks::linear(out, terms, batch, log_modulus);
  for (u64 i = 0; i < u64(batch) * plan().words(); ++i) {
    u64 sum = i % plan().words() < plan().lwe_dim ? 0 : constant;
    for (const LweTerm& term : terms) sum += static_cast<u64>(term.factor) * term.data[i];
    out[i] = static_cast<u32>(low_bits(sum, log_modulus));
  }
}

void RefTorusKernels::mod_switch(Stream&, u32* out, u32 log_to, const u32* in, u32 log_from,
                                 u32 batch) {
  checks::mod_switch(out, log_to, in, log_from, batch);
  for (u64 i = 0; i < u64(batch) * plan().words(); ++i)
    out[i] = log_to <= log_from ? switched(in[i], log_from, log_to) : in[i] << (log_to - log_from);
}

void RefTorusKernels::sample_lwe(Stream&, void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
                                 const random::Seed& mask_seed, u64 mask_serial,
                                 const random::Seed& secret_seed, u64 error_serial,
                                 const i8* secrets, const u64* messages) {
  checks::rows("sample_lwe", out, rows, dim, slots, log_modulus, secrets);
  for (u64 y = 0; y < rows; ++y) {
    const auto mask = mask_state(mask_seed, mask_serial + y);
    auto noise = random::chacha20_state(secret_seed, {random::Purpose::error, error_serial + y});
    const random::WipeOnExit wipe(&noise, sizeof(noise));
    const u64 at = y * (u64(dim) + slots);
    for (u32 i = 0; i < dim; ++i)
      store_word(out, at + i, mask_word(mask, i, log_modulus), log_modulus);
    for (u32 j = 0; j < slots; ++j) {
      auto block = random::chacha20_block(noise, j / 8);
      const random::WipeOnExit wipe_block(&block, sizeof(block));
      u64 body = static_cast<u64>(i64(random::error_value(block, j % 8)));
      if (messages != nullptr) body += messages[y * slots + j];
      for (u32 i = 0; i < dim; ++i)
        body +=
            static_cast<u64>(i64(secrets[u64(j) * dim + i])) * load_word(out, at + i, log_modulus);
      store_word(out, at + dim + j, body, log_modulus);
    }
  }
}

void RefTorusKernels::expand_lwe(Stream&, void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
                                 const random::Seed& mask_seed, u64 mask_serial,
                                 const u64* bodies) {
  checks::rows("expand_lwe", out, rows, dim, slots, log_modulus, bodies);
  for (u64 y = 0; y < rows; ++y) {
    const auto mask = mask_state(mask_seed, mask_serial + y);
    const u64 at = y * (u64(dim) + slots);
    for (u32 i = 0; i < dim; ++i)
      store_word(out, at + i, mask_word(mask, i, log_modulus), log_modulus);
    for (u32 j = 0; j < slots; ++j)
      store_word(out, at + dim + j, bodies[y * slots + j], log_modulus);
  }
}

void RefTorusKernels::phase(Stream&, u32* out, const u32* in, u64 rows, u32 dim, u32 slots,
                            u32 log_modulus, const i8* secrets) {
  checks::phase(out, in, rows, dim, slots, log_modulus, secrets);
  for (u64 y = 0; y < rows; ++y) {
    const u32* row = in + y * (u64(dim) + slots);
    for (u32 j = 0; j < slots; ++j) {
      u64 sum = row[dim + j];
      for (u32 i = 0; i < dim; ++i)
        sum -= static_cast<u64>(i64(secrets[u64(j) * dim + i])) * row[i];
      out[y * slots + j] = static_cast<u32>(low_bits(sum, log_modulus));
    }
  }
}

}  // namespace crenel::backend::ref
