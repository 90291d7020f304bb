// Storage in lists: messages packed into ciphertexts of the ring, whose coefficients come out again
// one by one (docs/theory/tfhe.md, "Lists in a ring").
#include "tfhe/lists.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "crenel/device/account.h"
#include "device/room.h"
#include "math/modulus.h"
#include "tfhe/compressed.h"
#include "tfhe/evaluator_state.h"

namespace crenel::tfhe {
namespace {

using ring::Domain;
using View = ring::PolyView<u32>;
using ConstView = ring::PolyView<const u32>;

/// Ciphertexts of the ring that go through the first doublings together: bounds what is in memory.
constexpr u64 kTogether = 256;

u64 power(u64 base, u64 exponent, u64 modulus) {
  u64 out = 1;
  for (; exponent != 0; exponent /= 2, base = static_cast<u64>(u128(base) * base % modulus))
    if (exponent % 2 == 1) out = static_cast<u64>(u128(out) * base % modulus);
  return out;
}

// One list: `count` rows at rest to coefficients of a ciphertext of the ring. Message j comes to
// X^(j N / width).
class Packing {
 public:
  Packing(const Evaluator::State& s, u64 count)
      : s_(s),
        r_(s.home().lists()),
        stream_(s.stream()),
        count_(count),
        width_(list_width(count)),
        together_(std::min(width_, kTogether)) {}

  /// [2][limbs][N] residues, b before a, coefficient form.
  std::vector<u32> operator()(const u32* rows) const {
    const u64 groups = width_ / together_;
    device::Buffer leaders = ciphertexts(groups);
    for (u64 c = 0; c < groups; ++c) {
      device::Buffer leader = merged(lifted(rows, c, groups), together_, 1);
      stream_.copy(leaders.as<u8>() + c * 2 * r_.poly_bytes(), leader.data(), leader.bytes());
      watch::point();
    }
    const u32 level = static_cast<u32>(std::bit_width(together_));
    const device::Buffer all = merged(std::move(leaders), groups, level);
    r_.poly->intt(stream_, r_.view(all.as<u32>(), 2, 1, Domain::coeff),
                  r_.view(all.as<u32>(), 2, 1, Domain::eval));
    std::vector<u32> out(all.bytes() / sizeof(u32));
    stream_.copy_out(out.data(), all.data(), all.bytes());
    return out;
  }

 private:
  device::Buffer ciphertexts(u64 count) const {
    return stream_.allocate(count * 2 * r_.poly_bytes());
  }
  View view(const device::Buffer& buffer, u64 count) const {
    return r_.view(buffer.as<u32>(), 2, static_cast<u32>(count), Domain::eval);
  }

  // Rows c, c + groups, c + 2 groups, ... as ciphertexts whose constant coefficient is the phase
  // times Q' / q / width; zero where there is no row.
  device::Buffer lifted(const u32* rows, u64 c, u64 groups) const {
    const auto& plan = s_.plan();
    std::vector<u32> which(together_, device::kNoRow);
    for (u64 t = 0; t < together_; ++t)
      if (c + t * groups < count_) which[t] = static_cast<u32>(c + t * groups);
    const device::Buffer index = stream_.allocate(which.size() * sizeof(u32));
    stream_.copy_in(index.data(), which.data(), index.bytes());
    const u32 count = static_cast<u32>(together_);
    const device::Buffer integers = stream_.allocate(2 * together_ * plan.ring_dim() * sizeof(i64));
    s_.home().torus->embed(stream_, integers.as<i64>(), plan.log_n, count,
                           {rows, {count_, plan.rest_dim(), 1, s_.log_q()}}, index.as<const u32>());
    device::Buffer out = ciphertexts(together_);
    const View coeff = r_.view(out.as<u32>(), 2, count, Domain::coeff);
    r_.poly->reduce_signed(stream_, coeff, integers.as<const i64>());
    r_.poly->mul_scalar(stream_, coeff, coeff, factor());
    r_.poly->ntt(stream_, view(out, together_), coeff);
    return out;
  }

  device::LimbScalars factor() const {
    const u64 q = u64(1) << s_.log_q(), near = (r_.plan.modulus + q / 2) / q;
    device::LimbScalars factor;
    for (u32 i = 0; i < r_.plan.digits(); ++i) {
      const u64 p = r_.plan.primes[i], inverse = power(width_ % p, p - 2, p);
      factor.low[i] = factor.high[i] = static_cast<u32>(near % p * inverse % p);
    }
    return factor;
  }

  // Halves of a batch into one, as long as there are two: doubling l takes E and O to E + X^(N/2^l)
  // O plus the automorphism of E - X^(N/2^l) O, which doubles what is to stay of both.
  device::Buffer merged(device::Buffer memory, u64 batch, u32 level) const {
    auto& poly = *r_.poly;
    device::LimbScalars one;
    std::fill_n(one.low, r_.plan.digits(), 1u);
    std::fill_n(one.high, r_.plan.digits(), 1u);
    const u32* key = s_.keys.data()->lists.as<const u32>();
    const u64 words = r_.poly_bytes() / sizeof(u32);
    for (; batch > 1; ++level) {
      const u32 half = static_cast<u32>(batch / 2), digits = r_.plan.digits();
      const ConstView even = view(memory, batch).rows(0, half);
      const ConstView odd = view(memory, batch).rows(half, half);
      const device::Buffer kept[] = {ciphertexts(half), ciphertexts(half), ciphertexts(half)};
      const View moved = view(kept[0], half), difference = view(kept[1], half);
      const View turned = view(kept[2], half);
      poly.mul(stream_, moved, odd,
               r_.view(r_.monomials.as<u32>(), 1, r_.log_n(), Domain::eval).rows(level - 1, 1));
      poly.sub(stream_, difference, even, moved);
      device::Buffer sums = ciphertexts(half);
      const View sum = view(sums, half);
      poly.add(stream_, sum, even, moved);
      poly.automorphism(stream_, turned, difference, doubling_element(level));
      const ConstView body = ConstView(turned).components(0, 1);
      const ConstView pairs(key + u64(level - 1) * digits * 2 * words, {r_.log_n(), 2, digits},
                            r_.limbs, Domain::eval);
      poly.key_switch_extended(stream_, difference, ConstView(turned).components(1, 1), r_.mod_up,
                               device::KeyView(pairs), 0, &body, &one);
      poly.add(stream_, sum, sum, difference);
      memory = std::move(sums);
      batch = half;
      watch::advance(half);
    }
    return memory;
  }

  const Evaluator::State& s_;
  const ListRing& r_;
  device::Stream& stream_;
  u64 count_, width_, together_;
};

// Residues to words modulo P, rounded: x P / Q' of x in [0, Q').
class Rounding {
 public:
  explicit Rounding(const ListPlan& plan) : plan_(plan) {
    for (const u64 p : plan.primes) {
      const u64 rest = plan.modulus / p;
      parts_.push_back(static_cast<u64>(u128(rest) * power(rest % p, p - 2, p) % plan.modulus));
    }
  }
  /// `first`: residue modulo the first prime; those of the others `stride` words apart.
  u32 operator()(const u32* first, u64 stride) const {
    u128 sum = 0;
    for (std::size_t d = 0; d < parts_.size(); ++d) sum += u128(parts_[d]) * first[d * stride];
    const u64 x = static_cast<u64>(sum % plan_.modulus);
    const u64 y =
        static_cast<u64>((u128(x) * plan_.stored_modulus + plan_.modulus / 2) / plan_.modulus);
    return static_cast<u32>(y % plan_.stored_modulus);
  }

 private:
  ListPlan plan_;
  std::vector<u64> parts_;  ///< 1 modulo one prime, 0 modulo the others
};

u64 list_words(const device::TorusPlan& plan, u64 count) { return plan.ring_dim() + count; }

// f(first, count) over the lists of an array.
template <class F>
void for_each_list(const device::TorusPlan& plan, u64 size, F f) {
  for (u64 first = 0; first < size; first += plan.ring_dim())
    f(first, std::min<u64>(plan.ring_dim(), size - first));
}

}  // namespace

std::vector<u32> packed_rows(const Evaluator::State& s, const u32* rows, u64 count) {
  return Packing(s, count)(rows);
}

u64 stored_list_bytes(const Context::State& home, u64 count) {
  return packed_bytes(list_words(home.plan, count), list_plan(home.plan).log_stored);
}

u64 stored_lists_bytes(const Context::State& home, u64 size) {
  u64 bytes = 0;
  const u64 n = home.plan.ring_dim();
  if (size >= n) bytes += size / n * stored_list_bytes(home, n);
  if (size % n != 0) bytes += stored_list_bytes(home, size % n);
  return bytes;
}

double Evaluator::State::listed_variance(u64 size) const {
  const ListPlan lists = list_plan(plan());
  return list_noise(plan(), lists, std::min<u64>(size, plan().ring_dim())).sum();
}

void Evaluator::State::judge_listed(u64 size, const Noise& noise, u32 plain_modulus,
                                    const char* operation) const {
  judge_reading(noise.variance() + listed_variance(size) + reading(log_q()), noise,
                refresh_function(plain_modulus).margin, operation);
}

std::vector<u8> Evaluator::State::listed(const Ciphertext& a) const {
  const auto& lists = home().lists();
  const Rounding rounding(lists.plan);
  const u64 n = plan().ring_dim(), stride = n, component = lists.plan.digits() * n;
  // ring ciphertexts of a group, the integers that they come from and what a doubling takes
  const u64 width = std::min(list_width(std::min<u64>(a.size(), n)), kTogether);
  const u64 bytes = stored_lists_bytes(home(), a.size());
  device::expect_room(stream(), {.device = 8 * width * lists.poly_bytes(), .host = bytes}, [&] {
    return core::MemoryRequest{.what = cat("lists of ", a.size(), " messages"),
                               .advice = "take fewer messages at a time"};
  });
  std::vector<u8> out(bytes);
  u8* to = out.data();
  const device::Stage stage(stream(), "pack");
  const watch::Task task(a.size(), "messages packed");
  for_each_list(plan(), a.size(), [&](u64 first, u64 count) {
    const std::vector<u32> found =
        packed_rows(*this, a.data().payload.as<const u32>() + first * plan().words(), count);
    std::vector<u32> words;
    for (u64 i = 0; i < n; ++i) words.push_back(rounding(found.data() + component + i, stride));
    const u64 apart = n / list_width(count);
    for (u64 j = 0; j < count; ++j) words.push_back(rounding(found.data() + j * apart, stride));
    pack_bits(words, lists.plan.log_stored, to);
    to += stored_list_bytes(home(), count);
  });
  return out;
}

// Rows at rest of one list.
device::Buffer Evaluator::State::unlisted(const u8* from, u64 count) const {
  const auto& lists = home().lists();
  const u64 n = plan().ring_dim(), apart = n / list_width(count);
  std::vector<u32> words(list_words(plan(), count)), polys(2 * n), positions(count);
  unpack_bits(from, lists.plan.log_stored, words);
  std::copy_n(words.begin(), n, polys.begin() + static_cast<std::ptrdiff_t>(n));
  for (u64 j = 0; j < count; ++j) {
    positions[j] = static_cast<u32>(j * apart);
    polys[j * apart] = words[n + j];
  }
  const device::Buffer there = stream().allocate(polys.size() * sizeof(u32));
  const device::Buffer places = stream().allocate(positions.size() * sizeof(u32));
  stream().copy_in(there.data(), polys.data(), there.bytes());
  stream().copy_in(places.data(), positions.data(), places.bytes());
  device::Buffer rows = allocate_rows(count);
  const device::LweView view(rows.as<u32>(), {count, plan().rest_dim(), 1, log_q()});
  home().torus->extract(stream(), view,
                        {there.as<const u32>(), plan().log_n, lists.plan.stored_modulus},
                        places.as<const u32>());
  return rows;
}

void Evaluator::State::refresh_lists(u32* out, const Compressed::Data& c,
                                     const RefreshFunction& function) const {
  const device::LutView view = refresh_view(function);
  const Form& form = form_of(c.size);
  const u32 constant = static_cast<u32>(function.constant(log_q()));
  const u8* from = c.words.data();
  for_each_list(plan(), c.size, [&](u64 first, u64 count) {
    const device::Buffer rows = unlisted(from, count);
    from += stored_list_bytes(home(), count);
    if (constant != 0) {
      const device::LweTerm term{rows.as<const u32>(), 1};
      combine(rows.as<u32>(), {&term, 1}, constant, count, log_q());
    }
    const device::Buffer switched = stream().allocate(count * plan().read_words() * sizeof(u32));
    switch_groups(switched.as<u32>(), rows.as<const u32>(), count);
    rotate_groups(form, out + first * plan().words(), switched.as<const u32>(), count, view);
    watch::advance(count);
  });
}

}  // namespace crenel::tfhe
