#include "circuits/bootstrapping/packing.h"

#include "circuits/bootstrapping/steps.h"

namespace crenel::circuits {

using ckks::Ciphertext;
using ckks::Evaluator;
using rlwe::ConstView;
using rlwe::Poly;
using rlwe::View;

MonomialPacking::MonomialPacking(const rlwe::RingContext& ring, u64 slots, u32 count, u32 in,
                                 u32 out)
    : slots_(slots), count_(count) {
  if (count == 1) return;
  const u64 n = ring.ring_dim();
  std::vector<u64> powers;
  for (u32 k = 0; k < count; ++k) powers.push_back(k * (n / (2 * slots * count)));
  together_.emplace(ring, powers, count, ring.window(in));
  for (u32 left = count; left > 1; left /= 2) {
    const u64 s = n / (2 * slots * left);
    const u64 stage[] = {0, 0, 2 * n - s, n - s};  // 1, 1; X^-s, -X^-s
    apart_.emplace_back(ring, stage, 2, ring.window(out));
  }
}

u64 MonomialPacking::bytes() const {
  u64 sum = together_ ? together_->bytes() : 0;
  for (const auto& stage : apart_) sum += stage.bytes();
  return sum;
}

std::vector<i64> MonomialPacking::rotations(u64 slots, u32 count) {
  std::vector<i64> steps;
  for (u32 k = 1; k < count; k *= 2) steps.push_back(static_cast<i64>(slots * k));
  return steps;
}

Ciphertext MonomialPacking::pack(const Evaluator& ev, const Ciphertext& rows) const {
  const auto& s = ev.state();
  if (count_ == 1) return s.copy(rows);
  const u32 batch = rows.batch() / count_;
  const ConstView all = rows.data().poly.view();
  std::vector<ConstView> members;
  for (u32 k = 0; k < count_; ++k) members.push_back(all.rows(k * batch, batch));
  Poly out = s.poly(2, batch, rows.level());
  const View to = out.view();
  s.kernels().plain_multiply_sum(*s.stream, std::span(&to, 1), members, together_.value().grid());
  ckks::Metadata meta = rows.metadata();
  meta.slots = slots_ * count_;
  meta.real = false;
  return s.wrap(std::move(out), meta);
}

Ciphertext MonomialPacking::unpack(const Evaluator& ev, Ciphertext packed) const {
  const auto& s = ev.state();
  const u64 all = s.params().slots();
  u64 slots = packed.slots();
  for (const ckks::MonomialGrid& stage : apart_) {
    slots /= 2;
    const u32 batch = packed.batch();
    packed = with_slots(std::move(packed), all);
    const Ciphertext rotated = ev.rotate(packed, static_cast<i64>(slots));
    const ConstView in[] = {packed.data().poly.view(), rotated.data().poly.view()};
    Poly out = s.poly(2, 2 * batch, packed.level());
    const View to[] = {out.view().rows(0, batch), out.view().rows(batch, batch)};
    s.kernels().plain_multiply_sum(*s.stream, to, in, stage.grid());
    packed = with_slots(s.wrap(std::move(out), packed.metadata()), slots);
  }
  return packed;
}

}  // namespace crenel::circuits
