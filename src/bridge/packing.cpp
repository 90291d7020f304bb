#include "bridge/packing.h"

#include <algorithm>
#include <array>
#include <bit>

#include "ckks/encode.h"
#include "crenel/core/watch.h"
#include "device/room.h"
#include "rlwe/key_switcher.h"
#include "rlwe/ring_switch.h"

namespace crenel::bridge {

using rlwe::ConstView;
using rlwe::Domain;
using rlwe::Poly;
using rlwe::View;

namespace {

// X^0, X^-1, ..., X^-(each - 1): member v of a group stands at X^v.
std::vector<u64> powers_back(u32 each, u64 ring_dim) {
  std::vector<u64> powers(each);
  for (u32 v = 0; v < each; ++v) powers[v] = v == 0 ? 0 : 2 * ring_dim - v;
  return powers;
}

// X^0, ..., X^(count - 1), evaluation form.
Poly ascending_powers(const rlwe::RingContext& ring, u32 count) {
  std::vector<i64> coefficients(u64(count) * ring.ring_dim(), 0);
  for (u32 v = 0; v < count; ++v) coefficients[v * ring.ring_dim() + v] = 1;
  return ckks::to_polynomials(ring, ring.stream(), coefficients, count, ring.window(0));
}

// psi of the limb, whose odd powers polynomials are evaluated at.
u32 root(const rlwe::RingContext& ring, u32 limb) {
  return ring.kernels().ring().prime(limb).roots[ring.ring_dim() / 2].value;
}

// t with large^quotient = small^t modulo the limb's prime.
u64 root_exponent(const rlwe::RingContext& large, const rlwe::RingContext& small, u32 limb) {
  const auto& m = small.modulus(limb);
  const u32 wanted = math::pow_mod<u32>(root(large, limb), large.ring_dim() / small.ring_dim(), m);
  const u32 base = root(small, limb), square = math::mul_mod<u32>(base, base, m);
  u64 exponent = 1;
  for (u32 power = base; power != wanted; power = math::mul_mod<u32>(power, square, m))
    exponent += 2;
  return exponent;
}

u32 log2_of(u64 power) { return static_cast<u32>(std::countr_zero(power)); }

}  // namespace

u64 place_of(u64 j, u64 slots) {
  u64 place = 0;
  for (u64 bit = 1; bit < slots; bit *= 2, j /= 2) place = 2 * place + j % 2;
  return place;
}

Packing::Stage::Stage(const rlwe::RingContext& r, u32 group, MergeLevels merges)
    : ring(&r), each(group), levels(merges) {
  const u64 n = r.ring_dim();
  if (each > 1)
    members = std::make_unique<const ckks::MonomialGrid>(r, powers_back(each, n), 1, r.window(0));
  for (u32 i = 0; i < levels.count; ++i) {
    const u64 k = n >> (levels.first + i);
    pairs.emplace_back(r, std::array<u64, 4>{0, k, 0, n + k}, 2, r.window(0));
  }
}

u64 Packing::Stage::bytes() const {
  u64 bytes = members ? members->bytes() : 0;
  for (const auto& pair : pairs) bytes += pair.bytes();
  return bytes;
}

// Of a piece the row of a group's first member stands `pieces` before that of its next group: a
// batch that is merged by halves has its rows at the places of its entries.
Packing::Packing(std::shared_ptr<const Rings> rings, u64 count, u32 dim, u32 log_modulus,
                 u64 at_once)
    : rings_(std::move(rings)),
      count_(count),
      dim_(dim),
      log_modulus_(log_modulus),
      pieces_(static_cast<u32>(count / std::min(count, rings_->rows()))),
      at_once_(static_cast<u32>(std::clamp<u64>(at_once * pieces_ / count, 1, pieces_))),
      middle_(*rings_->middle,
              static_cast<u32>(std::min(count / pieces_, rings_->middle->ring_dim() / dim)),
              {2, log2_of(count / pieces_)}),
      last_(*rings_->last, pieces_, {last_levels(*rings_).first, log2_of(pieces_)}),
      powers_(ascending_powers(*rings_->last, pieces_)) {
  const rlwe::RingContext& ring = *rings_->middle;
  u64 q0 = 1;
  for (u32 i = 0; i < ring.window(0).size(); ++i) q0 *= ring.modulus(i).q;
  const u64 unit = u64(1) << log_modulus, factor = (q0 + unit / 2) / unit;
  for (u32 i = 0; i < ring.window(0).size(); ++i) {
    const auto& m = ring.modulus(i);
    const rlwe::Word inverse = math::inverse_mod(static_cast<rlwe::Word>(count % m.q), m);
    factor_.low[i] = factor_.high[i] =
        math::mul_mod<rlwe::Word>(static_cast<rlwe::Word>(factor % m.q), inverse, m);
  }
  for (u32 i = 0; i < ring.window(0).size(); ++i)
    roots_.push_back(root_exponent(*rings_->last, ring, i));
  // Groups of pieces that are merged together lie together: [stretch][group of a piece][piece].
  const u32 groups = static_cast<u32>(count / pieces_ / middle_.each);
  const u64 stride = ring.ring_dim() / dim;
  std::vector<u32> slot_at(count);
  for (u64 j = 0; j < count; ++j) slot_at[place_of(j, count)] = static_cast<u32>(j);
  std::vector<u32> rows;
  for (u32 first = 0; first < pieces_; first += at_once_)
    for (u32 g = 0; g < groups; ++g)
      for (u32 w = first; w < first + at_once_; ++w)
        for (u64 v = 0; v < stride; ++v)
          rows.push_back(v < middle_.each ? slot_at[(v * groups + g) * pieces_ + w]
                                          : device::kNoRow);
  rows_ = ring.stream().allocate(rows.size() * sizeof(u32));
  ring.stream().copy_in(rows_.data(), rows.data(), rows_.bytes());
  ring.stream().synchronize();  // any stream may read it
}

u64 Packing::bytes() const {
  return rows_.bytes() + powers_.bytes() + middle_.bytes() + last_.bytes();
}

Poly Packing::lifted(device::Stream& stream, device::TorusKernels& torus, const u32* rows,
                     u32 first, u32 count) const {
  const rlwe::RingContext& ring = *rings_->middle;
  auto& k = ring.kernels();
  Poly lifted(stream, {ring.log_n(), 2, count}, ring.window(0), Domain::coeff);
  {
    const device::Buffer integers = stream.allocate(2 * u64(count) * ring.ring_dim() * sizeof(i64));
    torus.embed(stream, integers.as<i64>(), ring.log_n(), count,
                {rows, {count_, dim_, 1, log_modulus_}},
                rows_.as<const u32>() + u64(first) * (ring.ring_dim() / dim_));
    k.reduce_signed(stream, lifted.view(), integers.as<const i64>());
  }
  k.ntt(stream, lifted.view_as(Domain::eval), lifted.view());
  lifted.set_domain(Domain::eval);
  k.mul_scalar(stream, lifted.view(), lifted.view(), factor_);
  return lifted;
}

Poly Packing::Stage::apart(device::Stream& stream, const Poly& groups,
                           const rlwe::SwitchKey& up) const {
  Poly under = rlwe::ring_switch_up(*ring, stream, groups.view(), up.view());
  if (each == 1) return under;
  const u32 count = groups.shape().batch;
  Poly all(stream, {ring->log_n(), 2, each * count}, ring->window(0), Domain::eval);
  std::vector<View> out;
  for (u32 v = 0; v < each; ++v) out.push_back(all.view().rows(v * count, count));
  const ConstView in = under.view();
  ring->kernels().plain_multiply_sum(stream, out, std::span(&in, 1), members->grid());
  return all;
}

// Level l takes X^(N / 2^l) to its negative and leaves what lies in the subring of the levels
// before it: even places stay, odd ones are moved, all else of that step goes.
Poly Packing::Stage::merged(device::Stream& stream, Poly a, u32 left, const MergeKeys& keys,
                            MergeLevels of_keys) const {
  auto& k = ring->kernels();
  const rlwe::KeySwitcher switcher(*ring, stream);
  for (u32 i = 0; a.shape().batch > left; ++i) {
    const u32 half = a.shape().batch / 2, level = levels.first + i;
    const rlwe::PolyShape shape{ring->log_n(), 2, half};
    Poly sum(stream, shape, ring->window(0), Domain::eval);
    Poly difference(stream, shape, ring->window(0), Domain::eval);
    const View out[] = {sum.view(), difference.view()};
    const Poly& whole = a;
    const ConstView in[] = {whole.view().rows(0, half), whole.view().rows(half, half)};
    k.plain_multiply_sum(stream, out, in, pairs[i].grid());
    const Poly& turning = difference;
    const ConstView b = turning.view().components(0, 1);
    const Poly switched = switcher.switch_down({.in = turning.view().components(1, 1)},
                                               keys.turns[level - of_keys.first].view(), 0);
    k.automorphism_add(stream, sum.view(), switched.view(), merging_element(*ring, level), &b);
    a = std::move(sum);
    watch::advance();
  }
  return a;
}

// Each ring has a root of its own modulo a prime: the order of values differs by an automorphism,
// one a limb.
Poly Packing::at_last_roots(device::Stream& stream, const Poly& pieces) const {
  Poly out(stream, pieces.shape(), pieces.limbs(), Domain::eval);
  for (u32 i = 0; i < pieces.limbs().size(); ++i)
    rings_->middle->kernels().automorphism(stream, out.view().limb_window(i, 1),
                                           pieces.view().limb_window(i, 1), roots_[i]);
  return out;
}

// In evaluation form a polynomial in X^D is each of its values D times: it multiplies X^v as a
// plaintext of its degree does.
void Packing::raised(device::Stream& stream, const Poly& pieces, View out) const {
  const rlwe::RingContext& ring = *rings_->last;
  const Poly values = at_last_roots(stream, pieces);
  std::vector<ConstView> powers;
  for (u32 v = 0; v < pieces_; ++v)
    for (u32 c = 0; c < 2; ++c) powers.push_back(powers_.view().rows(v, 1));
  std::vector<u8> present(powers.size());
  for (u32 c = 0; c < 2; ++c) {
    for (u32 i = 0; i < present.size(); ++i) present[i] = i % 2 == c;
    device::PlainGrid grid;
    grid.data = values.data();
    grid.limbs = ring.window(0);
    grid.log_words = rings_->middle->log_n();
    grid.giants = 1;
    grid.babies = static_cast<u32>(powers.size());
    grid.present = present.data();
    const View to = out.components(c, 1);
    ring.kernels().plain_multiply_sum(stream, std::span(&to, 1), powers, grid);
  }
}

void Packing::operator()(device::Stream& stream, device::TorusKernels& torus,
                         const Keys::Data& keys, const u32* rows, View out) const {
  const rlwe::RingContext &middle = *rings_->middle, &last = *rings_->last;
  const u64 one = 2 * middle.window(0).size() * sizeof(rlwe::Word);
  const u64 together = count_ / pieces_ * at_once_ * middle.ring_dim();
  const u64 whole = (pieces_ > 1 ? 5 * u64(pieces_) : 6) * last.ring_dim();
  device::expect_room(stream, {.device = std::max(7 * together, whole) * one}, [&] {
    return core::MemoryRequest{.what = cat("packing of ", count_, " messages"),
                               .advice = "take fewer slots"};
  });
  Poly pieces(stream, {middle.log_n(), 2, pieces_}, middle.window(0), Domain::eval);
  const u32 groups = static_cast<u32>(count_ / pieces_ / middle_.each) * at_once_;
  for (u32 first = 0; first < pieces_; first += at_once_) {
    Poly all = middle_.apart(stream, lifted(stream, torus, rows, first / at_once_ * groups, groups),
                             keys.middle.up);
    const Poly ready =
        middle_.merged(stream, std::move(all), at_once_, keys.middle, middle_levels(*rings_));
    stream.copy(pieces.view().rows(first, 1).data, ready.data(), ready.bytes());
  }
  Poly group(stream, {last.log_n(), 2, 1}, last.window(0), Domain::eval);
  raised(stream, pieces, group.view());
  const Poly ready = last_.merged(stream, last_.apart(stream, group, keys.last.up), 1, keys.last,
                                  last_levels(*rings_));
  stream.copy(out.data, ready.data(), ready.bytes());
}

}  // namespace crenel::bridge
