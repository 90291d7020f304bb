#include "bridge/packing.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "device/room.h"
#include "rlwe/key_switcher.h"

namespace crenel::bridge {

using ckks::Ciphertext;
using rlwe::Domain;
using rlwe::Poly;

namespace {

/// Groups that go through the switch together: bounds the integers in memory.
constexpr u32 kGroupsAtOnce = 32;

// X^0, X^-1, ..., X^-(each - 1): row v of a group stands at X^v.
std::vector<u64> powers_back(u32 each, u64 ring_dim) {
  std::vector<u64> powers(each);
  for (u32 v = 0; v < each; ++v) powers[v] = v == 0 ? 0 : 2 * ring_dim - v;
  return powers;
}

}  // namespace

u64 place_of(u64 j, u64 slots) {
  u64 place = 0;
  for (u64 bit = 1; bit < slots; bit *= 2, j /= 2) place = 2 * place + j % 2;
  return place;
}

// A group has the rows of the places c, c + groups, c + 2 groups, ...: its merges come first.
Packing::Packing(const rlwe::RingContext& ring, u64 count, u32 dim, u32 log_modulus)
    : ring_(ring),
      count_(count),
      dim_(dim),
      log_modulus_(log_modulus),
      each_(static_cast<u32>(std::min(count, ring.ring_dim() / dim))),
      monomials_(ring, powers_back(each_, ring.ring_dim()), 1, ring.window(0)) {
  u64 q0 = 1;
  for (u32 i = 0; i < ring.window(0).size(); ++i) q0 *= ring.modulus(ring.window(0)[i]).q;
  const u64 unit = u64(1) << log_modulus, factor = (q0 + unit / 2) / unit;
  for (u32 i = 0; i < ring.window(0).size(); ++i) {
    const auto& m = ring.modulus(ring.window(0)[i]);
    const rlwe::Word inverse = math::inverse_mod(static_cast<rlwe::Word>(count % m.q), m);
    factor_.low[i] = factor_.high[i] =
        math::mul_mod<rlwe::Word>(static_cast<rlwe::Word>(factor % m.q), inverse, m);
  }
  const u64 stride = ring.ring_dim() / dim;
  std::vector<u32> rows(groups() * stride, device::kNoRow);
  for (u64 j = 0; j < count; ++j) {
    const u64 place = place_of(j, count);
    rows[place % groups() * stride + place / groups()] = static_cast<u32>(j);
  }
  rows_ = ring.stream().allocate(rows.size() * sizeof(u32));
  ring.stream().copy_in(rows_.data(), rows.data(), rows_.bytes());
  ring.stream().synchronize();  // any stream may read it
}

std::vector<i64> Packing::rotations() const {
  std::vector<i64> steps;
  for (u64 k = 1; k < count_; k *= 2) steps.push_back(static_cast<i64>(k));
  return steps;
}

Poly Packing::switched(const ckks::Evaluator& ev, device::TorusKernels& torus,
                       const rlwe::RingSwitch& rings, const rlwe::KeyView& key, const u32* rows,
                       u32 first, u32 count) const {
  auto& stream = *ev.state().stream;
  auto& k = ring_.kernels();
  const rlwe::PolyShape shape{ring_.log_n(), 2, count};
  Poly lifted(stream, shape, ring_.window(0), Domain::coeff);
  {
    const device::Buffer integers =
        stream.allocate(2 * u64(count) * ring_.ring_dim() * sizeof(i64));
    torus.embed(stream, integers.as<i64>(), ring_.log_n(), count,
                {rows, {count_, dim_, 1, log_modulus_}},
                rows_.as<const u32>() + u64(first) * (ring_.ring_dim() / dim_));
    k.reduce_signed(stream, lifted.view(), integers.as<const i64>());
  }
  k.ntt(stream, lifted.view_as(Domain::eval), lifted.view());
  lifted.set_domain(Domain::eval);
  k.mul_scalar(stream, lifted.view(), lifted.view(), factor_);
  return rings.up(stream, lifted.view(), key);
}

// Doubling l takes X^(N / 2^l) to its negative and leaves what lies in the subring of the doublings
// before it: even places stay, odd ones are moved, all else of that step goes.
Ciphertext Packing::merged(const ckks::Evaluator& ev, Ciphertext a, u32 level) const {
  for (; a.batch() > 1; ++level) {
    const u32 half = a.batch() / 2;
    const Ciphertext even = a.slice(0, half);
    const Ciphertext odd =
        ev.multiply_monomial(a.slice(half, half), static_cast<i64>(ring_.ring_dim() >> level));
    const Ciphertext turned = ev.rotate(ev.sub(even, odd), i64(1) << (level - 2));
    a = ev.add(ev.add(even, odd), turned);
    watch::advance();
  }
  return a;
}

Poly Packing::operator()(const ckks::Evaluator& ev, device::TorusKernels& torus,
                         const rlwe::RingSwitch& rings, const rlwe::KeyView& key,
                         const u32* rows) const {
  const auto& s = ev.state();
  const u64 one = 2 * ring_.window(0).size() * ring_.ring_dim() * sizeof(rlwe::Word);
  device::expect_room(*s.stream, {.device = (groups() + 3 * u64(each_)) * one}, [&] {
    return core::MemoryRequest{.what = cat("packing of ", count_, " messages"),
                               .advice = "take fewer slots"};
  });
  const u32 first_level = 2, in_group = static_cast<u32>(std::bit_width(each_)) - 1;
  const ckks::Metadata whole{0, s.params().scale(0), s.params().slots(), false,
                             ev.keys().secret_key_id()};
  Poly leaders = s.poly(2, groups(), 0);
  for (u32 first = 0; first < groups(); first += kGroupsAtOnce) {
    const u32 now = std::min(kGroupsAtOnce, groups() - first);
    const Poly under = switched(ev, torus, rings, key, rows, first, now);
    for (u32 c = 0; c < now; ++c) {
      Poly members = s.poly(2, each_, 0);
      std::vector<rlwe::View> out;
      for (u32 v = 0; v < each_; ++v) out.push_back(members.view().rows(v, 1));
      const rlwe::ConstView in = under.view().rows(c, 1);
      s.kernels().plain_multiply_sum(*s.stream, out, std::span(&in, 1), monomials_.grid());
      const Ciphertext leader = merged(ev, s.wrap(std::move(members), whole), first_level);
      s.stream->copy(leaders.view().rows(first + c, 1).data, leader.data().poly.data(),
                     leader.data().poly.bytes());
    }
  }
  Ciphertext all = merged(ev, s.wrap(std::move(leaders), whole), first_level + in_group);
  return std::move(all.data().poly);
}

}  // namespace crenel::bridge
