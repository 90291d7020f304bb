#include "circuits/linear_transform/plaintexts.h"

#include <algorithm>
#include <bit>

#include "ckks/decode.h"
#include "ckks/encode.h"
#include "crenel/core/watch.h"

namespace crenel::circuits {
namespace {

using Complex = std::complex<double>;
using rlwe::Word;

// Words of the polynomials that are encoded at once, on all threads.
constexpr u64 kWordsAtOnce = u64(1) << 22;
constexpr u64 kMostAtOnce = 16;

// Appends `count` entries, i being v_((i - steps) mod size): the rotation that a giant step undoes.
void append_rotated_back(std::vector<Complex>& to, const std::vector<Complex>& v, u64 steps,
                         u64 count) {
  const u64 size = v.size();
  for (u64 i = 0; i < count; ++i) to.push_back(v[(i + size - steps % size) % size]);
}

u64 period_of(std::span<const DiagonalMatrix* const> column) {
  u64 period = 1;
  for (const DiagonalMatrix* block : column)
    if (block != nullptr)
      for (const auto& [offset, values] : block->diagonals)
        period = std::max(period, circuits::period_of(values));
  return period;
}

}  // namespace

u64 DiagonalPlaintexts::bytes_of(std::span<const DiagonalMatrix* const> column, std::size_t rows,
                                 std::size_t babies, u32 limbs) {
  return u64(rows) * babies * limbs * 2 * period_of(column) * sizeof(Word);
}

u64 period_of(std::span<const Complex> v) {
  u64 period = v.size();
  while (period > 1 && std::equal(v.begin(), v.begin() + static_cast<long>(period / 2),
                                  v.begin() + static_cast<long>(period / 2)))
    period /= 2;
  return period;
}

DiagonalPlaintexts::DiagonalPlaintexts(const ckks::Context::State& context,
                                       std::span<const DiagonalMatrix* const> column,
                                       std::span<const BlockRow> rows, std::span<const u64> babies,
                                       u64 slots, double scale, const ring::LimbSet& limbs)
    : limbs_(limbs),
      rows_(static_cast<u32>(rows.size())),
      babies_(static_cast<u32>(babies.size())),
      present_(u64(rows_) * babies_, 0) {
  const u64 period = period_of(column);
  // A vector of `period` values is a polynomial of 2 period coefficients.
  log_words_ = static_cast<u32>(std::bit_width(period));
  const auto& ring = *context.ring;
  auto& stream = ring.stream();
  const u64 words = u64(1) << log_words_, run = ring.ring_dim() >> log_words_;
  const u64 entry_words = limbs.size() * words;
  words_ =
      stream.allocate_limbs(limbs, {.rows = present_.size(), .limb_bytes = words * sizeof(Word)});
  const u64 polynomial = u64(limbs.size()) * ring.ring_dim();
  const u64 at_once = std::clamp<u64>(kWordsAtOnce / polynomial, 1, kMostAtOnce);
  std::vector<Complex> values;
  std::vector<Word*> places;
  const auto encode = [&] {
    const auto count = static_cast<u32>(places.size());
    if (count == 0) return;
    const auto coefficients =
        ckks::integer_coefficients(context.encoder, values, period, count, scale, 63.0);
    const rlwe::Poly full = ckks::to_polynomials(ring, stream, coefficients, count, limbs);
    for (u32 k = 0; k < count; ++k) {
      const Word* from = full.data() + k * polynomial;
      if (run == 1)
        stream.copy(places[k], from, entry_words * sizeof(Word));
      else
        stream.copy_rows(places[k], sizeof(Word), from, run * sizeof(Word), sizeof(Word),
                         entry_words);
      watch::advance();
    }
    values.clear(), places.clear();
  };
  for (u32 r = 0; r < rows_; ++r)
    for (u32 b = 0; b < babies_; ++b) {
      const DiagonalMatrix& block = *column[rows[r].output];
      const auto found = block.diagonals.find((rows[r].giant + babies[b]) % slots);
      Word* to = words_.as<Word>() + (u64(r) * babies_ + b) * entry_words;
      if (found == block.diagonals.end()) {
        stream.fill_zero(to, entry_words * sizeof(Word));
        continue;
      }
      present_[u64(r) * babies_ + b] = 1;
      append_rotated_back(values, found->second, rows[r].giant, period);
      places.push_back(to);
      if (places.size() == at_once) encode();
    }
  encode();
}

std::vector<Complex> DiagonalPlaintexts::values(const ckks::Context::State& context, double scale,
                                                u32 row, u32 baby) const {
  const u64 index = u64(row) * babies_ + baby;
  if (!present_[index]) return {};
  const auto& ring = *context.ring;
  auto& stream = ring.stream();
  const u64 words = u64(1) << log_words_, run = ring.ring_dim() >> log_words_;
  const u64 entry_words = limbs_.size() * words;
  rlwe::Poly full(stream, {ring.log_n(), 1, 1}, limbs_, ring::Domain::eval);
  for (u64 k = 0; k < run; ++k)  // every word stands for a run of equal ones
    stream.copy_rows(full.data() + k, run * sizeof(Word),
                     words_.as<const Word>() + index * entry_words, sizeof(Word), sizeof(Word),
                     entry_words);
  rlwe::Poly coefficients(stream, full.shape(), limbs_, ring::Domain::coeff, true);
  ring.kernels().intt(stream, coefficients.view(), full.view());
  ckks::Metadata meta;
  meta.scale = scale;
  meta.slots = words / 2;
  return ckks::decode_coefficients(context, coefficients, meta);
}

device::PlainGrid DiagonalPlaintexts::grid() const {
  device::PlainGrid grid;
  grid.data = words_.as<const Word>();
  grid.limbs = limbs_;
  grid.log_words = log_words_;
  grid.giants = rows_;
  grid.babies = babies_;
  grid.present = present_.data();
  return grid;
}

}  // namespace crenel::circuits
