// LWE rows: key switch, linear combinations, sampling.
#include <algorithm>
#include <bit>
#include <cstring>

#include "backends/cpu/keystream.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/torus/kernels.h"
#include "crenel/core/watch.h"
#include "random/samplers.h"

namespace crenel::backend::cpu {
namespace {

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

/// Rows that go through the key together, and what their sums may take of L2.
constexpr u64 kSwitchRows = 64, kSwitchBytes = u64(256) << 10;

// Rows of a key switch, words of the key of type W, in lock-step: what the key has for an element
// is read once for all of them and stays in L2, as keys are far larger than the caches.
template <class W>
void switch_rows(const TorusTable& table, const SwitchShape& shape, u64 rows, u32* out,
                 const u64* in, const W* key, W* sums) {
  constexpr u32 kAtOnce = 16, kPointEvery = 512;
  const u32 words = shape.out_words();
  const u64 in_words = shape.in_dim + shape.slots, mask = (u64(1) << shape.base_log) - 1;
  const W* found[kSwitchRows][kAtOnce];  // of the key, not subtracted yet
  u32 count[kSwitchRows] = {};
  for (u64 y = 0; y < rows; ++y) {
    std::fill_n(sums + y * words, shape.out_dim, W(0));
    for (u32 j = 0; j < shape.slots; ++j)
      sums[y * words + shape.out_dim + j] = static_cast<W>(in[y * in_words + shape.in_dim + j]);
  }
  for (u32 i = 0; i < shape.in_dim; ++i) {
    if (i % kPointEvery == 0) watch::point();
    const W* const element = key + u64(i) * shape.digits * mask * words;
    for (u64 y = 0; y < rows; ++y) {
      const u64 x = in[y * in_words + i];
      const W* row = element;  // of digit value 1
      for (u32 j = 0; j < shape.digits; ++j, row += mask * words) {
        const u64 digit = x >> (shape.base_log * j) & mask;
        if (digit == 0) continue;
        found[y][count[y]++] = row + (digit - 1) * words;
        if (count[y] < kAtOnce) continue;
        subtract(table, sums + y * words, found[y], kAtOnce, words);
        count[y] = 0;
      }
    }
  }
  for (u64 y = 0; y < rows; ++y) {
    const W* const sum = sums + y * words;
    subtract(table, sums + y * words, found[y], count[y], words);
    for (u32 w = 0; w < words; ++w)
      out[y * words + w] =
          switched(low_bits(sum[w], shape.log_modulus), shape.log_modulus, shape.log_out_modulus);
  }
}

// Rows of a key switch by products, in lock-step: the key's rows of an element are read once.
void product_rows(const TorusTable& table, const SwitchShape& shape, u64 rows, u32* out,
                  const u32* in, const u32* key, u32* sums) {
  constexpr u32 kPointEvery = 512;
  const u32 words = shape.out_words(), in_words = shape.in_dim + shape.slots;
  const u32 kept = shape.base_log * shape.digits, base = 1u << shape.base_log;
  u64 middle = 0;  // of the digits, which makes them positive
  for (u32 j = 0; j < shape.digits; ++j) middle += u64(base / 2) << (shape.base_log * j);
  for (u64 y = 0; y < rows; ++y) {
    std::fill_n(sums + y * words, shape.out_dim, 0u);
    for (u32 j = 0; j < shape.slots; ++j)
      sums[y * words + shape.out_dim + j] =
          switched(in[y * in_words + shape.in_dim + j], shape.log_in_modulus, shape.log_modulus);
  }
  for (u32 i = 0; i < shape.in_dim; ++i) {
    if (i % kPointEvery == 0) watch::point();
    const u32* const element = key + u64(i) * shape.digits * words;
    for (u64 y = 0; y < rows; ++y) {
      const u64 x = switched(in[y * in_words + i], shape.log_in_modulus, kept) + middle;
      u32 digits[40];
      for (u32 j = 0; j < shape.digits; ++j)
        digits[j] = (static_cast<u32>(x >> (shape.base_log * j)) & (base - 1)) - base / 2;
      table.subtract_products(sums + y * words, element, digits, shape.digits, words);
    }
  }
  for (u64 y = 0; y < rows; ++y)
    for (u32 w = 0; w < words; ++w)
      out[y * words + w] = switched(low_bits(sums[y * words + w], shape.log_modulus),
                                    shape.log_modulus, shape.log_out_modulus);
}

// Words of type W that one keystream block yields.
template <class W>
constexpr u32 kWordsPerBlock = 64 / sizeof(W);

template <class W>
void mask_row(const SampleTable& sample, W* out, u32 dim, u32 log_modulus, const random::Seed& seed,
              u64 serial) {
  static_assert(sizeof(random::ChaChaBlock) == 64);
  constexpr u32 kAtOnce = 16, per_block = kWordsPerBlock<W>;
  const KeystreamState state(seed, {random::Purpose::uniform, serial});
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

template <class W>
void sample_rows(const TorusTable& table, const SampleTable& sample, const LweView& out,
                 const RowSeed& masks, const RowSeed& errors, const i8* secrets,
                 const u64* messages) {
  const u32 dim = out.shape.dim, slots = out.shape.slots, log_modulus = out.shape.log_modulus;
  parallel_for(
      out.shape.rows, out.shape.rows * out.shape.words() * 4,
      [&](u64 y) {
        W* row = out.as<W>() + y * out.shape.words();
        mask_row(sample, row, dim, log_modulus, masks.seed, masks.serial + y);
        const KeystreamState state(errors.seed, {random::Purpose::error, errors.serial + y});
        random::ChaChaBlock block{};
        const random::WipeOnExit wipe(&block, sizeof(block));
        for (u32 j = 0; j < slots; ++j) {
          if (j % 8 == 0) sample.keystream(block.word, state.word, j / 8, 1);
          W body = static_cast<W>(static_cast<i64>(random::error_value(block, j % 8)));
          body += dot(table, row, secrets + u64(j) * dim, dim);
          if (messages != nullptr) body += static_cast<W>(messages[y * slots + j]);
          row[dim + j] = static_cast<W>(low_bits(body, log_modulus));
        }
      },
      64);
}

template <class W>
void expand_rows(const SampleTable& sample, const LweView& out, const RowSeed& masks,
                 const u64* bodies) {
  const u32 dim = out.shape.dim, slots = out.shape.slots, log_modulus = out.shape.log_modulus;
  parallel_for(
      out.shape.rows, out.shape.rows * out.shape.words() * 4,
      [&](u64 y) {
        W* row = out.as<W>() + y * out.shape.words();
        mask_row(sample, row, dim, log_modulus, masks.seed, masks.serial + y);
        for (u32 j = 0; j < slots; ++j)
          row[dim + j] = static_cast<W>(low_bits(bodies[y * slots + j], log_modulus));
      },
      64);
}

}  // namespace

void CpuTorusKernels::do_key_switch(Stream& stream, const SwitchShape& shape, const LweView& out,
                                    const ConstLweView& in, const ConstLweView& key) {
  const u32 words = shape.out_words();
  const u64 batch = in.shape.rows;
  // products: all words of the key have 32 bits
  const u64 sum_bytes = u64(words) * key.word_bytes;
  const u64 most = std::clamp<u64>(kSwitchBytes / sum_bytes, 1, kSwitchRows);
  // equal groups, as many for every thread
  const u64 threads = std::min<u64>(thread_count(), batch);
  const u64 groups = std::min(batch, (batch + most * threads - 1) / (most * threads) * threads);
  const u64 group_bytes = (most * sum_bytes + 63) / 64 * 64;
  const auto work = stream.allocate(thread_count() * group_bytes);
  const u64 cost = batch * shape.in_dim * shape.digits * words;
  parallel_for_workers(groups, cost, [&](u64 g, u32 worker) {
    const u64 first = g * batch / groups, rows = (g + 1) * batch / groups - first;
    u32* const to = out.as<u32>() + first * words;
    u8* const sums = work.as<u8>() + worker * group_bytes;
    if (shape.products)
      return product_rows(table_, shape, rows, to, in.as<const u32>() + first * in.shape.words(),
                          key.as<const u32>(), reinterpret_cast<u32*>(sums));
    const u64* const from = in.as<const u64>() + first * in.shape.words();
    if (key.word_bytes == 4)
      switch_rows(table_, shape, rows, to, from, key.as<const u32>(), reinterpret_cast<u32*>(sums));
    else
      switch_rows(table_, shape, rows, to, from, key.as<const u64>(), reinterpret_cast<u64*>(sums));
  });
}

void CpuTorusKernels::do_linear(Stream&, const LweView& out, std::span<const LweTerm> terms,
                                u32 constant) {
  const u64 words = out.shape.words(), batch = out.shape.rows;
  u32* const to = out.as<u32>();
  parallel_for(
      batch, batch * words * terms.size(),
      [&](u64 y) {
        // pieces on the stack: out may be any of the inputs
        constexpr u64 kPiece = 256;
        u32 sum[kPiece];
        for (u64 first = y * words; first < (y + 1) * words; first += kPiece) {
          const u64 count = std::min(kPiece, (y + 1) * words - first);
          const u64 body = y * words + out.shape.dim;
          for (u64 i = 0; i < count; ++i) sum[i] = first + i < body ? 0 : constant;
          for (const LweTerm& term : terms) {
            const u32 factor = static_cast<u32>(term.factor);
            for (u64 i = 0; i < count; ++i) sum[i] += factor * term.data[first + i];
          }
          for (u64 i = 0; i < count; ++i)
            to[first + i] = static_cast<u32>(low_bits(sum[i], out.shape.log_modulus));
        }
      },
      16);
}

void CpuTorusKernels::do_sums(Stream&, const LweView& out, std::span<const LweSum> sums) {
  const u64 words = out.shape.words(), rows = out.shape.rows / sums.size();
  u64 terms = 0;
  for (const LweSum& sum : sums) terms += sum.terms.size();
  const u32 mask = static_cast<u32>(low_bits(~u64(0), out.shape.log_modulus));
  parallel_for(
      out.shape.rows, rows * words * terms,
      [&](u64 y) {
        const LweSum& sum = sums[y / rows];
        u32* const to = out.as<u32>() + y * words;
        std::fill_n(to, words, 0);
        std::fill_n(to + out.shape.dim, words - out.shape.dim, sum.constant);
        for (const LweRowsTerm& term : sum.terms) {
          const u32 factor = static_cast<u32>(term.factor);
          const u32* const from = term.data + y % rows * term.row_step * words;
          for (u64 i = 0; i < words; ++i) to[i] += factor * from[i];
        }
        for (u64 i = 0; i < words; ++i) to[i] &= mask;
      },
      16);
}

void CpuTorusKernels::do_mod_switch(Stream&, const LweView& out, const ConstLweView& in) {
  const u64 words = in.shape.words(), batch = in.shape.rows;
  const u32 log_to = out.shape.log_modulus, log_from = in.shape.log_modulus;
  u32* const to = out.as<u32>();
  const u32* const from = in.as<const u32>();
  parallel_for(
      batch, 2 * batch * words,
      [&](u64 y) {
        for (u64 i = y * words; i < (y + 1) * words; ++i)
          to[i] = log_to <= log_from ? switched(from[i], log_from, log_to)
                                     : from[i] << (log_to - log_from);
      },
      16);
}

void CpuTorusKernels::do_extract(Stream&, const LweView& out, const device::RingView& in,
                                 const u32* positions) {
  const u32 dim = out.shape.dim, log_to = out.shape.log_modulus;
  const u32 log_stride = in.log_degree - static_cast<u32>(std::bit_width(dim) - 1);
  const u64 q = in.modulus, half = q / 2, words = out.shape.words();
  const u32 *const b = in.polys, *const a = b + (u64(1) << in.log_degree);
  u32* const to = out.as<u32>();
  const auto to_torus = [&](u64 x) {
    return static_cast<u32>(low_bits(((x << log_to) + half) / q, log_to));
  };
  parallel_for(
      out.shape.rows, 16 * out.shape.rows * words,
      [&](u64 y) {
        const u64 p = positions[y], u = p >> log_stride;
        const u32* const column = a + (p & ((u64(1) << log_stride) - 1));
        u32* const row = to + y * words;
        for (u64 j = 0; j <= u; ++j) {
          const u64 x = column[(u - j) << log_stride];
          row[j] = to_torus(x == 0 ? 0 : q - x);
        }
        for (u64 j = u + 1; j < dim; ++j) row[j] = to_torus(column[(dim + u - j) << log_stride]);
        row[dim] = to_torus(b[p]);
      },
      1);
}

void CpuTorusKernels::do_embed(Stream&, i64* out, u32 log_degree, u32 count, const ConstLweView& in,
                               const u32* rows) {
  const u32 dim = in.shape.dim, drop = 64 - in.shape.log_modulus;
  const u64 degree = u64(1) << log_degree, stride = degree / dim, words = in.shape.words();
  const u32* const from = in.as<const u32>();
  const auto centred = [&](u32 x) { return static_cast<i64>(u64(x) << drop) >> drop; };
  // A task a stretch of the ring that rows cross: coefficients [stride i, stride (i + 1)).
  parallel_for(
      u64(count) * dim, 4 * u64(count) * degree,
      [&](u64 task) {
        const u64 c = task / dim, i = task % dim;
        i64 *const b = out + 2 * c * degree + stride * i, *const a = b + degree;
        for (u64 v = 0; v < stride; ++v) {
          const u32 y = rows[c * stride + v];
          const bool none = y == device::kNoRow;
          const u32* const row = from + (none ? 0 : y * words);
          b[v] = none || i != 0 ? 0 : centred(row[dim]);
          a[v] = none ? 0 : i == 0 ? -centred(row[0]) : centred(row[dim - i]);
        }
      },
      16);
}

void CpuTorusKernels::do_sample_lwe(Stream&, const LweView& out, const RowSeed& masks,
                                    const RowSeed& errors, const i8* secrets, const u64* messages) {
  if (out.word_bytes == 4)
    sample_rows<u32>(table_, sample_, out, masks, errors, secrets, messages);
  else
    sample_rows<u64>(table_, sample_, out, masks, errors, secrets, messages);
}

void CpuTorusKernels::do_expand_lwe(Stream&, const LweView& out, const RowSeed& masks,
                                    const u64* bodies) {
  if (out.word_bytes == 4)
    expand_rows<u32>(sample_, out, masks, bodies);
  else
    expand_rows<u64>(sample_, out, masks, bodies);
}

void CpuTorusKernels::do_phase(Stream&, u32* out, const ConstLweView& in, const i8* secrets) {
  const u32 dim = in.shape.dim, slots = in.shape.slots, log_modulus = in.shape.log_modulus;
  const u32* const from = in.as<const u32>();
  parallel_for(
      in.shape.rows, in.shape.rows * in.shape.words(),
      [&](u64 y) {
        const u32* row = from + y * in.shape.words();
        for (u32 j = 0; j < slots; ++j)
          out[y * slots + j] = static_cast<u32>(
              low_bits(row[dim + j] - table_.dot32(row, secrets + u64(j) * dim, dim), log_modulus));
      },
      16);
}

}  // namespace crenel::backend::cpu
