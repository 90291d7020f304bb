// LWE rows: key switch, linear combinations, sampling.
#include <algorithm>

#include "backends/ref/torus/kernels.h"
#include "crenel/core/watch.h"
#include "random/samplers.h"

namespace crenel::backend::ref {
namespace {

// round(x / 2^(from - to)), halves up, modulo 2^to; from >= to.
u32 switched(u64 x, u32 from, u32 to) {
  const u64 half = from == to ? 0 : u64(1) << (from - to - 1);
  return static_cast<u32>(low_bits((x + half) >> (from - to), to));
}

u64 load_word(const ConstLweView& v, u64 at) {
  return v.word_bytes == 4 ? v.as<const u32>()[at] : v.as<const u64>()[at];
}

void store_word(const LweView& v, u64 at, u64 value) {
  value = low_bits(value, v.shape.log_modulus);
  if (v.word_bytes == 4)
    v.as<u32>()[at] = static_cast<u32>(value);
  else
    v.as<u64>()[at] = value;
}

// Word i of the mask of row y.
u64 mask_word(const random::ChaChaState& state, u32 i, u32 log_modulus) {
  if (log_modulus <= 32) return random::chacha20_block(state, i / 16).word[i % 16];
  const auto block = random::chacha20_block(state, i / 8);
  return u64(block.word[2 * (i % 8) + 1]) << 32 | block.word[2 * (i % 8)];
}

random::ChaChaState mask_state(const RowSeed& masks, u64 row) {
  return random::chacha20_state(masks.seed, {random::Purpose::uniform, masks.serial + row});
}

// The masks of row y, whose first word is number `at`.
void store_mask(const LweView& out, u64 at, const random::ChaChaState& state) {
  for (u32 i = 0; i < out.shape.dim; ++i)
    store_word(out, at + i, mask_word(state, i, out.shape.log_modulus));
}

}  // namespace

void RefTorusKernels::do_key_switch(Stream&, const SwitchShape& shape, const LweView& out,
                                    const ConstLweView& in, const ConstLweView& key) {
  if (shape.products) return product_switch(shape, out, in, key);
  const u32 words = shape.out_words();
  const u64 rows_a_digit = shape.digit_rows();
  std::vector<u64> sum(words);
  for (u64 row = 0; row < in.shape.rows; ++row) {
    watch::point();
    const u64* a = in.as<const u64>() + row * in.shape.words();
    for (u32 w = 0; w < words; ++w)
      sum[w] = w < shape.out_dim ? 0 : a[shape.in_dim + w - shape.out_dim];
    for (u32 i = 0; i < shape.in_dim; ++i)
      for (u32 j = 0; j < shape.digits; ++j) {
        const u32 shift = shape.base_log * j;
        const u64 digit = low_bits(a[i] >> shift, shape.base_log);
        if (digit == 0) continue;
        const u64 at = ((u64(i) * shape.digits + j) * rows_a_digit + digit - 1) * words;
        for (u32 w = 0; w < words; ++w) sum[w] -= load_word(key, at + w);
      }
    for (u32 w = 0; w < words; ++w)
      out.as<u32>()[row * words + w] =
          switched(low_bits(sum[w], shape.log_modulus), shape.log_modulus, shape.log_out_modulus);
  }
}

void RefTorusKernels::product_switch(const SwitchShape& shape, const LweView& out,
                                     const ConstLweView& in, const ConstLweView& key) const {
  const u32 words = shape.out_words();
  const i64 base = i64(1) << shape.base_log;
  std::vector<u64> sum(words);
  for (u64 row = 0; row < in.shape.rows; ++row) {
    watch::point();
    const u32* a = in.as<const u32>() + row * in.shape.words();
    for (u32 w = 0; w < words; ++w)
      sum[w] = w < shape.out_dim ? 0
                                 : switched(a[shape.in_dim + w - shape.out_dim],
                                            shape.log_in_modulus, shape.log_modulus);
    for (u32 i = 0; i < shape.in_dim; ++i) {
      i64 rest = switched(a[i], shape.log_in_modulus, shape.base_log * shape.digits);
      for (u32 j = 0; j < shape.digits; ++j) {
        const i64 residue = rest % base, digit = residue >= base / 2 ? residue - base : residue;
        rest = (rest - digit) / base;
        const u64 at = (u64(i) * shape.digits + j) * words;
        for (u32 w = 0; w < words; ++w) sum[w] -= static_cast<u64>(digit) * load_word(key, at + w);
      }
    }
    for (u32 w = 0; w < words; ++w)
      out.as<u32>()[row * words + w] =
          switched(low_bits(sum[w], shape.log_modulus), shape.log_modulus, shape.log_out_modulus);
  }
}

void RefTorusKernels::do_linear(Stream&, const LweView& out, std::span<const LweTerm> terms,
                                u32 constant) {
  const u64 words = out.shape.words();
  for (u64 i = 0; i < out.shape.rows * words; ++i) {
    u64 sum = i % words < out.shape.dim ? 0 : constant;
    for (const LweTerm& term : terms) sum += static_cast<u64>(term.factor) * term.data[i];
    store_word(out, i, sum);
  }
}

void RefTorusKernels::do_sums(Stream&, const LweView& out, std::span<const LweSum> sums) {
  const u64 words = out.shape.words(), rows = out.shape.rows / sums.size();
  for (u64 k = 0; k < sums.size(); ++k)
    for (u64 y = 0; y < rows; ++y)
      for (u64 i = 0; i < words; ++i) {
        u64 sum = i < out.shape.dim ? 0 : sums[k].constant;
        for (const LweRowsTerm& term : sums[k].terms)
          sum += static_cast<u64>(term.factor) * term.data[y * term.row_step * words + i];
        store_word(out, (k * rows + y) * words + i, sum);
      }
}

void RefTorusKernels::do_mod_switch(Stream&, const LweView& out, const ConstLweView& in) {
  const u32 to = out.shape.log_modulus, from = in.shape.log_modulus;
  for (u64 i = 0; i < in.shape.rows * in.shape.words(); ++i) {
    const u32 x = in.as<const u32>()[i];
    out.as<u32>()[i] = to <= from ? switched(x, from, to) : x << (to - from);
  }
}

void RefTorusKernels::do_extract(Stream&, const LweView& out, const device::RingView& in,
                                 const u32* positions) {
  const u32 dim = out.shape.dim, log_to = out.shape.log_modulus, q = in.modulus;
  const u64 degree = u64(1) << in.log_degree, stride = degree / dim;
  const u32 *const b = in.polys, *const a = in.polys + degree;
  const auto to_torus = [&](u64 x) { return low_bits(((x << log_to) + q / 2) / q, log_to); };
  for (u64 y = 0; y < out.shape.rows; ++y) {
    watch::point();
    const u64 u = positions[y] / stride, v = positions[y] % stride, at = y * (dim + 1);
    for (u64 j = 0; j < dim; ++j) {
      const u64 x = a[stride * ((dim + u - j) % dim) + v];
      store_word(out, at + j, to_torus(j <= u ? (q - x) % q : x));
    }
    store_word(out, at + dim, to_torus(b[positions[y]]));
  }
}

void RefTorusKernels::do_embed(Stream&, i64* out, u32 log_degree, u32 count, const ConstLweView& in,
                               const u32* rows) {
  const u32 dim = in.shape.dim, m = in.shape.log_modulus;
  const u64 degree = u64(1) << log_degree, stride = degree / dim;
  const auto centred = [&](u64 x) {
    return static_cast<i64>(x) - (x >> (m - 1) != 0 ? i64(1) << m : 0);
  };
  for (u64 c = 0; c < count; ++c) {
    watch::point();
    i64 *const b = out + 2 * c * degree, *const a = b + degree;
    std::fill_n(b, 2 * degree, i64(0));
    for (u64 v = 0; v < stride; ++v) {
      const u32 y = rows[c * stride + v];
      if (y == device::kNoRow) continue;
      const u32* const row = in.as<const u32>() + y * in.shape.words();
      b[v] = centred(row[dim]);
      a[v] = -centred(row[0]);
      for (u64 i = 1; i < dim; ++i) a[stride * i + v] = centred(row[dim - i]);
    }
  }
}

void RefTorusKernels::do_sample_lwe(Stream&, const LweView& out, const RowSeed& masks,
                                    const RowSeed& errors, const i8* secrets, const u64* messages) {
  const u32 dim = out.shape.dim, slots = out.shape.slots;
  for (u64 y = 0; y < out.shape.rows; ++y) {
    watch::point();
    auto noise = random::chacha20_state(errors.seed, {random::Purpose::error, errors.serial + y});
    const random::WipeOnExit wipe(&noise, sizeof(noise));
    const u64 at = y * out.shape.words();
    store_mask(out, at, mask_state(masks, y));
    for (u32 j = 0; j < slots; ++j) {
      auto block = random::chacha20_block(noise, j / 8);
      const random::WipeOnExit wipe_block(&block, sizeof(block));
      u64 body = static_cast<u64>(i64(random::error_value(block, j % 8)));
      if (messages != nullptr) body += messages[y * slots + j];
      for (u32 i = 0; i < dim; ++i)
        body += static_cast<u64>(i64(secrets[u64(j) * dim + i])) * load_word(out, at + i);
      store_word(out, at + dim + j, body);
    }
  }
}

void RefTorusKernels::do_expand_lwe(Stream&, const LweView& out, const RowSeed& masks,
                                    const u64* bodies) {
  const u32 slots = out.shape.slots;
  for (u64 y = 0; y < out.shape.rows; ++y) {
    watch::point();
    const u64 at = y * out.shape.words();
    store_mask(out, at, mask_state(masks, y));
    for (u32 j = 0; j < slots; ++j) store_word(out, at + out.shape.dim + j, bodies[y * slots + j]);
  }
}

void RefTorusKernels::do_phase(Stream&, u32* out, const ConstLweView& in, const i8* secrets) {
  const u32 dim = in.shape.dim, slots = in.shape.slots, log_modulus = in.shape.log_modulus;
  for (u64 y = 0; y < in.shape.rows; ++y) {
    watch::point();
    const u32* row = in.as<const u32>() + y * in.shape.words();
    for (u32 j = 0; j < slots; ++j) {
      u64 sum = row[dim + j];
      for (u32 i = 0; i < dim; ++i)
        sum -= static_cast<u64>(i64(secrets[u64(j) * dim + i])) * row[i];
      out[y * slots + j] = static_cast<u32>(low_bits(sum, log_modulus));
    }
  }
}

}  // namespace crenel::backend::ref
