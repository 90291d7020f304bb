// Linear combinations, and sums of products with plaintexts.
#include <algorithm>

#include "backends/cpu/parallel.h"
#include "backends/cpu/poly/kernels.h"
#include "backends/cpu/poly/permutation.h"

namespace crenel::backend::cpu {
namespace {

using View = ring::PolyView<u32>;
using ConstView = ring::PolyView<const u32>;
using Grid = device::PlainGrid;

// Words of the baby steps of one task: they and the plaintexts that meet them should stay in L2.
constexpr u64 kBabyWords = u64(1) << 16;

// Elements of one task: a power of two, at least the rows that the vector paths accept.
u64 piece_words(u64 ring_dim, u64 rows) {
  u64 piece = 4096;
  while (piece > kMinVectorRow && piece * rows > kBabyWords) piece /= 2;
  return std::min(ring_dim, piece);
}

// The words of every entry for the elements from `at` on of limb `l`.
void plain_rows(std::vector<const u32*>& rows, const Grid& plain, u32 l, u64 at, u32 shift) {
  rows.resize(u64(plain.giants) * plain.babies);
  for (u32 g = 0; g < plain.giants; ++g)
    for (u32 b = 0; b < plain.babies; ++b)
      rows[u64(g) * plain.babies + b] =
          plain.has(g, b) ? plain.entry(g, b) + (u64(l) << plain.log_words) + (at >> shift)
                          : nullptr;
}

u32 half(const device::LimbScalars& scalars, u32 l, bool low) {
  return low ? scalars.low[l] : scalars.high[l];
}

}  // namespace

void CpuPolyKernels::do_linear_combination(Stream&, View out, std::span<const ConstView> in,
                                           std::span<const Scalars> scalars,
                                           const Scalars* constant) {
  // Never more than half a limb: a piece has one scalar of LimbScalars.
  const u64 n = out.ring_dim(), piece = std::min<u64>(n / 2, 4096), pieces = n / piece;
  const u32 limbs = out.limbs.size(), components = out.shape.components;
  parallel_for(
      out.words() / piece, out.words() * (in.size() + 1),
      [&](u64 i) {
        const u64 at = i % pieces * piece, row = i / pieces;
        const u32 l = static_cast<u32>(row % limbs), poly = static_cast<u32>(row / limbs);
        const u32 b = poly / components, c = poly % components;
        const bool low = at < n / 2;
        constexpr u32 kTerms = 32;  // in one pass; a further one adds to `out`
        const u32* rows[kTerms];
        u64 factors[kTerms];
        u32* const to = out.limb(b, c, l) + at;
        u32 terms = 0, added = constant == nullptr ? 0 : half(*constant, l, low);
        const auto pass = [&] {
          isa_.sums->combination({to, rows, factors, terms, piece, added}, prime(out.limbs[l]));
          rows[0] = to, factors[0] = 1, terms = 1, added = 0;
        };
        // All inputs that are `out` itself are one term, of the first pass.
        u32 own = 0;
        for (std::size_t k = 0; k < in.size(); ++k)
          if (in[k].data == out.data)
            own = math::add_mod<u32>(own, half(scalars[k], l, low), prime(out.limbs[l]).q);
        if (own != 0) rows[0] = to, factors[0] = own, terms = 1;
        for (std::size_t k = 0; k < in.size(); ++k) {
          if (in[k].data == out.data) continue;
          if (terms == kTerms) pass();
          rows[terms] = in[k].limb(b, c, l) + at;
          factors[terms++] = half(scalars[k], l, low);
        }
        pass();
      },
      4);
}

void CpuPolyKernels::do_plain_multiply_sum(Stream&, std::span<const View> out,
                                           std::span<const ConstView> in, const Grid& plain) {
  if (out.empty()) return;
  const ring::PolyShape shape = out[0].shape;
  const u64 n = shape.ring_dim(), piece = piece_words(n, 2 * in.size()), pieces = n / piece;
  const u32 shift = shape.log_n - plain.log_words, limbs = plain.limbs.size();
  parallel_for(limbs * pieces, out[0].words() * (in.size() + 1) * out.size(), [&](u64 i) {
    const u32 l = static_cast<u32>(i / pieces);
    const u64 at = i % pieces * piece;
    std::vector<const u32*> words, from;
    std::vector<u32*> to;
    plain_rows(words, plain, l, at, shift);
    // Two components at a time share the plaintexts.
    for (u32 b = 0; b < shape.batch; ++b)
      for (u32 c = 0; c < shape.components; c += 2) {
        const u32 count = std::min(2u, shape.components - c);
        from.clear(), to.clear();
        for (u32 k = 0; k < count * in.size(); ++k)
          from.push_back(in[k / count].limb(b, c + k % count, l) + at);
        for (u32 k = 0; k < count * out.size(); ++k)
          to.push_back(out[k / count].limb(b, c + k % count, l) + at);
        const Prime& p = prime(plain.limbs[l]);
        isa_.sums->plain_sum({to.data(), from.data(), words.data(), plain.giants, plain.babies,
                              count, piece, shift, p.r},
                             p);
      }
  });
}

// An aligned block of elements comes, under every automorphism, from an aligned block: a task makes
// the baby steps of one block of the result in memory of its own, and multiplies them there.
void CpuPolyKernels::do_hoisted_plain_sums(Stream& stream, std::span<const View> out,
                                           ConstView digits, ConstView b, ConstView a,
                                           std::span<const Key> keys, std::span<const u64> elements,
                                           const Grid& plain, const Scalars& special,
                                           u32 first_digit) {
  if (out.empty()) return;
  const u32 babies = plain.babies, count = digits.shape.components, batch = digits.shape.batch;
  const u64 n = u64(1) << ring().log_n(), piece = piece_words(n, 2 * babies), pieces = n / piece;
  const u32 shift = ring().log_n() - plain.log_words, limbs = plain.limbs.size();
  const u32 lanes = isa_.fused->lanes;
  std::vector<Permutation> maps;
  maps.reserve(babies);
  std::vector<u8> used(babies, 0);
  std::vector<ConstView> pairs;
  for (u32 r = 0; r < babies; ++r) {
    pairs.push_back(keys[r].resolved());
    maps.push_back(permutation(stream, elements[r], true));
    for (u32 g = 0; g < plain.giants; ++g) used[r] |= plain.has(g, r);
  }
  // Rows of a power-of-two distance would fall into the same cache sets.
  const u64 stride = piece + 17 * kMaxLanes;
  const device::Buffer scratch =
      stream.allocate(2 * babies * stride * thread_count() * sizeof(u32));
  const u64 work = u64(batch) * limbs * n * babies * (3 * count + plain.giants);
  parallel_for_workers(batch * limbs * pieces, work, [&](u64 i, u32 worker) {
    // batch entries are the inner loop: they share keys and plaintexts
    const u32 entry = static_cast<u32>(i % batch), l = static_cast<u32>(i / batch / pieces);
    const u64 at = i / batch % pieces * piece;
    const u32 id = plain.limbs[l];
    const Prime& p = prime(id);
    u32* const steps = scratch.as<u32>() + u64(worker) * 2 * babies * stride;
    std::vector<const u32*> words, in, rows(u64(3) * babies * count);
    std::vector<u32*> sums;
    // rows of step r: its digits, then both components of its key
    const auto rows_of = [&](u32 r) { return rows.data() + u64(3) * r * count; };
    std::vector<BabyStepArgs> todo;
    for (u32 r = 0; r < babies; ++r) {
      const u32 source =
          ring::galois_eval_source(static_cast<u32>(at), elements[r], ring().log_n());
      const u64 start = source / piece * piece;
      const bool identity = elements[r] == 1 && a.data != nullptr, lifted = l < b.limbs.size();
      BabyStepArgs step = {};
      step.out0 = steps + 2 * r * stride;
      step.out1 = step.out0 + stride;
      in.push_back(step.out0), in.push_back(step.out1);
      if (!used[r]) continue;
      step.count = identity ? 0 : count;
      const u32 in_key = identity ? 0 : static_cast<u32>(pairs[r].limbs.find(id));
      const u32 first_entry = identity ? 0 : keys[r].entry(first_digit);
      const u32** const digit = rows_of(r);
      for (u32 d = 0; d < step.count; ++d) {
        digit[d] = digits.limb(entry, d, l) + start;
        for (u32 c = 0; c < 2; ++c)
          digit[(c + 1) * count + d] = pairs[r].limb(first_entry + d, c, in_key) + start;
      }
      step.digits = digit, step.key0 = digit + count, step.key1 = step.key0 + count;
      step.n = piece;
      step.lifted0 = lifted ? b.limb(entry, 0, l) + start : nullptr;
      step.lifted1 = lifted && identity ? a.limb(entry, 0, l) + start : nullptr;
      step.lift = lifted ? special.low[l] : 0;
      step.target = maps[r].view();
      step.target.source += start / lanes, step.target.shift += start / lanes;
      step.first_target = static_cast<u32>(at / lanes);
      todo.push_back(step);
    }
    for (std::size_t k = 0; k < todo.size(); ++k) {
      if (k + 1 < todo.size()) {
        const BabyStepArgs& next = todo[k + 1];
        todo[k].next0 = next.key0, todo[k].next1 = next.key1, todo[k].next_count = next.count;
      }
      isa_.sums->baby_step(todo[k], p);
    }
    plain_rows(words, plain, l, at, shift);
    for (const View& o : out)
      for (u32 c = 0; c < 2; ++c) sums.push_back(o.limb(entry, c, l) + at);
    // baby steps come divided by R
    isa_.sums->plain_sum(
        {sums.data(), in.data(), words.data(), plain.giants, babies, 2, piece, shift, p.r2}, p);
  });
}

}  // namespace crenel::backend::cpu
