// LWE rows: key switch, linear combinations, sampling.
#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/torus/kernels.h"
#include "device/torus/checks.h"
#include "random/samplers.h"

namespace crenel::backend::cpu {
namespace {

namespace checks = device::torus_checks;

// round(x / 2^(from - to)), halves up, modulo 2^to; from >= to, x below 2^from.
u32 switched(u64 x, u32 from, u32 to) {
  const u64 half = from == to ? 0 : u64(1) << (from - to - 1);
  return static_cast<u32>(low_bits((x + half) >> (from - to), to));
}

void subtract(const TorusTable& table, u32* sum, const u32* const* rows, u32 count, u32 words) {
  table.subtract_rows32(sum, rows, count, words);
}
void subtract(const TorusTable& table, u64* sum, const u64* const* rows, u32 count, u32 words) {
  table.subtract_rows64(sum, rows, count, words);
}
u32 dot(const TorusTable& table, const u32* a, const i8* s, u32 count) {
  return table.dot32(a, s, count);
}
u64 dot(const TorusTable& table, const u64* a, const i8* s, u32 count) {
  return table.dot64(a, s, count);
}

// One row of a key switch, words of the key of type W.
template <class W>
void switch_row(const TorusTable& table, const SwitchShape& shape, u32* out, const u64* in,
                const W* key, W* sum) {
  constexpr u32 kAtOnce = 32;
  const W* rows[kAtOnce];
  const u32 words = shape.out_words();
  const u64 mask = (u64(1) << shape.base_log) - 1;
  std::fill_n(sum, shape.out_dim, W(0));
  for (u32 j = 0; j < shape.slots; ++j)
    sum[shape.out_dim + j] = static_cast<W>(in[shape.in_dim + j]);
  u32 count = 0;
  const W* row = key;  // of digit value 1
  for (u32 i = 0; i < shape.in_dim; ++i)
    for (u32 j = 0; j < shape.digits; ++j, row += mask * words) {
      const u32 shift = shape.base_log * j;
      const u64 digit = in[i] >> shift & mask;
      if (digit == 0) continue;
      rows[count++] = row + (digit - 1) * words;
      if (count < kAtOnce) continue;
      subtract(table, sum, rows, count, words);
      count = 0;
    }
  subtract(table, sum, rows, count, words);
  for (u32 w = 0; w < words; ++w)
    out[w] =
        switched(low_bits(sum[w], shape.log_modulus), shape.log_modulus, shape.log_out_modulus);
}

// ChaCha20's initial state with counter 0, zeroised when it goes.
struct State {
  u32 word[16];
  State(const random::Seed& seed, random::Nonce nonce) {
    random::ChaChaState s = random::chacha20_state(seed, nonce);
    const u32 constants[4] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    std::copy_n(constants, 4, word);
    std::copy_n(s.key, 8, word + 4);
    word[12] = 0;
    std::copy_n(s.nonce, 3, word + 13);
    random::secure_zero(&s, sizeof(s));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { random::secure_zero(word, sizeof(word)); }
};

// Words of type W that one keystream block yields.
template <class W>
constexpr u32 kWordsPerBlock = 64 / sizeof(W);

template <class W>
void mask_row(const SampleTable& sample, W* out, u32 dim, u32 log_modulus, const random::Seed& seed,
              u64 serial) {
  static_assert(sizeof(random::ChaChaBlock) == 64);
  constexpr u32 kAtOnce = 16, per_block = kWordsPerBlock<W>;
  const State state(seed, {random::Purpose::uniform, serial});
  random::ChaChaBlock stream[kAtOnce];
  for (u32 at = 0; at < dim; at += kAtOnce * per_block) {
    const u32 count = std::min(kAtOnce * per_block, dim - at);
    sample.keystream(stream[0].word, state.word, at / per_block,
                     (count + per_block - 1) / per_block);
    for (u32 i = 0; i < count; ++i) {
      const u32* word = stream[i / per_block].word;
      u64 x;
      if constexpr (sizeof(W) == 4)
        x = word[i % per_block];
      else
        x = u64(word[2 * (i % per_block) + 1]) << 32 | word[2 * (i % per_block)];
      out[at + i] = static_cast<W>(low_bits(x, log_modulus));
    }
  }
}

struct SampleArgs {
  u64 rows;
  u32 dim, slots, log_modulus;
  const random::Seed& mask_seed;
  u64 mask_serial;
  u64 words() const { return u64(dim) + slots; }
};

template <class W>
void sample_rows(const TorusTable& table, const SampleTable& sample, W* out, const SampleArgs& a,
                 const random::Seed& secret_seed, u64 error_serial, const i8* secrets,
                 const u64* messages) {
  parallel_for(
      a.rows, a.rows * a.words() * 4,
      [&](u64 y) {
        W* row = out + y * a.words();
        mask_row(sample, row, a.dim, a.log_modulus, a.mask_seed, a.mask_serial + y);
        const State state(secret_seed, {random::Purpose::error, error_serial + y});
        random::ChaChaBlock block{};
        const random::WipeOnExit wipe(&block, sizeof(block));
        for (u32 j = 0; j < a.slots; ++j) {
          if (j % 8 == 0) sample.keystream(block.word, state.word, j / 8, 1);
          W body = static_cast<W>(static_cast<i64>(random::error_value(block, j % 8)));
          body += dot(table, row, secrets + u64(j) * a.dim, a.dim);
          if (messages != nullptr) body += static_cast<W>(messages[y * a.slots + j]);
          row[a.dim + j] = static_cast<W>(low_bits(body, a.log_modulus));
        }
      },
      64);
}

template <class W>
void expand_rows(const SampleTable& sample, W* out, const SampleArgs& a, const u64* bodies) {
  parallel_for(
      a.rows, a.rows * a.words() * 4,
      [&](u64 y) {
        W* row = out + y * a.words();
        mask_row(sample, row, a.dim, a.log_modulus, a.mask_seed, a.mask_serial + y);
        for (u32 j = 0; j < a.slots; ++j)
          row[a.dim + j] = static_cast<W>(low_bits(bodies[y * a.slots + j], a.log_modulus));
      },
      64);
}

}  // namespace

void CpuTorusKernels::key_switch(Stream& stream, const SwitchShape& shape, u32* out, const u64* in,
                                 u32 batch, const void* key) {
  checks::key_switch(shape, out, in, batch, key);
  const u32 words = shape.out_words();
  const u64 sum_bytes = (u64(words) * shape.key_word_bytes() + 63) / 64 * 64;
  const auto work = stream.allocate(thread_count() * sum_bytes);
  parallel_for_workers(batch, u64(batch) * shape.in_dim * shape.digits * words,
                       [&](u64 y, u32 worker) {
                         u32* to = out + y * words;
                         const u64* from = in + y * (u64(shape.in_dim) + shape.slots);
                         u8* sum = work.as<u8>() + worker * sum_bytes;
                         if (shape.key_word_bytes() == 4)
                           switch_row(table_, shape, to, from, static_cast<const u32*>(key),
                                      reinterpret_cast<u32*>(sum));
                         else
                           switch_row(table_, shape, to, from, static_cast<const u64*>(key),
                                      reinterpret_cast<u64*>(sum));
                       });
}

void CpuTorusKernels::linear(Stream&, u32* out, std::span<const LweTerm> terms, u32 constant,
                             u32 batch, u32 log_modulus) {
  checks::linear(out, terms, batch, log_modulus);
  const u64 words = plan().words(), masks = plan().lwe_dim;
  parallel_for(
      batch, batch * words * terms.size(),
      [&](u64 y) {
        // pieces on the stack: out may be any of the inputs
        constexpr u64 kPiece = 256;
        u32 sum[kPiece];
        for (u64 first = y * words; first < (y + 1) * words; first += kPiece) {
          const u64 count = std::min(kPiece, (y + 1) * words - first), body = y * words + masks;
          for (u64 i = 0; i < count; ++i) sum[i] = first + i < body ? 0 : constant;
          for (const LweTerm& term : terms) {
            const u32 factor = static_cast<u32>(term.factor);
            for (u64 i = 0; i < count; ++i) sum[i] += factor * term.data[first + i];
          }
          for (u64 i = 0; i < count; ++i)
            out[first + i] = static_cast<u32>(low_bits(sum[i], log_modulus));
        }
      },
      16);
}

void CpuTorusKernels::mod_switch(Stream&, u32* out, u32 log_to, const u32* in, u32 log_from,
                                 u32 batch) {
  checks::mod_switch(out, log_to, in, log_from, batch);
  const u64 words = plan().words();
  parallel_for(
      batch, 2 * batch * words,
      [&](u64 y) {
        for (u64 i = y * words; i < (y + 1) * words; ++i)
          out[i] =
              log_to <= log_from ? switched(in[i], log_from, log_to) : in[i] << (log_to - log_from);
      },
      16);
}

void CpuTorusKernels::sample_lwe(Stream&, void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
                                 const random::Seed& mask_seed, u64 mask_serial,
                                 const random::Seed& secret_seed, u64 error_serial,
                                 const i8* secrets, const u64* messages) {
  checks::rows("sample_lwe", out, rows, dim, slots, log_modulus, secrets);
  const SampleArgs args{rows, dim, slots, log_modulus, mask_seed, mask_serial};
  if (log_modulus <= 32)
    sample_rows(table_, sample_, static_cast<u32*>(out), args, secret_seed, error_serial, secrets,
                messages);
  else
    sample_rows(table_, sample_, static_cast<u64*>(out), args, secret_seed, error_serial, secrets,
                messages);
}

void CpuTorusKernels::expand_lwe(Stream&, void* out, u64 rows, u32 dim, u32 slots, u32 log_modulus,
                                 const random::Seed& mask_seed, u64 mask_serial,
                                 const u64* bodies) {
  checks::rows("expand_lwe", out, rows, dim, slots, log_modulus, bodies);
  const SampleArgs args{rows, dim, slots, log_modulus, mask_seed, mask_serial};
  if (log_modulus <= 32)
    expand_rows(sample_, static_cast<u32*>(out), args, bodies);
  else
    expand_rows(sample_, static_cast<u64*>(out), args, bodies);
}

void CpuTorusKernels::phase(Stream&, u32* out, const u32* in, u64 rows, u32 dim, u32 slots,
                            u32 log_modulus, const i8* secrets) {
  checks::phase(out, in, rows, dim, slots, log_modulus, secrets);
  parallel_for(
      rows, rows * (u64(dim) + slots),
      [&](u64 y) {
        const u32* row = in + y * (u64(dim) + slots);
        for (u32 j = 0; j < slots; ++j)
          out[y * slots + j] = static_cast<u32>(
              low_bits(row[dim + j] - table_.dot32(row, secrets + u64(j) * dim, dim), log_modulus));
      },
      16);
}

}  // namespace crenel::backend::cpu
